//! Times as people write them into files.

use std::borrow::Cow;
use std::fmt;

use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::{Offset, TimeZone};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How a time is written. Times without a zone are taken as UTC: a replay needs differences only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeFormat {
    /// Seconds since 1970, a fraction is allowed: `epoch-s`.
    EpochS,
    /// Milliseconds since 1970: `epoch-ms`.
    EpochMs,
    /// `2023-06-13T03:11:46.5+02:00`: `rfc3339`.
    Rfc3339,
    /// `2023-06-13 03:11:46`: `ymd-hms`.
    YmdHms,
    /// `13/06/2023 03:11:46`: `dmy-hms`.
    DmyHms,
    /// A pattern with `%`, as in strptime.
    Pattern(String),
}

impl TimeFormat {
    const NAMES: [(&str, TimeFormat); 5] = [
        ("epoch-s", TimeFormat::EpochS),
        ("epoch-ms", TimeFormat::EpochMs),
        ("rfc3339", TimeFormat::Rfc3339),
        ("ymd-hms", TimeFormat::YmdHms),
        ("dmy-hms", TimeFormat::DmyHms),
    ];

    /// An example of a time in this format.
    pub(super) fn example(&self) -> String {
        match self {
            TimeFormat::EpochS => "seconds since 1970, such as 1690849207".into(),
            TimeFormat::EpochMs => "milliseconds since 1970, such as 1690849207000".into(),
            TimeFormat::Rfc3339 => "a time such as 2023-06-13T03:11:46Z".into(),
            TimeFormat::YmdHms => "a time such as 2023-06-13 03:11:46".into(),
            TimeFormat::DmyHms => "a time such as 13/06/2023 03:11:46".into(),
            TimeFormat::Pattern(pattern) => format!("a time of the form {pattern}"),
        }
    }

    /// Nanoseconds since 1970.
    pub(super) fn parse(&self, text: &str) -> Option<i64> {
        let text = text.trim();
        match self {
            TimeFormat::EpochS => decimal(text, 1_000_000_000),
            TimeFormat::EpochMs => decimal(text, 1_000_000),
            TimeFormat::Rfc3339 => rfc3339(text),
            TimeFormat::YmdHms => {
                let (date, time) = text.split_once([' ', 'T'])?;
                civil(date, '-', false, time)
            }
            TimeFormat::DmyHms => {
                let (date, time) = text.split_once(' ')?;
                civil(date, '/', true, time)
            }
            TimeFormat::Pattern(pattern) => {
                let broken = strtime::parse(pattern, text).ok()?;
                let timestamp = match broken.to_timestamp() {
                    Ok(timestamp) => timestamp,
                    Err(_) => {
                        let civil = broken.to_datetime().ok()?;
                        civil.to_zoned(TimeZone::UTC).ok()?.timestamp()
                    }
                };
                i64::try_from(timestamp.as_nanosecond()).ok()
            }
        }
    }
}

/// A decimal number times `unit`, without floating point: 1690849207.123 in nanoseconds has
/// more digits than a double.
fn decimal(text: &str, unit: i64) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !number(whole) || !number(fraction) {
        return None;
    }
    let mut value = whole.parse::<i64>().ok()?.checked_mul(unit)?;
    let mut place = unit / 10;
    for digit in fraction.bytes() {
        value = value.checked_add(i64::from(digit - b'0') * place)?;
        place /= 10;
    }
    Some(if negative { -value } else { value })
}

fn rfc3339(text: &str) -> Option<i64> {
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let zone_at = rest.find(['Z', 'z', '+', '-'])?;
    let (time, zone) = rest.split_at(zone_at);
    let offset_s = match zone.as_bytes() {
        [b'Z' | b'z'] => 0,
        [sign, ..] => {
            let (h, m) = zone[1..].split_once(':')?;
            let seconds = i64::from(two(h)?) * 3600 + i64::from(two(m)?) * 60;
            if *sign == b'-' { -seconds } else { seconds }
        }
        [] => return None,
    };
    civil(date, '-', false, time)?.checked_sub(offset_s * 1_000_000_000)
}

/// A two-digit number.
fn two(text: &str) -> Option<i8> {
    match text.as_bytes() {
        [a @ b'0'..=b'9', b @ b'0'..=b'9'] => Some(((a - b'0') * 10 + (b - b'0')) as i8),
        _ => None,
    }
}

