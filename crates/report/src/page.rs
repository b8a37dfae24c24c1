//! The page: one HTML file that needs nothing else, not even scripts for its words and tables.

use std::fmt::Write as _;

use pubgauge_results::{Results, Status, Trial};
use serde_json::json;

use crate::Logs;
use crate::figures::{self, Figure, Value};
use crate::summary::{self, Metric, Summary, Workload};
use crate::table::name as verdict_name;
use crate::units;

mod matrix;
mod trials;

const STYLE: &str = include_str!("../assets/page.css");
const SCRIPT: &str = include_str!("../assets/page.js");
const D3: &str = include_str!("../assets/vendor/d3.min.js");
const PLOT: &str = include_str!("../assets/vendor/plot.umd.min.js");

/// Rows of a figure's readable table; longer ones are cut with a word, the CSV has all.
const TABLE_ROWS: usize = 60;

/// The page of a run. `logs` make the distribution functions exact over repeats; without them
/// the points stored in `results.json` are drawn.
pub fn page(results: &Results, logs: &Logs) -> String {
    let summary = Summary::of(results);
    let figures: Vec<Vec<Figure>> = (0..summary.workloads.len())
        .map(|at| figures::of_workload(&summary, at, logs))
        .collect();
    let mut out = String::with_capacity(1 << 20);
    head(&mut out, results);
    out.push_str("<main>\n");
    answers(&mut out, &summary);
    doubts(&mut out, results, &summary);
    criteria(&mut out, results);
    for (at, workload) in summary.workloads.iter().enumerate() {
        one_workload(&mut out, at, workload, &figures[at]);
    }
    settings(&mut out, &summary);
    unsupported(&mut out, results);
    matrix::section(&mut out, results);
    trials::section(&mut out, &summary);
    machine(&mut out, results);
    out.push_str(READING);
    out.push_str("</main>\n");
    data(&mut out, &summary, &figures);
    for script in [D3, PLOT, SCRIPT] {
        let _ = writeln!(out, "<script>{script}</script>");
    }
    out.push_str("</body>\n</html>\n");
    out
}

/// What the words mean, in short; `docs/results.md` has it all.
const READING: &str = "<section id=\"reading\"><h2>How to read this</h2><dl class=\"facts\">\
<dt>latency</dt><dd>From when a message should have been sent to its arrival, on one clock. How late the client itself was, and latency from the actual send, stand in the table of trials.</dd>\
<dt>delivered</dt><dd>Deliveries over all subscribers, duplicates included. Lost are the expected deliveries minus the unique ones.</dd>\
<dt>95 % CI</dt><dd>Student\u{2019}s t over repeats. Two systems are called apart only if the interval of their ratio (Welch, on logarithms, Bonferroni) leaves out 1. One repeat has no interval.</dd>\
<dt>verdict</dt><dd>valid: the figures describe the system. client-bound: the client or the machine was the limit. unsteady: no steady state. overloaded: the backlog grew. lossy: messages were lost or repeated. broken: the trial did not run as planned. Only valid trials are compared.</dd>\
<dt>reference broker</dt><dd>pubgauge\u{2019}s own minimal broker: no product, the ceiling that the others are held against.</dd>\
</dl></section>\n";

fn head(out: &mut String, results: &Results) {
    let study = &results.study;
    let name = escape(if study.name.is_empty() {
        "run"
    } else {
        &study.name
    });
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:\">\n\
         <title>{name} · pubgauge</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#answer\">Skip to the answer</a>\n<header>\n<p class=\"brand\">pubgauge</p>\n<h1>{name}</h1>\n"
    );
    if let Some(question) = &study.question {
        let _ = writeln!(out, "<p class=\"question\">{}</p>", escape(question));
    }
    let machine = &results.machine;
    let _ = write!(
        out,
        "<p class=\"where\">{} of {} trials · {} · {} processor{}, {} · {}</p>\n</header>\n",
        results.trials.len(),
        study.planned_trials,
        escape(&study.started),
        machine.cores,
        if machine.cores == 1 { "" } else { "s" },
        escape(&machine.cpu_model),
        escape(&machine.kernel)
    );
    if study.cut_off {
        out.push_str("<p class=\"notice\" role=\"note\">The run was cut off: this page shows what was measured until then.</p>\n");
    }
}

