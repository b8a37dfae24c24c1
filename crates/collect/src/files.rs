//! Finished files: from a closed segment to Parquet or NDJSON, in folders by date, hour and topic.

mod finished;
mod layout;
mod making;
mod memory;
mod ndjson;
mod open;
mod parquet;
mod partition;
mod properties;
mod summed;
mod writer;

#[cfg(feature = "kafka")]
pub(crate) use self::properties::decode as properties_of;

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use pubgauge_place::{OpenFolder, is_refused};

pub use self::finished::Finished;
pub use self::layout::Layout;
use self::making::Making;
pub use self::memory::{Made, in_memory};
pub(crate) use self::ndjson::Line;
pub(crate) use self::parquet::{merge, rows};
pub use self::parquet::{read_columns, read_columns_of};
pub use self::partition::{EventTime, Misplaced, Misplacement, Part, Partitioning, hour_of};
pub(crate) use self::summed::Summed;
use crate::file_name::{MOST_PARTS, is_folder};
use crate::folder::Folder;
use crate::log::Closed;
use crate::log::windows::SegmentReader;
use crate::manifest::Entry;

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

/// Why a segment is not made into finished files.
#[derive(Debug)]
pub enum Unfinished {
    /// The segment itself cannot be read.
    Segment(io::Error),
    /// A file cannot be written, or it was abandoned.
    Files(io::Error),
}

impl From<io::Error> for Unfinished {
    fn from(error: io::Error) -> Unfinished {
        Unfinished::Files(error)
    }
}

/// Makes a closed segment into finished files, lists them, and removes it. Names follow from the messages alone: after
/// a kill at any moment the same files are made again, in place of those that are there.
///
/// # Errors
/// If the segment cannot be read, or a file cannot be written; the segment then stays. [`io::ErrorKind::Interrupted`] once
/// `abandon` is set.
pub fn finish(
    folder: &Folder,
    closed: &Closed,
    layout: &Layout,
    abandon: &AtomicBool,
) -> Result<Finished, Unfinished> {
    let log = folder.log();
    let segment = closed.path.file_name().unwrap_or_default();
    let file = log.file(segment).map_err(Unfinished::Segment)?;
    let reader = SegmentReader::open(&file, closed.first_seq).map_err(Unfinished::Segment)?;
    let mut making = Making::new(folder, (reader.header.form, layout), closed);
    let mut failed = None;
    let read = reader.read(|bytes, message| {
        if message.seq >= closed.next_seq {
            return ControlFlow::Break(());
        }
        let put = if abandon.load(Ordering::Relaxed) {
            Err(io::ErrorKind::Interrupted.into())
        } else {
            making.add(bytes, message)
        };
        match put {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    if let Some(error) = failed {
        return Err(Unfinished::Files(error));
    }
    read.map_err(Unfinished::Segment)?;
    let finished = making.finish()?;
    let entries: Vec<Entry> = finished.files.iter().cloned().map(Entry::File).collect();
    folder.list(&entries)?;
    log.remove_file(segment)?;
    // If it is there again after a power loss, the same files are made again.
    let _ = log.sync();
    Ok(finished)
}

/// Removes what files that were not finished have left behind.
///
/// # Errors
/// If the data folder cannot be read.
pub fn remove_partial(folder: &Folder) -> io::Result<()> {
    let ours = format!(".{}-", folder.name);
    let _held = folder.hold()?;
    let refused = each_partition(folder.top(), &mut |partition| {
        for name in partition.names()? {
            let text = name.to_str().unwrap_or_default();
            if text.starts_with(&ours) && text.ends_with(".tmp") {
                partition.remove_file(&name)?;
            }
        }
        Ok(())
    })?;
    refused
        .into_iter()
        .next()
        .map_or(Ok(()), |(_, why)| Err(why))
}

/// All files in the partitions of a data folder, in order.
///
/// # Errors
/// If a folder cannot be read, or a link stands in its place.
pub fn partition_files(data: &Path) -> io::Result<Vec<PathBuf>> {
    let (files, refused) = files_and_refused(&OpenFolder::open(data)?)?;
    match refused.into_iter().next() {
        Some((_, why)) => Err(why),
        None => Ok(files),
    }
}

/// An entry in place of a partition's folder that is none: its path, and what it is.
pub(crate) type NoPartition = (PathBuf, io::Error);

/// All files in the partitions of a data folder, in order, and what stands in place of partitions.
///
/// # Errors
/// If a folder cannot be read.
pub(crate) fn files_and_refused(top: &OpenFolder) -> io::Result<(Vec<PathBuf>, Vec<NoPartition>)> {
    let mut files = Vec::new();
    let refused = each_partition(top, &mut |partition| {
        let names = partition.names()?.into_iter();
        // Partitions within it have their own turn.
        let names = names.filter(|name| !is_folder(name.to_str().unwrap_or_default()));
        files.extend(names.map(|name| partition.display_path().join(name)));
        Ok(())
    })?;
    Ok((files, refused))
}

/// Gives each partition to `take`, in order, and folders around partitions, too; returns what stands in place of one.
pub(crate) fn each_partition(
    top: &OpenFolder,
    take: &mut dyn FnMut(&OpenFolder) -> io::Result<()>,
) -> io::Result<Vec<NoPartition>> {
    let mut refused = Vec::new();
    each_within(top, MOST_PARTS, &mut refused, take)?;
    Ok(refused)
}

fn each_within(
    folder: &OpenFolder,
    depth: usize,
    refused: &mut Vec<NoPartition>,
    take: &mut dyn FnMut(&OpenFolder) -> io::Result<()>,
) -> io::Result<()> {
    for name in folder.names()? {
        let text = name.to_str().unwrap_or_default();
        if depth == 0 || !is_folder(text) {
            continue;
        }
        match folder.inside(&name) {
            Ok(one) => {
                take(&one)?;
                each_within(&one, depth - 1, refused, take)?;
            }
            // Removed meanwhile, since it was empty.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // A file of somebody's that is called like a partition.
            Err(error) if is_refused(&error) && !is_by_time(text) && folder.file(&name).is_ok() => {
            }
            Err(error) if is_refused(&error) => {
                refused.push((folder.display_path().join(name), error));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether every data folder may have such partitions.
fn is_by_time(name: &str) -> bool {
    name.starts_with("date=") || name.starts_with("hour=")
}

#[cfg(test)]
mod tests;
