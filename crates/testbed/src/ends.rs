//! The beginning and the end of a stream without end: what a process says on its standard error.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::lock::lock;

/// Bytes that are kept of the beginning, and as many of the end.
pub(crate) const KEPT: usize = 64 << 10;
/// How long a process that writes more than that waits for each [`KEPT`] bytes more: 6 MB/s are read of it at the most, so
/// that it takes neither memory nor processor time of the run.
const BREATH: Duration = Duration::from_millis(10);
/// How long to wait for the end of the stream once its process has ended: what it started may have the stream open still.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The first and the last 64 KiB of a stream.
#[derive(Debug, Default)]
struct Ends {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// Bytes between them, which are not kept.
    left_out: u64,
}

impl Ends {
    fn add(&mut self, mut bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(KEPT - self.head.len()));
        self.head.extend_from_slice(first);
        bytes = rest;
        let beyond = (self.tail.len() + bytes.len()).saturating_sub(KEPT);
        self.left_out += beyond as u64;
        let of_tail = beyond.min(self.tail.len());
        self.tail.drain(..of_tail);
        self.tail.extend(&bytes[beyond - of_tail..]);
    }

    fn text(&self) -> String {
        let mut bytes = self.head.clone();
        if self.left_out > 0 {
            let note = format!("\n[... {} bytes are left out ...]\n", self.left_out);
            bytes.extend_from_slice(note.as_bytes());
        }
        bytes.extend(&self.tail);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// A stream that is read on a thread of its own until it ends.
#[derive(Debug)]
pub(crate) struct Listened(Arc<SharedEnds>);

#[derive(Debug, Default)]
struct SharedEnds {
    heard: Mutex<Heard>,
    has_ended: Condvar,
}

#[derive(Debug, Default)]
struct Heard {
    ends: Ends,
    is_over: bool,
}

impl Listened {
    /// Begins to read. The thread ends with the stream.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start_reading(stream: impl Read + Send + 'static) -> io::Result<Listened> {
        let shared = Arc::<SharedEnds>::default();
        let own = shared.clone();
        let thread = std::thread::Builder::new().name("stderr".into());
        thread.spawn(move || own.listen(stream))?;
        Ok(Listened(shared))
    }

    /// The text: its first and its last 64 KiB, with a line between them where there was more. Waits half a second for the end
    /// of the stream.
    pub fn text(&self) -> String {
        let heard = lock(&self.0.heard);
        let waited = self
            .0
            .has_ended
            .wait_timeout_while(heard, LAST_WORDS, |heard| !heard.is_over);
        let (heard, _) = waited.unwrap_or_else(PoisonError::into_inner);
        heard.ends.text()
    }
}

impl SharedEnds {
    fn listen(&self, mut stream: impl Read) {
        let mut piece = vec![0; KEPT];
        loop {
            match stream.read(&mut piece) {
                Ok(0) => break,
                Ok(length) => {
                    let mut heard = lock(&self.heard);
                    heard.ends.add(&piece[..length]);
                    let is_much = heard.ends.left_out > 0;
                    drop(heard);
                    if is_much {
                        std::thread::sleep(BREATH);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        lock(&self.heard).is_over = true;
        self.has_ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_are_kept_and_what_lies_between_is_counted() {
        let all: Vec<u8> = (0..3 * KEPT).map(|n| b'a' + (n / 7 % 26) as u8).collect();
        for (length, piece) in [
            (10, 3),
            (KEPT, 1_000),
            (KEPT + 1, KEPT + 1),
            (2 * KEPT, 999),
            (2 * KEPT + 5, 64),
            (3 * KEPT, 2 * KEPT + 1),
            (3 * KEPT, 1),
        ] {
            let mut ends = Ends::default();
            all[..length]
                .chunks(piece)
                .for_each(|piece| ends.add(piece));
            let left_out = length.saturating_sub(2 * KEPT);
            assert_eq!(ends.left_out, left_out as u64, "{length} by {piece}");
            assert_eq!(ends.head, all[..length.min(KEPT)]);
            let tail: Vec<u8> = ends.tail.iter().copied().collect();
            assert_eq!(tail, all[length.min(KEPT) + left_out..length]);
            let said = format!("[... {left_out} bytes are left out ...]");
            assert_eq!(ends.text().contains(&said), left_out > 0);
        }
    }

    #[test]
    fn a_stream_without_end_takes_no_more_than_its_ends() {
        let stream = io::repeat(b'x').take(40 * KEPT as u64);
        let heard = Listened::start_reading(stream.chain(&b"\nlast"[..])).unwrap();
        while !lock(&heard.0.heard).is_over {
            std::thread::sleep(Duration::from_millis(1));
        }
        let text = heard.text();
        assert!(text.len() < 2 * KEPT + 100 && text.ends_with("\nlast"));
    }
}
