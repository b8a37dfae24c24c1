//! The windows of every trial, with all their figures.

use maud::{Markup, html};
use pubgauge_figures::Trial;

use super::per_trial::{Part, figures, trials};
use crate::summary::WorkloadCells;

/// The table, if there are windows.
pub(super) fn section<'a>(workload: &'a WorkloadCells<'a>) -> Markup {
    html! {
        (figures(workload, "Windows", ["window", "flow", "from", "to"], windows_of))
        @if trials(workload).any(|(_, trial)| !trial.windows.is_empty()) {
            p {
                "A message belongs to the window that it was due in, with its times and its loss; published-rate and "
                "delivered-rate count what happened in the window."
            }
        }
    }
}

/// Each window of all flows, followed by those of each flow where there are several; with the names of both.
fn windows_of(trial: &Trial) -> Vec<Part<'_, 4>> {
    let flows = if trial.flows.len() > 1 {
        &trial.flows[..]
    } else {
        &[]
    };
    let windows = trial.windows.iter().flat_map(|window| {
        let flows = flows.iter().map(|flow| Some(flow.name.as_str()));
        std::iter::once(None).chain(flows).map(|flow| Part {
            names: [
                window.name.clone(),
                flow.unwrap_or("all").to_owned(),
                format!("{:.3} s", window.from_s),
                format!("{:.3} s", window.to_s),
            ],
            flow,
            window: Some(&window.name),
        })
    });
    windows.collect()
}
