//! A recording day by day: how many readings there are in some hours of each day, and how large they are.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{Trace, TraceColumn, TraceError, TraceFormat, TraceSource};
use crate::units::{Nanos, SECOND};

const HOUR: Nanos = 3600 * SECOND;

/// Length of a day, ns.
pub const DAY: Nanos = 24 * HOUR;

/// How a recording is looked at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Days {
    /// Local time less UTC, ns.
    pub utc_offset: i64,
    /// Saturdays and Sundays are left out.
    pub weekdays: bool,
    /// Hours of the day, each from and to, ns since midnight; the ranges of one entry are taken together.
    pub hours: Vec<Vec<Range<Nanos>>>,
    /// A column of whole numbers of which the mean is asked for.
    pub value: Option<TraceColumn>,
    /// Readings that the hours of a day must have, kept or not; with fewer they are left out.
    pub least: u64,
}

/// The readings in some hours of one day.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DayReadings {
    /// Which day, from 1970-01-01, by local time.
    pub day: i64,
    /// Readings of the recording.
    pub readings: u64,
    /// Of these, those that `drop-repeats` and `on-change` keep.
    pub kept: u64,
    /// Mean size of the readings that are kept, bytes; 0 if none is.
    pub mean_bytes: f64,
    /// Mean of the column that is asked for, over all readings.
    pub mean_value: Option<f64>,
}

/// Counts and sums by day.
type Sums = BTreeMap<i64, (u64, f64)>;

impl Days {
    /// Reads a recording, and counts what it has in each of the hours, day by day.
    ///
    /// # Errors
    /// The error in the files, with file, line and column.
    pub fn read(&self, source: &TraceSource) -> Result<Vec<Vec<DayReadings>>, TraceError> {
        let kept = Trace::read(source)?;
        check_whole(&kept)?;
        let all = Trace::read_whole(source)?;
        let value = self.value.clone();
        let values = value.map(|column| Trace::read_whole(&valued(source, column)));
        let values = values.transpose()?;
        let each = |ranges: &Vec<Range<Nanos>>| {
            let [all, kept] = [&all, &kept].map(|trace| self.sums(trace, ranges));
            let values = values.as_ref().map(|trace| self.sums(trace, ranges));
            let enough = all
                .iter()
                .filter(|(_, (count, _))| *count >= self.least.max(1));
            let day = |(day, (readings, _)): (&i64, &(u64, f64))| {
                let (count, bytes) = kept.get(day).copied().unwrap_or_default();
                let value = values.as_ref().and_then(|values| values.get(day));
                DayReadings {
                    day: *day,
                    readings: *readings,
                    kept: count,
                    mean_bytes: bytes / count.max(1) as f64,
                    mean_value: value.map(|(count, sum)| sum / *count as f64),
                }
            };
            enough.map(day).collect()
        };
        Ok(self.hours.iter().map(each).collect())
    }

    /// Readings and the sum of their sizes, in these hours of each day.
    fn sums(&self, trace: &Trace, ranges: &[Range<Nanos>]) -> Sums {
        let mut sums = Sums::new();
        for reading in &trace.readings {
            let at = i128::from(trace.start) + i128::from(reading.at) + i128::from(self.utc_offset);
            let day = at.div_euclid(i128::from(DAY)) as i64;
            let within = at.rem_euclid(i128::from(DAY)) as Nanos;
            if self.weekdays && is_weekend(day) || !ranges.iter().any(|r| r.contains(&within)) {
                continue;
            }
            let (count, sum) = sums.entry(day).or_default();
            *count += 1;
            *sum += f64::from(reading.size);
        }
        sums
    }
}

/// Refuses a recording that is cut off: its last day would count as one with fewer readings.
fn check_whole(trace: &Trace) -> Result<(), TraceError> {
    let Some(cut) = trace.remarks.cut.first() else {
        return Ok(());
    };
    Err(TraceError {
        file: cut.file.clone(),
        line: Some(cut.line),
        column: Some(1),
        message: format!(
            "{} ends in the middle; as evidence a recording is whole",
            cut.what
        ),
        hint: Some("get the file again, or end it behind its last whole day".into()),
    })
}

/// Whether a day, counted from 1970-01-01, a Thursday, is a Saturday or a Sunday.
fn is_weekend(day: i64) -> bool {
    (day + 3).rem_euclid(7) >= 5
}

