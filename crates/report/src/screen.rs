//! The answer of a run on one screen of the terminal: a matrix of systems and workloads, what its words mean, what is decided,
//! why the rest is not, and where to go on. The [table](crate::table()) has the figures behind it.

use std::fmt::{self, Write as _};

use pubgauge_conclusions::answer::TrialCounts;
use pubgauge_figures::Results;
use pubgauge_figures::claim::ClaimOutcome;
use pubgauge_figures::model::Excess;
use pubgauge_figures::studies::OutcomeCounts;
use pubgauge_quantities::lists::{grouped, names, unique};
use pubgauge_quantities::shown;

use crate::answers::{self, Carries, FlowAnswer, RowAnswer, WorkloadAnswer};
use crate::crowd;
use crate::studies;
use crate::summary::{Bound, Cell, Summary, WorkloadCells};
use crate::table::{self, MINIMUM_WIDTH};
use crate::terminal::{plain, wrapped};
use crate::why::{self, Entry};
use crate::wins::Outcome;

/// Spaces between columns.
const GAP: usize = 2;

/// Width beyond which the heading of a column continues on the next line.
const HEADING: usize = 18;

/// Rows of the matrix of which each *no* is explained, and causes of what cannot be told that are explained.
const EXPLAINED: usize = 3;

/// Claims of which each has its reason; of more, those that are decided are told in a line each, as far as there is room.
const CLAIMS: usize = 3;
const DECIDED: usize = 8;

/// Flows of a workload that have columns of their own.
const FLOWS: usize = 6;

/// Entries of a matrix with more gaps than entries.
const LISTED: usize = 18;

/// Largest number of sentences about parts of a workload; with more they are in the table alone.
const SENTENCES: usize = 6;

/// Where the run can be seen, and how it can go on.
#[derive(Clone, Debug, Default)]
pub struct Onward {
    /// Path of the page.
    pub page: Option<String>,
    /// A command, and what it tells.
    pub next: Option<(String, &'static str)>,
}

/// The answer, no line longer than `width` (at least 72) characters but for paths and commands, which are to be copied.
pub fn screen(results: &Results, width: usize, onward: &Onward) -> String {
    let width = width.max(MINIMUM_WIDTH);
    let summary = Summary::summarize(results);
    let answers: Vec<WorkloadAnswer> = (summary.workloads.iter())
        .map(|workload| answers::of_workload(results, workload))
        .collect();
    let mut out = String::new();
    wrapped(&mut out, "", &plain(&heading(results)), width);
    out.push('\n');
    table::findings(&mut out, results, &summary, width);
    if summary.workloads.is_empty() && results.searches.is_empty() {
        out.push_str("No trial has been measured.\n");
    }
    let columns = columns(&summary.workloads, &answers);
    matrix(&mut out, &columns, width);
    meanings(&mut out, &answers, &columns, width);
    let entries = why::entries(&summary.workloads, &answers);
    reasons(&mut out, results, &entries, width);
    decisions(&mut out, &answers, width);
    sentences(&mut out, results, &summary, width);
    table::outcomes(&mut out, results, claims(results), width);
    onward_lines(&mut out, onward, width);
    out
}

/// The study, its trials, and the machine with what others had of it.
pub(crate) fn heading(results: &Results) -> String {
    let trials: Vec<_> = results.standing().collect();
    let mut parts = vec![
        results.study.name.clone(),
        shown::so_many(trials.len() as u64, "trial"),
    ];
    let TrialCounts { valid, all, .. } = TrialCounts::new(results);
    if valid < all {
        parts.push(format!("{valid} valid"));
    }
    if let Some(first) = trials.first() {
        let others = trials.iter().filter_map(|t| t.worker_load.machine_others);
        let used = others.reduce(f64::max).map_or(String::new(), |most| {
            format!(", others used up to {most:.2} of them")
        });
        let processors = shown::three_decimals(first.circumstances.processors());
        parts.push(format!("{processors} processors{used}"));
    }
    parts.join(" · ")
}

/// One workload at one point of a varied load, or one of its flows there.
pub(crate) struct Column<'a> {
    /// Its name, and what else is known of it, in lines.
    pub heading: Vec<String>,
    /// The rows that ran it.
    cells: Vec<(&'a Cell<'a>, &'a RowAnswer)>,
    /// Which flow it is about; absent: all of them together.
    flow: Option<usize>,
}

impl<'a> Column<'a> {
    /// The answer of a row; absent if it did not run this.
    pub fn entry(&self, row: &str) -> Option<MatrixEntry<'a>> {
        let (_, answer) = self.cells.iter().find(|(cell, _)| cell.row == row)?;
        Some(match self.flow {
            None => MatrixEntry::Row(answer),
            Some(flow) => MatrixEntry::Flow(answer.flows.get(flow)?),
        })
    }

