//! The far end: answers questions.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use super::key::Key;
use super::packet::{Kind, LEN, Packet, Refused};
use super::reading::Reading;

/// Sessions that are kept, so that their questions are answered once. Only holders of the key open
/// any.
const SESSIONS: usize = 4_096;

/// Packets that are taken between two checks whether to stop.
const AT_ONCE: usize = 256;

/// The packets that came to a server, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounts {
    /// Questions answered.
    pub answered: u64,
    /// Packets that are no questions: of another length, kind or version.
    pub garbage: u64,
    /// Packets that were not made with the run's key.
    pub forged: u64,
    /// Questions that came again, or 64 or more behind the latest.
    pub replayed: u64,
    /// Questions of sessions beyond the first 4,096.
    pub crowded: u64,
    /// Receives and sends that failed.
    pub failed: u64,
}

/// Answers questions on a thread of its own until it is stopped or dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    counts: Arc<Mutex<ServerCounts>>,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens on `address`; port 0 takes a free one.
    ///
    /// # Errors
    /// An address that is taken or not this host's; a thread that cannot be started.
    pub fn start(address: impl ToSocketAddrs, key: Key, clock: Reading) -> io::Result<Server> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let counts = Arc::new(Mutex::default());
        let answering = Answering {
            socket,
            key,
            clock,
            sessions: HashMap::new(),
            counts: Arc::clone(&counts),
        };
        let until = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("clock-server".into())
            .spawn(move || answering.run(&until))?;
        Ok(Server {
            address,
            counts,
            stop,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The packets that came so far.
    pub fn counts(&self) -> ServerCounts {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops answering; returns the counts of all packets.
    pub fn stop(mut self) -> ServerCounts {
        self.end();
        self.counts()
    }

    fn end(&mut self) {
        if let Some(thread) = self.thread.take() {
            // It fails only where the counter is full, which is a stop as well.
            let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
            // It has no reason to panic, and no result.
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

struct Answering {
    socket: UdpSocket,
    key: Key,
    clock: Reading,
    sessions: HashMap<u64, Window>,
    counts: Arc<Mutex<ServerCounts>>,
}

impl Answering {
    fn run(mut self, stop: &OwnedFd) {
        loop {
            let mut waiting = [
                PollFd::new(&self.socket, PollFlags::IN),
                PollFd::new(stop, PollFlags::IN),
            ];
            // A wait that a signal ended is a wait that found nothing.
            let _ = poll(&mut waiting, None);
            if !waiting[1].revents().is_empty() {
                return;
            }
            // A bounded number, so that a flood does not keep it from being stopped.
            for _ in 0..AT_ONCE {
                if !self.take() {
                    break;
                }
            }
        }
    }

    /// Takes one packet; returns whether there was one.
    fn take(&mut self) -> bool {
        // One byte more, so that a longer packet is not taken for a whole one.
        let mut bytes = [0; LEN + 1];
        let (length, from) = match self.socket.recv_from(&mut bytes) {
            Ok(came) => came,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return true,
            Err(error) => {
                if error.kind() != io::ErrorKind::WouldBlock {
                    self.count(|counts| &mut counts.failed);
                }
                return false;
            }
        };
        let received = (self.clock)();
        let question = match Packet::decode(&bytes[..length], &self.key) {
            Ok(packet) if packet.kind == Kind::Question => packet,
            Ok(_) | Err(Refused::Garbage) => return self.count(|counts| &mut counts.garbage),
            Err(Refused::Forged) => return self.count(|counts| &mut counts.forged),
        };
        let is_full = self.sessions.len() >= SESSIONS;
        if is_full && !self.sessions.contains_key(&question.session) {
            return self.count(|counts| &mut counts.crowded);
        }
        let window = self.sessions.entry(question.session).or_default();
        if !window.takes(question.number) {
            return self.count(|counts| &mut counts.replayed);
        }
        let mut answer = Packet {
            kind: Kind::Answer,
            received,
            ..question
        };
        answer.answered = (self.clock)();
        match self.socket.send_to(&answer.encode(&self.key), from) {
            Ok(_) => self.count(|counts| &mut counts.answered),
            Err(_) => self.count(|counts| &mut counts.failed),
        }
    }

    fn count(&self, what: impl Fn(&mut ServerCounts) -> &mut u64) -> bool {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *what(&mut counts) += 1;
        true
    }
}

/// Which questions of a session have come, as RFC 4303 section 3.4.3 has it for packets.
#[derive(Debug, Default)]
struct Window {
    highest: u64,
    /// Bit n: `highest - n` has come.
    came: u64,
}

impl Window {
    /// Notes a question; returns whether it is new.
    fn takes(&mut self, number: u64) -> bool {
        if number == 0 {
            return false;
        }
        if number > self.highest {
            let by = number - self.highest;
            self.came = u32::try_from(by)
                .ok()
                .and_then(|by| self.came.checked_shl(by))
                .unwrap_or(0);
            self.came |= 1;
            self.highest = number;
            return true;
        }
        let bit = match self.highest - number {
            behind @ 0..64 => 1 << behind,
            _ => return false,
        };
        let is_new = self.came & bit == 0;
        self.came |= bit;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_taken_once() {
        let mut window = Window::default();
        assert!(!window.takes(0));
        assert!(window.takes(1));
        assert!(!window.takes(1));
        assert!(window.takes(3) && window.takes(2));
        assert!(!window.takes(2) && !window.takes(3));
        assert!(window.takes(66));
        // 66 - 63 = 3 has come; 2 is too far back to know.
        assert!(!window.takes(3) && !window.takes(2) && window.takes(4));
        assert!(window.takes(u64::MAX));
        assert!(!window.takes(66) && !window.takes(u64::MAX));
        assert!(window.takes(u64::MAX - 63));
    }
}
