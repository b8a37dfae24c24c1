//! The whole document around its sections, with its style and its script.

use std::fmt::Write as _;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;

use crate::charts::NOISE;

const STYLE: &str = include_str!("../../assets/page.css");

const SCRIPT: &str = include_str!("../../assets/page.js");

/// Observable Plot, by which the script draws.
const PLOT: &str = include_str!("../../assets/vendor/plot.min.js");

/// A page needs no other file, and loads none.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:";

/// The parts of a document.
pub(super) struct Document<'a> {
    pub(super) name: &'a str,
    /// When what it shows began, as it is stored.
    pub(super) started: &'a str,
    /// The id of the first section.
    pub(super) first: &'a str,
    /// The text below the heading.
    pub(super) header: Markup,
    pub(super) sections: Markup,
    /// The data of the charts as JSON, a text for each workload.
    pub(super) workloads: Vec<String>,
}

impl Document<'_> {
    /// The document as text.
    pub(super) fn text(self) -> String {
        let Document { name, first, .. } = self;
        let document = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    title { (name) " " (minute(self.started)) " pubgauge" }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    a class="skip" href={ "#" (first) } { "Skip to the answer" }
                    header {
                        p class="brand" { "pubgauge" }
                        h1 { (name) }
                        (self.header)
                    }
                    main { (self.sections) }
                    script type="application/json" id="data" { (PreEscaped(data(&self.workloads))) }
                    @if !self.workloads.is_empty() { script { (PreEscaped(PLOT)) } }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        };
        visible(document.into_string())
    }
}

/// A time in words: here in UTC; the script replaces it by the reader's local time.
pub(super) fn time(started: &str) -> Markup {
    html! { time datetime=(started) { (minute(started)) } }
}

fn minute(started: &str) -> String {
    match (started.get(..16), started.ends_with('Z')) {
        (Some(minute), true) => format!("{} UTC", minute.replace('T', " ")),
        _ => started.to_owned(),
    }
}

/// The data of the charts as JSON for a script element: characters that could end the element or a line, and those that
/// [`visible`] replaces, are escaped, so that no name can inject markup.
fn data(workloads: &[String]) -> String {
    let length = workloads.iter().map(String::len).sum::<usize>();
    let mut out = String::with_capacity(length + 100);
    let _ = write!(out, "{{\"noise\":{},\"workloads\":[", Value::from(NOISE));
    for (nth, workload) in workloads.iter().enumerate() {
        out.push_str(if nth == 0 { "" } else { "," });
        escape(workload, &mut out);
    }
    out.push_str("]}");
    out
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c if is_hidden(c) => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
}

/// A text without the characters that could hide or reorder what is read.
fn visible(text: String) -> String {
    if !text.contains(is_hidden) {
        return text;
    }
    let shown = |c| if is_hidden(c) { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}

/// Whether it is a control character, or one of direction.
fn is_hidden(c: char) -> bool {
    match c {
        '\n' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    }
}
