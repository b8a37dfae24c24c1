//! The study file as it is written: every key, with its meaning. The JSON Schema is made from
//! these types.

mod claim;
mod compare;
mod network;
mod search;
mod testbed;
mod topology;
mod window;
mod workload;
mod written;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use pubgauge_driver::Settings;
use pubgauge_workload::trace::TraceFormat;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};

pub use self::claim::{Cells, ClaimFile, PointsFile, RuleFile, RuleList, SlopeFile, Values};
pub use self::compare::CompareFile;
pub use self::network::{HostsFile, NetworkFile};
use self::search::OrFind;
pub use self::search::SearchFile;
pub use self::testbed::{LimitsFile, TestbedFile};
pub use self::topology::TopologyFile;
pub use self::window::WindowFile;
pub use self::workload::WorkloadFile;
use crate::profile;
use crate::units::{Rate, Size, Span};

/// One question, put to several systems.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct StudyFile {
    /// Name of the study; names the folder of its runs.
    pub name: String,
    /// The question that it answers, in one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// Systems to run on, by name; `"available"` (the default) stands for all that are found,
    /// `"available-variants"` for the same in every variant, `"first-look"` for those found that
    /// start at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub systems: Option<Systems>,
    /// Seed of every random draw and of the order of trials; 1 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u32>,
    /// How often each cell of the grid is run; 1 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u32>,
    /// Order of trials; random if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// How each trial proceeds; a workload may say otherwise for itself.
    #[serde(default, skip_serializing_if = "PhasesFile::is_empty")]
    pub phases: PhasesFile,
    /// How the system is laid out.
    #[serde(default, skip_serializing_if = "TopologyFile::is_empty")]
    pub topology: TopologyFile,
    /// How the client works.
    #[serde(default, skip_serializing_if = "ClientFile::is_empty")]
    pub client: ClientFile,
    /// Where systems run.
    #[serde(default, skip_serializing_if = "TestbedFile::is_empty")]
    pub testbed: TestbedFile,
    /// How a limit is searched for, where a value of a flow is "find".
    #[serde(default, skip_serializing_if = "SearchFile::is_empty")]
    pub search: SearchFile,
    /// How cells are compared with each other.
    #[serde(default, skip_serializing_if = "CompareFile::is_empty")]
    pub compare: CompareFile,
    /// Axes of the grid: PATH = list of values. Every combination is run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub grid: BTreeMap<String, Vec<serde_json::Value>>,
    /// What the application asks of the system; several variants are all run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<NamedSettings>,
    /// Changes to the settings, tried one at a time against the base, which is the settings as they are.
    /// Each has a name, and the settings that it changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ablation: Vec<NamedSettings>,
    /// Recorded traces, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub trace: BTreeMap<String, TraceFile>,
    /// What devices and applications do; several workloads are all run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workload: Vec<WorkloadFile>,
    /// What must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criterion: Vec<CriterionFile>,
    /// What claims compare, by name: cells, or implementations of the same, which must agree.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub side: BTreeMap<String, Cells>,
    /// Statements about the systems, such as a paper's, judged by what was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claim: Vec<ClaimFile>,
    /// Other sizes of the study, by name: what is written there replaces what the study says.
    /// `--scale NAME` chooses one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scale: BTreeMap<String, BTreeMap<String, serde_json::Value>>,
}

/// Order of trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Shuffled within each repeat, by the study's seed: what drifts over time then does not
    /// look like a difference between systems.
    Random,
    /// As listed in the file.
    Listed,
}

/// Systems to run on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Systems {
    /// One name, or `available`.
    One(String),
    /// Several names.
    Many(Vec<String>),
}

/// How each trial proceeds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PhasesFile {
    /// Connections begun per second, such as "500/s"; "max" if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect_rate: Option<Rate>,
    /// Longest time for connecting, subscribing and proving readiness; 30s if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_within: Option<Span>,
    /// Traffic before the measurement, by time or count; 2s if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<UntilFile>,
    /// The measurement, by time or count; 10s if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measure: Option<UntilFile>,
    /// Silence after which missing messages that later ones overtook count as lost, and repeated
    /// ones are no longer awaited; 1s if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_quiet: Option<Span>,
    /// Longest drain; messages that are still arriving then count as under way, neither delivered
    /// nor lost. 10s if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_within: Option<Span>,
    /// Reconnect a client that was lost, after this long; lost clients stay lost if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconnect_after: Option<Span>,
    /// Connections are cut on purpose from outside: a lost connection does not make the trial
    /// broken; false if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_disconnects: Option<bool>,
    /// Loss is the subject: a lost message does not make the trial lossy; false if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_losses: Option<bool>,
    /// Named spans of the measurement, each with its own figures; a workload's own replace the study's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub window: Vec<WindowFile>,
}

impl PhasesFile {
    fn is_empty(&self) -> bool {
        *self == PhasesFile::default()
    }
}

