//! Names of finished files, and of the folders that they lie in: `KEY=VALUE/COLLECTOR.MARK-FIRST-LAST.parquet`.

use crate::config::Form;
use pubgauge_net::random::random;

/// Most folders that a file lies in.
pub const MOST_PARTS: usize = 4;

/// Longest value of a folder's name, encoded; names have 255 bytes on most file systems.
pub(crate) const LONGEST: usize = 160;

/// Whether this can be the key of a folder's name.
pub fn is_key(key: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_begun_well = key.starts_with(|c: char| !c.is_ascii_digit());
    is_begun_well && key.len() <= 64 && key.chars().all(fits)
}

/// Whether this can be the name of a partition's folder: `KEY=VALUE`.
pub fn is_folder(name: &str) -> bool {
    let fits = |byte: u8| is_plain(byte) || byte == b'%';
    name.split_once('=').is_some_and(|(key, value)| {
        is_key(key) && !value.is_empty() && value.len() <= LONGEST && value.bytes().all(fits)
    })
}

/// Whether a byte of a value stands for itself in a folder's name.
pub(crate) fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_')
}

/// Name of the file of these messages; `stem` is what the names of the collector's files begin with.
pub(crate) fn file_name(stem: &str, (first, last): (u64, u64), form: Form) -> String {
    format!("{stem}-{first:016}-{last:016}.{}", form.extension())
}

/// The parts of a finished file's name: the collector, with the mark of its start, the first and the last number, the form.
pub fn name_parts(name: &str) -> Option<(&str, u64, u64, Form)> {
    let (all, extension) = name.rsplit_once('.')?;
    let form = [Form::Parquet, Form::Ndjson]
        .into_iter()
        .find(|form| form.extension() == extension)?;
    let (rest, last) = all.rsplit_once('-')?;
    let (stem, first) = rest.rsplit_once('-')?;
    Some((stem, first.parse().ok()?, last.parse().ok()?, form))
}

/// A mark that no other start has: when it was made, and six random digits.
pub(crate) fn fresh_mark() -> String {
    let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
    format!("{now}.{:06x}", random() & 0xff_ffff)
}

/// Whether a text has the form of a mark.
pub(crate) fn is_mark(text: &str) -> bool {
    let fits = |(at, byte): (usize, u8)| match at {
        8 => byte == b'T',
        15 => byte == b'Z',
        16 => byte == b'.',
        0..16 => byte.is_ascii_digit(),
        _ => byte.is_ascii_hexdigit(),
    };
    text.len() == 23 && text.bytes().enumerate().all(fits)
}

/// Whether the name of a file that begins with `stem` is one of this collector, with a mark or without one.
pub(crate) fn is_stem_of(stem: &str, collector: &str) -> bool {
    let rest = stem.strip_prefix(collector);
    rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('.').is_some_and(is_mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_taken_apart() {
        let parts = name_parts("a-b-0000000000000007-0000000000000012.ndjson");
        assert_eq!(parts, Some(("a-b", 7, 12, Form::Ndjson)));
        for name in [
            "x",
            "x.parquet",
            "a-1.parquet",
            "a-1-2.csv",
            "a-x-2.parquet",
            ".c-1.tmp",
        ] {
            assert_eq!(name_parts(name), None, "{name}");
        }
    }
}
