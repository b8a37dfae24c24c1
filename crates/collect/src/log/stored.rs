//! How far the log was on disk, beside its segments: by it a tail that is gone is told from one that was being written.
//!
//! ```text
//! two slots, 512 bytes apart: number of the next message u64 | CRC-32 u32 of it
//! ```
//!
//! It is written once a commit is on disk and before that is acknowledged, without a sync of its own: a kill finds all of
//! it, and a power loss finds an older number, which says less and nothing wrong. The slots take turns, so that one that
//! was torn leaves the other.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use pubgauge_place::{OpenFolder, content};

/// Its name in the folder of the log.
pub const NAME: &str = "stored";

/// Bytes from one slot to the next: they lie in different sectors.
const SLOT: usize = 512;

/// Bytes of a slot that are used.
const USED: usize = 12;

/// Most bytes of the file that are read.
const MOST: u64 = 4096;

/// Numbers from here on are in no log: names of files have 16 digits.
const END: u64 = 10_000_000_000_000_000;

/// The file, while the log is written.
#[derive(Debug)]
pub struct Stored {
    file: File,
    slot: usize,
}

impl Stored {
    /// Writes it anew: all messages before `next_seq` are on disk, or were.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn begin(folder: &OpenFolder, next_seq: u64) -> io::Result<Stored> {
        let slot = encode(next_seq);
        let mut bytes = vec![0; SLOT + USED];
        bytes[..USED].copy_from_slice(&slot);
        bytes[SLOT..].copy_from_slice(&slot);
        folder.write(NAME, bytes)?;
        folder.sync()?;
        let file = folder.file_to_change(NAME)?;
        Ok(Stored { file, slot: 0 })
    }

    /// Notes that all messages before this number are on disk. One that is not noted is told less, and never wrong, so
    /// that a failure is none of the commit.
    pub fn note(&mut self, next_seq: u64) {
        let at = (self.slot * SLOT) as u64;
        if self.file.write_all_at(&encode(next_seq), at).is_ok() {
            self.slot = 1 - self.slot;
        }
    }

    /// Puts it on disk.
    pub fn sync(&self) {
        // As with a note: without it less is told.
        let _ = self.file.sync_data();
    }
}

/// Number of the message after the last that was on disk for certain; `None` where none was noted.
///
/// # Errors
/// If it cannot be read, is a link, a device or a pipe.
pub fn read(folder: &OpenFolder) -> io::Result<Option<u64>> {
    let bytes = match folder.file(NAME) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => content(&file?, MOST)?,
    };
    let slots = [0, SLOT].into_iter().filter_map(|at| {
        let slot = bytes.get(at..at + USED)?;
        let next_seq = u64::from_le_bytes(*slot.first_chunk()?);
        (slot == encode(next_seq) && next_seq < END).then_some(next_seq)
    });
    Ok(slots.max())
}

fn encode(next_seq: u64) -> [u8; USED] {
    let mut slot = [0; USED];
    slot[..8].copy_from_slice(&next_seq.to_le_bytes());
    let sum = crc32fast::hash(&slot[..8]);
    slot[8..].copy_from_slice(&sum.to_le_bytes());
    slot
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_is_read_and_a_torn_slot_leaves_the_one_before() {
        let place = tempfile::tempdir().unwrap();
        let folder = OpenFolder::open(place.path()).unwrap();
        assert_eq!(read(&folder).unwrap(), None);
        let mut stored = Stored::begin(&folder, 1).unwrap();
        for next in 2..10 {
            stored.note(next);
            assert_eq!(read(&folder).unwrap(), Some(next));
        }
        let path = place.path().join(NAME);
        let whole = std::fs::read(&path).unwrap();
        for at in [0, SLOT] {
            for bit in at * 8..(at + USED) * 8 {
                let mut torn = whole.clone();
                torn[bit / 8] ^= 1 << (bit % 8);
                std::fs::write(&path, torn).unwrap();
                let left = read(&folder).unwrap();
                assert!(matches!(left, Some(8 | 9)), "bit {bit}: {left:?}");
            }
        }
        std::fs::write(&path, encode(END)).unwrap();
        assert_eq!(read(&folder).unwrap(), None);
    }
}
