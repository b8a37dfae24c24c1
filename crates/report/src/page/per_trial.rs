//! Tables with a row for each trial, or for a part of it.

use std::fmt::Write as _;

use pubgauge_results::{Distribution, Trial};

use super::html::{badge, begin_table, escape, system_of};
use crate::summary::{Cell, Workload};
use crate::units;

/// A column: its heading, and the text of an entry.
pub(super) type Column<T> = (&'static str, fn(&T) -> String);

/// A time that may not be known.
pub(super) fn time(ns: Option<u64>) -> String {
    ns.map_or("–".into(), |ns| units::time(ns as f64))
}

pub(super) fn at(distribution: &Distribution, quantile: f64) -> String {
    time(distribution.quotable(quantile))
}

pub(super) fn optional(distribution: &Option<Distribution>, scale: f64, quantile: f64) -> String {
    let value = distribution.and_then(|d| d.quotable(quantile));
    value.map_or("–".into(), |ns| units::time(ns as f64 * scale))
}

/// All trials of a workload, each with its cell's label.
pub(super) fn trials<'a>(workload: &'a Workload<'a>) -> impl Iterator<Item = (&'a str, &'a Trial)> {
    let of = |cell: &'a Cell<'a>| cell.trials.iter().map(|trial| (&*cell.label, *trial));
    workload.cells.iter().flat_map(of)
}

/// The beginning of a table, up to its rows; `words` are the headings before those of the figures.
pub(super) fn begin<T>(out: &mut String, label: &str, words: &[&str], columns: &[Column<T>]) {
    let figures = columns.iter().map(|(name, _)| name);
    let heads = ["system", "verdict"].iter().chain(words).chain(figures);
    begin_table(out, "", label, heads.map(|head| (*head, "")));
}

pub(super) fn row<T>(
    out: &mut String,
    label: &str,
    trial: &Trial,
    words: &[String],
    columns: &[Column<T>],
    of: &T,
) {
    let _ = write!(
        out,
        "<tr><th scope=\"row\" title=\"{}\">{}</th><td>{}</td>",
        escape(&system_of(trial)),
        escape(label),
        badge(trial.verdict.status)
    );
    for word in words {
        let _ = write!(out, "<td>{word}</td>");
    }
    for (_, figure) in columns {
        let _ = write!(out, "<td class=\"n\">{}</td>", escape(&figure(of)));
    }
    out.push_str("</tr>\n");
}
