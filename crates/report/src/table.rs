//! The result table of the terminal: the answer first, then the figures, then what is not valid
//! and why. Plain text; colour is never needed.

use std::fmt::Write as _;

use pubgauge_results::{Results, Status, Trial};

use crate::summary::{self, Cell, Metric, Summary, Workload};
use crate::units;

/// Narrowest table that can be made.
pub const MINIMUM_WIDTH: usize = 72;

/// Widths of the columns after the system: verdict, deliveries per second, p50, p99, p99.9, lost, broker and
/// client processor time; each with a space before it.
const COLUMNS: [(&str, usize); 8] = [
    ("verdict", 8),
    ("msgs/s", 8),
    ("p50", 7),
    ("p99", 7),
    ("p99.9", 7),
    ("lost", 6),
    ("system", 6),
    ("client", 6),
];

/// The table, no line longer than `width` (at least [`MINIMUM_WIDTH`]) characters.
pub fn table(results: &Results, width: usize) -> String {
    let width = width.max(MINIMUM_WIDTH);
    let summary = Summary::of(results);
    let mut out = String::new();
    if summary.workloads.is_empty() {
        out.push_str("No trial has been measured.\n");
    }
    for workload in &summary.workloads {
        one_workload(&mut out, workload, width);
    }
    not_valid(&mut out, &summary, width);
    unsupported(&mut out, results, width);
    criteria(&mut out, results, width);
    if results.study.cut_off {
        let text = format!(
            "The run was cut off after {} of {} trials.",
            results.trials.len(),
            results.study.planned_trials
        );
        wrapped(&mut out, "", &text, width);
    }
    out
}

fn one_workload(out: &mut String, workload: &Workload<'_>, width: usize) {
    let info = &workload.cells[0].trials[0].workload;
    let words = format!(
        "{} ({} -> {}, {} topic{}, {}, {})",
        plain(&workload.name),
        info.publishers,
        info.subscribers,
        info.topics,
        if info.topics == 1 { "" } else { "s" },
        plain(&info.payload),
        plain(&info.arrivals)
    );
    wrapped(out, "", &words, width);
    for metric in Metric::of(workload) {
        wrapped(
            out,
            "  ",
            &plain(&summary::answer(workload, metric).to_string()),
            width,
        );
    }
    let fixed: usize = COLUMNS.iter().map(|(_, width)| width + 1).sum();
    let first = width - fixed;
    let repeats = workload
        .cells
        .iter()
        .map(|cell| cell.trials.len())
        .max()
        .unwrap_or(0);
    let over = if repeats > 1 {
        format!("mean of {repeats} repeats")
    } else {
        String::new()
    };
    let _ = writeln!(
        out,
        "{:<first$} {:>7} {:>9} {:>23} {:>6} {:>13}",
        format!(" {over}"),
        "",
        "delivered",
        "------- latency -------",
        "",
        "CPU µs/msg"
    );
    let _ = write!(out, "{:<first$}", " system");
    for (at, (name, width)) in COLUMNS.iter().enumerate() {
        let _ = if at == 0 {
            write!(out, " {name:<width$}")
        } else {
            write!(out, " {name:>width$}")
        };
    }
    out.push('\n');
    for cell in &workload.cells {
        row(out, cell, first, width);
    }
    out.push('\n');
}

fn row(out: &mut String, cell: &Cell<'_>, first: usize, width: usize) {
    let mark = if cell.status() == Status::Valid {
        " "
    } else {
        "!"
    };
    let label = format!("{mark}{}", plain(&cell.label));
    let mean = |figure: &dyn Fn(&Trial) -> Option<f64>| cell.estimate(figure).map(|e| e.mean);
    let time = |figure: Option<f64>| figure.map_or("-".to_owned(), units::time);
    let latency = |quantile: f64| time(mean(&|t| Some(t.latency_ns.quotable(quantile)? as f64)));
    let cpu = |figure: Option<f64>| figure.map_or("-".to_owned(), units::digits);
    let lost: u64 = cell.trials.iter().map(|trial| trial.lost).sum();
    let figures = [
        verdict_words(cell),
        mean(&|t| Some(t.delivered_msgs_per_s)).map_or("-".to_owned(), units::rate),
        latency(0.5),
        latency(0.99),
        latency(0.999),
        units::count(lost),
        cpu(mean(&|t| summary::per_message(t.system_cpu_s?, t))),
        cpu(mean(&|t| {
            summary::per_message(t.client_cpu_s.publishers + t.client_cpu_s.subscribers, t)
        })),
    ];
    if label.chars().count() > first {
        wrapped(out, "", &label, width);
        let _ = write!(out, "{:first$}", "");
    } else {
        let _ = write!(out, "{label:<first$}");
    }
    for (at, (figure, (_, width))) in figures.iter().zip(COLUMNS).enumerate() {
        let _ = if at == 0 {
            write!(out, " {figure:<width$}")
        } else {
            write!(out, " {figure:>width$}")
        };
    }
    out.push('\n');
}

