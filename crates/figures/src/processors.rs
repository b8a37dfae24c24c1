//! How many processors there are, by the machine or a quota.

use pubgauge_quantities::shown;

/// How many processors client and system have together: those of the machine, or less by a quota around them (a
/// container's), in processors. `cores` of 0 are not known; 0 if neither is.
pub fn available(cores: u32, quota: Option<f64>) -> f64 {
    match quota {
        Some(quota) if cores == 0 || quota < f64::from(cores) => quota,
        _ => f64::from(cores),
    }
}

/// A quota that leaves fewer processors than `cores`; `None` without any.
pub fn quota(cores: u32, quota: Option<f64>) -> Option<f64> {
    quota.filter(|quota| *quota < f64::from(cores))
}

/// So many processors, in words: `0.2 of a processor`, `1 processor`, `1.5 processors`.
pub fn so_many(processors: f64) -> String {
    let number = shown::three_decimals(processors);
    match processors {
        few if few < 1.0 => format!("{number} of a processor"),
        1.0 => format!("{number} processor"),
        _ => format!("{number} processors"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_number_of_processors_counts() {
        assert_eq!(available(2, None), 2.0);
        assert_eq!(available(2, Some(1.5)), 1.5);
        assert_eq!(available(2, Some(4.0)), 2.0);
        assert_eq!((available(0, None), available(0, Some(0.2))), (0.0, 0.2));
        assert_eq!(
            (quota(2, Some(1.5)), quota(2, Some(2.0))),
            (Some(1.5), None)
        );
    }

    #[test]
    fn processors_in_words() {
        let said = [0.2, 1.0, 1.5].map(so_many);
        assert_eq!(
            said,
            ["0.2 of a processor", "1 processor", "1.5 processors"]
        );
    }
}
