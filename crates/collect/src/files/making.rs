//! The finished files of a segment, while they are made.

use std::io;

use bytes::Bytes;

use super::finished::Finished;
use super::layout::Layout;
use super::open::Open;
use super::parquet::GROUP_ROWS;
use super::partition::OpenFiles;
use crate::config::Form;
use crate::folder::Folder;
use crate::log::Closed;
use crate::message::Message;

/// The finished files of a segment, while they are made.
pub struct Making<'a> {
    folder: &'a Folder,
    form: Form,
    layout: &'a Layout,
    closed: &'a Closed,
    files: OpenFiles<'a, Open<'a>>,
    finished: Finished,
    /// Number of the next message, if none is missing.
    expected: u64,
    /// The buffer of the last message; those of all messages that open files hold lie in it.
    buffer: Bytes,
    /// So many messages may be held.
    held: usize,
}

impl<'a> Making<'a> {
    pub fn new(
        folder: &'a Folder,
        (form, layout): (Form, &'a Layout),
        closed: &'a Closed,
    ) -> Making<'a> {
        Making {
            folder,
            form,
            layout,
            closed,
            files: OpenFiles::new(&layout.partitioning),
            finished: Finished::default(),
            expected: closed.first_seq,
            buffer: Bytes::new(),
            held: 0,
        }
    }

    /// Adds a message, whose texts lie in `bytes`.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn add(&mut self, bytes: &Bytes, message: &Message<'_>) -> io::Result<()> {
        if message.seq > self.expected {
            self.finished.damaged.push((self.expected, message.seq - 1));
        }
        self.expected = message.seq + 1;
        if self.buffer.as_ptr() != bytes.as_ptr() || self.held >= GROUP_ROWS {
            // Files that get no message of the next buffer would keep this one.
            for file in self.files.iter_mut() {
                file.flush()?;
            }
            (self.buffer, self.held) = (bytes.clone(), 0);
        }
        self.held += 1;
        let (folder, how) = (self.folder, (self.form, self.layout));
        let create = |partition: &str| Open::create(folder, how, partition, message.seq);
        let finished = &mut self.finished;
        let file = self
            .files
            .file_for(message, create, &mut |file| close(file, finished));
        file?.add(bytes, message)
    }

    /// Makes the files whole.
    ///
    /// # Errors
    /// If one cannot be written.
    pub fn finish(mut self) -> io::Result<Finished> {
        self.finished.misplaced = self.files.misplaced;
        for file in self.files.into_open() {
            close(file, &mut self.finished)?;
        }
        let mut finished = self.finished;
        let next_seq = self.closed.next_seq;
        if self.expected < next_seq {
            finished.damaged.push((self.expected, next_seq - 1));
        }
        if !self.layout.partitioning.is_by_arrival() {
            finished.files.sort_by_key(|file| file.first);
            for file in &mut finished.files {
                file.among = Some((self.closed.first_seq, next_seq - 1));
            }
        }
        Ok(finished)
    }
}

fn close(file: Open<'_>, finished: &mut Finished) -> io::Result<()> {
    let (file, undecoded) = file.close()?;
    finished.files.push(file);
    finished.undecoded.add(undecoded);
    Ok(())
}

#[cfg(test)]
mod tests;
