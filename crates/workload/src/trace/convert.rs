//! From a row of CSV to a reading.

use std::fmt::Write as _;
use std::path::Path;

use csv::ByteRecord;

use super::builder::{Builder, Raw};
use super::format::{TraceColumn, TraceFormat};
use super::last_sent::{Change, LastSent};
use super::time::TimeFormat;

/// An error in a row, and the field that has it.
pub(super) struct Wrong {
    pub(super) field: Option<usize>,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

fn wrong(field: impl Into<Option<usize>>, message: String) -> Wrong {
    Wrong {
        field: field.into(),
        message,
        hint: None,
    }
}

/// Where the size of a reading comes from.
enum SizeFrom {
    Field(usize),
    Fixed(u32),
    /// Length of the fixed part of the object, and the members that vary.
    Json(usize, Vec<JsonMember>),
    Payload,
}

enum JsonMember {
    Time,
    Device,
    Field(usize),
}

/// The columns of one file.
pub(super) struct FileColumns {
    time: usize,
    time_format: Option<TimeFormat>,
    device: Result<usize, String>,
    topic: Option<usize>,
    size: SizeFrom,
    payload: Option<usize>,
    repeats: Option<usize>,
    changes: Vec<Change>,
    values: Vec<f64>,
    /// Fields that a row must have.
    width: usize,
    /// Fields that the header names; absent without one.
    named: Option<usize>,
}

/// The plain format as a [`TraceFormat`].
fn plain(header: &ByteRecord) -> TraceFormat {
    let has = |name: &str| {
        header
            .iter()
            .any(|field| trimmed(field) == name)
            .then(|| TraceColumn::Name(name.into()))
    };
    let payload = has("payload");
    let size = has("size").or(match payload {
        None => Some(TraceColumn::Name("size".into())),
        Some(_) => None,
    });
    TraceFormat {
        time: TraceColumn::Name("time".into()),
        device: Some(TraceColumn::Name("device".into())),
        topic: has("topic"),
        size,
        payload,
        ..TraceFormat::default()
    }
}

impl FileColumns {
    /// Finds the columns of a file from its first row, and says whether that is a header.
    pub(super) fn new(
        format: Option<&TraceFormat>,
        first: &ByteRecord,
        path: &Path,
    ) -> Result<(Self, bool), Wrong> {
        let as_plain;
        let (format, hint) = match format {
            Some(format) => (format, None),
            None => {
                as_plain = plain(first);
                let hint = "the plain trace format has a header line with `time`, `device` and \
                            `size` (or `payload`); name the columns of other files in \
                            `[trace.NAME.format]`";
                (&as_plain, Some(hint))
            }
        };
        let is_header = format.header.unwrap_or(true);
        let mut missing = Vec::new();
        let mut width = 0;
        let mut find = |column: &TraceColumn| {
            let field = match column {
                TraceColumn::Number(number) => Some(*number as usize - 1),
                TraceColumn::Name(name) if is_header => {
                    first.iter().position(|field| trimmed(field) == *name)
                }
                TraceColumn::Name(_) => None,
            };
            match field {
                Some(field) if field < first.len() => width = width.max(field + 1),
                _ => missing.push(column.to_string()),
            }
            field.unwrap_or(0)
        };
        let time = find(&format.time);
        let device = match (&format.device, &format.device_from_file) {
            (Some(column), _) => Ok(find(column)),
            (None, Some(pattern)) => Err(device_of_name(pattern, path).ok_or_else(|| {
                wrong(
                    None,
                    format!("the file name does not fit `device-from-file = \"{pattern}\"`"),
                )
            })?),
            (None, None) => Err("device".to_string()),
        };
        let topic = format.topic.as_ref().map(&mut find);
        let payload = format.payload.as_ref().map(&mut find);
        let size = match (&format.size, format.size_bytes, &format.size_of_json) {
            (Some(column), None, None) => SizeFrom::Field(find(column)),
            (None, Some(bytes), None) => SizeFrom::Fixed(bytes),
            (None, None, Some(members)) => {
                let members: Vec<(&String, JsonMember)> = members
                    .iter()
                    .map(|(key, column)| match column {
                        TraceColumn::Name(name) if name == "$time" => (key, JsonMember::Time),
                        TraceColumn::Name(name) if name == "$device" => (key, JsonMember::Device),
                        column => (key, JsonMember::Field(find(column))),
                    })
                    .collect();
                // Braces, commas, and for each member its key in quotes and a colon.
                let commas = members.len().saturating_sub(1);
                let keys: usize = members.iter().map(|(key, _)| json_text(key) + 1).sum();
                let members = members.into_iter().map(|(_, member)| member).collect();
                SizeFrom::Json(2 + commas + keys, members)
            }
            (None, None, None) if payload.is_some() => SizeFrom::Payload,
            (None, None, None) => {
                return Err(wrong(
                    None,
                    "nothing says how big the messages are: give one of `size`, `size-bytes`, \
                     `size-of-json` or `payload`"
                        .into(),
                ));
            }
            _ => {
                return Err(wrong(
                    None,
                    "`size`, `size-bytes` and `size-of-json` exclude one another".into(),
                ));
            }
        };
        let repeats = format.drop_repeats.as_ref().map(&mut find);
        let changes: Vec<Change> = format
            .on_change
            .iter()
            .map(|change| Change {
                field: find(&change.column),
                absolute: change.absolute.unwrap_or(0.0),
                relative: change.relative.unwrap_or(0.0),
            })
            .collect();
        if !missing.is_empty() {
            let there: Vec<String> = if is_header {
                first.iter().map(|f| format!("`{}`", trimmed(f))).collect()
            } else {
                vec![format!("number 1 to {}", first.len())]
            };
            let delimiter = format.delimiter.unwrap_or(',');
            return Err(Wrong {
                field: None,
                message: format!(
                    "missing column: {}; there is {} (columns parted by `{delimiter}`)",
                    missing.join(", "),
                    there.join(", ")
                ),
                hint: hint.map(str::to_string),
            });
        }
        let rows = FileColumns {
            time,
            time_format: format.time_format.clone(),
            device,
            topic,
            size,
            payload,
            repeats,
            values: vec![0.0; changes.len()],
            changes,
            width,
            named: is_header.then_some(first.len()),
        };
        Ok((rows, is_header))
    }