fn answers(out: &mut String, summary: &Summary<'_>) {
    out.push_str("<section id=\"answer\"><h2>The answer</h2>\n");
    if summary.workloads.is_empty() {
        out.push_str("<p>No trial has been measured.</p>");
    }
    for (at, workload) in summary.workloads.iter().enumerate() {
        let _ = write!(
            out,
            "<h3><a href=\"#w{}\">{}</a></h3>\n<ul class=\"answers\">\n",
            at + 1,
            escape(&workload.name)
        );
        for metric in Metric::of(workload) {
            let sentence = summary::answer(workload, metric).to_string();
            let (what, who) = sentence.split_once(": ").unwrap_or(("", &sentence));
            let _ = writeln!(
                out,
                "<li><span class=\"what\">{}</span> <span class=\"who\">{}</span></li>",
                escape(what),
                escape(who)
            );
        }
        out.push_str("</ul>\n");
    }
    out.push_str("</section>\n");
}

fn doubts(out: &mut String, results: &Results, summary: &Summary<'_>) {
    let bad = results
        .trials
        .iter()
        .filter(|t| t.verdict.status != Status::Valid)
        .count();
    let all = results.trials.len();
    out.push_str("<section id=\"validity\"><h2>What is not valid, and why</h2>\n");
    if bad == 0 {
        let _ = writeln!(out, "<p>All {all} trials are valid.</p></section>");
        return;
    }
    let _ = write!(
        out,
        "<p>{} of {all} trials are valid. Figures of the others are marked wherever they stand and enter no comparison.</p>\n<ul class=\"doubts\">\n",
        all - bad
    );
    for workload in &summary.workloads {
        for cell in &workload.cells {
            for group in cell.doubtful() {
                let _ = write!(
                    out,
                    "<li>{} <strong>{}</strong>, {}{}<ul>",
                    badge(group.status),
                    escape(&cell.label),
                    escape(&workload.name),
                    group.repeats(cell.trials.len())
                );
                for reason in &group.trials[0].verdict.reasons {
                    let _ = write!(out, "<li>{}</li>", escape(reason));
                }
                out.push_str("</ul></li>\n");
            }
        }
    }
    out.push_str("</ul></section>\n");
}

fn badge(status: Status) -> String {
    let name = verdict_name(status);
    format!("<span class=\"badge {name}\">{name}</span>")
}

fn criteria(out: &mut String, results: &Results) {
    if results.study.criteria.is_empty() {
        return;
    }
    out.push_str("<section id=\"criteria\"><h2>Criteria</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Criteria\"><table>\n<thead><tr><th scope=\"col\">outcome</th><th scope=\"col\">criterion</th><th scope=\"col\">figures</th></tr></thead>\n<tbody>\n");
    for outcome in &results.study.criteria {
        let (class, word) = match outcome.met {
            Some(true) => ("valid", "met"),
            Some(false) => ("broken", "not met"),
            None => ("unsteady", "undecided"),
        };
        let _ = writeln!(
            out,
            "<tr><td><span class=\"badge {class}\">{word}</span></td><td>{}</td><td class=\"wrap\">{}</td></tr>",
            escape(&outcome.criterion),
            escape(&outcome.figures)
        );
    }
    out.push_str("</tbody></table></div></section>\n");
}

