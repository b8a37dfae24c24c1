//! Pieces of HTML that all sections share: text, tables, badges.

use std::fmt::Write as _;

use pubgauge_results::{Status, Trial};

use crate::glossary;

/// Text as it may stand between tags and in quoted attributes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Control and direction characters could hide or reorder what is read.
            c if c.is_control() && c != '\n' => out.push('\u{fffd}'),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The beginning of a table, up to its rows. A heading is its text and an explanation.
pub(super) fn begin_table<'h>(
    out: &mut String,
    class: &str,
    label: &str,
    heads: impl IntoIterator<Item = (&'h str, &'h str)>,
) {
    let _ = write!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table class=\"{class}\">\n<thead><tr>",
        escape(label)
    );
    for (head, meaning) in heads {
        let title = match meaning {
            "" => String::new(),
            meaning => format!(" title=\"{}\"", escape(meaning)),
        };
        let _ = write!(out, "<th scope=\"col\"{title}>{}</th>", escape(head));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
}

/// A row of a table: its name, and its entries with the headings that they have on a narrow screen. Name and entries
/// are HTML.
pub(super) fn row<'h>(
    out: &mut String,
    name: &str,
    cells: impl IntoIterator<Item = (&'h str, String)>,
) {
    let _ = write!(out, "<tr><th scope=\"row\">{name}</th>");
    for (head, cell) in cells {
        let _ = write!(out, "<td data-name=\"{}\">{cell}</td>", escape(head));
    }
    out.push_str("</tr>\n");
}

pub(super) const END_TABLE: &str = "</tbody></table></div>\n";

/// Remarks, each a line of a list; nothing without any.
pub(super) fn notes(out: &mut String, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    out.push_str("<ul class=\"notes\">\n");
    for line in lines {
        let _ = writeln!(out, "<li>{}</li>", escape(line));
    }
    out.push_str("</ul>\n");
}

/// A verdict as a badge, explained on hover.
pub(super) fn badge(status: Status) -> String {
    badge_of(status.word(), glossary::verdict(status), status.word())
}

/// A word as a badge of a class, explained on hover.
pub(super) fn badge_of(class: &str, meaning: &str, word: &str) -> String {
    let meaning = escape(meaning);
    format!("<span class=\"badge {class}\" title=\"{meaning}\">{word}</span>")
}

/// The system and version of a trial, shown above all tables.
pub(super) fn system_of(trial: &Trial) -> String {
    format!("{} {}", trial.system.name, trial.system.version)
}
