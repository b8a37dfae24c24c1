//! Files in memory, of messages that are on no disk here.

use std::io;

use bytes::Bytes;

use super::finished::Finished;
use super::layout::Layout;
use super::partition::OpenFiles;
use super::writer::FormWriter;
use crate::config::Form;
use crate::file_name::file_name;
use crate::message::{Message, Messages};

/// A file that is whole, and is to be put somewhere.
#[derive(Clone, Debug)]
pub struct Made {
    /// Path below the data folder, or the prefix of a bucket.
    pub path: String,
    pub bytes: Bytes,
    pub messages: u64,
}

/// A file while it is made.
struct Making<'a> {
    partition: String,
    writer: FormWriter<'a, Vec<u8>>,
    first: u64,
    last: u64,
    messages: u64,
}

/// Makes files of the messages of a commit, one for each folder that some of them belong to. Their names begin with `stem`. What
/// is said of the messages stands beside them.
///
/// # Errors
/// If they cannot be encoded.
pub fn in_memory(
    stem: &str,
    (form, layout): (Form, &Layout),
    mark: u32,
    frames: &Bytes,
) -> io::Result<(Vec<Made>, Finished)> {
    let mut made = Vec::new();
    let mut finished = Finished::default();
    let mut close = |file: Making<'_>| -> io::Result<()> {
        let (bytes, unfit) = file.writer.finish()?;
        finished.undecoded.add(unfit);
        let name = file_name(stem, (file.first, file.last), form);
        made.push(Made {
            path: format!("{}/{name}", file.partition),
            bytes: bytes.into(),
            messages: file.messages,
        });
        Ok(())
    };
    let mut files = OpenFiles::new(&layout.partitioning);
    for message in Messages::new(mark, frames) {
        let create = |partition: &str| Making::new((form, layout), partition, &message);
        let file = files.file_for(&message, create, &mut close)?;
        file.writer.add(frames, &message)?;
        (file.messages, file.last) = (file.messages + 1, message.seq);
    }
    let misplaced = files.misplaced;
    for file in files.into_open() {
        close(file)?;
    }
    finished.misplaced = misplaced;
    Ok((made, finished))
}

impl<'a> Making<'a> {
    fn new(
        (form, layout): (Form, &'a Layout),
        partition: &str,
        first: &Message<'_>,
    ) -> io::Result<Making<'a>> {
        Ok(Making {
            partition: partition.to_owned(),
            writer: FormWriter::new(form, layout, Vec::new())?,
            first: first.seq,
            last: first.seq,
            messages: 0,
        })
    }
}
