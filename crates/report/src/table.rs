//! The result table of the terminal: the answer first, then the figures, then what is not valid
//! and why. Plain text; colour is never needed.

use std::fmt::Write as _;

use pubgauge_figures::{Results, Status};
use pubgauge_results::verdict::spoilt_by_others;

use crate::answers::{self, RowAnswer, Win, WorkloadAnswer};
use crate::columns::{PlacedColumn, columns};
use crate::studies::claim_words;
use crate::summary::{Cell, Doubt, Summary, WorkloadCells};
use crate::terminal::{plain, wrapped};
use crate::wins::Outcome;
use crate::{
    brokers, bursts, crowd, device_cost, hosts, network, on_request, setup, shares, windows,
    workload,
};

mod comparisons;
mod searches;

/// Narrowest table that can be made.
pub const MINIMUM_WIDTH: usize = 72;

/// Width of the terminal in characters from which verdicts are written in full.
const FULL_VERDICTS: usize = 120;

/// Smallest width for the names of rows; columns are left out to make room for it.
const SHORTEST_NAME: usize = 10;
const LONGEST_NAME: usize = 26;

/// Columns that are left out where names lack room, in this order; the page has them all.
const DISPENSABLE: [&str; 7] = [
    "p99.99",
    "system memory",
    "p99.9",
    "client CPU",
    "system CPU",
    "reordered",
    "duplicated",
];

/// The largest number of rows with which each says in full why it carries its load.
const IN_FULL: usize = 8;

/// Rows that are not valid: up to this many are shown with all reasons; the next limit is of rows
/// shown.
const DOUBTS_IN_FULL: usize = 6;
const DOUBTS: usize = 12;

/// The table, no line longer than `width` (at least 72) characters.
pub fn table(results: &Results, width: usize) -> String {
    let width = width.max(MINIMUM_WIDTH);
    let summary = Summary::summarize(results);
    let mut out = String::new();
    findings(&mut out, results, &summary, width);
    if summary.workloads.is_empty() && results.searches.is_empty() {
        out.push_str("No trial has been measured.\n");
    }
    for workload in &summary.workloads {
        let answer = answers::of_workload(results, workload);
        wrapped(
            &mut out,
            "",
            &plain(&workload::describe_workload(workload)),
            width,
        );
        carries(&mut out, results, &answer, width);
        wins(&mut out, &answer, width);
        figures(&mut out, results, workload, width);
    }
    networks(&mut out, results, width);
    not_valid(&mut out, &summary, width);
    list(&mut out, "Not possible", unsupported(results), width);
    outcomes(&mut out, results, claims_in_full(results), width);
    out
}

/// The findings of searches and comparisons.
pub(crate) fn findings(out: &mut String, results: &Results, summary: &Summary<'_>, width: usize) {
    searches::section(out, results, summary, width);
    comparisons::section(out, results, width);
}

/// Each claim with its outcome, both figures and the reason.
pub(crate) fn claims_in_full(results: &Results) -> Vec<String> {
    results.claims.iter().map(claim_words).collect()
}

/// Cells that were not measured, criteria and these claims, and how much of the study this is.
pub(crate) fn outcomes(out: &mut String, results: &Results, claims: Vec<String>, width: usize) {
    lists(out, results, claims, width);
    if let Some(scale) = &results.study.scale {
        let text = format!("This is the study at scale {scale}, not as it is written.");
        wrapped(out, "", &text, width);
    }
    if results.study.cut_off {
        let text = format!(
            "The run was cut off after {} of {} trials.",
            results.trials.len(),
            results.study.planned_trials
        );
        wrapped(out, "", &text, width);
    }
}

/// The networks that trials ran on, and what their bare links do.
fn networks(out: &mut String, results: &Results, width: usize) {
    for info in &results.networks {
        out.push_str("Network: ");
        out.push_str(&info.network.describe());
        for words in network::raw(info).into_iter().chain(network::doubt(info)) {
            wrapped(out, "", &plain(&words), width);
        }
        out.push('\n');
    }
}

/// A question with what is asked in words, and whether pubgauge's default is among it; `None`: nothing is asked.
fn question(
    results: &Results,
    (asked, by_default): (&[String], bool),
    question: &str,
) -> Option<String> {
    let why = if by_default {
        format!(" ({})", answers::default_words(results))
    } else {
        String::new()
    };
    let asked = asked.join(", ");
    (!asked.is_empty()).then(|| format!("{question} Asked: {asked}{why}"))
}

/// Whether each row carries its load, by what figure.
fn carries(out: &mut String, results: &Results, answer: &WorkloadAnswer, width: usize) {
    let (open, asked) = ("How much does it carry?", "Does it carry this load?");
    let asked = question(results, (&answer.asked, answer.by_default), asked);
    wrapped(out, " ", &plain(&asked.unwrap_or(open.into())), width);
    let short = answer.rows.len() > IN_FULL;
    for row in &answer.rows {
        let lead = match row.carries {
            Some(carries) => format!("   {:<11} ", carries.as_str()),
            None => "   ".to_owned(),
        };
        let text = format!("{}: {}", row.row, reason_of_row(row, short));
        wrapped(out, &lead, &plain(&text), width);
    }
}

