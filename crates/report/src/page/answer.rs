//! The first section: which rows carry their load, and who wins at what.

use maud::{Markup, html};

use pubgauge_quantities::lists::{grouped, unique};
use pubgauge_quantities::shown;

use super::asked::demands;
use super::content::Page;
use super::html::{non_empty, table};
use super::searches;
use crate::answers::{Carries, RowAnswer, WorkloadAnswer};
use crate::glossary;
use crate::naming::GridPoint;
use crate::summary::WorkloadCells;

/// The largest number of wins in the first section; with more, they are shown with their workloads.
const WINS: usize = 12;

/// The largest number of rows with which the reasons of a workload are unfolded.
const OPEN_ROWS: usize = 12;

pub(super) fn section(page: &Page<'_>) -> Markup {
    let asked = page.answers.iter().any(|answer| !answer.asked.is_empty());
    let (found, answered) = (!page.searches.is_empty(), !page.answers.is_empty());
    html! {
        section id="answer" {
            @if found {
                h2 { "How far does it go?" }
                (searches::overview(page))
            }
            @if answered || !found {
                h2 { (if asked { "Does it carry your load?" } else { "How much does it carry?" }) }
            }
            @if !answered && !found { p { "No trial has been measured." } }
            @if in_one_list(page) {
                (demands(page.results, &page.answers[0], ""))
                (reasons(&page.answers[0], &page.summary.workloads[0]))
            } @else if answered {
                (overview(page))
            }
            @if wins_on_top(page) {
                h3 { "Who wins at what" }
                @for (answer, number) in page.answers.iter().zip(1..) {
                    @if page.answers.len() > 1 {
                        h4 { a href={ "#w" (number) } { (answer.workload) } }
                    }
                    (wins(answer))
                }
            }
        }
    }
}

/// Whether there is one workload with one point: its rows with their reasons are then the answer.
pub(super) fn in_one_list(page: &Page<'_>) -> bool {
    page.answers.len() == 1 && page.summary.workloads[0].points.len() == 1
}

/// Whether the winners are shown in the first section.
pub(super) fn wins_on_top(page: &Page<'_>) -> bool {
    let all: usize = page.answers.iter().map(|answer| answer.wins.len()).sum();
    let varied = page
        .summary
        .workloads
        .iter()
        .any(|workload| workload.points.len() > 1);
    !varied && (1..=WINS).contains(&all)
}

/// A table of rows against workloads and the varied load.
fn overview(page: &Page<'_>) -> Markup {
    let workloads = &page.summary.workloads;
    let cells = workloads.iter().flat_map(|workload| &workload.cells);
    let names = unique(cells.map(|cell| cell.row.as_str()));
    let columns: Vec<(usize, usize)> = (0..page.answers.len())
        .flat_map(|at| (0..workloads[at].points.len()).map(move |point| (at, point)))
        .collect();
    let several = page.answers.len() > 1;
    let points = || {
        let columns = columns.iter();
        columns.map(move |(at, point)| &workloads[*at].points[*point])
    };
    let values = points().flat_map(|point| &point.values);
    let axes = unique(values.map(|(axis, _)| axis.as_str()));
    let head = |((at, _), point): (&(usize, usize), &GridPoint)| {
        let name = several.then_some(workloads[*at].name.as_str());
        let values = point.values.iter().map(|(_, value)| value.as_str());
        let parts: Vec<&str> = name.into_iter().chain(values).collect();
        parts.join(" · ")
    };
    let heads: Vec<String> = columns.iter().zip(points()).map(head).collect();
    let corner = match &axes[..] {
        [] => "system".to_owned(),
        axes => axes.join(" · "),
    };
    let heads = heads.iter().zip(points());
    let heads = heads.map(|(head, point)| (head.as_str(), point.label.as_str()));
    let heads = [(&corner[..], "")].into_iter().chain(heads);
    let class = if columns.len() > 5 {
        "overview many"
    } else {
        "overview"
    };
    let answer = |name: &str, (at, point): &(usize, usize)| {
        let mut cells = workloads[*at].cells.iter();
        let found = cells.position(|cell| cell.row == name && cell.point == *point);
        found.map(|nth| &page.answers[*at].rows[nth])
    };
    let rows = html! {
        @for name in names {
            tr {
                th scope="row" { (name) }
                @for column in &columns { (entry(answer(name, column))) }
            }
        }
    };
    html! {
        (asked_of_all(page))
        (table(class, "Which carries which load", heads, rows))
    }
}

