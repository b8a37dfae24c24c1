//! Finished files: from a closed segment to Parquet or NDJSON, by date and hour.

mod memory;
mod ndjson;
mod open;
mod parquet;
mod properties;
mod writer;

#[cfg(feature = "kafka")]
pub(crate) use self::properties::of as properties_of;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;

pub use self::memory::{Made, in_memory};
pub(crate) use self::ndjson::Line;
use self::open::Open;
pub use self::parquet::{read_columns, read_columns_of};
use crate::columns::{Columns, Undecoded};
use crate::config::Form;
use crate::folder::{Folder, sync_folder};
use crate::log::Closed;
use crate::log::scan::Scan;
use crate::log::segment::Header;
use crate::manifest::{Entry, FileEntry};

/// Columns and partitions that all finished files have, which no other column may be called.
pub const OWN_COLUMNS: [&str; 16] = [
    "received",
    "received_ns",
    "seq",
    "broker",
    "topic",
    "qos",
    "retain",
    "dup",
    "content_type",
    "properties",
    "payload",
    "payload_base64",
    "decoded",
    "values",
    "date",
    "hour",
];

/// Nanoseconds of an hour.
const HOUR_NS: i64 = 3_600_000_000_000;

/// The hour of a time, since 1970.
pub fn hour_of(ns: i64) -> i64 {
    ns.div_euclid(HOUR_NS)
}

/// What a segment became.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finished {
    pub files: Vec<FileEntry>,
    /// Messages that cannot be read, first and last number.
    pub damaged: Vec<(u64, u64)>,
    /// Payloads that have not all of their columns.
    pub undecoded: Undecoded,
}

impl Finished {
    fn close(&mut self, open: Open<'_>) -> io::Result<()> {
        let (file, undecoded) = open.close()?;
        self.files.push(file);
        self.undecoded.add(undecoded);
        Ok(())
    }
}

/// Makes a closed segment into finished files, lists them, and removes it. Names follow from the messages alone: after
/// a kill at any moment the same files are made again, in place of those that are there.
///
/// # Errors
/// If a file cannot be read or written; the segment then stays. [`io::ErrorKind::Interrupted`] once `abandon` is set.
pub fn finish(
    folder: &Folder,
    closed: &Closed,
    columns: &Columns,
    abandon: &AtomicBool,
) -> io::Result<Finished> {
    let bytes = Bytes::from(std::fs::read(&closed.path)?);
    let (header, _) = Header::read(&bytes, closed.first_seq);
    let mut finished = Finished::default();
    let mut open: Option<Open<'_>> = None;
    let mut expected = closed.first_seq;
    for message in Scan::new(&bytes, header.mark, closed.first_seq) {
        if message.seq >= closed.next_seq {
            break;
        }
        if abandon.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if message.seq > expected {
            finished.damaged.push((expected, message.seq - 1));
        }
        expected = message.seq + 1;
        let hour = hour_of(message.received_ns);
        if let Some(done) = open.take_if(|open| open.hour != hour) {
            finished.close(done)?;
        }
        let file = match &mut open {
            Some(file) => file,
            none => none.insert(Open::create(
                folder,
                (header.form, columns),
                hour,
                message.seq,
            )?),
        };
        file.put(&bytes, &message)?;
    }
    if let Some(done) = open {
        finished.close(done)?;
    }
    if expected < closed.next_seq {
        finished.damaged.push((expected, closed.next_seq - 1));
    }
    let entries: Vec<Entry> = finished.files.iter().cloned().map(Entry::File).collect();
    folder.list(&entries)?;
    std::fs::remove_file(&closed.path)?;
    sync_folder(&folder.log())?;
    Ok(finished)
}

/// `date=2026-11-26/hour=07`, of an hour since 1970.
fn partition(hour: i64) -> String {
    let time = jiff::Timestamp::from_second(hour * 3600).unwrap_or_default();
    time.strftime("date=%Y-%m-%d/hour=%H").to_string()
}

/// Name of the file of these messages of a collector.
fn file_name(collector: &str, (first, last): (u64, u64), form: Form) -> String {
    format!("{collector}-{first:016}-{last:016}.{}", form.extension())
}

/// Removes what files that were not finished have left behind.
///
/// # Errors
/// If the data folder cannot be read.
pub fn remove_partial(folder: &Folder) -> io::Result<()> {
    let ours = format!(".{}-", folder.name);
    for path in partition_files(&folder.data)? {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if name.starts_with(&ours) && name.ends_with(".tmp") {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// All files in the partitions of a data folder, in order.
///
/// # Errors
/// If a folder cannot be read.
pub fn partition_files(data: &Path) -> io::Result<Vec<PathBuf>> {
    let within = |folder: &Path, prefix: &str| -> io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            if name.starts_with(prefix) {
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths)
    };
    let mut files = Vec::new();
    for date in within(data, "date=")? {
        for hour in within(&date, "hour=")? {
            files.extend(within(&hour, "")?);
        }
    }
    Ok(files)
}

/// The collector, the first and the last number, and the form that a finished file's name says.
pub fn name_parts(name: &str) -> Option<(&str, u64, u64, Form)> {
    let (stem, extension) = name.rsplit_once('.')?;
    let form = [Form::Parquet, Form::Ndjson]
        .into_iter()
        .find(|form| form.extension() == extension)?;
    let (rest, last) = stem.rsplit_once('-')?;
    let (collector, first) = rest.rsplit_once('-')?;
    Some((collector, first.parse().ok()?, last.parse().ok()?, form))
}

#[cfg(test)]
mod tests;
