//! Searches for a limit, as `results.json` has them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use pubgauge_search::{Axis, LimitedBy, StepOutcome};

use crate::axis::AxisValue;
use crate::bursts::BurstFigures;
use crate::unit::Unit;

/// A search for the highest load that stays within what is asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Search {
    /// The system, as the trials name it.
    pub system: String,
    /// Name of the variant of the settings.
    pub settings: String,
    /// The workload.
    pub workload: String,
    /// Values of the grid's axes.
    pub axes: Vec<AxisValue>,
    /// The axis that was varied.
    pub axis: Axis,
    /// Lower end of the 95 % interval that the limit lies in, in the axis's unit. Absent: no load stayed
    /// within what was asked for.
    pub low: Option<f64>,
    /// Upper end. Absent: the system carries at least `low`, see `bound`.
    pub high: Option<f64>,
    /// The load that a long trial stayed within.
    pub confirmed: Option<f64>,
    /// The reason why the search ended.
    pub bound: LimitedBy,
    /// The bottleneck or unmet criterion beyond the limit.
    pub gave_way: Option<GaveWay>,
    /// Sentences on what the interval does not say, and on what would make it better.
    pub notes: Vec<SearchNote>,
    /// The bursts at the limit, where the largest burst was searched for: of the longest trial at the
    /// largest burst up to `low` that stayed within.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bursts: Option<BurstFigures>,
    /// Its steps, in the order in which they ran.
    pub trials: Vec<SearchTrial>,
}

/// The subject of a note of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoteOf {
    /// The bursts at the limit.
    Bursts,
    /// Other programs kept the machine busy beyond the limit.
    OthersBusy,
    /// The client was the bottleneck beyond the limit.
    Client,
    /// A window of the settings held the publishers back beyond the limit.
    Window,
    /// The host of the run cannot offer more.
    HostFull,
    /// The largest load that is tried was carried.
    LargestCarried,
    /// Larger bursts arrive whole, but after the next one began.
    BurstsLate,
    /// Trials or time were spent before the interval was narrow.
    Wide,
    /// Trials or time were spent before a load that is small enough was tried.
    AllTooMuch,
    /// Trials or time were spent before anything could be told.
    Spent,
    /// The cost of a delivery varied during the search.
    CostVaried,
    /// Trials at the same loads, or at such that are far apart, contradict each other.
    TwoFaces,
    /// Trials below the limit failed.
    FailedBelow,
    /// The system was not started anew between trials.
    KeepRunning,
    /// Trials in a row told nothing.
    GivenUp,
    /// No load stayed within what was asked for.
    NoneWithin,
    /// Short trials promised more than lasted.
    LongOnly,
    /// No long trial near the lower end stayed within.
    NotConfirmed,
    /// No long trial was run.
    NoLongTrial,
    /// The system ended under a load beyond the limit.
    SystemEnded,
    /// The outcome of the last trial.
    LastTrial,
}

impl NoteOf {
    /// Why there is no limit, or none but a lower end, in a few words; `None` where the note does not tell that.
    pub fn cause(self) -> Option<&'static str> {
        Some(match self {
            NoteOf::OthersBusy => "other programs kept the machine busy",
            NoteOf::Client => "the client was the bottleneck",
            NoteOf::Window => "a window of the settings held the publishers back",
            NoteOf::HostFull => "this host cannot offer more",
            NoteOf::LargestCarried => "the largest load that is tried was not too much",
            NoteOf::BurstsLate => "larger bursts arrive late",
            NoteOf::Wide | NoteOf::AllTooMuch | NoteOf::Spent => "its trials or time were spent",
            NoteOf::GivenUp => "trials in a row told nothing",
            NoteOf::NoneWithin => "no load stayed within what was asked for",
            _ => return None,
        })
    }
}

/// A note of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchNote {
    /// Its subject.
    pub of: NoteOf,
    /// The note in words.
    pub text: String,
}

impl SearchNote {
    /// A note in these words.
    pub fn new(of: NoteOf, text: impl Into<String>) -> SearchNote {
        let text = text.into();
        SearchNote { of, text }
    }
}

