//! Finished files: from a closed segment to Parquet or NDJSON, by date and hour.

mod ndjson;
mod parquet;
mod properties;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;

pub(crate) use self::ndjson::Line;
pub use self::parquet::read_columns;
use crate::config::Form;
use crate::folder::{Folder, sync_folder};
use crate::log::Closed;
use crate::log::scan::Scan;
use crate::log::segment::Header;
use crate::manifest::{self, Entry, FileEntry};
use crate::message::Message;

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
}

/// Makes a closed segment into finished files, lists them, and removes it. Names follow from the messages alone: after
/// a kill at any moment the same files are made again, in place of those that are there.
///
/// # Errors
/// If a file cannot be read or written; the segment then stays. [`io::ErrorKind::Interrupted`] once `abandon` is set.
pub fn finish(folder: &Folder, closed: &Closed, abandon: &AtomicBool) -> io::Result<Finished> {
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
            finished.files.push(done.close()?);
        }
        let file = match &mut open {
            Some(file) => file,
            none => none.insert(Open::create(folder, header.form, hour, message.seq)?),
        };
        file.put(&bytes, &message)?;
    }
    if let Some(done) = open {
        finished.files.push(done.close()?);
    }
    if expected < closed.next_seq {
        finished.damaged.push((expected, closed.next_seq - 1));
    }
    let entries: Vec<Entry> = finished.files.iter().cloned().map(Entry::File).collect();
    manifest::append(&folder.manifest(), &entries)?;
    std::fs::remove_file(&closed.path)?;
    sync_folder(&folder.log())?;
    Ok(finished)
}

/// A file's form, while it is written.
enum Writer {
    Parquet(Box<parquet::Writer<Summed>>),
    Ndjson(Summed),
}

/// A file that is being made, under another name until it is finished.
struct Open<'a> {
    folder: &'a Folder,
    form: Form,
    hour: i64,
    /// Folder of the partition, below the data folder.
    partition: String,
    partial: PathBuf,
    first: u64,
    last: u64,
    messages: u64,
    writer: Writer,
}

impl<'a> Open<'a> {
    fn create(folder: &'a Folder, form: Form, hour: i64, first: u64) -> io::Result<Open<'a>> {
        let partition = partition(hour);
        let place = folder.data.join(&partition);
        make_folders(&folder.data, &place)?;
        let partial = place.join(format!(".{}-{first:016}.tmp", folder.name));
        let summed = Summed::new(File::create(&partial)?);
        let writer = match form {
            Form::Parquet => Writer::Parquet(Box::new(parquet::Writer::new(summed)?)),
            Form::Ndjson => Writer::Ndjson(summed),
        };
        Ok(Open {
            folder,
            form,
            hour,
            partition,
            partial,
            first,
            last: first,
            messages: 0,
            writer,
        })
    }

    /// Adds a message, whose texts lie in `bytes`.
    fn put(&mut self, bytes: &Bytes, message: &Message<'_>) -> io::Result<()> {
        self.last = message.seq;
        self.messages += 1;
        match &mut self.writer {
            Writer::Parquet(writer) => writer.put(bytes, message),
            Writer::Ndjson(out) => ndjson::write(message, out),
        }
    }

    fn close(self) -> io::Result<FileEntry> {
        let summed = match self.writer {
            Writer::Parquet(writer) => writer.finish()?,
            Writer::Ndjson(summed) => summed,
        };
        let (bytes, crc32) = summed.finish()?;
        let (name, first, last) = (&self.folder.name, self.first, self.last);
        let name = format!("{name}-{first:016}-{last:016}.{}", self.form.extension());
        let place = self.folder.data.join(&self.partition);
        std::fs::rename(&self.partial, place.join(&name))?;
        sync_folder(&place)?;
        let path = format!("{}/{name}", self.partition);
        Ok(FileEntry {
            path,
            bytes,
            crc32,
            first,
            last,
            messages: self.messages,
        })
    }
}

/// `date=2026-11-26/hour=07`, of an hour since 1970.
fn partition(hour: i64) -> String {
    let time = jiff::Timestamp::from_second(hour * 3600).unwrap_or_default();
    time.strftime("date=%Y-%m-%d/hour=%H").to_string()
}

/// Makes the folders down to `place` that are missing, each on disk before the next.
fn make_folders(data: &Path, place: &Path) -> io::Result<()> {
    if place.is_dir() {
        return Ok(());
    }
    std::fs::create_dir_all(place)?;
    let mut folder = place;
    while folder != data {
        let Some(parent) = folder.parent() else {
            break;
        };
        sync_folder(parent)?;
        folder = parent;
    }
    Ok(())
}

/// A file with its length and checksum.
struct Summed {
    file: BufWriter<File>,
    bytes: u64,
    sum: crc32fast::Hasher,
}

impl Summed {
    fn new(file: File) -> Summed {
        let file = BufWriter::with_capacity(256 << 10, file);
        Summed {
            file,
            bytes: 0,
            sum: crc32fast::Hasher::new(),
        }
    }

    /// Puts it on disk; length and checksum.
    fn finish(mut self) -> io::Result<(u64, u32)> {
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        Ok((self.bytes, self.sum.finalize()))
    }
}

impl Write for Summed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.sum.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
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
