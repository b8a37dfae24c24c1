//! Claims of a study, judged by what was measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A claim of the study and its outcome.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimOutcome {
    /// Its name in the study.
    pub id: String,
    /// What is said.
    pub sentence: String,
    /// Where it is said.
    pub source: String,
    /// The rule by which it was judged, in words.
    pub rule: String,
    /// Whether it holds here.
    pub outcome: ClaimVerdict,
    /// Why: what contradicts it, what is missing, what is left out. Empty where it plainly holds.
    pub reason: String,
    /// The figures that were judged, with their 95 % intervals; those of a claim that does not hold at
    /// the confidence that many points together ask for.
    pub ours: String,
    /// The source's own figures; empty if it has none.
    pub papers: String,
    /// About how many repeats would tell, where repeats would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats_to_tell: Option<u32>,
}

/// What is said of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimVerdict {
    /// It holds here.
    Holds,
    /// It does not hold here.
    DoesNotHold,
    /// Neither could be shown; the reason says what would be needed.
    #[default]
    CannotTell,
    /// It is about something that is not here; the reason says what.
    NotApplicable,
}

impl ClaimVerdict {
    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            ClaimVerdict::Holds => "holds",
            ClaimVerdict::DoesNotHold => "does not hold",
            ClaimVerdict::CannotTell => "cannot tell",
            ClaimVerdict::NotApplicable => "not applicable",
        }
    }
}
