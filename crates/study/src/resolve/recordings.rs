//! Recordings of a study that claims are judged by: read and counted day by day.

use std::ops::Range;
use std::path::Path;

use pubgauge_figures::recording::{RecordedDay, RecordedHours, RecordingInfo};
use pubgauge_quantities::Span;
use pubgauge_quantities::spelling::did_you_mean;
use pubgauge_workload::trace::days::{DAY, DayReadings, Days};

use super::Traces;
use crate::clash::{Clash, Clashes};
use crate::file::{DaysFile, RecordingFile, StudyFile};

/// Fewest readings of a day's hours, where the study does not say.
const LEAST: u32 = 3;

/// Reads the recordings of a study whose folder is `folder`; what is wrong with them is added to `found`.
pub(crate) fn recordings(
    file: &StudyFile,
    folder: &Path,
    found: &mut Vec<Clash>,
) -> Vec<RecordingInfo> {
    if file.recording.is_empty() {
        return Vec::new();
    }
    let mut traces = Traces::new(&file.trace, folder);
    found.append(&mut traces.found);
    let each = file.recording.iter();
    each.filter_map(|(name, recording)| {
        let mut clashes = Clashes::new(&["recording", name], found);
        let days = days(recording, &mut clashes)?;
        let Some(source) = traces.source(&recording.trace) else {
            let near = did_you_mean(&recording.trace, traces.names());
            clashes.add(
                "trace",
                format!("there is no trace `{}`{near}", recording.trace),
            );
            return None;
        };
        match days.read(&source) {
            _ if source.files.is_empty() => None,
            Ok(counted) => Some(info(name, recording, &days, &counted)),
            Err(error) => {
                clashes.add("trace", format!("the trace cannot be used\n  {error}"));
                None
            }
        }
    })
    .collect()
}

fn days(file: &RecordingFile, clashes: &mut Clashes<'_>) -> Option<Days> {
    let offset = file.utc_offset.as_deref().map_or(Ok(0), utc_offset);
    let offset = offset.map_err(|message| clashes.add("utc-offset", message));
    if file.hours.is_empty() {
        clashes.add(
            "hours",
            "a recording needs hours: `hours = { noon = \"11h..14h\" }`",
        );
        return None;
    }
    let mut hours = Vec::new();
    for (name, ranges) in &file.hours {
        let read: Result<Vec<Range<u64>>, String> =
            ranges.list().iter().map(|r| range(r)).collect();
        match read.and_then(check_disjoint) {
            Ok(read) => hours.push(read),
            Err(message) => clashes.below(&["hours"]).add(name, message),
        }
    }
    if hours.len() < file.hours.len() {
        return None;
    }
    Some(Days {
        utc_offset: offset.ok()?,
        weekdays: file.days == Some(DaysFile::Weekdays),
        hours,
        value: file.value.clone(),
        least: file.least.unwrap_or(LEAST).into(),
    })
}

/// The ranges of one name. Their lengths are added up, so that they must not overlap.
fn check_disjoint(ranges: Vec<Range<u64>>) -> Result<Vec<Range<u64>>, String> {
    let mut sorted: Vec<&Range<u64>> = ranges.iter().collect();
    sorted.sort_by_key(|range| range.start);
    if sorted.windows(2).any(|two| two[1].start < two[0].end) {
        return Err("these ranges overlap; those of one name are taken together".to_owned());
    }
    Ok(ranges)
}

/// Local time less UTC, ns.
fn utc_offset(text: &str) -> Result<i64, String> {
    let (sign, span) = match text.trim().strip_prefix('-') {
        Some(span) => (-1, span),
        None => (1, text),
    };
    let span: Span = span
        .parse()
        .map_err(|e: pubgauge_quantities::UnitError| e.to_string())?;
    match i64::try_from(span.0) {
        Ok(ns) if span.0 <= DAY => Ok(sign * ns),
        _ => Err(format!(
            "`{text}` is more than a day; expected one such as \"2h\" or \"-5h\""
        )),
    }
}

/// A range of the day, ns since midnight.
fn range(text: &str) -> Result<Range<u64>, String> {
    let wanted = || {
        format!("`{text}` is no range of a day; expected one such as \"11h..14h\", up to \"24h\"")
    };
    let (from, to) = text.split_once("..").ok_or_else(wanted)?;
    let at = |text: &str| {
        text.parse::<Span>()
            .map(|span| span.0)
            .map_err(|e| e.to_string())
    };
    let (from, to) = (at(from)?, at(to)?);
    if from < to && to <= DAY {
        Ok(from..to)
    } else {
        Err(wanted())
    }
}

fn info(
    name: &str,
    file: &RecordingFile,
    days: &Days,
    counted: &[Vec<DayReadings>],
) -> RecordingInfo {
    let day = |of: &DayReadings| RecordedDay {
        day: of.day,
        readings: of.readings,
        kept: of.kept,
        mean_bytes: of.mean_bytes,
        mean_value: of.mean_value,
    };
    let length = |ranges: &Vec<Range<u64>>| {
        let ns: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        ns as f64 / 1e9
    };
    let hours = file.hours.keys().zip(&days.hours).zip(counted);
    let hours = hours.map(|((name, ranges), counted)| RecordedHours {
        name: name.clone(),
        length_s: length(ranges),
        days: counted.iter().map(day).collect(),
    });
    RecordingInfo {
        name: name.to_owned(),
        hours: hours.collect(),
    }
}
