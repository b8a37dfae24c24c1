//! Comparisons that a study asked for, as `results.json` has them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::axis::AxisValue;

/// Two cells of one workload and one point of the grid, judged against each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairComparison {
    /// The workload.
    pub workload: String,
    /// Values of the grid's axes.
    pub axes: Vec<AxisValue>,
    /// The base of the comparison.
    pub base: ComparedSystem,
    /// The system that is compared with it.
    pub other: ComparedSystem,
    /// `other` is `base` with the one change of this name (`[[ablation]]` of the study).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ablation: Option<String>,
    /// Pairs of valid trials, one of each side in the same round.
    pub pairs: u32,
    /// Trials of both sides that were not valid.
    pub not_valid: u32,
    /// Half-width of the interval that was asked for, as a share: 0.03 is plus or minus 3 %. Absent if the
    /// number of rounds was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<f64>,
    /// Change up to which two figures are the same, as a share.
    pub margin: f64,
    /// Why no more pairs were measured.
    pub ended: Ended,
    /// The outcome for each figure.
    pub figures: Vec<ComparedFigure>,
}

/// A side of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedSystem {
    /// The system.
    pub system: String,
    /// Name of the variant of the settings.
    pub settings: String,
}

/// Why a comparison has no more pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// The repeats of the study were measured.
    #[default]
    Repeats,
    /// The precision that was asked for was reached.
    Precision,
    /// The study's pairs or minutes were used up before the precision was reached.
    Budget,
    /// The system was overloaded, lost messages or died: further pairs would not show the figures.
    System,
    /// Most trials were client-bound, unsteady, or not run as planned.
    Client,
    /// The run was cut off, or is still going on.
    Cut,
}

/// How B differs from A in one figure.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Difference {
    /// B is better than A.
    Better,
    /// B is the same as A, within the margin.
    Same,
    /// The measurement does not decide it.
    CannotTell,
    /// B is worse than A.
    Worse,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Difference::Better => "better",
            Difference::Same => "same",
            Difference::CannotTell => "cannot tell",
            Difference::Worse => "worse",
        })
    }
}

/// Whether a release may go out by one figure: `base` is the old one, `other` the new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GuardOutcome {
    /// The whole interval lies on the good side of the margin: the new one is better, the same, or worse by less
    /// than the margin.
    WithinMargin,
    /// The whole interval lies beyond the margin.
    Worse,
    /// The margin lies within the interval, or there is no interval.
    CannotTell,
}

impl fmt::Display for GuardOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            GuardOutcome::WithinMargin => "within the margin",
            GuardOutcome::Worse => "worse than the margin",
            GuardOutcome::CannotTell => "cannot tell",
        })
    }
}

/// A figure of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedFigure {
    /// Its name, as `pubgauge compare --figure` takes it.
    pub figure: String,
    /// The unit of `base` and `other`: `ns`, `1/s`, `us`, `B`, `1` (a share).
    pub unit: String,
    /// Mean over the pairs.
    pub base: Option<f64>,
    /// Mean over the pairs.
    pub other: Option<f64>,
    /// The other against the base as a share (0.1 is 10 % more), or in the figure's unit where the base
    /// may be 0 and was. Absent if the two cannot be compared.
    pub change: Option<f64>,
    /// Lower end of the 95 % interval of `change`. The confidence is that of all intervals of one
    /// comparison together.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Whether `change`, `low` and `high` are shares of the base.
    pub relative: bool,
    /// Its outcome.
    pub verdict: Difference,
    /// Whether the new one may go out by this figure. Absent where the study guards no release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<GuardOutcome>,
    /// Why it is not decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}
