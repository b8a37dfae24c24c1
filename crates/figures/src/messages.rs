//! The messages of a trial, of one of its flows, or of a window of either.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;
use crate::model::Rejection;

/// The measured messages of a trial, of one of its flows, or of a window of either: their counts, rates and times.
///
/// A message belongs to the window that it was due in, and so do its deliveries and its times, whenever they came. Only two
/// rates count what happened during the window: `published_msgs_per_s` and `delivered_msgs_per_s`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Messages {
    /// Messages due.
    pub offered: u64,
    /// Messages that the system took, whenever that was.
    pub published: u64,
    /// Messages that the system or its client library refused. Of a window: one that was rejected after it had been taken
    /// belongs to the window that it was sent in.
    pub refused: u64,
    /// Messages that fell due while their publisher was not connected. Their deliveries are expected, and lost.
    pub not_connected: u64,
    /// Messages that were due but could not be handed over before the end.
    pub not_sent: u64,
    /// Deliveries expected: over all messages that were published, or fell due while their publisher was not
    /// connected, the subscribers (or groups) entitled.
    pub expected: u64,
    /// Deliveries over all subscribers, duplicates included.
    pub delivered: u64,
    /// Deliveries of a message that the same subscriber (or group) had already got.
    pub duplicated: u64,
    /// Deliveries overtaken by a later message of the same stream (RFC 4737).
    pub reordered: u64,
    /// Messages that fell due while their publisher was away, as the workload has it: they are not among those due.
    #[serde(default, skip_serializing_if = "is_none")]
    pub away: u64,
    /// First deliveries of messages that were due before their subscriber came back from an absence. They are in none of
    /// the times below.
    #[serde(default, skip_serializing_if = "is_none")]
    pub backlog: u64,
    /// Expected deliveries that did not come because their subscriber was away, and the system keeps nothing for it.
    #[serde(default, skip_serializing_if = "is_none")]
    pub missed: u64,
    /// Messages due per second.
    pub offered_msgs_per_s: f64,
    /// Messages taken by the system per second of the measurement, or of the window.
    pub published_msgs_per_s: f64,
    /// First deliveries that arrived during the measurement, or during the window, per second; repeated ones count once.
    pub delivered_msgs_per_s: f64,
    /// From the intended send time to arrival.
    pub latency_ns: Distribution,
    /// From the actual send time to arrival.
    pub latency_from_send_ns: Distribution,
    /// From the intended to the actual send time.
    pub send_lag_ns: Distribution,
    /// From the actual send time to the system's acknowledgement, of a window for messages sent in it; absent where the
    /// system does not acknowledge.
    pub acknowledgement_ns: Option<Distribution>,
    /// Round trip of ping-pong flows, from the intended send time of the question.
    pub round_trip_ns: Option<Distribution>,
    /// Half of each round trip, (T2 - T1) / 2: the one-way time where both ways are alike.
    pub half_round_trip_ns: Option<Distribution>,
}

impl Messages {
    /// First deliveries.
    pub fn unique(&self) -> u64 {
        self.delivered.saturating_sub(self.duplicated)
    }

    /// Expected deliveries that have not come, though their subscriber was there, or the system kept them for it.
    pub fn missing(&self) -> u64 {
        (self.expected).saturating_sub(self.unique() + self.missed)
    }

    /// Whether nobody subscribes to what was published.
    pub fn are_unheard(&self) -> bool {
        self.expected == 0 && self.published > 0
    }

    /// Messages that the system passed on in a second, deliveries; where nobody subscribes, those that it took.
    pub fn carried_msgs_per_s(&self) -> f64 {
        if self.are_unheard() {
            self.published_msgs_per_s
        } else {
            self.delivered_msgs_per_s
        }
    }
}

/// Messages of a trial or of one of its flows that did not come, or did not go, with what is known of them at its end. A
/// window cannot always tell them apart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shortfall {
    /// Messages that the system rejected, by its code, the most frequent first; they are among `refused`. Empty where
    /// it rejected none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejections: Vec<Rejection>,
    /// Of those refused, messages that were not sent because they are larger than the system or its library takes.
    #[serde(default, skip_serializing_if = "is_none")]
    pub too_large: u64,
    /// Of those refused, messages that a full queue of the client's side let fall.
    #[serde(default, skip_serializing_if = "is_none")]
    pub dropped: u64,
    /// Messages that the system took and had not acknowledged when its clients closed, where it acknowledges.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unacknowledged: u64,
    /// Of those that were not sent, messages that the client never offered to the system, because it was behind itself.
    pub not_tried: u64,
    /// Expected deliveries that never come: something later of the same stream has come to the same
    /// subscriber, or nothing has come for longer than the trial was ever silent, or the publisher was not
    /// connected.
    pub lost: u64,
    /// Expected deliveries that were still on their way when the drain was cut short, or whose messages the
    /// system never acknowledged: neither delivered nor lost.
    /// `expected = delivered - duplicated + missed + under_way + lost`.
    pub under_way: u64,
    /// Questions of ping-pong flows and their answers; absent without such flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub questions: Option<Questions>,
}

/// Questions of ping-pong flows, and what came of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Questions {
    /// Measured questions that the system took; each is to be answered once.
    pub asked: u64,
    /// Answers that came.
    pub answered: u64,
    /// Of these, answers that came after the end of the measurement.
    #[serde(default, skip_serializing_if = "is_none")]
    pub answered_late: u64,
    /// Questions without an answer.
    pub unanswered: u64,
}

impl Questions {
    /// Those of several flows; `None` if there are none.
    pub fn sum(flows: impl Iterator<Item = Questions>) -> Option<Questions> {
        flows.reduce(|sum, flow| Questions {
            asked: sum.asked + flow.asked,
            answered: sum.answered + flow.answered,
            answered_late: sum.answered_late + flow.answered_late,
            unanswered: sum.unanswered + flow.unanswered,
        })
    }
}

fn is_none(count: &u64) -> bool {
    *count == 0
}
