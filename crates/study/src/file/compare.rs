//! How cells are compared with each other, as it is written.

use pubgauge_quantities::{Percent, Span};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How cells are compared with each other: the first of each workload and point of the grid against all
/// others of it; in a study with ablations, each change against the base, system by system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CompareFile {
    /// Cells are measured in rounds, one trial of each, until the 95 % interval of each change is no wider
    /// than plus or minus this, such as "3%": from "0.1%" to "50%". As many rounds as `repeats` says if
    /// absent.
    pub precision: Option<Percent>,
    /// Figures that decide, such as `["latency.p99"]`. Absent: flat out `delivered-rate`, else
    /// `latency.p50` (`round-trip.p50` of ping-pong) and `system-cpu-per-message`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<String>,
    /// Change up to which two figures are the same; "5%" if absent.
    pub margin: Option<Percent>,
    /// The first system or variant is the old release, the others are new ones: a run in which a figure that decides is
    /// worse by more than `margin` ends with exit code 1, one in which that cannot be told with 2. `false` if absent.
    pub guard: Option<bool>,
    /// Rounds at most with `precision`, 6 to 1000; 100 if absent.
    #[schemars(range(min = 6, max = 1000))]
    pub pairs: Option<u32>,
    /// Time after which no round begins with `precision`; "30min" if absent.
    pub budget: Option<Span>,
}
