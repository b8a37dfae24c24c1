//! The segments of a log, read again.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;

use pubgauge_place::{OpenFolder, is_refused};

use crate::log::segment::{self, ASIDE};
use crate::log::windows::SegmentReader;
use crate::message::Message;

/// A segment, which can be read even if it is removed meanwhile.
pub struct OpenSegment {
    pub first_seq: u64,
    pub path: PathBuf,
    file: File,
}

/// Findings in a segment beside its messages.
pub struct SegmentRead {
    pub next_seq: u64,
    pub unfinished_bytes: u64,
    pub faults: Vec<String>,
}

/// A segment that is none, and why it is not read.
pub type NoSegment = (PathBuf, String);

/// How often a log is listed in which no segment is found.
const LISTINGS: usize = 10;

/// Opens all segments of a log; those that are links, devices or pipes, and those that were set aside, are told beside the
/// others.
pub fn open(folder: &OpenFolder) -> io::Result<(Vec<OpenSegment>, Vec<NoSegment>)> {
    for _ in 1..LISTINGS {
        let found = open_listed(folder)?;
        if !found.0.is_empty() {
            return Ok(found);
        }
        // A collector that runs has begun a segment since, and made the one that was listed into files.
    }
    open_listed(folder)
}

fn open_listed(folder: &OpenFolder) -> io::Result<(Vec<OpenSegment>, Vec<NoSegment>)> {
    let (mut open, mut refused) = (Vec::new(), Vec::new());
    for name in folder.names()? {
        if name.to_str().is_some_and(|name| name.ends_with(ASIDE)) {
            let what = "is a segment that a collector could not read, and has set aside";
            refused.push((folder.display_path().join(name), what.to_owned()));
        }
    }
    for (first_seq, name) in segment::list(folder)? {
        let path = folder.display_path().join(&name);
        match folder.file(&name) {
            // A collector that runs has made it into files meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if is_refused(&error) => {
                refused.push((path, format!("is not read: {error}")));
            }
            file => open.push(OpenSegment {
                first_seq,
                path,
                file: file?,
            }),
        }
    }
    Ok((open, refused))
}

impl OpenSegment {
    /// Gives each of its messages to `take`. `until` is the first number of the next segment; the last one has none,
    /// and may be being written. All messages before the number that was `noted` were on disk once.
    pub fn read(
        &self,
        until: Option<u64>,
        noted: Option<u64>,
        take: &mut dyn FnMut(&Message<'_>),
    ) -> io::Result<SegmentRead> {
        let reader = match SegmentReader::open(&self.file, self.first_seq) {
            Err(error) if is_refused(&error) => {
                return Ok(SegmentRead {
                    next_seq: self.first_seq,
                    unfinished_bytes: 0,
                    faults: vec![format!("is not read: {error}")],
                });
            }
            reader => reader?,
        };
        let mut faults = Vec::new();
        if !reader.is_whole && reader.len >= segment::HEADER_LEN as u64 {
            faults.push("its header is damaged".to_owned());
        }
        let scanned = reader.read(|_, message| {
            if until.is_none_or(|until| message.seq < until) {
                take(message);
            }
            ControlFlow::Continue(())
        })?;
        let noted = noted.unwrap_or_default();
        for gap in scanned
            .gaps
            .iter()
            .filter(|gap| gap.damaged || until.is_some() || gap.seqs.start < noted)
        {
            faults.push(format!(
                "bytes {} to {} are damaged",
                gap.bytes.start, gap.bytes.end
            ));
        }
        let rest = reader.len - scanned.end;
        let was_on_disk = noted > scanned.next_seq;
        if until.is_none() && was_on_disk && rest > 0 {
            faults.push(format!(
                "bytes {} to {} are damaged",
                scanned.end, reader.len
            ));
        }
        let unfinished = if until.is_none() && !was_on_disk {
            rest
        } else {
            0
        };
        Ok(SegmentRead {
            next_seq: scanned.next_seq,
            unfinished_bytes: unfinished,
            faults,
        })
    }
}