    /// Adds one row.
    pub(super) fn add(
        &mut self,
        record: &ByteRecord,
        builder: &mut Builder,
        mut check_time: impl FnMut(i64) -> Result<(), Wrong>,
    ) -> Result<(), Wrong> {
        if record.len() < self.width {
            return Err(wrong(
                record.len(),
                format!(
                    "the line has {} columns where {} are needed",
                    record.len(),
                    self.width
                ),
            ));
        }
        let named = self.named.unwrap_or(record.len());
        let beyond = (named..record.len()).find(|at| !record[*at].trim_ascii().is_empty());
        if let Some(at) = beyond {
            return Err(wrong(
                at,
                format!(
                    "the line has {} columns where the header names {named}; a text with the delimiter in it stands in quotes",
                    record.len()
                ),
            ));
        }
        let text = |field: usize| {
            std::str::from_utf8(&record[field])
                .map_err(|_| wrong(field, "this is not UTF-8 text".into()))
        };
        let time = self.time(text(self.time)?)?;
        check_time(time).map_err(|w| Wrong {
            field: Some(self.time),
            ..w
        })?;
        let device = match &self.device {
            Ok(field) => match text(*field)?.trim() {
                "" => return Err(wrong(*field, "the device is empty".into())),
                device => device,
            },
            Err(device) => device,
        };
        let payload = self.payload.map(|field| &record[field]);
        let size = match &self.size {
            SizeFrom::Fixed(bytes) => *bytes,
            SizeFrom::Payload => payload.map_or(0, <[u8]>::len) as u32,
            SizeFrom::Field(field) => text(*field)?.trim().parse().map_err(|_| {
                wrong(
                    *field,
                    format!(
                        "`{}` is not a size; expected a whole number of bytes",
                        String::from_utf8_lossy(&record[*field])
                    ),
                )
            })?,
            SizeFrom::Json(fixed, members) => {
                let mut size = *fixed;
                for member in members {
                    size += match member {
                        JsonMember::Time => digits(time.div_euclid(1_000_000_000)),
                        JsonMember::Device => json_text(device),
                        JsonMember::Field(field) => json_value(text(*field)?),
                    };
                }
                size as u32
            }
        };
        if self.repeats.is_some() || !self.changes.is_empty() {
            for (value, change) in self.values.iter_mut().zip(&self.changes) {
                let field = text(change.field)?.trim();
                *value = field
                    .parse()
                    .ok()
                    .filter(|v: &f64| v.is_finite())
                    .ok_or_else(|| {
                        wrong(
                            change.field,
                            format!("`{field}` is not a number, which `on-change` needs"),
                        )
                    })?;
            }
            if !builder.before.contains_key(device) {
                builder.before.insert(device.into(), LastSent::default());
            }
            let repeat = self.repeats.map(|field| &record[field]);
            if let Some(before) = builder.before.get_mut(device)
                && !before.keeps(repeat, &self.values, &self.changes)
                && !builder.takes_all
            {
                builder.left_out += 1;
                return Ok(());
            }
        }
        let sized_by = match &self.size {
            SizeFrom::Field(field) => Some(*field),
            _ => self.payload,
        };
        let raw = Raw {
            time,
            device,
            topic: self.topic.map(text).transpose()?.filter(|t| !t.is_empty()),
            size,
            payload,
        };
        builder.push(&raw).map_err(|why| wrong(sized_by, why))
    }

