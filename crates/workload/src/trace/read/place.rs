//! Where a file is wrong, for messages.

use std::io::{self, Read};
use std::path::Path;

use super::text;
use crate::trace::TraceError;
use crate::trace::format::TraceFormat;

/// The file, for messages.
pub(super) struct FileLocation<'a> {
    pub(super) path: &'a Path,
}

/// The marks of a text of CSV that part its fields.
#[derive(Clone, Copy)]
pub(super) struct CsvMarks {
    pub(super) delimiter: u8,
    pub(super) comment: Option<u8>,
}

/// Whether a text of CSV is within quotes, byte by byte. A field that begins with a quote has its text between quotes,
/// doubled ones included.
pub(super) struct Quotes {
    field_begins: bool,
    with_quotes: bool,
    pub(super) quoted: bool,
}

impl Quotes {
    pub(super) const BEGIN: Quotes = Quotes {
        field_begins: true,
        with_quotes: false,
        quoted: false,
    };

    /// Goes past a byte; says whether it parts two fields.
    #[inline]
    pub(super) fn pass(&mut self, byte: u8, delimiter: u8) -> bool {
        self.with_quotes =
            byte == b'"' && self.field_begins || self.with_quotes && !self.field_begins;
        self.quoted ^= byte == b'"' && self.with_quotes;
        let parts = byte == delimiter && !self.quoted;
        self.field_begins = parts || matches!(byte, b'\r' | b'\n') && !self.quoted;
        parts
    }
}

impl FileLocation<'_> {
    pub(super) fn wrong(
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
    /// before: the `\n` of `\r\n`, empty lines, and comments. So the text is read again, which costs nothing
    /// as long as nothing is wrong. `None` for what cannot be read twice, such as a pipe.
    pub(super) fn of_field(
        &self,
        start: u64,
        field: Option<usize>,
        format: Option<&TraceFormat>,
        marks: CsvMarks,
    ) -> Option<(u64, u64)> {
        if !self.path.metadata().ok()?.is_file() {
            return None;
        }
        let opened = text::open(self, format).ok()?;
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

    /// An error while reading after `line` whole lines.
    pub(super) fn unreadable(&self, error: &io::Error, line: u64) -> TraceError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => self.wrong(
                Some(line),
                None,
                format!("the gzip file ends in the middle, before a whole reading; it could be read up to line {line}"),
                Some("it was cut off, most likely while it was copied: get it again"),
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
