//! The windows of every trial, with all their figures.

use pubgauge_results::Trial;
use pubgauge_results::window::WindowFigures;

use super::html::{END_TABLE, escape};
use super::per_trial::{Column, at, begin, optional, row, trials};
use crate::summary::Workload;
use crate::units;

const COLUMNS: [Column<WindowFigures>; 25] = [
    ("from", |w| format!("{:.3} s", w.from_s)),
    ("to", |w| format!("{:.3} s", w.to_s)),
    ("offered", |w| w.offered.to_string()),
    ("published", |w| w.published.to_string()),
    ("refused", |w| w.refused.to_string()),
    ("not connected", |w| w.not_connected.to_string()),
    ("not sent", |w| w.not_sent.to_string()),
    ("expected", |w| w.expected.to_string()),
    ("delivered", |w| w.delivered.to_string()),
    ("missing", |w| w.missing.to_string()),
    ("lost", |w| w.lost.map_or("–".into(), |n| n.to_string())),
    ("duplicated", |w| w.duplicated.to_string()),
    ("reordered", |w| w.reordered.to_string()),
    ("published/s", |w| units::rate(w.published_msgs_per_s)),
    ("delivered/s", |w| units::rate(w.delivered_msgs_per_s)),
    ("latency p50", |w| at(&w.latency_ns, 0.5)),
    ("p90", |w| at(&w.latency_ns, 0.9)),
    ("p99", |w| at(&w.latency_ns, 0.99)),
    ("p99.9", |w| at(&w.latency_ns, 0.999)),
    ("max", |w| at(&w.latency_ns, 1.0)),
    ("from send p50", |w| at(&w.latency_from_send_ns, 0.5)),
    ("p99", |w| at(&w.latency_from_send_ns, 0.99)),
    ("send lag p99", |w| at(&w.send_lag_ns, 0.99)),
    ("round trip p50", |w| optional(&w.round_trip_ns, 1.0, 0.5)),
    ("system CPU", |w| {
        w.system_cpu_s.map_or("–".into(), units::seconds)
    }),
];

/// Writes the table, if there are windows.
pub(super) fn table(out: &mut String, workload: &Workload<'_>) {
    if trials(workload).all(|(_, trial)| trial.windows.is_empty()) {
        return;
    }
    out.push_str(
        "<h3>Its windows</h3>\n<p>A message belongs to the window that it was due in, with its times and its \
         loss; published/s and delivered/s count what happened in the window.</p>\n",
    );
    let words = ["repeat", "window", "flow"];
    begin(
        out,
        &format!("Windows of {}", workload.name),
        &words,
        &COLUMNS,
    );
    for (label, trial) in trials(workload) {
        for (flow, window) in all(trial) {
            let words = [
                trial.repeat.to_string(),
                escape(&window.name),
                escape(flow.unwrap_or("all")),
            ];
            row(out, label, trial, &words, &COLUMNS, window);
        }
    }
    out.push_str(END_TABLE);
}

/// Each window of all flows, followed by those of each flow where there are several.
fn all(trial: &Trial) -> impl Iterator<Item = (Option<&str>, &WindowFigures)> {
    let numbered = trial.windows.iter().enumerate();
    numbered.flat_map(|(number, window)| {
        let flows = trial.flows.iter();
        let of_flows =
            flows.filter_map(move |flow| Some((Some(&*flow.name), flow.windows.get(number)?)));
        std::iter::once((None, window)).chain(of_flows)
    })
}
