//! Times as people write them into files.

use std::borrow::Cow;
use std::fmt;

use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::{Offset, TimeZone};
use pubgauge_driver::shortened;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::zone::{Moment, Zone, ZoneName, offset, two};

/// How a time is written. Times without a zone are taken as UTC where the format names no zone: a replay needs
/// differences only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeFormat {
    /// Seconds since 1970, a fraction is allowed: `epoch-s`.
    EpochS,
    /// Milliseconds since 1970: `epoch-ms`.
    EpochMs,
    /// Microseconds since 1970: `epoch-us`.
    EpochUs,
    /// Nanoseconds since 1970: `epoch-ns`.
    EpochNs,
    /// Days since 1899-12-30, as spreadsheets count them: `serial-date`.
    SerialDate,
    /// `2023-06-13T03:11:46.5+02:00`: `rfc3339`.
    Rfc3339,
    /// `2023-06-13 03:11:46`: `ymd-hms`.
    YmdHms,
    /// `13/06/2023 03:11:46`, or with dots: `dmy-hms`.
    DmyHms,
    /// A pattern with `%`, as in strptime.
    Pattern(String),
}

/// A time as it was read: a moment, or what clocks showed there, as UTC would have it. Ns since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    Moment(i64),
    Local(i64),
}

/// Length of a day, ns.
const DAY: i64 = 86_400_000_000_000;

/// The first day of 1970, counted from 1899-12-30.
const SERIAL_1970: i64 = 25_569;

/// The last day of 2099, counted from 1899-12-30.
const SERIAL_2099: i64 = 73_050;

impl TimeFormat {
    const NAMES: [(&str, TimeFormat); 8] = [
        ("epoch-s", TimeFormat::EpochS),
        ("epoch-ms", TimeFormat::EpochMs),
        ("epoch-us", TimeFormat::EpochUs),
        ("epoch-ns", TimeFormat::EpochNs),
        ("serial-date", TimeFormat::SerialDate),
        ("rfc3339", TimeFormat::Rfc3339),
        ("ymd-hms", TimeFormat::YmdHms),
        ("dmy-hms", TimeFormat::DmyHms),
    ];

    /// An example of a time in this format.
    fn example(&self) -> String {
        match self {
            TimeFormat::EpochS => "seconds since 1970, such as 1690849207".into(),
            TimeFormat::EpochMs => "milliseconds since 1970, such as 1690849207000".into(),
            TimeFormat::EpochUs => "microseconds since 1970, such as 1690849207000000".into(),
            TimeFormat::EpochNs => "nanoseconds since 1970, such as 1690849207000000000".into(),
            TimeFormat::SerialDate => "days since 1899-12-30, such as 45139.0139".into(),
            TimeFormat::Rfc3339 => "a time such as 2023-06-13T03:11:46Z".into(),
            TimeFormat::YmdHms => "a time such as 2023-06-13 03:11:46".into(),
            TimeFormat::DmyHms => "a time such as 13/06/2023 03:11:46".into(),
            TimeFormat::Pattern(pattern) => format!("a time of the form {pattern}"),
        }
    }

    /// Whether times in this format say nothing of their zone.
    fn is_local(&self) -> bool {
        match self {
            TimeFormat::YmdHms | TimeFormat::DmyHms | TimeFormat::SerialDate => true,
            TimeFormat::Pattern(pattern) => !["%z", "%:z", "%s", "%Q"]
                .iter()
                .any(|zone| pattern.contains(zone)),
            _ => false,
        }
    }

    fn read(&self, text: &str) -> Option<Written> {
        let text = text.trim();
        match self {
            TimeFormat::EpochS => decimal(text, 1_000_000_000).map(Written::Moment),
            TimeFormat::EpochMs => decimal(text, 1_000_000).map(Written::Moment),
            TimeFormat::EpochUs => decimal(text, 1_000).map(Written::Moment),
            TimeFormat::EpochNs => decimal(text, 1).map(Written::Moment),
            TimeFormat::SerialDate => decimal(text, DAY)?
                .checked_sub(SERIAL_1970 * DAY)
                .map(Written::Local),
            TimeFormat::Rfc3339 => rfc3339(text).map(Written::Moment),
            TimeFormat::YmdHms | TimeFormat::DmyHms => self.civil(text).map(Written::Local),
            TimeFormat::Pattern(pattern) => {
                let broken = strtime::parse(pattern, text).ok()?;
                let (timestamp, is_local) = match broken.to_timestamp() {
                    Ok(timestamp) => (timestamp, false),
                    Err(_) => {
                        let civil = broken.to_datetime().ok()?;
                        (civil.to_zoned(TimeZone::UTC).ok()?.timestamp(), true)
                    }
                };
                let at = i64::try_from(timestamp.as_nanosecond()).ok()?;
                Some(if is_local {
                    Written::Local(at)
                } else {
                    Written::Moment(at)
                })
            }
        }
    }

