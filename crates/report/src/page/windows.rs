//! The windows of every trial, with all their figures.

use maud::{Markup, html};
use pubgauge_figures::window::WindowFigures;
use pubgauge_figures::{FlowFigures, Trial};
use pubgauge_quantities::shown;

use super::per_trial::{Column, optional, or_none, per_trial, percentile_text, trials};
use crate::summary::WorkloadCells;

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
    ("lost", |w| or_none(w.lost, |n| n.to_string())),
    ("duplicated", |w| w.duplicated.to_string()),
    ("reordered", |w| w.reordered.to_string()),
    ("published/s", |w| shown::rate(w.published_msgs_per_s)),
    ("delivered/s", |w| shown::rate(w.delivered_msgs_per_s)),
    ("latency p50", |w| percentile_text(&w.latency_ns, 0.5)),
    ("p90", |w| percentile_text(&w.latency_ns, 0.9)),
    ("p99", |w| percentile_text(&w.latency_ns, 0.99)),
    ("p99.9", |w| percentile_text(&w.latency_ns, 0.999)),
    ("max", |w| percentile_text(&w.latency_ns, 1.0)),
    ("from send p50", |w| {
        percentile_text(&w.latency_from_send_ns, 0.5)
    }),
    ("p99", |w| percentile_text(&w.latency_from_send_ns, 0.99)),
    ("send lag p99", |w| percentile_text(&w.send_lag_ns, 0.99)),
    ("round trip p50", |w| optional(&w.round_trip_ns, 1.0, 0.5)),
    ("system CPU", |w| or_none(w.system_cpu_s, shown::seconds)),
];

/// The table, if there are windows.
pub(super) fn section<'a>(workload: &'a WorkloadCells<'a>) -> Markup {
    let windows = |trial| windows_of(trial).collect();
    html! {
        (per_trial(workload, "Windows", ["window", "flow"], &COLUMNS, windows))
        @if trials(workload).any(|(_, trial)| !trial.windows.is_empty()) {
            p {
                "A message belongs to the window that it was due in, with its times and its loss; published/s and "
                "delivered/s count what happened in the window."
            }
        }
    }
}

/// Each window of all flows, followed by those of each flow where there are several; with the names of both.
fn windows_of<'a>(trial: &'a Trial) -> impl Iterator<Item = ([String; 2], &'a WindowFigures)> {
    trial
        .windows
        .iter()
        .enumerate()
        .flat_map(|(number, window)| {
            let of_flow =
                move |flow: &'a FlowFigures| Some((&*flow.name, flow.windows.get(number)?));
            let all =
                std::iter::once(("all", window)).chain(trial.flows.iter().filter_map(of_flow));
            all.map(|(flow, window)| ([window.name.clone(), flow.to_owned()], window))
        })
}
