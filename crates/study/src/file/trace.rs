//! Recorded traces as they are written.

use pubgauge_workload::trace::TraceFormat;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::flow::Filters;

/// A recorded trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TraceFile {
    /// Files, relative to the study file; `*` in a file name and `${VARIABLE}` are allowed.
    pub files: Filters,
    /// How to read them; the plain trace format if absent.
    pub format: Option<TraceFormat>,
    /// Sort readings that are not in order of time, instead of refusing them.
    pub sort: Option<bool>,
}
