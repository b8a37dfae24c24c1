//! Quantities as people write them: `64B`, `1kB` (1000), `1KiB` (1024), `100ms`, `10k/s`.
//!
//! A number without its unit is refused, because `10` may mean seconds to one reader and
//! milliseconds to the next.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::spelling::{did_you_mean, nearest, suggestion};

/// A quantity that cannot be read, with what is expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnitError(String);

/// A number of bytes, such as `64B`, `1kB` or `1KiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// A length of time, in nanoseconds, such as `100ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub u64);

/// A share, written as a percentage: `3%` is 0.03.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Percent(pub f64);

/// Rate of a link, in bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BitRate(pub u64);

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

const SIZE_UNITS: [(&str, u64); 8] = [
    ("B", 1),
    ("KB", 1_000),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

const SPAN_UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("µs", 1_000),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

const BIT_RATE_UNITS: [(&str, u64); 4] = [
    ("bit/s", 1),
    ("kbit/s", 1_000),
    ("Mbit/s", 1_000_000),
    ("Gbit/s", 1_000_000_000),
];

/// The number at the start of `text`, and the rest. `_` may separate digits.
fn number(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !in_number(c)).unwrap_or(text.len());
    let digits: String = text[..end].chars().filter(|c| *c != '_').collect();
    let value: f64 = digits.parse().ok()?;
    Some((value, text[end..].trim_start()))
}

