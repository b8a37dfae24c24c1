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
        p if p < 0.095 => format!("{p:.4} %"),
        p if p < 9.95 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

/// The number of a quantity as a study writes it (`1KiB`, `5k/s`, `10s`), and its unit.
fn parts(quantity: &str) -> (&str, &str) {
    let numeric = |c: char| c.is_ascii_digit() || c == '.' || c == '_';
    let end = quantity.find(|c| !numeric(c)).unwrap_or(quantity.len());
    let (number, unit) = quantity.split_at(end);
    (number, unit.trim_start())
}

/// Sizes and times, in bytes and seconds.
const QUANTITIES: [(&str, f64); 13] = [
    ("B", 1.0),
    ("kB", 1e3),
    ("KiB", 1024.0),
    ("MB", 1e6),
    ("MiB", 1048576.0),
    ("GB", 1e9),
    ("GiB", 1073741824.0),
    ("ns", 1e-9),
    ("us", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("min", 60.0),
    ("h", 3600.0),
];

/// A quantity as a study writes it, with a space before a unit of size or time: `1KiB` becomes
/// `1 KiB`. Rates and other text stay as they are.
pub fn spaced(quantity: &str) -> String {
    let (number, unit) = parts(quantity);
    let known = QUANTITIES.iter().any(|(name, _)| *name == unit);
    if known && !number.is_empty() {
        format!("{number} {unit}")
    } else {
        quantity.to_owned()
    }
}

/// The number that a study's quantity stands for: bytes, seconds, messages per second or plain;
/// `None` if it is none of them (`max`, words).
pub fn amount(quantity: &str) -> Option<f64> {
    let (number, unit) = parts(quantity.trim_end_matches("-each"));
    let number: f64 = number.replace('_', "").parse().ok()?;
    if unit.is_empty() {
        return Some(number);
    }
    // A load as a share of a limit.
    if unit.starts_with("% of ") {
        return Some(number / 100.0);
    }
    let Some((thousands, per)) = unit.split_once('/') else {
        let known = QUANTITIES.iter().find(|(name, _)| *name == unit);
        return known.map(|(_, size)| number * size);
    };
    let scale = match thousands {
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        _ => return None,
    };
    let per = if per.starts_with(|c: char| c.is_ascii_digit()) {
        amount(per)?
    } else {
        amount(&format!("1{per}"))?
    };
    Some(number * scale / per)
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

/// Wraps a text into indented lines of at most 80 columns.
pub fn wrap(text: &str, indent: usize) -> String {
    let mut out = String::new();
    for paragraph in text.lines() {
        let mut line = " ".repeat(indent);
        for word in paragraph.split_whitespace() {
            if line.len() > indent && line.chars().count() + 1 + word.chars().count() > 80 {
                out.push_str(line.trim_end());
                out.push('\n');
                line = " ".repeat(indent);
            }
            if line.len() > indent {
                line.push(' ');
            }
            line.push_str(word);
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
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
    fn quantities_of_a_study() {
        for (text, shown, number) in [
            ("1KiB", "1 KiB", Some(1024.0)),
            ("64B", "64 B", Some(64.0)),
            ("250ms", "250 ms", Some(0.25)),
            ("5k/s", "5k/s", Some(5000.0)),
            ("3/s-each", "3/s-each", Some(3.0)),
            ("1/15min", "1/15min", Some(1.0 / 900.0)),
            ("1_000", "1_000", Some(1000.0)),
            ("max", "max", None),
            ("drop", "drop", None),
            ("", "", None),
        ] {
            assert_eq!(spaced(text), shown);
            assert_eq!(amount(text), number, "{text}");
        }
        assert_eq!(amount("1 KiB"), Some(1024.0));
    }

    #[test]
    fn nothing_is_never_below_nothing() {
        assert_eq!(seconds(-0.0), "0.00 s");
        assert_eq!(share(-0.0), "0 %");
        assert_eq!(share(0.35), "35 %");
        assert_eq!(share(0.00185), "0.2 %");
        assert_eq!(rate(10.0 / 3.0), "3.33/s");
    }
}
