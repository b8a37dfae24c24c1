//! Devices that come and go, as it is written.

use std::fmt;

use pubgauge_quantities::{Size, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

/// Devices that come and go during the measurement. Before it all are connected; after it those that are away come back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PresenceFile {
    /// Which devices of the flow; all if absent.
    pub of: Option<PresenceOf>,
    /// How long a device is connected: "5min", or "2min..5min", drawn anew each time.
    pub online: SpanRange,
    /// How long it is away, likewise.
    pub offline: SpanRange,
    /// When devices leave for the first time; spread if absent.
    pub first: Option<FirstLeave>,
    /// All leave at the same moments, `online` after the beginning of the measurement and again every `online` + `offline`,
    /// and come back within this time of the end of `offline`, each at random.
    pub back_within: Option<Span>,
    /// How they leave; disconnect if absent.
    pub leave: Option<LeaveFile>,
    /// The will of each of these devices; none if absent.
    pub will: Option<WillFile>,
}

/// A last will: the message that the system publishes for a device whose connection ends without a word. A subscriber of the
/// workload hears it, so that it is counted and timed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WillFile {
    /// Its topic; `{n}` is the device's number among the flow's publishers, or among its subscribers, from 0.
    pub topic: String,
    /// Its size, from 16 B to 65,535 B; 32 B if absent.
    pub payload: Option<Size>,
    /// MQTT's quality of service, 0 to 2, with which it is published; that of the settings if absent.
    pub qos: Option<u8>,
    /// The system keeps it as the topic's last value; false if absent.
    pub retain: Option<bool>,
    /// How long after the end of the connection it is published, if the device is not back by then (MQTT 5): whole seconds;
    /// at once if absent.
    pub delay: Option<Span>,
}

/// A time, or two between which one is drawn each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanRange {
    /// Shortest.
    pub least: Span,
    /// Longest.
    pub most: Span,
}

/// Which devices of a flow come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PresenceOf {
    Publishers,
    Subscribers,
    All,
}

/// When devices leave for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FirstLeave {
    /// Each at a moment of its own, spread evenly over the time for which it is connected.
    Spread,
    /// At the end of that time.
    Together,
}

/// How devices leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LeaveFile {
    /// In order, as the protocol has it, once what they have sent is acknowledged.
    Disconnect,
    /// Without a word: the connection is reset.
    Vanish,
}

impl fmt::Display for SpanRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.least == self.most {
            write!(f, "{}", self.least)
        } else {
            write!(f, "{}..{}", self.least, self.most)
        }
    }
}

impl Serialize for SpanRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
