//! A flow as it is written.

use std::collections::BTreeMap;

use pubgauge_driver::Settings;
use pubgauge_quantities::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::identities::IdentitiesFile;
use super::late::LateFile;
use super::payload::PayloadFile;
use super::presence::PresenceFile;
use super::rate::RateFile;
use super::search::OrFind;
use super::slow::{SlowFile, TakesFile};

/// One traffic relation: who sends what to whom, how big, when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FlowFile {
    /// Shown in tables; unique in the workload. The workload's name if absent.
    pub name: Option<String>,
    /// Who talks to whom; n-m if absent.
    pub pattern: Option<FlowPattern>,
    /// Publishing devices; 0 is allowed.
    #[schemars(with = "Option<OrFind<u32>>")]
    pub publishers: Option<u32>,
    /// Subscribing devices; 0 is allowed. With `subscribe` templates: per combination.
    #[schemars(with = "Option<OrFind<u32>>")]
    pub subscribers: Option<u32>,
    /// Distinct topics, dealt out in turn to publishers.
    #[schemars(with = "Option<OrFind<u32>>")]
    pub topics: Option<u32>,
    /// Topic, or template such as "site/{subsystem}/{device}".
    pub topic: Option<String>,
    /// Exponent of Zipf's law for how often a publisher uses each of its topics, 0 to 10: the k-th in proportion to 1/k^s. In turn
    /// if absent.
    pub topic_zipf: Option<f64>,
    /// Values of each `{name}` of the template: a number, or a list of names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dimensions: BTreeMap<String, Dimension>,
    /// Dimensions whose combinations each have a publisher of their own; all if absent. The
    /// other dimensions are topics of that publisher, used in turn.
    pub publisher_per: Option<Vec<String>>,
    /// Filters, or templates of filters, of each subscriber; `+` and `#` are allowed.
    pub subscribe: Option<Filters>,
    /// Number of groups that subscribers are dealt out to; only with pattern "shared"; 1 if
    /// absent.
    pub groups: Option<u32>,
    /// Names the connections of the publishers. Flows that use the same name share the
    /// connections: a device then publishes and subscribes on one.
    pub publish_as: Option<String>,
    /// Names the connections of the subscribers, as `publish-as`.
    pub subscribe_as: Option<String>,
    /// Who the clients are to the system; made-up names and the login of the command line if absent.
    pub identities: Option<IdentitiesFile>,
    /// How big messages are, header (16 B) included.
    #[schemars(with = "Option<OrFind<PayloadFile>>")]
    pub payload: Option<PayloadFile>,
    /// How fast messages are sent.
    #[schemars(with = "Option<OrFind<RateFile>>")]
    pub rate: Option<RateFile>,
    /// How messages are spread over time; periodic if absent.
    pub arrivals: Option<ArrivalsFile>,
    /// Send in bursts.
    pub bursts: Option<Bursts>,
    /// Send messages back to back in bursts of so many, of each publisher, instead of at a rate.
    #[schemars(with = "Option<OrFind<u32>>")]
    pub burst: Option<u32>,
    /// From the beginning of a burst to that of the next, 1 ms at the least; if absent, a burst begins
    /// when the one before has arrived whole.
    pub burst_every: Option<Span>,
    /// Replay a recorded trace instead of a rate.
    pub replay: Option<ReplayFile>,
    /// One way, or there and back; one-way if absent.
    pub exchange: Option<ExchangeFile>,
    /// Which of several subscribers that hear a question of a ping-pong answers it, in the order in which they are
    /// listed and subscribe; the first if absent.
    pub answered_by: Option<AnsweredByFile>,
    /// The flow begins so long after the start of the measurement; if absent, with the warm-up, or, where `lasts` is
    /// given, with the measurement.
    pub start: Option<Span>,
    /// The flow sends for so long; to the end of the phase if absent.
    pub lasts: Option<Span>,
    /// Devices that come and go; all stay connected if absent. A device that takes part in several flows comes and goes as
    /// any of them says.
    pub presence: Option<PresenceFile>,
    /// Subscribers whose applications are slow; none if absent.
    pub slow: Option<SlowFile>,
    /// Time that the application of each subscriber takes for a message before it takes the next, such as "80us", or the
    /// most that each takes in a time, such as "12k/s"; none to speak of if absent. Unlike those of `slow`, what these get is
    /// in all figures.
    pub subscribers_take: Option<TakesFile>,
    /// Subscribers that subscribe within the measurement; none if absent.
    pub late: Option<LateFile>,
    /// Messages of a flat-out flow that may be under way at once.
    pub window: Option<u32>,
    /// The flow's own demands on the system, on top of the variant's settings. Its connections are its
    /// own then.
    pub settings: Option<Settings>,
}

/// Who talks to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FlowPattern {
    /// Pairs: subscriber k gets the messages of publisher k.
    #[serde(rename = "1-1")]
    Pairs,
    /// One publisher, heard by every subscriber.
    #[serde(rename = "1-n")]
    OneToMany,
    /// Every publisher heard by one subscriber.
    #[serde(rename = "n-1")]
    ManyToOne,
    /// Topics are dealt out in turn to publishers and to subscribers; with one topic, every
    /// subscriber gets the messages of every publisher.
    #[serde(rename = "n-m")]
    ManyToMany,
    /// Subscribers share the messages as members of groups.
    #[serde(rename = "shared")]
    Shared,
}

/// Values of a dimension: a number (0, 1, ... are the values) or a list of names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Dimension {
    /// So many, named 0, 1, ...
    Count(u32),
    Names(Vec<String>),
}

/// One filter, or several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Filters {
    One(String),
    Many(Vec<String>),
}

/// How messages are spread over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ArrivalsFile {
    /// Evenly.
    Periodic,
    /// At random, independently of one another (exponential gaps).
    Poisson,
}

/// Bursts and silences.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Bursts {
    /// Length of a burst; `rate` holds while it lasts.
    pub on: Span,
    /// Silence between bursts.
    pub off: Span,
}

/// Replay of a recorded trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReplayFile {
    /// Name of a `[trace.NAME]` of this study.
    pub trace: String,
    /// Recorded seconds per second; 1 (real speed) if absent.
    pub speed: Option<f64>,
    /// Begin again at the end; true if absent.
    #[serde(rename = "loop")]
    pub looped: Option<bool>,
    /// Play the tape, or draw from its distributions; tape if absent.
    pub mode: Option<ReplayModeFile>,
    /// Interval of the distributions to draw from; 15min if absent.
    pub interval: Option<Span>,
    /// Contents of the messages that travel; times and sizes alone if absent.
    pub contents: Option<ContentsFile>,
}

/// Contents of a recording that travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ContentsFile {
    /// Topics, payloads, quality of service and retain, as far as the system has them.
    Recorded,
}

/// How a trace is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayModeFile {
    /// As recorded.
    Tape,
    /// Sizes and gaps drawn from those of each interval of the recording, from a random position
    /// for each publisher.
    Drawn,
}

/// Which of several subscribers answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AnsweredByFile {
    /// The first one.
    First,
    /// The last one.
    Last,
}

/// One way, or there and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExchangeFile {
    /// Publisher to subscribers.
    OneWay,
    /// The first subscriber answers each message; the next is sent when the answer is there
    /// (rate "max") or on schedule.
    PingPong,
}

impl Filters {
    /// As a list.
    pub fn list(&self) -> &[String] {
        match self {
            Filters::One(one) => std::slice::from_ref(one),
            Filters::Many(many) => many,
        }
    }
}
