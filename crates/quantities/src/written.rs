//! Quantities as people write them, whatever their unit; rates of messages and percentages.
//!
//! A number without its unit is refused, because `10` may mean seconds to one reader and
//! milliseconds to the next.

use std::fmt;
use std::str::FromStr;

use crate::quoted::{UnitError, as_string, in_number, number};
use crate::units::{BIT_RATES, SIZES, SPANS, Span};

/// A share, written as a percentage: `3%` is 0.03.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Percent(pub f64);

/// Rate of messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// As fast as the system takes them: `max`.
    Max,
    /// So many a second over all publishers of the flow: `10k/s`.
    All(f64),
    /// So many a second by each publisher: `1/s-each`.
    Each(f64),
}

/// The number that a quantity stands for: bytes, seconds, messages per second, a share or plain; `None` if it is none
/// of them (`max`, words). `1KiB` is 1024, `10k/s` is 10,000, `1/15min` one in 900 s, `5ms` 0.005, `80% of limit` 0.8,
/// `3%` 0.03, `95Mbit/s` 95,000,000.
pub fn amount(quantity: &str) -> Option<f64> {
    let text = quantity.trim();
    let text = text.strip_suffix("-each").unwrap_or(text);
    let (sign, text) = match text.strip_prefix('-') {
        Some(text) => (-1.0, text),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let (value, unit) = number(text)?;
    let size = match (BIT_RATES.find(unit), unit.split_once('/')) {
        (Some(bits), _) => bits as f64,
        (None, Some((thousands, per))) => {
            let per = if per.starts_with(|c: char| c.is_ascii_digit()) {
                amount(per)
            } else {
                amount(&format!("1{per}"))
            };
            let (_, thousands) = [("", 1.0), ("k", 1e3), ("M", 1e6)]
                .into_iter()
                .find(|(name, _)| *name == thousands.trim_end())?;
            thousands / per?
        }
        (None, None) => unit_size(unit)?,
    };
    Some(sign * value * size)
}

/// The factor of the number before a unit of size or time, or before none; a percentage is a share, be it of a limit.
fn unit_size(unit: &str) -> Option<f64> {
    match unit {
        "" => Some(1.0),
        "%" => Some(0.01),
        share if share.starts_with("% of ") => Some(0.01),
        _ => match SIZES.find(unit) {
            Some(bytes) => Some(bytes as f64),
            None => Some(SPANS.find(unit)? as f64 / 1e9),
        },
    }
}

/// A quantity as a study writes it, with a space before a unit of size or time: `1KiB` becomes `1 KiB`. Rates and
/// other text stay as they are.
pub fn spaced(quantity: &str) -> String {
    let end = quantity
        .find(|c: char| !in_number(c))
        .unwrap_or(quantity.len());
    let (number, unit) = quantity.split_at(end);
    let unit = unit.trim_start();
    let is_known = SIZES.find(unit).or_else(|| SPANS.find(unit)).is_some();
    if is_known && !number.is_empty() {
        format!("{number} {unit}")
    } else {
        quantity.to_owned()
    }
}

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let text = text.trim();
        let example = "a rate is messages per time over all publishers, such as \"10k/s\", or \
                       for each of them, such as \"1/s-each\" or \"1/15min-each\", or \"max\"";
        let wrong = |why: &str| UnitError(format!("`{text}` is not a rate{why}; {example}"));
        if text == "max" {
            return Ok(Rate::Max);
        }
        let (amount, each) = match text.strip_suffix("-each") {
            Some(amount) => (amount, true),
            None => (text, false),
        };
        let Some((value, rest)) = number(amount) else {
            return Err(wrong(""));
        };
        let (multiple, rest) = match rest.as_bytes().first() {
            Some(b'k') => (1e3, &rest[1..]),
            Some(b'M') => (1e6, &rest[1..]),
            _ => (1.0, rest),
        };
        let Some(per) = rest.trim_start().strip_prefix('/') else {
            return Err(wrong(match rest {
                "" => ": it lacks its unit (did you add \"/s\"?)",
                _ => "",
            }));
        };
        let per = per.trim();
        let per = if per.starts_with(|c: char| c.is_ascii_digit()) {
            per.to_string()
        } else {
            format!("1{per}")
        };
        let span: Span = per.parse().map_err(|_| wrong(""))?;
        if span.0 == 0 {
            return Err(wrong(": it has no time in it"));
        }
        let per_s = value * multiple * 1e9 / span.0 as f64;
        if !(per_s > 0.0 && per_s <= 1e12) {
            return Err(wrong(
                " above zero (publishers that send nothing: `publishers = 0`)",
            ));
        }
        Ok(if each {
            Rate::Each(per_s)
        } else {
            Rate::All(per_s)
        })
    }
}

