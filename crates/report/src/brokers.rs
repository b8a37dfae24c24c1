//! Several brokers side by side: how evenly they were used.

use pubgauge_results::model::Broker;

use crate::summary::Cell;
use crate::units;

/// The brokers of a cell over all its trials, in one sentence; nothing where there is one.
pub(crate) fn sentence(cell: &Cell<'_>) -> Option<String> {
    let count = cell.trials.iter().map(|trial| trial.brokers.len()).max()?;
    if count < 2 {
        return None;
    }
    let all = || cell.trials.iter().flat_map(|trial| &trial.brokers);
    let span = |of: &dyn Fn(&Broker) -> Option<f64>, shown: &dyn Fn(f64) -> String| {
        let values = || all().filter_map(of);
        let (least, most) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
        let (least, most) = (shown(least), shown(most));
        Some(match least == most {
            true => most,
            false => format!("{least} to {most}"),
        })
    };
    let figures = [
        (
            "clients",
            span(&|b| Some(b.connections as f64), &|n| n.to_string()),
        ),
        ("processor time", span(&|b| b.cpu_s, &units::seconds)),
        (
            "memory",
            span(&|b| b.rss_bytes.map(|n| n as f64), &|n| {
                units::bytes(n as u64)
            }),
        ),
        (
            "busiest thread",
            span(&|b| b.busiest_thread_cpu, &units::share),
        ),
    ];
    let each: Vec<String> = figures
        .into_iter()
        .filter_map(|(name, figure)| Some(format!("{name} {}", figure?)))
        .collect();
    Some(format!(
        "{}: {count} brokers, each: {}",
        cell.row,
        each.join(", ")
    ))
}
