//! JSON: objects line by line (NDJSON), and lists of objects.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufRead, Read};

use csv::ByteRecord;
use pubgauge_driver::shortened;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::order::Order;
use super::place::FileLocation;
use super::text::{MAX_LINE, OpenText};
use crate::trace::TraceError;
use crate::trace::builder::{Builder, Manner, Raw};
use crate::trace::convert::{FileColumns, Wrong, flag, qos};
use crate::trace::format::{TraceColumn, TraceFormat};
use crate::trace::time::TimeReader;

/// An object with its values as they are written, in the order of the file.
struct Object<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut fields = Vec::new();
                while let Some(Name(name)) = map.next_key()? {
                    fields.push((name, map.next_value()?));
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Fields).map(Object)
    }
}

/// The name of a field; borrowed where nothing in it is escaped.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Object<'a> {
    /// The value of a field; `None` where it has none, or `null`.
    fn get(&self, name: &str) -> Option<&'a RawValue> {
        let mut fields = self.0.iter();
        let (_, value) = fields.find(|(known, _)| known == name)?;
        Some(*value).filter(|value| value.get() != "null")
    }

    /// The value at a name, or at a JSON Pointer.
    fn find_text(&self, name: &str) -> Option<Cow<'a, str>> {
        let Some(pointer) = name.strip_prefix('/') else {
            return self.get(name).map(text);
        };
        let mut parts = pointer
            .split('/')
            .map(|p| p.replace("~1", "/").replace("~0", "~"));
        let mut value = self.get(&parts.next()?)?;
        for part in parts {
            value = match value.get().as_bytes().first()? {
                b'{' => serde_json::from_str::<Object<'a>>(value.get())
                    .ok()?
                    .get(&part)?,
                b'[' => {
                    let list: Vec<&'a RawValue> = serde_json::from_str(value.get()).ok()?;
                    *list.get(part.parse::<usize>().ok()?)?
                }
                _ => return None,
            };
        }
        Some(value).filter(|value| value.get() != "null").map(text)
    }

    /// The names of its fields, in words.
    fn names(&self) -> String {
        let names: Vec<String> = self.0.iter().map(|(name, _)| format!("`{name}`")).collect();
        shortened(names.join(", "))
    }
}

/// A value as text: what a string says, and any other value as compact JSON.
fn text(value: &RawValue) -> Cow<'_, str> {
    match value.get().as_bytes().first() {
        Some(b'"') => {
            serde_json::from_str(value.get()).map_or(Cow::Borrowed(""), |Name(text)| text)
        }
        Some(b'{' | b'[') => compact(value.get()).into(),
        _ => value.get().into(),
    }
}

/// JSON without the white space between its parts; members stay in their order, and numbers as they are written.
fn compact(json: &str) -> String {
    let (mut within, mut escaped) = (false, false);
    let kept = |c: &char| {
        let quote = *c == '"' && !escaped;
        escaped = within && *c == '\\' && !escaped;
        within ^= quote;
        within || !matches!(c, ' ' | '\n' | '\r' | '\t')
    };
    json.chars().filter(kept).collect()
}

/// How the objects of a file become readings.
enum Rows<'a> {
    Plain(PlainRows),
    Format {
        format: &'a TraceFormat,
        names: Vec<String>,
        columns: Box<FileColumns>,
    },
}

/// Objects of the plain format, or as mosquitto_sub writes them (`-F %j`, `-F %J`).
struct PlainRows {
    mosquitto: bool,
    times: TimeReader,
}

/// The fields of the plain format, and of mosquitto_sub.
const PLAIN: [&str; 7] = [
    "time", "device", "topic", "size", "payload", "qos", "retain",
];
const MOSQUITTO: [&str; 7] = [
    "tst",
    "topic",
    "topic",
    "payloadlen",
    "payload",
    "qos",
    "retain",
];

