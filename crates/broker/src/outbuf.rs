//! The output buffer of a connection.
//!
//! A chain of chunks from a shared pool: an idle connection holds none, a busy
//! one is written with one `writev` for everything that gathered in a turn.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;

/// Size of a buffer's first chunk, in bytes: enough for a few small messages;
/// one message to each of 19,000 subscribers takes less than 80 MB.
const SMALL: usize = 4 * 1024;
/// Size of every further chunk, in bytes.
const LARGE: usize = 64 * 1024;
/// Bytes of unused chunks the pool keeps of each size.
const POOLED: usize = 8 * 1024 * 1024;
/// Unused rings the pool keeps.
const RINGS: usize = 256;
/// Most chunks given to one `writev`.
const CHUNKS_PER_WRITE: usize = 64;

/// Unused chunks, shared by all connections.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    small: Vec<Vec<u8>>,
    large: Vec<Vec<u8>>,
    /// Queues without chunks, for reuse. One would cost an idle connection 100
    /// bytes.
    rings: Vec<VecDeque<Vec<u8>>>,
}

impl Pool {
    fn take(&mut self, first: bool, at_least: usize) -> Vec<u8> {
        let (shelf, size) = if first && at_least <= SMALL {
            (&mut self.small, SMALL)
        } else {
            (&mut self.large, LARGE)
        };
        if at_least > size {
            return Vec::with_capacity(at_least);
        }
        shelf.pop().unwrap_or_else(|| Vec::with_capacity(size))
    }

    fn give_back(&mut self, mut chunk: Vec<u8>) {
        chunk.clear();
        let shelf = match chunk.capacity() {
            SMALL => &mut self.small,
            LARGE => &mut self.large,
            _ => return,
        };
        if shelf.len() * chunk.capacity() < POOLED {
            shelf.push(chunk);
        }
    }
}

/// Where a write left off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteProgress {
    /// Nothing is left.
    All,
    /// The kernel's buffer is full.
    Blocked,
    /// The connection is gone.
    Broken,
}

/// Bytes waiting for one connection, in order.
#[derive(Debug, Default)]
pub(crate) struct OutBuf {
    chunks: VecDeque<Vec<u8>>,
    /// Bytes of the first chunk that are already written.
    head: u32,
    written: u32,
    len: usize,
}

impl OutBuf {
    /// Bytes the kernel has taken so far, modulo 2^32: shows whether there was
    /// progress.
    pub(crate) fn written(&self) -> u32 {
        self.written
    }

    /// Bytes waiting.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies bytes to the end; they may be cut over several chunks.
    pub(crate) fn push(&mut self, pool: &mut Pool, mut bytes: &[u8]) {
        self.len += bytes.len();
        if let Some(last) = self.chunks.back_mut() {
            let room = (last.capacity() - last.len()).min(bytes.len());
            last.extend_from_slice(&bytes[..room]);
            bytes = &bytes[room..];
        }
        while !bytes.is_empty() {
            let chunk = self.grow(pool, bytes.len().min(LARGE));
            let room = chunk.capacity().min(bytes.len());
            chunk.extend_from_slice(&bytes[..room]);
            bytes = &bytes[room..];
        }
    }

    /// Lets `encode` append to one piece of memory with room for `at_least`
    /// bytes, so that what it writes costs no allocation.
    pub(crate) fn append<R>(
        &mut self,
        pool: &mut Pool,
        at_least: usize,
        encode: impl FnOnce(&mut Vec<u8>) -> R,
    ) -> R {
        let fits = |c: &Vec<u8>| c.capacity() - c.len() >= at_least;
        if !self.chunks.back().is_some_and(fits) {
            self.grow(pool, at_least);
        }
        let last = self
            .chunks
            .back_mut()
            .expect("a chunk was just made sure of");
        let before = last.len();
        let result = encode(last);
        self.len += last.len() - before;
        result
    }

