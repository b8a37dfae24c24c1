//! Files in memory, of messages that are on no disk here.

use std::io;

use bytes::Bytes;

use super::writer::Writer;
use super::{Layout, file_name, hour_of, partition};
use crate::columns::Undecoded;
use crate::config::Form;
use crate::message::Messages;

/// A file that is whole, and is to be put somewhere.
#[derive(Clone, Debug)]
pub struct Made {
    /// Path below the data folder, or the prefix of a bucket.
    pub path: String,
    pub bytes: Bytes,
    pub messages: u64,
}

/// Makes files of the messages of a commit, one for each hour in which some of them came. Their names begin with `stem`.
///
/// # Errors
/// If they cannot be encoded.
pub fn in_memory(
    stem: &str,
    (form, layout): (Form, &Layout),
    mark: u32,
    frames: &Bytes,
) -> io::Result<(Vec<Made>, Undecoded)> {
    let (mut made, mut undecoded) = (Vec::new(), Undecoded::default());
    let mut messages = Messages::new(mark, frames).peekable();
    while let Some(first) = messages.peek().copied() {
        let hour = hour_of(first.received_ns);
        let mut writer = Writer::new(form, layout, Vec::new())?;
        let (mut count, mut last) = (0, first.seq);
        while let Some(message) = messages.next_if(|next| hour_of(next.received_ns) == hour) {
            writer.put(frames, &message)?;
            (count, last) = (count + 1, message.seq);
        }
        let (bytes, unfit) = writer.finish()?;
        undecoded.add(unfit);
        let name = file_name(stem, (first.seq, last), form);
        made.push(Made {
            path: format!("{}/{name}", partition(hour)),
            bytes: bytes.into(),
            messages: count,
        });
    }
    Ok((made, undecoded))
}
