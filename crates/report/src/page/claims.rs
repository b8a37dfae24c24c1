//! Claims about the systems, and their outcomes: on the page of a study, and on that of several.

use std::fmt::Write as _;

use pubgauge_results::Results;
use pubgauge_results::claim::{ClaimOutcome, ClaimVerdict};
use serde_json::{Value, json};

use super::figure::one_figure;
use super::html::{badge_of, escape};
use crate::figures::Figure;
use crate::figures::claims::of_claim;
use crate::lists::unique;

/// A claim and its figures.
pub(super) struct Shown<'a> {
    pub(super) claim: &'a ClaimOutcome,
    pub(super) figures: Vec<Figure>,
}

/// Claims with their figures, whose ids begin with `prefix`.
pub(super) fn shown<'a>(claims: &'a [ClaimOutcome], prefix: &str) -> Vec<Shown<'a>> {
    let each = claims.iter().zip(1..);
    let shown = |(claim, nth): (&'a ClaimOutcome, u32)| Shown {
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
pub(super) fn badge(outcome: ClaimVerdict) -> String {
    let (class, meaning) = match outcome {
        ClaimVerdict::Holds => (
            "valid",
            "Every interval that decides lies where the claim says.",
        ),
        ClaimVerdict::DoesNotHold => (
            "broken",
            "An interval lies where the claim says it does not.",
        ),
        ClaimVerdict::CannotTell => ("unsteady", "Neither could be shown."),
        ClaimVerdict::NotApplicable => ("aside", "It is about something that is not here."),
    };
    badge_of(class, meaning, outcome.word())
}

/// The study's claims: each sentence, its rule, both figures, and the chart that decides.
pub(super) fn section(out: &mut String, results: &Results) {
    if results.claims.is_empty() {
        return;
    }
    out.push_str("<section id=\"claims\"><h2>Claims</h2>\n");
    for shown in shown(&results.claims, "") {
        let id = anchor(&shown.claim.id);
        let name = escape(&shown.claim.id);
        article(out, &shown, &id, &name);
    }
    out.push_str("</section>\n");
}

/// One claim. `name` is HTML.
pub(super) fn article(out: &mut String, shown: &Shown<'_>, id: &str, name: &str) {
    let claim = shown.claim;
    let _ = write!(
        out,
        "<article class=\"claim\" id=\"{}\"><div>\n<h3>{name} {}</h3>\n<p>{} <small>{}</small></p>\n<dl>",
        escape(id),
        badge(claim.outcome),
        escape(&claim.sentence),
        escape(&claim.source)
    );
    let said = [
        ("papers", &claim.papers),
        ("ours", &claim.ours),
        ("why", &claim.reason),
        ("rule", &claim.rule),
    ];
    for (what, words) in said.into_iter().filter(|(_, words)| !words.is_empty()) {
        let _ = write!(out, "<dt>{what}</dt><dd>{}</dd>", escape(words));
    }
    out.push_str("</dl>\n</div>\n");
    if !shown.figures.is_empty() {
        out.push_str("<div>\n");
        for figure in &shown.figures {
            one_figure(out, figure, &claim.id, false);
        }
        out.push_str("</div>\n");
    }
    out.push_str("</article>\n");
}

/// The data of the charts, as `page.js` draws it: each as a workload whose cells are the sides.
pub(super) fn data<'a>(shown: impl IntoIterator<Item = &'a Shown<'a>>) -> Vec<Value> {
    let figures = shown.into_iter().flat_map(|shown| &shown.figures);
    let data = figures.map(|figure| {
        let sides = unique(figure.rows.iter().map(|row| &row[0]));
        let cells = sides.iter().enumerate().map(|(nth, side)| {
            json!({ "label": side, "row": side, "point": 0, "colour": nth, "reference": false })
        });
        let cells: Vec<Value> = cells.collect();
        json!({ "flatOut": false, "cells": cells, "figures": [figure] })
    });
    data.collect()
}
