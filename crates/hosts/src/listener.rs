//! The conductor's end: admits workers and refuses everything else.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pubgauge_clock::udp::Key;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use crate::admission::{Door, Joined, Limits, Refusal};
use crate::credentials::Credentials;
use crate::hello::{ClockServer, Welcome};
use crate::identity::Identity;
use crate::lock;
use crate::machine::Machine;

/// Connections that are accepted between two checks whether to stop.
const AT_ONCE: usize = 64;
/// How long nothing is accepted once descriptors have run out.
const REST: Duration = Duration::from_millis(20);

/// Where and how to listen.
#[derive(Clone, Debug)]
pub struct Options {
    /// The default is a free port on loopback: other hosts can join only where that was asked for.
    pub address: SocketAddr,
    /// Of connections that have not proved a token yet.
    pub limits: Limits,
    /// Port and key of the conductor's clock server, which workers are told.
    pub clock: Option<(u16, Key)>,
    /// Whether a rank may join again, on another connection with a proof of its own, once the one before is
    /// [released](Listener::release) or gone. The default is no: each rank joins once.
    pub again: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            limits: Limits::default(),
            clock: None,
            again: false,
        }
    }
}

/// The connections that came, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Workers that were let in.
    pub joined: u64,
    /// Connections that spoke no TLS, or ended before their hello.
    pub strangers: u64,
    /// Connections without a hello when their time was over.
    pub silent: u64,
    /// Connections that sent something other than a hello, or too many bytes.
    pub garbage: u64,
    /// Workers of another version of the program, or of a run of another size.
    pub mismatched: u64,
    /// Proofs that are not of the rank's token on this connection.
    pub wrong_token: u64,
    /// Proofs of a rank that has joined already, and may not again.
    pub replayed: u64,
    /// Connections that were closed because there were too many, or no thread or descriptor to serve them.
    pub crowded: u64,
}

/// Workers that have not joined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} of {size} workers have not joined within {seconds} s: {}{}", .missing.len(), ranks(.missing), hints(.counts))]
pub struct Missing {
    /// Their ranks.
    pub missing: Vec<u32>,
    /// How many there should be.
    pub size: u32,
    /// How long they were waited for.
    pub seconds: u64,
    /// The connections that came meanwhile.
    pub counts: Counts,
}

/// Ranks in words: the first ten.
pub fn ranks(missing: &[u32]) -> String {
    const SHOWN: usize = 10;
    let shown = missing.iter().take(SHOWN).map(u32::to_string);
    let shown = shown.collect::<Vec<_>>().join(", ");
    let more = if missing.len() > SHOWN { ", ..." } else { "" };
    format!("rank {shown}{more}")
}

fn hints(counts: &Counts) -> String {
    match counts.refused() {
        None => "\n  hint: nobody else came; can the workers reach this address?".into(),
        Some(refused) => format!("\n  refused meanwhile: {refused}"),
    }
}

impl Counts {
    /// Those that were not let in, in words; `None` if there are none.
    pub fn refused(&self) -> Option<String> {
        let refused = [
            (self.mismatched, "were of another version or size"),
            (self.wrong_token, "had a wrong token"),
            (self.replayed, "had a rank that had joined"),
            (self.garbage, "made no sense"),
            (self.strangers, "left without a word"),
            (self.silent, "were silent"),
            (self.crowded, "were too many"),
        ];
        let refused = refused.iter().filter(|(count, _)| *count > 0);
        let refused: Vec<_> = refused
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        (!refused.is_empty()).then(|| refused.join(", "))
    }
}

