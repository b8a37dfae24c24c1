//! The figures of one window of a measurement.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;

/// The figures of one window of the measurement, of all flows or of one.
///
/// A message belongs to the window that it was due in, and so do its deliveries, its loss and its times,
/// whenever they came. Only two rates count what happened during the window: `published_msgs_per_s` and
/// `delivered_msgs_per_s`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WindowFigures {
    /// Its name.
    pub name: String,
    /// Its beginning, seconds from the start of the measurement.
    pub from_s: f64,
    /// Its end; earlier than planned where the measurement was cut off.
    pub to_s: f64,
    /// Messages due in it.
    pub offered: u64,
    /// Of these, messages that the system took, whenever that was.
    pub published: u64,
    /// Of these, messages that the system or its client library refused. One that was rejected after it
    /// had been taken belongs to the window that it was sent in.
    pub refused: u64,
    /// Of these, messages that fell due while their publisher was not connected.
    pub not_connected: u64,
    /// Of these, messages that could not be handed over before the end of the measurement.
    pub not_sent: u64,
    /// Deliveries that these messages should cause, those published and those of publishers that were not
    /// connected.
    pub expected: u64,
    /// Deliveries of these messages, duplicates included, whenever they came.
    pub delivered: u64,
    /// Of these, deliveries of a message that the same subscriber (or group) had already got.
    pub duplicated: u64,
    /// Deliveries overtaken by a later message of the same stream (RFC 4737).
    pub reordered: u64,
    /// Expected deliveries that have not come: `expected - (delivered - duplicated)`.
    pub missing: u64,
    /// Of the missing ones, those that never come. Absent where the drain was cut short and left
    /// both lost messages and messages under way: which are which is not told apart by window.
    pub lost: Option<u64>,
    /// Of the missing ones, those that were still on their way; absent where `lost` is.
    pub under_way: Option<u64>,
    /// Messages due per second of the window.
    pub offered_msgs_per_s: f64,
    /// Messages that the system took during the window, per second.
    pub published_msgs_per_s: f64,
    /// First deliveries that arrived during the window, per second.
    pub delivered_msgs_per_s: f64,
    /// From the intended send time to arrival.
    pub latency_ns: Distribution,
    /// From the actual send time to arrival.
    pub latency_from_send_ns: Distribution,
    /// From the intended to the actual send time.
    pub send_lag_ns: Distribution,
    /// From the actual send time to the system's acknowledgement, of messages sent in the window; absent
    /// where the system does not acknowledge.
    pub acknowledgement_ns: Option<Distribution>,
    /// Round trip of ping-pong flows, of questions asked in the window.
    pub round_trip_ns: Option<Distribution>,
    /// Half of each round trip.
    pub half_round_trip_ns: Option<Distribution>,
    /// Processor seconds of the system's processes during the window; of all flows together only. They
    /// are read at both ends; absent where a reading was so late that the span differs by more than 2 %
    /// of the window, and where the system is no process of its own or out of sight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_cpu_s: Option<f64>,
}