/// A date and a time of day, in UTC.
fn civil(date: &str, mark: char, day_first: bool, time: &str) -> Option<i64> {
    let mut parts = date.split(mark);
    let (a, b, c) = (parts.next()?, parts.next()?, parts.next()?);
    let (year, month, day) = if day_first { (c, b, a) } else { (a, b, c) };
    if parts.next().is_some() || year.len() != 4 {
        return None;
    }
    let (year, month, day) = (year.parse::<i16>().ok()?, two(month)?, two(day)?);
    let mut parts = time.split(':');
    let (hour, minute) = (two(parts.next()?)?, two(parts.next()?)?);
    let second = parts.next()?;
    let (whole, _) = second.split_once('.').unwrap_or((second, ""));
    two(whole)?;
    // The minute alone: jiff has no leap second, which is the first second of the next minute here.
    let second = decimal(second, 1_000_000_000)?;
    if second >= 61 * 1_000_000_000 || parts.next().is_some() || !(1678..=2261).contains(&year) {
        return None;
    }
    let minute = DateTime::new(year, month, day, hour, minute, 0, 0).ok()?;
    let minute = Offset::UTC.to_timestamp(minute).ok()?.as_second();
    minute.checked_mul(1_000_000_000)?.checked_add(second)
}

/// As RFC 3339, in UTC.
pub(super) fn format_rfc3339(nanos: i64) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(nanos))
        .map(|timestamp| timestamp.to_string())
        .unwrap_or_else(|_| format!("{nanos} ns since 1970"))
}

impl Serialize for TimeFormat {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for TimeFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let TimeFormat::Pattern(pattern) = self {
            return f.write_str(pattern);
        }
        let name = Self::NAMES.iter().find(|(_, format)| format == self);
        f.write_str(name.map_or("", |(name, _)| name))
    }
}

impl<'de> Deserialize<'de> for TimeFormat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if let Some((_, format)) = Self::NAMES.iter().find(|(name, _)| *name == text) {
            return Ok(format.clone());
        }
        if text.contains('%') {
            return Ok(TimeFormat::Pattern(text));
        }
        Err(serde::de::Error::unknown_variant(
            &text,
            &[
                "epoch-s",
                "epoch-ms",
                "rfc3339",
                "ymd-hms",
                "dmy-hms",
                "a pattern such as %d.%m.%Y %H:%M",
            ],
        ))
    }
}

impl JsonSchema for TimeFormat {
    fn schema_name() -> Cow<'static, str> {
        "TimeFormat".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "How a time is written: a name, or a strptime pattern with %.",
            "anyOf": [
                {"enum": ["epoch-s", "epoch-ms", "rfc3339", "ymd-hms", "dmy-hms"]},
                {"type": "string", "pattern": "%"},
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: i64 = 1_000_000_000;

    #[test]
    fn every_format() {
        let moment = 1_686_625_906 * S;
        assert_eq!(TimeFormat::EpochS.parse("1686625906"), Some(moment));
        assert_eq!(
            TimeFormat::EpochS.parse("1686625906.000000001"),
            Some(moment + 1)
        );
        assert_eq!(TimeFormat::EpochMs.parse("1686625906000"), Some(moment));
        assert_eq!(
            TimeFormat::Rfc3339.parse("2023-06-13T03:11:46Z"),
            Some(moment)
        );
        assert_eq!(
            TimeFormat::Rfc3339.parse("2023-06-13T05:11:46.5+02:00"),
            Some(moment + S / 2)
        );
        assert_eq!(
            TimeFormat::YmdHms.parse("2023-06-13 03:11:46"),
            Some(moment)
        );
        assert_eq!(
            TimeFormat::DmyHms.parse("13/06/2023 03:11:46"),
            Some(moment)
        );
        let pattern = TimeFormat::Pattern("%Y-%m-%dT%H-%M-%S%.fZ".into());
        assert_eq!(
            pattern.parse("2023-06-13T03-11-46.250Z"),
            Some(moment + S / 4)
        );
    }

    #[test]
    fn impossible_times() {
        for text in [
            "31/02/2012 00:00:00",
            "1/2/2012 00:00:00",
            "01/13/2012 00:00:00",
            "01/01/2012 24:00:00",
            "01/01/2012 00:60:00",
            "01/01/2012",
            "",
            "x",
        ] {
            assert_eq!(TimeFormat::DmyHms.parse(text), None, "{text}");
        }
        for text in [
            "2023-06-13T03:11:46",
            "2023-06-13",
            "+",
            "2023-06-13T03:11:46+2",
        ] {
            assert_eq!(TimeFormat::Rfc3339.parse(text), None, "{text}");
        }
        for text in ["1e9", "0x10", "", "-", ".5", "99999999999999999999"] {
            assert_eq!(TimeFormat::EpochS.parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_calendar(seconds in -9_000_000_000i64..9_000_000_000) {
            let shown = format_rfc3339(seconds * S);
            prop_assert_eq!(TimeFormat::Rfc3339.parse(&shown), Some(seconds * S), "{}", shown);
        }

        #[test]
        fn nothing_panics(text in "\\PC{0,24}", digits in "[0-9:/. TZ+-]{0,24}") {
            for (_, format) in TimeFormat::NAMES {
                let _ = (format.parse(&text), format.parse(&digits));
            }
        }
    }
}
