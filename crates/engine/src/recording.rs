//! The observations of a worker, as plain data that could cross a network; sums of workers are exact.

use std::collections::BTreeSet;

use pubgauge_driver::{Grant, Nanos, Resource, WireBytes};
use serde::{Deserialize, Serialize};

use crate::absences::PresenceRecording;
use crate::assignment::Role;
use crate::bursts::BurstRecording;
use crate::connecting::ConnectRecording;
use crate::counts::counts;
use crate::failures::ClientFailure;
pub use crate::late::{LateParty, LateRecording};
pub use crate::message_counts::MessageCounts;
use crate::parties::PartiesRecording;
use crate::parts::FlowParts;
use crate::series::Totals;
pub use crate::slow::{SlowParty, SlowRecording};
use crate::usage::Usage;
pub use crate::wills::{ConnectionEnd, HowEnded, WillDelivery, WillRecording};

/// The observations of one worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    pub worker: u32,
    pub role: Role,
    /// The broker of its clients, from 0.
    pub broker: u32,
    /// Which of the hosts of its side it ran on, from 0.
    pub host: u32,
    /// Flow by flow, all flows of the workload.
    pub flows: Vec<FlowRecording>,
    /// Flow by flow, what had happened by each cut, steps included, and by the end of the drain.
    pub series: Vec<Vec<Totals>>,
    /// Flow by flow, the bursts of the measurement in their order; empty for a flow that sends none.
    pub bursts: Vec<Vec<BurstRecording>>,
    /// Flow by flow, the messages of each part of the measurement; empty where it has no windows.
    pub parts: Vec<FlowParts>,
    /// Members of groups that share, with what each got.
    pub members: Vec<MemberRecording>,
    /// The deliveries to each of its parties.
    pub parties: PartiesRecording,
    /// When it stopped counting, by its clock: what came later is not counted.
    pub closed_at: Nanos,
    /// Sentinels published.
    pub sentinels: u64,
    /// Messages and deliveries of any kind.
    pub traffic: Traffic,
    /// Deliveries of messages that are not this trial's, or not for that subscriber.
    pub foreign: u64,
    /// Last values that the system had kept.
    pub retained: u64,
    /// Deliveries marked as possibly a second one.
    pub redelivered: u64,
    /// Times, from the start of the measurement on, for which nothing came to the worker although something was under
    /// way to it: each longer than all before it, at most [`Recording::MOST_SILENCES`], the longest last.
    pub silences: Vec<Silence>,
    /// The longest times of the measurement for which nothing came to the worker, longest first, at most
    /// [`Recording::MOST_GAPS`]: from and to, by its clock.
    pub gaps: Vec<(Nanos, Nanos)>,
    /// Times in which measured messages fell due to a publisher of the worker that was not connected.
    pub outages: Vec<Outage>,
    /// The worker's use of processors during the measurement, library threads included.
    pub usage: Usage,
    /// Processor time from the command to connect until all its clients were connected and subscribed.
    pub connect_usage: Usage,
    /// Bytes on the wire.
    pub wire: WireBytes,
    /// Connections made at the start.
    pub made: u64,
    /// Connections lost.
    pub lost: u64,
    /// Connections made again.
    pub remade: u64,
    /// Accepted messages not settled when the fleet was closed.
    pub unsettled: u64,
    /// Measured messages that the system rejected, by flow and code.
    pub rejections: Vec<Rejections>,
    /// Rejected messages that are not measured, those of the warm-up and sentinels, likewise.
    pub early_rejections: Vec<Rejections>,
    /// Limits that held for the fleet's clients.
    pub grants: Vec<Grant>,
    /// Shortest time from sending to the acknowledgement of a message that is not measured, warm-up and sentinels, ns.
    pub fastest_acknowledgement: Option<Nanos>,
    /// The resources that the client itself ran out of.
    pub exhausted: BTreeSet<Resource>,
    /// How its connections came about.
    pub connecting: ConnectRecording,
    /// Clients that came and went as the workload has it.
    pub presence: PresenceRecording,
    /// Its slow subscribers.
    pub slow: SlowRecording,
    /// The longest time for which the application of one of its subscribers was busy within the measurement, of those of flows
    /// whose subscribers all take their time, ns.
    pub busiest_application: Option<Nanos>,
    /// Its late subscribers.
    pub late: LateRecording,
    /// Last wills, of its clients and to its subscribers.
    pub wills: WillRecording,
    /// Failures of its clients, each once, in order; at most [`crate::failures::Failures::MOST`].
    pub failures: Vec<ClientFailure>,
    /// Failures beyond these.
    pub more_failures: u64,
}

