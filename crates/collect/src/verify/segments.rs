//! The segments of a log, read again.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::log::scan::Scan;
use crate::log::segment::{self, Header};
use crate::message::Message;

/// A segment, which can be read even if it is removed meanwhile.
pub struct OpenSegment {
    pub first_seq: u64,
    pub path: PathBuf,
    file: File,
}

/// What was found in a segment beside its messages.
pub struct SegmentRead {
    pub next_seq: u64,
    pub unfinished_bytes: u64,
    pub faults: Vec<String>,
}

pub fn open(folder: &Path) -> io::Result<Vec<OpenSegment>> {
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
    pub fn read(
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
