//! Subscribers whose applications are slow, and what the system did with their messages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;
use crate::party::PartyName;

/// The measured messages to slow subscribers, which are in no other figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowFigures {
    /// How many subscribers are slow.
    pub subscribers: u64,
    /// Of these, those that fell behind: their connection was ended, or more than one in a hundred of the messages due to them
    /// were not taken when the measurement ended.
    pub fell_behind: u64,
    /// Deliveries that were due to them.
    pub expected: u64,
    /// Those that they took within the measurement.
    pub taken: u64,
    /// Those that had been kept for them, and came when they took all that came after the end of the measurement.
    pub behind: u64,
    /// Those that never came.
    pub lost: u64,
    /// Those that were still coming when the trial ended.
    pub under_way: u64,
    /// Deliveries of what the subscriber had.
    pub duplicated: u64,
    /// How often a connection of theirs was ended by others.
    pub disconnects: u64,
    /// From when a message was due until such a subscriber took it, of those taken within the measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<Distribution>,
    /// Those that fell behind, the worst first; a hundred at the most.
    pub of: Vec<SlowSubscriber>,
}

/// The measured messages to one slow subscriber.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowSubscriber {
    /// The subscriber.
    pub party: PartyName,
    /// Those that it took within the measurement.
    pub taken: u64,
    /// Those that had been kept for it.
    pub behind: u64,
    /// Those that never came; absent where it was disconnected, and it is not known how many were due to it.
    pub lost: Option<u64>,
    /// How often its connection was ended by others.
    pub disconnects: u64,
}