impl FromStr for Percent {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Percent, UnitError> {
        match number(text.trim()) {
            Some((value, "%")) if value < 1000.0 => Ok(Percent(value / 100.0)),
            _ => Err(UnitError(format!(
                "\"{text}\" is no percentage; expected a number below 1000 with its sign, such as \"3%\""
            ))),
        }
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded, to print what was written: a share is exact only up to its last bit.
        write!(f, "{}%", (self.0 * 100.0 * 1e9).round() / 1e9)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |f: &mut fmt::Formatter<'_>, per_s: f64| {
            // The unit in which the number is whole, so that what is read back is the same.
            let spans = [("s", 1.0), ("min", 60.0), ("h", 3600.0)];
            let whole = spans
                .iter()
                .find(|(_, s)| (per_s * s).fract().abs() < 1e-12 && per_s * s >= 1.0);
            match whole {
                Some((name, s)) => write!(f, "{}/{name}", per_s * s),
                None => write!(f, "{per_s}/s"),
            }
        };
        match *self {
            Rate::Max => f.write_str("max"),
            Rate::All(per_s) => show(f, per_s),
            Rate::Each(per_s) => {
                show(f, per_s)?;
                f.write_str("-each")
            }
        }
    }
}

as_string!(
    Percent,
    "a percentage in quotes, such as \"3%\"",
    "A percentage, with its sign.",
    r"^\s*[0-9][0-9_]*(\.[0-9]+)?\s*%\s*$"
);
as_string!(
    Rate,
    "a rate in quotes, such as \"10k/s\", \"1/s-each\" or \"max\"",
    "Messages per time over all publishers (10k/s), or by each of them (1/s-each), or max.",
    r"^\s*(max|[0-9][0-9_]*(\.[0-9]+)?\s*[kM]?\s*/\s*[0-9.]*\s*(ns|us|µs|ms|s|min|h)(-each)?)\s*$"
);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_quantities_stand_for() {
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
        for (text, number) in [
            ("1 KiB", 1024.0),
            (" -2.5ms ", -0.0025),
            ("+3us", 3e-6),
            ("80% of limit", 0.8),
            ("3%", 0.03),
            ("95Mbit/s", 95e6),
            ("1Gbit/s", 1e9),
        ] {
            assert_eq!(amount(text), Some(number), "{text}");
        }
        for text in ["1e3", "5 parsecs", "1/fortnight", "-", "2G/s"] {
            assert_eq!(amount(text), None, "{text}");
        }
    }

    #[test]
    fn percentages() {
        let percent = |text: &str| text.parse::<Percent>().map(|p| p.0);
        assert_eq!(percent("3%"), Ok(0.03));
        assert_eq!(percent(" 2.5 % "), Ok(0.025));
        for wrong in ["3", "0.03", "%", "-1%", "3%%", "1000%", ""] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
        for text in ["3%", "0.1%", "2.5%", "50%", "7%"] {
            assert_eq!(text.parse::<Percent>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn rates() {
        let rate = |text: &str| text.parse::<Rate>().map_err(|e| e.0);
        assert_eq!(rate("10k/s"), Ok(Rate::All(10_000.0)));
        assert_eq!(rate("1/s-each"), Ok(Rate::Each(1.0)));
        assert_eq!(rate("1/15min-each"), Ok(Rate::Each(1.0 / 900.0)));
        assert_eq!(rate("2M/min"), Ok(Rate::All(2e6 / 60.0)));
        assert_eq!(rate("max"), Ok(Rate::Max));
        for wrong in [
            "10",
            "10k",
            "fast",
            "0/s",
            "1/fortnight",
            "1/0s",
            "-1/s",
            "/s",
        ] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn shown_rates_read_back(per_s in 1e-6f64..1e9) {
            let Ok(Rate::Each(read)) = Rate::Each(per_s).to_string().parse() else { panic!("rate") };
            prop_assert!((read / per_s - 1.0).abs() < 1e-9);
        }

        #[test]
        fn nothing_panics(text in "\\PC{0,12}") {
            let _ = (text.parse::<Rate>(), text.parse::<Percent>(), amount(&text));
        }
    }
}
