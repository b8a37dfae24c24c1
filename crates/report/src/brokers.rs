//! Several brokers side by side: how evenly they were used.

use pubgauge_figures::model::Broker;
use pubgauge_quantities::shown;

use crate::summary::Cell;

/// The brokers of a cell over all its trials, in one sentence; nothing where there is one.
pub(crate) fn sentence(cell: &Cell<'_>) -> Option<String> {
    let count = cell.trials.iter().map(|trial| trial.brokers.len()).max()?;
    if count < 2 {
        return None;
    }
    let all = || cell.trials.iter().flat_map(|trial| &trial.brokers);
    let span = |name: &str, of: fn(&Broker) -> Option<f64>, shown: fn(f64) -> String| {
        let values = || all().filter_map(of);
        let (least, most) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
        let (least, most) = (shown(least), shown(most));
        Some(if least == most {
            format!("{name} {most}")
        } else {
            format!("{name} {least} to {most}")
        })
    };
    let figures = [
        span("clients", |b| Some(b.connections as f64), |n| n.to_string()),
        span("processor time", |b| b.cpu_s, shown::seconds),
        span(
            "memory",
            |b| Some(b.rss_bytes? as f64),
            |n| shown::bytes(n as u64),
        ),
        span("busiest thread", |b| b.busiest_thread_cpu, shown::share),
    ];
    let each: Vec<String> = figures.into_iter().flatten().collect();
    Some(format!(
        "{}: {count} brokers, each: {}",
        cell.row,
        each.join(", ")
    ))
}
