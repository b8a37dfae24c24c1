//! Units of figures.

use pubgauge_quantities::shown;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The unit of a figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A number of messages.
    Messages,
    /// A number of deliveries: a message is delivered to each of its subscribers.
    Deliveries,
    /// Messages, or deliveries, per second.
    PerSecond,
    /// Bytes per second.
    BytesPerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// Seconds, of time or of processor time.
    Seconds,
    /// Processors: seconds of processor time in a second.
    Cores,
    /// Microseconds of processor time for a message.
    MicrosecondsPerMessage,
    /// Bytes.
    Bytes,
    /// A share: 1 is the whole.
    Share,
    /// A number, plain or per message or byte.
    #[default]
    Count,
    /// One of the verdicts, by its place in their order.
    Verdict,
}

impl Unit {
    /// Its symbol, for machines.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "ns",
            Unit::PerSecond => "1/s",
            Unit::BytesPerSecond => "B/s",
            Unit::Seconds => "s",
            Unit::MicrosecondsPerMessage => "us",
            Unit::Bytes => "B",
            Unit::Messages
            | Unit::Deliveries
            | Unit::Cores
            | Unit::Share
            | Unit::Count
            | Unit::Verdict => "1",
        }
    }

    /// A value with its unit, in three digits.
    pub fn format(self, value: f64) -> String {
        match self {
            Unit::Nanoseconds => shown::time(value),
            Unit::PerSecond => shown::rate(value),
            Unit::MicrosecondsPerMessage => shown::time(value * 1e3),
            Unit::Bytes => shown::bytes(value.round() as u64),
            Unit::BytesPerSecond => format!("{}/s", shown::bytes(value.round() as u64)),
            Unit::Share => format!("{} %", shown::digits(100.0 * value)),
            Unit::Messages
            | Unit::Deliveries
            | Unit::Seconds
            | Unit::Cores
            | Unit::Count
            | Unit::Verdict => shown::digits(value),
        }
    }

    /// A value with its unit, which a number of things has in words.
    pub fn show_in_full(self, value: f64) -> String {
        let noun = match self {
            Unit::Messages => " messages",
            Unit::Deliveries => " deliveries",
            Unit::Cores => " cores",
            Unit::Seconds => " s",
            _ => "",
        };
        self.format(value) + noun
    }

    /// The end of a column's name; empty for a plain number.
    pub fn suffix(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "ns",
            Unit::PerSecond => "msgs_per_s",
            Unit::BytesPerSecond => "bytes_per_s",
            Unit::Seconds => "s",
            Unit::Cores => "cores",
            Unit::MicrosecondsPerMessage => "us",
            Unit::Bytes => "bytes",
            Unit::Share => "share",
            Unit::Messages | Unit::Deliveries | Unit::Count | Unit::Verdict => "",
        }
    }
}
