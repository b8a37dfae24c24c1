//! What a worker saw, as plain data that could cross a network; sums of workers are exact.

use pubgauge_driver::{Nanos, WireBytes};
use serde::{Deserialize, Serialize};

use crate::assignment::Role;

/// What one worker saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// The worker.
    pub worker: u32,
    /// Its side.
    pub role: Role,
    /// Flow by flow, all flows of the workload.
    pub flows: Vec<FlowRecording>,
    /// Sentinels published.
    pub sentinels: u64,
    /// Deliveries that were none of this trial's, or not for that subscriber.
    pub foreign: u64,
    /// Last values that the system had kept.
    pub retained: u64,
    /// Deliveries marked as possibly a second one.
    pub redelivered: u64,
    /// The worker's use of processors during the measurement, library threads included.
    pub usage: Usage,
    /// The same from the first connect to the last.
    pub connect_usage: Usage,
    /// Bytes on the wire.
    pub wire: WireBytes,
    /// Connections made at the start.
    pub made: u64,
    /// Connections lost unasked.
    pub lost: u64,
    /// Connections made again.
    pub remade: u64,
    /// When the last measured message was handed over, where the measurement ends by count.
    pub done_at: Option<Nanos>,
    /// Accepted messages not settled when the fleet was closed.
    pub unsettled: u64,
    /// What went wrong, in order, at most [`Recording::MOST_ERRORS`].
    pub errors: Vec<String>,
    /// Errors beyond that.
    pub more_errors: u64,
}

impl Recording {
    /// Errors kept in words.
    pub const MOST_ERRORS: usize = 50;
}

/// What one worker saw of one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowRecording {
    /// Messages due in the measurement.
    pub offered: u64,
    /// Measured messages the driver accepted.
    pub published: u64,
    /// Measured messages that were refused at once, or rejected by the system later.
    pub refused: u64,
    /// Measured messages due but never handed over.
    pub not_sent: u64,
    /// Deliveries that the accepted messages should cause.
    pub expected: u64,
    /// Deliveries of measured messages.
    pub delivered: u64,
    /// Of these, first deliveries.
    pub unique: u64,
    /// Deliveries of messages that the party had.
    pub duplicated: u64,
    /// First deliveries that were overtaken.
    pub reordered: u64,
    /// Deliveries (warm-up traffic included) that arrived during the measurement.
    pub arrived_in_window: u64,
    /// Messages accepted during the measurement, by time of acceptance.
    pub accepted_in_window: u64,
    /// Deliveries with a damaged body.
    pub corrupt: u64,
    /// Arrivals before the intended send time.
    pub negative: u64,
    /// Times above the histograms' range.
    pub overflowed: u64,
    /// Warm-up messages accepted.
    pub warm_up_published: u64,
    /// Deliveries that the warm-up messages should cause.
    pub warm_up_expected: u64,
    /// Warm-up messages delivered.
    pub warm_up_delivered: u64,
    /// Ping-pong: answers published.
    pub replies: u64,
    /// Ping-pong: questions given up after a second without an answer.
    pub unanswered: u64,
}

impl FlowRecording {
    /// Adds another worker's part.
    pub fn add(&mut self, other: &FlowRecording) {
        let FlowRecording {
            offered,
            published,
            refused,
            not_sent,
            expected,
            delivered,
            unique,
            duplicated,
            reordered,
            arrived_in_window,
            accepted_in_window,
            corrupt,
            negative,
            overflowed,
            warm_up_published,
            warm_up_expected,
            warm_up_delivered,
            replies,
            unanswered,
        } = other;
        self.offered += offered;
        self.published += published;
        self.refused += refused;
        self.not_sent += not_sent;
        self.expected += expected;
        self.delivered += delivered;
        self.unique += unique;
        self.duplicated += duplicated;
        self.reordered += reordered;
        self.arrived_in_window += arrived_in_window;
        self.accepted_in_window += accepted_in_window;
        self.corrupt += corrupt;
        self.negative += negative;
        self.overflowed += overflowed;
        self.warm_up_published += warm_up_published;
        self.warm_up_expected += warm_up_expected;
        self.warm_up_delivered += warm_up_delivered;
        self.replies += replies;
        self.unanswered += unanswered;
    }

    /// Expected deliveries that never came.
    pub fn lost(&self) -> u64 {
        self.expected.saturating_sub(self.unique)
    }
}

/// Use of processors over a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Length of the span, ns.
    pub span: Nanos,
    /// Running, ns; may exceed the span where a library has threads.
    pub running: Nanos,
    /// Of this the worker's own thread, ns.
    pub own_running: Nanos,
    /// The worker's own thread was ready but waited for a processor, ns.
    pub own_waiting: Nanos,
    /// The thread went to sleep.
    pub voluntary_switches: u64,
    /// The thread was pushed off its processor.
    pub involuntary_switches: u64,
}