/// How the client works.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClientFile {
    /// Scheduled messages that fall due within this span leave together, in one wake-up of their
    /// worker: none early, none scheduled later than the span. Above 0, up to 100ms; each leaves at
    /// its own time if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing_within: Option<Span>,
    /// Publishing devices run in so many processes and the others in as many, each with one worker, 1
    /// to 64; all are threads of one process if absent, unless that may not open enough files.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub processes: Option<u32>,
    /// What each worker process gets of the machine at most.
    #[serde(default, skip_serializing_if = "LimitsFile::is_empty")]
    pub limits: LimitsFile,
}

impl ClientFile {
    fn is_empty(&self) -> bool {
        *self == ClientFile::default()
    }
}

/// The end of a phase: "10s", or { messages = 1000, within = "60s" }.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum UntilFile {
    /// After a time.
    Time(Span),
    /// After a number of messages.
    Count(UntilCount),
}

/// The end of a phase by count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct UntilCount {
    /// Messages over all flows.
    pub messages: u64,
    /// The phase ends after this long even if fewer messages were sent.
    pub within: Span,
}

/// A variant of the settings. Every key but `name` and `profile` is a neutral setting.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamedSettings {
    /// Shown in tables; the profile, or else `default`, if absent.
    pub name: Option<String>,
    /// The profile that it begins with ([`crate::profiles`]).
    pub profile: Option<String>,
    /// What the application asks for.
    pub ask: Settings,
}

/// One traffic relation: who sends what to whom, how big, when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FlowFile {
    /// Shown in tables; unique in the workload. The workload's name if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Who talks to whom; n-m if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<FlowPattern>,
    /// Publishing devices; 0 is allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OrFind<u32>>")]
    pub publishers: Option<u32>,
    /// Subscribing devices; 0 is allowed. With `subscribe` templates: per combination.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OrFind<u32>>")]
    pub subscribers: Option<u32>,
    /// Distinct topics, dealt out in turn to publishers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OrFind<u32>>")]
    pub topics: Option<u32>,
    /// Topic, or template such as "site/{subsystem}/{device}".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Values of each `{name}` of the template: a number, or a list of names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dimensions: BTreeMap<String, Dimension>,
    /// Dimensions whose combinations each have a publisher of their own; all if absent. The
    /// other dimensions are topics of that publisher, used in turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publisher_per: Option<Vec<String>>,
    /// Filters, or templates of filters, of each subscriber; `+` and `#` are allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscribe: Option<Filters>,
    /// Number of groups that subscribers are dealt out to; only with pattern "shared"; 1 if
    /// absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<u32>,
    /// Names the connections of the publishers. Flows that use the same name share the
    /// connections: a device then publishes and subscribes on one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publish_as: Option<String>,
    /// Names the connections of the subscribers, as `publish-as`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscribe_as: Option<String>,
    /// How big messages are, header (16 B) included.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OrFind<PayloadFile>>")]
    pub payload: Option<PayloadFile>,
    /// How fast messages are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OrFind<Rate>>")]
    pub rate: Option<Rate>,
    /// How messages are spread over time; periodic if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<ArrivalsFile>,
    /// Send in bursts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bursts: Option<Bursts>,
    /// Send messages back to back in bursts of so many, of each publisher, instead of at a rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OrFind<u32>>")]
    pub burst: Option<u32>,
    /// From the beginning of a burst to that of the next, 1 ms at the least; if absent, a burst begins
    /// when the one before has arrived whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst_every: Option<Span>,
    /// Replay a recorded trace instead of a rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayFile>,
    /// One way, or there and back; one-way if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<ExchangeFile>,
    /// The flow begins so much later than its phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Span>,
    /// The flow sends for so long; to the end of the phase if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
    /// Messages of a flat-out flow that may be under way at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u32>,
    /// What this flow asks of the system, on top of the variant's settings. Its connections are its
    /// own then.
    #[serde(skip_serializing_if = "Option::is_none")]
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
    /// These.
    Names(Vec<String>),
}

/// One filter, or several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Filters {
    /// One.
    One(String),
    /// Several.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
    /// Begin again at the end; true if absent.
    #[serde(rename = "loop", skip_serializing_if = "Option::is_none")]
    pub looped: Option<bool>,
    /// Play the tape, or draw from its distributions; tape if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<ReplayMode>,
    /// Interval of the distributions to draw from; 15min if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Span>,
}

/// How a trace is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayMode {
    /// As recorded.
    Tape,
    /// Sizes and gaps drawn from those of each interval of the recording, from a random position
    /// for each publisher.
    Drawn,
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

/// How big messages are: "64B", ["64B", "1KiB"], "recorded", or a distribution.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PayloadFile {
    /// "64B", or "recorded".
    One(OneSize),
    /// Taken in turn.
    List(Vec<Size>),
    /// Drawn.
    Drawn(Drawn),
}

