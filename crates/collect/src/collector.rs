//! The loop of a collector: one thread reads from all brokers at the rhythm of the commits, and acknowledges what is
//! on disk.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use pubgauge_net::tls::Setup;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::Serialize;

use crate::Error;
use crate::config::Config;
use crate::files::hour_of;
use crate::folder::Folder;
use crate::gather::{Acks, Gather};
use crate::known::{Known, Seen};
use crate::link::Link;
use crate::names::{LookUp, Names};
use crate::notice::{Notice, Watch};
use crate::peer::Peer;
use crate::session::{Asked, Session, State, Taking};
use crate::status::Status;
use crate::storage::{Shared, Storage, Waker, unix_ns};

/// Longest sleep: the stop flag, which a signal may set, is looked at in between.
const LONGEST: Duration = Duration::from_millis(200);

/// When a collection ends by itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Until {
    /// Once at least so many messages are stored.
    pub messages: Option<u64>,
    /// After so long.
    pub time: Option<Duration>,
    /// Once nothing came for so long while all brokers were connected.
    pub quiet: Option<Duration>,
}

/// What a collection came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Messages stored.
    pub messages: u64,
    /// Messages whose acknowledgement was sent.
    pub acknowledged: u64,
    /// Finished files.
    pub files: u64,
    /// Messages in the log that cannot be read.
    pub damaged: u64,
    /// Everything is in finished files; if not, the next start goes on with it.
    pub complete: bool,
}

/// A collector, before it begins.
pub struct Collector {
    config: Config,
    look_up: LookUp,
    tls: Option<Setup>,
    folder: Arc<Folder>,
    status: Arc<Status>,
    watch: Watch,
}

impl Collector {
    /// Takes the data folder and reads the certificates.
    ///
    /// # Errors
    /// A folder that cannot be used, certificates that cannot be read.
    pub fn new(config: Config, look_up: LookUp, watch: Watch) -> Result<Collector, Error> {
        let wants_tls = config
            .brokers
            .iter()
            .any(|broker| broker.encryption.is_on());
        let tls = wants_tls.then(|| {
            let host = |place: usize| config.brokers[place].host.as_str();
            Setup::new(&config.tls, &config.brokers, host, &[b"mqtt"])
        });
        let tls = tls.transpose().map_err(|error| Error {
            is_input: true,
            what: error.what,
            hint: error.hint,
        })?;
        let folder = Arc::new(Folder::open(&config.to, config.name.as_deref())?);
        Ok(Collector {
            config,
            look_up,
            tls,
            folder,
            status: Arc::default(),
            watch,
        })
    }

    /// Its figures.
    pub fn status(&self) -> Arc<Status> {
        self.status.clone()
    }

    /// Collects until `stop` is set, or as `until` says.
    ///
    /// # Errors
    /// If the log cannot be taken, or the system gives no descriptors.
    pub fn run(self, until: Until, stop: &AtomicBool) -> Result<Summary, Error> {
        let waker = Waker::new()?;
        let shared = Shared {
            folder: self.folder.clone(),
            status: self.status.clone(),
            watch: self.watch.clone(),
            waker: waker.clone(),
        };
        let storage = Storage::open(&shared, self.config.form, self.config.limits)?;
        let config = &self.config;
        let names = Names::begin(
            config.brokers.clone(),
            config.resolve_every,
            self.look_up.clone(),
            waker.clone(),
        );
        let known = Known::read(&self.folder.sessions());
        let asked = Asked {
            client_id: self.folder.name.clone(),
            version: config.version,
            qos: config.qos,
            filters: config.filters.clone(),
            dropped_filters: known
                .filters
                .iter()
                .filter(|old| !config.filters.contains(old))
                .cloned()
                .collect(),
            expiry_s: config.session_expiry_s,
            keep_alive_s: config.keep_alive_s,
            password: config.password.clone(),
        };
        let now = Instant::now();
        let mut lead = Loop {
            gather: Gather::new(storage.mark, storage.next_seq),
            storage,
            names,
            asked,
            waker,
            peers: Vec::new(),
            next_peer: 0,
            tick: None,
            first: 0,
            began: now,
            heard_at: now,
            collector: &self,
        };
        lead.recall(&known);
        lead.run(until, stop)?;
        Ok(lead.end())
    }
}

