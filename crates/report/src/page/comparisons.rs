//! Comparisons that the study asked for, on the page.

use maud::{Markup, html};
use pubgauge_figures::Results;
use pubgauge_figures::comparison::Difference;

use super::html::{badge_of, notes, row, table, text};
use crate::comparisons::{Board, ComparisonRow, boards, legend};

/// The section of all comparisons.
pub(super) fn section(results: &Results) -> Markup {
    html! {
        @if !results.comparisons.is_empty() {
            section id="compared" {
                h2 { "Compared" }
                @for board in boards(results) {
                    h3 { (board.title) }
                    (entries(&board))
                    (notes(&board.notes))
                }
                p class="where" { (legend(results)) }
            }
        }
    }
}

fn entries(board: &Board) -> Markup {
    let heads = || board.heads.iter().map(String::as_str);
    let rows = html! {
        @for (name, entries) in &board.rows {
            (row(text(name), heads().zip(entries.iter().map(entry))))
        }
    };
    let all = std::iter::once(board.corner).chain(heads());
    table("limits fold", &board.title, all, rows)
}

fn entry(told: &Option<ComparisonRow>) -> Markup {
    let Some(told) = told else {
        return text("–");
    };
    html! {
        (told.change) " "
        (badge_of(class(told.verdict), &told.why, &told.words))
        br; (told.interval)
    }
}

/// The CSS class of an outcome: that of a similar verdict.
fn class(verdict: Difference) -> &'static str {
    match verdict {
        Difference::Better | Difference::Same => "valid",
        Difference::CannotTell => "unsteady",
        Difference::Worse => "overloaded",
    }
}
