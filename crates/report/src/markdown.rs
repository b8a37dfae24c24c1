//! The answer of the screen in Markdown, for the summary of a step in CI.

use std::fmt::Write as _;

use pubgauge_figures::Results;

use crate::answers::{self, Carries, WorkloadAnswer};
use crate::screen::{Column, columns, decisions, heading, meanings, reasons, row_names, sentences};
use crate::studies::escaped;
use crate::summary::Summary;
use crate::table;
use crate::why;

/// Width at which no line of words is broken.
const UNBROKEN: usize = 100_000;

/// Width of what stays as it is on the terminal.
const FIXED: usize = 100;

/// The indentation of a line that goes on with the list of the line before.
const GOES_ON: &str = "          ";

/// The answer as a heading, a table of rows against workloads, and a list of what is decided and what is not.
pub fn markdown(results: &Results) -> String {
    let summary = Summary::summarize(results);
    let answers: Vec<WorkloadAnswer> = (summary.workloads.iter())
        .map(|workload| answers::of_workload(results, workload))
        .collect();
    let columns = columns(&summary.workloads, &answers);
    let mut out = format!("### {}\n\n", escaped(&heading(results)));
    let mut found = String::new();
    table::findings(&mut found, results, &summary, FIXED);
    code(&mut out, &found);
    if columns.is_empty() && results.searches.is_empty() {
        out.push_str("No trial has been measured.\n\n");
    }
    matrix(&mut out, &columns);
    let mut words = String::new();
    meanings(&mut words, &answers, &columns, UNBROKEN);
    let entries = why::entries(&summary.workloads, &answers);
    reasons(&mut words, results, &entries, UNBROKEN);
    decisions(&mut words, &answers, UNBROKEN);
    sentences(&mut words, results, &summary, UNBROKEN);
    list(&mut out, &words);
    let mut outcomes = String::new();
    table::outcomes(
        &mut outcomes,
        results,
        table::claims_in_full(results),
        FIXED,
    );
    code(&mut out, &outcomes);
    out.truncate(out.trim_end().len());
    out + "\n"
}

fn matrix(out: &mut String, columns: &[Column<'_>]) {
    if columns.is_empty() {
        return;
    }
    out.push_str("| |");
    for column in columns {
        let heading: Vec<String> = column.heading.iter().map(|part| escaped(part)).collect();
        let _ = write!(out, " {} |", heading.join("<br>"));
    }
    let _ = writeln!(out, "\n|---|{}", "---|".repeat(columns.len()));
    for row in row_names(columns) {
        let _ = write!(out, "| {} |", escaped(row));
        for column in columns {
            let text = match column.entry(row) {
                None => "not run".to_owned(),
                Some(entry) => match entry.answer() {
                    (Some(carries @ (Carries::Yes | Carries::No)), brief) => {
                        format!("**{}** {}", carries.as_str(), escaped(brief))
                    }
                    _ => escaped(&entry.to_string()),
                },
            };
            let _ = write!(out, " {text} |");
        }
        out.push('\n');
    }
    out.push('\n');
}

/// Lines of the screen as a list; a line that goes on with another's list gets its lead.
fn list(out: &mut String, words: &str) {
    let mut lead = "";
    for line in words.lines().filter(|line| !line.trim().is_empty()) {
        let text = line.trim();
        let lead_of_line = if line.starts_with(GOES_ON) {
            lead
        } else {
            lead = text.split_inclusive(": ").next().unwrap_or("");
            ""
        };
        let _ = writeln!(out, "- {}", escaped(&format!("{lead_of_line}{text}")));
    }
    out.push('\n');
}

/// Text with columns of its own, as it stands on the terminal.
fn code(out: &mut String, text: &str) {
    let text = text.trim_end();
    if !text.is_empty() {
        let _ = writeln!(out, "```text\n{}\n```\n", text.replace('`', "'"));
    }
}
