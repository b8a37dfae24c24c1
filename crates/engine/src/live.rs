//! Counts of workers while they run: plain data, reported some hundred times a second, never
//! per message.

use serde::{Deserialize, Serialize};

use crate::assignment::Role;

/// The counts of one worker so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveCounters {
    /// Flow by flow.
    pub flows: Vec<FlowCounters>,
    /// Clients connected.
    pub connected: u64,
    /// Connections lost.
    pub lost: u64,
    /// (party, stream) pairs of this worker that no sentinel has reached yet.
    pub unproven: u64,
    /// Deliveries that the sentinels published by it should cause.
    pub sentinels_due: u64,
    /// Deliveries of sentinels.
    pub sentinels_received: u64,
    /// Messages of any kind published.
    pub sent: u64,
    /// Deliveries of any kind.
    pub received: u64,
    /// Deliveries of messages that the party had.
    pub repeated: u64,
    /// Longest time for which nothing came although something was under way to this worker, ns.
    pub silence: u64,
    /// Accepted messages of any kind that the fleet still awaits an answer to.
    pub unsettled: u64,
    /// It sends nothing any more: the measurement has ended for it.
    pub stopped: bool,
    /// It sends and awaits sentinels that close their streams.
    pub closing: bool,
    /// Until when wills of its clients may come, once it has stopped, by its clock; 0 if none may.
    #[serde(default)]
    pub wills_until: u64,
}

/// The counts of one worker of one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowCounters {
    /// Measured messages that fell due.
    pub offered: u64,
    /// Deliveries that the measured messages should cause.
    pub expected: u64,
    /// First deliveries of measured messages.
    pub unique: u64,
    /// Deliveries of measured messages that were passed over, and have not come since.
    pub passed_over: u64,
    /// Deliveries that the measured messages should cause to slow subscribers.
    pub slow_expected: u64,
    /// First deliveries of measured messages to slow subscribers.
    pub slow_unique: u64,
    /// Tokens of the flow's window that it holds and has not used.
    pub unused: u64,
    /// Accepted measured messages that the system has neither acknowledged nor rejected, where it acknowledges.
    pub unacknowledged: u64,
    /// Ping-pong: answers that its measured questions are to get.
    pub asked: u64,
    /// Ping-pong: of these, answers that have come.
    pub answered: u64,
}

/// The counts of all workers together.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// Clients connected.
    pub connected: u64,
    /// Connections lost.
    pub lost: u64,
    /// (party, stream) pairs that no sentinel has reached yet.
    pub unproven: u64,
    /// Deliveries that the sentinels published so far should cause.
    pub sentinels_due: u64,
    /// Deliveries of sentinels.
    pub sentinels_received: u64,
    /// Measured messages that fell due.
    pub offered: u64,
    /// Messages of any kind published.
    pub sent: u64,
    /// Deliveries of any kind.
    pub received: u64,
    /// Deliveries of messages that the party had.
    pub repeated: u64,
    /// Longest time for which nothing came to a worker although something was under way to it, ns.
    pub silence: u64,
    /// Deliveries of measured messages that have not come, and nothing later of their streams.
    pub under_way: u64,
    /// Deliveries of measured messages that have not come although something later has.
    pub passed_over: u64,
    /// Deliveries of measured messages to slow subscribers that have not come.
    pub slow_missing: u64,
    /// Measured messages that the system has neither acknowledged nor rejected, and may still.
    pub unacknowledged: u64,
    /// Answers to measured questions that have not come.
    pub unanswered: u64,
    /// Until when wills may come, once all have stopped, clock time; 0 if none may.
    pub wills_until: u64,
    /// Latency; `None` before the end of the first interval.
    pub latency: Option<LatencyLive>,
    /// Threads that work for each side, library threads included.
    pub threads: Vec<ThreadOf>,
}

/// A thread that works for one side of the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadOf {
    /// The side.
    pub role: Role,
    /// The number of its process (PID).
    pub process: u32,
    /// Its own number (TID).
    pub thread: u32,
}

/// Two quantiles of latency, or of the round trip, of the newest interval of the series that workers
/// have handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyLive {
    /// The median, ns.
    pub p50: u64,
    /// The 99th percentile, ns.
    pub p99: u64,
}

impl Live {
    /// Adds up what workers have counted. Of their first deliveries of measured messages, `again` were second ones: a
    /// member of the group on another worker had the message.
    pub fn add_up<'a>(workers: impl Iterator<Item = &'a LiveCounters>, again: u64) -> Live {
        let mut live = Live::default();
        let (mut expected, mut unique, mut passed_over) = (0, 0, 0);
        let (mut slow_expected, mut slow_unique) = (0, 0);
        for worker in workers {
            live.connected += worker.connected;
            live.lost += worker.lost;
            live.unproven += worker.unproven;
            live.sentinels_due += worker.sentinels_due;
            live.sentinels_received += worker.sentinels_received;
            live.sent += worker.sent;
            live.received += worker.received;
            live.repeated += worker.repeated;
            live.silence = live.silence.max(worker.silence);
            live.wills_until = live.wills_until.max(worker.wills_until);
            let unacknowledged: u64 = worker.flows.iter().map(|flow| flow.unacknowledged).sum();
            live.unacknowledged += unacknowledged.min(worker.unsettled);
            for flow in &worker.flows {
                live.offered += flow.offered;
                live.unanswered += flow.asked.saturating_sub(flow.answered);
                expected += flow.expected;
                unique += flow.unique;
                passed_over += flow.passed_over;
                slow_expected += flow.slow_expected;
                slow_unique += flow.slow_unique;
            }
        }
        // Workers do not report at the same moment: a delivery may be known before its publication.
        let missing = u64::saturating_sub(expected, u64::saturating_sub(unique, again));
        live.under_way = missing.saturating_sub(passed_over);
        live.passed_over = passed_over.min(missing);
        live.slow_missing = u64::saturating_sub(slow_expected, slow_unique);
        live
    }
}
