//! The whole document around its sections, with its style and its script.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::drawn::{Drawn, rows};
use super::html::is_hidden;
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
    /// The charts.
    pub(super) drawn: Vec<Drawn<'a>>,
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
                    script type="application/json" id="data" { (PreEscaped(data(&self.drawn))) }
                    @for figure in self.drawn.iter().flat_map(|drawn| &drawn.figures) {
                        script type="application/json" id={ (figure.id) "-rows" } { (PreEscaped(rows(figure))) }
                    }
                    @if !self.drawn.is_empty() { script { (PreEscaped(PLOT)) } }
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

/// The data of the charts as JSON for a script element.
fn data(drawn: &[Drawn<'_>]) -> String {
    let workloads: Vec<String> = drawn.iter().map(Drawn::json).collect();
    format!(
        "{{\"noise\":\"{NOISE}\",\"workloads\":[{}]}}",
        workloads.join(",")
    )
}

/// A text without the characters that could hide or reorder what is read.
fn visible(text: String) -> String {
    if !text.contains(is_hidden) {
        return text;
    }
    let shown = |c| if is_hidden(c) { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}