impl Recording {
    /// Limits that are granted.
    pub const MOST_GRANTS: usize = 16;
    /// Gaps that are kept.
    pub const MOST_GAPS: usize = 16;
    /// Silences that are kept.
    pub const MOST_SILENCES: usize = 16;
    /// Outages that are kept: a fleet has as many as publishers when its broker ends.
    pub const MOST_OUTAGES: usize = 256;
}

/// Measured messages of a flow that the system rejected with the same code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejections {
    /// The flow, as an index into the workload's.
    pub flow: u32,
    /// The protocol's code.
    pub code: u16,
    /// How many.
    pub messages: u64,
}

/// A time for which nothing came to a worker although something was under way to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    /// How long it was.
    pub span: Nanos,
    /// Deliveries that came to the worker afterwards, sentinels left out: at least the one that ended it.
    pub then_came: u64,
}

/// A time in which measured messages fell due to a publisher that was not connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// The publisher's first stream: the one of its first topic.
    pub stream: u32,
    /// When the first of these messages was due, by the worker's clock.
    pub from: Nanos,
    /// When the publisher was connected again, or the measurement ended.
    pub to: Nanos,
}

/// The deliveries to one member of a group that shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberRecording {
    /// The group, as an index into the audience's parties.
    pub party: u32,
    /// The flow of the subscriber that is the member, as an index into the workload's flows.
    pub flow: u32,
    /// Its index into that flow's subscribers.
    pub subscriber: u32,
    /// First deliveries of measured messages to the group. Of a group with members on several workers, a worker counts
    /// what no other member of its own had, and the conductor takes back what members elsewhere had.
    pub unique: u64,
}

counts! {
    /// Everything that one worker's fleet took and reported: measured messages, those of the warm-up,
    /// answers, sentinels, and what was not the trial's. What a system counts itself is compared with it.
    pub struct Traffic {
        /// Messages that the fleet accepted.
        pub handed_over: u64,
        /// Deliveries.
        pub received: u64,
        /// Of the messages, sentinels that close streams. The last of them may be on their way when the
        /// fleets close.
        pub closing_sentinels: u64,
        /// Deliveries that these should cause.
        pub closing_due: u64,
        /// Deliveries of these.
        pub closing_received: u64,
        /// Messages beside these, by which the fleets removed last values when they closed. There were no
        /// subscribers any more.
        pub parting: u64,
    }
}

counts! {
    /// Measured messages to slow subscribers.
    pub struct SlowCounts {
        /// Deliveries that the accepted messages should cause.
        pub expected: u64,
        /// First deliveries within the measurement.
        pub taken: u64,
        /// First deliveries after its end, when those who were slow took what had been kept for them as fast as it came.
        pub behind: u64,
        /// Deliveries of messages that the subscriber had.
        pub duplicated: u64,
    }
}

