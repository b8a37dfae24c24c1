//! What was asked of a load.

use std::fmt::Write as _;

use pubgauge_results::Results;

use super::html::escape;
use crate::answers::{self, WorkloadAnswer};

/// The criteria, and the workloads that they apply to.
pub(super) fn demands(out: &mut String, results: &Results, answer: &WorkloadAnswer, of: &str) {
    asked(out, results, (&answer.asked, answer.by_default), of);
}

/// The same for criteria in words, and whether pubgauge's default is among them.
pub(super) fn asked(
    out: &mut String,
    results: &Results,
    (asked, by_default): (&[String], bool),
    of: &str,
) {
    let of = match of {
        "" => String::new(),
        of => format!(" of {}", escape(of)),
    };
    let asked = escape(&asked.join(" · "))
        .replace("&lt;=", "≤")
        .replace("&gt;=", "≥");
    let _ = match (&asked[..], by_default) {
        ("", _) => writeln!(
            out,
            "<p class=\"where\">Asked{of}: nothing; flat out shows how much is carried.</p>"
        ),
        (asked, false) => writeln!(out, "<p class=\"where\">Asked{of}: <b>{asked}</b></p>"),
        (asked, true) => {
            let why = escape(answers::default_words(results));
            writeln!(
                out,
                "<p class=\"where\">Asked{of}: <b>{asked}</b> ({why})</p>"
            )
        }
    };
}
