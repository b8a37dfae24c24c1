//! A search as plain data: its question, the outcomes of its trials, the next trial, and its findings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::faces::Faces;
use crate::wander::Wander;

/// A system that delivers less than this share of a flat-out load has collapsed under it: how much that was tells
/// nothing of its limit (RabbitMQ over MQTT: 2 of 140,000 msg/s, where it carries more than 10,000).
const COLLAPSED: f64 = 0.01;

/// The question of a search. All loads have one unit, the caller's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// Whether a flat-out trial shows roughly where the limit is. The default is yes.
    pub flat_out: bool,
    /// Whether a load is a whole number. The default is no.
    pub whole: bool,
    /// Load to begin with where nothing shows roughly where the limit is. The default is 100.
    pub start: f64,
    /// Smallest load, above 0. The default is 1.
    pub least: f64,
    /// Largest load. The default is 10^8.
    pub most: f64,
    /// Width of the interval at which the search ends, as a share of its lower end. The default is 0.1.
    pub width: f64,
    /// Trials after which the search ends, whatever is known by then. The default is 30.
    pub most_trials: usize,
    /// Most seconds of trials, those of costs included: the search ends before a trial that would exceed
    /// them, whatever is known by then. The default is 480.
    pub most_seconds: f64,
    /// Seconds that a long trial measures. The default is 45.
    pub long_seconds: f64,
}

impl Default for Question {
    fn default() -> Self {
        Question {
            flat_out: true,
            whole: false,
            start: 100.0,
            least: 1.0,
            most: 1e8,
            width: 0.10,
            most_trials: 30,
            most_seconds: 480.0,
            long_seconds: 45.0,
        }
    }
}

/// The result of a trial of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepOutcome {
    /// It stayed within all that was asked for.
    Within,
    /// The system did not.
    Beyond,
    /// The client was the bottleneck.
    Client,
    /// Nothing: it was broken, or has too few messages for a figure that was asked for.
    Nothing,
}

/// A trial that was run for a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepTaken {
    /// The step that it was.
    pub step: Step,
    /// The load that publishers handed over, in the unit of the load; used of a flat-out trial.
    pub offered: f64,
    /// The load that the system delivered, in the unit of the load; used of a flat-out trial and of one beyond.
    pub achieved: f64,
    pub finding: StepOutcome,
    /// How long it took.
    pub seconds: f64,
    /// Processor time of client and system for a message, s, if it is known.
    pub cost: Option<f64>,
    /// The load that the system took, where the load is a number of clients and it turned the rest of them away.
    pub took: Option<f64>,
}

impl StepTaken {
    /// Whether the system took a load and delivered next to nothing of it.
    pub(crate) fn collapsed(&self) -> bool {
        self.achieved < COLLAPSED * self.offered
    }
}

/// The next trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// No given load: as much as the system takes.
    FlatOut,
    /// This load, as short as a verdict allows.
    Short(f64),
    /// This load for long: systems have buffers, burst credit and housekeeping.
    Long(f64),
    /// This load, for what it costs below the limit; it decides nothing.
    Cost(f64),
    /// Nothing: the search is over.
    End,
}

impl Step {
    pub(crate) fn load(self) -> Option<f64> {
        match self {
            Step::Short(load) | Step::Long(load) => Some(load),
            Step::FlatOut | Step::Cost(_) | Step::End => None,
        }
    }

    pub(crate) fn is_long(self) -> bool {
        matches!(self, Step::Long(_))
    }
}

/// The owner of the limit that was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LimitedBy {
    /// The system.
    System,
    /// The client: the system carries at least so much.
    Client,
    /// The search: its trials or minutes were used up, or the largest load was still carried.
    #[default]
    Budget,
}

/// The findings of a search so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimitEstimate {
    /// Lower end of the 95 % interval, or the largest load that stayed within while there is no interval;
    /// `None` if no trial stayed within what was asked for.
    pub low: Option<f64>,
    /// Upper end, or the smallest load beyond; `None` where the system carries at least [`LimitEstimate::low`].
    pub high: Option<f64>,
    /// The load that a long trial stayed within.
    pub confirmed: Option<f64>,
    /// The reason why it ended.
    pub bound: LimitedBy,
    /// Whether long trials failed where short ones did not: the interval is that of long ones.
    pub long_only: bool,
    /// Whether trials in a row told nothing, so that it was given up.
    pub given_up: bool,
    /// Where trials contradict each other: some stayed within a load at which, or far below which, others failed.
    pub faces: Option<Faces>,
    /// How far the pace wandered meanwhile, if it did: an interval holds the limits at the slowest and the fastest.
    pub wander: Option<Wander>,
}
