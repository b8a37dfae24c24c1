//! Pieces of HTML that all sections share: tables, badges, remarks.

use std::fmt::Write as _;

use maud::{Markup, html};
use pubgauge_figures::{Status, Trial};

use crate::glossary;

/// A heading of a table, with its explanation on hover.
pub(super) struct Head<'a> {
    pub(super) text: &'a str,
    meaning: &'a str,
}

impl<'a> From<&'a str> for Head<'a> {
    fn from(text: &'a str) -> Self {
        Head { text, meaning: "" }
    }
}

impl<'a> From<(&'a str, &'a str)> for Head<'a> {
    fn from((text, meaning): (&'a str, &'a str)) -> Self {
        Head { text, meaning }
    }
}

/// A table that scrolls where it is wider than the page.
pub(super) fn table<'a, H: Into<Head<'a>>>(
    class: &str,
    label: &str,
    heads: impl IntoIterator<Item = H>,
    rows: Markup,
) -> Markup {
    let heads = heads.into_iter().map(Into::into);
    html! {
        div class="scroll" tabindex="0" role="region" aria-label=(label) {
            table class=(class) {
                thead {
                    tr {
                        @for Head { text, meaning } in heads {
                            th scope="col" title=[non_empty(meaning)] { (text) }
                        }
                    }
                }
                tbody { (rows) }
            }
        }
    }
}

/// A row of a table: its name, and its entries with the headings that they have on a narrow screen.
pub(super) fn row<'a>(
    name: Markup,
    entries: impl IntoIterator<Item = (&'a str, Markup)>,
) -> Markup {
    html! {
        tr {
            th scope="row" { (name) }
            @for (head, entry) in entries {
                td data-name=(head) { (entry) }
            }
        }
    }
}

/// Text as HTML.
pub(super) fn text(text: impl AsRef<str>) -> Markup {
    html! { (text.as_ref()) }
}

/// A text, or none if it is empty.
pub(super) fn non_empty(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// Remarks, each a line of a list; nothing without any.
pub(super) fn notes<T: AsRef<str>>(lines: impl IntoIterator<Item = T>) -> Markup {
    let mut lines = lines.into_iter().peekable();
    html! {
        @if lines.peek().is_some() {
            ul class="notes" {
                @for line in lines { li { (line.as_ref()) } }
            }
        }
    }
}

/// A verdict as a badge, explained on hover.
pub(super) fn badge(status: Status) -> Markup {
    badge_of(status.as_str(), glossary::verdict(status), status.as_str())
}

/// A word as a badge of a class, explained on hover.
pub(super) fn badge_of(class: &str, meaning: &str, word: &str) -> Markup {
    html! { span class={ "badge " (class) } title=(meaning) { (word) } }
}

/// The system and version of a trial, shown above all tables.
pub(super) fn system_of(trial: &Trial) -> String {
    format!("{} {}", trial.system.name, trial.system.version)
}

/// JSON for a script element: characters that could end the element or a line, and those that the page does not show
/// ([`is_hidden`]), are escaped, so that no name can inject markup.
pub(super) fn in_script(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}') || is_hidden(c) {
            let _ = write!(out, "\\u{:04x}", c as u32);
        } else {
            out.push(c);
        }
    }
    out
}

/// Whether it is a control character, or one of direction.
pub(super) fn is_hidden(c: char) -> bool {
    match c {
        '\n' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    }
}