    fn time(&self, text: &str) -> Result<i64, Wrong> {
        let parsed = match &self.time_format {
            Some(format) => format.parse(text),
            None => TimeFormat::EpochS
                .parse(text)
                .or_else(|| TimeFormat::Rfc3339.parse(text)),
        };
        parsed.ok_or_else(|| {
            let mut message = format!("`{}` is not a time; expected ", text.trim());
            let expected = match &self.time_format {
                Some(format) => format.example(),
                None => "RFC 3339 (2023-06-13T03:11:46Z) or seconds since 1970; other forms need \
                         `time-format`"
                    .into(),
            };
            // Writing to a string cannot fail.
            let _ = write!(message, "{expected}");
            wrong(self.time, message)
        })
    }
}

fn trimmed(field: &[u8]) -> std::borrow::Cow<'_, str> {
    let field = field.strip_prefix(b"\xef\xbb\xbf").unwrap_or(field);
    String::from_utf8_lossy(field.trim_ascii())
}

/// Length of a number in decimal.
fn digits(number: i64) -> usize {
    let sign = usize::from(number < 0);
    sign + number.unsigned_abs().checked_ilog10().unwrap_or(0) as usize + 1
}

/// Length of a text as JSON string, quotes included.
fn json_text(text: &str) -> usize {
    let escaped = |c: char| match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        c if (c as u32) < 0x20 => 6,
        c => c.len_utf8(),
    };
    2 + text.chars().map(escaped).sum::<usize>()
}

/// Length of a field as JSON: a number, `true`, `false` and `null` as they are, the rest as
/// strings.
fn json_value(field: &str) -> usize {
    let field = field.trim();
    let bare = field.starts_with(|c: char| c.is_ascii_digit() || "-tfn".contains(c))
        && serde_json::from_str::<serde_json::Value>(field).is_ok();
    if bare { field.len() } else { json_text(field) }
}

/// The device that a file name stands for: `pattern` may contain `*` for anything and
/// `{device}` (several are joined). `*` takes as little as it can, `{device}` as much.
pub(super) fn device_of_name(pattern: &str, path: &Path) -> Option<String> {
    fn go(pattern: &str, name: &str, device: &mut String) -> bool {
        const HOLE: &str = "{device}";
        let (rest, capture) = match pattern.strip_prefix(HOLE) {
            Some(rest) => (rest, true),
            None => match pattern.strip_prefix('*') {
                Some(rest) => (rest, false),
                None => {
                    let Some(first) = pattern.chars().next() else {
                        return name.is_empty();
                    };
                    return name
                        .strip_prefix(first)
                        .is_some_and(|name| go(&pattern[first.len_utf8()..], name, device));
                }
            },
        };
        let kept = device.len();
        let ends: Vec<usize> = name
            .char_indices()
            .map(|(i, _)| i)
            .chain([name.len()])
            .collect();
        for n in 0..ends.len() {
            let end = ends[if capture { ends.len() - 1 - n } else { n }];
            if capture {
                device.push_str(&name[..end]);
            }
            if go(rest, &name[end..], device) {
                return true;
            }
            device.truncate(kept);
        }
        false
    }
    let name = path.file_name()?.to_str()?;
    let mut device = String::new();
    (go(pattern, name, &mut device) && !device.is_empty()).then_some(device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_lengths_are_those_of_serde_json() {
        for text in ["", "a", "ü", "\"", "\n\t\\", "\u{1}", "€"] {
            let length = serde_json::to_string(text).expect("a string").len();
            assert_eq!(json_text(text), length, "{text:?}");
        }
        for (field, length) in [
            ("12", 2),
            ("-1.5", 4),
            ("007", 5),
            ("true", 4),
            ("x", 3),
            ("", 2),
        ] {
            assert_eq!(json_value(field), length, "{field}");
        }
        for (number, length) in [(0, 1), (9, 1), (10, 2), (-10, 3), (1_327_104_007, 10)] {
            assert_eq!(digits(number), length, "{number}");
        }
    }
}
