//! The list of a collector's finished files, one JSON object in a line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use pubgauge_place::{OpenFolder, content};
use serde::{Deserialize, Serialize};

use crate::file_name::{MOST_PARTS, is_folder, is_stem_of, name_parts};
use crate::store::StoreAddress;

/// Name of the list in a collector's own folder.
pub const LIST: &str = "files.ndjson";

/// Most bytes of a list that are read: 4,000,000 finished files.
const MOST: u64 = 1 << 30;

/// Most bytes of a finished file that are read: what the largest segment can become as NDJSON.
const MOST_OF_FILE: u64 = 8 << 30;

/// A line of the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Entry {
    /// A finished file.
    File(FileEntry),
    /// A finished file was put to a store, which has confirmed it.
    Uploaded(Uploaded),
    /// Finished files are moved to this store from now on: those that are here may be there, too.
    Uploading { to: StoreAddress },
    /// Finished files are merged into one: once that one is there, they are not.
    Merging { into: FileEntry, from: Vec<String> },
    /// They were merged into the file of this path.
    Merged { path: String },
    /// Numbers that no message has: what they were given to never reached the disk, and was not acknowledged.
    NotStored { first: u64, last: u64 },
    /// Numbers of messages that were on disk, may have been acknowledged, and cannot be read.
    Lost { first: u64, last: u64 },
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
    /// First and last number of the segments that its numbers lie scattered in; none where they follow one another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub among: Option<(u64, u64)>,
}

impl FileEntry {
    /// The names of the folders down to the file, and its own, which lead nowhere else than into a partition.
    ///
    /// # Errors
    /// That the path is none of a finished file, in words that follow it.
    pub fn file_place(&self) -> Result<FilePlace<'_>, String> {
        FilePlace::parse(&self.path).map_err(|()| {
            "is listed, and is no path of a finished file within the data folder".into()
        })
    }

    /// As [`FileEntry::place`], of a file of this collector.
    ///
    /// # Errors
    /// As there, and if it is another collector's.
    pub fn place_of(&self, collector: &str) -> Result<FilePlace<'_>, String> {
        let place = self.file_place()?;
        match name_parts(place.name) {
            Some((stem, ..)) if is_stem_of(stem, collector) => Ok(place),
            _ => Err(format!(
                "is listed, and is no file of the collector {collector}"
            )),
        }
    }

    /// First and last number that its own lie among.
    pub fn span(&self) -> (u64, u64) {
        self.among.unwrap_or((self.first, self.last))
    }

    /// Whether the next file begins behind its last number, and no numbers of others lie among theirs.
    pub fn is_followed_by(&self, next: &FileEntry) -> bool {
        let is_whole = self.among.is_none() && next.among.is_none();
        is_whole && self.last.checked_add(1) == Some(next.first)
    }

    /// Whether a file's content is as it was written.
    ///
    /// # Errors
    /// Describes the difference.
    pub fn check(&self, bytes: &[u8]) -> Result<(), String> {
        self.check_with(bytes.len() as u64, || Ok(crc32fast::hash(bytes)))
    }

    /// As [`FileEntry::check`], of a file that is read in pieces.
    ///
    /// # Errors
    /// As there, and that it cannot be read.
    pub fn check_file(&self, file: &mut File) -> Result<(), String> {
        let unreadable = |error: io::Error| format!("cannot be read: {error}");
        let len = file.metadata().map_err(unreadable)?.len();
        self.check_with(len, || checksum(file))
    }

    fn check_with(&self, len: u64, sum: impl FnOnce() -> io::Result<u32>) -> Result<(), String> {
        if len != self.bytes {
            return Err(format!("has {len} bytes instead of {}", self.bytes));
        }
        let sum = sum().map_err(|error| format!("cannot be read: {error}"))?;
        if sum != self.crc32 {
            return Err(format!(
                "has the checksum {sum:08x} instead of {:08x}",
                self.crc32
            ));
        }
        Ok(())
    }
}

/// CRC-32 of a file, which is read in pieces, and stands at its begin then.
fn checksum(file: &mut File) -> io::Result<u32> {
    let mut sum = crc32fast::Hasher::new();
    let mut piece = vec![0; 256 << 10];
    file.rewind()?;
    loop {
        match file.read(&mut piece)? {
            0 => break,
            got => sum.update(&piece[..got]),
        }
    }
    file.rewind()?;
    Ok(sum.finalize())
}

/// Where a finished file is: the names of the folders down to it, and its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePlace<'a> {
    pub folders: Vec<&'a str>,
    pub name: &'a str,
}

