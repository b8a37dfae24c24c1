//! Counters that workers show while they run: written once per turn of the loop, never per message.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hdrhistogram::Histogram;

use crate::assignment::Role;
use crate::window::Window;

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
    /// Deliveries of what the party had.
    pub repeated: AtomicU64,
    /// Longest time for which a worker got nothing although something was under way to it, ns.
    pub silence: AtomicU64,
    /// Latency of the newest interval that workers have handed over.
    pub latency: LatencyLive,
    /// Threads that work for each side, library threads included: (side, thread id).
    pub threads: Mutex<Vec<(Role, u32)>>,
}

/// The counters of one flow.
#[derive(Debug, Default)]
pub struct FlowLive {
    /// Deliveries that the measured messages should cause.
    pub expected: AtomicU64,
    /// First deliveries of measured messages.
    pub unique: AtomicU64,
    /// Deliveries of measured messages that were passed over, and have not come since.
    pub passed_over: AtomicU64,
    /// Messages under way, where the flow bounds them.
    pub window: Window,
}

/// Two quantiles of latency, or of the round trip: written by the conductor when it collects what
/// workers have filled, once for each interval of the series, never by a worker.
#[derive(Debug, Default)]
pub struct LatencyLive {
    p50: AtomicU64,
    p99: AtomicU64,
}

impl LatencyLive {
    /// The quantiles of an interval.
    pub fn show(&self, values: &Histogram<u64>) {
        self.p50.store(values.value_at_quantile(0.5), Relaxed);
        self.p99.store(values.value_at_quantile(0.99), Relaxed);
    }

    /// The median, ns; `None` before the end of the first interval.
    pub fn p50(&self) -> Option<u64> {
        Some(self.p50.load(Relaxed)).filter(|ns| *ns > 0)
    }

    /// The 99th percentile, ns; `None` before the end of the first interval.
    pub fn p99(&self) -> Option<u64> {
        Some(self.p99.load(Relaxed)).filter(|ns| *ns > 0)
    }
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
            repeated: AtomicU64::new(0),
            silence: AtomicU64::new(0),
            latency: LatencyLive::default(),
            threads: Mutex::new(Vec::new()),
        }
    }

    /// What is missing of the measured messages.
    pub fn missing(&self) -> Missing {
        let (mut unique, mut passed_over, mut expected) = (0, 0, 0);
        for flow in &self.flows {
            // Deliveries first: read the other way round, a message that arrives in between
            // would look like one delivered before it was published.
            unique += flow.unique.load(Relaxed);
            passed_over += flow.passed_over.load(Relaxed);
            expected += flow.expected.load(Relaxed);
        }
        let all = expected.saturating_sub(unique);
        Missing {
            under_way: all.saturating_sub(passed_over),
            passed_over: passed_over.min(all),
        }
    }
}

/// Deliveries of measured messages that have not come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Nothing later of their stream has come to the party either.
    pub under_way: u64,
    /// Something later has come.
    pub passed_over: u64,
}