impl<'a> Rows<'a> {
    /// Finds the form from a format, or from the first object.
    fn new(
        place: &FileLocation<'_>,
        format: Option<&'a TraceFormat>,
        first: &Object<'_>,
    ) -> Result<Self, Wrong> {
        let Some(format) = format else {
            return Ok(Rows::Plain(PlainRows {
                mosquitto: first.get("time").is_none() && first.get("tst").is_some(),
                times: TimeReader::new(None, None, None).map_err(plain)?,
            }));
        };
        if let Some(number) = format
            .columns()
            .find(|c| matches!(c, TraceColumn::Number(_)))
        {
            return Err(Wrong {
                hint: Some(format!("the object has {}", first.names())),
                ..plain(format!(
                    "column {number}: the fields of objects have names and no numbers"
                ))
            });
        }
        let names = format.named();
        let header = ByteRecord::from(names.clone());
        // Each object is a row of its own; none of them is a header.
        let (columns, _) = FileColumns::new(Some(format), &header, place.path)?;
        Ok(Rows::Format {
            format,
            names,
            columns: columns.into(),
        })
    }

    fn add(
        &mut self,
        object: &Object<'_>,
        builder: &mut Builder,
        order: &mut Order,
    ) -> Result<(), Wrong> {
        match self {
            Rows::Plain(rows) => rows.add(object, builder, order),
            Rows::Format {
                format,
                names,
                columns,
            } => {
                let unused = object.0.iter().map(|(name, _)| name);
                let used = |name: &str| {
                    let pointed = |known: &String| {
                        let rest = known.strip_prefix('/').and_then(|k| k.strip_prefix(name));
                        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                    };
                    names.iter().any(|known| known == name || pointed(known))
                };
                for name in unused.filter(|name| !used(name)) {
                    builder.remarks.add_ignored(name);
                }
                let mut record = ByteRecord::new();
                for name in names.iter() {
                    match object.find_text(name) {
                        Some(text) => record.push_field(text.as_bytes()),
                        None if format.skip_incomplete == Some(true) => {
                            builder.remarks.incomplete += 1;
                            return Ok(());
                        }
                        None => {
                            return Err(Wrong {
                                hint: Some(
                                    "`skip-incomplete = true` leaves out objects that lack a field"
                                        .into(),
                                ),
                                ..plain(format!(
                                    "the object has no `{name}`; it has {}",
                                    object.names()
                                ))
                            });
                        }
                    }
                }
                let added = columns.add(&record, builder, |moment| order.settle(moment));
                added.map_err(|wrong| match wrong.field {
                    Some(field) => Wrong {
                        message: format!("`{}`: {}", names[field], wrong.message),
                        ..wrong
                    },
                    None => wrong,
                })
            }
        }
    }
}

impl PlainRows {
    fn add(
        &mut self,
        object: &Object<'_>,
        builder: &mut Builder,
        order: &mut Order,
    ) -> Result<(), Wrong> {
        let fields = if self.mosquitto { MOSQUITTO } else { PLAIN };
        for (name, _) in &object.0 {
            if !fields.contains(&name.as_ref()) {
                builder.remarks.add_ignored(name);
            }
        }
        builder.remarks.device_is_topic |= self.mosquitto;
        let [time, device, topic, size, payload, qos_field, retain] = fields;
        let missing = |name: &str| {
            plain(format!(
                "there is no `{name}`; the object has {}",
                object.names()
            ))
        };
        let time = text(object.get(time).ok_or_else(|| missing(time))?);
        let moment = self.times.read(&time).map_err(|(message, hint)| Wrong {
            hint: hint.or(plain(String::new()).hint),
            ..plain(message)
        })?;
        let named = text(object.get(device).ok_or_else(|| missing(device))?);
        let named = named.trim();
        if named.is_empty() {
            return Err(plain(format!("`{device}` is empty, and names no device")));
        }
        let topic = object.get(topic).map(text);
        let payload = object.get(payload).map(text);
        let size = match (object.get(size), &payload) {
            (Some(value), _) => value.get().parse().map_err(|_| {
                plain(format!(
                    "{} is not a size; expected a whole number of bytes",
                    shortened(value.get())
                ))
            })?,
            (None, Some(payload)) => payload.len() as u32,
            (None, None) => return Err(plain("there is neither `size` nor `payload`".into())),
        };
        let of = |name: &str| object.get(name).map_or(Cow::Borrowed(""), text);
        let manner = Manner {
            qos: qos(&of(qos_field)).map_err(plain)?,
            retain: flag(&of(retain)).map_err(plain)?,
        };
        let raw = Raw {
            time: order.settle(moment)?,
            device: named,
            topic: topic.as_deref(),
            size,
            payload: payload.as_deref().map(str::as_bytes),
            manner,
        };
        builder.push(&raw).map_err(|message| Wrong {
            field: None,
            message,
            hint: None,
        })
    }
}

