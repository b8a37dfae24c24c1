//! Who wins at what.

use maud::{Markup, html};
use pubgauge_quantities::lists::unique;

use super::html::table;
use crate::answers::{Win, WorkloadAnswer};
use crate::summary::WorkloadCells;
use crate::wins::Outcome;

/// The meaning of figures of contests, where there are repeats.
pub(super) fn repeats_note<'w>(
    mut workloads: impl Iterator<Item = &'w WorkloadCells<'w>>,
) -> Markup {
    let several = workloads.any(|workload| workload.cells.iter().any(|cell| cell.trials.len() > 1));
    html! {
        @if several { p class="where" { "Means over valid repeats, with 95 % intervals; of two repeats both values." } }
    }
}

/// Whether a contest of the workload is decided, or no repeat decides it.
pub(super) fn has_decided(answer: &WorkloadAnswer) -> bool {
    answer.wins.iter().any(|win| win.outcome != Outcome::Open)
}

/// The contests that are decided, or that no repeat decides.
pub(super) fn decided_wins(answer: &WorkloadAnswer) -> Markup {
    list(
        answer
            .wins
            .iter()
            .filter(|win| win.outcome != Outcome::Open),
    )
}

/// The contests that more repeats would decide, with their figures.
pub(super) fn open_wins(answer: &WorkloadAnswer) -> Markup {
    list(
        answer
            .wins
            .iter()
            .filter(|win| win.outcome == Outcome::Open),
    )
}

fn list<'w>(wins: impl Iterator<Item = &'w Win>) -> Markup {
    html! {
        dl class="wins" {
            @for win in wins {
                dt title=(win.meaning) { (win.what) }
                dd { (win.who) }
            }
        }
    }
}

/// Who wins at what: sentences, or a table where the load was varied.
pub(super) fn wins(answer: &WorkloadAnswer) -> Markup {
    let points = unique(answer.wins.iter().map(|win| win.at.as_str()));
    if points.len() <= 1 {
        return list(answer.wins.iter());
    }
    let metrics = unique(answer.wins.iter().map(|win| (win.what, win.meaning)));
    let heads = [("load", "")].into_iter().chain(metrics.iter().copied());
    let found = |point: &str, metric: &str| {
        let mut wins = answer.wins.iter();
        wins.find(|win| win.at == point && win.what == metric)
    };
    let rows = html! {
        @for point in points {
            tr {
                th scope="row" { (point) }
                @for (metric, _) in &metrics {
                    @let win = found(point, metric);
                    td class="wrap" data-name=(metric) title=(win.map_or("", |win| &win.who)) {
                        (win.map_or("–", |win| &win.short))
                    }
                }
            }
        }
    };
    let label = format!("Who wins at what of {}", answer.workload);
    table("fold", &label, heads, rows)
}
