//! Figures of a collector at work, for progress and metrics. Written by its threads, read by anyone.

mod histogram;
mod log;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pubgauge_quantities::shown::so_many;

use crate::columns::Undecoded;
use crate::dead::Why;
use crate::files::{Misplaced, Misplacement};
use crate::notice::is_worth_telling;
pub use crate::session::Canaries;
pub use histogram::{Counted, Histogram};
pub use log::{DiskStatus, LogStatus};

/// A number that only grows, or that is set.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Relaxed);
    }

    pub fn subtract(&self, less: u64) {
        self.0.fetch_sub(less, Relaxed);
    }

    pub fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// State of a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerStatus {
    /// The subscriptions stand.
    pub connected: bool,
    /// Its name does not stand for it any more.
    pub gone: bool,
    /// Connections made.
    pub connections: u64,
    /// Messages that came from it.
    pub messages: u64,
    /// When the last of these came; when it became known, while none has.
    pub heard_at: Instant,
    /// Messages of the collector's own through it, if it sends some.
    pub canaries: Option<Canaries>,
}

impl BrokerStatus {
    fn new(now: Instant) -> BrokerStatus {
        BrokerStatus {
            connected: false,
            gone: false,
            connections: 0,
            messages: 0,
            heard_at: now,
            canaries: None,
        }
    }

    /// Notes that so many messages came.
    pub(crate) fn note_messages(&mut self, messages: u64, now: Instant) {
        if messages > 0 {
            self.messages += messages;
            self.heard_at = now;
        }
    }

    /// How long no message came from it.
    pub fn silent_for(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.heard_at)
    }
}

/// How long a loss of a broker counts as ill health.
const LOSS_COUNTS: Duration = Duration::from_secs(600);

/// Bytes that went through the connections to all brokers, protocol and encryption included.
#[derive(Debug, Default)]
pub struct Wire {
    pub sent: Count,
    pub received: Count,
}

/// The threads of a collector, by the kernel's identifiers.
#[derive(Debug, Default)]
pub struct Threads(Mutex<Vec<u32>>);

impl Threads {
    /// Notes that the calling thread is one of them.
    pub fn note_current(&self) {
        let id = rustix::thread::gettid().as_raw_nonzero().get();
        let mut ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ids.extend(u32::try_from(id));
    }

    /// All that have begun.
    pub fn ids(&self) -> Vec<u32> {
        let ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ids.clone()
    }
}

/// Figures of a collector at work.
#[derive(Debug)]
pub struct Status {
    began: Instant,
    pub threads: Threads,
    pub wire: Arc<Wire>,
    /// Messages received, by the QoS of their delivery.
    pub received: [Count; 3],
    /// Messages received that the broker marked as perhaps sent before.
    pub marked_duplicate: Count,
    /// Dead letters, by why they are.
    pub dead: [Count; Why::ALL.len()],
    /// Bytes of their payloads.
    pub payload_bytes: Count,
    /// Messages in the log.
    pub stored: Count,
    /// Messages whose acknowledgement was handed to the connection that they came on.
    pub acknowledged: Count,
    /// How long it took to put the messages of a commit on disk, however often that was tried, ns.
    pub commit_ns: Histogram,
    /// Bytes that a commit wrote.
    pub commit_bytes: Histogram,
    /// The log as it stands on the disk.
    pub log: LogStatus,
    /// Finished files, their messages and their bytes.
    pub files: Count,
    pub file_messages: Count,
    pub file_bytes: Count,
    /// Closed segments that are in no finished file yet.
    pub waiting_segments: Count,
    /// Messages that cannot be read in the log.
    pub damaged: Count,
    /// 1 while closed segments cannot be made into files, for whatever reason.
    pub unfinished: Count,
    /// Segments that cannot be read, and that the others went on without.
    pub set_aside: Count,
    /// Payloads that are not of the form that they should be of, those with a value that its column cannot hold, and those
    /// with nothing for a column.
    pub undecoded: [Count; 3],
    /// Messages that do not lie where their time or topic would have them, by why.
    pub misplaced: [Count; Misplacement::ALL.len()],
    /// Files that were put to a store, and their bytes.
    pub uploaded_files: Count,
    pub uploaded_bytes: Count,
    /// Times that a store did not take a file.
    pub failed_uploads: Count,
    /// Finished files of whose names a store has other objects; they are among those that wait.
    pub conflicts: Count,
    /// Messages of the collector's own that a broker has acknowledged and lost.
    pub canaries_lost: Count,
    /// Finished files that are to be put to a store.
    pub waiting_files: Count,
    /// Messages cannot be put on disk, or to the store that stands for it.
    stalled: AtomicBool,
    /// When the oldest message was read that is not on disk, ns since the beginning; 0 if there is none.
    oldest: Count,
    /// When the loop turned last, ns since the beginning.
    turned: Count,
    brokers: Mutex<BTreeMap<String, BrokerStatus>>,
}

