//! Tables with a row for each trial, or for a part of it.

use maud::{Markup, html};
use pubgauge_figures::{Distribution, Trial};
use pubgauge_quantities::shown;

use super::html::{badge, system_of, table};
use crate::summary::{Cell, WorkloadCells};

/// A column: its heading, and the text of an entry.
pub(super) type Column<T> = (&'static str, fn(&T) -> String);

/// A time that may not be known.
pub(super) fn time(ns: Option<u64>) -> String {
    or_none(ns, |ns| shown::time(ns as f64))
}

/// A known value in words, or a dash.
pub(super) fn or_none<T>(known: Option<T>, words: impl FnOnce(T) -> String) -> String {
    known.map_or("–".into(), words)
}

pub(super) fn percentile_text(distribution: &Distribution, quantile: f64) -> String {
    time(distribution.quotable(quantile))
}

pub(super) fn optional(distribution: &Option<Distribution>, scale: f64, quantile: f64) -> String {
    let value = distribution.and_then(|d| d.quotable(quantile));
    or_none(value, |ns| shown::time(ns as f64 * scale))
}

/// All trials of a workload, each with its cell's label.
pub(super) fn trials<'a>(
    workload: &'a WorkloadCells<'a>,
) -> impl Iterator<Item = (&'a str, &'a Trial)> {
    let of = |cell: &'a Cell<'a>| cell.trials.iter().map(|trial| (&*cell.label, *trial));
    workload.cells.iter().flat_map(of)
}

/// A table of parts of each trial, with a heading; nothing without any. `names` head the columns of the parts' names,
/// which `parts` gives with each.
pub(super) fn per_trial<'a, T: 'a, const N: usize>(
    workload: &'a WorkloadCells<'a>,
    title: &str,
    names: [&str; N],
    columns: &[Column<T>],
    parts: impl Fn(&'a Trial) -> Vec<([String; N], &'a T)>,
) -> Markup {
    let figures = columns.iter().map(|(name, _)| *name);
    let heads = ["system", "verdict", "repeat"].into_iter().chain(names);
    let rows = html! {
        @for (label, trial) in trials(workload) {
            @for (names, part) in parts(trial) {
                tr {
                    th scope="row" title=(system_of(trial)) { (label) }
                    td { (badge(trial.verdict.status)) }
                    td class="n" { (trial.repeat) }
                    @for name in names { td { (name) } }
                    @for (_, figure) in columns { td class="n" { (figure(part)) } }
                }
            }
        }
    };
    let label = format!("{title} of {}", workload.name);
    html! {
        @if !rows.0.is_empty() {
            @if N > 0 { h3 { "Its " (title.to_lowercase()) } }
            (table("", &label, heads.chain(figures), rows))
        }
    }
}
