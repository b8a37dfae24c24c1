//! Output buffers: what clients have to write, gathered for one system call.

use std::io::{ErrorKind, Write};
use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use crate::socket::{self, Io};
use crate::tls::Wire;

/// Bytes that may wait to be written before a publisher is held back.
pub const OUT_CAP: usize = 64 << 10;

/// Capacity up to which an output buffer is kept for reuse.
const KEEP_OUT: usize = 2 * OUT_CAP;

/// Bytes to be written.
#[derive(Debug, Default)]
pub struct Out {
    /// All bytes since the buffer was last empty.
    pub bytes: Vec<u8>,
    /// How many of them were written.
    pub start: usize,
    /// Over WebSocket: how many of them are in frames. Nothing behind them is written.
    pub framed: usize,
    /// Messages among them that count as settled once they are written.
    pub messages: u32,
    /// The socket took no more; epoll reports when it does.
    pub stuck: bool,
}

impl Out {
    /// Bytes that are left to write.
    #[inline]
    pub fn pending(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Moves what is left to the front, once that is the smaller part.
    #[inline]
    pub fn compact(&mut self) {
        if self.start > self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            self.framed = self.framed.saturating_sub(self.start);
            self.start = 0;
        }
    }
}

/// Output buffers for reuse, 256 at the most.
#[derive(Debug, Default)]
#[allow(clippy::vec_box)] // They move in and out of clients, which hold 8 bytes each.
pub struct OutPool(Vec<Box<Out>>);

impl OutPool {
    /// An empty buffer.
    pub fn get(&mut self) -> Box<Out> {
        self.0.pop().unwrap_or_default()
    }

    /// Gives a buffer back; one with a capacity above 128 KiB is freed.
    pub fn give_back(&mut self, mut out: Box<Out>) {
        if self.0.len() < 256 && out.bytes.capacity() <= KEEP_OUT {
            out.bytes.clear();
            out.start = 0;
            out.framed = 0;
            out.messages = 0;
            out.stuck = false;
            self.0.push(out);
        }
    }
}

/// Notes how far a write got: a buffer that is empty goes back to the pool. Returns the messages in
/// it, which are settled by that; 0 while anything is left to write.
#[inline]
pub fn after_write(
    out: &mut Option<Box<Out>>,
    tls: Option<&rustls::ClientConnection>,
    stuck: bool,
    pool: &mut OutPool,
) -> u64 {
    let Some(written) = out else {
        return 0;
    };
    written.stuck = stuck;
    let tls_waits = tls.is_some_and(|tls| tls.wants_write());
    if written.start < written.bytes.len() || tls_waits {
        return 0;
    }
    let messages = u64::from(written.messages);
    if let Some(out) = out.take() {
        pool.give_back(out);
    }
    messages
}

/// The outcome of writing a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOutcome {
    /// Bytes that went to the socket.
    pub sent: u64,
    /// System calls that took some.
    pub writes: u64,
    /// The socket took no more for now.
    pub stuck: bool,
    /// The socket failed.
    pub failed: Option<Errno>,
}

/// Writes as much of `out` as the socket takes, through `tls` where there is one.
pub fn write_out(
    fd: BorrowedFd<'_>,
    tls: Option<&mut rustls::ClientConnection>,
    out: Option<&mut Out>,
) -> WriteOutcome {
    match tls {
        Some(tls) => write_tls(fd, tls, out),
        None => out.map_or(WriteOutcome::default(), |out| write_plain(fd, out)),
    }
}

#[inline]
fn write_plain(fd: BorrowedFd<'_>, out: &mut Out) -> WriteOutcome {
    let mut written = WriteOutcome::default();
    while out.start < out.bytes.len() {
        match socket::write(fd, &out.bytes[out.start..]) {
            Io::Done(n) => {
                out.start += n;
                written.sent += n as u64;
                written.writes += 1;
            }
            Io::WouldBlock => {
                written.stuck = true;
                break;
            }
            Io::Failed(errno) => {
                written.failed = Some(errno);
                break;
            }
        }
    }
    written
}

fn write_tls(
    fd: BorrowedFd<'_>,
    tls: &mut rustls::ClientConnection,
    mut out: Option<&mut Out>,
) -> WriteOutcome {
    let mut written = WriteOutcome::default();
    let mut wire = Wire { fd, moved: 0 };
    loop {
        let mut took = 0;
        if let Some(out) = &mut out {
            // Takes what its own buffer has room for, and cannot fail otherwise. Before the
            // handshake is done rustls holds back plaintext by itself.
            took = tls.writer().write(out.pending()).unwrap_or(0);
            out.start += took;
        }
        while written.failed.is_none() && !written.stuck && tls.wants_write() {
            match tls.write_tls(&mut wire) {
                Ok(_) => written.writes += 1,
                Err(error) if error.kind() == ErrorKind::WouldBlock => written.stuck = true,
                Err(error) => {
                    written.failed = Some(Errno::from_io_error(&error).unwrap_or(Errno::IO));
                }
            }
        }
        if took == 0 || written.stuck || written.failed.is_some() {
            break;
        }
    }
    written.sent = wire.moved;
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn what_the_socket_does_not_take_stays() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut out = Out {
            bytes: vec![7; 4 << 20],
            ..Out::default()
        };
        let first = write_out(ours.as_fd(), None, Some(&mut out));
        assert!(first.stuck && first.sent > 0 && first.sent < 4 << 20);
        // Each system call that took bytes counts.
        assert!(first.writes > 0, "{first:?}");
        assert_eq!(out.pending().len() as u64, (4 << 20) - first.sent);
        let mut read = vec![0; 4 << 20];
        let mut got = 0;
        while got < 4 << 20 {
            got += theirs.read(&mut read).unwrap();
            write_out(ours.as_fd(), None, Some(&mut out));
        }
        assert!(out.pending().is_empty());
        drop(theirs);
        out.bytes.push(1);
        let gone = write_out(ours.as_fd(), None, Some(&mut out));
        assert_eq!(gone.failed, Some(Errno::PIPE));
    }

    #[test]
    fn an_empty_buffer_goes_back_and_settles_its_messages() {
        let mut pool = OutPool::default();
        let mut out = Some(pool.get());
        let some = out.as_mut().unwrap();
        some.bytes.extend_from_slice(b"abc");
        (some.start, some.messages) = (2, 5);
        assert_eq!(after_write(&mut out, None, true, &mut pool), 0);
        assert!(out.as_ref().is_some_and(|out| out.stuck));
        out.as_mut().unwrap().start = 3;
        assert_eq!(after_write(&mut out, None, false, &mut pool), 5);
        assert!(out.is_none());
        assert_eq!(after_write(&mut out, None, false, &mut pool), 0);
        let again = pool.get();
        assert_eq!((again.start, again.messages, again.stuck), (0, 0, false));
        assert!(again.bytes.is_empty() && again.bytes.capacity() > 0);
    }

    #[test]
    fn what_was_written_is_moved_out_once_it_is_the_larger_part() {
        let mut out = Out {
            bytes: vec![1; 100],
            start: 40,
            ..Out::default()
        };
        out.compact();
        assert_eq!(out.start, 40);
        out.start = 60;
        out.compact();
        assert_eq!((out.start, out.bytes.len()), (0, 40));
    }
}