/// The loop at work.
struct Loop<'a> {
    collector: &'a Collector,
    storage: Storage,
    gather: Gather,
    names: Names,
    asked: Asked,
    waker: Waker,
    peers: Vec<Peer>,
    next_peer: u32,
    /// When sockets are read next; `None` while nothing comes, and any byte begins it anew.
    tick: Option<Instant>,
    /// The peer that is read first.
    first: usize,
    began: Instant,
    /// When a message came last.
    heard_at: Instant,
}

impl Loop<'_> {
    fn notice(&self, notice: &Notice) {
        (self.collector.watch)(notice);
    }

    fn run(&mut self, until: Until, stop: &AtomicBool) -> Result<(), Error> {
        while !stop.load(Relaxed) && !self.is_over(until) {
            let now = Instant::now();
            self.look_at_names();
            self.keep_connections(now);
            self.take_stored();
            if self.tick.is_some_and(|tick| now >= tick) && !self.is_full() {
                self.read_all(now);
            }
            self.store();
            self.sleep()?;
        }
        Ok(())
    }

    fn is_over(&self, until: Until) -> bool {
        let status = &self.collector.status;
        let all_up =
            !self.peers.is_empty() && self.peers.iter().all(|peer| peer.is_up() || peer.gone);
        until
            .messages
            .is_some_and(|messages| status.stored.get() >= messages)
            || until.time.is_some_and(|time| self.began.elapsed() >= time)
            || until
                .quiet
                .is_some_and(|quiet| all_up && self.heard_at.elapsed() >= quiet)
    }

    /// Whether as much was gathered as may wait for the disk.
    fn is_full(&self) -> bool {
        self.gather.commit().frames.len() >= self.collector.config.commit_bytes
    }

    fn read_all(&mut self, now: Instant) {
        let config = &self.collector.config;
        let status = &self.collector.status;
        let (mut notices, mut out) = (Vec::new(), Vec::new());
        let (mut messages, mut more) = (0, false);
        let count = self.peers.len();
        for nth in 0..count {
            let at = (self.first + nth) % count;
            let peer = &mut self.peers[at];
            let was_up = peer.is_up();
            // Answers of a connection that failed are nobody else's.
            out.clear();
            let mut taking = Taking {
                asked: &self.asked,
                gather: &mut self.gather,
                out: &mut out,
                notices: &mut notices,
                at: (now, 0),
                received: [0; 3],
                marked_duplicate: 0,
                payload_bytes: 0,
            };
            let full = |gather: &Gather| gather.commit().frames.len() >= config.commit_bytes;
            let took = peer.read(&mut taking, full, || (Instant::now(), unix_ns()));
            for (count, received) in status.received.iter().zip(taking.received) {
                count.add(received);
            }
            let own: u64 = taking.received.iter().sum();
            status.marked_duplicate.add(taking.marked_duplicate);
            status.payload_bytes.add(taking.payload_bytes);
            messages += own;
            let came_up = !was_up && peer.is_up();
            if own > 0 || came_up {
                status.broker(&peer.session.broker, |broker| broker.messages += own);
            }
            if came_up {
                self.came_up(at);
            }
            match took {
                Ok(left) => more |= left,
                Err(why) => self.lost(at, why, now),
            }
            if more {
                // The next one's turn.
                self.first = at + 1;
                break;
            }
        }
        for notice in &notices {
            self.notice(notice);
        }
        if messages > 0 {
            self.heard_at = now;
        }
        self.tick = match (messages, more) {
            (_, true) => Some(now),
            (0, false) => None,
            _ => Some(now + config.commit_every),
        };
        self.note_oldest();
    }

    fn note_oldest(&self) {
        let oldest = self.storage.oldest.or(self.gather.commit().oldest);
        self.collector.status.note_oldest(oldest);
    }

    /// Hands what was gathered to the disk, if that is not busy.
    fn store(&mut self) {
        if !self.storage.is_busy() && !self.gather.commit().is_empty() {
            let commit = self.gather.take(hour_of(unix_ns()));
            self.storage.store(commit);
        }
    }

    /// Acknowledges what is on disk.
    fn take_stored(&mut self) {
        while let Some(commit) = self.storage.stored() {
            for acks in &commit.acks {
                self.acknowledge(acks);
            }
            self.gather.give_back(commit);
            self.note_oldest();
        }
    }

    fn acknowledge(&mut self, acks: &Acks) {
        let found = self
            .peers
            .iter()
            .position(|peer| peer.session.peer == acks.peer);
        let Some(at) = found else {
            return;
        };
        let peer = &mut self.peers[at];
        // Identifiers of another connection mean other messages; the broker sends these again.
        let same =
            peer.session.connection == acks.connection && peer.session.state != State::Greeting;
        let Some(link) = peer.link.as_mut().filter(|_| same) else {
            return;
        };
        link.out().extend_from_slice(&acks.bytes);
        let flushed = link.flush();
        self.collector
            .status
            .acknowledged
            .add((acks.bytes.len() / ACK_LEN) as u64);
        if let Err(why) = flushed {
            self.lost(at, why, Instant::now());
        }
    }

    fn came_up(&mut self, at: usize) {
        let peer = &mut self.peers[at];
        peer.connected_s = unix_s();
        let broker = peer.session.broker.clone();
        let session_present = peer.session.was_present;
        self.collector.status.broker(&broker, |status| {
            status.connected = true;
            status.connections += 1;
        });
        self.notice(&Notice::Connected {
            broker,
            session_present,
        });
        self.remember();
    }

    fn lost(&mut self, at: usize, why: String, now: Instant) {
        let peer = &mut self.peers[at];
        if peer.is_up() {
            peer.connected_s = unix_s();
        }
        let wait = peer.failed(now);
        let notice = peer.failure(why, wait);
        self.collector
            .status
            .broker(&peer.session.broker, |status| status.connected = false);
        self.notice(&notice);
        self.remember();
    }

    /// Connects, keeps sessions alive, gives up what has expired.
    fn keep_connections(&mut self, now: Instant) {
        let reads = !self.is_full();
        let mut at = 0;
        while at < self.peers.len() {
            if self.has_expired(at) {
                self.give_up(at);
                continue;
            }
            let peer = &mut self.peers[at];
            let kept = if peer.is_due(now) {
                self.connect(at, now)
            } else {
                let kept = peer.keep_alive(now, reads);
                kept.and_then(|()| peer.link.as_mut().map_or(Ok(()), Link::flush))
            };
            if let Err(why) = kept {
                self.lost(at, why, now);
            }
            at += 1;
        }
    }

    fn connect(&mut self, at: usize, now: Instant) -> Result<(), String> {
        let peer = &mut self.peers[at];
        let endpoint = &self.collector.config.brokers[peer.endpoint];
        let setup = self
            .collector
            .tls
            .as_ref()
            .filter(|_| endpoint.encryption.is_on());
        let tls = setup.map(|setup| setup.begin(peer.endpoint)).transpose()?;
        let link = Link::begin(peer.address, &peer.session.shown, tls)?;
        peer.begin(link, now);
        Ok(())
    }

    fn has_expired(&self, at: usize) -> bool {
        let peer = &self.peers[at];
        let expiry = u64::from(self.collector.config.session_expiry_s);
        peer.gone && !peer.is_up() && unix_s().saturating_sub(peer.connected_s) > expiry
    }

    fn give_up(&mut self, at: usize) {
        let peer = self.peers.remove(at);
        let name = self.collector.config.brokers[peer.endpoint].shown.clone();
        let broker = peer.session.broker;
        self.collector.status.forget(&broker);
        if peer.session.had_session {
            self.notice(&Notice::AddressGivenUp { name, broker });
        }
        self.remember();
    }

    /// The brokers that had a session of this collector.
    fn recall(&mut self, known: &Known) {
        for (broker, seen) in &known.brokers {
            let endpoint = self
                .collector
                .config
                .brokers
                .iter()
                .position(|one| one.shown == seen.name);
            let (Some(endpoint), Ok(address)) = (endpoint, broker.parse()) else {
                let (name, broker) = (seen.name.clone(), broker.clone());
                self.notice(&Notice::BrokerLeft { name, broker });
                continue;
            };
            let peer = self.add(endpoint, address);
            peer.session.had_session = true;
            peer.connected_s = seen.connected_s;
        }
    }

    fn add(&mut self, endpoint: usize, address: SocketAddr) -> &mut Peer {
        let configured = &self.collector.config.brokers[endpoint];
        let broker = address.to_string();
        self.collector.status.broker(&broker, |_| {});
        let session = Session::new(
            self.next_peer,
            broker,
            configured.shown.clone(),
            configured.username.clone(),
        );
        self.next_peer += 1;
        let mut peer = Peer::new(endpoint, address, session, Instant::now());
        peer.connected_s = unix_s();
        self.peers.push(peer);
        let last = self.peers.len() - 1;
        &mut self.peers[last]
    }

    fn look_at_names(&mut self) {
        while let Some((endpoint, found)) = self.names.found() {
            let name = self.collector.config.brokers[endpoint].shown.clone();
            let addresses = match found {
                Ok(addresses) => addresses,
                Err(why) => {
                    self.notice(&Notice::NameNotFound { name, why });
                    continue;
                }
            };
            for &address in &addresses {
                let known = self.peers.iter_mut().find(|peer| peer.address == address);
                if known.is_none() {
                    let broker = address.to_string();
                    self.notice(&Notice::AddressFound {
                        name: name.clone(),
                        broker,
                    });
                    self.add(endpoint, address);
                }
            }
            let mut changed = Vec::new();
            for peer in self
                .peers
                .iter_mut()
                .filter(|peer| peer.endpoint == endpoint)
            {
                let gone = !addresses.contains(&peer.address);
                if gone != peer.gone {
                    peer.gone = gone;
                    changed.push((peer.session.broker.clone(), gone));
                }
            }
            for (broker, gone) in changed {
                self.collector
                    .status
                    .broker(&broker, |status| status.gone = gone);
                let name = name.clone();
                self.notice(&if gone {
                    Notice::AddressGone { name, broker }
                } else {
                    Notice::AddressFound { name, broker }
                });
            }
        }
    }

    /// Writes down where sessions are.
    fn remember(&self) {
        let brokers = &self.collector.config.brokers;
        let each = self
            .peers
            .iter()
            .filter(|peer| peer.session.had_session)
            .map(|peer| {
                let name = brokers[peer.endpoint].shown.clone();
                let seen = Seen {
                    name,
                    connected_s: peer.connected_s,
                };
                (peer.session.broker.clone(), seen)
            });
        let mut filters = self.asked.filters.clone();
        let is_asked = |peer: &Peer| !peer.session.had_session || peer.session.was_up;
        if !self.peers.iter().all(is_asked) {
            // Sessions there still have them.
            filters.extend_from_slice(&self.asked.dropped_filters);
        }
        let known = Known {
            brokers: each.collect(),
            filters,
        };
        // On a full disk the older file stays; the same brokers are found by their names.
        let _ = known.write(&self.collector.folder.sessions());
    }

    /// Sleeps until the next thing is due, and takes note of which sockets can go on.
    fn sleep(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        let idle = self.tick.is_none() && !self.is_full();
        let due = self.peers.iter().map(Peer::next_due);
        let tick = self.tick.filter(|_| !self.is_full());
        let wake_at = due
            .chain(tick)
            .min()
            .unwrap_or(now + LONGEST)
            .min(now + LONGEST);
        let wait = wake_at.saturating_duration_since(now);
        let ready = {
            let waker = self.waker.clone();
            let mut numbers = Vec::with_capacity(self.peers.len());
            let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(self.peers.len() + 1);
            fds.push(PollFd::from_borrowed_fd(waker.fd(), PollFlags::IN));
            for (at, peer) in self.peers.iter().enumerate() {
                let Some(link) = &peer.link else {
                    continue;
                };
                let mut wanted = PollFlags::empty();
                wanted.set(PollFlags::OUT, link.connecting || link.wants_write());
                wanted.set(PollFlags::IN, idle && !link.connecting);
                if !wanted.is_empty() {
                    numbers.push(at);
                    fds.push(PollFd::from_borrowed_fd(link.fd(), wanted));
                }
            }
            let timeout = Timespec {
                tv_sec: wait.as_secs() as i64,
                tv_nsec: i64::from(wait.subsec_nanos()),
            };
            match poll(&mut fds, Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(Error::failed(format!("poll failed: {errno}"))),
            }
            if !fds[0].revents().is_empty() {
                waker.clear();
            }
            let each = numbers.into_iter().zip(&fds[1..]);
            let ready: Vec<(usize, PollFlags)> = each.map(|(at, fd)| (at, fd.revents())).collect();
            ready
        };
        let now = Instant::now();
        for (at, flags) in ready.into_iter().filter(|(_, flags)| !flags.is_empty()) {
            self.woken(at, flags, now);
        }
        Ok(())
    }

    fn woken(&mut self, at: usize, flags: PollFlags, now: Instant) {
        let peer = &mut self.peers[at];
        let went_on = match &mut peer.link {
            None => return,
            Some(link) if link.connecting => peer.connected(&self.asked),
            Some(link) => link.flush(),
        };
        if let Err(why) = went_on {
            return self.lost(at, why, now);
        }
        let news = PollFlags::IN | PollFlags::HUP | PollFlags::ERR;
        if self.tick.is_none() && flags.intersects(news) {
            // Before the subscriptions stand, each answer is waited for.
            let wait = match peer.is_up() {
                true => self.collector.config.commit_every,
                false => Duration::ZERO,
            };
            self.tick = Some(now + wait);
        }
    }

    /// Stores what was gathered, acknowledges it, and leaves the brokers, which keep the sessions.
    fn end(mut self) -> Summary {
        let until = Instant::now() + self.collector.config.stop_within;
        self.tick = None;
        while Instant::now() < until && (self.storage.is_busy() || !self.gather.commit().is_empty())
        {
            self.store();
            self.wait_for_storage(until);
            self.take_stored();
        }
        for peer in &mut self.peers {
            if let Some(link) = peer.link.as_mut().filter(|link| !link.connecting) {
                peer.session.leave(&self.asked, link.out());
            }
            if peer.is_up() {
                peer.connected_s = unix_s();
            }
        }
        self.write_out(until);
        self.remember();
        for peer in &mut self.peers {
            peer.link = None;
        }
        let status = self.collector.status.clone();
        let complete = self.storage.end(until);
        Summary {
            messages: status.stored.get(),
            acknowledged: status.acknowledged.get(),
            files: status.files.get(),
            damaged: status.damaged.get(),
            complete,
        }
    }

    fn wait_for_storage(&self, until: Instant) {
        wait(&[(self.waker.fd(), PollFlags::IN)], until);
        self.waker.clear();
    }

    /// Writes what is left to write, as far as brokers take it.
    fn write_out(&mut self, until: Instant) {
        while Instant::now() < until {
            for peer in &mut self.peers {
                if peer.link.as_mut().is_some_and(|link| link.flush().is_err()) {
                    peer.link = None;
                }
            }
            let links = self.peers.iter().filter_map(|peer| peer.link.as_ref());
            let left: Vec<_> = links
                .filter(|link| link.wants_write())
                .map(|link| (link.fd(), PollFlags::OUT))
                .collect();
            if left.is_empty() {
                return;
            }
            wait(&left, until);
        }
    }
}

/// Bytes of an acknowledgement.
const ACK_LEN: usize = 4;

/// Waits for one of these for a moment, no longer than `until`.
fn wait(fds: &[(BorrowedFd<'_>, PollFlags)], until: Instant) {
    let left = until.saturating_duration_since(Instant::now()).min(LONGEST);
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(left.subsec_nanos()),
    };
    let mut fds: Vec<PollFd<'_>> = fds
        .iter()
        .map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags))
        .collect();
    // Whoever calls looks again in any case.
    let _ = poll(&mut fds, Some(&timeout));
}

fn unix_s() -> u64 {
    (unix_ns() / 1_000_000_000) as u64
}
