//! The text of a trace file: opened, unpacked, and refused by name where it is none.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::read::MultiGzDecoder;

use super::place::FileLocation;
use crate::trace::TraceError;
use crate::trace::format::TraceFormat;

/// Longest line in bytes, and longest record of CSV or object; a file with a longer one is refused.
pub(super) const MAX_LINE: u64 = 16 << 20;

/// A form of files that are no text, by their first bytes.
struct OtherForm {
    begins: &'static [u8],
    name: &'static str,
    /// How to get the text out of it.
    advice: &'static str,
}

const fn make_other(begins: &'static [u8], name: &'static str, advice: &'static str) -> OtherForm {
    OtherForm {
        begins,
        name,
        advice,
    }
}

const RECODE: &str = "`iconv -f UTF-16 -t UTF-8 FILE > TEXT` makes UTF-8 of it";

const OTHER_FORMS: &[OtherForm] = &[
    make_other(
        b"\xff\xfe\0\0",
        "text in UTF-32",
        "`iconv -f UTF-32 -t UTF-8 FILE > TEXT` makes UTF-8 of it",
    ),
    make_other(b"\xff\xfe", "text in UTF-16", RECODE),
    make_other(b"\xfe\xff", "text in UTF-16", RECODE),
    make_other(
        b"BZh",
        "compressed with bzip2",
        "unpack it: `bzip2 -dc FILE > TEXT`",
    ),
    make_other(
        b"PK\x03\x04",
        "a zip archive (or a spreadsheet, which is one)",
        "unpack it: `unzip FILE`; save a spreadsheet as CSV",
    ),
    make_other(
        b"\x28\xb5\x2f\xfd",
        "compressed with zstd",
        "unpack it: `zstd -dc FILE > TEXT`",
    ),
    make_other(
        b"\xfd7zXZ\0",
        "compressed with xz",
        "unpack it: `xz -dc FILE > TEXT`",
    ),
    make_other(
        b"\x04\x22\x4d\x18",
        "compressed with lz4",
        "unpack it: `lz4 -dc FILE > TEXT`",
    ),
    make_other(
        b"7z\xbc\xaf\x27\x1c",
        "a 7z archive",
        "unpack it: `7z x FILE`",
    ),
    make_other(b"PAR1", "Parquet", "export it as CSV"),
    make_other(b"SQLite f", "an SQLite database", "export it as CSV"),
    make_other(
        b"\xd4\xc3\xb2\xa1",
        "a capture of packets (pcap)",
        "export the messages as CSV or NDJSON",
    ),
    make_other(
        b"\x0a\x0d\x0d\x0a",
        "a capture of packets (pcapng)",
        "export the messages as CSV or NDJSON",
    ),
    make_other(b"%PDF", "PDF", "export it as CSV"),
];

/// The text of a file.
pub(super) struct OpenText {
    pub(super) text: Box<dyn BufRead>,
    /// Its kind, by its first bytes.
    pub(super) kind: TextKind,
    /// Lines that were passed over.
    pub(super) skipped: u64,
}

/// Kinds of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextKind {
    Csv,
    /// An object on each line.
    Objects,
    /// A list of objects.
    List,
}

impl TextKind {
    fn find(start: &[u8]) -> Self {
        let mut bytes = start.iter().filter(|byte| !byte.is_ascii_whitespace());
        match (bytes.next(), bytes.next()) {
            (Some(b'{'), _) => TextKind::Objects,
            // A column may be called `[unit]`.
            (Some(b'['), Some(b'{' | b'[' | b']' | b'"' | b'-' | b'0'..=b'9') | None) => {
                TextKind::List
            }
            _ => TextKind::Csv,
        }
    }
}

/// Opens the text of a file, from behind the byte order mark and the lines that the format says to skip.
pub(super) fn open(
    place: &FileLocation<'_>,
    format: Option<&TraceFormat>,
) -> Result<OpenText, TraceError> {
    let file = File::open(place.path).map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::NotFound => "check the path; a relative path counts from the study file",
            _ => "check that the file may be read",
        };
        place.wrong(None, None, format!("cannot be opened: {error}"), Some(hint))
    })?;
    let unreadable = |error: io::Error| place.unreadable(&error, 0);
    let (mut head, mut text) = beginning(Box::new(BufReader::new(file))).map_err(unreadable)?;
    let gzip = head.starts_with(&[0x1f, 0x8b]);
    if gzip {
        let unpacked = BufReader::new(MultiGzDecoder::new(text));
        (head, text) = beginning(Box::new(unpacked)).map_err(unreadable)?;
    }
    if let Some(form) = other_form(&head) {
        let within = if gzip { "what is in it is" } else { "this is" };
        let message = format!(
            "{within} {}; expected text in UTF-8, or gzip of it",
            form.name
        );
        return Err(place.wrong(None, None, message, Some(form.advice)));
    }
    if head.starts_with(b"\xef\xbb\xbf") {
        text.consume(3);
    }
    let lines = u64::from(format.and_then(|format| format.skip_lines).unwrap_or(0));
    let comment = format.and_then(|format| format.comment);
    let mut skipped = 0;
    let mut line = Vec::new();
    loop {
        // The kind of text shows behind the comments at its top.
        let next = text.fill_buf().map_err(unreadable)?.first().copied();
        let is_comment = next.is_some() && next.map(char::from) == comment;
        if skipped >= lines && !is_comment {
            break;
        }
        line.clear();
        let read = (&mut text).take(MAX_LINE).read_until(b'\n', &mut line);
        if read.map_err(|error| place.unreadable(&error, skipped))? == 0 {
            break;
        }
        skipped += 1;
    }
    let start = text.fill_buf().map_err(unreadable)?;
    let kind = TextKind::find(start);
    Ok(OpenText {
        kind,
        text,
        skipped,
    })
}

/// As many bytes of a text are looked at to see what it is.
const BEGINNING: u64 = 512;

/// The first bytes of a text, and the text, which begins with them.
fn beginning(mut text: Box<dyn BufRead>) -> io::Result<(Vec<u8>, Box<dyn BufRead>)> {
    let mut head = Vec::new();
    match (&mut text).take(BEGINNING).read_to_end(&mut head) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            text = Box::new(BufReader::new(CutOff));
        }
        Err(error) => return Err(error),
    }
    Ok((head.clone(), Box::new(Cursor::new(head).chain(text))))
}

/// The rest of a gzip file that is cut off within its first bytes.
struct CutOff;

impl Read for CutOff {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

/// The form of a file that is no text in UTF-8.
fn other_form(head: &[u8]) -> Option<&'static OtherForm> {
    // Each character of ASCII has a byte of zeros beside it.
    let wide = match head {
        [a, b, c, d, ..] => (*b == 0 && *d == 0 && *a != 0) || (*a == 0 && *c == 0 && *b != 0),
        _ => false,
    };
    let begins =
        |form: &&OtherForm| head.starts_with(form.begins) || wide && form.begins == b"\xff\xfe";
    OTHER_FORMS.iter().find(begins)
}