/// The demands, once for all workloads with the same criteria.
fn asked_of_all(page: &Page<'_>) -> Markup {
    let groups = grouped(page.answers.iter().map(|answer| (&answer.asked, answer)));
    html! {
        @for (_, alike) in groups {
            @let names: Vec<&str> = alike.iter().map(|answer| &*answer.workload).collect();
            @let all = names.len() == page.answers.len();
            (demands(page.results, alike[0], &if all { String::new() } else { names.join(", ") }))
        }
    }
}

fn entry(row: Option<&RowAnswer>) -> Markup {
    html! {
        @match row {
            Some(row) => td title=(row.decided_by) { (mark(row.carries)) (in_short(row)) (left_and_cost(row)) },
            None => td { small { "not run" } },
        }
    }
}

/// The figure that decided; flat out the rate and how it bounds what the system can deliver.
fn in_short(row: &RowAnswer) -> Markup {
    html! {
        @match (row.carries, row.carried) {
            (None, Some(carried)) => {
                b { (shown::rate(carried.msgs_per_s)) }
                small { (carried.bound.suffix().split(" (").next().unwrap_or("")) }
            }
            _ => small { (row.figure) },
        }
    }
}

/// Headroom and cost in a few words.
fn left_and_cost(row: &RowAnswer) -> Markup {
    let (left, cost) = (row.times_better, row.cpu_us_per_msg);
    html! {
        @if left.is_some() || cost.is_some() {
            small class="cost" {
                @if let Some(times) = left { span { "headroom " (shown::digits(times)) "×" } }
                @if left.is_some() && cost.is_some() { " " }
                @if let Some(us) = cost { span { "CPU " (shown::time(us * 1e3)) "/msg" } }
            }
        }
    }
}

/// Whether it carries the load; nothing where no load was asked for.
fn mark(carries: Option<Carries>) -> Markup {
    let class = |carries| match carries {
        Carries::Yes => "yes",
        Carries::No => "no",
        Carries::CannotTell => "open",
    };
    html! {
        @if let Some(carries) = carries {
            span class={ "mark " (class(carries)) } title=(glossary::carries(carries)) { (carries.as_str()) }
            " "
        }
    }
}

/// Each row with the figure that decided, its headroom, and its cost.
pub(super) fn reasons(answer: &WorkloadAnswer, workload: &WorkloadCells<'_>) -> Markup {
    let rows = workload.cells.iter().zip(&answer.rows);
    let lists = html! {
        @for (point, at) in workload.points.iter().enumerate() {
            @if let Some(label) = non_empty(&at.label) { p class="for" { (label) } }
            ul class="reasons" {
                @for (cell, row) in rows.clone().filter(|(cell, _)| cell.point == point) {
                    li {
                        (mark(row.carries))
                        div {
                            strong { (cell.row) } " " span class="why" { (row.decided_by) }
                            (spare(row))
                        }
                    }
                }
            }
        }
    };
    html! {
        @if answer.rows.len() > OPEN_ROWS {
            details {
                summary { "Why, for each of " (answer.rows.len()) " rows" }
                (lists)
            }
        } @else {
            (lists)
        }
    }
}

/// Headroom and cost.
fn spare(row: &RowAnswer) -> Markup {
    let cost = row.cpu_us_per_msg.map(|us| {
        let time = shown::time(us * 1e3);
        format!("{time} of processor time a message (client and system)")
    });
    let spare: Vec<String> = row.headroom.iter().cloned().chain(cost).collect();
    html! {
        @if let Some(reason) = row.reason.as_deref().and_then(non_empty) {
            small class="reason" { (reason) }
        }
        @if let Some(spare) = non_empty(&spare.join(" · ")) {
            small class="spare" { (spare) }
        }
    }
}

/// Who wins at what: sentences, or a table where the load was varied.
pub(super) fn wins(answer: &WorkloadAnswer) -> Markup {
    let points = unique(answer.wins.iter().map(|win| win.at.as_str()));
    if points.len() <= 1 {
        return html! {
            dl class="wins" {
                @for win in &answer.wins {
                    dt title=(win.meaning) { (win.what) }
                    dd { (win.who) }
                }
            }
        };
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
