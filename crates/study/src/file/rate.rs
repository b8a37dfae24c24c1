//! How fast messages are sent, as it is written: one rate, or a rate that changes over time.

use std::borrow::Cow;
use std::fmt;

use pubgauge_quantities::{Rate, Span};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::written_as::written_as;

/// How fast messages are sent: "10k/s", or { steps = [...] }, { ramp = {...} }, { daily = {...} }.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum RateFile {
    /// Always as fast.
    Constant(Rate),
    /// It changes.
    Varying(VaryingRate),
}

/// A rate that changes over time, from the beginning of the measurement on, or of the flow, where it has a `start` or
/// `lasts`. In the warm-up its first rate holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VaryingRate {
    /// One rate after the other; the last one holds to the end.
    Steps(Vec<StepFile>),
    /// From one rate to another in a straight line.
    Ramp(RampFile),
    /// Low at night and high by day, again and again.
    Daily(DailyFile),
}

/// One of several rates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct StepFile {
    /// The rate; "0/s" for none.
    pub to: Level,
    /// For how long it holds; the last step may leave it out.
    #[serde(rename = "for")]
    pub lasts: Option<Span>,
}

/// A straight line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RampFile {
    /// The rate at first; "0/s" for none.
    pub from: Level,
    /// The rate at last.
    pub to: Level,
    /// How long it takes; the whole measurement, or as long as the flow `lasts`, if absent. Then the last rate holds.
    #[serde(rename = "for")]
    pub lasts: Option<Span>,
}

/// Days, compressed in time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DailyFile {
    /// The rate half a day from the peak; "0/s" for none.
    pub low: Level,
    /// The rate at the peak.
    pub high: Level,
    /// How long a day takes, 1s at the least.
    pub day: Span,
    /// When in each day the rate is highest, from the day's beginning; half a day if absent, so that the measurement begins
    /// when it is lowest.
    pub peak_at: Option<Span>,
}

/// A rate that is not "max", or none at all: "0/s".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level(pub Rate);

impl Level {
    /// Messages per second over so many publishers.
    pub fn per_s(self, publishers: usize) -> f64 {
        match self.0 {
            Rate::Max => 0.0,
            Rate::All(per_s) => per_s,
            Rate::Each(per_s) => per_s * publishers as f64,
        }
    }
}

impl From<Rate> for RateFile {
    fn from(rate: Rate) -> RateFile {
        RateFile::Constant(rate)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Level {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

written_as!(
    Level,
    "a rate in quotes, such as \"10k/s\", \"1/s-each\" or \"0/s\"",
    |generator| {
        let rate = generator.subschema_for::<Rate>();
        json_schema!({
            "description": "Messages per time over all publishers (10k/s), or by each of them (1/s-each); 0/s for none.",
            "allOf": [rate, {"not": {"const": "max"}}],
        })
    },
    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Level, E> {
        let none = text
            .trim()
            .strip_prefix('0')
            .is_some_and(|rest| rest.trim_start().starts_with('/'));
        if none {
            return Ok(Level(Rate::All(0.0)));
        }
        match text.parse().map_err(E::custom)? {
            Rate::Max => Err(E::custom(
                "a rate that changes over time is a number: `max` has none; expected such as \"10k/s\"",
            )),
            rate => Ok(Level(rate)),
        }
    },
    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Level, E> {
        self.visit_str(&number.to_string())
    },
    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Level, E> {
        self.visit_str(&number.to_string())
    },
);

written_as!(
    RateFile,
    "a rate in quotes, such as \"10k/s\", \"1/s-each\" or \"max\", or one over time, such as \
     { ramp = { from = \"100/s\", to = \"10k/s\" } }",
    |generator| {
        let rate = generator.subschema_for::<Rate>();
        let varying = generator.subschema_for::<VaryingRate>();
        json_schema!({
            "description": "A rate, or one that changes over time: steps, a ramp, days.",
            "anyOf": [rate, varying],
        })
    },
    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<RateFile, E> {
        text.parse().map(RateFile::Constant).map_err(E::custom)
    },
    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<RateFile, E> {
        self.visit_str(&number.to_string())
    },
    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<RateFile, E> {
        self.visit_str(&number.to_string())
    },
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RateFile, A::Error> {
        const KINDS: [&str; 3] = ["steps", "ramp", "daily"];
        let Some(kind) = map.next_key::<String>()? else {
            return Err(serde::de::Error::custom(
                "an empty table is no rate; expected `steps`, `ramp` or `daily`",
            ));
        };
        let rate = match kind.as_str() {
            "steps" => VaryingRate::Steps(map.next_value()?),
            "ramp" => VaryingRate::Ramp(map.next_value()?),
            "daily" => VaryingRate::Daily(map.next_value()?),
            other => return Err(serde::de::Error::unknown_field(other, &KINDS)),
        };
        match map.next_key::<String>()? {
            None => Ok(RateFile::Varying(rate)),
            Some(second) => Err(serde::de::Error::custom(format!(
                "a rate changes in one way, but both `{kind}` and `{second}` are given"
            ))),
        }
    },
);
