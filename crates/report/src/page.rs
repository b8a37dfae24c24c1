//! The page: one HTML file that needs no other file, and no scripts for its text and tables.

use std::fmt::Write as _;

use pubgauge_results::{Results, Status, Trial};
use serde_json::json;

use crate::Logs;
use crate::answers::{self, WorkloadAnswer};
use crate::figures::{self, Figure};
use crate::searches::Sought;
use crate::summary::{Summary, Workload};
use crate::words;

mod answer;
mod claims;
mod comparisons;
mod facts;
mod index;
mod matrix;
mod network;
mod searches;
mod trials;
mod windows;
mod workload;

pub use index::index;

const STYLE: &str = include_str!("../assets/page.css");
const SCRIPT: &str = include_str!("../assets/page.js");

/// The content of the page.
struct Page<'a> {
    results: &'a Results,
    summary: Summary<'a>,
    /// Of each workload.
    answers: Vec<WorkloadAnswer>,
    /// Of each workload.
    figures: Vec<Vec<Figure>>,
    /// Searches for a limit.
    searches: Vec<Sought<'a>>,
    /// The trials of each search.
    searched: Vec<Workload<'a>>,
    /// Of each search.
    search_figures: Vec<Vec<Figure>>,
}

impl Page<'_> {
    /// What was measured: the workloads that are compared, and the trials of each search.
    fn measured(&self) -> impl Iterator<Item = &Workload<'_>> {
        self.summary.workloads.iter().chain(&self.searched)
    }

    /// Whether the reference broker ran.
    fn reference(&self) -> bool {
        let mut cells = self.measured().flat_map(|workload| &workload.cells);
        cells.any(|cell| cell.reference)
    }
}

/// The page of a run. `logs` make the distribution functions exact over repeats; without them
/// the points stored in `results.json` are drawn.
pub fn page(results: &Results, logs: &Logs) -> String {
    let summary = Summary::of(results);
    let each = || summary.workloads.iter().enumerate();
    let searches = crate::searches::of(results, &summary);
    let page = Page {
        results,
        searched: searches.iter().map(Sought::workload).collect(),
        search_figures: (searches.iter())
            .map(|sought| figures::searches::of_search(results, sought))
            .collect(),
        searches,
        answers: each()
            .map(|(_, w)| answers::of_workload(results, w))
            .collect(),
        figures: each()
            .map(|(at, w)| figures::of_workload(results, w, at, logs))
            .collect(),
        summary,
    };
    let mut out = String::with_capacity(1 << 20);
    head(&mut out, results);
    out.push_str("<main>\n");
    answer::section(&mut out, &page);
    contents(&mut out, &page);
    comparisons::section(&mut out, results);
    facts::doubts(&mut out, &page);
    facts::criteria(&mut out, results);
    claims::section(&mut out, results);
    for sought in &page.searches {
        searches::section(&mut out, &page, sought);
    }
    for at in 0..page.summary.workloads.len() {
        workload::section(&mut out, &page, at);
    }
    network::section(&mut out, results);
    facts::settings(&mut out, &page);
    facts::unsupported(&mut out, results);
    matrix::section(&mut out, results);
    trials::section(&mut out, &page);
    facts::machine(&mut out, results);
    facts::reading(&mut out, &page);
    out.push_str("</main>\n");
    data(&mut out, &page);
    out
}

/// A time in words: here in UTC; the script replaces it by the reader's local time.
fn minute(started: &str) -> String {
    match (started.get(..16), started.ends_with('Z')) {
        (Some(minute), true) => format!("{} UTC", minute.replace('T', " ")),
        _ => started.to_owned(),
    }
}

/// The beginning of a page up to its heading. `name` and `started` are HTML, `first` is the id of the main
/// section.
fn begin(out: &mut String, name: &str, started: &str, first: &str) {
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:\">\n\
         <title>{name} {started} pubgauge</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#{first}\">Skip to the answer</a>\n<header>\n<p class=\"brand\">pubgauge</p>\n<h1>{name}</h1>\n",
    );
}

fn head(out: &mut String, results: &Results) {
    let study = &results.study;
    let name = escape(if study.name.is_empty() {
        "run"
    } else {
        &study.name
    });
    let name = match &study.scale {
        Some(scale) => format!("{name}, at scale {}", escape(scale)),
        None => name.to_string(),
    };
    let started = minute(&study.started);
    begin(out, &name, &escape(&started), "answer");
    if let Some(question) = &study.question {
        let _ = writeln!(out, "<p class=\"question\">{}</p>", escape(question));
    }
    let machine = &results.machine;
    let _ = write!(
        out,
        "<p class=\"where\"><time datetime=\"{}\">{}</time> · {} trial{}{} · {} processor{}, {}<span id=\"file\"></span></p>\n</header>\n",
        escape(&study.started),
        escape(&started),
        results.trials.len(),
        if results.trials.len() == 1 { "" } else { "s" },
        match results.trials.len() as u32 == study.planned_trials {
            true => String::new(),
            false => format!(" of {}", study.planned_trials),
        },
        machine.cores,
        if machine.cores == 1 { "" } else { "s" },
        escape(&machine.cpu_model),
    );
    if study.cut_off {
        out.push_str("<p class=\"notice\" role=\"note\">The run was cut off: this page shows what was measured until then.</p>\n");
    }
}

