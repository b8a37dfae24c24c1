//! The windows of every trial, with all their figures.

use maud::{Markup, html};
use pubgauge_figures::Trial;
use pubgauge_figures::window::WindowFigures;

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
    let parts = |window: &'_ WindowFigures| {
        let moment = |seconds: f64| format!("{seconds:.3} s");
        let (name, from, to) = (
            window.name.clone(),
            moment(window.from_s),
            moment(window.to_s),
        );
        let all = std::iter::once(None).chain(flows.iter().map(|flow| Some(&*flow.name)));
        all.map(|flow| {
            let words = flow.unwrap_or("all").to_owned();
            ([name.clone(), words, from.clone(), to.clone()], flow)
        })
        .collect::<Vec<_>>()
    };
    let windows = trial.windows.iter();
    windows
        .flat_map(|window| {
            let parts = parts(window).into_iter();
            parts.map(|(names, flow)| Part {
                names,
                flow,
                window: Some(&*window.name),
            })
        })
        .collect()
}
