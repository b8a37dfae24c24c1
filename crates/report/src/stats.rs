//! Statistics over repeats.

use pubgauge_claims::stats as claims;
pub use pubgauge_claims::stats::CONFIDENCE;

/// A mean over repeats with its 95 % confidence interval (Student's t).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Arithmetic mean.
    pub mean: f64,
    /// Half the width of the interval; absent for a single repeat, which shows no spread.
    pub half_width: Option<f64>,
    /// Repeats.
    pub n: usize,
}

impl Estimate {
    /// The mean of `values`; `None` without values.
    pub fn of(values: &[f64]) -> Option<Estimate> {
        let n = values.len();
        let (low, high) = match n {
            0 => return None,
            1 => (values[0], values[0]),
            _ => claims::Estimate::of(values).interval(1),
        };
        Some(Estimate {
            mean: mean(values.iter().copied())?,
            half_width: (n > 1).then_some((high - low) / 2.0),
            n,
        })
    }

    /// Lower end of the interval, not below zero: no figure here can be negative. The mean for a
    /// single repeat.
    pub fn low(&self) -> f64 {
        (self.mean - self.half_width.unwrap_or(0.0)).max(0.0)
    }

    /// Upper end of the interval; the mean for a single repeat.
    pub fn high(&self) -> f64 {
        self.mean + self.half_width.unwrap_or(0.0)
    }
}

/// The arithmetic mean; `None` without values.
pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.into_iter().collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// A ratio of two means with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Ratio of the geometric means.
    pub ratio: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Ratio {
    /// Whether the interval excludes 1: a difference that is not chance.
    pub fn is_clear(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }
}

/// `a` over `b` by Welch's t on logarithms, at a confidence of `1 - 0.05 / comparisons`
/// (Bonferroni: of many comparisons some would seem clear by chance).
///
/// `None` with fewer than two repeats on either side or a value that is not positive.
pub fn ratio(a: &[f64], b: &[f64], comparisons: usize) -> Option<Ratio> {
    if a.len() < 2 || b.len() < 2 || a.iter().chain(b).any(|value| *value <= 0.0) {
        return None;
    }
    let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<f64>>();
    let confidence = 1.0 - (1.0 - CONFIDENCE) / comparisons.max(1) as f64;
    let change = difference(&logs(b), &logs(a), false, confidence);
    Some(Ratio {
        ratio: change.effect.exp(),
        low: change.low().exp(),
        high: change.high().exp(),
    })
}

/// A difference of means with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The difference.
    pub effect: f64,
    /// Half the width of its interval.
    pub half_width: f64,
}

impl Difference {
    /// Lower end of the interval.
    pub fn low(&self) -> f64 {
        self.effect - self.half_width
    }

    /// Upper end.
    pub fn high(&self) -> f64 {
        self.effect + self.half_width
    }
}

/// `b` minus `a`: by the t of the pairs, or by Welch's. Needs at least two values on each side; for pairs
/// the same number.
pub fn difference(a: &[f64], b: &[f64], paired: bool, confidence: f64) -> Difference {
    let differences: Vec<f64>;
    let change = if paired {
        differences = a.iter().zip(b).map(|(a, b)| b - a).collect();
        claims::Estimate::of(&differences)
    } else {
        claims::Estimate::contrast(&[(1.0, b), (-1.0, a)])
    };
    let (low, high) = change.interval_at(confidence);
    Difference {
        effect: change.middle(),
        half_width: (high - low) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn interval_of_known_values() {
        // Textbook: n = 5, mean 10, s = 1.5811, t(0.975, 4) = 2.7764.
        let e = Estimate::of(&[8.0, 9.0, 10.0, 11.0, 12.0]).unwrap();
        assert_eq!(e.mean, 10.0);
        assert!((e.half_width.unwrap() - 1.9632).abs() < 1e-3, "{e:?}");
        assert_eq!(Estimate::of(&[3.0]).unwrap().half_width, None);
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn ratios() {
        let clear = ratio(&[200.0, 210.0, 190.0], &[100.0, 105.0, 95.0], 1).unwrap();
        assert!(
            clear.is_clear() && (clear.ratio - 2.0).abs() < 0.01,
            "{clear:?}"
        );
        let tie = ratio(&[100.0, 120.0, 90.0], &[105.0, 95.0, 110.0], 1).unwrap();
        assert!(!tie.is_clear(), "{tie:?}");
        assert_eq!(ratio(&[1.0], &[2.0, 3.0], 1), None);
        assert_eq!(ratio(&[0.0, 1.0], &[2.0, 3.0], 1), None);
        assert!(ratio(&[2.0, 2.0], &[1.0, 1.0], 1).unwrap().is_clear());
    }

    proptest! {
        #[test]
        fn more_comparisons_never_narrow(a in prop::collection::vec(1.0f64..1e6, 2..10),
                                         b in prop::collection::vec(1.0f64..1e6, 2..10)) {
            let one = ratio(&a, &b, 1).unwrap();
            let many = ratio(&a, &b, 8).unwrap();
            prop_assert!(many.low <= one.low * 1.000001 && many.high >= one.high * 0.999999);
            let back = ratio(&b, &a, 1).unwrap();
            prop_assert!((one.ratio * back.ratio - 1.0).abs() < 1e-9);
            prop_assert_eq!(one.is_clear(), back.is_clear());
        }
    }
}
