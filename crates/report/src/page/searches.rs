//! Searches for a limit: all in one table, and each with its curves and trials.

use std::fmt::Write as _;

use pubgauge_results::search::Finding;

use super::asked::asked;
use super::content::Page;
use super::figure::one_figure;
use super::html::{END_TABLE, badge, badge_of, begin_table, escape, notes};
use super::per_trial::time;
use crate::searches::{self, Sought, Tried, finding, purpose};
use crate::{glossary, units};

/// Writes all searches of the run in tables, one for each workload and axis.
pub(super) fn overview(out: &mut String, page: &Page<'_>) {
    for group in searches::groups(page.results, &page.searches) {
        let _ = writeln!(out, "<p class=\"where\">{}</p>", arrows(&group.words));
        asked(out, page.results, (&group.asked, group.by_default), "");
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
        begin_table(out, "limits fold", &label, heads);
        for sought in &group.members {
            let cost = |share| sought.cost_ns(share).map(units::time);
            let way = sought.search.gave_way.as_ref();
            let figures = [
                ("limit (95 % interval)", Some(sought.limit()), ""),
                ("confirmed", sought.confirmed(), ""),
                (
                    "gave way first",
                    way.map(searches::gave_way),
                    way.map_or("", |way| &way.words),
                ),
                ("cost at 50 %", cost(0.5), ""),
                ("cost at 90 %", cost(0.9), ""),
            ];
            let _ = write!(
                out,
                "<tr><th scope=\"row\"><a href=\"#s{}\">{}</a></th>",
                sought.number + 1,
                escape(&sought.row)
            );
            for (name, words, title) in figures {
                let title = match title {
                    "" => String::new(),
                    title => format!(" title=\"{}\"", escape(title)),
                };
                let words = words.unwrap_or("–".to_owned());
                let _ = write!(
                    out,
                    "<td data-name=\"{name}\"{title}>{}</td>",
                    escape(&words)
                );
            }
            out.push_str("</tr>\n");
        }
        out.push_str(END_TABLE);
        let inside = searches::cost_words(&group.members);
        let _ = writeln!(out, "<p class=\"where\">{COST} {}</p>", escape(&inside));
        notes(out, &searches::notes(&group.members));
    }
}

/// The meaning of the columns of costs.
const COST: &str =
    "Cost: processor time of the system for one delivery, at 50 % and 90 % of the limit.";

/// `->` as it is written on the page.
fn arrows(words: &str) -> String {
    escape(words).replace("-&gt;", "→")
}

/// Writes the section of one search.
pub(super) fn section(out: &mut String, page: &Page<'_>, sought: &Sought<'_>) {
    let number = sought.number;
    let search = sought.search;
    let _ = writeln!(
        out,
        "<section id=\"s{}\"><h2>How far: {}</h2>\n<p>{}.{}</p>",
        number + 1,
        escape(&sought.label),
        escape(&sentence(sought)),
        match &search.gave_way {
            Some(way) => format!(
                " Gave way first: {}.",
                escape(way.words.trim_end_matches('.'))
            ),
            None => String::new(),
        }
    );
    let lines: Vec<String> = search.notes.iter().map(|note| note.text.clone()).collect();
    notes(out, &lines);
    out.push_str("<div class=\"figures\">\n");
    for figure in &page.search_figures[number] {
        one_figure(out, figure, &sought.label, false);
    }
    out.push_str("</div>\n");
    trials(out, sought);
    out.push_str("</section>\n");
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
fn trials(out: &mut String, sought: &Sought<'_>) {
    let heads = [
        "load", "told", "purpose", "achieved", "p99", "verdict", "why",
    ];
    let meaning = |head: &str| match head {
        "told" => "What the trial told of its load.",
        "achieved" => "What the system delivered of the load.",
        "why" => "Reasons of the verdict, and criteria that were not met.",
        head => glossary::figure(head),
    };
    let label = format!("What the trials on {} told", sought.label);
    begin_table(
        out,
        "tried fold",
        &label,
        heads.map(|head| (head, meaning(head))),
    );
    for Tried { step, trial } in &sought.tried {
        let (word, meaning) = finding(step.finding);
        let p99 = trial.and_then(|trial| trial.latency_ns.quotable(0.99));
        // Flat out, latency is that of growing queues.
        let p99 = p99.filter(|_| step.load.is_some());
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td>\
             <td data-name=\"purpose\">{}</td><td class=\"n\" data-name=\"achieved\">{}</td>\
             <td class=\"n\" data-name=\"p99\">{}</td><td data-name=\"verdict\">{}</td><td class=\"wrap\">{}</td></tr>",
            escape(&sought.load_of(step)),
            badge_of(class(step.finding), meaning, word),
            purpose(step.purpose),
            escape(&sought.load(step.achieved)),
            time(p99),
            trial.map_or("–".to_owned(), |trial| badge(trial.verdict.status)),
            escape(&step.why.join("; ")),
        );
    }
    out.push_str(END_TABLE);
}

/// The CSS class of a finding: that of a similar verdict.
fn class(finding: Finding) -> &'static str {
    match finding {
        Finding::Within => "valid",
        Finding::Beyond => "overloaded",
        Finding::Client | Finding::Nothing => "unsteady",
    }
}
