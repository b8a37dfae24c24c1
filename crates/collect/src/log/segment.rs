//! A segment: one file of the log, with a header and messages.
//!
//! ```text
//! "PUBGLOG1" | first number u64 | mark u32 | form u8 | 0 0 0 | CRC-32 u32 of all before
//! ```

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use pubgauge_place::{OpenFolder, content};

use crate::config::Form;

const MAGIC: &[u8; 8] = b"PUBGLOG1";

/// Most bytes of a segment that are read: the largest one that can be configured, and the largest commit behind it.
pub const MOST: u64 = 2 << 30;

/// Bytes of a header.
pub const HEADER_LEN: usize = 28;

/// A segment's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Number of its first message.
    pub first_seq: u64,
    /// Each of its frames begins with this number.
    pub mark: u32,
    /// Form that its messages are to have.
    pub form: Form,
}

impl Header {
    fn encode(self) -> [u8; HEADER_LEN] {
        let mut out = [0; HEADER_LEN];
        out[..8].copy_from_slice(MAGIC);
        out[8..16].copy_from_slice(&self.first_seq.to_le_bytes());
        out[16..20].copy_from_slice(&self.mark.to_le_bytes());
        out[20] = self.form as u8;
        let checksum = crc32fast::hash(&out[..24]);
        out[24..].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// The header of a segment with this name, and whether it is as it was written. Of a damaged one, the number
    /// stands in the name, and the mark in front of the first message; messages become Parquet then.
    pub fn read(bytes: &[u8], name_seq: u64) -> (Header, bool) {
        let word = |at: usize| {
            bytes
                .get(at..at + 4)?
                .first_chunk()
                .map(|four| u32::from_le_bytes(*four))
        };
        let form = match bytes.get(20) {
            Some(1) => Form::Ndjson,
            _ => Form::Parquet,
        };
        let written = Header {
            first_seq: name_seq,
            mark: word(16).unwrap_or_default(),
            form,
        };
        if bytes.get(..HEADER_LEN) == Some(&written.encode()) {
            return (written, true);
        }
        let mark = word(HEADER_LEN).unwrap_or_default();
        (
            Header {
                first_seq: name_seq,
                mark,
                form: Form::Parquet,
            },
            false,
        )
    }
}

/// How the name of a segment ends that could not be read, and was set aside.
pub const ASIDE: &str = ".log.unreadable";

/// Name of the segment that begins with this number.
pub fn file_name(first_seq: u64) -> String {
    format!("{first_seq:016}.log")
}

/// Name that a segment which could not be read is given.
pub fn aside_name(first_seq: u64) -> String {
    format!("{first_seq:016}{ASIDE}")
}

/// The names of the segments in a folder, with the number that each begins with, in their order.
///
/// # Errors
/// If the folder cannot be read.
pub fn list(folder: &OpenFolder) -> io::Result<Vec<(u64, String)>> {
    let mut segments = Vec::new();
    let names = folder.names()?.into_iter();
    for name in names.filter_map(|name| name.into_string().ok()) {
        let stem = name.strip_suffix(".log");
        if let Some(seq) = stem.and_then(|stem| stem.parse().ok()) {
            segments.push((seq, name));
        }
    }
    segments.sort();
    Ok(segments)
}

/// The segment that is being written.
#[derive(Debug)]
pub struct Segment {
    file: File,
    pub path: PathBuf,
    /// Bytes of it that are on disk for certain.
    pub durable: u64,
}

impl Segment {
    /// Makes a segment and syncs it with its folder.
    ///
    /// # Errors
    /// If it cannot be made; nothing is left then.
    pub fn create(folder: &OpenFolder, header: Header) -> io::Result<Segment> {
        let name = file_name(header.first_seq);
        folder.create(&name)?;
        // To be read as well, if its name goes.
        let made = folder.file_to_change(&name).and_then(|file| {
            (&file).write_all(&header.encode())?;
            file.sync_all()?;
            folder.sync()?;
            Ok(file)
        });
        match made {
            Ok(file) => Ok(Segment {
                file,
                path: folder.display_path().join(name),
                durable: HEADER_LEN as u64,
            }),
            Err(error) => {
                let _ = folder.remove_file(&name);
                Err(error)
            }
        }
    }

    /// Whether it holds no message.
    pub fn is_empty(&self) -> bool {
        self.durable <= HEADER_LEN as u64
    }

    /// Appends frames, and returns when they are on disk. After an error none of them counts, and the segment must
    /// not be written any more: the kernel may have dropped pages that it could not write, and say so only once.
    ///
    /// # Errors
    /// If they could not be written or synced.
    pub fn append(&mut self, frames: &[u8]) -> io::Result<()> {
        self.file.write_all_at(frames, self.durable)?;
        self.file.sync_data()?;
        self.durable += frames.len() as u64;
        Ok(())
    }

    /// Whether it has no name any more: somebody has removed it.
    pub fn is_removed(&self) -> bool {
        rustix::fs::fstat(&self.file).is_ok_and(|stat| stat.st_nlink == 0)
    }

    /// Writes it under its name again, with what is on disk for certain, and returns when that is on disk.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn restore(&mut self, folder: &OpenFolder) -> io::Result<()> {
        let name = self.path.file_name().unwrap_or_default();
        let mut bytes = content(&self.file, MOST)?;
        bytes.truncate(self.durable as usize);
        folder.write(name, bytes)?;
        folder.sync()?;
        self.file = folder.file_to_change(name)?;
        Ok(())
    }

    /// Takes off what is not on disk for certain.
    ///
    /// # Errors
    /// If that cannot be done now.
    pub fn cut(&self) -> io::Result<()> {
        self.file.set_len(self.durable)?;
        self.file.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_and_each_flipped_bit_is_found() {
        let header = Header {
            first_seq: 17,
            mark: 0xdead_beef,
            form: Form::Ndjson,
        };
        let mut bytes = header.encode().to_vec();
        assert_eq!(Header::read(&bytes, 17), (header, true));
        // The mark of the first frame.
        bytes.extend(header.mark.to_le_bytes());
        for bit in 0..HEADER_LEN * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let (read, whole) = Header::read(&bytes, 17);
            assert!(!whole, "bit {bit}");
            assert_eq!((read.first_seq, read.mark), (17, header.mark));
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        for len in 0..HEADER_LEN {
            assert!(!Header::read(&bytes[..len], 17).1);
        }
    }

    #[test]
    fn segments_are_listed_by_their_numbers() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "0000000000000020.log",
            "0000000000000003.log",
            "x.log",
            "1.parquet",
        ] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let seqs: Vec<u64> = list(&OpenFolder::open(folder.path()).unwrap())
            .unwrap()
            .into_iter()
            .map(|(seq, _)| seq)
            .collect();
        assert_eq!(seqs, [3, 20]);
    }

    #[test]
    fn what_is_not_on_disk_for_certain_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let header = Header {
            first_seq: 1,
            mark: 1,
            form: Form::Parquet,
        };
        let mut segment =
            Segment::create(&OpenFolder::open(folder.path()).unwrap(), header).unwrap();
        assert!(segment.is_empty());
        segment.append(b"abc").unwrap();
        std::fs::OpenOptions::new()
            .append(true)
            .open(&segment.path)
            .unwrap()
            .write_all(b"rest")
            .unwrap();
        segment.cut().unwrap();
        assert_eq!(
            std::fs::metadata(&segment.path).unwrap().len(),
            HEADER_LEN as u64 + 3
        );
    }
}
