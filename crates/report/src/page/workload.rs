//! One workload: its rows, and its figures.

use maud::{Markup, html};

use super::chart::one_chart;
use super::content::Page;
use super::html::{badge, table};
use super::{answer, asked, wins};
use crate::columns::{PlacedColumn, columns};
use crate::summary::{Cell, WorkloadCells};
use crate::wins::Outcome;
use crate::{crowd, device_cost, glossary, hosts, network, on_request, setup, shares, workload};

/// Number of columns beyond which a table of results is set more closely.
const MANY: usize = 9;

/// The section of a workload.
pub(super) fn section(page: &Page<'_>, at: usize) -> Markup {
    let workload = &page.summary.workloads[at];
    let words = workload::describe_workload(workload);
    // The heading has the name already.
    let words = words.strip_prefix(&workload.name).unwrap_or(&words).trim();
    let words = words.trim_start_matches('(').trim_end_matches(')');
    html! {
        section id={ "w" (at + 1) } {
            h2 { (workload.name) }
            p class="where" { (words.replace("->", "→")) }
            @if !answer::in_one_list(page) {
                (asked::demands(page.results, &page.answers[at], ""))
                (answer::reasons(page, at))
            }
            @if !answer::wins_on_top(page) {
                h3 { "Who wins at what" }
                (wins::repeats_note(std::iter::once(workload)))
                (wins::wins(&page.answers[at]))
            } @else if page.answers[at].wins.iter().any(|win| win.outcome == Outcome::Open) {
                h3 { "Not decided" }
                (wins::open_wins(&page.answers[at]))
            }
            (results(workload))
            @for sentence in sentences(page, workload) { p { (sentence) } }
            @if workload.points.len() > 1 { (points(workload, at)) }
            div class="figures" {
                @for figure in &page.figures[at] {
                    (one_chart(figure, &workload.name, workload.flat_out))
                }
            }
        }
    }
}

/// Notes on single rows, and on all.
fn sentences<'a>(
    page: &'a Page<'_>,
    workload: &'a WorkloadCells<'_>,
) -> impl Iterator<Item = String> + 'a {
    let cells = || workload.cells.iter();
    let on_network = cells().filter_map(|cell| network::sentence(page.results, cell));
    (cells().filter_map(shares::sentence))
        .chain(cells().filter_map(on_request::sentence))
        .chain(on_network)
        .chain(cells().filter_map(hosts::sentence))
        .chain(cells().filter_map(setup::sentence))
        .chain(cells().filter_map(setup::interruptions))
        .chain(cells().filter_map(setup::comings_and_goings))
        .chain(cells().filter_map(setup::slow_subscribers))
        .chain(cells().filter_map(setup::late_subscribers))
        .chain(cells().filter_map(setup::wills))
        .chain(cells().filter_map(setup::groups))
        .chain(device_cost::sentences(workload))
        .chain(crowd::sentence(workload))
}

/// Buttons that choose the point which the figures show.
fn points(workload: &WorkloadCells<'_>, at: usize) -> Markup {
    html! {
        p class="points" role="group" aria-label={ "What the figures of " (workload.name) " show" } {
            "Figures show "
            @for (nth, point) in workload.points.iter().enumerate() {
                button type="button" data-workload=(at) data-point=(nth) aria-pressed=(nth == 0) { (point.label) }
                " "
            }
        }
    }
}

/// The table of results.
fn results(workload: &WorkloadCells<'_>) -> Markup {
    let columns = columns(workload);
    let heads = [("system", ""), ("verdict", glossary::figure("verdict"))];
    let figures = columns
        .iter()
        .map(|c| (c.look.name, glossary::figure(c.look.name)));
    let class = if columns.len() > MANY {
        "rows fold many"
    } else {
        "rows fold"
    };
    let rows = html! {
        @for (nth, point) in workload.points.iter().enumerate() {
            @if !point.label.is_empty() {
                tr class="for" { th colspan=(columns.len() + 2) scope="colgroup" { (point.label) } }
            }
            @for cell in workload.cells_at(nth) { (row(cell, &columns)) }
        }
    };
    let label = format!("Results of {}", workload.name);
    let repeats = workload.cells.iter().map(|cell| cell.trials.len()).max();
    html! {
        (table(class, &label, heads.into_iter().chain(figures), rows))
        p class="where" {
            @match repeats.unwrap_or(0) {
                1 => "One repeat: nothing is known of chance.",
                n => { "Means of the valid ones of " (n) " repeats; counts over all." }
            }
            " Processor time in µs for one delivery."
        }
    }
}

fn row(cell: &Cell<'_>, columns: &[PlacedColumn]) -> Markup {
    let (valid, all) = (cell.valid().count(), cell.trials.len());
    let is_long = cell.row.chars().count() > 30;
    html! {
        tr {
            th scope="row" class=[is_long.then_some("wrap")] { (cell.row) }
            td {
                (badge(cell.status()))
                @if valid > 0 && valid < all { " " (valid) " of " (all) }
            }
            @for column in columns { (entry(column, &column.entry(cell))) }
        }
    }
}

fn entry(column: &PlacedColumn, figure: &str) -> Markup {
    let is_bad = column.is_of_failures() && figure != "0";
    html! {
        td class={ "n" @if is_bad { " bad" } } data-name=(column.look.name) {
            (if figure == "-" { "–" } else { figure })
        }
    }
}
