//! Rows that were measured while other programs used the machine.

use pubgauge_conclusions::answer::TrialCounts;
use pubgauge_figures::model::{Results, Trial};
use pubgauge_quantities::lists::names;
use pubgauge_quantities::shown;

use crate::summary::{Doubt, WorkloadCells};

/// The rows that were measured while other programs left too little of the machine, in one
/// sentence; `None` without any.
pub(crate) fn sentence(workload: &WorkloadCells<'_>) -> Option<String> {
    let rows = workload.cells.iter().filter_map(|cell| {
        let crowded = cell
            .trials
            .iter()
            .filter(|trial| trial.verdict.others_busy.is_some());
        let others = crowded.filter_map(|trial| trial.worker_load.machine_others);
        Some((cell, others.reduce(f64::max)?))
    });
    let rows: Vec<_> = rows.collect();
    let most = rows.iter().map(|(_, others)| *others).reduce(f64::max)?;
    let all = rows[0].0.trials[0].circumstances.all_processors();
    // A row at several loads is one system.
    let names = names(rows.iter().map(|(cell, _)| cell.row.as_str()));
    Some(format!(
        "Other programs kept up to {} of {all} busy ({names}): what was slow may be \
         their doing.",
        shown::digits(most)
    ))
}

/// The trials that are not valid because others had the processors, in one sentence; `None` without any.
pub(crate) fn not_valid<'a>(groups: impl Iterator<Item = &'a Doubt<'a>>) -> Option<String> {
    let trials: Vec<&Trial> = groups
        .flat_map(|group| group.trials.iter().copied())
        .collect();
    let others = trials
        .iter()
        .filter_map(|trial| trial.worker_load.machine_others);
    let most = others.reduce(f64::max);
    let used = most.map_or(String::new(), |most| {
        let all = trials[0].circumstances.processors();
        format!(
            ", which used up to {} of {} processors",
            shown::digits(most),
            shown::three_decimals(all)
        )
    });
    (!trials.is_empty()).then(|| {
        format!(
            "Not valid (!), not to be quoted: {} whose processors other programs had{used}; each with its reasons on the \
             page.",
            shown::so_many(trials.len() as u64, "trial")
        )
    })
}

/// How many of the trials that stand only give bounds because others had the processors, in one sentence; `None` without
/// any.
pub fn spoilt_trials(results: &Results) -> Option<String> {
    let counts = TrialCounts::new(results);
    let (spoilt, all) = (counts.spoilt_by_others, counts.all);
    (spoilt > 0).then(|| {
        format!(
            "{spoilt} of {all} trials only give bounds on these systems, because other programs had the processors. Run again \
             when the machine is quiet."
        )
    })
}
