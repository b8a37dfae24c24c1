//! Criteria as they are written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A condition that must hold: a figure, exactly one comparison, and the trials it is about.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CriterionFile {
    /// The figure, such as "latency.p99", "lost", "delivered-rate" or "verdict".
    pub figure: String,
    /// It must be less than this.
    pub below: Option<CriterionValue>,
    /// It must be this or less.
    pub at_most: Option<CriterionValue>,
    /// It must be more than this.
    pub above: Option<CriterionValue>,
    /// It must be this or more.
    pub at_least: Option<CriterionValue>,
    /// It must be this.
    pub equals: Option<CriterionValue>,
    /// Only trials on this system.
    pub system: Option<String>,
    /// Only trials of this workload.
    pub workload: Option<String>,
    /// Only trials with this variant of the settings.
    pub settings: Option<String>,
    /// The figures of this flow, instead of those of all flows together.
    pub flow: Option<String>,
}

/// A bound of a criterion: a number, or a quantity with its unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum CriterionValue {
    /// A plain number, for counts.
    Number(f64),
    /// A quantity with its unit, or a verdict.
    Text(String),
}
