//! Searches for a limit: all in one table, and each with its curves and trials.

use maud::{Markup, html};
use pubgauge_figures::search::StepOutcome;
use pubgauge_quantities::shown;

use super::asked::show_demands;
use super::chart::one_chart;
use super::content::Page;
use super::html::{Head, badge, badge_of, non_empty, notes, table};
use super::per_trial::time;
use crate::glossary;
use crate::searches::{self, SearchGroup, Sought, Tried, finding, purpose};

/// All searches of the run in tables, one for each workload and axis.
pub(super) fn overview(page: &Page<'_>) -> Markup {
    html! {
        @for group in searches::groups(page.results, &page.searches) {
            p class="where" { (group.words.replace("->", "→")) }
            (show_demands(page.results, &group.asked, group.by_default, ""))
            (limits(&group))
            p class="where" { (COST) " " (searches::cost_words(&group.members)) }
            (notes(searches::notes(&group.members)))
        }
    }
}

/// The meaning of the columns of costs.
const COST: &str =
    "Cost: processor time of the system for one delivery, at 50 % and 90 % of the limit.";

/// The table of a group's limits.
fn limits(group: &SearchGroup<'_, '_>) -> Markup {
    let heads = [
        ("system", ""),
        (
            "limit (95 % interval)",
            "The highest load within everything that was asked lies in this interval, with a certainty of 95 %.",
        ),
        ("confirmed", "The load that a long trial stayed within."),
        (
            "gave way first",
            "What was at its end first beyond the limit, with its figure.",
        ),
        ("cost at 50 %", COST),
        ("at 90 %", COST),
    ];
    let search = group.members[0].search;
    let label = format!("Limits of {}, {}", search.workload, search.axis);
    let rows = html! {
        @for sought in &group.members {
            tr {
                th scope="row" { a href={ "#s" (sought.number + 1) } { (sought.row) } }
                @for (name, words, title) in entries(sought) {
                    td data-name=(name) title=[non_empty(title)] { (words.as_deref().unwrap_or("–")) }
                }
            }
        }
    };
    table("limits fold", &label, heads, rows)
}

/// The entries of its table for a search, each with its heading on a narrow screen and its explanation.
fn entries<'a>(sought: &Sought<'a>) -> [(&'static str, Option<String>, &'a str); 5] {
    let cost = |share| sought.cost_ns(share).map(shown::time);
    let way = sought.search.gave_way.as_ref();
    [
        ("limit (95 % interval)", Some(sought.limit()), ""),
        ("confirmed", sought.confirmed(), ""),
        (
            "gave way first",
            way.map(searches::gave_way),
            way.map_or("", |way| &way.words),
        ),
        ("cost at 50 %", cost(0.5), ""),
        ("cost at 90 %", cost(0.9), ""),
    ]
}

/// The section of one search.
pub(super) fn section(page: &Page<'_>, sought: &Sought<'_>) -> Markup {
    let search = sought.search;
    html! {
        section id={ "s" (sought.number + 1) } {
            h2 { "How far: " (sought.label) }
            p {
                (sentence(sought)) "."
                @if let Some(way) = &search.gave_way {
                    " Gave way first: " (way.words.trim_end_matches('.')) "."
                }
            }
            (notes(search.notes.iter().map(|note| &note.text)))
            div class="figures" {
                @for figure in &page.search_figures[sought.number] {
                    (one_chart(figure, &sought.label, false))
                }
            }
            (trials(sought))
        }
    }
}

/// The result: `Limit: 41.2k to 44.8k msg/s; confirmed: 41.2k for 60 s; 20 trials`, or `not confirmed`.
fn sentence(sought: &Sought<'_>) -> String {
    let confirmed = |words| match sought.search.confirmed {
        Some(_) => format!("confirmed: {words}"),
        None => words,
    };
    let parts = [
        Some(format!("Limit: {}", sought.limit())),
        sought.confirmed().map(confirmed),
        Some(format!("{} trials", sought.tried.len())),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Its trials, in their order.
fn trials(sought: &Sought<'_>) -> Markup {
    let heads = [
        "load", "told", "purpose", "achieved", "p99", "verdict", "why",
    ];
    let meaning = |head: &str| match head {
        "told" => "What the trial told of its load.",
        "achieved" => "What the system delivered of the load.",
        "why" => "Reasons of the verdict, and criteria that were not met.",
        head => glossary::figure(head),
    };
    let heads = heads.map(|head| Head::from((head, meaning(head))));
    let label = format!("What the trials on {} told", sought.label);
    let rows = html! { @for tried in &sought.tried { (row(sought, tried)) } };
    table("tried fold", &label, heads, rows)
}

fn row(sought: &Sought<'_>, Tried { step, trial }: &Tried<'_>) -> Markup {
    let (word, meaning) = finding(step.finding);
    let p99 = trial.and_then(|trial| trial.messages.latency_ns.quotable(0.99));
    // Flat out, latency is that of growing queues.
    let p99 = p99.filter(|_| step.load.is_some());
    html! {
        tr {
            th scope="row" { (sought.load_of(step)) }
            td { (badge_of(class(step.finding), meaning, word)) }
            td data-name="purpose" { (purpose(step.purpose)) }
            td class="n" data-name="achieved" { (sought.load(step.achieved)) }
            td class="n" data-name="p99" { (time(p99)) }
            td data-name="verdict" {
                @match trial {
                    Some(trial) => (badge(trial.verdict.status)),
                    None => "–",
                }
            }
            td class="wrap" { (step.why.join("; ")) }
        }
    }
}

/// The CSS class of a finding: that of a similar verdict.
fn class(finding: StepOutcome) -> &'static str {
    match finding {
        StepOutcome::Within => "valid",
        StepOutcome::Beyond => "overloaded",
        StepOutcome::Client | StepOutcome::Nothing => "unsteady",
    }
}
