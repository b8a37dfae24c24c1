//! Text for the terminal: lines of limited width without control characters.

use pubgauge_quantities::text::fill;

/// Text without control characters: a hostile name must not control the terminal.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

/// Writes `text` in lines of at most `width` characters, the first after `lead`, the others under it.
pub(crate) fn wrapped(out: &mut String, lead: &str, text: &str, width: usize) {
    if !text.is_empty() {
        let indent = " ".repeat(lead.chars().count());
        out.push_str(&fill(lead, &indent, text, width));
    }
}
