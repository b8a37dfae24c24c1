//! CSV, row by row.

use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use csv::{ByteRecord, Reader, ReaderBuilder};

use super::order::Order;
use super::place::{CsvMarks, FileLocation, Quotes};
use super::text::{self, MAX_LINE, OpenText};
use crate::trace::TraceError;
use crate::trace::builder::Builder;
use crate::trace::convert::{FileColumns, Wrong};
use crate::trace::format::TraceFormat;

/// A text of which a reader takes no more than it is allowed to: CSV with an open quote would be one record.
struct Bounded {
    text: Box<dyn BufRead>,
    read: u64,
    /// Bytes from the beginning that may be read.
    allowed: Rc<Cell<u64>>,
    quotes: Quotes,
    delimiter: u8,
    /// Nothing comes any more.
    at_end: bool,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read >= self.allowed.get() {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "too long"));
        }
        let read = self.text.read(buffer)?;
        self.read += read as u64;
        self.at_end = read == 0 && !buffer.is_empty();
        for byte in &buffer[..read] {
            self.quotes.pass(*byte, self.delimiter);
        }
        Ok(read)
    }
}

/// A byte that parts columns or begins comments.
fn mark(place: &FileLocation<'_>, mark: char, does: &str) -> Result<u8, TraceError> {
    match u8::try_from(mark) {
        Ok(byte) if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(byte),
        _ => {
            let message = format!(
                "`{}` cannot {does}; take an ASCII character",
                mark.escape_debug()
            );
            Err(place.wrong(None, None, message, None))
        }
    }
}

fn marks(place: &FileLocation<'_>, format: Option<&TraceFormat>) -> Result<CsvMarks, TraceError> {
    let delimiter = format.and_then(|f| f.delimiter);
    let comment = format.and_then(|f| f.comment);
    Ok(CsvMarks {
        delimiter: delimiter.map_or(Ok(b','), |c| mark(place, c, "part columns"))?,
        comment: comment
            .map(|c| mark(place, c, "begin comments"))
            .transpose()?,
    })
}

/// One file of CSV on its way into a trace.
struct CsvFile<'a> {
    place: &'a FileLocation<'a>,
    format: Option<&'a TraceFormat>,
    marks: CsvMarks,
    reader: Reader<Bounded>,
    allowed: Rc<Cell<u64>>,
    record: ByteRecord,
    skipped: u64,
    /// Lines up to the record, as far as the parser knows.
    lines: u64,
}

impl CsvFile<'_> {
    /// Reads the next record; `false` at the end of the file, and where a gzip file is cut off, which is noted.
    fn next(&mut self, builder: &mut Builder) -> Result<bool, TraceError> {
        let allowed = self.reader.position().byte().saturating_add(MAX_LINE);
        self.allowed.set(allowed);
        match self.reader.read_byte_record(&mut self.record) {
            Ok(true) => {
                let line = self.record.position().map(csv::Position::line);
                self.lines = line.map_or(self.lines + 1, |line| line + self.skipped);
                Ok(true)
            }
            Ok(false) => Ok(false),
            Err(error) => match error.into_kind() {
                csv::ErrorKind::Io(error)
                    if error.kind() == io::ErrorKind::UnexpectedEof
                        && !builder.readings.is_empty() =>
                {
                    let remarks = &mut builder.remarks;
                    remarks.add_cut(self.place.path, self.lines, "the gzip file");
                    Ok(false)
                }
                csv::ErrorKind::Io(error) => Err(self.place.unreadable(&error, self.lines)),
                other => {
                    let line = Some(self.lines + 1);
                    Err(self.place.wrong(line, None, format!("{other:?}"), None))
                }
            },
        }
    }

    /// Where the record is wrong.
    fn error(&self, wrong: &Wrong) -> TraceError {
        let start = self.record.position().map_or(0, csv::Position::byte);
        let place = place_of_field(self.place, start, wrong.field, self.format, self.marks);
        let (line, column) = match place {
            Some((line, column)) => (line, Some(column)),
            None => (self.lines, None),
        };
        let column = column.filter(|_| wrong.field.is_some());
        let message = wrong.message.clone();
        self.place
            .wrong(Some(line), column, message, wrong.hint.as_deref())
    }

    /// Whether the record was ended by the end of the file alone.
    fn is_unended(&self) -> bool {
        self.reader.get_ref().at_end
    }

    /// Whether the record, which nothing but the end of the file ended, has a quote that is not closed, on its one line.
    fn is_within_quotes(&self) -> bool {
        self.reader.get_ref().quotes.quoted
    }

    fn has_lines(&self) -> bool {
        self.record.as_slice().contains(&b'\n')
    }

    fn note_cut(&self, builder: &mut Builder) {
        let start = self.record.position().map_or(0, csv::Position::byte);
        let place = place_of_field(self.place, start, None, self.format, self.marks);
        let line = place.map_or(self.lines, |(line, _)| line);
        builder.remarks.add_cut(self.place.path, line, "the file");
    }
}

