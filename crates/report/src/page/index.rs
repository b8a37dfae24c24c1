//! One page over several studies.

use std::fmt::Write as _;

use maud::{Markup, html};
use pubgauge_figures::studies::{OutcomeCounts, Studies, StudyOutcome};

use super::claims::{ShownClaim, anchor, article, drawn, with_figures};
use super::frame::{self, Document};
use super::html::{non_empty, row, table, text};
use crate::studies::{name, state, title};

/// Name of the page of each run, beside its results.
const PAGE: &str = "report.html";

/// A study with its place on the page.
struct Numbered<'a> {
    study: &'a StudyOutcome,
    id: String,
    claims: Vec<ShownClaim<'a>>,
}

/// The page: what papers say, and what holds here; of studies without claims, their answers. One HTML file that
/// needs no other file. It links to the pages of the studies, which are in folders beside it.
pub fn index(studies: &Studies) -> String {
    let begun = studies.studies.iter().map(|study| study.started.as_str());
    let started = begun.filter(|s| !s.is_empty()).min().unwrap_or_default();
    let mut machines: Vec<&str> = studies.studies.iter().map(|s| s.machine.as_str()).collect();
    machines.retain(|machine| !machine.is_empty());
    machines.dedup();
    let numbered = |(study, nth): (_, u32)| numbered(study, nth);
    let all: Vec<Numbered<'_>> = studies.studies.iter().zip(1..).map(numbered).collect();
    let document = Document {
        name: &title(studies),
        started,
        first: "studies",
        header: html! {
            p class="where" {
                (frame::time(started)) " · " (machines.join("; ")) span id="file" {}
            }
        },
        sections: html! {
            (overview(&all))
            (contents(&all))
            @for study in &all { (section(study)) }
        },
        drawn: drawn(all.iter().flat_map(|study| &study.claims)),
    };
    document.text()
}

fn numbered(study: &StudyOutcome, nth: u32) -> Numbered<'_> {
    let id = format!("p{nth}");
    Numbered {
        study,
        claims: with_figures(&study.claims, &format!("{id}-")),
        id,
    }
}

impl Numbered<'_> {
    fn link(&self) -> Markup {
        html! { a href={ "#" (self.id) } { (name(self.study)) } }
    }
}

/// How many claims of each study have each outcome.
fn overview(all: &[Numbered<'_>]) -> Markup {
    let outcomes = OutcomeCounts::default()
        .named_counts()
        .map(|(word, _)| word);
    let heads = ["study"].into_iter().chain(outcomes).chain(["trials"]);
    let entries = |counts: OutcomeCounts, trials: String| {
        let words = counts
            .named_counts()
            .map(|(word, count)| match counts.total() {
                0 => (word, text("–")),
                _ => (word, text(count.to_string())),
            });
        words.into_iter().chain([("trials", text(trials))])
    };
    let trials = |study: &StudyOutcome| match (study.trials, study.planned_trials) {
        (all, planned) if all == planned => all.to_string(),
        (some, planned) => format!("{some} of {planned}"),
    };
    let rows = html! {
        @for of in all {
            (row(of.link(), entries(of.study.counts, trials(of.study))))
        }
        @if all.len() > 1 {
            @let counts = OutcomeCounts::count(all.iter().flat_map(|of| &of.study.claims));
            @let trials: u32 = all.iter().map(|of| of.study.trials).sum();
            (row(text("all"), entries(counts, trials.to_string())))
        }
    };
    html! {
        section id="studies" {
            h2 { "Studies" }
            (table("fold limits", "Studies", heads, rows))
        }
    }
}

fn contents(all: &[Numbered<'_>]) -> Markup {
    html! {
        nav class="contents" aria-label="Contents" {
            ul {
                li { a href="#studies" { "Studies" } }
                @for study in all { li { (study.link()) } }
            }
        }
    }
}

/// A study: its claims with links into its own page, or its answers.
fn section(Numbered { study, id, claims }: &Numbered<'_>) -> Markup {
    // A study that has not begun has no page.
    let page = (!study.started.is_empty()).then(|| format!("{}/{PAGE}", in_url(&study.folder)));
    let claim_name = |claim: &str| match &page {
        Some(page) => html! { a href={ (page) "#" (anchor(claim)) } { (claim) } },
        None => text(claim),
    };
    html! {
        section id=(id) {
            h2 { (name(study)) }
            @if let Some(question) = &study.question { p { (question) } }
            @if let Some(state) = non_empty(&state(study)) {
                p class="failed" role="note" { (state) }
            }
            @if let Some(page) = &page {
                p class="where" {
                    (study.systems.join(", ")) " · " a href=(page) { "page of this study" }
                }
            }
            @for shown in claims {
                @let claim = &shown.claim.id;
                (article(shown, &format!("{id}-{}", anchor(claim)), claim_name(claim)))
            }
            @if !study.answers.is_empty() {
                ul { @for answer in &study.answers { li { (answer) } } }
            }
        }
    }
}

/// The name of a folder as a part of a URL, with percent-encoding (RFC 3986).
pub fn in_url(folder: &str) -> String {
    let mut out = String::new();
    for byte in folder.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(byte as char)
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
