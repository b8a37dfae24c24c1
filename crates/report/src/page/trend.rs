//! One page over several runs in the order of time.

use maud::{Markup, html};
use pubgauge_conclusions::compare::trend::{CellTrend, Trend};
use pubgauge_figures::Status;
use pubgauge_quantities::lists::{grouped, names, unique};

use super::chart::one_chart;
use super::drawn::Drawn;
use super::frame::{self, Document};
use super::html::{badge_of, notes, row, table, text};
use crate::charts::Chart;
use crate::charts::trend::of_cells;
use crate::trend::{changed_answers, changes, meaning, not_compared, quiet, studies, untold};

/// The cells of one workload at one point of the grid.
struct Group<'a> {
    id: String,
    heading: String,
    cells: Vec<&'a CellTrend>,
    figures: Vec<Chart>,
}

/// The page: what changed, the runs, and each figure over the runs. One HTML file that needs no other file. `links` are
/// the pages of the runs, where there are such, as this page links to them.
pub fn trend_page(trend: &Trend, links: &[Option<String>]) -> String {
    let groups = groups(trend);
    let started = trend.runs.last().map_or("", |run| &run.started);
    let runs = trend.runs.len();
    let document = Document {
        name: &format!("Trend of {runs} runs"),
        started,
        first: "changes",
        header: html! {
            p class="question" { (studies(trend)) }
            p class="where" { "the last began " (frame::time(started)) span id="file" {} }
        },
        sections: html! {
            (what_changed(trend))
            (contents(&groups))
            (runs_section(trend, links))
            @for group in &groups { (section(group, runs)) }
        },
        drawn: groups.iter().map(Group::drawn).collect(),
    };
    document.text()
}

fn groups(trend: &Trend) -> Vec<Group<'_>> {
    let place = |cell: &CellTrend| {
        let parts = [cell.workload.as_str(), cell.at.as_str()].into_iter();
        names(parts.filter(|part| !part.is_empty()))
    };
    let groups = grouped(trend.cells.iter().map(|cell| (place(cell), cell)));
    let groups = groups.into_iter().zip(1..);
    let group = |((heading, cells), nth): ((String, Vec<_>), u32)| {
        let id = format!("t{nth}");
        Group {
            heading,
            figures: of_cells(&cells, &id),
            cells,
            id,
        }
    };
    groups.map(group).collect()
}

impl Group<'_> {
    /// Its charts.
    fn drawn(&self) -> Drawn<'_> {
        let rows = unique(self.cells.iter().map(|cell| cell.row.as_str()));
        Drawn::of_rows(rows, self.figures.iter().collect())
    }
}

/// The changes beyond noise, and the figures that cannot be told.
fn what_changed(trend: &Trend) -> Markup {
    let changes = changes(trend);
    let class = |worse: bool| if worse { "broken" } else { "valid" };
    html! {
        section id="changes" {
            h2 { "What changed" }
            @if changes.is_empty() {
                p { @if trend.intervals > 0 { "Nothing changed beyond noise." } @else { "Nothing could be compared." } }
            } @else {
                ul class="changes" {
                    @for one in &changes {
                        @let word = one.step.verdict.to_string();
                        li { (badge_of(class(word == "worse"), "", &word)) " " (one.describe()) }
                    }
                }
            }
            (notes(changed_answers(trend)))
            (notes(quiet(trend)))
            (notes(untold(trend).into_iter().map(|why| format!("cannot tell: {why}"))))
            p class="where" { (meaning(trend)) }
        }
    }
}

fn contents(groups: &[Group<'_>]) -> Markup {
    html! {
        nav class="contents" aria-label="Contents" {
            ul {
                li { a href="#changes" { "What changed" } }
                li { a href="#runs" { "Runs" } }
                @for group in groups { li { a href={ "#" (group.id) } { (group.heading) } } }
            }
        }
    }
}

/// The runs, and how each differs from the one before.
fn runs_section(trend: &Trend, links: &[Option<String>]) -> Markup {
    let heads = [
        "run",
        "folder",
        "began",
        "valid trials",
        "systems",
        "differs",
    ];
    let rows = html! {
        @for (nth, run) in trend.runs.iter().enumerate() {
            @let folder = match links.get(nth) {
                Some(Some(link)) => html! { a href=(link) { (run.name) } },
                _ => text(&run.name),
            };
            @let not_compared = run.not_compared.iter().map(|why| not_compared(nth + 1, why));
            @let differs = not_compared.chain(run.remarks.iter().cloned()).collect::<Vec<_>>();
            (row(text((nth + 1).to_string()), [
                ("folder", folder),
                ("began", text(run.started.get(..16).unwrap_or(&run.started).replace('T', " "))),
                ("valid trials", text(format!("{} of {}", run.trials.valid, run.trials.all))),
                ("systems", text(run.systems.join(", "))),
                ("differs", text(if differs.is_empty() { "–".to_owned() } else { differs.join("; ") })),
            ]))
        }
    };
    html! {
        section id="runs" {
            h2 { "Runs" }
            (table("fold limits", "Runs", heads, rows))
        }
    }
}

/// The figures of a workload over the runs, and whether its cells carry their load.
fn section(group: &Group<'_>, runs: usize) -> Markup {
    html! {
        section id=(group.id) {
            h2 { (group.heading) }
            div class="figures" {
                @for figure in &group.figures { (one_chart(figure, &group.heading, false)) }
            }
            (answers(group, runs))
        }
    }
}

/// The answer of each cell in each run; its verdict where it is not valid.
fn answers(group: &Group<'_>, runs: usize) -> Markup {
    let numbers: Vec<String> = (1..=runs).map(|run| format!("run {run}")).collect();
    let heads = std::iter::once("carries its load").chain(numbers.iter().map(String::as_str));
    let word = |cell: &CellTrend, run: u32| {
        let Some(of) = cell.runs.iter().find(|of| of.run == run) else {
            return "–".to_owned();
        };
        match of.carries {
            Some(carries) => carries.as_str().to_owned(),
            None if of.verdict == Status::Valid => "measured".to_owned(),
            None => of.verdict.as_str().to_owned(),
        }
    };
    let rows = html! {
        @for cell in &group.cells {
            (row(text(&cell.row), (1..).zip(&numbers).map(|(run, head)| (head.as_str(), text(word(cell, run))))))
        }
    };
    table(
        "fold limits",
        &format!("Answers of {}", group.heading),
        heads,
        rows,
    )
}
