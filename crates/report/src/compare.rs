//! A comparison for the terminal.

use std::fmt::Write as _;

use pubgauge_conclusions::compare::{Comparison, FigureChange, Row, Unit};
use pubgauge_quantities::lists::{self, grouped};
use pubgauge_quantities::shown::{self, digits};
use pubgauge_quantities::stats::MeanInterval;
use pubgauge_quantities::text::fill;

/// Width of the column of figures.
const FIRST: usize = 18;

/// A comparison as a table of at most 80 columns.
pub fn text(comparison: &Comparison) -> String {
    let mut out = String::new();
    for section in &comparison.sections {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}", section.title);
        let _ = writeln!(
            out,
            "  {:<FIRST$}{:>9} {:>9}  {:<26}verdict",
            "figure", "A", "B", "B against A"
        );
        for row in &section.rows {
            line(&mut out, row);
        }
        reasons(&mut out, &section.rows);
        out.push('\n');
    }
    let mut last = String::from("B against A");
    let rows = comparison.sections.iter().flat_map(|s| &s.rows);
    if rows.into_iter().any(|row| row.paired) {
        last.push_str(", repeat by repeat");
    }
    match comparison.intervals {
        0 | 1 => last.push_str(", with its 95 % interval"),
        n => {
            let _ = write!(last, "; the intervals of {n} figures hold together at 95 %");
        }
    }
    let _ = writeln!(
        last,
        ".\nsame: the interval lies within {}; better, worse: it leaves out \"no change\".",
        shown::percent(comparison.margin, 9)
    );
    out + &last
}

fn line(out: &mut String, row: &Row) {
    let shown = |estimate: Option<MeanInterval>| {
        estimate.map_or("-".to_owned(), |e| row.figure.known.unit.format(e.mean))
    };
    let change = change(row);
    let name = &row.figure.name;
    if name.len() >= FIRST {
        let _ = write!(out, "  {name}\n  {:FIRST$}", "");
    } else {
        let _ = write!(out, "  {name:<FIRST$}");
    }
    let _ = writeln!(
        out,
        "{:>9} {:>9}  {change:<26}{}",
        shown(row.a),
        shown(row.b),
        row.verdict
    );
}

/// Why figures are undecided, each reason once with its figures, and how many repeats would help.
fn reasons(out: &mut String, rows: &[Row]) {
    let whys = rows.iter();
    let whys = whys.filter_map(|row| Some((row.why.as_deref()?, &*row.figure.name)));
    let mut write = |words: String| out.push_str(&fill("    ", "      ", &words, 80));
    for (why, names) in grouped(whys) {
        write(format!("{why} ({})", lists::names(names)));
    }
    let of = |row: &Row| {
        Some(format!(
            "{} about {}",
            row.figure.name, row.repeats_to_tell?
        ))
    };
    let more: Vec<String> = rows.iter().filter_map(of).collect();
    if !more.is_empty() {
        write(format!("repeats that would tell: {}", more.join(", ")));
    }
}

/// The change of a figure with its interval: `+13.0 % (+9.1 to +17.0)`; `-` if there is none.
pub fn change(row: &Row) -> String {
    let Some(change) = row.change else {
        return "-".to_owned();
    };
    debug_assert!(change.relative || row.figure.known.unit == Unit::Share || change.effect == 0.0);
    match format_change(change) {
        (effect, interval) if interval.is_empty() => effect,
        (effect, interval) => format!("{effect} ({interval})"),
    }
}

/// A change and its interval: `+13.0 %`, `+9.1 to +17.0`; the latter empty if there is no change at all.
pub fn format_change(change: FigureChange) -> (String, String) {
    if change.effect == 0.0 && change.low == change.high {
        return ("no change".to_owned(), String::new());
    }
    let all = [change.effect, change.low, change.high];
    // More than a hundredfold is easier to read as a factor; all three of them then, or their units would differ.
    let factors = change.relative && all.iter().any(|share| *share > 99.0);
    let [effect, low, high] = all.map(|share| {
        if factors {
            format!("x{}", digits(1.0 + share))
        } else {
            signed(100.0 * share)
        }
    });
    let unit = match (factors, change.relative) {
        (true, _) => "",
        (_, true) => " %",
        // Of shares: a difference in percentage points.
        (_, false) => " pp",
    };
    (format!("{effect}{unit}"), format!("{low} to {high}"))
}

/// Three digits at most, with the sign.
fn signed(value: f64) -> String {
    match value.abs() {
        v if v < 0.005 => "0".to_owned(),
        v if v < 9.995 => format!("{value:+.2}"),
        v if v < 99.95 => format!("{value:+.1}"),
        _ => format!("{value:+.0}"),
    }
}

#[cfg(test)]
mod tests;