impl Default for Status {
    fn default() -> Status {
        Status {
            began: Instant::now(),
            threads: Threads::default(),
            wire: Arc::default(),
            received: Default::default(),
            marked_duplicate: Count::default(),
            dead: Default::default(),
            payload_bytes: Count::default(),
            stored: Count::default(),
            acknowledged: Count::default(),
            commit_ns: Histogram::of_times(),
            commit_bytes: Histogram::of_sizes(),
            log: LogStatus::default(),
            files: Count::default(),
            file_messages: Count::default(),
            file_bytes: Count::default(),
            waiting_segments: Count::default(),
            damaged: Count::default(),
            unfinished: Count::default(),
            set_aside: Count::default(),
            undecoded: Default::default(),
            misplaced: Default::default(),
            uploaded_files: Count::default(),
            uploaded_bytes: Count::default(),
            failed_uploads: Count::default(),
            conflicts: Count::default(),
            canaries_lost: Count::default(),
            waiting_files: Count::default(),
            stalled: AtomicBool::new(false),
            oldest: Count::default(),
            turned: Count::default(),
            brokers: Mutex::default(),
        }
    }
}

impl Status {
    /// Messages received.
    pub fn messages(&self) -> u64 {
        self.received.iter().map(Count::get).sum()
    }

    /// How long the oldest message waits that is not on disk, s.
    pub fn lag_s(&self) -> f64 {
        match self.oldest.get() {
            0 => 0.0,
            oldest => (self.began.elapsed().as_nanos() as u64).saturating_sub(oldest) as f64 / 1e9,
        }
    }

    /// Whether messages cannot be stored.
    pub fn is_stalled(&self) -> bool {
        self.stalled.load(Relaxed)
    }

    pub(crate) fn set_stalled(&self, is: bool) {
        self.stalled.store(is, Relaxed);
    }

    /// Counts a commit that is on disk.
    pub(crate) fn count_commit(&self, took: Duration, bytes: usize) {
        self.commit_ns.record(took.as_nanos() as u64);
        self.commit_bytes.record(bytes as u64);
    }

    pub(crate) fn count_undecoded(&self, more: Undecoded) {
        self.undecoded[0].add(more.form);
        self.undecoded[1].add(more.value);
        self.undecoded[2].add(more.missing);
    }

    /// Counts messages that do not lie where they would; the reasons of which it is worth telling how many there are so far.
    pub(crate) fn count_misplaced(&self, more: Misplaced) -> Vec<(Misplacement, u64)> {
        let count = |why: Misplacement| {
            let count = &self.misplaced[why as usize];
            let before = count.get();
            count.add(more.number(why));
            let so_far = count.get();
            is_worth_telling(before, so_far).then_some((why, so_far))
        };
        Misplacement::ALL.into_iter().filter_map(count).collect()
    }

    /// Notes when the oldest message was read that is not on disk.
    pub(crate) fn note_oldest(&self, at: Option<Instant>) {
        self.oldest.set(at.map_or(0, |at| self.since(at).max(1)));
    }

    /// Notes that the loop turns.
    pub(crate) fn turned(&self, now: Instant) {
        self.turned.set(self.since(now));
    }

    /// How long the loop has not turned, which reads from brokers and acknowledges. It turns several times a second, also
    /// while nothing comes and while the disk takes nothing.
    pub fn stuck_for(&self) -> Duration {
        let turned = Duration::from_nanos(self.turned.get());
        self.began.elapsed().saturating_sub(turned)
    }

    /// Time from the beginning to a moment, ns.
    fn since(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.began).as_nanos() as u64
    }

    fn map(&self) -> MutexGuard<'_, BTreeMap<String, BrokerStatus>> {
        self.brokers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All brokers, by address.
    pub fn brokers(&self) -> BTreeMap<String, BrokerStatus> {
        self.map().clone()
    }

    pub(crate) fn broker(&self, broker: &str, change: impl FnOnce(&mut BrokerStatus)) {
        let new = || BrokerStatus::new(Instant::now());
        change(self.map().entry(broker.to_owned()).or_insert_with(new));
    }

    pub(crate) fn forget(&self, broker: &str) {
        self.map().remove(broker);
    }

    /// Why it is not healthy: messages are not put on disk, a broker is not connected, or what was stored is not where it
    /// should be.
    pub fn ill(&self) -> Option<String> {
        if self.is_stalled() {
            return Some("messages cannot be stored".into());
        }
        if self.unfinished.get() > 0 {
            return Some("degraded: the log cannot be made into files".into());
        }
        if self.set_aside.get() > 0 {
            return Some(format!(
                "degraded: {} of the log could not be read, with messages that are in no finished file",
                so_many(self.set_aside.get(), "segment")
            ));
        }
        if self.conflicts.get() > 0 {
            return Some(
                "degraded: the store has other objects of the names of finished files".into(),
            );
        }
        let brokers = self.map();
        if brokers.is_empty() {
            return Some("no broker is known".into());
        }
        let down: Vec<&str> = brokers
            .iter()
            .filter(|(_, broker)| !broker.connected && !broker.gone)
            .map(|(address, _)| address.as_str())
            .collect();
        if !down.is_empty() {
            return Some(format!("not connected: {}", down.join(", ")));
        }
        brokers.iter().find_map(|(address, broker)| {
            let canaries = broker.canaries.as_ref()?;
            let is_recent = |at: Instant| at.elapsed() < LOSS_COUNTS;
            if canaries.lost_at.is_some_and(is_recent) {
                let lost = so_many(canaries.lost, "message");
                return Some(format!(
                    "degraded: {address} has acknowledged and lost {lost} of the collector's own"
                ));
            }
            let words =
                || format!("degraded: {address} does not deliver the collector's own messages");
            canaries.is_overdue.then(words)
        })
    }
}
