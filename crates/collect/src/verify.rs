//! Everything that a data folder holds, read again: checksums, footers, numbers without gaps.

mod file;
mod streams;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::Error;
use crate::files::{name_parts, partition_files};
use crate::folder::{self, COLLECTORS};
use crate::log::scan::Scan;
use crate::log::segment::{self, Header};
use crate::manifest::{self, Entry, FileEntry};
use crate::message::Message;
pub use streams::StreamCounts;
use streams::Streams;

/// Something that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Path below the data folder, or the collector.
    pub place: String,
    pub what: String,
}

/// What was found in a data folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    pub collectors: usize,
    /// Finished files.
    pub files: u64,
    pub bytes: u64,
    /// Messages in finished files.
    pub messages: u64,
    /// Messages that are in the log alone.
    pub messages_in_log: u64,
    /// Messages by the QoS of their delivery.
    pub by_qos: [u64; 3],
    /// Messages that the broker marked as perhaps sent before.
    pub marked_duplicate: u64,
    /// Bytes at the end of a log that are no whole message. They are being written, or were when the collector was
    /// stopped, and nothing of them was acknowledged.
    pub unfinished_bytes: u64,
    /// What messages with pubgauge's header tell, by run.
    pub streams: Vec<StreamCounts>,
    pub faults: Vec<Fault>,
}

impl Verified {
    fn fault(&mut self, place: impl Into<String>, what: impl Into<String>) {
        self.faults.push(Fault {
            place: place.into(),
            what: what.into(),
        });
    }
}

/// A message that is stored, once for each copy.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'a> {
    /// Its number within its collector.
    pub seq: u64,
    pub topic: &'a [u8],
    pub qos: u8,
    /// The broker marked it as perhaps sent before.
    pub dup: bool,
    pub payload: &'a [u8],
}

impl<'a> Counted<'a> {
    fn of(message: &Message<'a>) -> Counted<'a> {
        Counted {
            seq: message.seq,
            topic: message.topic.as_bytes(),
            qos: message.qos as u8,
            dup: message.dup,
            payload: message.payload,
        }
    }
}

/// Messages of one collector: which numbers were found.
#[derive(Default)]
struct Numbers {
    /// Ranges that were found, as they came.
    found: Vec<RangeInclusive<u64>>,
}

impl Numbers {
    fn add(&mut self, seq: u64) {
        match self.found.last_mut() {
            Some(last) if *last.end() + 1 == seq => *last = *last.start()..=seq,
            _ => self.found.push(seq..=seq),
        }
    }

    /// Takes out what was added from this number on.
    fn forget(&mut self, first: u64) {
        while self
            .found
            .last()
            .is_some_and(|range| *range.start() >= first)
        {
            self.found.pop();
        }
        if let Some(last) = self.found.last_mut().filter(|last| *last.end() >= first) {
            *last = *last.start()..=first - 1;
        }
    }