/// The table of contents.
fn contents(out: &mut String, page: &Page<'_>) {
    let results = page.results;
    let mut entries = vec![("answer".to_owned(), "The answer".to_owned())];
    let mut add = |shown: bool, id: &str, words: &str| {
        entries.extend(shown.then(|| (id.to_owned(), words.to_owned())));
    };
    add(!results.comparisons.is_empty(), "compared", "Compared");
    add(true, "validity", "What is not valid");
    add(!results.study.criteria.is_empty(), "criteria", "Criteria");
    add(!results.claims.is_empty(), "claims", "Claims");
    for sought in &page.searches {
        let words = format!("How far: {}", sought.label);
        add(true, &format!("s{}", sought.number + 1), &words);
    }
    for (at, workload) in page.summary.workloads.iter().enumerate() {
        add(true, &format!("w{}", at + 1), &workload.name);
    }
    add(!results.networks.is_empty(), "network", "Network");
    add(true, "settings", "Settings");
    add(
        !(results.study.unsupported.is_empty() && results.not_measured.is_empty()),
        "unsupported",
        "Not possible",
    );
    add(
        !results.study.capabilities.is_empty(),
        "matrix",
        "Capabilities",
    );
    add(true, "trials", "Every trial");
    add(true, "machine", "Machine and versions");
    add(true, "reading", "How to read this");
    out.push_str("<nav class=\"contents\" aria-label=\"Contents\"><ul>\n");
    for (id, words) in entries {
        let _ = writeln!(out, "<li><a href=\"#{id}\">{}</a></li>", escape(&words));
    }
    out.push_str("</ul></nav>\n");
}

/// A verdict as a badge, explained on hover.
fn badge(status: Status) -> String {
    let name = status.word();
    format!(
        "<span class=\"badge {name}\" title=\"{}\">{name}</span>",
        escape(words::verdict(status))
    )
}

/// The beginning of a table, up to its rows. A heading is its text and an explanation.
fn begin_table<'h>(
    out: &mut String,
    class: &str,
    label: &str,
    heads: impl IntoIterator<Item = (&'h str, &'h str)>,
) {
    let _ = write!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table class=\"{class}\">\n<thead><tr>",
        escape(label)
    );
    for (head, meaning) in heads {
        let title = match meaning {
            "" => String::new(),
            meaning => format!(" title=\"{}\"", escape(meaning)),
        };
        let _ = write!(out, "<th scope=\"col\"{title}>{}</th>", escape(head));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
}

/// The end of a table.
const END_TABLE: &str = "</tbody></table></div>\n";

/// The data for the charts. JSON in a script element: characters that could end the element or a
/// line are escaped, so that no name can inject markup.
fn data(out: &mut String, page: &Page<'_>) {
    let workloads = page
        .summary
        .workloads
        .iter()
        .zip(&page.figures)
        .map(|(workload, figures)| {
            let cells = workload.cells.iter().map(|cell| {
                json!({
                    "label": cell.label,
                    "row": cell.row,
                    "point": cell.point,
                    "colour": cell.system_index,
                    "reference": cell.reference,
                })
            });
            let cells: Vec<_> = cells.collect();
            json!({ "flatOut": workload.flat_out, "cells": cells, "figures": figures })
        });
    // A search is drawn like a workload of one row.
    let searches = page.searches.iter().zip(&page.search_figures);
    let searches = searches.map(|(sought, figures)| {
        let cell = json!({
            "label": sought.label,
            "row": sought.label,
            "point": 0,
            "colour": sought.system_index,
            "reference": sought.reference,
        });
        json!({ "flatOut": false, "cells": [cell], "figures": figures })
    });
    let claims = claims::data(&claims::shown(&page.results.claims, ""));
    embed(out, workloads.chain(searches).chain(claims).collect());
}

/// Writes the data of charts and the script that draws them.
fn embed(out: &mut String, workloads: Vec<serde_json::Value>) {
    let text = serde_json::to_string(&json!({ "workloads": workloads, "noise": figures::NOISE }))
        .expect("figures are plain data");
    out.push_str("<script type=\"application/json\" id=\"data\">");
    for c in text.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    let _ = writeln!(out, "</script>\n<script>{SCRIPT}</script>");
    out.push_str("</body>\n</html>\n");
}

/// Text as it may stand between tags and in quoted attributes.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Control and direction characters could hide or reorder what is read.
            c if c.is_control() && c != '\n' => out.push('\u{fffd}'),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The system and version of a trial, shown above all tables.
fn system_of(trial: &Trial) -> String {
    format!("{} {}", trial.system.name, trial.system.version)
}
