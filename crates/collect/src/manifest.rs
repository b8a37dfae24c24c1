//! The list of a collector's finished files, one JSON object in a line.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::folder::sync_folder;
use crate::store::Place;

/// A line of the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Entry {
    /// A finished file.
    File(FileEntry),
    /// A finished file was put to a store, which has confirmed it.
    Uploaded(Uploaded),
    /// Numbers that no message has: what they were given to never reached the disk, and was not acknowledged.
    NotStored { first: u64, last: u64 },
}

/// A finished file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Path below the data folder.
    pub path: String,
    pub bytes: u64,
    /// CRC-32 of the whole file.
    pub crc32: u32,
    /// Number of its first message.
    pub first: u64,
    /// Number of its last message.
    pub last: u64,
    /// Messages in it.
    pub messages: u64,
}

impl FileEntry {
    /// Whether a file's content is as it was written.
    ///
    /// # Errors
    /// What is different, in words.
    pub fn check(&self, bytes: &[u8]) -> Result<(), String> {
        if bytes.len() as u64 != self.bytes {
            return Err(format!(
                "has {} bytes instead of {}",
                bytes.len(),
                self.bytes
            ));
        }
        let sum = crc32fast::hash(bytes);
        if sum != self.crc32 {
            return Err(format!(
                "has the checksum {sum:08x} instead of {:08x}",
                self.crc32
            ));
        }
        Ok(())
    }
}

/// Where a finished file is, instead of in the data folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uploaded {
    /// Path below the data folder, and below the prefix of the store.
    pub path: String,
    pub to: Place,
    /// What the store called the content.
    pub e_tag: Option<String>,
}

/// Finished files, by path, and where they are if not in the data folder. A repeated compaction lists a file again.
pub fn files(entries: &[Entry]) -> BTreeMap<&str, (&FileEntry, Option<&Uploaded>)> {
    let mut files = BTreeMap::new();
    for entry in entries {
        match entry {
            Entry::File(file) => drop(files.insert(file.path.as_str(), (file, None))),
            Entry::Uploaded(uploaded) => {
                if let Some(file) = files.get_mut(uploaded.path.as_str()) {
                    file.1 = Some(uploaded);
                }
            }
            Entry::NotStored { .. } => {}
        }
    }
    files
}

/// The entries of a list, and the lines that are none. A last line without its end is neither: it was being written.
///
/// # Errors
/// If the file cannot be read. One that is not there is empty.
pub fn read(path: &Path) -> io::Result<(Vec<Entry>, Vec<usize>)> {
    let bytes = match std::fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        other => other?,
    };
    let (mut entries, mut wrong) = (Vec::new(), Vec::new());
    for (nth, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        match serde_json::from_slice(line) {
            Ok(entry) => entries.push(entry),
            Err(_) if !line.ends_with(b"\n") => {}
            Err(_) => wrong.push(nth + 1),
        }
    }
    Ok((entries, wrong))
}

/// Appends entries, and returns when they are on disk. A last line without its end is cut off first.
///
/// # Errors
/// If they cannot be written.
pub fn append(path: &Path, entries: &[Entry]) -> io::Result<()> {
    let mut lines = Vec::new();
    for entry in entries {
        serde_json::to_writer(&mut lines, entry)?;
        lines.push(b'\n');
    }
    let is_new = !path.exists();
    let old = if is_new {
        Vec::new()
    } else {
        std::fs::read(path)?
    };
    let whole = old
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1);
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    file.set_len(whole as u64)?;
    file.write_all(&lines)?;
    file.sync_data()?;
    match path.parent() {
        Some(folder) if is_new => sync_folder(folder),
        _ => Ok(()),
    }
}

/// Number of the message after all that the entries speak of.
pub fn next_seq(entries: &[Entry]) -> u64 {
    let last = entries.iter().filter_map(|entry| match entry {
        Entry::File(file) => Some(file.last),
        Entry::NotStored { last, .. } => Some(*last),
        Entry::Uploaded(_) => None,
    });
    last.max().unwrap_or(0) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(first: u64, last: u64) -> Entry {
        Entry::File(FileEntry {
            path: "date=2026-11-26/hour=07/a.parquet".into(),
            bytes: 5,
            crc32: 7,
            first,
            last,
            messages: last - first + 1,
        })
    }

    #[test]
    fn a_list_cut_at_every_byte_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("files.ndjson");
        assert_eq!(read(&path).unwrap(), (vec![], vec![]));
        let gap = Entry::NotStored { first: 4, last: 5 };
        append(&path, &[file(1, 3), gap.clone()]).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let ends: Vec<usize> = (0..whole.len())
            .filter(|at| whole[*at] == b'\n')
            .map(|at| at + 1)
            .collect();
        assert_eq!(next_seq(&read(&path).unwrap().0), 6);
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            append(&path, &[file(6, 9)]).unwrap();
            let kept = ends.iter().filter(|end| **end <= cut).count();
            let mut expected = vec![file(1, 3), gap.clone()];
            expected.truncate(kept);
            expected.push(file(6, 9));
            assert_eq!(read(&path).unwrap(), (expected, vec![]), "cut at {cut}");
        }
    }

    #[test]
    fn a_line_that_is_no_entry_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("files.ndjson");
        append(&path, &[file(1, 3), file(4, 5)]).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[0] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(read(&path).unwrap(), (vec![file(4, 5)], vec![1]));
    }
}
