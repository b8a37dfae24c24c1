//! Figures of bursts: messages sent back to back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The bursts of one flow in the measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BurstFigures {
    /// Messages of a burst, over all publishers of the flow.
    pub messages: u64,
    /// From the beginning of a burst to that of the next, ns. Absent: a burst begins when the one before
    /// has arrived whole, or was given up.
    pub every_ns: Option<u64>,
    /// Bursts that began in the measurement, without those that its end cut off.
    pub sent: u64,
    /// Bursts that the measurement's end cut off: not all was handed over, and the next one was not
    /// yet due. No other figure contains them.
    pub cut_off: u64,
    /// Of those sent, bursts that arrived whole: the system took every message, and every
    /// subscriber (or group) entitled to it got it.
    pub whole: u64,
    /// Of those whole, bursts that had arrived before the next one began; all of them where bursts wait
    /// for one another.
    pub in_time: u64,
    /// Time to hand a burst over to the system, from the beginning of the first message to the end of
    /// the last; median, ns. Absent where nothing was handed over.
    pub hand_over_ns: Option<u64>,
    /// The publishers' rate within a burst: messages over that time; median. Absent where the time is
    /// too short to be measured.
    pub msgs_per_s: Option<f64>,
    /// The publishers' rate within a burst in bytes, headers included.
    pub bytes_per_s: Option<f64>,
    /// From the beginning of a burst to its last first delivery, of those that arrived whole; median,
    /// ns.
    pub arrival_ns: Option<u64>,
    /// The longest of these, ns.
    pub longest_arrival_ns: Option<u64>,
}

impl BurstFigures {
    /// Whether every burst arrived whole, and before the next one began.
    pub fn all_in_time(&self) -> bool {
        self.sent > 0 && self.in_time == self.sent
    }
}
