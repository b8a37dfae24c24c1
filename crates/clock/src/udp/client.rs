//! The near end: sends questions.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::key::{Key, random};
use super::packet::{Kind, LEN, Packet, Refused};
use super::reading::Reading;
use crate::Exchange;

/// Questions whose answers are waited for; those before are lost.
const OPEN: usize = 256;

/// What became of a client's questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientCounts {
    /// Questions sent. Those that were neither answered nor are open are lost.
    pub asked: u64,
    /// Answers taken.
    pub heard: u64,
    /// Packets that are no answers: of another length, kind or version.
    pub garbage: u64,
    /// Packets that were not made with the run's key.
    pub forged: u64,
    /// Answers that came again, or to nothing that is open.
    pub replayed: u64,
    /// Sends and receives that failed, most often because no server listens there.
    pub failed: u64,
}

/// Asks one server. It has a socket and a session of its own.
pub struct Client {
    socket: UdpSocket,
    key: Key,
    clock: Reading,
    session: u64,
    /// Number and time of questions that are not answered, in order.
    open: VecDeque<(u64, u64)>,
    counts: ClientCounts,
}

impl Client {
    /// A client of the server at `server`.
    ///
    /// # Errors
    /// No socket, no route to the server, or no random numbers.
    pub fn connect(server: SocketAddr, key: Key, clock: Reading) -> io::Result<Client> {
        let own: SocketAddr = match server {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(own)?;
        // The kernel drops what comes from elsewhere.
        socket.connect(server)?;
        socket.set_nonblocking(true)?;
        Ok(Client {
            socket,
            key,
            clock,
            session: u64::from_be_bytes(random()?),
            open: VecDeque::with_capacity(OPEN),
            counts: ClientCounts::default(),
        })
    }

    /// The address that it asks from.
    ///
    /// # Errors
    /// If the kernel does not give it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// What became of the questions so far.
    pub fn counts(&self) -> ClientCounts {
        self.counts
    }

    /// Sends a question. One that cannot be sent counts as failed, and is lost.
    pub fn ask(&mut self) {
        self.counts.asked += 1;
        let number = self.counts.asked;
        let sent = (self.clock)();
        let question = Packet {
            kind: Kind::Question,
            session: self.session,
            number,
            sent,
            received: 0,
            answered: 0,
        };
        match self.socket.send(&question.encode(&self.key)) {
            Ok(_) => {
                if self.open.len() == OPEN {
                    self.open.pop_front();
                }
                self.open.push_back((number, sent));
            }
            Err(_) => self.counts.failed += 1,
        }
    }

    /// Waits for an answer to any question that is open, until `until` at the latest.
    pub fn hear(&mut self, until: Instant) -> Option<Exchange> {
        loop {
            if let Some(exchange) = self.take() {
                return Some(exchange);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                return None;
            }
            let mut waiting = [PollFd::new(&self.socket, PollFlags::IN)];
            let left = Timespec::try_from(left).ok();
            // A wait that a signal ended is a wait that found nothing.
            let _ = poll(&mut waiting, left.as_ref());
        }
    }

    /// Takes what has come, up to the first answer.
    fn take(&mut self) -> Option<Exchange> {
        // One byte more, so that a longer packet is not taken for a whole one.
        let mut bytes = [0; LEN + 1];
        loop {
            let length = match self.socket.recv(&mut bytes) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => {
                    // The kernel reports an error once, and then packets again.
                    self.counts.failed += 1;
                    continue;
                }
            };
            let heard = (self.clock)();
            match Packet::decode(&bytes[..length], &self.key) {
                Ok(packet) if packet.kind == Kind::Answer => match self.close(&packet) {
                    true => {
                        self.counts.heard += 1;
                        return Some(Exchange {
                            sent: packet.sent,
                            received: packet.received,
                            answered: packet.answered,
                            heard,
                        });
                    }
                    false => self.counts.replayed += 1,
                },
                Ok(_) | Err(Refused::Garbage) => self.counts.garbage += 1,
                Err(Refused::Forged) => self.counts.forged += 1,
            }
        }
    }

    /// Whether this answers a question that is open, which is answered then.
    fn close(&mut self, answer: &Packet) -> bool {
        let own = answer.session == self.session;
        let asked = (answer.number, answer.sent);
        let place = self.open.iter().position(|open| own && *open == asked);
        place.and_then(|place| self.open.remove(place)).is_some()
    }
}
