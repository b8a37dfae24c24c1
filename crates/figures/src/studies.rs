//! Summary of several studies: the outcomes of their claims, and their answers. Written as `index.json` beside
//! runs, and by `pubgauge export --format claims`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::{ClaimOutcome, ClaimVerdict};

/// Name and version of the format.
pub const FORMAT: &str = "pubgauge-claims/1";

/// Why a text is no summary of studies.
#[derive(Debug, thiserror::Error)]
pub enum StudiesError {
    /// Another text, or a damaged one.
    #[error("{0}")]
    Unreadable(#[from] serde_json::Error),
    /// A summary in another version's format.
    #[error("its format is {0:?}, and this pubgauge reads {known:?}", known = FORMAT)]
    OtherFormat(String),
}

/// Studies that were run one after the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Studies {
    /// Name and version of the format: `pubgauge-claims/1`.
    pub format: String,
    /// Each study, in the order of their names.
    pub studies: Vec<StudyOutcome>,
}

/// One study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StudyOutcome {
    /// Its name.
    pub study: String,
    /// Its question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The folder of its run, relative to that of all; empty for a single run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// When its run began (RFC 3339); empty for one that has not run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub started: String,
    /// Trials that were measured.
    pub trials: u32,
    /// Trials that were planned.
    pub planned_trials: u32,
    /// Whether it ended before all of them were measured.
    pub cut_off: bool,
    /// Why it could not be run; absent if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// The machine: processors, memory, operating system.
    pub machine: String,
    /// The version of pubgauge.
    pub pubgauge_version: String,
    /// Each system that was measured, with its version.
    pub systems: Vec<String>,
    /// Its answers, a sentence for each row of each workload. Only for a study without claims.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<String>,
    /// How many claims have each outcome.
    pub counts: OutcomeCounts,
    /// Its claims and their outcomes.
    pub claims: Vec<ClaimOutcome>,
}

/// Claims by their outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutcomeCounts {
    /// Claims that hold.
    pub holds: u32,
    /// Claims that hold in part.
    #[serde(default)]
    pub in_part: u32,
    /// Claims that hold for some implementations and not for others.
    #[serde(default)]
    pub depends: u32,
    /// Claims that do not hold here, and are true of the version that they are about.
    #[serde(default)]
    pub of_version: u32,
    /// Claims that do not hold.
    pub does_not_hold: u32,
    /// Claims that were judged, with either outcome, by a system or recording that stands in for the paper's.
    #[serde(default)]
    pub stand_in: u32,
    /// Claims that cannot be decided.
    pub cannot_tell: u32,
    /// Claims that are not applicable.
    pub not_applicable: u32,
}

impl OutcomeCounts {
    /// Counts outcomes.
    pub fn count<'a>(claims: impl IntoIterator<Item = &'a ClaimOutcome>) -> OutcomeCounts {
        let mut counts = OutcomeCounts::default();
        for claim in claims {
            *match claim.outcome {
                ClaimVerdict::Holds => &mut counts.holds,
                ClaimVerdict::HoldsInPart => &mut counts.in_part,
                ClaimVerdict::Depends => &mut counts.depends,
                ClaimVerdict::OfVersion => &mut counts.of_version,
                ClaimVerdict::DoesNotHold => &mut counts.does_not_hold,
                ClaimVerdict::StandInHolds
                | ClaimVerdict::StandInHoldsInPart
                | ClaimVerdict::StandInDoesNotHold => &mut counts.stand_in,
                ClaimVerdict::CannotTell => &mut counts.cannot_tell,
                ClaimVerdict::NotApplicable => &mut counts.not_applicable,
            } += 1;
        }
        counts
    }

    /// All of them.
    pub fn total(&self) -> u32 {
        self.named_counts().iter().map(|(_, count)| count).sum()
    }

    /// Those that have an answer.
    pub fn answered(&self) -> u32 {
        self.total() - self.cannot_tell - self.not_applicable
    }

    /// Each outcome with its count, in words.
    pub fn named_counts(&self) -> [(&'static str, u32); 8] {
        [
            (ClaimVerdict::Holds.as_str(), self.holds),
            (ClaimVerdict::HoldsInPart.as_str(), self.in_part),
            ("depends", self.depends),
            (ClaimVerdict::OfVersion.as_str(), self.of_version),
            (ClaimVerdict::DoesNotHold.as_str(), self.does_not_hold),
            ("stand-in", self.stand_in),
            (ClaimVerdict::CannotTell.as_str(), self.cannot_tell),
            (ClaimVerdict::NotApplicable.as_str(), self.not_applicable),
        ]
    }
}

impl Studies {
    /// The studies without their curves: small enough for version control.
    pub fn without_pictures(mut self) -> Studies {
        for claim in self.studies.iter_mut().flat_map(|s| &mut s.claims) {
            claim.pictures.clear();
        }
        self
    }

    /// As JSON, one member per line.
    pub fn to_json(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("studies are plain data");
        text + "\n"
    }

    /// Reads what [`Studies::to_json`] has written.
    ///
    /// # Errors
    /// Another text, or another version's format.
    pub fn parse(text: &str) -> Result<Studies, StudiesError> {
        let studies: Studies = serde_json::from_str(text)?;
        if studies.format == FORMAT {
            Ok(studies)
        } else {
            Err(StudiesError::OtherFormat(studies.format))
        }
    }
}
