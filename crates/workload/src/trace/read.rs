//! Reading trace files line by line, and saying exactly where one is wrong.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::rc::Rc;

use csv::{ByteRecord, ReaderBuilder};
use flate2::read::MultiGzDecoder;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::builder::{Builder, Raw};
use super::convert::{FileColumns, Wrong};
use super::format::TraceFormat;
use super::source::{TraceError, TraceSource};
use super::time::{self, TimeFormat};

/// Longest line in bytes, and longest record of CSV; a file with a longer one is refused.
const MAX_LINE: u64 = 16 << 20;

/// A text of which a reader takes no more than it is allowed to: CSV with an open quote would be one record.
struct Bounded {
    text: Box<dyn BufRead>,
    read: u64,
    /// Bytes from the beginning that may be read.
    allowed: Rc<Cell<u64>>,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read >= self.allowed.get() {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "too long"));
        }
        let read = self.text.read(buffer)?;
        self.read += read as u64;
        Ok(read)
    }
}

/// Adds the readings of one file to `builder`.
pub(super) fn read_file(
    path: &Path,
    source: &TraceSource,
    builder: &mut Builder,
) -> Result<(), TraceError> {
    let place = FileLocation { path };
    let file = File::open(path).map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::NotFound => "check the path; a relative path counts from the study file",
            _ => "check that the file may be read",
        };
        place.wrong(None, None, format!("cannot be opened: {error}"), Some(hint))
    })?;
    let mut text = unpacked(file).map_err(|error| place.unreadable(&error, 0))?;
    let start = text
        .fill_buf()
        .map_err(|error| place.unreadable(&error, 0))?;
    let first = start.iter().find(|byte| !byte.is_ascii_whitespace());
    let ndjson = first == Some(&b'{');
    let begin = builder.readings.len();
    let mut order = Order {
        sort: source.sort,
        last: i64::MIN,
    };
    match &source.format {
        None if ndjson => read_ndjson(&place, text, builder, &mut order)?,
        Some(format) if ndjson => read_objects(&place, text, format, builder, &mut order)?,
        _ => read_csv(&place, text, source, builder, &mut order)?,
    }
    if source.sort {
        let end = builder.readings.len();
        let sorted = builder.sort(begin..end);
        sorted.map_err(|why| place.wrong(None, None, why, None))?;
    }
    Ok(())
}

/// The text of a file, which may be gzipped.
fn unpacked(file: File) -> io::Result<Box<dyn BufRead>> {
    let mut file = BufReader::new(file);
    let gzip = file.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    Ok(if gzip {
        Box::new(BufReader::new(MultiGzDecoder::new(file)))
    } else {
        Box::new(file)
    })
}

/// The file, for messages.
struct FileLocation<'a> {
    path: &'a Path,
}

impl FileLocation<'_> {
    fn wrong(
        &self,
        line: Option<u64>,
        column: Option<u64>,
        message: String,
        hint: Option<&str>,
    ) -> TraceError {
        TraceError {
            file: self.path.to_path_buf(),
            line,
            // An error of the whole line is shown at its beginning.
            column: column.or(line.map(|_| 1)),
            message,
            hint: hint.map(str::to_string),
        }
    }

    /// Line and column of a field (absent: the first) of the record at or after byte `start` of the
    /// unpacked text. The CSV parser counts a record's line before it passes over what ends the one
    /// before: the `\n` of `\r\n`, and empty lines. So the text is read again, which costs nothing
    /// as long as nothing is wrong. `None` for what cannot be read twice, such as a pipe.
    fn of_field(&self, start: u64, field: Option<usize>, delimiter: u8) -> Option<(u64, u64)> {
        if !self.path.metadata().ok()?.is_file() {
            return None;
        }
        let text = unpacked(File::open(self.path).ok()?).ok()?;
        let (mut line, mut column, mut after_return) = (1, 1, false);
        let mut left = field.unwrap_or(0);
        let (mut within, mut field_begins) = (false, true);
        // A field that begins with a quote has its text between quotes, doubled ones included.
        let (mut with_quotes, mut quoted) = (false, false);
        for (at, byte) in (0..).zip(text.bytes()) {
            let byte = byte.ok()?;
            let ends_line = matches!(byte, b'\r' | b'\n');
            within |= at >= start && !ends_line;
            if within {
                if left == 0 || ends_line && !quoted {
                    break;
                }
                with_quotes = byte == b'"' && field_begins || with_quotes && !field_begins;
                quoted ^= byte == b'"' && with_quotes;
                field_begins = byte == delimiter && !quoted;
                left -= usize::from(field_begins);
            }
            if ends_line {
                // `\r\n` is one end of a line.
                line += u64::from(byte == b'\r' || !after_return);
                column = 1;
            } else {
                column += 1;
            }
            after_return = byte == b'\r';
        }
        Some((line, column))
    }

    /// An error while reading after `line` whole lines.
    fn unreadable(&self, error: &io::Error, line: u64) -> TraceError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => self.wrong(
                Some(line),
                None,
                format!("the gzip file ends in the middle; it could be read up to line {line}"),
                Some("it was cut off, most likely while it was copied: get it again, or unpack what is there with `gzip -dc FILE > PART.csv` and use that"),
            ),
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => self.wrong(
                Some(line),
                None,
                format!("the gzip file is damaged after line {line}: {error}"),
                Some("get the file again"),
            ),
            io::ErrorKind::FileTooLarge => self.wrong(
                Some(line + 1),
                None,
                "the record that begins here is longer than 16 MiB".into(),
                Some("a quote that is not closed makes one record of all that follows"),
            ),
            _ => self.wrong(Some(line), None, format!("cannot be read on: {error}"), None),
        }
    }
}

