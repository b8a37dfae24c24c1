//! A file that is written, with its length and checksum.

use std::fs::File;
use std::io::{self, BufWriter, Write};

/// A file with its length and checksum.
pub struct Summed {
    file: BufWriter<File>,
    bytes: u64,
    sum: crc32fast::Hasher,
}

impl Summed {
    pub fn new(file: File) -> Summed {
        let file = BufWriter::with_capacity(64 << 10, file);
        Summed {
            file,
            bytes: 0,
            sum: crc32fast::Hasher::new(),
        }
    }

    /// Puts it on disk; length and checksum.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> io::Result<(u64, u32)> {
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