fn reason_of_row(row: &RowAnswer, short: bool) -> String {
    if short {
        return row.figure.clone();
    }
    // The reasons of verdicts are below the tables.
    let parts = [&row.decided_by].into_iter().chain(&row.headroom);
    parts.map(String::as_str).collect::<Vec<_>>().join("; ")
}

fn wins(out: &mut String, answer: &WorkloadAnswer, width: usize) {
    // With a varied load, only wins that are decided.
    let said = |win: &&Win| win.at.is_empty() || win.outcome != Outcome::Nothing;
    if !answer.wins.is_empty() && !answer.wins.iter().any(|win| said(&win)) {
        out.push_str("  no valid figure to compare\n");
    }
    for win in answer.wins.iter().filter(said) {
        let at = match &win.at[..] {
            "" => String::new(),
            at => format!("{at}: "),
        };
        let text = format!("{at}{}: {}", win.what, win.who);
        wrapped(out, "  ", &plain(&text), width);
    }
}

/// The table itself.
fn figures(out: &mut String, results: &Results, workload: &WorkloadCells<'_>, width: usize) {
    let verdict = if width >= FULL_VERDICTS { 12 } else { 8 };
    let mut columns: Vec<PlacedColumn> = columns(workload)
        .into_iter()
        .filter(|column| column.look.from <= width)
        .collect();
    let names = workload
        .cells
        .iter()
        .map(|cell| cell.row.chars().count() + 1);
    let name = names.max().unwrap_or(0).clamp(SHORTEST_NAME, LONGEST_NAME);
    let room = |columns: &[PlacedColumn]| {
        let fixed = columns.iter().map(|c| c.look.width + 1).sum::<usize>() + verdict + 1;
        width.saturating_sub(fixed)
    };
    for dispensable in DISPENSABLE {
        if room(&columns) < name {
            columns.retain(|column| column.look.name != dispensable);
        }
    }
    let first = room(&columns);
    let repeats = workload.cells.iter().map(|cell| cell.trials.len()).max();
    let over = match repeats {
        Some(n) if n > 1 => format!(" mean of {n}"),
        _ => String::new(),
    };
    for (line, [name, judged]) in [[&over[..], ""], [" system", "verdict"]]
        .into_iter()
        .enumerate()
    {
        let heads = columns
            .iter()
            .map(|c| (c.look.head[line].to_owned(), c.look.width));
        one_line(out, name, (judged, verdict), heads, first, width);
    }
    for (at, point) in workload.points.iter().enumerate() {
        if !point.label.is_empty() {
            wrapped(out, " ", &plain(&format!("{}:", point.label)), width);
        }
        for cell in workload.cells_at(at) {
            let mark = if cell.status() == Status::Valid {
                " "
            } else {
                "!"
            };
            let label = format!("{mark}{}", plain(&cell.row));
            let judged = if width >= FULL_VERDICTS {
                verdict_words(cell, Status::as_str)
            } else {
                verdict_words(cell, short)
            };
            let figures = columns.iter().map(|c| (c.entry(cell), c.look.width));
            one_line(out, &label, (&judged, verdict), figures, first, width);
        }
    }
    for sentence in sentences(results, workload)
        .into_iter()
        .chain(crowd::sentence(workload))
    {
        wrapped(out, " ", &plain(&sentence), width);
    }
    out.push('\n');
}

/// The sentences that answer a study of shares, brokers, windows, bursts, counts, hosts or connections.
pub(crate) fn sentences(results: &Results, workload: &WorkloadCells<'_>) -> Vec<String> {
    let cells = || workload.cells.iter();
    let sentences = cells()
        .filter_map(shares::sentence)
        .chain(cells().filter_map(brokers::sentence))
        .chain(cells().flat_map(windows::sentences))
        .chain(cells().flat_map(bursts::sentences))
        .chain(cells().filter_map(on_request::sentence))
        .chain(cells().filter_map(|cell| network::sentence(results, cell)))
        .chain(cells().filter_map(hosts::sentence))
        .chain(cells().filter_map(setup::sentence))
        .chain(cells().filter_map(setup::interruptions))
        .chain(cells().filter_map(setup::comings_and_goings))
        .chain(cells().filter_map(setup::slow_subscribers))
        .chain(cells().filter_map(setup::late_subscribers))
        .chain(cells().filter_map(setup::wills))
        .chain(cells().filter_map(setup::groups))
        .chain(device_cost::sentences(workload));
    sentences.collect()
}

