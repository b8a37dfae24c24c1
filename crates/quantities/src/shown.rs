//! Quantities as people read them: measured ones in three digits, given ones in full.

/// Three significant digits: `1.23`, `12.3`, `123`, `1234`.
pub fn digits(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        "0".to_owned()
    } else if size < 0.01 {
        format!("{value:.1e}")
    } else if size < 0.099_95 {
        format!("{value:.4}")
    } else if size < 9.995 {
        format!("{value:.2}")
    } else if size < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// Three digits without zeros at the end, and in full from 100 on: `1.2`, `12.3`, `1234`.
pub fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let places = 2 - value.abs().log10().floor() as i32;
    match places {
        ..=0 => format!("{value:.0}"),
        places if places > 6 => format!("{value:.1e}"),
        places => decimals(value, places as usize),
    }
}

/// A number with so many digits after the point at the most: `0.25`, `1000`; never `-0`.
pub fn decimals(value: f64, most: usize) -> String {
    let text = format!("{value:.most$}");
    let text = match text.split_once('.') {
        Some(_) => text.trim_end_matches('0').trim_end_matches('.'),
        None => &text,
    };
    match text {
        "-0" => "0".to_owned(),
        text => text.to_owned(),
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

/// A number in at most three digits: `820`, `41.2k`, `96k`, `1.23M`.
pub fn brief(value: f64) -> String {
    let text = scaled(value);
    let (number, thousands) = text.split_once(' ').unwrap_or((&text, ""));
    let number = if number.contains('.') && !number.contains('e') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    };
    format!("{number}{thousands}")
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

/// Processor seconds as `0.35 s`; never `-0.00 s`.
pub fn seconds(seconds: f64) -> String {
    format!("{:.2} s", seconds.max(0.0) + 0.0)
}

/// A share of one as `35 %`, `0.2 %`, `0.0040 %`.
pub fn share(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        p if p > 0.0 && p < 0.000_5 => format!("{p:.1e} %"),
        p if p < 0.095 => format!("{p:.4} %"),
        p if p < 9.95 => format!("{p:.1} %"),
        // Nearly all is not all.
        p if p > 99.5 && p < 100.0 => format!("{} %", decimals(p.min(99.99), 2)),
        p => format!("{p:.0} %"),
    }
}

/// A share of one with so many digits after the point: `3 %`, `0.25 %`.
pub fn percent(share: f64, most: usize) -> String {
    format!("{} %", decimals(share * 100.0, most))
}

/// Bits per second that were given: `95 Mbit/s`.
pub fn bit_rate(bits_per_s: u64) -> String {
    let (size, unit) = match bits_per_s {
        1_000_000_000.. => (1e9, "Gbit/s"),
        1_000_000.. => (1e6, "Mbit/s"),
        _ => (1e3, "kbit/s"),
    };
    format!("{} {unit}", three_decimals(bits_per_s as f64 / size))
}

/// Nanoseconds that were given: `20 ms`, in microseconds at the least.
pub fn span(ns: u64) -> String {
    let (size, unit) = match ns {
        1_000_000_000.. => (1e9, "s"),
        1_000_000.. => (1e6, "ms"),
        _ => (1e3, "us"),
    };
    format!("{} {unit}", three_decimals(ns as f64 / size))
}

/// At most three digits after the point; of a smaller number the first digits that are not 0.
pub fn three_decimals(value: f64) -> String {
    decimals(value, if value.abs() < 0.001 { 6 } else { 3 })
}

/// So many of them, in words: `1 trial`, `12 trials`.
pub fn so_many(count: u64, what: &str) -> String {
    let (stem, ending) = match what.strip_suffix('y') {
        _ if count == 1 => (what, ""),
        Some(stem) => (stem, "ies"),
        None if what.ends_with(['s', 'h']) => (what, "es"),
        None => (what, "s"),
    };
    format!("{count} {stem}{ending}")
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
        let briefs = [
            (0.0, "0"),
            (1.0, "1"),
            (820.0, "820"),
            (41_234.0, "41.2k"),
            (96_000.0, "96k"),
            (1_234_567.0, "1.23M"),
            (2.5, "2.5"),
            (0.001, "1.0e-3"),
        ];
        for (number, text) in briefs {
            assert_eq!(brief(number), text);
        }
        assert_eq!(count(99_999), "99999");
        assert_eq!(count(1_000_001), "1.00 M");
        assert_eq!(bytes(820), "820 B");
        assert_eq!(bytes(12 * 1024 * 1024 + 300_000), "12.3 MiB");
    }

    #[test]
    fn zeros_at_the_end_are_left_out() {
        for (value, text) in [
            (0.0, "0"),
            (0.05, "0.05"),
            (1.2345, "1.23"),
            (99.96, "100"),
            (1234.5, "1234"),
            (1e-9, "1.0e-9"),
        ] {
            assert_eq!(number(value), text);
        }
        assert_eq!(decimals(-0.0001, 3), "0");
        assert_eq!(decimals(1000.0, 0), "1000");
        assert_eq!(percent(0.0025, 6), "0.25 %");
        assert_eq!(bit_rate(95_000_000), "95 Mbit/s");
        assert_eq!(bit_rate(1_500), "1.5 kbit/s");
        assert_eq!(span(20_500_000), "20.5 ms");
        assert_eq!(span(200), "0.2 us");
        assert_eq!(three_decimals(0.000_25), "0.00025");
    }

    #[test]
    fn nothing_is_never_below_nothing() {
        assert_eq!(seconds(-0.0), "0.00 s");
        assert_eq!(share(-0.0), "0 %");
        assert_eq!(share(0.35), "35 %");
        assert_eq!(share(0.00185), "0.2 %");
        assert_eq!(share(1.0 / 6e6), "1.7e-5 %");
        assert_eq!(share(0.9996), "99.96 %");
        assert_eq!(share(0.999_999_9), "99.99 %");
        assert_eq!(share(1.0), "100 %");
        assert_eq!(rate(1.0 / 60.0), "0.0167/s");
        assert_eq!(rate(10.0 / 3.0), "3.33/s");
    }
}
