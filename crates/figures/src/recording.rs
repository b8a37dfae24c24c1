//! Recordings that claims are judged by.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A recording, day by day.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordingInfo {
    /// Its name in the study.
    pub name: String,
    /// The hours that the study asks for.
    pub hours: Vec<RecordedHours>,
}

/// Some hours of each day of a recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedHours {
    /// Their name in the study.
    pub name: String,
    /// How long they are in each day, s.
    pub length_s: f64,
    /// Days with enough readings in them, in order.
    pub days: Vec<RecordedDay>,
}

/// The readings in some hours of one day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedDay {
    /// Which day by local time, counted from 1970-01-01.
    pub day: i64,
    /// Readings of the recording.
    pub readings: u64,
    /// Of these, those that are sent: what does not repeat or change too little.
    pub kept: u64,
    /// Mean size of the readings that are sent, bytes; 0 if none is.
    pub mean_bytes: f64,
    /// Mean of the column that the study names, over all readings; absent where it names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_value: Option<f64>,
}

impl RecordedHours {
    /// A figure of one of its days; `None` where that has none.
    pub fn figure(&self, day: &RecordedDay, name: &str) -> Option<f64> {
        let (kept, readings) = (day.kept as f64, day.readings as f64);
        match name {
            "recorded-rate" => Some(kept / self.length_s),
            "kept-share" => (day.readings > 0).then(|| kept / readings),
            "recorded-size" => (day.kept > 0).then_some(day.mean_bytes),
            "recorded-value" => day.mean_value,
            _ => None,
        }
    }
}