/// Lets the workers of a run in, on threads of its own, until it is dropped. Those that have joined keep
/// their connections.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    size: u32,
    shared: Arc<Shared>,
    joined: Mutex<Receiver<Joined>>,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Listens for one worker per token of `credentials`, which are those of `identity`.
    ///
    /// # Errors
    /// An address that is taken or not this host's; a thread that cannot be started.
    pub fn start(
        identity: &Identity,
        credentials: &Credentials,
        options: Options,
    ) -> io::Result<Listener> {
        let socket = TcpListener::bind(options.address)?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        let size = credentials.tokens.len() as u32;
        let clock = options.clock.as_ref();
        let welcome = Welcome {
            size,
            machine: Machine::here(),
            clock: clock.map(|(port, key)| ClockServer::new(*port, key)),
        };
        let (sender, joined) = channel();
        let shared = Arc::new(Shared {
            door: Door {
                config: Arc::clone(&identity.config),
                tokens: credentials.tokens.clone(),
                welcome,
                limits: options.limits,
                again: options.again,
                here: Mutex::default(),
            },
            counts: Mutex::default(),
            pending: Mutex::default(),
        });
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let (hall, until) = (Arc::clone(&shared), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("joining".into())
            .spawn(move || listen(&socket, &hall, &sender, &until))?;
        Ok(Listener {
            address,
            size,
            shared,
            joined: Mutex::new(joined),
            stop,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The connections that came so far.
    pub fn counts(&self) -> Counts {
        *lock(&self.shared.counts)
    }

    /// Ranks that have not joined, in order; where they may join again, those whose connection is gone too.
    pub fn missing(&self) -> Vec<u32> {
        self.shared.door.missing()
    }

    /// The connection of this rank is in use: it may join again, if [`Options::again`] lets it.
    pub fn release(&self, rank: u32) {
        self.shared.door.release(rank);
    }

    /// The next worker that is let in; `None` if none is within `longest`.
    pub fn next(&self, longest: Duration) -> Option<Joined> {
        lock(&self.joined).recv_timeout(longest).ok()
    }

    /// All workers by rank, once the last has joined. Those that [`next`](Self::next) has given are not
    /// among them.
    ///
    /// # Errors
    /// The workers that have not joined within `longest`. The connections of those that have are dropped
    /// then.
    pub fn all(&self, longest: Duration) -> Result<Vec<Joined>, Missing> {
        let until = Instant::now() + longest;
        let mut all = Vec::new();
        loop {
            while let Some(joined) = self.next(Duration::ZERO) {
                all.push(joined);
            }
            let missing = self.missing();
            let left = until.saturating_duration_since(Instant::now());
            if missing.is_empty() && self.counts().joined >= u64::from(self.size) {
                while let Some(joined) = self.next(Duration::ZERO) {
                    all.push(joined);
                }
                all.sort_by_key(|joined| joined.hello.rank);
                return Ok(all);
            }
            if left == Duration::ZERO {
                return Err(Missing {
                    missing,
                    size: self.size,
                    seconds: longest.as_secs(),
                    counts: self.counts(),
                });
            }
            all.extend(self.next(left.min(Duration::from_millis(50))));
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // It fails only where the counter is full, which is a stop as well.
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // It has no reason to panic, and no result.
            let _ = thread.join();
        }
    }
}

#[derive(Debug)]
struct Shared {
    door: Door,
    counts: Mutex<Counts>,
    /// Connections without a hello yet, the oldest first.
    pending: Mutex<VecDeque<(u64, TcpStream)>>,
}

impl Shared {
    /// Adds a pending connection; closes the oldest where there are too many.
    fn wait(&self, number: u64, socket: TcpStream) {
        let mut pending = lock(&self.pending);
        pending.push_back((number, socket));
        while pending.len() > self.door.limits.pending {
            if let Some((_, oldest)) = pending.pop_front() {
                // One that is gone already needs no shutdown.
                let _ = oldest.shutdown(Shutdown::Both);
                lock(&self.counts).crowded += 1;
            }
        }
    }

    /// A connection is no longer pending; returns whether it was.
    fn leaves(&self, number: u64) -> bool {
        let mut pending = lock(&self.pending);
        let place = pending.iter().position(|(other, _)| *other == number);
        place.and_then(|place| pending.remove(place)).is_some()
    }

    /// Admits or refuses a connection.
    fn hear(&self, number: u64, socket: TcpStream, to: &Sender<Joined>) {
        let claimed = Cell::new(false);
        let admitted = self.door.admit(socket, || {
            claimed.set(self.leaves(number));
            claimed.get()
        });
        match admitted {
            Ok(joined) => {
                // Sent first, so that a reader of the count finds the worker.
                if to.send(joined).is_ok() {
                    lock(&self.counts).joined += 1;
                }
            }
            // Those that were closed to make room have been counted.
            Err(refusal) if claimed.get() || self.leaves(number) => self.count(refusal),
            Err(_) => {}
        }
    }

    fn count(&self, refusal: Refusal) {
        let mut counts = lock(&self.counts);
        let count = match refusal {
            Refusal::Stranger => &mut counts.strangers,
            Refusal::Silent => &mut counts.silent,
            Refusal::Garbage => &mut counts.garbage,
            Refusal::Mismatched => &mut counts.mismatched,
            Refusal::WrongToken => &mut counts.wrong_token,
            Refusal::Replayed => &mut counts.replayed,
            Refusal::Evicted => &mut counts.crowded,
        };
        *count += 1;
    }
}

fn listen(socket: &TcpListener, shared: &Arc<Shared>, to: &Sender<Joined>, stop: &OwnedFd) {
    let mut hearing: Vec<JoinHandle<()>> = Vec::new();
    let mut number = 0;
    loop {
        let mut waiting = [
            PollFd::new(socket, PollFlags::IN),
            PollFd::new(stop, PollFlags::IN),
        ];
        // A wait that a signal ended is a wait that found nothing.
        let _ = poll(&mut waiting, None);
        if !waiting[1].revents().is_empty() {
            break;
        }
        // A bounded number, so that a flood does not keep it from being stopped.
        for _ in 0..AT_ONCE {
            match socket.accept() {
                Ok((connection, _)) => {
                    number += 1;
                    match take(connection, number, shared, to) {
                        Ok(thread) => hearing.push(thread),
                        // It cannot be served.
                        Err(_) => {
                            shared.leaves(number);
                            lock(&shared.counts).crowded += 1;
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // It was closed before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => {
                    // Most likely no descriptors: pending connections will free some.
                    lock(&shared.counts).crowded += 1;
                    std::thread::sleep(REST);
                    break;
                }
            }
        }
        hearing.retain(|thread| !thread.is_finished());
    }
    for (_, connection) in lock(&shared.pending).drain(..) {
        // One that is gone already needs no shutdown.
        let _ = connection.shutdown(Shutdown::Both);
    }
    for thread in hearing {
        // It has no reason to panic, and no result.
        let _ = thread.join();
    }
}

fn take(
    connection: TcpStream,
    number: u64,
    shared: &Arc<Shared>,
    to: &Sender<Joined>,
) -> io::Result<JoinHandle<()>> {
    // The listening socket does not block. On Linux accepted ones do not inherit that; elsewhere they do.
    connection.set_nonblocking(false)?;
    shared.wait(number, connection.try_clone()?);
    let (shared, to) = (Arc::clone(shared), to.clone());
    let thread = std::thread::Builder::new().name(format!("joining-{number}"));
    thread.spawn(move || shared.hear(number, connection, &to))
}