    /// Its entries in the order of `rows`.
    fn entries(&self, rows: &[&str]) -> Vec<String> {
        let words = |entry: MatrixEntry<'_>| entry.to_string();
        let entry = |row: &&str| self.entry(row).map_or("not run".to_owned(), words);
        rows.iter().map(entry).collect()
    }
}

pub(crate) fn columns<'a>(
    workloads: &'a [WorkloadCells<'a>],
    answers: &'a [WorkloadAnswer],
) -> Vec<Column<'a>> {
    let each = workloads.iter().zip(answers);
    let columns = each.flat_map(|(workload, answer)| {
        let points = workload.points.iter().enumerate();
        points.flat_map(move |(number, point)| {
            let rows = workload.cells.iter().zip(&answer.rows);
            let cells: Vec<_> = rows.filter(|(cell, _)| cell.point == number).collect();
            let first = cells.first().map(|(cell, _)| *cell);
            let load = match &point.label[..] {
                "" => first.map_or(String::new(), load_words),
                label => label.to_owned(),
            };
            let mut heading = Vec::new();
            for part in [&workload.name, &load] {
                heading.extend(folded(&plain(part), HEADING));
            }
            let flows = cells.first().map_or(&[][..], |(_, row)| &row.flows);
            let flows = flows.iter().take(FLOWS).enumerate();
            let each: Vec<Column<'_>> = flows
                .map(|(nth, flow)| Column {
                    heading: folded(&plain(&flow.flow), HEADING),
                    cells: cells.clone(),
                    flow: Some(nth),
                })
                .collect();
            let flow = None;
            [Column {
                heading,
                cells,
                flow,
            }]
            .into_iter()
            .chain(each)
        })
    });
    columns.collect()
}

/// The load of a workload that has one: `100 -> 1, 1000/s`.
fn load_words(cell: &Cell<'_>) -> String {
    let workload = &cell.trials[0].workload;
    if workload.publishers == 0 {
        return shown::so_many(workload.subscribers.into(), "idle client");
    }
    format!(
        "{} -> {}, {}",
        workload.publishers, workload.subscribers, workload.arrivals
    )
}

/// Text in lines of at most `width` characters.
fn folded(text: &str, width: usize) -> Vec<String> {
    let mut lines = String::new();
    wrapped(&mut lines, "", text, width);
    lines.lines().map(str::to_owned).collect()
}

/// One entry of the matrix: `yes  p99 0.32 ms`, `cannot tell`, `130 k/s`.
#[derive(Clone, Copy)]
pub(crate) enum MatrixEntry<'a> {
    Row(&'a RowAnswer),
    Flow(&'a FlowAnswer),
}

impl MatrixEntry<'_> {
    /// Whether the load is carried, and the figure that says so.
    pub fn answer(&self) -> (Option<Carries>, &str) {
        match self {
            MatrixEntry::Row(row) => (row.carries, &row.brief),
            MatrixEntry::Flow(flow) => (flow.carries, &flow.brief),
        }
    }
}

impl fmt::Display for MatrixEntry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.answer(), self) {
            ((Some(Carries::CannotTell), _), _) => f.write_str(Carries::CannotTell.as_str()),
            ((Some(carries), brief), _) => write!(f, "{:<4}{brief}", carries.as_str()),
            ((None, brief), MatrixEntry::Flow(_)) => f.write_str(brief),
            ((None, brief), MatrixEntry::Row(row)) => match row.carried {
                Some(carried) => write!(f, "{brief}{}", mark(carried.bound)),
                None => f.write_str(&row.figure),
            },
        }
    }
}