/// The part of the whole that limits a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bottleneck {
    /// The processors that the system has; its figure is those in use.
    Processor,
    /// One thread of the system; its figure is the share of a processor that it used.
    Thread,
    /// The link of a host of a network; its figure is the share of the rate that was in use.
    Link,
    /// Lost deliveries, as a share of those expected.
    Loss,
    /// Latency beyond a criterion.
    Latency,
    /// A queue that grew; its figure is the delivered rate.
    Queue,
    /// Connections that were not made; its figure is those that were.
    ConnectionsMade,
    /// Connections that were lost.
    ConnectionsLost,
    /// A criterion, with its figure.
    Criterion,
    /// A client host of a given size; its figure is the share of it in use.
    Host,
    /// A window of the settings, with what it allows.
    Window,
    /// The client; its figure is the share of the time for which its busiest thread ran.
    Client,
    /// The machine; its figure is the processors that other programs kept busy.
    Machine,
}

impl Bottleneck {
    /// Its name, in words.
    pub fn name(self) -> &'static str {
        match self {
            Bottleneck::Processor => "processor",
            Bottleneck::Thread => "thread",
            Bottleneck::Link => "link",
            Bottleneck::Loss => "loss",
            Bottleneck::Latency => "latency",
            Bottleneck::Queue => "queue",
            Bottleneck::ConnectionsMade => "connections made",
            Bottleneck::ConnectionsLost => "connections lost",
            Bottleneck::Criterion => "criterion",
            Bottleneck::Host => "host",
            Bottleneck::Window => "window",
            Bottleneck::Client => "client",
            Bottleneck::Machine => "machine",
        }
    }
}

/// The limit of the load, with its figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GaveWay {
    /// The part of the whole that gave way.
    pub what: Bottleneck,
    /// Its figure just beyond the limit, in `unit`.
    pub figure: f64,
    /// Unit of the figure.
    pub unit: Unit,
    /// The bottleneck in a sentence.
    pub words: String,
}

/// The purpose of a trial of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// Flat out: shows about where the limit is.
    FlatOut,
    /// A load near the limit, as short as a verdict allows.
    Short,
    /// A load for a long time: confirms it.
    Long,
    /// A load below the limit, to measure its cost.
    Cost,
}

/// The place of a trial in its search; a part of the trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchStep {
    /// Which search of the run, from 0.
    pub search: u32,
    /// Its purpose.
    pub purpose: Purpose,
    /// The load that was asked for; absent flat out.
    pub load: Option<f64>,
}

/// A trial in a search's list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchTrial {
    /// The trial.
    pub id: u32,
    /// Its purpose.
    pub purpose: Purpose,
    /// The load that was asked for; absent flat out.
    pub load: Option<f64>,
    /// The part of it that the system delivered, in the axis's unit.
    pub achieved: f64,
    /// Its result.
    pub finding: StepOutcome,
    /// Why, where it was not within: reasons of its verdict, criteria not met.
    pub why: Vec<String>,
}

/// The share of a limit that a trial ran at, where its study gives the load as a share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitShare {
    /// The workload whose limit the run searched for.
    pub of: String,
    /// The share: 1 is the limit.
    pub share: f64,
    /// The axis that was searched.
    pub axis: Axis,
    /// The load that `share` is a share of, in the axis's unit: the lower end of the limit's interval, for a share
    /// above 1 the upper end.
    pub end: f64,
    /// The load that the trial ran at, in the axis's unit.
    pub load: f64,
    /// The limit is only known as "at least": the trial may have run at a smaller share of it.
    pub at_least: bool,
}

/// A cell of the plan that could not be measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NotMeasured {
    /// The cell, as trials name it.
    pub cell: String,
    /// The system.
    pub system: String,
    /// Name of the variant of the settings.
    pub settings: String,
    /// The workload.
    pub workload: String,
    /// Values of the grid's axes.
    pub axes: Vec<AxisValue>,
    /// Why, in a sentence.
    pub reason: String,
}
