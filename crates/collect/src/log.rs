//! The log: messages that are acknowledged once they stand in it, until they are in finished files.

pub mod scan;
pub mod segment;
mod segment_status;
pub mod stored;
pub mod windows;

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pubgauge_place::OpenFolder;
use rustix::fs::fstatvfs;

use crate::config::Form;
use pubgauge_net::random::random;
use scan::Gap;
use segment::{HEADER_LEN, Header, Segment};
pub use segment_status::SegmentStatus;
use stored::Stored;
use windows::SegmentReader;

/// When a segment is closed, and how much room the log leaves.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// A segment of at least so many bytes is closed.
    pub segment_bytes: u64,
    /// A segment whose first message is so old is closed.
    pub segment_age: Duration,
    /// The log takes nothing when fewer bytes are free: finished files are made there.
    pub reserve_bytes: u64,
}

/// A segment that is not written any more, to be made into finished files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    pub path: PathBuf,
    pub first_seq: u64,
    /// Number of the first message that is not in it. What stands in it from there on was not acknowledged, and
    /// stands in the next segment.
    pub next_seq: u64,
}

/// Findings in a log.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Number of the next message.
    pub next_seq: u64,
    pub closed: Vec<Closed>,
    /// Bytes at the end of the last segment that are no whole message, and were cut off.
    pub cut_bytes: u64,
    /// Whether it was noted how far the log was on disk: nothing of what was cut off was acknowledged then.
    pub is_noted: bool,
    /// Messages missing in the last segment.
    pub gaps: Vec<Gap>,
    /// Numbers of messages that were on disk, and are in no file and in no segment that is there.
    pub missing: Vec<std::ops::Range<u64>>,
}

/// The log of a collector.
#[derive(Debug)]
pub struct Log {
    folder: Arc<OpenFolder>,
    mark: u32,
    form: Form,
    limits: Limits,
    segment: Option<Segment>,
    /// None where it cannot be written.
    stored: Option<Stored>,
    first_seq: u64,
    /// Number of the next message.
    next_seq: u64,
    /// When its first message came, and in which hour since 1970.
    begun: Option<(Instant, i64)>,
}

impl Log {
    /// Takes the log in a folder; messages are to become files of this form. Reads the last segment alone: the others
    /// were synced before it was made.
    ///
    /// # Errors
    /// If the folder or the last segment cannot be read or written, or a link, a device or a pipe is in place of a segment.
    pub fn open(
        folder: &Arc<OpenFolder>,
        form: Form,
        limits: Limits,
        at_least: u64,
    ) -> io::Result<(Log, Recovered)> {
        let noted = stored::read(folder)?;
        let segments = segment::list(folder)?;
        let mut recovered = Recovered {
            next_seq: at_least,
            is_noted: noted.is_some(),
            ..Recovered::default()
        };
        if let Some((first_seq, _)) = segments.first()
            && *first_seq > at_least
        {
            recovered.missing.push(at_least..*first_seq);
        }
        let mut empty = Vec::new();
        for (nth, (first_seq, name)) in segments.iter().enumerate() {
            let file = folder.file_to_change(name)?;
            let next = segments.get(nth + 1);
            let next_seq = match next {
                Some((next_seq, _)) => *next_seq,
                None => recover_last(&file, *first_seq, noted, &mut recovered)?,
            };
            if next_seq > *first_seq {
                let (path, first_seq) = (folder.display_path().join(name), *first_seq);
                recovered.closed.push(Closed {
                    path,
                    first_seq,
                    next_seq,
                });
            } else {
                empty.push(name);
            }
            recovered.next_seq = recovered.next_seq.max(next_seq);
        }
        if let Some(noted) = noted.filter(|noted| *noted > recovered.next_seq) {
            recovered.missing.push(recovered.next_seq..noted);
            recovered.next_seq = noted;
        }
        let mut log = Log {
            folder: folder.clone(),
            mark: random() as u32,
            form,
            limits,
            segment: None,
            stored: None,
            first_seq: recovered.next_seq,
            next_seq: recovered.next_seq,
            begun: None,
        };
        match log.begin(recovered.next_seq) {
            // The first commit tries again, and tells.
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {}
            begun => drop(begun?),
        }
        // Without it a tail that is gone is not told; with a full disk that is what can be had.
        log.stored = match Stored::begin(folder, recovered.next_seq) {
            Err(error) if error.kind() == io::ErrorKind::StorageFull => None,
            begun => Some(begun?),
        };
        let present = log.segment.as_ref().and_then(|one| one.path.file_name());
        let is_present = |name: &String| present == Some(name.as_ref());
        for name in empty.into_iter().filter(|name| !is_present(name)) {
            folder.remove_file(name)?;
        }
        Ok((log, recovered))
    }

    /// Beginning of its frames.
    pub fn mark(&self) -> u32 {
        self.mark
    }

    fn begin(&mut self, first_seq: u64) -> io::Result<&mut Segment> {
        let header = Header {
            first_seq,
            mark: self.mark,
            form: self.form,
        };
        let segment = Segment::create(&self.folder, header)?;
        self.first_seq = first_seq;
        self.begun = None;
        Ok(self.segment.insert(segment))
    }