/// A fixed size, or the recorded ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OneSize {
    /// Always the same.
    Fixed(Size),
    /// As in the replayed trace.
    Recorded,
}

/// A distribution of sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Drawn {
    /// Every size between two equally often.
    Uniform(UniformSizes),
    /// Normal, cut off at both ends.
    Normal(NormalSizes),
    /// Log-normal, cut off at both ends.
    LogNormal(LogNormalSizes),
}

/// Uniform sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UniformSizes {
    /// Smallest.
    pub min: Size,
    /// Largest.
    pub max: Size,
}

/// Normal sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NormalSizes {
    /// Mean.
    pub mean: Size,
    /// Standard deviation.
    pub sd: Size,
    /// Smallest; 16B if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Size>,
    /// Largest; mean + 6 sd if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Size>,
}

/// Log-normal sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogNormalSizes {
    /// Median.
    pub median: Size,
    /// Standard deviation of the natural logarithm; 0.5 makes the 84th percentile 1.65 medians.
    pub sigma: f64,
    /// Smallest; 16B if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Size>,
    /// Largest; the median times e^(6 sigma) if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Size>,
}

/// A recorded trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TraceFile {
    /// Files, relative to the study file; `*` in a file name and `${VARIABLE}` are allowed.
    pub files: Filters,
    /// How to read them; the plain trace format if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<TraceFormat>,
    /// Sort readings that are not in order of time, instead of refusing them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort: Option<bool>,
}

/// What must hold: a figure, exactly one comparison, and the trials it is about.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CriterionFile {
    /// The figure, such as "latency.p99", "lost", "delivered-rate" or "verdict".
    pub figure: String,
    /// It must be less than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below: Option<Bound>,
    /// It must be this or less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<Bound>,
    /// It must be more than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above: Option<Bound>,
    /// It must be this or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<Bound>,
    /// It must be this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equals: Option<Bound>,
    /// Only trials on this system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Only trials of this workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Only trials with this variant of the settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<String>,
    /// The figures of this flow, instead of those of all flows together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
}

/// A bound of a criterion: a number, or a quantity with its unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Bound {
    /// A plain number, for counts.
    Number(f64),
    /// A quantity with its unit, or a verdict.
    Text(String),
}

impl Serialize for OneSize {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            OneSize::Fixed(size) => size.serialize(serializer),
            OneSize::Recorded => serializer.serialize_str("recorded"),
        }
    }
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

impl NamedSettings {
    /// The name that tables show.
    pub fn shown_name(&self) -> &str {
        let name = self.name.as_deref().or(self.profile.as_deref());
        name.unwrap_or(DEFAULT)
    }
}

/// Name of the settings when none are given.
pub(crate) const DEFAULT: &str = "default";

/// A visitor, so that the error points at the name.
struct ProfileName;

impl Visitor<'_> for ProfileName {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a profile")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Option<String>, E> {
        match profile::profile(name) {
            Some(_) => Ok(Some(name.to_owned())),
            None => Err(E::unknown_variant(name, profile::names())),
        }
    }
}

fn profile_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    deserializer.deserialize_any(ProfileName)
}

/// The keys `name`, `profile` and `ask` as the reader hands them over (see `tree::split_settings`).
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SplitSettings {
    name: Option<String>,
    #[serde(default, deserialize_with = "profile_name")]
    profile: Option<String>,
    #[serde(default)]
    ask: Settings,
}

impl<'de> Deserialize<'de> for NamedSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let SplitSettings { name, profile, ask } = SplitSettings::deserialize(deserializer)?;
        Ok(NamedSettings { name, profile, ask })
    }
}

impl Serialize for NamedSettings {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut value = serde_json::to_value(&self.ask).map_err(serde::ser::Error::custom)?;
        if let Some(table) = value.as_object_mut() {
            // TOML has no null, and an absent setting is not a setting.
            table.retain(|_, value| !value.is_null());
            table.retain(|key, value| {
                key != "native" || value.as_object().is_some_and(|n| !n.is_empty())
            });
            for (key, value) in [("name", &self.name), ("profile", &self.profile)] {
                if let Some(value) = value {
                    table.insert(key.into(), value.clone().into());
                }
            }
        }
        value.serialize(serializer)
    }
}

impl JsonSchema for NamedSettings {
    fn schema_name() -> Cow<'static, str> {
        "NamedSettings".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Settings::json_schema(generator);
        if let Some(properties) = schema.get_mut("properties").and_then(|p| p.as_object_mut()) {
            properties.insert(
                "name".into(),
                serde_json::json!({
                    "description": "Shown in tables; the profile, or else `default`, if absent.",
                    "type": ["string", "null"],
                }),
            );
            properties.insert(
                "profile".into(),
                serde_json::json!({
                    "description": "Named settings to begin with; the other keys stand above them.",
                    "enum": profile::names(),
                }),
            );
        }
        schema
    }
}
