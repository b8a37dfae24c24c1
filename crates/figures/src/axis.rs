//! The axes of a study's grid.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The value of one axis of the study's grid.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AxisValue {
    /// The axis as the study writes it: `payload`, `settings.safe.in-flight`.
    pub name: String,
    /// Its value as the study writes it: `1KiB`, `20`.
    pub value: String,
}
