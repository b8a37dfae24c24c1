//! Which folders finished files lie in, checked.

use super::faults::{Faults, HOUR, SECOND};
use super::file::{CollectFile, FilesFile};
use crate::columns::Source;
use crate::file_name::{MOST_PARTS, is_key};
use crate::files::{EventTime, OWN_COLUMNS, Part, Partitioning};

/// How a folder by a level of the topic is written.
const LEVEL: &str =
    "expected \"date\", \"hour\", or a level of the topic such as \"site={topic level 2}\"";

pub(super) fn check_partitioning(written: &CollectFile, faults: &mut Faults) -> Partitioning {
    let default = Partitioning::default();
    let Some(files) = &written.files else {
        return default;
    };
    if written.kafka.is_some() {
        let hint = Some("leave out `files`");
        faults.add(&["files"], "Kafka has no folders of files", hint);
    }
    let parts = match &files.partition {
        None => default.parts,
        Some(texts) => check_parts(texts, written, faults),
    };
    let most = files.most_partitions.map_or(default.most, usize::from);
    if !(1..=500).contains(&most) {
        let hint = Some("each is an open file: expected 1 to 500");
        let what = format!("{most} partitions cannot be");
        faults.add(&["files", "most-partitions"], what, hint);
    }
    let event_time = event_time(files, &parts, faults);
    Partitioning {
        parts,
        event_time,
        most,
    }
}

fn check_parts(texts: &[String], written: &CollectFile, faults: &mut Faults) -> Vec<Part> {
    if texts.is_empty() || texts.len() > MOST_PARTS {
        let what = format!("files lie in one to {MOST_PARTS} folders");
        let hint = Some("partition = [\"date\", \"hour\"]");
        faults.add(&["files", "partition"], what, hint);
    }
    let mut parts: Vec<Part> = Vec::new();
    for (nth, text) in texts.iter().enumerate() {
        match check_part(text, &parts, written) {
            Ok(part) => parts.push(part),
            Err((what, hint)) => {
                let at = nth.to_string();
                faults.add(&["files", "partition", &at], what, Some(hint));
            }
        }
    }
    parts
}

/// The part that a text stands for, behind others; or the fault in it, and a hint.
fn check_part(
    text: &str,
    before: &[Part],
    written: &CollectFile,
) -> Result<Part, (String, &'static str)> {
    let part = match text {
        "date" => Part::Date,
        "hour" if before.contains(&Part::Date) => Part::Hour,
        "hour" => {
            let what = "an hour alone is one of every day".to_owned();
            return Err((what, "put \"date\" in front of it"));
        }
        _ => level(text).ok_or_else(|| (format!("`{text}` is no partition"), LEVEL))?,
    };
    if let Part::TopicLevel { name, .. } = &part {
        free_name(name, written)?;
    }
    let same = |other: &Part| other.name().eq_ignore_ascii_case(part.name());
    if before.iter().any(same) {
        let what = format!("`{}` is given twice", part.name());
        return Err((what, "names of partitions differ in more than capitals"));
    }
    Ok(part)
}

/// `NAME={topic level N}`.
fn level(text: &str) -> Option<Part> {
    let (name, rest) = text.split_once('=')?;
    let level = rest.strip_prefix("{topic level ")?.strip_suffix('}')?;
    let nth = level.parse::<u16>().ok()?.checked_sub(1)?;
    Some(Part::TopicLevel {
        name: name.to_owned(),
        nth: usize::from(nth),
    })
}

/// Readers show a partition as a column, of which each name stands for one.
fn free_name(name: &str, written: &CollectFile) -> Result<(), (String, &'static str)> {
    if !is_key(name) {
        let hint = "expected up to 64 letters, digits and `_`, of which a digit is not the first";
        return Err((format!("`{name}` cannot be a partition's name"), hint));
    }
    let same = |other: &str| other.eq_ignore_ascii_case(name);
    let columns = written.payload.iter().flat_map(|payload| &payload.columns);
    if OWN_COLUMNS.iter().any(|own| same(own)) || columns.into_iter().any(|one| same(&one.name)) {
        let what = format!("each file has a column `{name}` already");
        return Err((
            what,
            "readers take a partition for a column: choose another name",
        ));
    }
    Ok(())
}

fn event_time(files: &FilesFile, parts: &[Part], faults: &mut Faults) -> Option<EventTime> {
    let within = faults.span(
        &["files", "event-time-within"],
        files.event_time_within,
        8760 * HOUR,
        (SECOND, 100 * 8760 * HOUR),
    );
    let Some(pointer) = &files.event_time else {
        for (key, is_given) in [
            ("event-time-unit", files.event_time_unit.is_some()),
            ("event-time-within", files.event_time_within.is_some()),
        ] {
            if is_given {
                let hint = Some("say where the time is: event-time = \"/ts\"");
                faults.add(&["files", key], "there is no `event-time`", hint);
            }
        }
        return None;
    };
    if !parts.contains(&Part::Date) {
        let hint = Some("partition = [\"date\", \"hour\"]");
        let what = "no partition is of a time";
        faults.add(&["files", "event-time"], what, hint);
    }
    let Some(Source::Pointer(steps)) = Source::pointer(pointer) else {
        let what = format!("`{pointer}` is no JSON Pointer (RFC 6901)");
        let hint =
            "expected names of objects and numbers of elements, each behind a `/`: /ts, /meta/time";
        faults.add(&["files", "event-time"], what, Some(hint));
        return None;
    };
    Some(EventTime {
        steps,
        unit: files.event_time_unit.unwrap_or_default(),
        within,
    })
}
