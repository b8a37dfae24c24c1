//! The answer to whether a row carries its load.

use schemars::JsonSchema;
use serde::Serialize;

/// Whether a row carries its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Carries {
    /// Every repeat meets what is asked for.
    Yes,
    /// At least one repeat does not.
    No,
    /// None fails, and at least one is undecided.
    CannotTell,
}

impl Carries {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Carries::Yes => "yes",
            Carries::No => "no",
            Carries::CannotTell => "cannot tell",
        }
    }
}