fn one_workload(out: &mut String, at: usize, workload: &Workload<'_>, figures: &[Figure]) {
    let info = &workload.cells[0].trials[0].workload;
    let _ = write!(
        out,
        "<section id=\"w{}\"><h2>{}</h2>\n<p class=\"where\">{} publisher{} to {} subscriber{} over {} topic{}, {}, {}</p>\n",
        at + 1,
        escape(&workload.name),
        info.publishers,
        plural(info.publishers),
        info.subscribers,
        plural(info.subscribers),
        info.topics,
        plural(info.topics),
        escape(&info.payload),
        escape(&info.arrivals)
    );
    for figure in figures {
        one_figure(out, figure);
    }
    out.push_str("</section>\n");
}

fn plural(count: u32) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn one_figure(out: &mut String, figure: &Figure) {
    let (id, title) = (&figure.id, escape(&figure.title));
    let _ = write!(
        out,
        "<figure id=\"{id}\" aria-labelledby=\"{id}-title\">\n<h3 id=\"{id}-title\">{title}</h3>\n\
         <div class=\"chart\" role=\"img\" aria-label=\"{title}: {}\"></div>\n\
         <figcaption>{}</figcaption>\n\
         <p class=\"tools\"><button type=\"button\" data-save=\"svg\" aria-label=\"Save {title} as SVG\">Save SVG</button> \
         <button type=\"button\" data-save=\"csv\" aria-label=\"Save the data of {title} as CSV\">Save CSV</button></p>\n\
         <details><summary>Data as a table</summary>",
        escape(&figure.description),
        escape(&figure.description),
    );
    figure_table(out, figure);
    out.push_str("</details>\n</figure>\n");
}

