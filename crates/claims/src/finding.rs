//! The judgement of a claim: an outcome with what decided it, or why there is nothing to judge by.

use std::fmt;

use pubgauge_quantities::stats::MOST_REPEATS;

/// The judgement of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// It holds here.
    Holds,
    /// Some of its parts hold; others do not, or could not be judged.
    InPart,
    /// It holds for some implementations, and not for others.
    Depends,
    /// It does not hold here, and the version that it is about did it another way.
    OfVersion,
    /// It does not hold here.
    DoesNotHold,
    /// It holds for what stands in for the system or the recording of the claim.
    StandInHolds,
    /// It holds in part for what stands in.
    StandInInPart,
    /// It does not hold for what stands in.
    StandInDoesNotHold,
    /// Neither could be shown.
    CannotTell,
    /// It is about something that is not here.
    NotApplicable,
}

impl Outcome {
    /// This outcome where a stand-in was measured in place of what the claim is about.
    pub fn of_stand_in(self) -> Outcome {
        match self {
            Outcome::Holds => Outcome::StandInHolds,
            Outcome::InPart | Outcome::Depends => Outcome::StandInInPart,
            Outcome::DoesNotHold | Outcome::OfVersion => Outcome::StandInDoesNotHold,
            other => other,
        }
    }

    /// Whether it does not hold of what is here.
    pub fn fails(self) -> bool {
        matches!(self, Outcome::DoesNotHold | Outcome::OfVersion)
    }

    /// Whether it answers the claim.
    pub fn is_answer(self) -> bool {
        !matches!(self, Outcome::CannotTell | Outcome::NotApplicable)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Outcome::Holds => "holds",
            Outcome::InPart => "holds in part",
            Outcome::Depends => "depends on the implementation",
            Outcome::OfVersion => "true of its version",
            Outcome::DoesNotHold => "does not hold",
            Outcome::StandInHolds => "stand-in holds",
            Outcome::StandInInPart => "stand-in holds in part",
            Outcome::StandInDoesNotHold => "stand-in does not hold",
            Outcome::CannotTell => "cannot tell",
            Outcome::NotApplicable => "not applicable",
        })
    }
}

/// The outcome that more repeats would have, if the figures stay as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tells {
    /// The outcome; `None` where it cannot be foreseen.
    pub outcome: Option<Outcome>,
    /// About how many repeats that takes, those that there are included.
    pub repeats: u32,
}

/// The value of a figure with which the outcome would be another.
#[derive(Clone, Debug, PartialEq)]
pub struct TurningPoint {
    /// The figure as it would have to be, and as it is.
    pub words: String,
    /// How far it is from there, in half lengths of its interval; infinite where that has no length or an open end.
    pub distance: f64,
}

impl TurningPoint {
    /// Puts the name of its subject before it.
    pub(crate) fn about(self, name: &str) -> TurningPoint {
        TurningPoint {
            words: named(name, &self.words),
            ..self
        }
    }
}

/// An outcome with what decided it.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub outcome: Outcome,
    /// The reason, or what would be needed.
    pub reason: String,
    /// The figures that were judged, in words; empty if there are none.
    pub ours: String,
    /// The outcome that more repeats would have; `None` where they would not help, or nothing is undecided.
    pub tells: Option<Tells>,
    /// The figure that is nearest to another outcome; `None` where nothing is decided, or no single figure decides.
    pub turn: Option<TurningPoint>,
}

impl Finding {
    /// A finding that repeats do not change.
    pub fn new(outcome: Outcome, reason: impl Into<String>, ours: impl Into<String>) -> Finding {
        Finding {
            outcome,
            reason: reason.into(),
            ours: ours.into(),
            tells: None,
            turn: None,
        }
    }

    /// About how many repeats would decide; `None` where repeats would not help, or more than 1000 are needed.
    pub fn repeats_to_tell(&self) -> Option<u32> {
        let repeats = self.tells.map(|tells| tells.repeats);
        repeats.filter(|repeats| *repeats <= MOST_REPEATS)
    }

    /// [`Outcome::CannotTell`], because of `reason`.
    pub fn cannot_tell(reason: impl Into<String>) -> Finding {
        Finding::new(Outcome::CannotTell, reason, "")
    }

    /// The reason; the figures, where they are reason enough.
    pub(crate) fn reason(&self) -> &str {
        match self.reason.as_str() {
            "" => &self.ours,
            reason => reason,
        }
    }
}

/// Why there is nothing to judge by.
#[derive(Clone, Debug, PartialEq)]
pub struct Lack {
    pub why: String,
    /// How many repeats would be enough to judge, where that is all that is lacking.
    pub repeats: Option<u32>,
    /// The rule is not about it.
    pub aside: bool,
}

impl Lack {
    /// Puts the name of its subject before it.
    pub fn about(self, name: &str) -> Lack {
        Lack {
            why: format!("{name}: {}", self.why),
            ..self
        }
    }
}

impl From<String> for Lack {
    fn from(why: String) -> Lack {
        Lack {
            why,
            repeats: None,
            aside: false,
        }
    }
}

impl From<&str> for Lack {
    fn from(why: &str) -> Lack {
        why.to_owned().into()
    }
}

impl From<Lack> for Finding {
    fn from(lack: Lack) -> Finding {
        if lack.aside {
            return Finding::new(Outcome::NotApplicable, lack.why, "");
        }
        Finding {
            // Enough repeats may show anything.
            tells: lack.repeats.map(|repeats| Tells {
                outcome: None,
                repeats,
            }),
            ..Finding::cannot_tell(lack.why)
        }
    }
}

/// A text with the name of its subject before it, where both are there.
pub(crate) fn named(name: &str, what: &str) -> String {
    match (name, what) {
        ("", what) => what.to_owned(),
        (name, "") => name.to_owned(),
        (name, what) => format!("{name}: {what}"),
    }
}