/// One line of the table; a name that is too long has a line of its own.
fn one_line(
    out: &mut String,
    name: &str,
    (judged, verdict): (&str, usize),
    figures: impl Iterator<Item = (String, usize)>,
    first: usize,
    width: usize,
) {
    let mut line = if name.chars().count() > first {
        wrapped(out, "", name, width);
        format!("{:first$}", "")
    } else {
        format!("{name:<first$}")
    };
    let _ = write!(line, " {judged:<verdict$}");
    for (figure, width) in figures {
        let _ = write!(line, " {figure:>width$}");
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

/// The verdict, with the number of repeats that have it, if not all do.
fn verdict_words(cell: &Cell<'_>, word: fn(Status) -> &'static str) -> String {
    let (all, valid) = (cell.trials.len(), cell.valid().count());
    if valid > 0 && valid < all {
        format!("{valid}/{all} ok")
    } else {
        word(cell.status()).to_owned()
    }
}

/// The verdict in at most eight letters.
fn short(status: Status) -> &'static str {
    match status {
        Status::TooShort => "short",
        Status::HostBound => "host",
        Status::SettingBound => "setting",
        Status::ClientBound => "client",
        Status::Overloaded => "overload",
        other => other.as_str(),
    }
}

/// Repeats that are not valid, and why; those that a client host of a given size bounded stand apart: their rates are
/// quoted as those of such a host.
fn not_valid(out: &mut String, summary: &Summary<'_>, width: usize) {
    let groups = summary.doubtful();
    let (bound, doubtful): (Vec<_>, Vec<_>) = groups
        .into_iter()
        .partition(|(_, _, group)| group.status == Status::HostBound);
    let heading = "Bound by the size of a client host (!): rates are those of such a host, latencies are not quoted:";
    with_reasons(out, heading, &bound, width);
    let (crowded, doubtful): (Vec<_>, Vec<_>) = (doubtful.into_iter())
        .partition(|(_, _, group)| group.trials.iter().all(|trial| spoilt_by_others(trial)));
    with_reasons(out, "Not valid (!), not to be quoted:", &doubtful, width);
    if let Some(words) = crowd::not_valid(crowded.iter().map(|(_, _, group)| group)) {
        wrapped(out, "", &words, width);
        out.push('\n');
    }
}

fn with_reasons(
    out: &mut String,
    heading: &str,
    groups: &[(&WorkloadCells<'_>, &Cell<'_>, Doubt<'_>)],
    width: usize,
) {
    if groups.is_empty() {
        return;
    }
    wrapped(out, "", heading, width);
    // A grid may have dozens: then only the first reason of each, and a limited number of groups.
    let reasons = if groups.len() > DOUBTS_IN_FULL {
        1
    } else {
        usize::MAX
    };
    for (workload, cell, group) in groups.iter().take(DOUBTS) {
        let head = format!(
            "{}, {}{}: {}",
            plain(&cell.label),
            plain(&workload.name),
            group.repeats(cell.trials.len()),
            group.status.as_str()
        );
        wrapped(out, "  ", &head, width);
        for reason in group.trials[0].verdict.reasons.iter().take(reasons) {
            wrapped(out, "    - ", &plain(&reason.text), width);
        }
        if let Some(reason) = group.trials[0].verdict.reasons.first() {
            wrapped(out, "    next: ", reason.rule.advice(), width);
        }
    }
    if groups.len() > DOUBTS {
        let _ = writeln!(out, "  and {} more, on the page", groups.len() - DOUBTS);
    }
    out.push('\n');
}

/// Settings that systems cannot have.
fn unsupported(results: &Results) -> impl Iterator<Item = String> {
    results.study.unsupported.iter().flat_map(|cell| {
        let settings = cell.settings.iter();
        settings.map(move |s| format!("{}: {} = {}: {}", cell.system, s.setting, s.value, s.reason))
    })
}

/// Cells that could not be measured, criteria and claims.
fn lists(out: &mut String, results: &Results, claims: Vec<String>, width: usize) {
    let study = &results.study;
    let not_measured = results.not_measured.iter();
    let not_measured = not_measured.map(|cell| format!("{}: {}", cell.cell, cell.reason));
    list(out, "Not measured", not_measured, width);
    let criteria = study.criteria.iter().map(|outcome| {
        let met = match outcome.met {
            Some(true) => "met",
            Some(false) => "NOT MET",
            None => "undecided",
        };
        format!("{met}: {} ({})", outcome.criterion, outcome.figures)
    });
    list(out, "Criteria", criteria, width);
    list(out, "Claims", claims.into_iter(), width);
}

/// Lines under a heading; nothing without lines.
fn list(out: &mut String, heading: &str, lines: impl Iterator<Item = String>, width: usize) {
    let mut lines = lines.peekable();
    if lines.peek().is_none() {
        return;
    }
    let _ = writeln!(out, "{heading}:");
    for line in lines {
        wrapped(out, "  - ", &plain(&line), width);
    }
    out.push('\n');
}