/// Refuses times out of order, unless they are to be sorted.
struct Order {
    sort: bool,
    last: i64,
}

impl Order {
    fn check(&mut self, now: i64) -> Result<(), Wrong> {
        if now < self.last && !self.sort {
            return Err(Wrong {
                field: None,
                message: format!(
                    "time runs backwards: {} comes after {}",
                    time::format_rfc3339(now),
                    time::format_rfc3339(self.last)
                ),
                hint: Some(
                    "`sort = true` in the study's trace (`--sort` of `pubgauge trace convert`) \
                     sorts the readings"
                        .into(),
                ),
            });
        }
        self.last = self.last.max(now);
        Ok(())
    }
}

fn read_csv(
    place: &FileLocation<'_>,
    text: Box<dyn BufRead>,
    source: &TraceSource,
    builder: &mut Builder,
    order: &mut Order,
) -> Result<(), TraceError> {
    let format = source.format.as_ref();
    let delimiter = match format.and_then(|f| f.delimiter) {
        None => b',',
        Some(c) if c.is_ascii() => c as u8,
        Some(c) => {
            let message = format!("`{c}` cannot part columns; take an ASCII character");
            return Err(place.wrong(None, None, message, None));
        }
    };
    let allowed = Rc::new(Cell::new(MAX_LINE));
    let mut reader = ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .from_reader(Bounded {
            text,
            read: 0,
            allowed: allowed.clone(),
        });
    let mut record = ByteRecord::new();
    let mut rows: Option<FileColumns> = None;
    let mut lines = 0;
    loop {
        allowed.set(reader.position().byte().saturating_add(MAX_LINE));
        match reader.read_byte_record(&mut record) {
            Ok(false) => break,
            Ok(true) => {}
            Err(error) => {
                let error = match error.into_kind() {
                    csv::ErrorKind::Io(error) => place.unreadable(&error, lines),
                    other => place.wrong(Some(lines + 1), None, format!("{other:?}"), None),
                };
                return Err(error);
            }
        }
        lines = record.position().map_or(lines + 1, csv::Position::line);
        let at = |wrong: Wrong| {
            let start = record.position().map_or(0, csv::Position::byte);
            let (line, column) = match place.of_field(start, wrong.field, delimiter) {
                Some((line, column)) => (line, Some(column)),
                None => (lines, None),
            };
            let column = column.filter(|_| wrong.field.is_some());
            place.wrong(Some(line), column, wrong.message, wrong.hint.as_deref())
        };
        match &mut rows {
            None => {
                let (new, is_header) = FileColumns::new(format, &record, place.path).map_err(at)?;
                let rows = rows.insert(new);
                if !is_header {
                    rows.add(&record, builder, |now| order.check(now))
                        .map_err(at)?;
                }
            }
            Some(rows) => rows
                .add(&record, builder, |now| order.check(now))
                .map_err(at)?,
        }
    }
    if rows.is_none() {
        return Err(place.wrong(Some(1), None, "the file is empty".into(), None));
    }
    Ok(())
}

/// A line of the plain format as NDJSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NdjsonLine {
    time: serde_json::Value,
    device: serde_json::Value,
    topic: Option<String>,
    size: Option<u32>,
    payload: Option<String>,
}

