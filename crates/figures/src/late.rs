//! Subscribers that come late: what the system had kept for them, and what came afterwards.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;

/// The messages to late subscribers, which are in no other figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LateFigures {
    /// How many subscribers are late.
    pub subscribers: u64,
    /// Of these, those whose subscriptions the system took.
    pub subscribed: u64,
    /// Last values that were due to them: one for each of them and each topic that it hears. Absent where the system was not
    /// asked to keep any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_values_due: Option<u64>,
    /// Last values that came, one for each topic.
    pub last_values: u64,
    /// Further deliveries of last values, on topics that had come.
    pub last_values_repeated: u64,
    /// First deliveries, not as last values, of messages that were published before their subscriber asked: the system had
    /// stored them, or they were still on their way to it.
    pub backlog: u64,
    /// First deliveries of measured messages that were published after their subscriber had asked.
    pub live: u64,
    /// Measured messages that were due after their subscriber had its subscriptions, and never came.
    pub lost: u64,
    /// Paths from a publisher's topic to a late subscriber whose end did not come: whether anything is missing behind the last
    /// delivery on them is not known.
    pub open_paths: u64,
    /// Deliveries of what the subscriber had.
    pub duplicated: u64,
    /// Deliveries of any of these within the measurement.
    pub within: u64,
    /// From when a late subscriber asked for its subscriptions until the system had taken all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscribe_ns: Option<Distribution>,
    /// From when it asked until the last of its last values had come; one time for each late subscriber that got any. A system
    /// may send them before its answer to the subscription, so that the time is not from that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_values_ns: Option<Distribution>,
    /// Likewise until the last message of the backlog had come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog_ns: Option<Distribution>,
}

impl LateFigures {
    /// Last values that were due and did not come; `None` where none was due.
    pub fn last_values_missing(&self) -> Option<u64> {
        Some(self.last_values_due?.saturating_sub(self.last_values))
    }
}
