//! Counters that workers show while they run: written once per loop turn, never per message.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::assignment::Role;

/// The counters of a whole trial, shared by its workers and the conductor.
#[derive(Debug)]
pub struct Live {
    /// One per flow.
    pub flows: Vec<FlowLive>,
    /// Clients connected so far.
    pub connected: AtomicU64,
    /// Connections lost so far.
    pub lost: AtomicU64,
    /// (party, stream) pairs not yet proven by a sentinel, over all workers.
    pub unproven: AtomicU64,
    /// Messages of any kind published.
    pub sent: AtomicU64,
    /// Deliveries of any kind.
    pub received: AtomicU64,
    /// Threads that work for each side, library threads included: (side, thread id).
    pub threads: Mutex<Vec<(Role, u32)>>,
}

/// The counters of one flow.
#[derive(Debug, Default)]
pub struct FlowLive {
    /// Measured messages accepted.
    pub published: AtomicU64,
    /// Deliveries that the measured messages should cause.
    pub expected: AtomicU64,
    /// First deliveries of measured messages.
    pub unique: AtomicU64,
    /// Deliveries of measured messages.
    pub delivered: AtomicU64,
    /// Deliveries that warm-up and measured messages should cause; for windows.
    pub all_expected: AtomicU64,
    /// Deliveries of warm-up and measured messages; for windows.
    pub all_delivered: AtomicU64,
    /// Due but waiting because the system takes no more.
    pub waiting: AtomicU64,
}

impl Live {
    /// Counters for so many flows.
    pub fn new(flows: usize) -> Self {
        Live {
            flows: (0..flows).map(|_| FlowLive::default()).collect(),
            connected: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            unproven: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            threads: Mutex::new(Vec::new()),
        }
    }

    /// Sums over flows: (published, expected, unique, delivered, waiting).
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for flow in &self.flows {
            // Deliveries first: read the other way round, a message that arrives in between
            // would look like one delivered before it was published.
            totals.unique += flow.unique.load(Relaxed);
            totals.delivered += flow.delivered.load(Relaxed);
            totals.expected += flow.expected.load(Relaxed);
            totals.published += flow.published.load(Relaxed);
            totals.waiting += flow.waiting.load(Relaxed);
        }
        totals
    }
}

/// Sums of [`FlowLive`] over all flows, measured messages only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Messages accepted.
    pub published: u64,
    /// Deliveries that should come.
    pub expected: u64,
    /// First deliveries.
    pub unique: u64,
    /// Deliveries.
    pub delivered: u64,
    /// Due but not yet accepted.
    pub waiting: u64,
}
