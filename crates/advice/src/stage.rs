//! One study of an advice, and who is measured in it.

use pubgauge_driver::Reliability;
use pubgauge_quantities::lists::unique;

use crate::boxes::{NotTold, Room};
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
    /// The limit of several brokers side by side.
    Boxes,
}

impl StageKind {
    pub(crate) const ALL: [StageKind; 6] = [
        StageKind::Fleet,
        StageKind::Headroom,
        StageKind::Confirm,
        StageKind::Limit,
        StageKind::Others,
        StageKind::Boxes,
    ];

    /// The name of its study and folder.
    pub fn name(self) -> &'static str {
        match self {
            StageKind::Fleet => "1-fleet",
            StageKind::Headroom => "2-headroom",
            StageKind::Confirm => "3-confirm",
            StageKind::Limit => "4-limit",
            StageKind::Others => "5-others",
            StageKind::Boxes => "6-boxes",
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
    /// Numbers of brokers side by side, each of which is measured; empty: one.
    pub brokers: Vec<u32>,
}

/// Seconds that a search on boxes may take, unless the budget has less.
const SEARCH_ON_BOXES_S: u64 = 150;

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
        !change.is_search() && !is_repeat_of_more
    }

    /// The step that measures boxes, on the first of these systems that has a broker.
    ///
    /// # Errors
    /// Why boxes cannot be measured here.
    pub fn of_boxes(
        fleet: &Fleet,
        candidates: &[Candidate],
        room: &Room,
    ) -> Result<Stage, NotTold> {
        let brokers = fleet.box_counts(room)?;
        let mut candidates = candidates.iter();
        let first = candidates.find(|one| !room.brokerless.contains(&one.system));
        Ok(Stage {
            kind: StageKind::Boxes,
            changes: vec![Variation::Boxes(fleet.headroom())],
            candidates: vec![first.ok_or_else(NotTold::without_broker)?.clone()],
            repeats: 1,
            search_s: SEARCH_ON_BOXES_S,
            known: Vec::new(),
            brokers,
        })
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
            StageKind::Boxes => {
                let system = self
                    .candidates
                    .first()
                    .map_or("", |one| one.system.as_str());
                let numbers: Vec<String> = self.brokers.iter().map(u32::to_string).collect();
                format!("the limit of {} boxes with {system}", numbers.join(", "))
            }
        }
    }
}
