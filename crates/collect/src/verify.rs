//! Everything that a data folder holds, read again: checksums, footers, numbers without gaps.

mod among;
mod elsewhere;
pub(crate) mod file;
mod found;
pub(crate) mod merged;
pub(crate) mod numbers;
mod segments;
mod sequence;
mod streams;

use std::collections::BTreeSet;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use pubgauge_place::{OpenFolder, is_refused};

use crate::Error;
use crate::file_name::{is_stem_of, name_parts};
use crate::files::files_and_refused;
use crate::folder::{self, LOG};
use crate::log::stored;
use crate::manifest::{self, Entry, LIST, Uploaded};
use crate::message::Message;
use among::Unread;
pub use elsewhere::Look;
use elsewhere::{Elsewhere, RemoteFile};
pub use found::{Discrepancy, NotSeen, Verified};
use numbers::Numbers;
pub use sequence::{Gap, Sequences, SequencesFound};
pub use streams::StreamCounts;
use streams::Streams;

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
    fn from_message(message: &Message<'a>) -> Counted<'a> {
        Counted {
            seq: message.seq,
            topic: message.topic.as_bytes(),
            qos: message.qos as u8,
            dup: message.dup,
            payload: message.payload,
        }
    }
}

/// Reads a data folder. A collector may work in it meanwhile. Files that were moved to a store are not looked at: that
/// takes a store that the user names ([`verify_with`]).
///
/// # Errors
/// If there is none, or a folder cannot be read.
pub fn verify(data: &Path) -> Result<Verified, Error> {
    verify_each(data, &mut |_| {})
}