impl<'a> FilePlace<'a> {
    /// Of a path below the data folder.
    ///
    /// # Errors
    /// If it leads elsewhere than into a partition.
    pub fn parse(path: &'a str) -> Result<FilePlace<'a>, ()> {
        let (folders, name) = path.rsplit_once('/').ok_or(())?;
        let folders: Vec<&str> = folders.split('/').collect();
        let is_name = !name.starts_with('.') && !name.contains('\0') && name_parts(name).is_some();
        let are_folders = folders.len() <= MOST_PARTS && folders.iter().all(|one| is_folder(one));
        (is_name && are_folders)
            .then_some(FilePlace { folders, name })
            .ok_or(())
    }
}

/// The content of a finished file.
///
/// # Errors
/// If it cannot be read, or is longer than any that a collector makes.
pub fn content_of(file: &File) -> io::Result<Vec<u8>> {
    content(file, MOST_OF_FILE)
}

/// Where a finished file is, instead of in the data folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uploaded {
    /// Path below the data folder, and below the prefix of the store.
    pub path: String,
    pub to: StoreAddress,
    /// The store's name for the content.
    pub e_tag: Option<String>,
}

/// Finished files by path, and where they are if not in the data folder.
pub type Files<'a> = BTreeMap<&'a str, (&'a FileEntry, Option<&'a Uploaded>)>;

/// The finished files of a list. A repeated compaction of the log lists a file again. Of files that were being merged
/// when that was cut off, `is_there` tells whether the merged one is in the data folder, in place of them.
pub fn files<'a>(entries: &'a [Entry], is_there: &dyn Fn(&FileEntry) -> bool) -> Files<'a> {
    let mut files = Files::new();
    let mut undecided: BTreeMap<&str, (&FileEntry, &[String])> = BTreeMap::new();
    for entry in entries {
        match entry {
            Entry::File(file) => drop(files.insert(file.path.as_str(), (file, None))),
            Entry::Uploaded(uploaded) => {
                if let Some(file) = files.get_mut(uploaded.path.as_str()) {
                    file.1 = Some(uploaded);
                }
            }
            Entry::Merging { into, from } => {
                undecided.insert(&into.path, (into, from));
            }
            Entry::Merged { path } => {
                if let Some((into, from)) = undecided.remove(path.as_str()) {
                    replace(&mut files, into, from);
                }
            }
            Entry::Uploading { .. } | Entry::NotStored { .. } | Entry::Lost { .. } => {}
        }
    }
    for (into, from) in undecided.into_values().filter(|(into, _)| is_there(into)) {
        replace(&mut files, into, from);
    }
    files
}

fn replace<'a>(files: &mut Files<'a>, into: &'a FileEntry, from: &'a [String]) {
    for path in from {
        files.remove(path.as_str());
    }
    files.insert(&into.path, (into, None));
}

/// Whether a collector moves its files to a store, or has: those that are here may be there already.
pub fn is_moved(entries: &[Entry]) -> bool {
    let is_moved = |entry: &Entry| matches!(entry, Entry::Uploading { .. } | Entry::Uploaded(_));
    entries.iter().any(is_moved)
}

/// Files that were being merged when that was cut off: the merged one of each, if it is there.
pub fn unlisted_merges(entries: &[Entry], is_there: &dyn Fn(&FileEntry) -> bool) -> Vec<Entry> {
    let mut undecided = BTreeMap::new();
    for entry in entries {
        match entry {
            Entry::Merging { into, .. } => drop(undecided.insert(into.path.as_str(), into)),
            Entry::Merged { path } => drop(undecided.remove(path.as_str())),
            _ => {}
        }
    }
    let there = undecided.into_values().filter(|into| is_there(into));
    let merged = |into: &FileEntry| Entry::Merged {
        path: into.path.clone(),
    };
    there.map(merged).collect()
}

/// The entries of the list in a collector's own folder, and the lines that are none. A last line without its end is
/// neither: it was being written.
///
/// # Errors
/// If the file cannot be read, is a link, a device or a pipe. One that is not there is empty.
pub fn read(own: &OpenFolder) -> io::Result<(Vec<Entry>, Vec<usize>)> {
    let bytes = match own.read(LIST, MOST) {
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

/// Appends entries to the list in a collector's own folder, and returns when they are on disk. A last line without its
/// end is cut off first.
///
/// # Errors
/// If they cannot be written.
pub fn append(own: &OpenFolder, entries: &[Entry]) -> io::Result<()> {
    let mut lines = Vec::new();
    for entry in entries {
        serde_json::to_writer(&mut lines, entry)?;
        lines.push(b'\n');
    }
    let (mut file, is_new) = match own.file_to_change(LIST) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => (own.create(LIST)?, true),
        other => (other?, false),
    };
    let old = if is_new {
        Vec::new()
    } else {
        content(&file, MOST)?
    };
    let whole = old
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1);
    file.set_len(whole as u64)?;
    file.seek(SeekFrom::Start(whole as u64))?;
    file.write_all(&lines)?;
    file.sync_data()?;
    if is_new { own.sync() } else { Ok(()) }
}

