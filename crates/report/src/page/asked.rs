//! The demands on a load.

use maud::{Markup, html};
use pubgauge_figures::Results;

use crate::answers::{self, WorkloadAnswer};

/// The criteria, and the workloads that they apply to.
pub(super) fn demands(results: &Results, answer: &WorkloadAnswer, of: &str) -> Markup {
    show_demands(results, &answer.asked, answer.by_default, of)
}

/// Shows criteria in words, and whether pubgauge's default is among them.
pub(super) fn show_demands(
    results: &Results,
    asked: &[String],
    by_default: bool,
    of: &str,
) -> Markup {
    let asked = asked.join(" · ").replace("<=", "≤").replace(">=", "≥");
    html! {
        p class="where" {
            "Asked"
            @if !of.is_empty() { " of " (of) }
            @if asked.is_empty() {
                ": nothing; flat out shows how much is carried."
            } @else {
                ": " b { (asked) }
                @if by_default { " (" (answers::default_words(results)) ")" }
            }
        }
    }
}
