//! The page for a decision: advice on a fleet, on one sheet, for readers who have never seen pubgauge.

use maud::{Markup, html};
use pubgauge_advice::{Advice, BoxCount, BoxPlan, Recommendation, WhyOut};

use super::frame::{self, Document};
use super::html::{notes, row, table, text};

/// More stored loads that do not count would leave the sheet.
const MOST_NOT_COUNTED: usize = 6;

/// The page of an advice. One HTML file that needs no other file. `started`: when it was begun, RFC 3339; `fleet`: the text of
/// the fleet's file.
pub fn advice_page(advice: &Advice, started: &str, fleet: &str) -> String {
    let document = Document {
        name: &format!("Which middleware for {}?", advice.fleet),
        started,
        first: "answer",
        header: html! {
            p class="question" { (advice.in_short()) }
            p class="where" { "measured on this machine, begun " (frame::time(started)) span id="file" {} }
        },
        sections: html! {
            (answer(advice))
            @if let Some(plan) = &advice.boxes { (boxes(plan)) }
            (settings(advice))
            (undecided(advice))
            (left_out(advice))
            (limits(advice))
            section id="fleet" { h2 { "The fleet" } pre { (fleet.trim_end()) } }
        },
        drawn: Vec::new(),
    };
    document.text()
}

fn answer(advice: &Advice) -> Markup {
    let heads = [
        ("system", "the middleware, with its variant"),
        (
            "rank",
            "1 is the best; systems of one rank are not told apart",
        ),
        ("times the fleet", "how many times the fleet it carries"),
        (
            "p99",
            "99 of 100 messages arrive within this time, at the fleet's own load",
        ),
        (
            "cost a message",
            "processor time of client and system for a delivery",
        ),
        (
            "memory",
            "largest memory of the server, at the fleet's own load",
        ),
        ("runs", "repeats of the fleet at its own load"),
    ];
    let one = |choice: &Recommendation| {
        let name = match &choice.version {
            Some(version) => format!("{} {version}", choice.system),
            None => choice.system.clone(),
        };
        let entries = [
            ("rank", choice.rank.to_string()),
            ("times the fleet", choice.headroom_in_words()),
            ("p99", choice.p99_in_words()),
            ("cost a message", choice.cost_in_words()),
            ("memory", choice.memory_in_words()),
            ("runs", choice.repeats.to_string()),
        ];
        let entries = entries.map(|(head, entry)| (head, html! { (entry) }));
        row(html! { (name) }, entries)
    };
    let rows = html! { @for choice in &advice.choices { (one(choice)) } };
    html! {
        section id="answer" {
            h2 { "The answer" }
            @if advice.choices.is_empty() {
                p { "No system is known to carry what is asked for." }
            } @else {
                (table("results", "Systems that carry the fleet", heads, rows))
                p {
                    "More headroom comes first, then less processor time for a message. Systems of one rank are not told apart by "
                    "what was measured."
                }
                ul {
                    @for (systems, words) in advice.evidence_in_words() {
                        li { (text(format!("{systems}: {words}"))) }
                    }
                }
            }
            @if !advice.others.is_empty() {
                h3 { "What would change it" }
                ul {
                    @for (change, carried) in advice.others_in_words() {
                        li { (text(format!("{change}: {carried}"))) }
                    }
                }
            }
        }
    }
}

fn boxes(plan: &BoxPlan) -> Markup {
    let heads = [
        (
            "boxes",
            "hosts of the size asked for, each with a broker of its own",
        ),
        (
            "times the fleet",
            "how many times the fleet they carry together",
        ),
        (
            "known",
            "measured side by side, or following from the numbers that were",
        ),
    ];
    let one = |count: &BoxCount| {
        let entries = [
            ("times the fleet", count.times_in_words()),
            ("known", count.known_by.as_str().to_owned()),
        ];
        let entries = entries.map(|(head, entry)| (head, html! { (entry) }));
        row(html! { (count.boxes) }, entries)
    };
    let rows = html! { @for count in &plan.counts { (one(count)) } };
    html! {
        section id="boxes" {
            h2 { "How many boxes" }
            p { (text(plan.answer_in_words())) "." }
            @if !plan.counts.is_empty() {
                (table("results", "How much boxes carry", heads, rows))
                p { "Measured on one machine, on which the boxes shared: " (plan.shared.join("; ")) "." }
            }
            (notes(&plan.remarks))
            ul {
                @for one in &plan.not_told { li { "Not told: " (text(&one.because)) } }
            }
        }
    }
}

fn settings(advice: &Advice) -> Markup {
    html! {
        @if !advice.choices.is_empty() {
            section id="settings" {
                h2 { "Settings to take" }
                @for choice in advice.choices.iter().take(3) {
                    h3 { (choice.system) }
                    pre { "[[settings]]\n" (choice.settings.trim_end()) }
                    p { "On its client: " (text(choice.client_in_words())) "." }
                    @if !choice.server_files.is_empty() {
                        p {
                            "Of its server: "
                            @for (n, file) in choice.server_files.iter().enumerate() {
                                @if n > 0 { ", " }
                                a href=(file) { (file) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn undecided(advice: &Advice) -> Markup {
    html! {
        @if !advice.undecided.is_empty() {
            section id="undecided" {
                h2 { "Cannot be told" }
                ul {
                    @for one in &advice.undecided {
                        li { (text(format!("{}: {}", one.system, one.because))) }
                    }
                }
            }
        }
    }
}

fn left_out(advice: &Advice) -> Markup {
    let kind = |why: WhyOut| match why {
        WhyOut::Lacks => "does not have",
        WhyOut::Breaks => "promises, and does not keep",
        WhyOut::FleetNotCarried | WhyOut::HeadroomNotCarried => "does not carry",
    };
    html! {
        @if !advice.left_out.is_empty() {
            section id="left-out" {
                h2 { "Left out" }
                ul {
                    @for out in &advice.left_out {
                        li { b { (out.system) } " " (kind(out.why)) ": " (out.asked) ". " (text(&out.because)) }
                    }
                }
            }
        }
    }
}

fn limits(advice: &Advice) -> Markup {
    html! {
        section id="limits" {
            h2 { "What this does not say" }
            ul {
                li { "It holds for this machine, these versions and these settings." }
                @for remark in &advice.remarks { li { (text(remark)) } }
                @for one in &advice.not_measured { li { "Not measured: " (text(one)) } }
                @for one in advice.not_counted.iter().take(MOST_NOT_COUNTED) {
                    li { "Stored, and not counted: " (text(one.describe())) }
                }
                @if advice.not_counted.len() > MOST_NOT_COUNTED {
                    li { "Stored, and not counted: " (advice.not_counted.len() - MOST_NOT_COUNTED) " more, in advice.json." }
                }
            }
        }
    }
}
