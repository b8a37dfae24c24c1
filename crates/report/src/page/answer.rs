//! The first section: which rows carry their load, and who wins at what.

use std::fmt::Write as _;

use super::asked::demands;
use super::content::Page;
use super::html::{END_TABLE, begin_table, escape};
use super::searches;
use crate::answers::{Carries, RowAnswer, WorkloadAnswer};
use crate::lists::{grouped, unique};
use crate::naming::Point;
use crate::summary::Workload;
use crate::{glossary, units};

/// The largest number of wins in the first section; with more, they are shown with their workloads.
const WINS: usize = 12;

/// The largest number of rows with which the reasons of a workload are unfolded.
const OPEN_ROWS: usize = 12;

/// Writes the section.
pub(super) fn section(out: &mut String, page: &Page<'_>) {
    let asked = page.answers.iter().any(|answer| !answer.asked.is_empty());
    let question = if asked {
        "Does it carry your load?"
    } else {
        "How much does it carry?"
    };
    out.push_str("<section id=\"answer\">");
    if !page.searches.is_empty() {
        out.push_str("<h2>How far does it go?</h2>\n");
        searches::overview(out, page);
    }
    if page.searches.is_empty() || !page.answers.is_empty() {
        let _ = writeln!(out, "<h2>{question}</h2>");
    }
    if page.searches.is_empty() && page.answers.is_empty() {
        out.push_str("<p>No trial has been measured.</p>");
    }
    if in_one_list(page) {
        demands(out, page.results, &page.answers[0], "");
        reasons(out, &page.answers[0], &page.summary.workloads[0]);
    } else if !page.answers.is_empty() {
        overview(out, page);
    }
    if wins_on_top(page) {
        out.push_str("<h3>Who wins at what</h3>\n");
        for (at, answer) in page.answers.iter().enumerate() {
            if page.answers.len() > 1 {
                let _ = writeln!(
                    out,
                    "<h4><a href=\"#w{}\">{}</a></h4>",
                    at + 1,
                    escape(&answer.workload)
                );
            }
            wins(out, answer);
        }
    }
    out.push_str("</section>\n");
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
fn overview(out: &mut String, page: &Page<'_>) {
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
    let head = |((at, _), point): (&(usize, usize), &Point)| {
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
    // Written once for all workloads with the same criteria.
    for (_, alike) in grouped(page.answers.iter().map(|answer| (&answer.asked, answer))) {
        let names: Vec<&str> = alike.iter().map(|answer| &*answer.workload).collect();
        let all = names.len() == page.answers.len();
        let names = if all { String::new() } else { names.join(", ") };
        demands(out, page.results, alike[0], &names);
    }
    let heads = heads.iter().zip(points());
    let heads = heads.map(|(head, point)| (head.as_str(), point.label.as_str()));
    let class = if columns.len() > 5 {
        "overview many"
    } else {
        "overview"
    };
    begin_table(
        out,
        class,
        "Which carries which load",
        [(&corner[..], "")].into_iter().chain(heads),
    );
    for name in names {
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", escape(name));
        for (at, point) in &columns {
            let mut cells = workloads[*at].cells.iter();
            let found = cells.position(|cell| cell.row == name && cell.point == *point);
            let answer = found.map(|nth| &page.answers[*at].rows[nth]);
            match answer {
                Some(row) => {
                    let _ = write!(
                        out,
                        "<td title=\"{}\">{}{}{}</td>",
                        escape(&row.decided_by),
                        mark(row.carries),
                        in_short(row),
                        left_and_cost(row)
                    );
                }
                None => out.push_str("<td><small>not run</small></td>"),
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str(END_TABLE);
}

/// The figure that decided; flat out the rate and how it bounds what the system can deliver.
fn in_short(row: &RowAnswer) -> String {
    match (row.carries, row.carried) {
        (None, Some(carried)) => {
            let bound = carried.bound.suffix().split(" (").next().unwrap_or("");
            let rate = units::rate(carried.msgs_per_s);
            format!("<b>{rate}</b><small>{bound}</small>")
        }
        _ => format!("<small>{}</small>", escape(&row.figure)),
    }
}

/// Headroom and cost in a few words.
fn left_and_cost(row: &RowAnswer) -> String {
    let left = row
        .times_better
        .map(|times| format!("headroom {}×", units::digits(times)));
    let cost = row
        .cpu_us_per_msg
        .map(|us| format!("CPU {}/msg", units::time(us * 1e3)));
    let parts = left
        .into_iter()
        .chain(cost)
        .map(|part| format!("<span>{part}</span>"));
    match parts.collect::<Vec<_>>().join(" ") {
        none if none.is_empty() => none,
        parts => format!("<small class=\"cost\">{parts}</small>"),
    }
}

fn mark(carries: Option<Carries>) -> String {
    let Some(carries) = carries else {
        return String::new();
    };
    let class = match carries {
        Carries::Yes => "yes",
        Carries::No => "no",
        Carries::CannotTell => "open",
    };
    let meaning = escape(glossary::carries(carries));
    format!(
        "<span class=\"mark {class}\" title=\"{meaning}\">{}</span> ",
        carries.word()
    )
}

/// Each row with the figure that decided, its headroom, and its cost.
pub(super) fn reasons(out: &mut String, answer: &WorkloadAnswer, workload: &Workload<'_>) {
    let fold = answer.rows.len() > OPEN_ROWS;
    if fold {
        let rows = answer.rows.len();
        let _ = writeln!(
            out,
            "<details><summary>Why, for each of {rows} rows</summary>"
        );
    }
    for (point, at) in workload.points.iter().enumerate() {
        if !at.label.is_empty() {
            let _ = writeln!(out, "<p class=\"for\">{}</p>", escape(&at.label));
        }
        out.push_str("<ul class=\"reasons\">\n");
        let rows = workload.cells.iter().zip(&answer.rows);
        for (cell, row) in rows.filter(|(cell, _)| cell.point == point) {
            let _ = writeln!(
                out,
                "<li>{}<div><strong>{}</strong> <span class=\"why\">{}</span>{}</div></li>",
                mark(row.carries),
                escape(&cell.row),
                escape(&row.decided_by),
                spare(row)
            );
        }
        out.push_str("</ul>\n");
    }
    if fold {
        out.push_str("</details>\n");
    }
}

/// Headroom and cost.
fn spare(row: &RowAnswer) -> String {
    let cost = row.cpu_us_per_msg.map(|us| {
        let time = units::time(us * 1e3);
        format!("{time} of processor time a message (client and system)")
    });
    let spare: Vec<String> = row.headroom.iter().cloned().chain(cost).collect();
    let lines = [
        ("reason", row.reason.clone().unwrap_or_default()),
        ("spare", spare.join(" · ")),
    ];
    let lines = lines.into_iter().filter(|(_, line)| !line.is_empty());
    lines
        .map(|(class, line)| format!("<small class=\"{class}\">{}</small>", escape(&line)))
        .collect()
}

/// Who wins at what: sentences, or a table where the load was varied.
pub(super) fn wins(out: &mut String, answer: &WorkloadAnswer) {
    let points = unique(answer.wins.iter().map(|win| win.at.as_str()));
    if points.len() <= 1 {
        out.push_str("<dl class=\"wins\">\n");
        for win in &answer.wins {
            let (what, meaning) = (escape(win.what), escape(win.meaning));
            let _ = writeln!(
                out,
                "<dt title=\"{meaning}\">{what}</dt><dd>{}</dd>",
                escape(&win.who)
            );
        }
        out.push_str("</dl>\n");
        return;
    }
    let metrics = unique(answer.wins.iter().map(|win| (win.what, win.meaning)));
    let heads = [("load", "")].into_iter().chain(metrics.iter().copied());
    begin_table(
        out,
        "fold",
        &format!("Who wins at what of {}", answer.workload),
        heads,
    );
    for point in points {
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", escape(point));
        for (metric, _) in &metrics {
            let mut wins = answer.wins.iter();
            let win = wins.find(|win| win.at == point && win.what == *metric);
            let (short, who) = win.map_or(("–", ""), |win| (&win.short, &win.who));
            let _ = write!(
                out,
                "<td class=\"wrap\" data-name=\"{}\" title=\"{}\">{}</td>",
                escape(metric),
                escape(who),
                escape(short)
            );
        }
        out.push_str("</tr>\n");
    }
    out.push_str(END_TABLE);
}
