//! A tuning as plain data: its question, and what was seen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::factor::{Factor, Point};

/// The figure that is to become better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// 99th percentile of latency from the intended time: smaller.
    P99,
    /// The highest rate that stays within what is asked for: larger.
    Limit,
    /// Processor time of client and system for a message: smaller.
    Cost,
}

impl Objective {
    pub const ALL: [Objective; 3] = [Objective::P99, Objective::Limit, Objective::Cost];

    pub fn name(self) -> &'static str {
        match self {
            Objective::P99 => "p99",
            Objective::Limit => "limit",
            Objective::Cost => "cost",
        }
    }

    /// Whether a larger figure is the better one.
    pub fn is_larger_better(self) -> bool {
        self == Objective::Limit
    }

    /// The score of a figure: its natural logarithm, turned round where larger is better. The smaller score is the better
    /// one; a difference of scores is a ratio of figures.
    pub fn score(self, figure: f64) -> f64 {
        if self.is_larger_better() {
            -figure.ln()
        } else {
            figure.ln()
        }
    }

    /// The figure that has a score.
    pub fn figure(self, score: f64) -> f64 {
        if self.is_larger_better() {
            (-score).exp()
        } else {
            score.exp()
        }
    }
}

/// The question of a tuning.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    pub factors: Vec<Factor>,
    /// Seconds that all trials may take together.
    pub budget_s: f64,
    /// Seconds that one measurement takes, as long as none has been made.
    pub expected_s: f64,
    /// Fewest pairs of best and default; 5 at least.
    pub pairs: usize,
    /// Seed of all draws.
    pub seed: u64,
    /// Whether somebody else says which combinations are tried ([`crate::Step::Ask`]).
    pub is_led: bool,
}

/// The reason why a point was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// The default, which all is compared with while it is looked for.
    Base,
    /// One factor at another value, all others as they come.
    OneFactor,
    /// A combination of factors.
    Combination,
    /// A point that leads, once more.
    Again,
    /// One side of a pair.
    Pair {
        /// Its number, from 1.
        nth: u32,
        side: Side,
    },
}

/// A side of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    Default,
    Best,
}

/// The result of measuring a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Finding {
    /// A score ([`Objective::score`]).
    Score(f64),
    /// The system does not carry the load with these settings, or loses messages: no score, and no hope.
    Hopeless,
    /// Nothing is known: the client was the limit, or the trial tells nothing.
    Nothing,
}

impl Finding {
    pub(crate) fn score(self) -> Option<f64> {
        match self {
            Finding::Score(score) => Some(score),
            Finding::Hopeless | Finding::Nothing => None,
        }
    }
}

/// A point that was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    pub purpose: Purpose,
    pub point: Point,
    pub finding: Finding,
    /// How long that took.
    pub seconds: f64,
}

impl Seen {
    pub(crate) fn is_of_pair(&self) -> bool {
        matches!(self.purpose, Purpose::Pair { .. })
    }
}

/// A point that was measured.
pub(crate) struct KnownPoint {
    pub(crate) point: Point,
    /// Its mean score, without those of pairs; `None` if it is hopeless or told nothing.
    pub(crate) score: Option<f64>,
    /// How many scores that is the mean of.
    pub(crate) scores: usize,
    pub(crate) is_hopeless: bool,
}
