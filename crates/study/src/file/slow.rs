//! Subscribers whose applications are slow, as it is written.

use std::borrow::Cow;
use std::fmt;

use pubgauge_quantities::{Percent, Rate, Span};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::written_as::written_as;

/// Subscribers whose applications take their time for each message of the measurement: meanwhile nothing is read from their
/// connections. What becomes of the messages to them is told apart, and none of it is a loss or a latency of the flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SlowFile {
    /// How many of the flow's subscribers, the first ones: a number, or a share such as "10%", at least one. Not all.
    pub subscribers: SomeSubscribers,
    /// Time for one message, such as "5ms", or the most that are taken in a time, such as "200/s".
    pub takes: TakesFile,
}

/// How many of a flow's subscribers something is said of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SomeSubscribers {
    Count(u32),
    Share(Percent),
}

/// How long an application takes for a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TakesFile {
    /// So long for each.
    Time(Span),
    /// So many in a time.
    Rate(Rate),
}

impl SomeSubscribers {
    /// How many they are of `all`: a share above 0 is one at the least.
    pub fn count_among(self, all: u32) -> u32 {
        match self {
            SomeSubscribers::Count(count) => count,
            SomeSubscribers::Share(share) if share.0 > 0.0 => {
                ((f64::from(all) * share.0).round() as u32).max(1)
            }
            SomeSubscribers::Share(_) => 0,
        }
    }
}

written_as!(
    SomeSubscribers,
    "a number of subscribers, or a share of them such as \"10%\"",
    |_| json_schema!({
        "description": "A number of subscribers, or a share of them: \"10%\".",
        "anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}],
    }),
    fn visit_i64<E: serde::de::Error>(self, count: i64) -> Result<SomeSubscribers, E> {
        u32::try_from(count)
            .map(SomeSubscribers::Count)
            .map_err(|_| E::custom("expected a number of subscribers, 1 or more"))
    },
    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<SomeSubscribers, E> {
        text.parse().map(SomeSubscribers::Share).map_err(E::custom)
    },
);

written_as!(
    TakesFile,
    "a time for each message such as \"5ms\", or a rate such as \"200/s\"",
    |_| json_schema!({
        "description": "A time for each message, or the most that are taken in a time: \"5ms\", \"200/s\".",
        "type": "string",
    }),
    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<TakesFile, E> {
        if text.contains('/') {
            text.parse().map(TakesFile::Rate).map_err(E::custom)
        } else {
            text.parse().map(TakesFile::Time).map_err(E::custom)
        }
    },
    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<TakesFile, E> {
        self.visit_str(&number.to_string())
    },
);

impl Serialize for SomeSubscribers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            SomeSubscribers::Count(count) => serializer.serialize_u32(*count),
            SomeSubscribers::Share(share) => serializer.collect_str(share),
        }
    }
}

impl Serialize for TakesFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            TakesFile::Time(span) => serializer.collect_str(span),
            TakesFile::Rate(rate) => serializer.collect_str(rate),
        }
    }
}
