//! One study of an advice, and who is measured in it.

use pubgauge_driver::Reliability;
use pubgauge_quantities::lists::unique;

use crate::fleet::Fleet;
use crate::variation::Variation;

/// A system that keeps its promises, with the reliability that gives the delivery asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The system, with its variant.
    pub system: String,
    /// One of [`Fleet::reliabilities`].
    pub reliability: Reliability,
}

/// The steps, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StageKind {
    /// The fleet once, on every candidate.
    Fleet,
    /// As many times the fleet as is asked for, once.
    Headroom,
    /// Both twice more, in turns.
    Confirm,
    /// The limit.
    Limit,
    /// Other fleets, once.
    Others,
}

impl StageKind {
    pub(crate) const ALL: [StageKind; 5] = [
        StageKind::Fleet,
        StageKind::Headroom,
        StageKind::Confirm,
        StageKind::Limit,
        StageKind::Others,
    ];

    /// The name of its study and folder.
    pub fn name(self) -> &'static str {
        match self {
            StageKind::Fleet => "1-fleet",
            StageKind::Headroom => "2-headroom",
            StageKind::Confirm => "3-confirm",
            StageKind::Limit => "4-limit",
            StageKind::Others => "5-others",
        }
    }
}

/// One study to be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// The step.
    pub kind: StageKind,
    /// The fleets that are measured, as they differ from the one described.
    pub changes: Vec<Variation>,
    /// The systems that are measured.
    pub candidates: Vec<Candidate>,
    /// Repeats of each.
    pub repeats: u32,
    /// Seconds that a search may take.
    pub search_s: u64,
    /// Of these systems and changes enough is known: they are not measured.
    pub known: Vec<(String, Variation)>,
}

impl Stage {
    /// Whether a system is measured with a change.
    pub fn measures(&self, system: &str, change: Variation) -> bool {
        let is_it = |(known, of): &(String, Variation)| known == system && *of == change;
        !self.known.iter().any(is_it)
    }

    /// Whether devices leave in it, where the fleet has it that they do: not where a rate is searched for, and not again where
    /// more than the fleet was carried before with an absence.
    pub(crate) fn has_absences(&self, change: Variation) -> bool {
        let is_repeat_of_more =
            self.kind == StageKind::Confirm && matches!(change, Variation::Headroom(_));
        change != Variation::Limit && !is_repeat_of_more
    }

    /// The name of its study.
    pub fn study_name(&self, fleet: &Fleet) -> String {
        format!("{}-{}", fleet.name(), self.kind.name())
    }

    /// The reliabilities of its candidates.
    pub(crate) fn reliabilities(&self) -> Vec<Reliability> {
        unique(self.candidates.iter().map(|of| of.reliability))
    }

    /// Its work, as part of a sentence.
    pub fn describe(&self) -> String {
        let systems = pubgauge_quantities::shown::so_many(self.candidates.len() as u64, "system");
        match self.kind {
            StageKind::Fleet => format!("the fleet itself, on {systems}"),
            StageKind::Headroom => format!("{}, on {systems}", self.changes[0].describe()),
            StageKind::Confirm => format!("repeats in turns, on {systems}"),
            StageKind::Limit => format!("the limit of {systems}"),
            StageKind::Others => format!("other fleets, on {systems}"),
        }
    }
}