    /// Writes the frames of a commit, whose first message has this number, and returns when they are on disk. After
    /// an error none of them counts, and the same commit may be tried again; what was written before and is closed by
    /// that is returned beside the error.
    ///
    /// # Errors
    /// If less room is free than is kept, or they cannot be written.
    pub fn commit(
        &mut self,
        frames: &[u8],
        seqs: std::ops::Range<u64>,
        hour: i64,
    ) -> Result<(), (io::Error, Option<Closed>)> {
        let stored = self.room(frames.len() as u64).and_then(|()| {
            let segment = match self.segment.take() {
                Some(segment) => self.segment.insert(segment),
                None => self.begin(seqs.start)?,
            };
            segment.append(frames)
        });
        match stored {
            Ok(()) => {
                self.begun.get_or_insert_with(|| (Instant::now(), hour));
                self.next_seq = seqs.end;
                if let Some(stored) = &mut self.stored {
                    stored.note(seqs.end);
                }
                Ok(())
            }
            Err(error) => Err((error, self.give_up())),
        }
    }

    /// Writes the present segment under its name again, if somebody has removed it; its path, if so.
    ///
    /// # Errors
    /// If it cannot be written. Nothing may be stored then: it would be gone with the next start.
    pub fn restore(&mut self) -> io::Result<Option<PathBuf>> {
        match self.segment.as_mut().filter(|one| one.is_removed()) {
            None => Ok(None),
            Some(segment) => {
                segment.restore(&self.folder)?;
                Ok(Some(segment.path.clone()))
            }
        }
    }

    /// Bytes that are free on its disk for this user.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn free_bytes(&self) -> io::Result<u64> {
        let about = fstatvfs(&*self.folder)?;
        Ok(about.f_bavail * about.f_frsize)
    }

    /// Bytes that it leaves free.
    pub fn reserve_bytes(&self) -> u64 {
        self.limits.reserve_bytes
    }

    /// The number that the present segment begins with, and how it stands.
    pub fn present(&self) -> Option<(u64, SegmentStatus)> {
        let segment = self.segment.as_ref()?;
        let status = SegmentStatus {
            bytes: segment.durable,
            begun: self.begun.map(|(begun, _)| begun),
        };
        Some((self.first_seq, status))
    }

    fn room(&self, more: u64) -> io::Result<()> {
        let free = self.free_bytes()?;
        if free < self.limits.reserve_bytes + more {
            let kept = self.limits.reserve_bytes;
            return Err(io::Error::new(
                io::ErrorKind::StorageFull,
                format!("{free} bytes are free; {kept} are kept for finished files"),
            ));
        }
        Ok(())
    }

    /// Leaves the present segment, of which only what is on disk for certain counts.
    fn give_up(&mut self) -> Option<Closed> {
        let segment = self.segment.take()?;
        let cut = segment.cut();
        self.begun = None;
        if segment.is_empty() {
            // The next segment has the same name.
            drop(cut);
            return None;
        }
        Some(Closed {
            path: segment.path,
            first_seq: self.first_seq,
            next_seq: self.next_seq,
        })
    }

    /// Whether the present segment is large or old enough, or another hour has begun.
    pub fn is_due(&self, hour: i64) -> bool {
        let bytes = self.segment.as_ref().map_or(0, |segment| segment.durable);
        self.begun.is_some_and(|(begun, its_hour)| {
            bytes >= self.limits.segment_bytes
                || begun.elapsed() >= self.limits.segment_age
                || hour != its_hour
        })
    }

    /// Closes the present segment, if it holds messages, and begins the next one.
    ///
    /// # Errors
    /// If no segment can be made; the present one then stays.
    pub fn rotate(&mut self) -> io::Result<Option<Closed>> {
        if self.begun.is_none() {
            return Ok(None);
        }
        let Some(old) = self.segment.take() else {
            return Ok(None);
        };
        let closed = Closed {
            path: old.path.clone(),
            first_seq: self.first_seq,
            next_seq: self.next_seq,
        };
        let (begun, first_seq) = (self.begun, self.first_seq);
        if let Err(error) = self.begin(self.next_seq) {
            (self.segment, self.begun, self.first_seq) = (Some(old), begun, first_seq);
            return Err(error);
        }
        if let Some(stored) = &self.stored {
            stored.sync();
        }
        Ok(Some(closed))
    }
}

/// Reads the last segment, cuts off what is no message at its end, and returns the number of the next message. What was
/// on disk once, as it was `noted`, is not cut off: making the segment into files tells what of it cannot be read.
fn recover_last(
    file: &File,
    first_seq: u64,
    noted: Option<u64>,
    recovered: &mut Recovered,
) -> io::Result<u64> {
    let reader = SegmentReader::open(file, first_seq)?;
    let mut scanned = reader.read(|_, _| ControlFlow::Continue(()))?;
    let noted = noted.unwrap_or_default();
    for gap in &mut scanned.gaps {
        gap.damaged |= gap.seqs.start < noted;
    }
    if noted > scanned.next_seq {
        recovered.gaps = scanned.gaps;
        return Ok(noted);
    }
    if scanned.end < reader.len && reader.len > HEADER_LEN as u64 {
        recovered.cut_bytes = reader.len - scanned.end;
        file.set_len(scanned.end)?;
        file.sync_all()?;
    }
    recovered.gaps = scanned.gaps;
    Ok(scanned.next_seq)
}

#[cfg(test)]
mod tests;
