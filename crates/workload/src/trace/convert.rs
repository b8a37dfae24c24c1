//! From a row of CSV to a reading.

use std::borrow::Cow;
use std::path::Path;

use csv::ByteRecord;
use pubgauge_driver::shortened;
use serde::de::IgnoredAny;

use super::builder::{Builder, Manner, Raw};
use super::format::{PayloadText, TraceColumn, TraceFormat};
use super::last_sent::{Change, LastSent};
use super::time::TimeReader;
use super::zone::Moment;

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
    date: Option<usize>,
    times: TimeReader,
    /// The date, a space and the time of the row.
    joined: String,
    device: Result<usize, String>,
    topic: Option<usize>,
    size: SizeFrom,
    payload: Option<usize>,
    payload_as: PayloadText,
    qos: Option<usize>,
    retain: Option<usize>,
    repeats: Option<usize>,
    changes: Vec<Change>,
    values: Vec<f64>,
    decimal: Option<char>,
    /// Fields that a row must have.
    width: usize,
    /// Fields that a row may have, and whether the header says so; absent: any number.
    most: Option<(usize, bool)>,
    /// The first row, where that is a header.
    header: Option<ByteRecord>,
    /// Names of the columns that nothing is taken from.
    pub(super) ignored: Vec<String>,
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
        qos: has("qos"),
        retain: has("retain"),
        ..TraceFormat::default()
    }
}

/// Finds the fields of columns in the first row of a file.
struct Finder<'a> {
    first: &'a ByteRecord,
    is_header: bool,
    missing: Vec<String>,
    width: usize,
    used: Vec<bool>,
}

impl Finder<'_> {
    fn find(&mut self, column: &TraceColumn) -> usize {
        let field = match column {
            TraceColumn::Number(number) => Some(*number as usize - 1),
            TraceColumn::Name(name) if self.is_header => {
                self.first.iter().position(|field| trimmed(field) == *name)
            }
            TraceColumn::Name(_) => None,
        };
        match field {
            Some(field) if field < self.first.len() => {
                self.width = self.width.max(field + 1);
                self.used[field] = true;
            }
            _ => self.missing.push(column.to_string()),
        }
        field.unwrap_or(0)
    }

    /// The columns that are there, in words.
    fn describe_columns(&self) -> String {
        if self.is_header {
            let names = self.first.iter().map(|f| format!("`{}`", trimmed(f)));
            shortened(names.collect::<Vec<_>>().join(", "))
        } else {
            format!("number 1 to {}", self.first.len())
        }
    }

    fn ignored(&self) -> Vec<String> {
        let fields = self.first.iter().zip(&self.used).enumerate();
        let unused = fields.filter(|(_, (_, used))| !**used);
        let name = |(at, (field, _)): (usize, (&[u8], &bool))| match trimmed(field) {
            name if self.is_header && !name.is_empty() => name.into_owned(),
            _ => format!("number {}", at + 1),
        };
        unused.map(name).collect()
    }
}