/// Number of the message after all that the entries speak of.
pub fn next_seq(entries: &[Entry]) -> u64 {
    let last = entries.iter().filter_map(|entry| match entry {
        Entry::File(file) => Some(file.last),
        Entry::NotStored { last, .. } | Entry::Lost { last, .. } => Some(*last),
        _ => None,
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
            among: None,
        })
    }

    #[test]
    fn a_list_cut_at_every_byte_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LIST);
        let own = OpenFolder::open(folder.path()).unwrap();
        assert_eq!(read(&own).unwrap(), (vec![], vec![]));
        let gap = Entry::NotStored { first: 4, last: 5 };
        append(&own, &[file(1, 3), gap.clone()]).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let ends: Vec<usize> = (0..whole.len())
            .filter(|at| whole[*at] == b'\n')
            .map(|at| at + 1)
            .collect();
        assert_eq!(next_seq(&read(&own).unwrap().0), 6);
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            append(&own, &[file(6, 9)]).unwrap();
            let kept = ends.iter().filter(|end| **end <= cut).count();
            let mut expected = vec![file(1, 3), gap.clone()];
            expected.truncate(kept);
            expected.push(file(6, 9));
            assert_eq!(read(&own).unwrap(), (expected, vec![]), "cut at {cut}");
        }
    }

    #[test]
    fn files_that_are_merged_are_listed_once_whenever_that_was_cut_off() {
        let named = |path: &str| FileEntry {
            path: path.into(),
            bytes: 5,
            crc32: 7,
            first: 1,
            last: 2,
            messages: 2,
            among: None,
        };
        let merging = |into: &str, from: &[&str]| Entry::Merging {
            into: named(into),
            from: from.iter().map(|path| (*path).to_owned()).collect(),
        };
        let all = [
            Entry::File(named("a")),
            Entry::File(named("b")),
            merging("ab", &["a", "b"]),
            Entry::Merged { path: "ab".into() },
            Entry::File(named("c")),
            merging("abc", &["ab", "c"]),
            Entry::Merged { path: "abc".into() },
        ];
        let paths = |entries: usize, there: &[&str]| {
            let is_there = |file: &FileEntry| there.contains(&&*file.path);
            let files = files(&all[..entries], &is_there);
            files.into_keys().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(paths(3, &[]), "a b");
        assert_eq!(paths(3, &["ab"]), "ab");
        // Once it is listed as merged, it is missing where it is not there.
        assert_eq!(paths(4, &[]), "ab");
        assert_eq!(paths(6, &["ab"]), "ab c");
        assert_eq!(paths(6, &["abc"]), "abc");
        assert_eq!(paths(7, &[]), "abc");
        assert_eq!(unlisted_merges(&all[..3], &|_| false), []);
        assert_eq!(unlisted_merges(&all[..6], &|_| true), all[6..]);
        assert_eq!(next_seq(&all), 3);
    }

    #[test]
    fn a_line_that_is_no_entry_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LIST);
        let own = OpenFolder::open(folder.path()).unwrap();
        append(&own, &[file(1, 3), file(4, 5)]).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[0] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(read(&own).unwrap(), (vec![file(4, 5)], vec![1]));
    }

    #[test]
    fn a_path_of_the_list_leads_into_a_partition_alone() {
        let of = |path: &str| FileEntry {
            path: path.into(),
            bytes: 0,
            crc32: 0,
            first: 1,
            last: 2,
            messages: 2,
            among: None,
        };
        let good = of("date=2026-11-26/hour=07/c-0000000000000001-0000000000000002.parquet");
        assert_eq!(good.file_place().unwrap().folders[1], "hour=07");
        assert!(good.place_of("c").is_ok() && good.place_of("d").is_err());
        let name = "c-0000000000000001-0000000000000002.parquet";
        let by_topic = format!("site=a%2Fb/kind=../date=2026-11-26/hour=07/{name}");
        assert_eq!(of(&by_topic).file_place().unwrap().folders.len(), 4);
        for wrong in [
            String::new(),
            "/etc/passwd".into(),
            format!("/date=x/hour=y/{name}"),
            format!("date=x/hour=y/../{name}"),
            format!("../date=x/hour=y/{name}"),
            format!("date=x/../{name}"),
            format!("date=x//{name}"),
            format!("date=x/hour=y/{name}/"),
            format!("date=x/hour=y/z/{name}"),
            format!("a=1/b=2/c=3/d=4/e=5/{name}"),
            format!("a=1 2/{name}"),
            format!("a=/{name}"),
            format!("=1/{name}"),
            format!("../a=1/{name}"),
            name.into(),
            format!("collectors/c/{name}"),
            "date=x/hour=y/..".into(),
            "date=x/hour=y/.c-1-2.parquet".into(),
            format!("date=x\0/hour=y/{name}"),
        ] {
            assert!(of(&wrong).file_place().is_err(), "{wrong}");
        }
    }
}