/// The mark of a rate that is not what the system can deliver at the most; a lower bound has words of its own.
fn mark(bound: Bound) -> &'static str {
    match bound {
        Bound::Exact | Bound::AtLeast | Bound::SettingBound => "",
        Bound::HostBound => " of a host",
        Bound::UnderOverload => " overloaded",
    }
}

/// The meaning of a [`mark`], or of the words of a lower bound.
fn mark_words(bound: Bound) -> Option<&'static str> {
    match bound {
        Bound::Exact => None,
        Bound::HostBound => {
            Some("of a host: the size of a client host was the limit, not the system")
        }
        Bound::AtLeast => Some("or more: this machine or the client was the limit, not the system"),
        Bound::SettingBound => Some("or more: a window of the settings was the limit (in-flight)"),
        Bound::UnderOverload => Some("overloaded: more was sent than the system could carry"),
    }
}

/// The rows of the matrix.
pub(crate) fn row_names<'a>(columns: &[Column<'a>]) -> Vec<&'a str> {
    let cells = columns.iter().flat_map(|column| &column.cells);
    unique(cells.map(|(cell, _)| cell.row.as_str()))
}

/// Rows against workloads, in as many blocks as the width takes; where most rows ran few of the workloads, a line for each
/// that they ran.
fn matrix(out: &mut String, columns: &[Column<'_>], width: usize) {
    let rows = row_names(columns);
    let cells: usize = columns.iter().map(|column| column.cells.len()).sum();
    if 2 * cells <= rows.len() * columns.len() {
        return list_of_cells(out, columns, width);
    }
    let first = rows
        .iter()
        .map(|row| row.chars().count())
        .max()
        .unwrap_or(0)
        .min(width / 3);
    let widths: Vec<usize> = (columns.iter())
        .map(|column| {
            let entries = column.entries(&rows);
            let all = column.heading.iter().chain(&entries);
            all.map(|text| text.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let mut from = 0;
    while from < columns.len() {
        let mut to = from + 1;
        let mut used = 1 + first + GAP + widths[from];
        while to < columns.len() && used + GAP + widths[to] <= width {
            used += GAP + widths[to];
            to += 1;
        }
        block(
            out,
            &columns[from..to],
            &rows,
            (first, &widths[from..to]),
            width,
        );
        from = to;
    }
}

/// A line for each entry: workload, load, row.
fn list_of_cells(out: &mut String, columns: &[Column<'_>], width: usize) {
    let lines = columns.iter().flat_map(|column| {
        let name = column.heading.join(" ");
        let cells = column.cells.iter();
        let row = |cell: &Cell<'_>| (format!("{name}, {}", cell.row), column.entry(&cell.row));
        let entries: Vec<_> = cells.map(|(cell, _)| row(cell)).collect();
        entries.into_iter()
    });
    let lines = lines.filter_map(|(name, entry)| Some((name, entry?.to_string())));
    let lines: Vec<(String, String)> = lines.collect();
    let longest = lines.iter().map(|(name, _)| name.chars().count()).max();
    let first = longest.unwrap_or(0).min(width * 2 / 3);
    for (name, entry) in lines.iter().take(LISTED) {
        let name = plain(name);
        if name.chars().count() > first {
            wrapped(out, " ", &name, width);
            let _ = writeln!(out, " {:first$}  {}", "", plain(entry));
        } else {
            let _ = writeln!(out, " {name:<first$}  {}", plain(entry));
        }
    }
    if lines.len() > LISTED {
        let more = lines.len() - LISTED;
        let _ = writeln!(out, " and {more} more rows (-v, or the page)");
    }
    out.push('\n');
}

/// The claims briefly: of a few each with its reason, of many their numbers and those that are decided.
fn claims(results: &Results) -> Vec<String> {
    let words = |claim: &ClaimOutcome| {
        format!(
            "{} {}: {}",
            claim.id,
            claim.outcome.as_str(),
            claim.sentence
        )
    };
    let all = &results.claims;
    if all.len() <= CLAIMS {
        let each = all.iter().map(|claim| match claim.reason.as_str() {
            "" => words(claim),
            why => format!("{} ({why})", words(claim)),
        });
        return each.collect();
    }
    let decided = all.iter().filter(|claim| claim.outcome.is_answer());
    let mut lines: Vec<String> = decided.map(words).collect();
    let more = lines.len().saturating_sub(DECIDED);
    lines.truncate(DECIDED);
    if more > 0 {
        lines.push(format!("and {more} more that are decided"));
    }
    let counts = studies::outcomes(OutcomeCounts::count(all));
    lines.push(format!(
        "in all: {counts} (-v, or the page, has the figures)"
    ));
    lines
}

fn block(
    out: &mut String,
    columns: &[Column<'_>],
    rows: &[&str],
    (first, widths): (usize, &[usize]),
    width: usize,
) {
    let mut one_line = |name: &str, entries: Vec<&str>| {
        let name = plain(name);
        let mut line = format!(" {name:<first$}");
        if name.chars().count() > first {
            wrapped(out, " ", &name, width);
            line = format!(" {:first$}", "");
        }
        for (entry, width) in entries.into_iter().zip(widths) {
            let _ = write!(line, "{:GAP$}{:<width$}", "", plain(entry));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    };
    let lines = columns.iter().map(|column| column.heading.len()).max();
    for line in 0..lines.unwrap_or(0) {
        let parts = columns
            .iter()
            .map(|column| column.heading.get(line).map_or("", |part| &**part));
        one_line("", parts.collect());
    }
    let entries: Vec<Vec<String>> = columns.iter().map(|column| column.entries(rows)).collect();
    for (number, row) in rows.iter().enumerate() {
        one_line(row, entries.iter().map(|column| &*column[number]).collect());
    }
    out.push('\n');
}

/// The excesses of these cells' latencies, each once.
pub(crate) fn excesses<'a>(cells: impl Iterator<Item = &'a Cell<'a>>) -> Vec<Excess> {
    let trials = cells.flat_map(|cell| &cell.trials);
    unique(trials.filter_map(|trial| trial.verdict.excess()))
}

/// The demands, and the meaning of the marks at rates.
pub(crate) fn meanings(
    out: &mut String,
    answers: &[WorkloadAnswer],
    columns: &[Column<'_>],
    width: usize,
) {
    let asked = answers.iter().filter(|answer| !answer.asked.is_empty());
    let groups = grouped(asked.map(|answer| ((&answer.asked, answer.by_default), answer)));
    let several = groups.len() > 1;
    for ((asked, by_default), alike) in groups {
        let of = if several {
            format!(" ({})", names(alike.iter().map(|answer| &*answer.workload)))
        } else {
            String::new()
        };
        let by_default = if by_default {
            " (pubgauge's default)".to_owned()
        } else {
            String::new()
        };
        let text = format!("{}{of}{by_default}", asked.join(", "));
        wrapped(out, " yes: ", &plain(&text), width);
    }
    let cells = || columns.iter().flat_map(|column| &column.cells);
    let yes = cells().filter(|(_, row)| row.carries == Some(Carries::Yes));
    for excess in excesses(yes.map(|(cell, _)| *cell)) {
        wrapped(out, " <=: ", excess.meaning(), width);
    }
    let rates = cells().filter(|(_, row)| row.carries.is_none());
    let marks = rates.filter_map(|(_, row)| mark_words(row.carried?.bound));
    for words in unique(marks) {
        wrapped(out, " ", words, width);
    }
}

/// Why the answer is *no*, or cannot be told, one line for a cause.
pub(crate) fn reasons(out: &mut String, results: &Results, entries: &[Entry<'_>], width: usize) {
    let refused = why::refused(entries);
    for entry in refused.iter().take(EXPLAINED) {
        wrapped(out, " no: ", &plain(&entry.refusal()), width);
    }
    note_unexplained(out, refused.len(), "rows");
    if let Some(words) = crowd::spoilt_trials(results) {
        wrapped(out, " ", &words, width);
    }
    let causes = why::causes(entries);
    for cause in causes.iter().take(EXPLAINED) {
        let lead = if cause.is_answer {
            " cannot tell: "
        } else {
            " "
        };
        wrapped(out, lead, &plain(&cause.words), width);
    }
    note_unexplained(out, causes.len(), "causes");
}

/// Says how many are not explained.
fn note_unexplained(out: &mut String, all: usize, noun: &str) {
    if all > EXPLAINED {
        let _ = writeln!(
            out,
            " and {} more {noun} (-v, or the page)",
            all - EXPLAINED
        );
    }
}

/// Who is best at what, where that is decided, and what is not.
pub(crate) fn decisions(out: &mut String, answers: &[WorkloadAnswer], width: usize) {
    let several = answers.len() > 1;
    let wins = || {
        answers
            .iter()
            .flat_map(|answer| answer.wins.iter().map(move |win| (answer, win)))
    };
    // Of a single row there is nobody to be better than.
    let rows = answers
        .iter()
        .flat_map(|answer| &answer.rows)
        .map(|row| row.row.as_str());
    let is_told = |outcome| matches!(outcome, Outcome::Decided | Outcome::Bounded | Outcome::Open);
    if unique(rows).len() < 2 || !wins().any(|(_, win)| is_told(win.outcome)) {
        return;
    }
    out.push('\n');
    for (outcome, lead) in [
        (Outcome::Decided, " decided: "),
        (Outcome::Bounded, " bounded: "),
    ] {
        let of_outcome = wins().filter(|(_, win)| win.outcome == outcome);
        let places = grouped(of_outcome.map(|(answer, win)| ((&answer.workload, &win.at), win)));
        for (number, ((workload, at), wins)) in places.into_iter().enumerate() {
            let place = [several.then_some(workload.as_str()), Some(at)];
            let place = place.into_iter().flatten().filter(|part| !part.is_empty());
            let place: Vec<&str> = place.collect();
            let wins = wins.into_iter().map(|win| {
                let who = win.lead.as_ref().unwrap_or(&win.who);
                format!("{} {who}", win.what)
            });
            let wins: Vec<String> = wins.collect();
            let place = if place.is_empty() {
                String::new()
            } else {
                place.join(", ") + ": "
            };
            let lead = if number == 0 { lead } else { "          " };
            wrapped(out, lead, &plain(&(place + &wins.join("; "))), width);
        }
    }
    if let Some(words) = why::open_contests(answers) {
        wrapped(out, " open: ", &plain(&words), width);
    }
}

/// The sentences that answer a study of bursts, windows, brokers or connections.
pub(crate) fn sentences(out: &mut String, results: &Results, summary: &Summary<'_>, width: usize) {
    let workloads = summary.workloads.iter();
    let all: Vec<String> = workloads
        .flat_map(|workload| table::sentences(results, workload))
        .collect();
    if all.is_empty() {
        return;
    }
    out.push('\n');
    // Claims are the answer of a study that has some.
    let most = match &results.claims[..] {
        [] => SENTENCES,
        _ => 0,
    };
    for sentence in all.iter().take(most) {
        wrapped(out, " ", &plain(sentence), width);
    }
    if all.len() > most {
        let more = if most > 0 { "more such" } else { "more" };
        let lines = shown::so_many((all.len() - most) as u64, "line");
        let lines = lines.replacen(' ', &format!(" {more} "), 1);
        let _ = writeln!(out, " and {lines} (-v, or the page)");
    }
}

fn onward_lines(out: &mut String, onward: &Onward, width: usize) {
    let trimmed = out.trim_end().len();
    out.truncate(trimmed);
    out.push_str("\n\n");
    if let Some(page) = &onward.page {
        let _ = writeln!(out, "page: {}", plain(page));
    }
    if let Some((command, why)) = &onward.next {
        let command = plain(command);
        let line = format!("next: {command}  ({why})");
        if line.chars().count() <= width {
            out.push_str(&line);
        } else {
            let _ = write!(out, "next: {command}\n      ({why})");
        }
        out.push('\n');
    }
}
