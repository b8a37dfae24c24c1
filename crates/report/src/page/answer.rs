//! The first section: which rows carry their load, and who wins at what.

use maud::{Markup, html};

use pubgauge_conclusions::answer::TrialCounts;
use pubgauge_quantities::lists::{grouped, unique};
use pubgauge_quantities::shown;

use super::asked::demands;
use super::content::Page;
use super::html::{non_empty, table};
use super::moment::moment;
use super::scale::Scale;
use super::searches;
use super::wins;
use crate::answers::{Carries, FlowAnswer, RowAnswer};
use crate::naming::GridPoint;
use crate::screen::excesses;
use crate::{crowd, glossary, why};

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
                (reasons(page, 0))
            } @else if answered {
                (overview(page))
            }
            (undecided(page))
            @if wins_on_top(page) && page.answers.iter().any(wins::has_decided) {
                h3 { "Who wins at what" }
                (wins::repeats_note(page.summary.workloads.iter()))
                @for (answer, number) in page.answers.iter().zip(1..).filter(|(answer, _)| wins::has_decided(answer)) {
                    @if page.answers.len() > 1 {
                        h4 { a href={ "#w" (number) } { (answer.workload) } }
                    }
                    (wins::decided_wins(answer))
                }
            }
        }
    }
}

/// The causes by which something cannot be told, each in a line; how many trials are valid; and the contests without a decision.
fn undecided(page: &Page<'_>) -> Markup {
    let entries = why::entries(&page.summary.workloads, &page.answers);
    // A list of rows has the reason of each.
    let causes = if in_one_list(page) {
        Vec::new()
    } else {
        why::causes(&entries)
    };
    let TrialCounts { valid, all, .. } = TrialCounts::new(page.results);
    let open = why::open_contests(&page.answers);
    html! {
        ul class="notes" {
            @for cause in &causes {
                li { @if cause.is_answer { b { "cannot tell" } " " } (cause.words) }
            }
            @if let Some(words) = crowd::spoilt_trials(page.results) { li { (words) } }
            @if valid < all {
                li { (valid) " of " (all) " trials are valid: " a href="#validity" { "why not the others" } }
            }
            @if let Some(words) = open { li { b { "open" } " " (words) } }
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
    let place = |name: &str, (at, point): &(usize, usize)| {
        let mut cells = workloads[*at].cells.iter();
        cells.position(|cell| cell.row == name && cell.point == *point)
    };
    let scale = Scale::of_rows(page.answers.iter().flat_map(|answer| &answer.rows));
    let rows = html! {
        @for name in names {
            tr {
                th scope="row" { (name) }
                @for column in &columns { (entry(page, column.0, place(name, column), scale.as_ref())) }
            }
        }
    };
    let cells = page
        .summary
        .workloads
        .iter()
        .map(|workload| &workload.cells);
    let answered = cells
        .zip(&page.answers)
        .flat_map(|(cells, answer)| cells.iter().zip(&answer.rows));
    let yes = answered.filter(|(_, row)| row.carries == Some(Carries::Yes));
    let excesses = excesses(yes.map(|(cell, _)| cell));
    html! {
        (asked_of_all(page))
        (table(class, "Which carries which load", heads, rows))
        @if let Some(scale) = &scale { p class="where" { (scale.describe()) } }
        @for excess in excesses { p class="where" { "≤: " (excess.meaning()) "." } }
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

/// The entry of a row of a workload.
fn entry(page: &Page<'_>, at: usize, nth: Option<usize>, scale: Option<&Scale>) -> Markup {
    let Some(nth) = nth else {
        return html! { td { small { "not run" } } };
    };
    let row = &page.answers[at].rows[nth];
    let repeats = page.summary.workloads[at].cells[nth].trials.len();
    html! {
        td title=(row.decided_by) {
            @match moment(page, at, nth) {
                Some(moment) => { (moment.link(mark(row.carries))) " " }
                None => (mark(row.carries)),
            }
            (in_short(row))
            @if let (Some(scale), Some(used)) = (scale, row.used) { (scale.bar(used)) }
            (origin_and_cost(row, repeats))
        }
    }
}

/// The answer of one flow in a few words: `commands: yes p99 1.2 ms`.
fn of_flow(flow: &FlowAnswer) -> String {
    let carries = flow.carries.map_or("", Carries::as_str);
    let brief = flow.brief.replace("<=", "≤");
    let parts = [&format!("{}:", flow.flow), carries, &brief];
    parts
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The figure that decided; flat out the rate and how it bounds what the system can deliver.
fn in_short(row: &RowAnswer) -> Markup {
    html! {
        @match (row.carries, row.carried) {
            (None, Some(carried)) => {
                b { (shown::rate(carried.msgs_per_s)) }
                small { (carried.bound.suffix().split(" (").next().unwrap_or("")) }
            }
            _ => small { (row.brief.replace("<=", "≤")) },
        }
    }
}

/// Which repeat the figure is of, and the cost, in a few words.
fn origin_and_cost(row: &RowAnswer, repeats: usize) -> Markup {
    let worst = repeats > 1 && row.carries == Some(Carries::Yes);
    html! {
        @if worst || row.cpu_us_per_msg.is_some() {
            small class="cost" {
                @if worst { span { "worst of " (repeats) } " " }
                @if let Some(us) = row.cpu_us_per_msg { span { "CPU " (shown::time(us * 1e3)) "/msg" } }
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

/// Each row with the figure that decided, what else is left, and its cost.
pub(super) fn reasons(page: &Page<'_>, at: usize) -> Markup {
    let (answer, workload) = (&page.answers[at], &page.summary.workloads[at]);
    let rows = workload.cells.iter().zip(&answer.rows).enumerate();
    let lists = html! {
        @for (point, grid) in workload.points.iter().enumerate() {
            @if let Some(label) = non_empty(&grid.label) { p class="for" { (label) } }
            ul class="reasons" {
                @for (nth, (cell, row)) in rows.clone().filter(|(_, (cell, _))| cell.point == point) {
                    li {
                        (mark(row.carries))
                        div {
                            strong { (cell.row) } " " span class="why" {
                                (row.decided_by)
                                @if row.carries == Some(Carries::Yes) && cell.trials.len() > 1 {
                                    " (worst of " (cell.trials.len()) " repeats)"
                                }
                            }
                            @if let Some(moment) = moment(page, at, nth) {
                                " " (moment.link(html! { "second " (moment.second) " of repeat " (moment.repeat) }))
                            }
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

/// Other resources that are left, and cost.
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
        @let flows: Vec<String> = row.flows.iter().map(of_flow).collect();
        @if let Some(flows) = non_empty(&flows.join(" · ")) {
            small class="spare" { (flows) }
        }
        @if let Some(spare) = non_empty(&spare.join(" · ")) {
            small class="spare" { (spare) }
        }
    }
}