/// The number that a quantity stands for: bytes, seconds, messages per second, a share or plain; `None` if it is none
/// of them (`max`, words). `1KiB` is 1024, `10k/s` is 10,000, `1/15min` one in 900 s, `5ms` 0.005, `80% of limit` 0.8.
pub fn amount(quantity: &str) -> Option<f64> {
    let text = quantity.trim();
    let text = text.strip_suffix("-each").unwrap_or(text);
    let (sign, text) = match text.strip_prefix('-') {
        Some(text) => (-1.0, text),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let (value, unit) = number(text)?;
    let size = match unit.split_once('/') {
        Some((thousands, per)) => {
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
        None => unit_size(unit)?,
    };
    Some(sign * value * size)
}

/// What the number before a unit of size or time, or before none, is taken times; `% of` a limit is a share of it.
fn unit_size(unit: &str) -> Option<f64> {
    let of = |units: &[(&str, u64)]| {
        units
            .iter()
            .find(|(name, _)| *name == unit)
            .map(|u| u.1 as f64)
    };
    match unit {
        "" => Some(1.0),
        share if share.starts_with("% of ") => Some(0.01),
        _ => of(&SIZE_UNITS).or_else(|| Some(of(&SPAN_UNITS)? / 1e9)),
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
    let is_known = SIZE_UNITS
        .iter()
        .chain(&SPAN_UNITS)
        .any(|(name, _)| *name == unit);
    if is_known && !number.is_empty() {
        format!("{number} {unit}")
    } else {
        quantity.to_owned()
    }
}

fn in_number(c: char) -> bool {
    c.is_ascii_digit() || c == '.' || c == '_'
}

/// Number times unit, exactly where the product is a whole number.
fn product(value: f64, unit: u64) -> Option<u64> {
    let exact = value * unit as f64;
    (exact.is_finite() && exact < 9e18).then_some(exact.round() as u64)
}

impl FromStr for Size {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let text = text.trim();
        let example = "a size is a number with its unit: B, kB (1000 B), KiB (1024 B), MB, MiB, \
                       GB or GiB, such as \"64B\" or \"1KiB\"";
        let Some((value, unit)) = number(text) else {
            return Err(UnitError(format!("`{text}` is not a size; {example}")));
        };
        if unit.is_empty() {
            return Err(UnitError(format!(
                "`{text}` lacks its unit; did you mean \"{text}B\"? ({example})"
            )));
        }
        let exact = SIZE_UNITS.iter().find(|(name, _)| *name == unit);
        let Some((_, factor)) = exact else {
            let near = did_you_mean(unit, SIZE_UNITS.map(|(name, _)| name));
            return Err(UnitError(format!(
                "`{unit}` is not a unit of size{near}; {example}"
            )));
        };
        if (value * *factor as f64).fract() != 0.0 {
            return Err(UnitError(format!(
                "`{text}` is not a whole number of bytes"
            )));
        }
        product(value, *factor)
            .map(Size)
            .ok_or_else(|| UnitError(format!("`{text}` is more than any message can have")))
    }
}

impl FromStr for Span {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let text = text.trim();
        let example = "a duration is a number with its unit: ns, us, ms, s, min or h, such as \
                       \"100ms\" or \"10s\"";
        let Some((value, unit)) = number(text) else {
            return Err(UnitError(format!("`{text}` is not a duration; {example}")));
        };
        if unit.is_empty() {
            return Err(UnitError(format!(
                "`{text}` lacks its unit; did you mean \"{text}s\"? ({example})"
            )));
        }
        let Some((_, factor)) = SPAN_UNITS.iter().find(|(name, _)| *name == unit) else {
            let near = match unit {
                "m" | "minutes" | "minute" | "mins" => Some("min"),
                "sec" | "secs" | "second" | "seconds" | "S" => Some("s"),
                "hour" | "hours" | "hr" => Some("h"),
                "msec" | "millis" | "MS" => Some("ms"),
                _ => nearest(unit, SPAN_UNITS.iter().map(|(name, _)| *name)),
            };
            return Err(UnitError(format!(
                "`{unit}` is not a unit of time{}; {example}",
                suggestion(near)
            )));
        };
        product(value, *factor)
            .map(Span)
            .ok_or_else(|| UnitError(format!("`{text}` is longer than 290 years")))
    }
}

impl FromStr for BitRate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let text = text.trim();
        let example = "expected a number with its unit: bit/s, kbit/s, Mbit/s or Gbit/s, such as \
                       \"95Mbit/s\"";
        let wrong =
            |why: &str| UnitError(format!("`{text}` is not a rate of bits{why}; {example}"));
        let (value, unit) = number(text).ok_or_else(|| wrong(""))?;
        let Some((_, factor)) = BIT_RATE_UNITS.iter().find(|(name, _)| *name == unit) else {
            let near = did_you_mean(unit, BIT_RATE_UNITS.map(|(name, _)| name));
            return Err(wrong(&near));
        };
        product(value, *factor)
            .map(BitRate)
            .ok_or_else(|| wrong(""))
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

/// Writes a number in the last of the units in which it is whole.
fn write_whole(
    f: &mut fmt::Formatter<'_>,
    number: u64,
    units: &[(&str, u64)],
    zero: &str,
) -> fmt::Result {
    let whole = |(_, factor): &&(&str, u64)| number > 0 && number.is_multiple_of(*factor);
    match units.iter().rev().find(whole) {
        Some((name, factor)) => write!(f, "{}{name}", number / factor),
        None => f.write_str(zero),
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_whole(f, self.0, &SIZE_UNITS, "0B")
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_whole(f, self.0, &SPAN_UNITS, "0s")
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_whole(f, self.0, &BIT_RATE_UNITS, "0bit/s")
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

/// What stands in a file as a string.
struct InQuotes<T> {
    expected: &'static str,
    of: PhantomData<T>,
}

impl<T: FromStr<Err = UnitError>> Visitor<'_> for InQuotes<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<T, E> {
        match value.to_string().parse::<T>() {
            Err(error) => Err(E::custom(error)),
            Ok(_) => Err(E::invalid_type(Unexpected::Signed(value), &self)),
        }
    }
}

macro_rules! as_string {
    ($type:ty, $expected:literal, $description:literal, $pattern:literal) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(InQuotes {
                    expected: $expected,
                    of: PhantomData,
                })
            }
        }
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "string",
                    "description": $description,
                    "pattern": $pattern,
                })
            }
        }
    };
}

