//! The figures of one window of a measurement.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::messages::Messages;

/// The figures of one window of the measurement, of all flows or of one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WindowFigures {
    /// Its name.
    pub name: String,
    /// Its beginning, seconds from the start of the measurement.
    pub from_s: f64,
    /// Its end; earlier than planned where the measurement was cut off.
    pub to_s: f64,
    /// The messages that were due in it.
    #[serde(flatten)]
    pub messages: Messages,
    /// Expected deliveries that never come. Absent where the drain was cut short and left
    /// both lost messages and messages under way: which are which is not told apart by window.
    pub lost: Option<u64>,
    /// Expected deliveries that were still on their way; absent where `lost` is.
    pub under_way: Option<u64>,
    /// Processor seconds of the system's processes during the window; of all flows together only. They
    /// are read at both ends; absent where a reading was so late that the span differs by more than 2 %
    /// of the window, and where the system is no process of its own or out of sight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_cpu_s: Option<f64>,
}
