//! The page: one HTML file that needs no other file, and no scripts for its text and tables.

use std::fmt::Write as _;

use pubgauge_results::Results;
use serde_json::{Value, json};

use crate::Logs;
use crate::answers;
use crate::figures;
use crate::searches::Sought;
use crate::summary::Summary;

mod answer;
mod asked;
mod claims;
mod comparisons;
mod content;
mod facts;
mod figure;
mod frame;
mod html;
mod index;
mod matrix;
mod network;
mod per_trial;
mod searches;
mod trials;
mod windows;
mod workload;

pub use index::index;

use content::Page;
use frame::{begin, embed, minute};
use html::escape;

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
        if results.trials.len() as u32 == study.planned_trials {
            String::new()
        } else {
            format!(" of {}", study.planned_trials)
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
    out.push_str("<nav class=\"contents\" aria-label=\"Contents\"><ul>\n");
    let mut add = |shown: bool, id: &str, words: &str| {
        if shown {
            let _ = writeln!(out, "<li><a href=\"#{id}\">{}</a></li>", escape(words));
        }
    };
    add(true, "answer", "The answer");
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
    out.push_str("</ul></nav>\n");
}

/// A row of charts, as `page.js` reads it.
fn row(label: &str, row: &str, point: usize, colour: usize, reference: bool) -> Value {
    json!({ "label": label, "row": row, "point": point, "colour": colour, "reference": reference })
}

/// The data for the charts. JSON in a script element: characters that could end the element or a
/// line are escaped, so that no name can inject markup.
fn data(out: &mut String, page: &Page<'_>) {
    let workloads = page
        .summary
        .workloads
        .iter()
        .zip(&page.figures)
        .map(|(workload, figures)| {
            let cells = workload.cells.iter();
            let cells = cells.map(|c| row(&c.label, &c.row, c.point, c.system_index, c.reference));
            let cells: Vec<_> = cells.collect();
            json!({ "flatOut": workload.flat_out, "cells": cells, "figures": figures })
        });
    // A search is drawn like a workload of one row.
    let searches = page.searches.iter().zip(&page.search_figures);
    let searches = searches.map(|(sought, figures)| {
        let label = &sought.label;
        let cell = row(label, label, 0, sought.system_index, sought.reference);
        json!({ "flatOut": false, "cells": [cell], "figures": figures })
    });
    let claims = claims::data(&claims::shown(&page.results.claims, ""));
    embed(out, workloads.chain(searches).chain(claims).collect());
}
