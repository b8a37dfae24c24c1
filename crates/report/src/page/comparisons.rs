//! Comparisons that the study asked for, on the page.

use std::fmt::Write as _;

use pubgauge_results::Results;
use pubgauge_results::comparison::Outcome;

use super::html::{END_TABLE, badge_of, begin_table, escape, notes, row};
use crate::comparisons::{Told, boards, legend};

/// Writes the section of all comparisons.
pub(super) fn section(out: &mut String, results: &Results) {
    if results.comparisons.is_empty() {
        return;
    }
    out.push_str("<section id=\"compared\"><h2>Compared</h2>\n");
    for board in boards(results) {
        let _ = writeln!(out, "<h3>{}</h3>", escape(&board.title));
        let heads = std::iter::once(board.corner).chain(board.heads.iter().map(String::as_str));
        let heads = heads.map(|head| (head, ""));
        begin_table(out, "limits fold", &board.title, heads);
        for (name, cells) in &board.rows {
            let heads = board.heads.iter().map(String::as_str);
            row(out, &escape(name), heads.zip(cells.iter().map(entry)));
        }
        out.push_str(END_TABLE);
        notes(out, &board.notes);
    }
    let _ = writeln!(
        out,
        "<p class=\"where\">{}</p>\n</section>",
        escape(&legend(results))
    );
}

fn entry(told: &Option<Told>) -> String {
    let Some(told) = told else {
        return "–".to_owned();
    };
    let badge = badge_of(class(told.verdict), &told.why, &told.verdict.to_string());
    let (change, interval) = (escape(&told.change), escape(&told.interval));
    format!("{change} {badge}<br>{interval}")
}

/// The CSS class of an outcome: that of a similar verdict.
fn class(verdict: Outcome) -> &'static str {
    match verdict {
        Outcome::Better | Outcome::Same => "valid",
        Outcome::CannotTell => "unsteady",
        Outcome::Worse => "overloaded",
    }
}