/// Line and column of a field (absent: the first) of the record at or after byte `start` of the
/// unpacked text. The CSV parser counts a record's line before it passes over what ends the one
/// before: the `\n` of `\r\n`, empty lines, and comments. So the text is read again, which costs nothing
/// as long as nothing is wrong. `None` for what cannot be read twice, such as a pipe.
fn place_of_field(
    place: &FileLocation<'_>,
    start: u64,
    field: Option<usize>,
    format: Option<&TraceFormat>,
    marks: CsvMarks,
) -> Option<(u64, u64)> {
    if !place.path.metadata().ok()?.is_file() {
        return None;
    }
    let opened = text::open(place, format).ok()?;
    let (mut line, mut column, mut after_return) = (opened.skipped + 1, 1, false);
    let mut left = field.unwrap_or(0);
    let (mut within, mut comment) = (false, false);
    let mut quotes = Quotes::BEGIN;
    for (at, byte) in (0..).zip(opened.text.bytes()) {
        let byte = byte.ok()?;
        let ends_line = matches!(byte, b'\r' | b'\n');
        comment |= !within && column == 1 && marks.comment == Some(byte);
        within |= at >= start && !ends_line && !comment;
        if within {
            if left == 0 || ends_line && !quotes.quoted {
                break;
            }
            left -= usize::from(quotes.pass(byte, marks.delimiter));
        }
        if ends_line {
            // `\r\n` is one end of a line.
            line += u64::from(byte == b'\r' || !after_return);
            column = 1;
            comment = false;
        } else {
            column += 1;
        }
        after_return = byte == b'\r';
    }
    Some((line, column))
}

/// Adds the readings of a file of CSV.
pub(super) fn read(
    place: &FileLocation<'_>,
    opened: OpenText,
    format: Option<&TraceFormat>,
    builder: &mut Builder,
    order: &mut Order,
) -> Result<(), TraceError> {
    let marks = marks(place, format)?;
    let allowed = Rc::new(Cell::new(MAX_LINE));
    let reader = ReaderBuilder::new()
        .delimiter(marks.delimiter)
        .comment(marks.comment)
        .has_headers(false)
        .flexible(true)
        .from_reader(Bounded {
            text: opened.text,
            read: 0,
            allowed: allowed.clone(),
            quotes: Quotes::BEGIN,
            delimiter: marks.delimiter,
            at_end: false,
        });
    let mut file = CsvFile {
        place,
        format,
        marks,
        reader,
        allowed,
        record: ByteRecord::new(),
        skipped: opened.skipped,
        lines: opened.skipped,
    };
    if !file.next(builder)? {
        return Err(place.wrong(Some(1), None, "the file is empty".into(), None));
    }
    let (mut rows, is_header) =
        FileColumns::new(format, &file.record, place.path).map_err(|why| file.error(&why))?;
    for name in &rows.ignored {
        builder.remarks.add_ignored(name);
    }
    order.unknown_zone = rows.has_unknown_zone();
    let mut is_reading = !is_header;
    loop {
        if is_reading && !add(&file, &mut rows, builder, order)? {
            return Ok(());
        }
        if !file.next(builder)? {
            return Ok(());
        }
        is_reading = !rows.is_header_again(&file.record);
    }
}

/// Adds the record; `false` where the file is cut off in it, which is noted.
fn add(
    file: &CsvFile<'_>,
    rows: &mut FileColumns,
    builder: &mut Builder,
    order: &mut Order,
) -> Result<bool, TraceError> {
    let has_some = !builder.readings.is_empty();
    if file.is_unended() && file.is_within_quotes() {
        let wrong = Wrong {
            field: None,
            message: "a quote that is opened here is not closed before the end of the file".into(),
            hint: Some(
                "the file is cut off, or the text of a field has a quote that stands for itself"
                    .into(),
            ),
        };
        // A record of several lines may have swallowed whole ones.
        if file.has_lines() || !has_some {
            return Err(file.error(&wrong));
        }
        file.note_cut(builder);
        return Ok(false);
    }
    if has_some && file.is_unended() && rows.payload_is_cut(&file.record) {
        file.note_cut(builder);
        return Ok(false);
    }
    match rows.add(&file.record, builder, |moment| order.settle(moment)) {
        Ok(()) => Ok(true),
        Err(_) if has_some && file.is_unended() => {
            file.note_cut(builder);
            Ok(false)
        }
        Err(wrong) => Err(file.error(&wrong)),
    }
}