    /// A date and a time of day of this format, ns since 1970 as UTC would have it.
    fn civil(&self, text: &str) -> Option<i64> {
        let (date, time) = text.split_once([' ', 'T'])?;
        match self {
            TimeFormat::YmdHms => civil(date, '-', false, time),
            TimeFormat::DmyHms if date.contains('.') => civil(date, '.', true, time),
            TimeFormat::DmyHms => civil(date, '/', true, time),
            _ => None,
        }
    }

    /// Nanoseconds since 1970, where clocks show UTC.
    #[cfg(test)]
    fn parse(&self, text: &str) -> Option<i64> {
        self.read(text).map(|written| match written {
            Written::Moment(at) | Written::Local(at) => at,
        })
    }
}

/// Reads the times of one file.
pub(super) struct TimeReader {
    /// Absent: seconds since 1970 or RFC 3339, whichever fits.
    format: Option<TimeFormat>,
    zone: Zone,
    decimal: Option<char>,
    /// No time was read yet.
    first: bool,
    /// Times are local, and no zone is named.
    is_local_anywhere: bool,
}

/// Why a text is no time, and a hint.
type NoTime = (String, Option<String>);

impl TimeReader {
    /// Reads times of this format, which are local times of `zone` where they name none, with `decimal` in place of the
    /// point. The error says why the zone cannot be used.
    pub(super) fn new(
        format: Option<&TimeFormat>,
        zone: Option<&ZoneName>,
        decimal: Option<char>,
    ) -> Result<Self, String> {
        if let Some(zone) = zone
            && !format.is_some_and(TimeFormat::is_local)
        {
            return Err(format!(
                "`time-zone = \"{zone}\"` is of use to local times alone; give a `time-format` without a zone, such as \"ymd-hms\""
            ));
        }
        Ok(TimeReader {
            format: format.cloned(),
            zone: zone.map_or(Ok(Zone::UTC), ZoneName::find)?,
            decimal,
            first: true,
            is_local_anywhere: zone.is_none() && format.is_some_and(TimeFormat::is_local),
        })
    }

    /// Whether times are local ones of a zone that nobody names.
    pub(super) fn has_unknown_zone(&self) -> bool {
        self.is_local_anywhere
    }

    /// The moment for which a text stands.
    pub(super) fn read(&mut self, text: &str) -> Result<Moment, NoTime> {
        let pointed: Cow<'_, str> = match self.decimal {
            Some(mark) => text.replace(mark, ".").into(),
            None => text.into(),
        };
        let first = std::mem::take(&mut self.first);
        let written = match &self.format {
            Some(format) => format.read(&pointed),
            None => {
                if first && let Some(why) = serial_date(&pointed) {
                    return Err(why);
                }
                let seconds = TimeFormat::EpochS.read(&pointed);
                seconds.or_else(|| TimeFormat::Rfc3339.read(&pointed))
            }
        };
        let moment = written.and_then(|written| match written {
            Written::Moment(at) => Some(Moment::At(at)),
            Written::Local(local) => self.zone.moment(local),
        });
        moment.ok_or_else(|| self.no_time(text.trim()))
    }

    fn no_time(&self, text: &str) -> NoTime {
        let expected = match &self.format {
            Some(format) => format.example(),
            None => "RFC 3339 (2023-06-13T03:11:46Z) or seconds since 1970; other forms need `time-format`"
                .into(),
        };
        let message = format!("`{}` is not a time; expected {expected}", shortened(text));
        (message, self.advice(text))
    }

    /// The forms that the text might have in place of the one that was expected.
    fn advice(&self, text: &str) -> Option<String> {
        let whole = text.bytes().all(|byte| byte.is_ascii_digit());
        let fits = |format: TimeFormat| {
            let read = format.read(text)?;
            let Written::Moment(at) = read else {
                return None;
            };
            // From 2001 to 2100.
            (978_307_200..4_133_980_800)
                .contains(&at.div_euclid(1_000_000_000))
                .then(|| format!("as a number it fits `time-format = \"{format}\"`"))
        };
        if whole && text.len() > 9 {
            let formats = [
                TimeFormat::EpochS,
                TimeFormat::EpochMs,
                TimeFormat::EpochUs,
                TimeFormat::EpochNs,
            ];
            return formats.into_iter().find_map(fits);
        }
        let number = text.bytes().all(|b| b.is_ascii_digit() || b == b',');
        if self.decimal.is_none() && number && text.matches(',').count() == 1 {
            return Some("`decimal = \",\"` reads a comma as the mark of decimals".into());
        }
        let local = self.format.is_none() && text.contains(':') && !text.is_empty();
        local.then(|| {
            "a time without a zone is read with `time-format = \"ymd-hms\"` or a pattern, and `time-zone`, where clocks \
             were set back or forward; a date in a column of its own with `date`"
                .into()
        })
    }
}

