//! Criteria as plain data.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a figure is compared with a criterion's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Comparator {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
    /// `=`
    Equal,
}

impl Comparator {
    /// Whether `figure` stands in this relation to `value`.
    pub fn holds(self, figure: f64, value: f64) -> bool {
        match self {
            Comparator::Less => figure < value,
            Comparator::AtMost => figure <= value,
            Comparator::Greater => figure > value,
            Comparator::AtLeast => figure >= value,
            Comparator::Equal => figure == value,
        }
    }
}

impl fmt::Display for Comparator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Comparator::Less => "<",
            Comparator::AtMost => "<=",
            Comparator::Greater => ">",
            Comparator::AtLeast => ">=",
            Comparator::Equal => "=",
        })
    }
}

/// One criterion, ready to be evaluated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CriterionSpec {
    /// As the study states it; shown to the reader.
    pub text: String,
    /// Name of the figure as in `results.json`, for example `latency_ns.p99`; docs/results.md lists them.
    pub figure: String,
    /// How it is compared.
    pub comparison: Comparator,
    /// With what, in the figure's own unit.
    pub value: f64,
    /// The trials it applies to; empty means all.
    pub filter: TrialFilter,
}

/// The trials that a criterion applies to. An absent part restricts nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TrialFilter {
    /// Names of systems.
    pub systems: Vec<String>,
    /// Names of workloads.
    pub workloads: Vec<String>,
    /// Names of variants of the settings.
    pub settings: Vec<String>,
    /// A flow: its figures are taken instead of the trial's.
    pub flow: Option<String>,
    /// The constant delay of messages' path over a network, ns (`network.path_ns` of a trial; 0: none): the
    /// criterion's value contains it. Trials without a network pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_ns: Option<u64>,
}