/// Where a format has the size from; the error says that it has none, or several.
fn size_from(format: &TraceFormat, finder: &mut Finder<'_>) -> Result<SizeFrom, Wrong> {
    Ok(
        match (&format.size, format.size_bytes, &format.size_of_json) {
            (Some(column), None, None) => SizeFrom::Field(finder.find(column)),
            (None, Some(bytes), None) => SizeFrom::Fixed(bytes),
            (None, None, Some(members)) => {
                let members: Vec<(&String, JsonMember)> = members
                    .iter()
                    .map(|(key, column)| match column {
                        TraceColumn::Name(name) if name == "$time" => (key, JsonMember::Time),
                        TraceColumn::Name(name) if name == "$device" => (key, JsonMember::Device),
                        column => (key, JsonMember::Field(finder.find(column))),
                    })
                    .collect();
                // Braces, commas, and for each member its key in quotes and a colon.
                let commas = members.len().saturating_sub(1);
                let keys: usize = members.iter().map(|(key, _)| json_text(key) + 1).sum();
                let members = members.into_iter().map(|(_, member)| member).collect();
                SizeFrom::Json(2 + commas + keys, members)
            }
            (None, None, None) if format.payload.is_some() => SizeFrom::Payload,
            (None, None, None) => {
                return Err(wrong(
                None,
                "nothing says how big the messages are: give one of `size`, `size-bytes`, `size-of-json` or `payload`"
                    .into(),
            ));
            }
            _ => {
                return Err(wrong(
                    None,
                    "`size`, `size-bytes` and `size-of-json` exclude one another".into(),
                ));
            }
        },
    )
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
        let mut finder = Finder {
            first,
            is_header,
            missing: Vec::new(),
            width: 0,
            used: vec![false; first.len()],
        };
        let time = finder.find(&format.time);
        let mut of = |column: &Option<TraceColumn>| column.as_ref().map(|c| finder.find(c));
        let (date, topic, payload) = (of(&format.date), of(&format.topic), of(&format.payload));
        let (qos, retain) = (of(&format.qos), of(&format.retain));
        let repeats = of(&format.drop_repeats);
        let device = match (&format.device, &format.device_from_file) {
            (Some(column), _) => Ok(finder.find(column)),
            (None, Some(pattern)) => Err(device_of_name(pattern, path).ok_or_else(|| {
                wrong(
                    None,
                    format!("the file name does not fit `device-from-file = \"{pattern}\"`"),
                )
            })?),
            (None, None) => Err("device".to_string()),
        };
        let size = size_from(format, &mut finder)?;
        let changes: Vec<Change> = format
            .on_change
            .iter()
            .map(|change| Change {
                field: finder.find(&change.column),
                absolute: change.absolute.unwrap_or(0.0),
                relative: change.relative.unwrap_or(0.0),
            })
            .collect();
        if !finder.missing.is_empty() {
            let delimiter = format.delimiter.unwrap_or(',');
            return Err(Wrong {
                field: None,
                message: format!(
                    "missing column: {}; there is {} (columns parted by `{}`)",
                    finder.missing.join(", "),
                    finder.describe_columns(),
                    delimiter.escape_debug()
                ),
                hint: hint.map(str::to_string),
            });
        }
        let named = is_header.then_some((first.len(), true));
        let told = format.columns.map(|columns| (columns as usize, false));
        // Without a header nobody says that the payload ends where the next delimiter is.
        let by_payload = payload.map(|_| (finder.width, false));
        let columns = FileColumns {
            time,
            date,
            times: TimeReader::new(
                format.time_format.as_ref(),
                format.time_zone.as_ref(),
                format.decimal,
            )
            .map_err(|why| wrong(None, why))?,
            joined: String::new(),
            device,
            topic,
            size,
            payload,
            payload_as: format.payload_as.unwrap_or(PayloadText::Text),
            qos,
            retain,
            repeats,
            values: vec![0.0; changes.len()],
            changes,
            decimal: format.decimal,
            width: finder.width,
            most: named.or(told).or(by_payload),
            ignored: finder.ignored(),
            header: is_header.then(|| first.clone()),
        };
        Ok((columns, is_header))
    }

    /// Whether times are local ones of a zone that nobody names.
    pub(super) fn has_unknown_zone(&self) -> bool {
        self.times.has_unknown_zone()
    }

    /// Whether a row is the header again, as files have it that were put together from several.
    pub(super) fn is_header_again(&self, record: &ByteRecord) -> bool {
        self.header.as_ref() == Some(record)
    }

    /// Whether a payload that is the last of its file is cut off: it begins as JSON and is none.
    pub(super) fn payload_is_cut(&self, record: &ByteRecord) -> bool {
        let payload = self.payload.and_then(|field| record.get(field));
        payload.is_some_and(|payload| {
            let text = payload.trim_ascii();
            text.starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(text).is_err()
        })
    }

    /// Refuses a row with too few or too many fields.
    fn check_width(&self, record: &ByteRecord) -> Result<(), Wrong> {
        let there = record.len();
        if there < self.width {
            let message = format!(
                "the line has {there} columns where {} are needed",
                self.width
            );
            return Err(wrong(there, message));
        }
        let Some((most, by_header)) = self.most else {
            return Ok(());
        };
        let Some(at) = (most..there).find(|at| !record[*at].trim_ascii().is_empty()) else {
            return Ok(());
        };
        let most = if by_header {
            format!("the header names {most}")
        } else {
            format!("{most} are expected")
        };
        Err(Wrong {
            hint: (!by_header).then(|| {
                "`columns` says how many columns there are, where nothing is to be taken from the last ones".into()
            }),
            ..wrong(
                at,
                format!("the line has {there} columns where {most}; a text with the delimiter in it stands in quotes"),
            )
        })
    }

    /// Adds one row.
    pub(super) fn add(
        &mut self,
        record: &ByteRecord,
        builder: &mut Builder,
        mut settle: impl FnMut(Moment) -> Result<i64, Wrong>,
    ) -> Result<(), Wrong> {
        self.check_width(record)?;
        let text = |field: usize| {
            std::str::from_utf8(&record[field])
                .map_err(|_| wrong(field, "this is not UTF-8 text".into()))
        };
        let mut written = text(self.time)?;
        if let Some(date) = self.date {
            self.joined.clear();
            for part in [text(date)?.trim(), " ", written.trim()] {
                self.joined.push_str(part);
            }
            written = &self.joined;
        }
        let moment = self.times.read(written).map_err(|(message, hint)| Wrong {
            hint,
            ..wrong(self.time, message)
        })?;
        let time = settle(moment).map_err(|w| Wrong {
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
        let payload = match self.payload {
            Some(field) => Some(self.payload_as.decode(&record[field]).ok_or_else(|| {
                wrong(field, format!("this is no payload as {}", self.payload_as))
            })?),
            None => None,
        };
        let manner = Manner {
            qos: self
                .qos
                .map(|field| qos(text(field)?).map_err(|why| wrong(field, why)))
                .transpose()?
                .flatten(),
            retain: self
                .retain
                .map(|field| flag(text(field)?).map_err(|why| wrong(field, why)))
                .transpose()?
                .flatten(),
        };
        let size = match &self.size {
            SizeFrom::Fixed(bytes) => *bytes,
            SizeFrom::Payload => payload.as_ref().map_or(0, |payload| payload.len()) as u32,
            SizeFrom::Field(field) => {
                let size = text(*field)?.trim();
                size.parse().map_err(|_| {
                    let size = shortened(size);
                    let message =
                        format!("`{size}` is not a size; expected a whole number of bytes");
                    wrong(*field, message)
                })?
            }
            SizeFrom::Json(fixed, members) => {
                let mut size = *fixed;
                for member in members {
                    size += match member {
                        JsonMember::Time => digits(time.div_euclid(1_000_000_000)),
                        JsonMember::Device => json_text(device),
                        JsonMember::Field(field) => {
                            json_value(&pointed(text(*field)?, self.decimal))
                        }
                    };
                }
                size as u32
            }
        };
        if self.repeats.is_some() || !self.changes.is_empty() {
            for (value, change) in self.values.iter_mut().zip(&self.changes) {
                let field = text(change.field)?.trim();
                *value = pointed(field, self.decimal)
                    .parse()
                    .ok()
                    .filter(|v: &f64| v.is_finite())
                    .ok_or_else(|| {
                        wrong(
                            change.field,
                            format!(
                                "`{}` is not a number, which `on-change` needs",
                                shortened(field)
                            ),
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
                builder.remarks.unchanged += 1;
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
            payload: payload.as_deref(),
            manner,
        };
        builder.push(&raw).map_err(|why| wrong(sized_by, why))
    }
}

/// A number with a point in place of its mark of decimals.
fn pointed(number: &str, decimal: Option<char>) -> Cow<'_, str> {
    match decimal {
        Some(mark) if mark != '.' => number.replace(mark, ".").into(),
        _ => number.into(),
    }
}

/// A quality of service; `None` where the field is empty.
pub(super) fn qos(text: &str) -> Result<Option<u8>, String> {
    match text.trim() {
        "" => Ok(None),
        "0" => Ok(Some(0)),
        "1" => Ok(Some(1)),
        "2" => Ok(Some(2)),
        other => Err(format!(
            "`{}` is no quality of service; expected 0, 1 or 2",
            shortened(other)
        )),
    }
}

/// Whether a message was to be kept; `None` where the field is empty.
pub(super) fn flag(text: &str) -> Result<Option<bool>, String> {
    match text.trim() {
        "" => Ok(None),
        "0" | "false" | "False" => Ok(Some(false)),
        "1" | "true" | "True" => Ok(Some(true)),
        other => Err(format!(
            "`{}` says not whether a message is retained; expected 0 or 1, false or true",
            shortened(other)
        )),
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