/// The recording with this column in place of its sizes.
fn valued(source: &TraceSource, value: TraceColumn) -> TraceSource {
    let mut valued = source.clone();
    // A plain file has the columns `time` and `device`.
    let plain = || TraceFormat {
        time: TraceColumn::Name("time".into()),
        device: Some(TraceColumn::Name("device".into())),
        ..TraceFormat::default()
    };
    let format = valued.format.get_or_insert_with(plain);
    (format.size_bytes, format.size_of_json, format.payload) = (None, None, None);
    format.size = Some(value);
    valued
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::trace::{OnChange, TimeFormat};

    fn name(column: &str) -> TraceColumn {
        TraceColumn::Name(column.into())
    }

    /// Three days from Friday, 2023-09-01 on, 2 h east of Greenwich: a reading each hour, whose value is the hour, and
    /// whose state changes at noon alone.
    #[test]
    fn hours_of_days_are_those_of_the_place() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        writeln!(file, "at,id,state,hour,bytes").expect("written");
        for hour in 0..72_i64 {
            let at = 1_693_519_200 + 3600 * hour;
            let (day, hour) = (hour / 24, hour % 24);
            let state = 2 * day + i64::from(hour >= 12);
            writeln!(file, "{at},a,{state},{hour},{}", 100 + day).expect("written");
        }
        let source = TraceSource {
            files: vec![file.path().to_path_buf()],
            format: Some(TraceFormat {
                time: name("at"),
                time_format: Some(TimeFormat::EpochS),
                device: Some(name("id")),
                size: Some(name("bytes")),
                on_change: vec![OnChange {
                    column: name("state"),
                    absolute: Some(1.0),
                    relative: None,
                }],
                ..TraceFormat::default()
            }),
            sort: false,
        };
        let days = Days {
            utc_offset: 2 * HOUR as i64,
            hours: vec![
                vec![11 * HOUR..14 * HOUR],
                vec![0..HOUR, 22 * HOUR..DAY],
                vec![0..DAY],
            ],
            value: Some(name("hour")),
            ..Days::default()
        };
        let found = days.read(&source).unwrap_or_else(|error| panic!("{error}"));
        let noon: Vec<_> = found[0]
            .iter()
            .map(|d| (d.readings, d.kept, d.mean_bytes, d.mean_value))
            .collect();
        let expected = [100.0, 101.0, 102.0].map(|bytes| (3, 1, bytes, Some(12.0)));
        assert_eq!(noon, expected);
        assert_eq!(found[0][0].day, 19_601);
        let night: Vec<_> = found[1].iter().map(|d| (d.readings, d.kept)).collect();
        assert_eq!(night, [(3, 1); 3]);
        assert_eq!(found[1][0].mean_value, Some(15.0));
        assert!(found[2].iter().all(|day| day.readings == 24));
        let fridays = Days {
            weekdays: true,
            ..days.clone()
        };
        let found = fridays.read(&source).expect("read before");
        let lengths: Vec<usize> = found.iter().map(Vec::len).collect();
        assert_eq!(lengths, [1, 1, 1]);
        let long = Days { least: 4, ..days };
        let found = long.read(&source).expect("read before");
        let lengths: Vec<usize> = found.iter().map(Vec::len).collect();
        assert_eq!(lengths, [0, 0, 3]);
    }

    /// Objects that lack a column are left out of all readings as well: what is kept is a share of the rest.
    #[test]
    fn objects_without_a_column_are_no_readings() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        for minute in 0..60_i64 {
            let at = 1_693_519_200 + 60 * minute;
            let state = match minute % 2 {
                0 => format!(", \"state\": {minute}"),
                _ => String::new(),
            };
            writeln!(
                file,
                "{{\"at\": {at}, \"id\": \"a\", \"bytes\": 23{state}}}"
            )
            .expect("written");
        }
        let source = TraceSource {
            files: vec![file.path().to_path_buf()],
            format: Some(TraceFormat {
                time: name("at"),
                device: Some(name("id")),
                size: Some(name("bytes")),
                skip_incomplete: Some(true),
                on_change: vec![OnChange {
                    column: name("state"),
                    absolute: None,
                    relative: None,
                }],
                ..TraceFormat::default()
            }),
            sort: false,
        };
        let days = Days {
            hours: vec![vec![0..DAY]],
            ..Days::default()
        };
        let found = days.read(&source).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((found[0][0].readings, found[0][0].kept), (30, 30));
    }
}
