//! Where the clocks were that wrote local times.

use std::borrow::Cow;
use std::fmt;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A time zone: a name such as Europe/Berlin, or an offset from UTC such as +02:00.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneName(String);

/// The clocks of a zone, ready to be asked.
pub(super) enum Zone {
    Offset(i64),
    Named(TimeZone),
}

/// The moment for which a local time stands, ns since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    At(i64),
    /// Clocks showed it twice, because they were set back.
    Twice(i64, i64),
    /// Clocks never showed it, because they were set forward.
    Never,
}

impl ZoneName {
    /// The offset that it is, ns; `None` for a name.
    fn offset(&self) -> Option<i64> {
        offset(&self.0)
    }

    /// The zone of this name; the error says why there is none.
    pub(super) fn find(&self) -> Result<Zone, String> {
        if let Some(offset) = self.offset() {
            return Ok(Zone::Offset(offset));
        }
        let found = TimeZone::get(&self.0);
        found.map(Zone::Named).map_err(|_| {
            format!(
                "there is no time zone `{}` on this machine; expected a name such as Europe/Berlin, of the machine's \
                 zoneinfo, or an offset from UTC such as +02:00",
                self.0
            )
        })
    }
}

/// An offset from UTC, ns: `+02:00`, `+0200`, `+02`, `Z`.
pub(super) fn offset(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes() {
        [b'Z' | b'z'] => return Some(0),
        [b'+', ..] => (false, &text[1..]),
        [b'-', ..] => (true, &text[1..]),
        _ => return None,
    };
    let (hours, minutes) = match digits.len() {
        2 => (digits, "00"),
        4 if digits.is_ascii() => digits.split_at(2),
        5 => digits.split_once(':')?,
        _ => return None,
    };
    let (hours, minutes) = (two(hours)?, two(minutes)?);
    let seconds = i64::from(hours) * 3600 + i64::from(minutes) * 60;
    Some(if negative { -seconds } else { seconds } * 1_000_000_000)
}

/// A two-digit number.
pub(super) fn two(text: &str) -> Option<i8> {
    match text.as_bytes() {
        [a @ b'0'..=b'9', b @ b'0'..=b'9'] => Some(((a - b'0') * 10 + (b - b'0')) as i8),
        _ => None,
    }
}

impl Zone {
    pub(super) const UTC: Zone = Zone::Offset(0);

    /// The moment at which these clocks showed a local time, given in ns since 1970 as UTC would have it.
    pub(super) fn moment(&self, local: i64) -> Option<Moment> {
        let zone = match self {
            Zone::Offset(offset) => return local.checked_sub(*offset).map(Moment::At),
            Zone::Named(zone) => zone,
        };
        let second = local.div_euclid(1_000_000_000);
        let civil: DateTime = Offset::UTC.to_datetime(jiff::Timestamp::from_second(second).ok()?);
        let less = |offset: Offset| local.checked_sub(i64::from(offset.seconds()) * 1_000_000_000);
        Some(match zone.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => Moment::At(less(offset)?),
            AmbiguousOffset::Fold { before, after } => Moment::Twice(less(before)?, less(after)?),
            AmbiguousOffset::Gap { .. } => Moment::Never,
        })
    }
}

impl fmt::Display for ZoneName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for ZoneName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ZoneName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let is_offset = text.starts_with(['+', '-']);
        let zone = ZoneName(text);
        if zone.0.is_empty() || is_offset && zone.offset().is_none() {
            return Err(serde::de::Error::custom(format!(
                "`{zone}` is no time zone; expected a name such as \"Europe/Berlin\", or an offset from UTC such as \"+02:00\""
            )));
        }
        Ok(zone)
    }
}

impl JsonSchema for ZoneName {
    fn schema_name() -> Cow<'static, str> {
        "TimeZone".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A time zone: a name such as Europe/Berlin, or an offset from UTC such as +02:00.",
            "type": "string",
            "minLength": 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3600 * 1_000_000_000;

    #[test]
    fn offsets_as_they_are_written() {
        for (text, expected) in [
            ("+02:00", Some(2 * HOUR)),
            ("-0530", Some(-11 * HOUR / 2)),
            ("+01", Some(HOUR)),
            ("Z", Some(0)),
            ("+1", None),
            ("+2:000", None),
            ("CEST", None),
            ("+€0", None),
            ("", None),
        ] {
            assert_eq!(offset(text), expected, "{text}");
        }
    }

    /// The clocks of Berlin at both ends of summer time 2026: 29 March and 25 October.
    #[test]
    fn clocks_that_are_set_back_and_forward() {
        let zone = ZoneName("Europe/Berlin".into()).find().expect("zoneinfo");
        let local = |text: &str| {
            let civil: DateTime = text.parse().expect("a time");
            let moment = Offset::UTC.to_timestamp(civil).expect("near");
            i64::try_from(moment.as_nanosecond()).expect("near")
        };
        let noon = local("2026-07-01 12:00:00");
        assert_eq!(zone.moment(noon), Some(Moment::At(noon - 2 * HOUR)));
        let twice = local("2026-10-25 02:30:00");
        assert_eq!(
            zone.moment(twice),
            Some(Moment::Twice(twice - 2 * HOUR, twice - HOUR))
        );
        assert_eq!(
            zone.moment(local("2026-03-29 02:30:00")),
            Some(Moment::Never)
        );
        assert_eq!(
            zone.moment(local("2026-03-29 02:30:00.5")),
            Some(Moment::Never)
        );
        assert!(ZoneName("Europe/Nowhere".into()).find().is_err());
    }
}