counts! {
    /// The observations of one worker of one flow.
    pub struct FlowRecording {
        /// All of the measurement.
        pub messages: MessageCounts,
        /// Of those not sent, messages that were never offered to the system: the worker itself was behind.
        pub not_tried: u64,
        /// Of those refused, messages that are larger than the system or its library takes.
        pub too_large: u64,
        /// Of those refused, messages that a full queue of the client's side let fall.
        pub dropped: u64,
        /// Deliveries to slow subscribers, which are among no others.
        pub slow: SlowCounts,
        /// Accepted measured messages that the system has neither acknowledged nor rejected, where it
        /// acknowledges.
        pub unacknowledged: u64,
        /// Accepted measured messages that no system acknowledges, because of the quality of service that they were
        /// recorded with.
        pub never_acknowledged: u64,
        /// First deliveries, by the ledger's own count of distinct sequence numbers; of groups with members on several
        /// workers by the conductor's.
        pub distinct: u64,
        /// Deliveries that have not come although something later of their stream has come to the
        /// party (for a group: to each of its members).
        pub passed_over: u64,
        /// Of the deliveries that have not come, those that were still under way when the drain was cut
        /// short, or whose messages the system never acknowledged; the conductor counts them.
        pub under_way: u64,
        /// Deliveries with a damaged body.
        pub corrupt: u64,
        /// Deliveries on another topic than the message was published on.
        pub misdirected: u64,
        /// Deliveries with a lower quality of service than is promised.
        pub lowered: u64,
        /// Deliveries of which the body was compared with the one that was published: its ends, at least.
        pub compared: u64,
        /// Of these, those of which all of the body was compared.
        pub compared_whole: u64,
        /// Arrivals before the intended send time.
        pub negative: u64,
        /// Times above the histograms' range.
        pub overflowed: u64,
        /// Warm-up messages accepted.
        pub warm_up_published: u64,
        /// Deliveries that the warm-up messages should cause.
        pub warm_up_expected: u64,
        /// Deliveries of warm-up messages.
        pub warm_up_delivered: u64,
        /// Of these, first deliveries.
        pub warm_up_unique: u64,
        /// As [`FlowRecording::passed_over`], of warm-up messages.
        pub warm_up_passed_over: u64,
        /// For how long its publishers were held back within the measurement, ns, added up over them: from when the
        /// system did not take a message, or a bound on what is under way let none go, until the next one was taken.
        pub held_back: u64,
        /// Ping-pong: answers published.
        pub replies: u64,
        /// Ping-pong: measured questions whose answer has come.
        pub answered: u64,
        /// Ping-pong: of these, those whose answer came after the end of the measurement.
        pub answered_late: u64,
    }
}

impl FlowRecording {
    /// Expected deliveries that never come.
    pub fn lost(&self) -> u64 {
        (self.messages.missing()).saturating_sub(self.under_way + self.messages.missed)
    }

    /// Notes which of the missing deliveries were still under way when the drain ended: of those that were
    /// not passed over, `most`.
    pub fn still_under_way(&mut self, most: u64) {
        self.under_way = self
            .messages
            .missing()
            .saturating_sub(self.passed_over)
            .min(most);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Of a worker that saw nothing of one flow.
    pub(crate) fn recording() -> Recording {
        Recording {
            worker: 0,
            role: Role::Subscribers,
            broker: 0,
            host: 0,
            flows: vec![FlowRecording::default()],
            series: vec![Vec::new()],
            bursts: Vec::new(),
            parts: Vec::new(),
            members: Vec::new(),
            parties: PartiesRecording::default(),
            closed_at: 0,
            sentinels: 0,
            traffic: Traffic::default(),
            foreign: 0,
            retained: 0,
            redelivered: 0,
            silences: Vec::new(),
            gaps: Vec::new(),
            outages: Vec::new(),
            usage: Usage::default(),
            connect_usage: Usage::default(),
            wire: WireBytes::default(),
            made: 0,
            lost: 0,
            remade: 0,
            unsettled: 0,
            rejections: Vec::new(),
            early_rejections: Vec::new(),
            grants: Vec::new(),
            fastest_acknowledgement: None,
            exhausted: BTreeSet::new(),
            connecting: ConnectRecording::default(),
            presence: PresenceRecording::default(),
            slow: SlowRecording::default(),
            busiest_application: None,
            late: LateRecording::default(),
            wills: WillRecording::default(),
            failures: Vec::new(),
            more_failures: 0,
        }
    }
}
