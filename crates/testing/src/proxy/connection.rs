//! A connection through the proxy: two sockets, and a pipe for each direction.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};

use pubgauge_net::socket::{self, Io};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rustix::net::{Shutdown, shutdown};

use super::counts::{ConnectionCounts, Passed, Traffic};
use super::link::Piece;
use super::mqtt::{Protocol, Unacknowledged};
use super::rules::Direction;

/// A socket and its readiness as epoll has reported it.
pub(super) struct Socket {
    pub fd: OwnedFd,
    pub readable: bool,
    pub writable: bool,
}

impl Socket {
    pub(super) fn new(fd: OwnedFd) -> Socket {
        Socket {
            fd,
            readable: false,
            writable: false,
        }
    }
}

/// Bytes to write, and when they are due.
struct Pending {
    piece: Piece,
    entered_ns: u64,
    due_ns: u64,
}

/// One direction of a connection.
pub(super) struct Pipe {
    /// Its connection, in the order of connecting.
    connection: usize,
    direction: Direction,
    /// What was read and is not a whole packet yet.
    pub inbox: Vec<u8>,
    /// Bytes that wait in the link and in `out`.
    pub buffered: usize,
    /// The buffer was full, and the link has been busy since.
    pub behind: bool,
    /// Is in the queue of pipes to be read from.
    pub queued: bool,
    /// Is in the list of pipes to be written to.
    pub touched: bool,
    /// Nothing more comes from the source.
    pub ended: bool,
    /// Nothing more goes to the other side: its direction was shut down, or it takes nothing.
    pub done: bool,
    pub unacknowledged: Unacknowledged,
    pub draws: StdRng,
    /// Bytes that are due, to be written as soon as the socket takes them.
    pub out: VecDeque<u8>,
    pending: VecDeque<Pending>,
    /// Bytes of the first of `pending` that were written.
    written: u32,
}

impl Pipe {
    fn new(connection: usize, direction: Direction, seed: u64) -> Pipe {
        Pipe {
            connection,
            direction,
            inbox: Vec::new(),
            buffered: 0,
            behind: false,
            queued: false,
            touched: false,
            ended: false,
            done: false,
            unacknowledged: Unacknowledged::default(),
            draws: StdRng::seed_from_u64(seed ^ (2 * connection as u64 + direction as u64)),
            out: VecDeque::new(),
            pending: VecDeque::new(),
            written: 0,
        }
    }

    /// Notes that bytes were appended to `out`.
    pub(super) fn append(&mut self, piece: Piece, entered_ns: u64, due_ns: u64) {
        self.pending.push_back(Pending {
            piece,
            entered_ns,
            due_ns,
        });
    }

    /// Notes that nothing more can go to the other side.
    pub(super) fn break_off(&mut self, traffic: &mut Traffic) {
        self.done = true;
        self.buffered = 0;
        self.out = VecDeque::new();
        self.pending = VecDeque::new();
        traffic.discard();
    }

    /// Writes what the other side takes, and tells it the end after the last of it.
    fn write(&mut self, to: &mut Socket, now: u64, traffic: &mut Traffic, trace: &mut Trace) {
        while to.writable && !self.out.is_empty() {
            match socket::write(to.fd.as_fd(), self.out.as_slices().0) {
                Io::Done(n) => {
                    self.out.drain(..n);
                    self.buffered -= n;
                    self.account(n as u32, now, traffic, trace);
                }
                Io::WouldBlock => {
                    to.writable = false;
                    // The other side delays this, not the link.
                    self.behind = false;
                }
                Io::Failed(_) => self.break_off(traffic),
            }
        }
        if self.ended && !self.done && traffic.waiting.bytes == 0 {
            self.done = true;
            // It fails if the other side has ended too.
            let _ = shutdown(&to.fd, Shutdown::Write);
        }
    }

    fn account(&mut self, n: u32, now: u64, traffic: &mut Traffic, trace: &mut Trace) {
        self.written += n;
        while let Some(first) = self.pending.front()
            && first.piece.len <= self.written
        {
            let amount = first.piece.kind.amount(first.piece.len);
            self.written -= first.piece.len;
            traffic.pass(amount, now, first.due_ns);
            if let Some(trace) = trace {
                trace.push(Passed {
                    connection: self.connection,
                    direction: self.direction,
                    amount,
                    entered_ns: first.entered_ns,
                    due_ns: first.due_ns,
                    passed_ns: now,
                });
            }
            self.pending.pop_front();
        }
    }
}

/// State of an open connection.
pub(super) struct Live {
    /// Index of its link.
    pub link: usize,
    pub protocol: Protocol,
    /// The client's, the server's.
    pub sockets: [Socket; 2],
    pub pipes: [Pipe; 2],
}

impl Live {
    pub(super) fn new(connection: usize, link: usize, sockets: [OwnedFd; 2], seed: u64) -> Live {
        Live {
            link,
            protocol: Protocol::Unknown,
            sockets: sockets.map(Socket::new),
            pipes: Direction::BOTH.map(|direction| Pipe::new(connection, direction, seed)),
        }
    }

    pub(super) fn pipe(&mut self, direction: Direction) -> &mut Pipe {
        &mut self.pipes[direction as usize]
    }

    /// The socket that this direction reads from.
    pub(super) fn source(&mut self, direction: Direction) -> &mut Socket {
        &mut self.sockets[direction as usize]
    }

    /// Writes what the other side takes, and tells it the end after the last of it.
    pub(super) fn write(
        &mut self,
        direction: Direction,
        now: u64,
        traffic: &mut Traffic,
        trace: &mut Trace,
    ) {
        let to = &mut self.sockets[direction.opposite() as usize];
        self.pipes[direction as usize].write(to, now, traffic, trace);
    }

    /// Whether both directions are done.
    pub(super) fn over(&self) -> bool {
        self.pipes.iter().all(|pipe| pipe.done)
    }
}

/// The record of everything that has passed, if it is kept.
pub(super) type Trace = Option<Vec<Passed>>;

/// A connection, which may have ended.
pub(super) struct Connection {
    pub counts: ConnectionCounts,
    pub live: Option<Box<Live>>,
}