as_string!(
    Size,
    "a size in quotes, such as \"64B\" or \"1KiB\"",
    "A number of bytes with its unit: B, kB (1000 B), KiB (1024 B), MB, MiB, GB, GiB.",
    r"^\s*[0-9][0-9_]*(\.[0-9]+)?\s*(B|kB|KB|MB|GB|KiB|MiB|GiB)\s*$"
);
as_string!(
    Span,
    "a duration in quotes, such as \"100ms\" or \"10s\"",
    "A length of time with its unit: ns, us, ms, s, min, h.",
    r"^\s*[0-9][0-9_]*(\.[0-9]+)?\s*(ns|us|µs|ms|s|min|h)\s*$"
);
as_string!(
    Percent,
    "a percentage in quotes, such as \"3%\"",
    "A percentage, with its sign.",
    r"^\s*[0-9][0-9_]*(\.[0-9]+)?\s*%\s*$"
);
as_string!(
    BitRate,
    "a rate of bits in quotes, such as \"95Mbit/s\"",
    "Bits per second with the unit: bit/s, kbit/s, Mbit/s, Gbit/s.",
    r"^\s*[0-9][0-9_]*(\.[0-9]+)?\s*[kMG]?bit/s\s*$"
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
    fn rates_of_bits() {
        let rate = |text: &str| text.parse::<BitRate>().map(|rate| rate.0);
        assert_eq!(rate("95Mbit/s"), Ok(95_000_000));
        assert_eq!(rate("1.5 kbit/s"), Ok(1500));
        for wrong in [
            "95",
            "95MB/s",
            "95 mbit/s",
            "Mbit/s",
            "",
            "-1bit/s",
            "99999999999Gbit/s",
        ] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
        let near = rate("95Mbits/s").expect_err("a slip").0;
        assert!(near.contains("did you mean `Mbit/s`"), "{near}");
    }

    #[test]
    fn sizes() {
        let size = |text: &str| text.parse::<Size>().map(|s| s.0);
        assert_eq!(size("64B"), Ok(64));
        assert_eq!(size("1kB"), Ok(1000));
        assert_eq!(size("1KiB"), Ok(1024));
        assert_eq!(size("1.5 KiB"), Ok(1536));
        assert_eq!(size("2MB"), Ok(2_000_000));
        for wrong in [
            "64",
            "B",
            "64b",
            "64 kb",
            "1.3B",
            "-1B",
            "",
            "1e3B",
            "99999999999GB",
        ] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        assert!(
            size("64")
                .expect_err("no unit")
                .0
                .contains("did you mean \"64B\"")
        );
    }

    #[test]
    fn spans() {
        let span = |text: &str| text.parse::<Span>().map(|s| s.0);
        assert_eq!(span("100ms"), Ok(100_000_000));
        assert_eq!(span("15min"), Ok(900_000_000_000));
        assert_eq!(span("1.5s"), Ok(1_500_000_000));
        assert_eq!(span("2us"), span("2µs"));
        assert!(
            span("5m")
                .expect_err("ambiguous")
                .0
                .contains("did you mean `min`")
        );
        for wrong in ["10", "s", "10 sec", "10S"] {
            assert!(span(wrong).is_err(), "{wrong}");
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
        fn shown_quantities_read_back(bytes in 0u64..1 << 40, ns in 0u64..1 << 60, per_s in 1e-6f64..1e9) {
            prop_assert_eq!(Size(bytes).to_string().parse::<Size>(), Ok(Size(bytes)));
            prop_assert_eq!(BitRate(bytes).to_string().parse::<BitRate>(), Ok(BitRate(bytes)));
            let Ok(Span(read)) = Span(ns).to_string().parse() else { panic!("span") };
            // Beyond 2^53 ns (104 days) floating point rounds.
            prop_assert!(read.abs_diff(ns) <= ns >> 52);
            let Ok(Rate::Each(read)) = Rate::Each(per_s).to_string().parse() else { panic!("rate") };
            prop_assert!((read / per_s - 1.0).abs() < 1e-9);
        }

        #[test]
        fn nothing_panics(text in "\\PC{0,12}") {
            let _ = (text.parse::<Size>(), text.parse::<Span>(), text.parse::<Rate>());
        }
    }
}