    /// Writes as much as the kernel takes.
    pub(crate) fn write(&mut self, fd: BorrowedFd<'_>, pool: &mut Pool) -> WriteProgress {
        while self.len > 0 {
            let mut slices = [IoSlice::new(&[]); CHUNKS_PER_WRITE];
            let mut used = 0;
            let mut skip = self.head as usize;
            for (slot, chunk) in slices.iter_mut().zip(&self.chunks) {
                *slot = IoSlice::new(&chunk[skip..]);
                skip = 0;
                used += 1;
            }
            let offered: usize = slices[..used].iter().map(|s| s.len()).sum();
            let sent = if used == 1 {
                rustix::net::send(fd, &slices[0], rustix::net::SendFlags::NOSIGNAL)
            } else {
                rustix::io::writev(fd, &slices[..used])
            };
            match sent {
                Ok(n) => {
                    self.consume(n, pool);
                    if n < offered {
                        return WriteProgress::Blocked;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return WriteProgress::Blocked,
                Err(_) => return WriteProgress::Broken,
            }
        }
        WriteProgress::All
    }

    /// Gives all memory back; what was waiting is lost.
    pub(crate) fn clear(&mut self, pool: &mut Pool) {
        (self.head, self.len) = (0, 0);
        let mut ring = std::mem::take(&mut self.chunks);
        for chunk in ring.drain(..) {
            pool.give_back(chunk);
        }
        // A ring that grew for a long backlog is not kept.
        if (1..=16).contains(&ring.capacity()) && pool.rings.len() < RINGS {
            pool.rings.push(ring);
        }
    }

    /// Adds a chunk with room for `at_least` bytes.
    fn grow(&mut self, pool: &mut Pool, at_least: usize) -> &mut Vec<u8> {
        if self.chunks.capacity() == 0
            && let Some(ring) = pool.rings.pop()
        {
            self.chunks = ring;
        }
        let chunk = pool.take(self.chunks.is_empty(), at_least);
        self.chunks.push_back(chunk);
        self.chunks.back_mut().expect("a chunk was just added")
    }

    fn consume(&mut self, n: usize, pool: &mut Pool) {
        self.len -= n;
        self.written = self.written.wrapping_add(n as u32);
        if self.len == 0 {
            return self.clear(pool);
        }
        let mut head = self.head as usize + n;
        while let Some(first) = self.chunks.front() {
            if head < first.len() {
                break;
            }
            head -= first.len();
            if let Some(chunk) = self.chunks.pop_front() {
                pool.give_back(chunk);
            }
        }
        // No packet, hence no chunk, is longer than 256 MiB.
        self.head = head as u32;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever the sizes, and however the kernel cuts the writes, the bytes
        /// come out in order and complete.
        #[test]
        fn bytes_come_out_as_they_went_in(
            pieces in prop::collection::vec((0usize..200_000, any::<bool>()), 1..20),
        ) {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            ours.set_nonblocking(true).unwrap();
            theirs.set_nonblocking(true).unwrap();
            let (mut pool, mut out) = (Pool::default(), OutBuf::default());
            let (mut expected, mut got) = (Vec::new(), Vec::new());
            for (i, (len, contiguous)) in pieces.into_iter().enumerate() {
                let bytes: Vec<u8> = (0..len).map(|b| (b + i * 31) as u8).collect();
                if contiguous {
                    out.append(&mut pool, len, |v| v.extend_from_slice(&bytes));
                } else {
                    out.push(&mut pool, &bytes);
                }
                expected.extend_from_slice(&bytes);
                prop_assert_eq!(out.len() + got.len() <= expected.len(), true);
                prop_assert_ne!(out.write(ours.as_fd(), &mut pool), WriteProgress::Broken);
                let _ = theirs.read_to_end(&mut got);
            }
            while !out.is_empty() {
                prop_assert_ne!(out.write(ours.as_fd(), &mut pool), WriteProgress::Broken);
                let _ = theirs.read_to_end(&mut got);
            }
            let _ = theirs.read_to_end(&mut got);
            prop_assert!(got == expected);
        }
    }

    #[test]
    fn an_empty_buffer_holds_no_chunk_and_the_pool_is_bounded() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (mut pool, mut out) = (Pool::default(), OutBuf::default());
        out.push(&mut pool, b"abc");
        assert_eq!(out.write(ours.as_fd(), &mut pool), WriteProgress::All);
        assert!(out.chunks.is_empty());
        let mut buf = [0; 3];
        theirs.read_exact(&mut buf).unwrap();
        assert_eq!(&buf, b"abc");
        out.push(&mut pool, &vec![7; 3 * POOLED]);
        out.clear(&mut pool);
        assert!(pool.large.len() * LARGE <= POOLED);
    }

    #[test]
    fn a_closed_peer_is_broken_not_a_signal() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        let (mut pool, mut out) = (Pool::default(), OutBuf::default());
        out.push(&mut pool, b"abc");
        assert_eq!(out.write(ours.as_fd(), &mut pool), WriteProgress::Broken);
    }
}
