//! Which folders finished files lie in, as it is written.

use pubgauge_quantities::Span;
use schemars::JsonSchema;
use serde::Deserialize;

use super::TimeUnit;

/// Which folders finished files lie in.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FilesFile {
    /// The folders from the outermost: "date", "hour", and "NAME={topic level N}" for a level of the topic, from 1;
    /// ["date", "hour"] if absent.
    #[schemars(length(min = 1, max = 4))]
    pub partition: Option<Vec<String>>,
    /// JSON Pointer (RFC 6901) to the time in payloads that are JSON or CBOR, which date and hour are of: RFC 3339 text, or
    /// a number. When the message was received if absent; so it is for each message that has no time there.
    pub event_time: Option<String>,
    /// Unit of the event time's numbers, counted since 1970; "s" if absent.
    pub event_time_unit: Option<TimeUnit>,
    /// How far the event time may be from when the message was received; 8760h if absent. What is farther goes by when it
    /// was received.
    pub event_time_within: Option<Span>,
    /// So many folders get files of one segment at the most, and one more the messages of all others; 100 if absent.
    #[schemars(range(min = 1, max = 500))]
    pub most_partitions: Option<u16>,
}
