//! Named spans of a measurement, as they are written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Span;

/// A named span of the measurement, with figures of its own: a message belongs to the window that it was
/// due in, with its latency and its loss, whenever it comes; rates count what happens in the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WindowFile {
    /// Its name, unique among the windows: small letters, digits and `-`. A figure of it is named
    /// FIGURE@NAME, such as "latency.p99@during".
    pub name: String,
    /// Its beginning, from the start of the measurement.
    pub from: Span,
    /// Its end, from the start of the measurement.
    pub to: Span,
}
