//! A finished file while it is made on the disk.

use std::io;

use bytes::Bytes;

use super::layout::Layout;
use super::summed::Summed;
use super::writer::FormWriter;
use crate::columns::Undecoded;
use crate::config::Form;
use crate::file_name::file_name;
use crate::folder::{Folder, open_below};
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
    writer: FormWriter<'a, Summed>,
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
            let _held = folder.hold()?;
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
            writer: FormWriter::new(form, layout, Summed::new(file))?,
        })
    }

    /// Adds a message, whose texts lie in `bytes`.
    pub fn add(&mut self, bytes: &Bytes, message: &Message<'_>) -> io::Result<()> {
        self.last = message.seq;
        self.messages += 1;
        self.writer.add(bytes, message)
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
        {
            // Whoever lists the partition meanwhile would see neither name.
            let _held = self.folder.hold()?;
            let place = open_below(self.folder.top(), self.partition.split('/'))?;
            place.rename(&self.partial, &name)?;
            place.sync()?;
        }
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
