//! Subscribers that come late, as it is written.

use pubgauge_quantities::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::slow::SomeSubscribers;

/// Subscribers that are connected from the beginning, and subscribe within the measurement. What the system has kept for such
/// a one, and what comes to it afterwards, is told apart; none of it is a loss, a latency or a repeated delivery of the flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LateFile {
    /// How many of the flow's subscribers, the last ones: a number, or a share such as "10%", at least one. Not all.
    pub subscribers: SomeSubscribers,
    /// How long after the beginning of the measurement they subscribe.
    pub after: Span,
}