fn figure_table(out: &mut String, figure: &Figure) {
    let _ = write!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Data of {}\"><table>\n<thead><tr>",
        escape(&figure.title)
    );
    for column in &figure.columns {
        let _ = write!(out, "<th scope=\"col\">{column}</th>");
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    // Every k-th row where there are too many to read.
    let step = figure.rows.len().div_ceil(TABLE_ROWS).max(1);
    for row in figure.rows.iter().step_by(step) {
        out.push_str("<tr>");
        for value in row {
            let _ = match value {
                Value::Text(text) => write!(out, "<td>{}</td>", escape(text)),
                Value::Number(number) => {
                    write!(out, "<td class=\"n\">{}</td>", short_number(*number))
                }
                Value::None => write!(out, "<td class=\"n\">–</td>"),
            };
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>");
    if step > 1 {
        let _ = write!(
            out,
            "<p class=\"where\">One row in {step} of {}; the CSV file has all.</p>",
            figure.rows.len()
        );
    }
}

/// Whole numbers exactly, others with six significant digits.
fn short_number(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        format!("{number:.0}")
    } else {
        let decimals = (5 - number.abs().log10().floor() as i32).clamp(0, 9) as usize;
        format!("{number:.decimals$}")
    }
}

fn settings(out: &mut String, summary: &Summary<'_>) {
    out.push_str("<section id=\"settings\"><h2>What each setting became</h2>\n");
    let mut shown: Vec<(String, &Vec<pubgauge_driver::Mapping>)> = Vec::new();
    for cell in summary
        .workloads
        .iter()
        .flat_map(|workload| &workload.cells)
    {
        let trial = cell.trials[0];
        let key = format!("{} {}", trial.system.name, trial.system.version);
        if !shown
            .iter()
            .any(|(label, mappings)| *label == key && **mappings == trial.mappings)
        {
            shown.push((key, &trial.mappings));
        }
    }
    for (label, mappings) in shown {
        if mappings.is_empty() {
            let _ = writeln!(
                out,
                "<h3>{}</h3><p>Nothing was asked for but the defaults.</p>",
                escape(&label)
            );
            continue;
        }
        let _ = write!(
            out,
            "<h3>{0}</h3>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Settings of {0}\"><table>\n<thead><tr><th scope=\"col\">setting</th><th scope=\"col\">asked for</th><th scope=\"col\">became</th></tr></thead><tbody>\n",
            escape(&label)
        );
        for mapping in mappings {
            let _ = writeln!(
                out,
                "<tr><td>{}</td><td>{}</td><td class=\"wrap\">{}</td></tr>",
                escape(&mapping.setting),
                escape(&mapping.value),
                escape(&mapping.native)
            );
        }
        out.push_str("</tbody></table></div>\n");
    }
    out.push_str("</section>\n");
}

fn unsupported(out: &mut String, results: &Results) {
    if results.study.unsupported.is_empty() {
        return;
    }
    out.push_str("<section id=\"unsupported\"><h2>What could not be had</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Unsupported settings\"><table>\n<thead><tr><th scope=\"col\">system</th><th scope=\"col\">setting</th><th scope=\"col\">asked for</th><th scope=\"col\">reason</th></tr></thead>\n<tbody>\n");
    for cell in &results.study.unsupported {
        for setting in &cell.settings {
            let _ = writeln!(
                out,
                "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"wrap\">{}</td></tr>",
                escape(&cell.system),
                escape(&setting.setting),
                escape(&setting.value),
                escape(&setting.reason)
            );
        }
    }
    out.push_str("</tbody></table></div></section>\n");
}

fn machine(out: &mut String, results: &Results) {
    let machine = &results.machine;
    let mut systems: Vec<String> = Vec::new();
    for trial in &results.trials {
        let name = format!("{} {}", trial.system.name, trial.system.version);
        if !systems.contains(&name) {
            systems.push(name);
        }
    }
    let facts = [
        ("systems", systems.join(", ")),
        ("pubgauge", machine.pubgauge_version.clone()),
        (
            "processor",
            format!("{}, {} available", machine.cpu_model, machine.cores),
        ),
        ("memory", units::bytes(machine.memory_bytes)),
        (
            "operating system",
            format!("{}, {}", machine.os, machine.kernel),
        ),
        (
            "frequency governor",
            machine
                .governor
                .clone()
                .unwrap_or_else(|| "not told".into()),
        ),
        ("open files allowed", machine.max_open_files.to_string()),
        (
            "load average before the run",
            format!("{:.2}", machine.load_average_1min),
        ),
        ("results format", results.format.clone()),
        ("seed", results.study.seed.to_string()),
    ];
    out.push_str("<section id=\"machine\"><h2>Machine and versions</h2>\n<dl class=\"facts\">\n");
    for (name, value) in facts {
        let _ = writeln!(out, "<dt>{name}</dt><dd>{}</dd>", escape(&value));
    }
    out.push_str("</dl>\n");
    if let Some(calibration) = &machine.calibration {
        let text = serde_json::to_string_pretty(calibration).unwrap_or_default();
        let _ = writeln!(
            out,
            "<details><summary>Calibration of this machine</summary><pre>{}</pre></details>",
            escape(&text)
        );
    }
    out.push_str("</section>\n");
}

/// The data for the charts. JSON in a script element: whatever could end the element or a line
/// is escaped, so that no name can break out.
fn data(out: &mut String, summary: &Summary<'_>, figures: &[Vec<Figure>]) {
    let workloads: Vec<_> = summary
        .workloads
        .iter()
        .zip(figures)
        .map(|(workload, figures)| {
            let cells: Vec<_> = workload
                .cells
                .iter()
                .map(|cell| {
                    json!({
                        "label": cell.label,
                        "colour": cell.system_index,
                        "reference": cell.reference,
                        "status": verdict_name(cell.status()),
                    })
                })
                .collect();
            let measured = workload.cells.iter().map(|c| c.typical().duration_s).fold(0.0, f64::max);
            json!({ "flatOut": workload.flat_out, "cells": cells, "figures": figures, "duration_s": measured })
        })
        .collect();
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
    out.push_str("</script>\n");
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

/// A trial's label over all tables: system and version.
fn system_of(trial: &Trial) -> String {
    format!("{} {}", trial.system.name, trial.system.version)
}
