//! Claims of a study, judged by what was measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A claim of the study and its outcome.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimOutcome {
    /// Its name in the study.
    pub id: String,
    /// The sentence.
    pub sentence: String,
    /// Where it is said.
    pub source: String,
    /// The rule by which it was judged, in words.
    pub rule: String,
    /// Whether it holds here.
    pub outcome: ClaimVerdict,
    /// The stand-in, and what it replaces, where the claim is judged of one; else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stand_in: String,
    /// Why: what contradicts it, what is missing, what is left out. Empty where it simply holds.
    pub reason: String,
    /// The figure that is nearest to another outcome, as it would have to be and as it is; empty where no single
    /// figure decides.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub would_change: String,
    /// The figures that were judged, with their 95 % intervals. For a claim that does not hold, the
    /// intervals have the higher confidence that many points together need.
    pub ours: String,
    /// The source's own figures; empty if it has none.
    pub papers: String,
    /// Whether the rule is not the one with which the run began: it was written, or changed, when trials were known.
    #[serde(default, skip_serializing_if = "is_false")]
    pub rule_is_later: bool,
    /// The day of an earlier run whose outcome this is, by the same rule; its trials are not kept, so that it cannot be
    /// judged again. Empty where it is judged by trials.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kept_from: String,
    /// About how many repeats would decide it, where more repeats can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats_to_tell: Option<u32>,
    /// The figures along an axis that were judged, as curves; one for each part with an axis.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<ClaimPicture>,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// The figure of each side along the axis of one part of a claim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimPicture {
    /// Name of the part; empty if the claim has one.
    pub part: String,
    /// The figure, by its name in study files.
    pub figure: String,
    /// The axis, as the rule names it.
    pub axis: String,
    /// The sides; each implementation of a side is one.
    pub sides: Vec<ClaimCurve>,
}

/// One side of a claim along its axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimCurve {
    /// Its name.
    pub side: String,
    /// The measured points; those that could not be judged are left out.
    pub points: Vec<ClaimPoint>,
}

/// One point of a curve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimPoint {
    /// The value of the axis, as the study has it.
    pub at: String,
    /// Its value in bytes, messages a second, or seconds; absent where it is no number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<f64>,
    /// The figure, in the unit that it has in `results.json`: the mean over repeats, geometric where all
    /// are positive; of a limit the middle of its interval, or its only end.
    pub value: f64,
    /// Lower end of its 95 % interval; absent with fewer than three repeats, or with an open end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end. Absent beside a lower end where the client was the limit: the value is `low` or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

/// The outcome of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimVerdict {
    /// It holds here.
    Holds,
    /// Some parts of it hold; others do not, or could not be judged. The reason says which.
    HoldsInPart,
    /// It holds for some implementations and not for others; the reason says for which.
    Depends,
    /// It does not hold here, and the version that it is about did it another way; the reason says how, and since when.
    OfVersion,
    /// It does not hold here.
    DoesNotHold,
    /// It holds for what stands in for the system or the recording that it is about.
    StandInHolds,
    /// It holds in part for what stands in.
    StandInHoldsInPart,
    /// It does not hold for what stands in.
    StandInDoesNotHold,
    /// Neither could be shown; the reason says what would decide it.
    #[default]
    CannotTell,
    /// It is about something that this run does not have; the reason says what.
    NotApplicable,
}

impl ClaimVerdict {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            ClaimVerdict::Holds => "holds",
            ClaimVerdict::HoldsInPart => "holds in part",
            ClaimVerdict::Depends => "depends on the implementation",
            ClaimVerdict::OfVersion => "true of its version",
            ClaimVerdict::DoesNotHold => "does not hold",
            ClaimVerdict::StandInHolds => "stand-in holds",
            ClaimVerdict::StandInHoldsInPart => "stand-in holds in part",
            ClaimVerdict::StandInDoesNotHold => "stand-in does not hold",
            ClaimVerdict::CannotTell => "cannot tell",
            ClaimVerdict::NotApplicable => "not applicable",
        }
    }

    /// Whether it answers the claim.
    pub fn is_answer(self) -> bool {
        !matches!(self, ClaimVerdict::CannotTell | ClaimVerdict::NotApplicable)
    }
}