/// The verdict in eight letters, with how many repeats it holds for if not for all.
fn verdict_words(cell: &Cell<'_>) -> String {
    let all = cell.trials.len();
    let valid = cell.valid().count();
    if valid > 0 && valid < all {
        return format!("{valid}/{all} ok");
    }
    short(cell.status()).to_owned()
}

fn short(status: Status) -> &'static str {
    match status {
        Status::Valid => "valid",
        Status::ClientBound => "client",
        Status::Unsteady => "unsteady",
        Status::Overloaded => "overload",
        Status::Lossy => "lossy",
        Status::Broken => "broken",
    }
}

fn not_valid(out: &mut String, summary: &Summary<'_>, width: usize) {
    let mut any = false;
    for workload in &summary.workloads {
        for cell in &workload.cells {
            for group in cell.doubtful() {
                if !any {
                    out.push_str("Not valid (!), not to be quoted:\n");
                    any = true;
                }
                let head = format!(
                    "{}, {}{}: {}",
                    plain(&cell.label),
                    plain(&workload.name),
                    group.repeats(cell.trials.len()),
                    name(group.status)
                );
                wrapped(out, "  ", &head, width);
                for reason in &group.trials[0].verdict.reasons {
                    wrapped(out, "    - ", &plain(reason), width);
                }
            }
        }
    }
    if any {
        out.push('\n');
    }
}

fn unsupported(out: &mut String, results: &Results, width: usize) {
    if results.study.unsupported.is_empty() {
        return;
    }
    out.push_str("Not possible:\n");
    for cell in &results.study.unsupported {
        for setting in &cell.settings {
            let text = format!(
                "{}: {} = {}: {}",
                cell.system, setting.setting, setting.value, setting.reason
            );
            wrapped(out, "  - ", &plain(&text), width);
        }
    }
    out.push('\n');
}

fn criteria(out: &mut String, results: &Results, width: usize) {
    if results.study.criteria.is_empty() {
        return;
    }
    out.push_str("Criteria:\n");
    for outcome in &results.study.criteria {
        let met = match outcome.met {
            Some(true) => "met",
            Some(false) => "NOT MET",
            None => "undecided",
        };
        let text = format!("{met}: {} ({})", outcome.criterion, outcome.figures);
        wrapped(out, "  - ", &plain(&text), width);
    }
    out.push('\n');
}

/// The verdict in full.
pub(crate) fn name(status: Status) -> &'static str {
    match status {
        Status::ClientBound => "client-bound",
        Status::Overloaded => "overloaded",
        other => short(other),
    }
}

/// Text without control characters: a hostile name must not drive the terminal.
fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

/// Writes `text` in lines of at most `width` characters, the first after `lead`, the others
/// under it.
fn wrapped(out: &mut String, lead: &str, text: &str, width: usize) {
    let indent = lead.chars().count();
    let room = width.saturating_sub(indent).max(1);
    let mut line = String::new();
    let mut length = 0;
    let mut first = true;
    let mut flush = |line: &mut String, length: &mut usize| {
        let _ = if first {
            writeln!(out, "{lead}{line}")
        } else {
            writeln!(out, "{:indent$}{line}", "")
        };
        first = false;
        line.clear();
        *length = 0;
    };
    for word in text.split(' ') {
        // A word longer than a line is cut: no line may be longer than the table.
        let letters: Vec<char> = word.chars().collect();
        let mut pieces = letters.chunks(room);
        let mut piece: &[char] = pieces.next().unwrap_or(&[]);
        loop {
            let space = usize::from(length > 0);
            if length + space + piece.len() > room {
                flush(&mut line, &mut length);
            } else if space == 1 {
                line.push(' ');
                length += 1;
            }
            line.extend(piece);
            length += piece.len();
            match pieces.next() {
                Some(next) => piece = next,
                None => break,
            }
        }
    }
    if length > 0 {
        flush(&mut line, &mut length);
    }
}
