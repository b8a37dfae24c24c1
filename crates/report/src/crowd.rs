//! Rows that were measured while other programs used the machine.

use pubgauge_quantities::shown;
use pubgauge_results::verdict::crowded;

use crate::lists::names;
use crate::summary::WorkloadCells;

/// The rows that were measured while other programs left too little of the machine, in one
/// sentence; `None` without any.
pub(crate) fn sentence(workload: &WorkloadCells<'_>) -> Option<String> {
    let rows = workload.cells.iter().filter_map(|cell| {
        let crowded = cell.trials.iter().filter(|trial| crowded(trial).is_some());
        let others = crowded.filter_map(|trial| trial.worker_load.machine_others);
        Some((cell, others.reduce(f64::max)?))
    });
    let rows: Vec<_> = rows.collect();
    let most = rows.iter().map(|(_, others)| *others).reduce(f64::max)?;
    let cores = rows[0].0.trials[0].circumstances.cores;
    // A row at several loads is one system.
    let names = names(rows.iter().map(|(cell, _)| cell.row.as_str()));
    Some(format!(
        "Other programs kept up to {} of the machine's {cores} processors busy ({names}): what was slow may be \
         their doing.",
        shown::digits(most)
    ))
}
