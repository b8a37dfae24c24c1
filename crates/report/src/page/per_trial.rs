//! Tables with a row for each trial, or for a part of it.

use maud::{Markup, html};
use pubgauge_figures::Trial;
use pubgauge_figures::figure::Figure;
use pubgauge_quantities::shown;

use super::html::{Head, badge, system_of, table};
use crate::summary::{Cell, WorkloadCells};

/// A column: its heading, and the text of an entry.
pub(super) type TextColumn<T> = (&'static str, fn(&T) -> String);

/// A time that may not be known.
pub(super) fn time(ns: Option<u64>) -> String {
    or_none(ns, |ns| shown::time(ns as f64))
}

/// A known value in words, or a dash.
pub(super) fn or_none<T>(known: Option<T>, words: impl FnOnce(T) -> String) -> String {
    known.map_or("–".into(), words)
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
    columns: &[TextColumn<T>],
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

/// A trial, or the part of it that a row is about, with the names of the part.
pub(super) struct Part<'a, const N: usize> {
    pub names: [String; N],
    pub flow: Option<&'a str>,
    pub window: Option<&'a str>,
}

/// A table of all figures of each trial, or of parts of it, that any of them has; nothing without any. `names` head the
/// columns of the parts' names.
pub(super) fn figures<'a, const N: usize>(
    workload: &'a WorkloadCells<'a>,
    title: &str,
    names: [&str; N],
    parts: impl Fn(&'a Trial) -> Vec<Part<'a, N>>,
) -> Markup {
    let rows: Vec<(&str, &Trial, Part<'_, N>)> = trials(workload)
        .flat_map(|(label, trial)| {
            let parts = parts(trial).into_iter();
            parts.map(move |part| (label, trial, part))
        })
        .collect();
    let values = |figure: &Figure| -> Vec<Option<f64>> {
        rows.iter()
            .map(|(_, trial, part)| figure.value_in(trial, part.flow, part.window).ok())
            .collect()
    };
    let columns: Vec<(&Figure, String, Vec<Option<f64>>)> = Figure::all()
        .iter()
        .filter(|figure| figure.is_of_tables())
        .map(|figure| (figure, figure.sentence(), values(figure)))
        .filter(|(_, _, values)| values.iter().any(Option::is_some))
        .collect();
    let heads = ["system", "verdict", "repeat"].into_iter().chain(names);
    let heads = heads.map(Head::from).chain(
        columns
            .iter()
            .map(|(figure, meaning, _)| Head::from((&*figure.name, &**meaning))),
    );
    let label = format!("{title} of {}", workload.name);
    let body = html! {
        @for (nth, (label, trial, part)) in rows.iter().enumerate() {
            tr {
                th scope="row" title=(system_of(trial)) { (label) }
                td { (badge(trial.verdict.status)) }
                td class="n" { (trial.repeat) }
                @for name in &part.names { td { (name) } }
                @for (figure, _, values) in &columns {
                    td class="n" { (or_none(values[nth], |value| figure.value_in_full(value))) }
                }
            }
        }
    };
    html! {
        @if !rows.is_empty() {
            @if N > 0 { h3 { "Its " (title.to_lowercase()) } }
            (table("", &label, heads, body))
        }
    }
}