    /// Sorted, without what lies in several; and how many numbers were found more than once.
    fn merged(mut self) -> (Vec<RangeInclusive<u64>>, u64) {
        self.found.sort_by_key(|range| *range.start());
        let mut merged: Vec<RangeInclusive<u64>> = Vec::new();
        let mut twice = 0;
        for range in self.found {
            match merged.last_mut() {
                Some(last) if *range.start() <= *last.end() + 1 => {
                    let common = last.end().min(range.end()).checked_sub(*range.start());
                    twice += common.map_or(0, |common| common + 1);
                    let end = *last.end().max(range.end());
                    *last = *last.start()..=end;
                }
                _ => merged.push(range),
            }
        }
        (merged, twice)
    }
}

/// Reads a data folder. A collector may work in it meanwhile.
///
/// # Errors
/// If there is none, or a folder cannot be read.
pub fn verify(data: &Path) -> Result<Verified, Error> {
    verify_each(data, &mut |_| {})
}

/// As [`verify`]; each message is given to `take`, of each collector in the order of numbers.
///
/// # Errors
/// As [`verify`].
pub fn verify_each(data: &Path, take: &mut dyn FnMut(&Counted<'_>)) -> Result<Verified, Error> {
    if !data.join(COLLECTORS).is_dir() {
        return Err(Error::input(
            format!("{} is no data folder of a collector", data.display()),
            format!("expected the folder of `to`, or of --to: it has a folder `{COLLECTORS}`"),
        ));
    }
    let unreadable = |error: std::io::Error| Error::failed(format!("{}: {error}", data.display()));
    let paths = partition_files(data).map_err(unreadable)?;
    let mut verified = Verified::default();
    let mut counts = Counts {
        by_qos: [0; 3],
        marked_duplicate: 0,
        streams: Streams::default(),
        take,
    };
    let mut owned = BTreeSet::new();
    for name in folder::names(data)? {
        verified.collectors += 1;
        collector(data, &name, &paths, &mut verified, &mut counts, &mut owned)?;
    }
    for path in &paths {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if name_parts(name).is_some() && !owned.contains(path) {
            verified.fault(
                below(data, path),
                "is in no collector's list of finished files",
            );
        }
    }
    verified.by_qos = counts.by_qos;
    verified.marked_duplicate = counts.marked_duplicate;
    verified.streams = counts.streams.counts();
    Ok(verified)
}

fn below(data: &Path, path: &Path) -> String {
    path.strip_prefix(data)
        .unwrap_or(path)
        .display()
        .to_string()
}

fn collector(
    data: &Path,
    name: &str,
    paths: &[PathBuf],
    verified: &mut Verified,
    counts: &mut Counts<'_>,
    owned: &mut BTreeSet<PathBuf>,
) -> Result<(), Error> {
    let own = data.join(COLLECTORS).join(name);
    let unreadable = |error: std::io::Error| Error::failed(format!("{}: {error}", own.display()));
    // Opened before the list is read: what leaves the log meanwhile is in the list.
    let segments = open_segments(&own.join("log")).map_err(unreadable)?;
    if segments.is_empty() {
        verified.fault(name, "its log is missing");
    }
    let list = own.join("files.ndjson");
    let (entries, wrong) = manifest::read(&list).map_err(unreadable)?;
    for line in wrong {
        verified.fault(below(data, &list), format!("line {line} is no entry"));
    }
    let mut numbers = Numbers::default();
    let mut files: BTreeMap<&str, &FileEntry> = BTreeMap::new();
    for entry in &entries {
        match entry {
            // A repeated compaction lists a file again.
            Entry::File(file) => drop(files.insert(&file.path, file)),
            Entry::NotStored { first, last } => numbers.found.push(*first..=*last),
        }
    }
    for file in files.into_values() {
        owned.insert(data.join(&file.path));
        let mut take = |counted: Counted<'_>| {
            numbers.add(counted.seq);
            counts.add(&counted);
        };
        match file::read(data, file, &mut take) {
            Err(what) => {
                verified.fault(&file.path, what);
                // What it lacks is told with it.
                numbers.forget(file.first);
                numbers.found.push(file.first..=file.last);
            }
            Ok(()) => {
                verified.files += 1;
                verified.bytes += file.bytes;
                verified.messages += file.messages;
            }
        }
    }
    let (in_files, twice) = numbers.merged();
    if twice > 0 {
        verified.fault(name, format!("{twice} messages are in several files"));
    }
    let mut in_log = Numbers::default();
    let mut next = 1;
    for (nth, one) in segments.iter().enumerate() {
        let until = segments.get(nth + 1).map(|one| one.first_seq);
        let mut take = |message: &Message<'_>| {
            in_log.add(message.seq);
            if !in_files.iter().any(|range| range.contains(&message.seq)) {
                verified.messages_in_log += 1;
                counts.add(&Counted::of(message));
            }
        };
        let read = one.read(until, &mut take).map_err(unreadable)?;
        next = until.unwrap_or(read.next_seq);
        verified.unfinished_bytes += read.unfinished_bytes;
        for what in read.faults {
            verified.fault(below(data, &one.path), what);
        }
    }
    let (in_log, _) = in_log.merged();
    // A file that is made anew from a segment that is there is not in the list yet.
    for path in paths {
        let file = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(name_parts);
        if let Some((_, first, last, _)) = file.filter(|(collector, ..)| *collector == name)
            && in_log
                .iter()
                .any(|range| range.contains(&first) && range.contains(&last))
        {
            owned.insert(path.clone());
        }
    }
    let all = Numbers {
        found: in_files.into_iter().chain(in_log).collect(),
    };
    let mut expected = 1;
    for range in all.merged().0 {
        lacks(name, expected, *range.start(), verified);
        expected = *range.end() + 1;
    }
    lacks(name, expected, next, verified);
    Ok(())
}

