//! The failures that clients ran into, in the words of the driver or the server.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The thing that a failure happened to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// A connection that could not be made: the system turned the client away.
    Refused,
    /// A connection that had been made.
    Lost,
    /// A subscription.
    Subscription,
    /// A message before the measurement, of the proof that all receive or of the warm-up, that the system rejected.
    Rejected,
    /// Something else, such as the removal of what clients leave on the system.
    #[default]
    Other,
}

/// A failure that clients of a trial had.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientFailure {
    /// The thing that it happened to.
    pub kind: FailureKind,
    /// In words.
    pub why: String,
    /// Name of the first client that had it; empty where it is not one client's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub first: String,
    /// How often.
    pub count: u64,
}

impl fmt::Display for ClientFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.first.is_empty() {
            write!(f, "{}: ", self.first)?;
        }
        f.write_str(&self.why)?;
        match self.count {
            0 | 1 => Ok(()),
            count => write!(f, " ({count} times)"),
        }
    }
}