/// An error in an object of the plain format.
fn plain(message: String) -> Wrong {
    Wrong {
        field: None,
        message,
        hint: Some(PLAIN_NDJSON.into()),
    }
}

const PLAIN_NDJSON: &str = "a line is an object such as \
    {\"time\": \"2023-06-13T03:11:46Z\", \"device\": \"d1\", \"size\": 64}, with `time` in RFC 3339 \
    or seconds since 1970, and `topic`, `payload`, `qos` and `retain` if known; \
    `[trace.NAME.format]` names the fields of others";

/// The objects of a file on their way into a trace.
struct Objects<'a> {
    place: &'a FileLocation<'a>,
    format: Option<&'a TraceFormat>,
    rows: Option<Rows<'a>>,
}

impl Objects<'_> {
    /// Adds the object of these bytes, which begins at this line and column; `unended`: nothing but the end of the file
    /// ended it. `false` where the file is cut off in it, which is noted.
    fn add(
        &mut self,
        bytes: &[u8],
        (line, column): (u64, u64),
        unended: bool,
        builder: &mut Builder,
        order: &mut Order,
    ) -> Result<bool, TraceError> {
        let object: Object<'_> = match serde_json::from_slice(bytes) {
            Ok(object) => object,
            Err(error) if unended && error.is_eof() && !builder.readings.is_empty() => {
                builder.remarks.add_cut(self.place.path, line, "the file");
                return Ok(false);
            }
            Err(error) => {
                let message = error.to_string();
                let message = message.split(" at line ").next().unwrap_or_default();
                let at = column - 1 + error.column() as u64;
                let hint = match self.format {
                    Some(_) => "a line is an object; `[trace.NAME.format]` names its fields",
                    None => PLAIN_NDJSON,
                };
                return Err(self
                    .place
                    .wrong(Some(line), Some(at), message.into(), Some(hint)));
            }
        };
        let wrong = |wrong: Wrong| {
            let Wrong { message, hint, .. } = wrong;
            self.place
                .wrong(Some(line), Some(column), message, hint.as_deref())
        };
        let rows = match &mut self.rows {
            Some(rows) => rows,
            rows => rows.insert(Rows::new(self.place, self.format, &object).map_err(wrong)?),
        };
        if let Rows::Format { columns, .. } = rows {
            order.unknown_zone = columns.has_unknown_zone();
        }
        rows.add(&object, builder, order).map_err(wrong)?;
        Ok(true)
    }
}

/// Adds the readings of NDJSON: an object on each line.
pub(super) fn read_lines(
    place: &FileLocation<'_>,
    mut opened: OpenText,
    format: Option<&TraceFormat>,
    builder: &mut Builder,
    order: &mut Order,
) -> Result<(), TraceError> {
    let mut objects = Objects {
        place,
        format,
        rows: None,
    };
    let comment = format.and_then(|format| format.comment);
    let mut buffer = Vec::new();
    let mut number = opened.skipped;
    loop {
        buffer.clear();
        let read = (&mut opened.text)
            .take(MAX_LINE)
            .read_until(b'\n', &mut buffer);
        let read = match read {
            Ok(read) => read,
            Err(error) => return cut_off(place, &error, number, builder),
        };
        if read == 0 {
            return Ok(());
        }
        number += 1;
        if read as u64 == MAX_LINE {
            let message = "the line is longer than 16 MiB".to_string();
            return Err(place.wrong(Some(number), None, message, None));
        }
        let begins = buffer.trim_ascii_start().first();
        if begins.is_none() || comment.is_some_and(|c| begins.map(|b| char::from(*b)) == Some(c)) {
            continue;
        }
        let unended = !buffer.ends_with(b"\n");
        if !objects.add(&buffer, (number, 1), unended, builder, order)? {
            return Ok(());
        }
    }
}

/// Notes that a gzip file is cut off after so many lines; any other error is one, and so is this one before a whole reading.
fn cut_off(
    place: &FileLocation<'_>,
    error: &io::Error,
    line: u64,
    builder: &mut Builder,
) -> Result<(), TraceError> {
    if error.kind() != io::ErrorKind::UnexpectedEof || builder.readings.is_empty() {
        return Err(place.unreadable(error, line));
    }
    builder.remarks.add_cut(place.path, line, "the gzip file");
    Ok(())
}