fn lacks(collector: &str, first: u64, next: u64, verified: &mut Verified) {
    if first < next {
        verified.fault(
            collector,
            format!("messages {first} to {} are missing", next - 1),
        );
    }
}

/// What is counted of all messages.
struct Counts<'a> {
    by_qos: [u64; 3],
    marked_duplicate: u64,
    streams: Streams,
    take: &'a mut dyn FnMut(&Counted<'_>),
}

impl Counts<'_> {
    fn add(&mut self, counted: &Counted<'_>) {
        if let Some(by_qos) = self.by_qos.get_mut(usize::from(counted.qos)) {
            *by_qos += 1;
        }
        self.marked_duplicate += u64::from(counted.dup);
        self.streams.add(counted.topic, counted.payload);
        (self.take)(counted);
    }
}

/// A segment, which can be read even if it is removed meanwhile.
struct OpenSegment {
    first_seq: u64,
    path: PathBuf,
    file: File,
}

/// What was found in a segment beside its messages.
struct SegmentRead {
    next_seq: u64,
    unfinished_bytes: u64,
    faults: Vec<String>,
}

fn open_segments(folder: &Path) -> io::Result<Vec<OpenSegment>> {
    let segments = match segment::list(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        other => other?,
    };
    let mut open = Vec::new();
    for (first_seq, path) in segments {
        match File::open(&path) {
            // A collector that runs has made it into files meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            file => open.push(OpenSegment {
                first_seq,
                path,
                file: file?,
            }),
        }
    }
    Ok(open)
}

impl OpenSegment {
    /// Gives each of its messages to `take`. `until` is the first number of the next segment; the last one has none,
    /// and may be being written.
    fn read(
        &self,
        until: Option<u64>,
        take: &mut dyn FnMut(&Message<'_>),
    ) -> io::Result<SegmentRead> {
        let mut bytes = Vec::new();
        (&self.file).read_to_end(&mut bytes)?;
        let mut faults = Vec::new();
        let (header, whole) = Header::read(&bytes, self.first_seq);
        if !whole && bytes.len() >= segment::HEADER_LEN {
            faults.push("its header is damaged".to_owned());
        }
        let mut scan = Scan::new(&bytes, header.mark, self.first_seq);
        for message in scan.by_ref() {
            if until.is_none_or(|until| message.seq < until) {
                take(&message);
            }
        }
        let scanned = scan.finish();
        for gap in scanned
            .gaps
            .iter()
            .filter(|gap| gap.damaged || until.is_some())
        {
            faults.push(format!(
                "bytes {} to {} are damaged",
                gap.bytes.start, gap.bytes.end
            ));
        }
        let unfinished = if until.is_none() {
            bytes.len() - scanned.end
        } else {
            0
        };
        Ok(SegmentRead {
            next_seq: scanned.next_seq,
            unfinished_bytes: unfinished as u64,
            faults,
        })
    }
}

#[cfg(test)]
mod tests;
