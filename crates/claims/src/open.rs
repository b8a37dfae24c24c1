//! The repeats that would decide a claim that cannot be told.

use std::collections::BTreeSet;

use pubgauge_figures::rule::Claim;

use crate::decide::Ways;
use crate::finding::{Finding, Outcome, Tells};
use crate::judge::{CellKey, MeasuredRun, all_needed, combinations, filters_of, judge};

/// A claim that repeats would decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// About how many repeats of each of these cells, those that there are included.
    pub repeats: u32,
    /// The cells of the parts that would decide it.
    pub cells: BTreeSet<CellKey>,
}

/// Whether a claim is judged by this cell.
pub fn is_judged_by(claim: &Claim, cell: &CellKey) -> bool {
    let filters = filters_of(&claim.parts, None);
    filters.iter().any(|filter| cell.passes(filter))
}

/// The repeats that would decide a claim; `None` where it is decided, or repeats would not help.
pub fn open(claim: &Claim, run: &MeasuredRun<'_>) -> Option<Open> {
    let repeats = judge(claim, run).tells?.repeats;
    let of_part = |finding: &Finding| {
        let soon = |tells: Tells| tells.repeats <= repeats;
        finding.outcome == Outcome::CannotTell && finding.tells.is_some_and(soon)
    };
    let mut cells = BTreeSet::new();
    let chosen = combinations(claim);
    // As one of several implementations, and at the confidence at which they differ.
    let each = [Ways::ONE, Ways::separately(chosen.len())];
    for (choice, ways) in chosen
        .iter()
        .flat_map(|choice| each.map(|ways| (choice, ways)))
    {
        let found = all_needed(&claim.parts, choice, run, ways);
        let parts = claim.parts.iter().zip(&found);
        for (part, _) in parts.filter(|(_, (_, finding))| of_part(finding)) {
            let filters = filters_of(std::slice::from_ref(part), Some(choice));
            let passes = |cell: &&CellKey| filters.iter().any(|filter| cell.passes(filter));
            let measured = run.trials.iter().map(|trial| &trial.cell);
            cells.extend(measured.filter(passes).cloned());
        }
    }
    Some(Open { repeats, cells }).filter(|open| !open.cells.is_empty())
}
