//! The loop: reads, hands to the disk, acknowledges, sleeps.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::pace::Pace;
use super::{Collector, EndsAfter};
use crate::Error;
use crate::clock::{Steps, unix_ns};
use crate::dead::Why;
use crate::files::hour_of;
use crate::gather::{Acks, Gather};
use crate::names::Names;
use crate::notice::Notice;
use crate::peer::Peer;
use crate::session::{Asked, SessionState, Taking};
use crate::storage::Storage;
use pubgauge_net::waker::Waker;

/// Longest sleep: the stop flag, which a signal may set, is looked at in between.
pub(super) const LONGEST: Duration = Duration::from_millis(200);

/// How long a broker may be out of reach before a collection that ends by itself ends without it.
const REACH: Duration = Duration::from_secs(10);

/// Bytes of an acknowledgement.
const ACK_LEN: usize = 4;

/// The loop at work.
pub(super) struct Loop {
    pub(super) collector: Collector,
    pub(super) storage: Storage,
    pub(super) gather: Gather,
    pub(super) names: Names,
    pub(super) asked: Asked,
    pub(super) waker: Waker,
    pub(super) peers: Vec<Peer>,
    pub(super) next_peer: u32,
    /// When sockets are read next; `None` while nothing comes, and any byte begins it anew.
    pub(super) tick: Option<Instant>,
    pub(super) pace: Pace,
    /// The peer that is read first.
    pub(super) first: usize,
    pub(super) began: Instant,
    /// When a message came last.
    pub(super) heard_at: Instant,
    /// When all brokers were connected last; the beginning, if they never were.
    pub(super) reached_at: Instant,
    pub(super) steps: Steps,
    /// The sessions are being given up.
    pub(super) is_leaving: bool,
}

impl Loop {
    pub(super) fn notice(&self, notice: &Notice) {
        (self.collector.watch)(notice);
    }

    pub(super) fn run(&mut self, until: EndsAfter, stop: &AtomicBool) -> Result<(), Error> {
        while !stop.load(Relaxed) && !self.is_over(until) {
            self.turn()?;
        }
        Ok(())
    }

    /// One turn: connects, reads, stores, acknowledges, sleeps.
    pub(super) fn turn(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        self.collector.status.turned(now);
        if let Some(config) = self.collector.reloads.take().filter(|_| !self.is_leaving) {
            self.reload(config);
        }
        if let Some(by_ns) = self.steps.look() {
            let by_ms = by_ns / 1_000_000;
            self.notice(&Notice::ClockStepped { by_ms });
        }
        self.look_at_names();
        self.keep_connections(now);
        self.look_at_canaries(now, self.is_leaving);
        self.take_stored();
        if self.storage.has_failed() {
            return Err(Error {
                what: "the thread that stores messages has ended by a panic, which is told above: nothing more is stored or acknowledged".into(),
                hint: Some("what was acknowledged is stored: start it again, and report the panic".into()),
                is_input: false,
            });
        }
        if self.tick.is_some_and(|tick| now >= tick) && !self.is_full() {
            self.read_all(now);
        }
        self.store();
        self.sleep()
    }

    /// Brokers that are not connected; a name without an address is one.
    pub(super) fn out_of_reach(&self) -> usize {
        let down = self
            .peers
            .iter()
            .filter(|peer| !peer.is_up() && !peer.gone && !peer.session.is_gone());
        down.count() + self.nowhere()
    }

    /// Brokers that were never connected; a name without an address is one.
    pub(super) fn never_reached(&self) -> usize {
        let brokers = self.collector.status.brokers();
        let connections = |peer: &Peer| {
            let broker = brokers.get(&peer.session.broker);
            broker.map_or(0, |broker| broker.connections)
        };
        let peers = self.peers.iter();
        let never = peers.filter(|peer| !peer.gone && connections(peer) == 0);
        never.count() + self.nowhere()
    }

    /// Names without an address.
    pub(super) fn nowhere(&self) -> usize {
        let names = 0..self.collector.config.brokers.len();
        let nowhere = names.filter(|name| self.peers.iter().all(|peer| peer.endpoint != *name));
        nowhere.count()
    }

    fn is_over(&mut self, until: EndsAfter) -> bool {
        if self.out_of_reach() == 0 {
            self.reached_at = Instant::now();
        }
        let status = &self.collector.status;
        until
            .messages
            .is_some_and(|messages| status.stored.get() >= messages)
            || until.time.is_some_and(|time| self.began.elapsed() >= time)
            || until.quiet.is_some_and(|quiet| self.is_quiet(quiet))
    }

    /// Whether nothing came for so long, from brokers that are all connected or not to be had.
    fn is_quiet(&self, quiet: Duration) -> bool {
        let may_come = self.reached_at.elapsed() < REACH && self.out_of_reach() > 0;
        !may_come && self.heard_at.elapsed() >= quiet
    }

