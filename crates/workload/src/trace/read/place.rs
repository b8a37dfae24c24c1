//! Where a file is wrong, for messages.

use std::io;
use std::path::Path;

use crate::trace::TraceError;

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
