//! Claims about the systems, and their outcomes: on the page of a study, and on that of several.

use maud::{Markup, html};
use pubgauge_figures::Results;
use pubgauge_figures::claim::{ClaimOutcome, ClaimVerdict};
use pubgauge_quantities::lists::unique;

use super::chart::one_chart;
use super::drawn::Drawn;
use super::html::{badge_of, text};
use crate::charts::Chart;
use crate::charts::claims::of_claim;

/// A claim and its figures.
pub(super) struct ShownClaim<'a> {
    pub(super) claim: &'a ClaimOutcome,
    pub(super) figures: Vec<Chart>,
}

/// Claims with their figures, whose ids begin with `prefix`.
pub(super) fn with_figures<'a>(claims: &'a [ClaimOutcome], prefix: &str) -> Vec<ShownClaim<'a>> {
    let each = claims.iter().zip(1..);
    let shown = |(claim, nth): (&'a ClaimOutcome, u32)| ShownClaim {
        claim,
        figures: of_claim(claim, &format!("{prefix}c{nth}")),
    };
    each.map(shown).collect()
}

/// The anchor of a claim on the page of its study.
pub(super) fn anchor(id: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let id: String = id.chars().map(|c| if fits(c) { c } else { '-' }).collect();
    format!("claim-{id}")
}

/// An outcome as a badge, explained on hover.
fn badge(outcome: ClaimVerdict) -> Markup {
    const IN_PART: &str = "Some parts hold; others do not, or could not be judged.";
    let (class, meaning) = match outcome {
        ClaimVerdict::Holds => (
            "valid",
            "Every interval that decides lies where the claim says.",
        ),
        ClaimVerdict::HoldsInPart => ("aside", IN_PART),
        ClaimVerdict::Depends => (
            "aside",
            "It holds for some implementations, and not for others.",
        ),
        ClaimVerdict::OfVersion => (
            "aside",
            "It does not hold of this version; the one that it is about did it another way.",
        ),
        ClaimVerdict::DoesNotHold => (
            "broken",
            "An interval lies where the claim says it does not.",
        ),
        ClaimVerdict::StandInHolds => (
            "valid",
            "It holds for what stands in for the system or the recording that it is about.",
        ),
        ClaimVerdict::StandInHoldsInPart => ("aside", IN_PART),
        ClaimVerdict::StandInDoesNotHold => (
            "broken",
            "It does not hold for what stands in for the system or the recording that it is about.",
        ),
        ClaimVerdict::CannotTell => ("unsteady", "Neither could be shown."),
        ClaimVerdict::NotApplicable => ("aside", "It is about something that is not here."),
    };
    badge_of(class, meaning, outcome.as_str())
}

/// The study's claims: each sentence, its rule, both figures, and the chart that decides.
pub(super) fn section(results: &Results) -> Markup {
    html! {
        @if !results.claims.is_empty() {
            section id="claims" {
                h2 { "Claims" }
                @for shown in with_figures(&results.claims, "") {
                    @let id = &shown.claim.id;
                    (article(&shown, &anchor(id), text(id)))
                }
            }
        }
    }
}

/// One claim.
pub(super) fn article(shown: &ShownClaim<'_>, id: &str, name: Markup) -> Markup {
    let claim = shown.claim;
    let said = [
        ("stand-in", &claim.stand_in),
        ("papers", &claim.papers),
        ("ours", &claim.ours),
        ("why", &claim.reason),
        ("would change it", &claim.would_change),
        ("rule", &claim.rule),
    ];
    html! {
        article class="claim" id=(id) {
            div {
                h3 { (name) " " (badge(claim.outcome)) }
                p { (claim.sentence) " " small { (claim.source) } }
                dl {
                    @for (what, words) in said.into_iter().filter(|(_, words)| !words.is_empty()) {
                        dt { (what) }
                        dd { (words) }
                    }
                }
            }
            @if !shown.figures.is_empty() {
                div { @for figure in &shown.figures { (one_chart(figure, &claim.id, false)) } }
            }
        }
    }
}

/// The charts of claims: each has a cell for each of its sides.
pub(super) fn drawn<'a>(shown: impl IntoIterator<Item = &'a ShownClaim<'a>>) -> Vec<Drawn<'a>> {
    let figures = shown.into_iter().flat_map(|shown| &shown.figures);
    let drawn = figures.map(|figure| {
        let sides = figure.rows.iter().filter_map(|row| row[0].as_str());
        Drawn::of_rows(unique(sides), vec![figure])
    });
    drawn.collect()
}
