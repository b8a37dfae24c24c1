//! Hosts that workers ran on, and the error of one-way times between them.

use pubgauge_figures::Trial;
use pubgauge_figures::host::WorkerHost;
use pubgauge_quantities::shown;

use crate::summary::Cell;

/// The largest number of hosts that are named; with more, only their number is given.
const NAMED: usize = 8;

/// Where the workers of a cell ran and the error of its one-way times, in one sentence; `None` with one host.
pub(crate) fn sentence(cell: &Cell<'_>) -> Option<String> {
    let on = cell.trials.iter().find(|trial| !trial.hosts.is_empty())?;
    Some(format!(
        "{}: workers on {}; {}",
        cell.label,
        hosts(&on.hosts),
        clocks(&cell.trials)
    ))
}

fn hosts(hosts: &[WorkerHost]) -> String {
    let names: Vec<&str> = hosts.iter().map(|host| &host.name[..]).collect();
    match hosts.len() {
        1 => format!("host {}", names[0]),
        count if count <= NAMED => format!("{count} hosts ({})", names.join(", ")),
        count => format!("{count} hosts ({}, ...)", names[..NAMED].join(", ")),
    }
}

/// The largest clock error of all repeats.
fn clocks(trials: &[&Trial]) -> String {
    let one_way: Vec<Option<u64>> = (trials.iter())
        .filter_map(|trial| Some(trial.one_way?.bound_ns))
        .collect();
    if one_way.is_empty() {
        return "all have one clock".into();
    }
    match one_way.into_iter().collect::<Option<Vec<u64>>>() {
        Some(bounds) => {
            let bound = bounds.into_iter().max().unwrap_or_default();
            format!(
                "one-way times are known to +-{}, and those below {} are not quoted: the round trip is",
                shown::time(bound as f64),
                shown::time(bound as f64 * 10.0)
            )
        }
        None => {
            "their clocks are not known, and one-way times are not quoted: the round trip is".into()
        }
    }
}