    /// Whether as much was gathered as may wait for the disk.
    pub(super) fn is_full(&self) -> bool {
        self.gather.commit().frames.len() >= self.collector.config.commit_bytes
    }

    fn read_all(&mut self, now: Instant) {
        let config = &self.collector.config;
        let (commit_every, commit_bytes) = (config.commit_every, config.commit_bytes);
        let status = self.collector.status.clone();
        let (mut notices, mut out) = (Vec::new(), Vec::new());
        let (mut messages, mut more) = (0, false);
        let count = self.peers.len();
        for nth in 0..count {
            let at = (self.first + nth) % count;
            let peer = &mut self.peers[at];
            let (was_up, had_left) = (peer.is_up(), peer.session.has_left);
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
                dead: [0; Why::ALL.len()],
            };
            let full = |gather: &Gather| gather.commit().frames.len() >= commit_bytes;
            let took = peer.read(&mut taking, full, || (Instant::now(), unix_ns()));
            for (count, received) in status.received.iter().zip(taking.received) {
                count.add(received);
            }
            let own: u64 = taking.received.iter().sum();
            status.marked_duplicate.add(taking.marked_duplicate);
            status.payload_bytes.add(taking.payload_bytes);
            for (count, dead) in status.dead.iter().zip(taking.dead) {
                count.add(dead);
            }
            messages += own;
            let came_up = !was_up && peer.is_up();
            let is_gone = peer.session.is_gone() && peer.link.is_some();
            let has_left = !had_left && peer.session.has_left;
            if own > 0 || came_up {
                status.broker(&peer.session.broker, |broker| {
                    broker.note_messages(own, now)
                });
            }
            if came_up {
                self.came_up(at);
            } else if has_left {
                self.remember();
            } else if is_gone {
                self.session_dropped(at);
            }
            match took {
                Ok(left) => more |= left,
                Err(why) => self.lost(at, why, now),
            }
            if self.is_full() {
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
            // Sooner, once what was read is on disk.
            _ => Some(now + commit_every),
        };
        self.pace.note_reading(now);
        self.note_oldest();
    }

    fn note_oldest(&self) {
        let oldest = self.storage.oldest.or(self.gather.commit().oldest);
        self.collector.status.note_oldest(oldest);
    }

    /// Hands what was gathered over, once enough was or for long enough.
    fn store(&mut self) {
        if self.gathered_at().is_none_or(|at| at <= Instant::now()) || self.is_full() {
            self.hand_over();
        }
    }

    /// When the messages that are being gathered for an object have been gathered for as long as they may be.
    fn gathered_at(&self) -> Option<Instant> {
        let direct = self.collector.config.direct()?;
        Some(self.gather.commit().oldest? + direct.every)
    }

    /// Hands what was gathered to the disk, or to the store that stands for it, if that is not busy.
    pub(super) fn hand_over(&mut self) {
        if !self.storage.is_busy() && !self.gather.commit().is_empty() {
            let commit = self.gather.take(hour_of(unix_ns()));
            self.storage.store(commit);
        }
    }

    /// Acknowledges what is on disk.
    pub(super) fn take_stored(&mut self) {
        while let Some(commit) = self.storage.stored() {
            if let Some(tap) = &mut self.collector.tap {
                tap(&mut commit.messages(self.storage.mark));
            }
            for acks in &commit.acks {
                self.acknowledge(acks);
            }
            self.pace.note_commit(commit.processor);
            self.gather.give_back(commit);
            self.note_oldest();
            let next = self.next_reading(Instant::now());
            self.tick = self.tick.map(|tick| tick.min(next));
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
        let same = peer.session.connection == acks.connection
            && peer.session.state != SessionState::Greeting;
        let Some(link) = peer.link.as_mut().filter(|_| same) else {
            return;
        };
        link.out().extend_from_slice(&acks.bytes);
        if let Err(why) = link.flush() {
            return self.lost(at, why, Instant::now());
        }
        let status = &self.collector.status;
        let sent = (acks.bytes.len() / ACK_LEN) as u64;
        status.acknowledged.add(sent - acks.beside);
    }

    fn next_reading(&self, now: Instant) -> Instant {
        let config = &self.collector.config;
        // Each object has to be worth its request: gathering ends by time, not by when the store is idle.
        let waits = self.storage.is_busy() || config.direct().is_some();
        self.pace.next_reading(now, waits, config.commit_every)
    }

    /// Sleeps until the next thing is due, and takes note of which sockets can go on.
    fn sleep(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        let idle = self.tick.is_none() && !self.is_full();
        let due = self.peers.iter().filter_map(Peer::next_due);
        let tick = self.tick.filter(|_| !self.is_full());
        let gathered = self.gathered_at().filter(|_| !self.storage.is_busy());
        let wake_at = due
            .chain(tick)
            .chain(gathered)
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
            self.tick = Some(if peer.is_up() {
                self.next_reading(now)
            } else {
                now
            });
        }
    }
}