/// Why a number that would be taken as seconds since 1970 is refused: it is as large as the dates of spreadsheets.
fn serial_date(text: &str) -> Option<NoTime> {
    let at = decimal(text.trim(), 1_000_000_000)?;
    let serial = SERIAL_1970 * 1_000_000_000..SERIAL_2099 * 1_000_000_000;
    serial.contains(&at).then(|| {
        let message = format!(
            "`{}` may be a serial date, in days since 1899-12-30 as spreadsheets count them, or seconds: this cannot be told",
            text.trim()
        );
        let hint = "`time-format = \"serial-date\"` takes it as days, `time-format = \"epoch-s\"` as seconds";
        (message, Some(hint.into()))
    })
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
    // mosquitto_sub writes local time, a Z and then the offset.
    let zone = match zone.strip_prefix('Z') {
        Some(zone) if zone.starts_with(['+', '-']) => zone,
        _ => zone,
    };
    civil(date, '-', false, time)?.checked_sub(offset(zone)?)
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
        let error = |message: String| serde::de::Error::custom(message);
        if text.contains("%Z") {
            return Err(error(format!(
                "`{text}`: %Z stands for the name of a zone, such as CEST, which is none that times can be reckoned with; \
                 write the name into the pattern as it stands, and give the zone as `time-zone`; %z reads an offset"
            )));
        }
        if text.contains('%') {
            return Ok(TimeFormat::Pattern(text));
        }
        let names: Vec<&str> = Self::NAMES.iter().map(|(name, _)| *name).collect();
        Err(error(format!(
            "unknown variant `{text}`, expected one of `{}`, `a pattern such as %d.%m.%Y %H:%M`",
            names.join("`, `")
        )))
    }
}

impl JsonSchema for TimeFormat {
    fn schema_name() -> Cow<'static, str> {
        "TimeFormat".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = Self::NAMES.iter().map(|(name, _)| *name).collect();
        json_schema!({
            "description": "How a time is written: a name, or a strptime pattern with %.",
            "anyOf": [
                {"enum": names},
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
        assert_eq!(
            TimeFormat::DmyHms.parse("13.06.2023 03:11:46"),
            Some(moment)
        );
        assert_eq!(
            TimeFormat::EpochUs.parse("1686625906000000.5"),
            Some(moment + 500)
        );
        assert_eq!(
            TimeFormat::EpochNs.parse("1686625906000000001"),
            Some(moment + 1)
        );
        assert_eq!(TimeFormat::SerialDate.parse("25569.5"), Some(DAY / 2));
        assert_eq!(
            TimeFormat::SerialDate.parse("46023.25"),
            Some(1_767_247_200 * S)
        );
        let mosquitto = TimeFormat::Rfc3339.parse("2023-06-13T05:11:46.000000Z+0200");
        assert_eq!(mosquitto, Some(moment));
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
            "01.02/2012 00:00:00",
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
            "2023-06-13T03:11:46ZZ",
        ] {
            assert_eq!(TimeFormat::Rfc3339.parse(text), None, "{text}");
        }
        for text in ["1e9", "0x10", "", "-", ".5", "99999999999999999999"] {
            assert_eq!(TimeFormat::EpochS.parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_a_number_may_be_is_told() {
        let said = |text: &str| {
            let mut reader = TimeReader::new(None, None, None).expect("no zone");
            let (message, hint) = reader.read(text).expect_err(text);
            message + " " + &hint.unwrap_or_default()
        };
        assert!(said("1761414298845").contains("\"epoch-ms\""));
        assert!(said("1761414298845000").contains("\"epoch-us\""));
        assert!(said("1761414298845000000").contains("\"epoch-ns\""));
        assert!(said("1761414298,845").contains("`decimal = \",\"`"));
        assert!(said("46023.35422").contains("may be a serial date"));
        assert!(said("13.06.2023 03:11").contains("`time-zone`"));
        let mut reader = TimeReader::new(None, None, None).expect("no zone");
        assert_eq!(reader.read("0"), Ok(Moment::At(0)));
        assert_eq!(reader.read("46023.5"), Ok(Moment::At(46_023_500_000_000)));
    }

    proptest! {
        #[test]
        fn agrees_with_the_calendar(seconds in -9_000_000_000i64..9_000_000_000) {
            let shown = format_rfc3339(seconds * S);
            prop_assert_eq!(TimeFormat::Rfc3339.parse(&shown), Some(seconds * S), "{}", shown);
        }

        #[test]
        fn nothing_panics(text in "\\PC{0,24}", digits in "[0-9:/. TZ+-]{0,24}") {
            let formats = TimeFormat::NAMES.map(|(_, format)| Some(format));
            for format in formats.into_iter().chain([None]) {
                let mut reader = TimeReader::new(format.as_ref(), None, Some(',')).expect("no zone");
                let _ = (reader.read(&text), reader.read(&digits));
            }
        }
    }
}