/// Calls `each` with the number and the value of each line that is not empty; `form` says what a line must be.
fn each_object<T: DeserializeOwned>(
    place: &FileLocation<'_>,
    mut text: Box<dyn BufRead>,
    form: &str,
    mut each: impl FnMut(u64, T) -> Result<(), TraceError>,
) -> Result<(), TraceError> {
    let mut buffer = Vec::new();
    let mut number = 0;
    loop {
        buffer.clear();
        let read = (&mut text)
            .take(MAX_LINE)
            .read_until(b'\n', &mut buffer)
            .map_err(|error| place.unreadable(&error, number))?;
        if read == 0 {
            return Ok(());
        }
        number += 1;
        if read as u64 == MAX_LINE {
            let message = "the line is longer than 16 MiB".to_string();
            return Err(place.wrong(Some(number), None, message, None));
        }
        if buffer.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let object = serde_json::from_slice(&buffer).map_err(|error| {
            let message = error.to_string();
            let message = message
                .split(" at line ")
                .next()
                .unwrap_or_default()
                .to_string();
            place.wrong(
                Some(number),
                Some(error.column() as u64),
                message,
                Some(form),
            )
        })?;
        each(number, object)?;
    }
}

fn read_ndjson(
    place: &FileLocation<'_>,
    text: Box<dyn BufRead>,
    builder: &mut Builder,
    order: &mut Order,
) -> Result<(), TraceError> {
    each_object(place, text, PLAIN_NDJSON, |number, line: NdjsonLine| {
        let wrong = |message: String| place.wrong(Some(number), None, message, Some(PLAIN_NDJSON));
        let time = match &line.time {
            serde_json::Value::String(text) => TimeFormat::Rfc3339.parse(text),
            serde_json::Value::Number(number) => TimeFormat::EpochS.parse(&number.to_string()),
            _ => None,
        }
        .ok_or_else(|| wrong(format!("{} is not a time", line.time)))?;
        let device = match &line.device {
            serde_json::Value::String(device) if !device.is_empty() => device.clone(),
            serde_json::Value::Number(device) => device.to_string(),
            other => return Err(wrong(format!("{other} does not name a device"))),
        };
        let size = match (line.size, &line.payload) {
            (Some(size), _) => size,
            (None, Some(payload)) => payload.len() as u32,
            (None, None) => return Err(wrong("there is neither `size` nor `payload`".into())),
        };
        order
            .check(time)
            .map_err(|w| place.wrong(Some(number), None, w.message, w.hint.as_deref()))?;
        let raw = Raw {
            time,
            device: &device,
            topic: line.topic.as_deref(),
            size,
            payload: line.payload.as_deref().map(str::as_bytes),
        };
        builder
            .push(&raw)
            .map_err(|why| place.wrong(Some(number), None, why, None))
    })
}

/// Reads NDJSON of any form: a column is a field of the object by its name, or by a JSON Pointer.
fn read_objects(
    place: &FileLocation<'_>,
    text: Box<dyn BufRead>,
    format: &TraceFormat,
    builder: &mut Builder,
    order: &mut Order,
) -> Result<(), TraceError> {
    let names = format.named();
    let wrong = |number: u64, wrong: Wrong| {
        let message = match wrong.field {
            Some(field) => format!("`{}`: {}", names[field], wrong.message),
            None => wrong.message,
        };
        place.wrong(Some(number), None, message, wrong.hint.as_deref())
    };
    let header = ByteRecord::from(names.clone());
    let (mut rows, _) =
        FileColumns::new(Some(format), &header, place.path).map_err(|why| wrong(1, why))?;
    let form = "a line is an object; `[trace.NAME.format]` names its fields";
    each_object(place, text, form, |number, object: serde_json::Value| {
        let mut record = ByteRecord::new();
        for name in &names {
            match field(&object, name) {
                Some(text) => record.push_field(text.as_bytes()),
                None if format.skip_incomplete == Some(true) => {
                    builder.left_out += 1;
                    return Ok(());
                }
                None => {
                    let message = format!("the object has no `{name}`");
                    let hint = "`skip-incomplete = true` leaves out objects that lack a field";
                    return Err(place.wrong(Some(number), None, message, Some(hint)));
                }
            }
        }
        rows.add(&record, builder, |now| order.check(now))
            .map_err(|why| wrong(number, why))
    })
}

/// A field of an object as text; `None` where it has none.
fn field(object: &serde_json::Value, name: &str) -> Option<String> {
    let value = if name.starts_with('/') {
        object.pointer(name)
    } else {
        object.get(name)
    };
    match value? {
        serde_json::Value::Null => None,
        serde_json::Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

const PLAIN_NDJSON: &str = "a line is an object such as \
    {\"time\": \"2023-06-13T03:11:46Z\", \"device\": \"d1\", \"size\": 64}, with `time` in RFC 3339 \
    or seconds since 1970, and `topic` and `payload` if known";
