//! Reads a segment a part at a time, however long it is.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;

use bytes::Bytes;
use pubgauge_place::len_within;

use super::scan::{Next, Reading, Scanned, SegmentPart};
use super::segment::{HEADER_LEN, Header, MOST};
use crate::message::Message;

/// Bytes that are read at a time. A frame that is longer is read whole.
pub const WINDOW: usize = 32 << 20;

/// A segment that is read.
#[derive(Debug)]
pub struct SegmentReader<'f> {
    file: &'f File,
    pub header: Header,
    /// Its header is as it was written.
    pub is_whole: bool,
    pub len: u64,
}

impl<'f> SegmentReader<'f> {
    /// Reads the header of a segment whose name says this number.
    ///
    /// # Errors
    /// If it cannot be read, or is longer than any segment.
    pub fn open(file: &'f File, first_seq: u64) -> io::Result<SegmentReader<'f>> {
        let len = len_within(file, MOST)?;
        // With the mark of the first frame.
        let begin = read_at(file, 0, HEADER_LEN + 4)?;
        let (header, is_whole) = Header::read(&begin, first_seq);
        Ok(SegmentReader {
            file,
            header,
            is_whole,
            len,
        })
    }

    /// Gives each message to `take`, with the buffer that it lies in, until that breaks off.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(
        &self,
        take: impl FnMut(&Bytes, &Message<'_>) -> ControlFlow<()>,
    ) -> io::Result<Scanned> {
        self.read_by(WINDOW, take)
    }

    fn read_by(
        &self,
        size: usize,
        mut take: impl FnMut(&Bytes, &Message<'_>) -> ControlFlow<()>,
    ) -> io::Result<Scanned> {
        let part = |at: u64, bytes: usize| {
            let left = self.len.saturating_sub(at).min(bytes as u64);
            read_at(self.file, at, left as usize)
        };
        let Header {
            first_seq, mark, ..
        } = self.header;
        let mut reading = Reading::new(mark, first_seq, self.len);
        let (mut at, mut bytes) = (0, part(0, size)?);
        loop {
            let window = SegmentPart {
                bytes: &bytes,
                at,
                // Where the file was cut off meanwhile, what is there counts.
                is_last: at + bytes.len() as u64 >= self.len || bytes.is_empty(),
            };
            match reading.next(window) {
                Next::Message(message) => {
                    if take(&bytes, &message).is_break() {
                        break;
                    }
                }
                Next::More { from, least } => {
                    bytes.clear();
                    (at, bytes) = (from, part(from, size.max(least))?);
                }
                Next::End => break,
            }
        }
        Ok(reading.finish())
    }
}

/// So many bytes from this place on; fewer where the file ends.
fn read_at(file: &File, at: u64, bytes: usize) -> io::Result<Bytes> {
    let mut buffer = vec![0; bytes];
    let mut got = 0;
    while got < bytes {
        match file.read_at(&mut buffer[got..], at + got as u64) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    buffer.truncate(got);
    Ok(buffer.into())
}

#[cfg(test)]
mod tests {
    use pubgauge_place::OpenFolder;

    use super::*;
    use crate::config::Form;
    use crate::log::segment::Segment;

    #[test]
    fn in_windows_of_any_size_the_messages_are_those_of_the_whole() {
        let folder = tempfile::tempdir().unwrap();
        let place = OpenFolder::open(folder.path()).unwrap();
        let header = Header {
            first_seq: 1,
            mark: 7,
            form: Form::Ndjson,
        };
        let mut segment = Segment::create(&place, header).unwrap();
        let mut frames = Vec::new();
        let payload = |seq: u64| vec![seq as u8; seq as usize * 37 % 900];
        for seq in 1..=50 {
            let payload = payload(seq);
            Message::numbered(seq, &payload).append(header.mark, &mut frames);
        }
        segment.append(&frames).unwrap();
        let file = std::fs::File::open(&segment.path).unwrap();
        let reader = SegmentReader::open(&file, 1).unwrap();
        assert_eq!((reader.header, reader.is_whole), (header, true));
        for size in [1, 100, 4096, 1 << 20] {
            let (mut seqs, mut most) = (Vec::new(), 0);
            let scanned = reader.read_by(size, |bytes, message| {
                assert_eq!(message.payload, payload(message.seq));
                most = most.max(bytes.len());
                seqs.push(message.seq);
                ControlFlow::Continue(())
            });
            assert_eq!(seqs, (1..=50).collect::<Vec<_>>());
            let scanned = scanned.unwrap();
            assert_eq!((scanned.end, scanned.gaps.len()), (reader.len, 0));
            // The longest frame is read whole.
            assert!(most <= size.max(1000), "{most} bytes in windows of {size}");
        }
        let scanned = reader.read(|_, message| match message.seq {
            20 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        assert_eq!(scanned.unwrap().messages, 20);
    }
}