/// Adds the readings of a list of objects.
pub(super) fn read_list(
    place: &FileLocation<'_>,
    opened: OpenText,
    format: Option<&TraceFormat>,
    builder: &mut Builder,
    order: &mut Order,
) -> Result<(), TraceError> {
    let mut objects = Objects {
        place,
        format,
        rows: None,
    };
    let mut scan = Scan::new(opened.skipped + 1);
    for byte in opened.text.bytes() {
        let byte = match byte {
            Ok(byte) => byte,
            Err(error) => return cut_off(place, &error, scan.line, builder),
        };
        match scan.pass(byte) {
            Scanned::Whole => {
                objects.add(&scan.object, scan.begun, false, builder, order)?;
                scan.object.clear();
            }
            Scanned::On => {}
            Scanned::Wrong(message) => {
                let hint = "expected a list of objects, [{...}, {...}], or an object on each line";
                return Err(place.wrong(
                    Some(scan.line),
                    Some(scan.column),
                    message.into(),
                    Some(hint),
                ));
            }
        }
    }
    if scan.depth > 0 {
        if builder.readings.is_empty() {
            let message = "the list is cut off before a whole object".to_string();
            return Err(place.wrong(Some(scan.line), Some(scan.column), message, None));
        }
        let line = if scan.depth > 1 {
            scan.begun.0
        } else {
            scan.line
        };
        builder.remarks.add_cut(place.path, line, "the list");
    }
    Ok(())
}

/// The objects of a list, found byte by byte.
struct Scan {
    object: Vec<u8>,
    /// Line and column at which it begins.
    begun: (u64, u64),
    /// Lists and objects that are open; the list itself is the first.
    depth: u32,
    in_text: bool,
    escaped: bool,
    line: u64,
    column: u64,
}

enum Scanned {
    On,
    /// The object is whole.
    Whole,
    Wrong(&'static str),
}

impl Scan {
    fn new(line: u64) -> Self {
        Scan {
            object: Vec::new(),
            begun: (line, 1),
            depth: 0,
            in_text: false,
            escaped: false,
            line,
            column: 0,
        }
    }

    fn pass(&mut self, byte: u8) -> Scanned {
        self.column += 1;
        let found = match self.depth {
            0 | 1 => self.pass_between(byte),
            _ => self.pass_within(byte),
        };
        if byte == b'\n' {
            (self.line, self.column) = (self.line + 1, 0);
        }
        found
    }

    /// A byte outside of the objects of the list.
    fn pass_between(&mut self, byte: u8) -> Scanned {
        match (self.depth, byte) {
            (_, b' ' | b'\t' | b'\r' | b'\n') | (1, b',') => {}
            (0, b'[') => self.depth = 1,
            (1, b']') => self.depth = 0,
            (1, b'{') => {
                self.begun = (self.line, self.column);
                self.object.push(byte);
                self.depth = 2;
            }
            (0, _) => return Scanned::Wrong("something follows the list"),
            _ => return Scanned::Wrong("the list has something else than objects"),
        }
        Scanned::On
    }

    /// A byte of an object.
    fn pass_within(&mut self, byte: u8) -> Scanned {
        if self.object.len() as u64 >= MAX_LINE {
            return Scanned::Wrong("the object is longer than 16 MiB");
        }
        self.object.push(byte);
        if self.in_text {
            self.in_text = byte != b'"' || self.escaped;
            self.escaped = byte == b'\\' && !self.escaped;
            return Scanned::On;
        }
        match byte {
            b'"' => self.in_text = true,
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => self.depth -= 1,
            _ => {}
        }
        if self.depth == 1 {
            Scanned::Whole
        } else {
            Scanned::On
        }
    }
}

#[cfg(test)]
mod tests {
    use super::compact;

    #[test]
    fn compact_json_keeps_texts_and_order() {
        let json = "{ \"z\" : [1.50, 2e3],\n \"a b\": \"x \\\" \\\\\" , \"c\":\tnull }";
        let expected = "{\"z\":[1.50,2e3],\"a b\":\"x \\\" \\\\\",\"c\":null}";
        assert_eq!(compact(json), expected);
    }
}
