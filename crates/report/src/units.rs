//! Figures as people read them: three significant digits and a unit.

/// Three significant digits: `1.23`, `12.3`, `123`, `1234`.
pub fn digits(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        "0".to_owned()
    } else if size < 0.01 {
        format!("{value:.1e}")
    } else if size < 9.995 {
        format!("{value:.2}")
    } else if size < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// Nanoseconds as `182 ns`, `1.82 µs`, `18.2 ms`, `1.82 s`.
pub fn time(ns: f64) -> String {
    let (scale, unit) = match ns {
        ns if ns < 999.5 => return format!("{ns:.0} ns"),
        ns if ns < 999.5e3 => (1e3, "µs"),
        ns if ns < 999.5e6 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{} {unit}", digits(ns / scale))
}

/// Messages per second as `820/s`, `10.0 k/s`, `1.23 M/s`.
pub fn rate(per_s: f64) -> String {
    format!("{}/s", scaled(per_s))
}

/// A count as `820`, `10.0 k`, `1.23 M`; whole and exact below 100,000, so that a single lost
/// message shows.
pub fn count(count: u64) -> String {
    if count < 100_000 {
        count.to_string()
    } else {
        scaled(count as f64)
    }
}

fn scaled(value: f64) -> String {
    match value {
        v if v < 999.5 && v.fract() == 0.0 => format!("{v:.0}"),
        v if v < 999.5 => digits(v),
        v if v < 999.5e3 => format!("{} k", digits(v / 1e3)),
        v if v < 999.5e6 => format!("{} M", digits(v / 1e6)),
        v => format!("{} G", digits(v / 1e9)),
    }
}

/// Bytes as `820 B`, `12.3 MiB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in UNITS {
        if value < 1023.5 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if unit == "B" {
        format!("{bytes} B")
    } else {
        format!("{} {unit}", digits(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readable() {
        let times = [
            (0.0, "0 ns"),
            (182.0, "182 ns"),
            (1_820.0, "1.82 µs"),
            (99_960.0, "100 µs"),
            (999_600.0, "1.00 ms"),
            (18_200_000.0, "18.2 ms"),
            (61e9, "61.0 s"),
        ];
        for (ns, text) in times {
            assert_eq!(time(ns), text);
        }
        let rates = [
            (0.0, "0/s"),
            (100.0, "100/s"),
            (99.6, "99.6/s"),
            (10_000.0, "10.0 k/s"),
            (1_234_567.0, "1.23 M/s"),
        ];
        for (per_s, text) in rates {
            assert_eq!(rate(per_s), text);
        }
        assert_eq!(count(99_999), "99999");
        assert_eq!(count(1_000_001), "1.00 M");
        assert_eq!(bytes(820), "820 B");
        assert_eq!(bytes(12 * 1024 * 1024 + 300_000), "12.3 MiB");
    }
}