/// As [`verify`]; each message is given to `take`, of each collector in the order of numbers, as far
/// as its files lie by when messages were received.
///
/// # Errors
/// As [`verify`].
pub fn verify_each(data: &Path, take: &mut dyn FnMut(&Counted<'_>)) -> Result<Verified, Error> {
    verify_with(data, Look::default(), take)
}

/// As [`verify_each`], and files that were moved to a store are looked at as `look` says.
///
/// # Errors
/// As [`verify`].
pub fn verify_with(
    data: &Path,
    look: Look,
    take: &mut dyn FnMut(&Counted<'_>),
) -> Result<Verified, Error> {
    verify_all(&[data], look, take)
}

/// As [`verify_with`], of several data folders, as those of a group's members are.
///
/// # Errors
/// As [`verify`].
pub fn verify_all(
    folders: &[impl AsRef<Path>],
    look: Look,
    take: &mut dyn FnMut(&Counted<'_>),
) -> Result<Verified, Error> {
    let mut verified = Verified::default();
    let mut counts = Counts {
        by_qos: [0; 3],
        marked_duplicate: 0,
        streams: Streams::default(),
        take,
    };
    let mut elsewhere = Elsewhere::new(look);
    for data in folders {
        let data = data.as_ref();
        let before = verified.faults.len();
        folder_of(data, &mut verified, &mut counts, &mut elsewhere)?;
        if folders.len() > 1 {
            for fault in &mut verified.faults[before..] {
                fault.place = format!("{}: {}", data.display(), fault.place);
            }
        }
    }
    verified.not_seen = elsewhere.not_seen();
    verified.by_qos = counts.by_qos;
    verified.marked_duplicate = counts.marked_duplicate;
    verified.streams = counts.streams.counts();
    Ok(verified)
}

/// Reads one data folder.
fn folder_of(
    data: &Path,
    verified: &mut Verified,
    counts: &mut Counts<'_>,
    elsewhere: &mut Elsewhere,
) -> Result<(), Error> {
    let (top, collectors) = folder::open_data(data)?;
    let unreadable = |error: std::io::Error| Error::failed(format!("{}: {error}", data.display()));
    let (paths, refused) = files_and_refused(&top).map_err(unreadable)?;
    for (path, why) in refused {
        verified.fault(below(data, &path), format!("is not read: {why}"));
    }
    let mut owned = BTreeSet::new();
    for name in folder::names(data)? {
        verified.collectors += 1;
        let mut reading = Reading {
            verified,
            counts,
            owned: &mut owned,
            elsewhere,
        };
        collector((&top, &collectors), &name, &paths, &mut reading)?;
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
    Ok(())
}

fn below(data: &Path, path: &Path) -> String {
    path.strip_prefix(data)
        .unwrap_or(path)
        .display()
        .to_string()
}

/// Receives what is read.
struct Reading<'a, 'b> {
    verified: &'a mut Verified,
    counts: &'a mut Counts<'b>,
    /// Files that a collector has listed.
    owned: &'a mut BTreeSet<PathBuf>,
    elsewhere: &'a mut Elsewhere,
}

fn collector(
    (top, collectors): (&OpenFolder, &OpenFolder),
    name: &str,
    paths: &[PathBuf],
    reading: &mut Reading<'_, '_>,
) -> Result<(), Error> {
    let Reading {
        verified,
        counts,
        owned,
        elsewhere,
    } = reading;
    let data = top.display_path();
    let shown = collectors.display_path().join(name);
    let unreadable = |error: io::Error| Error::failed(format!("{}: {error}", shown.display()));
    let own = collectors.inside(name).map_err(unreadable)?;
    // Read first, and segments opened before the list is read: what leaves the log meanwhile is in the list.
    let mut noted = None;
    let segments = match own.inside(LOG) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) if is_refused(&error) => {
            verified.fault(below(data, &shown), format!("is not read: {error}"));
            Vec::new()
        }
        log => {
            let log = log.map_err(unreadable)?;
            noted = match stored::read(&log) {
                Err(error) if is_refused(&error) => {
                    verified.fault(
                        below(data, &log.display_path().join(stored::NAME)),
                        format!("is not read: {error}"),
                    );
                    None
                }
                noted => noted.map_err(unreadable)?,
            };
            let (segments, refused) = segments::open(&log).map_err(unreadable)?;
            for (path, what) in refused {
                verified.fault(below(data, &path), what);
            }
            segments
        }
    };
    if segments.is_empty() {
        verified.fault(name, "its log is missing");
    }
    let list = shown.join(LIST);
    let (entries, wrong) = match manifest::read(&own) {
        Err(error) if is_refused(&error) => {
            verified.fault(below(data, &list), format!("is not read: {error}"));
            Default::default()
        }
        read => read.map_err(unreadable)?,
    };
    for line in wrong {
        verified.fault(below(data, &list), format!("line {line} is no entry"));
    }
    let mut numbers = Numbers::default();
    let mut unread = Unread::default();
    let mut lost = BTreeSet::new();
    for entry in &entries {
        match entry {
            Entry::NotStored { first, last } => numbers.found.push(*first..=*last),
            Entry::Lost { first, last } => {
                lost.insert((*first, *last));
            }
            _ => {}
        }
    }
    let listed = manifest::files(&entries, &|file| folder::holds(top, file));
    merged::find_again(top, (&entries, &listed), paths, verified, owned);
    let mut files: Vec<_> = listed.into_values().collect();
    // The files of a segment one after the other: what lies among each other's numbers becomes one range then.
    files.sort_by_key(|(file, _)| file.span());
    for (file, uploaded) in files {
        owned.insert(data.join(&file.path));
        let mut whole = file.clone();
        let seen = match file::content(top, file) {
            Err(what) => RemoteFile::Wrong(what),
            Ok(Some(bytes)) => RemoteFile::Content(bytes),
            Ok(None) => match uploaded.cloned().or_else(|| moved_since(&own, &file.path)) {
                Some(uploaded) => elsewhere.look(file, &uploaded),
                None => match merged::find_since(top, &own, file) {
                    Some((into, bytes)) => {
                        whole = into;
                        RemoteFile::Content(bytes)
                    }
                    None => RemoteFile::Wrong("is missing".into()),
                },
            },
        };
        let content = match seen {
            RemoteFile::Content(bytes) => Ok(bytes),
            RemoteFile::Wrong(what) => Err(what),
            RemoteFile::Not => {
                unread.add(file, &mut numbers);
                continue;
            }
            RemoteFile::Told => {
                unread.add(file, &mut numbers);
                verified.files_elsewhere += 1;
                verified.messages_elsewhere += file.messages;
                continue;
            }
        };
        let mut own = Numbers::default();
        let mut take = |counted: Counted<'_>| {
            // Of one that it was merged into meanwhile, its own.
            if whole.path == file.path || (file.first..=file.last).contains(&counted.seq) {
                own.add(counted.seq);
                counts.add(&counted);
            }
        };
        match content.and_then(|bytes| file::read(bytes, &whole, &mut take)) {
            Err(what) => {
                verified.fault(&file.path, what);
                // Its gaps are told with it.
                unread.add(file, &mut numbers);
            }
            Ok(()) => {
                numbers.take(own);
                verified.files += 1;
                verified.bytes += file.bytes;
                verified.messages += file.messages;
            }
        }
    }
    let (mut in_files, twice) = numbers.merged();
    if twice > 0 {
        verified.fault(name, format!("{twice} messages are in several files"));
    }
    let lost_ranges = lost.iter().map(|(first, last)| *first..=*last);
    let known: Numbers = in_files.iter().cloned().chain(lost_ranges).collect();
    let (ranges, wrong) = unread.settle(&known.merged().0);
    for what in wrong {
        verified.fault(name, what);
    }
    in_files.extend(ranges);
    let mut in_log = Numbers::default();
    let mut next = 1;
    for (nth, one) in segments.iter().enumerate() {
        let until = segments.get(nth + 1).map(|one| one.first_seq);
        let mut take = |message: &Message<'_>| {
            in_log.add(message.seq);
            if !in_files.iter().any(|range| range.contains(&message.seq)) {
                verified.messages_in_log += 1;
                counts.add(&Counted::from_message(message));
            }
        };
        let read = one.read(until, noted, &mut take).map_err(unreadable)?;
        next = until.unwrap_or(read.next_seq);
        verified.unfinished_bytes += read.unfinished_bytes;
        for what in read.faults {
            verified.fault(below(data, &one.path), what);
        }
    }
    next = next.max(noted.unwrap_or_default());
    let (in_log, _) = in_log.merged();
    // A file that is made anew from a segment that is there is not in the list yet.
    for path in paths {
        let file = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(name_parts);
        if let Some((_, first, last, _)) = file.filter(|(stem, ..)| is_stem_of(stem, name))
            && in_log
                .iter()
                .any(|range| range.contains(&first) && range.contains(&last))
        {
            owned.insert(path.clone());
        }
    }
    let mut all: Numbers = in_files.into_iter().chain(in_log).collect();
    // A segment that was set aside may have been repaired, and put back.
    let is_there = |(first, last): &(u64, u64)| {
        let holds = |range: &RangeInclusive<u64>| range.contains(first) && range.contains(last);
        all.found.iter().any(holds)
    };
    lost.retain(|range| !is_there(range));
    for (first, last) in lost {
        all.found.push(first..=last);
        verified.fault(
            name,
            format!(
                "messages {first} to {last} are lost: they were on disk, may have been acknowledged, and cannot be read"
            ),
        );
    }
    let mut expected = 1;
    for range in all.merged().0 {
        lacks(name, expected, *range.start(), verified);
        expected = range.end().saturating_add(1);
    }
    lacks(name, expected, next, verified);
    Ok(())
}

/// Where a file went that a collector at work has moved since the list was read.
fn moved_since(own: &OpenFolder, path: &str) -> Option<Uploaded> {
    let (entries, _) = manifest::read(own).ok()?;
    let files = manifest::files(&entries, &|_| false);
    files.get(path)?.1.cloned()
}

fn lacks(collector: &str, first: u64, next: u64, verified: &mut Verified) {
    if first < next {
        verified.fault(
            collector,
            format!("messages {first} to {} are missing", next - 1),
        );
    }
}

/// Counts of all messages.
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

#[cfg(test)]
mod tests;
