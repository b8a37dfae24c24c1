//! `[recording]` as it is written.

use std::collections::BTreeMap;

use pubgauge_workload::trace::TraceColumn;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::flow::Filters;

/// A recording that claims are judged by, day by day: see docs/traces.md.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RecordingFile {
    /// Name of its `[trace.NAME]`.
    pub trace: String,
    /// Local time less UTC, such as "2h" or "-5h"; "0h" if absent.
    pub utc_offset: Option<String>,
    /// Which days; all if absent.
    pub days: Option<DaysFile>,
    /// A column of whole numbers, of which "recorded-value" is the mean.
    pub value: Option<TraceColumn>,
    /// Readings that the hours of a day must have; 3 if absent.
    pub least: Option<u32>,
    /// Hours of the day by name: a range such as "11h..14h", or several that are taken together.
    pub hours: BTreeMap<String, Filters>,
}

/// Which days of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DaysFile {
    /// Every day.
    All,
    /// Monday to Friday.
    Weekdays,
}
