//! A finished file while it is made on the disk.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use bytes::Bytes;
use pubgauge_place::OpenFolder;

use super::writer::Writer;
use super::{Layout, file_name};
use crate::columns::Undecoded;
use crate::config::Form;
use crate::folder::Folder;
use crate::manifest::FileEntry;
use crate::message::Message;

/// A file that is being made, under another name until it is finished.
pub struct Open<'a> {
    folder: &'a Folder,
    form: Form,
    /// Folders of the partition, below the data folder. They are opened again at the end, since many files may be open.
    partition: String,
    partial: String,
    first: u64,
    last: u64,
    messages: u64,
    writer: Writer<'a, Summed>,
}

impl<'a> Open<'a> {
    pub fn create(
        folder: &'a Folder,
        (form, layout): (Form, &'a Layout),
        partition: &str,
        first: u64,
    ) -> io::Result<Open<'a>> {
        let partial = format!(".{}-{first:016}.tmp", folder.name);
        let file = {
            let _held = folder.hold();
            let mut place = None;
            for name in partition.split('/') {
                let within = place.as_ref().unwrap_or(folder.top());
                place = Some(within.below_synced(name)?);
            }
            let place = place.ok_or(io::ErrorKind::NotFound)?;
            place.create(&partial)?
        };
        Ok(Open {
            folder,
            form,
            partition: partition.to_owned(),
            partial,
            first,
            last: first,
            messages: 0,
            writer: Writer::new(form, layout, Summed::new(file))?,
        })
    }

    /// Adds a message, whose texts lie in `bytes`.
    pub fn put(&mut self, bytes: &Bytes, message: &Message<'_>) -> io::Result<()> {
        self.last = message.seq;
        self.messages += 1;
        self.writer.put(bytes, message)
    }

    /// Whether messages that are in no row group yet are held.
    #[cfg(test)]
    pub fn holds(&self) -> bool {
        self.writer.holds()
    }

    /// Lets go of the buffers of messages that it was given.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    pub fn close(self) -> io::Result<(FileEntry, Undecoded)> {
        let (summed, undecoded) = self.writer.finish()?;
        let (bytes, crc32) = summed.finish()?;
        let (first, last) = (self.first, self.last);
        let name = file_name(&self.folder.stem(), (first, last), self.form);
        let mut place: Option<OpenFolder> = None;
        for name in self.partition.split('/') {
            let within = place.as_ref().unwrap_or(self.folder.top());
            place = Some(within.inside(name)?);
        }
        let place = place.ok_or(io::ErrorKind::NotFound)?;
        place.rename(&self.partial, &name)?;
        place.sync()?;
        let path = format!("{}/{name}", self.partition);
        let entry = FileEntry {
            path,
            bytes,
            crc32,
            first,
            last,
            messages: self.messages,
            among: None,
        };
        Ok((entry, undecoded))
    }
}

/// A file with its length and checksum.
struct Summed {
    file: BufWriter<File>,
    bytes: u64,
    sum: crc32fast::Hasher,
}

impl Summed {
    fn new(file: File) -> Summed {
        let file = BufWriter::with_capacity(64 << 10, file);
        Summed {
            file,
            bytes: 0,
            sum: crc32fast::Hasher::new(),
        }
    }

    /// Puts it on disk; length and checksum.
    fn finish(mut self) -> io::Result<(u64, u32)> {
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
