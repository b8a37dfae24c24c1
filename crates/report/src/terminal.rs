//! Text for the terminal: lines of limited width without control characters.

use std::fmt::Write as _;

/// Text without control characters: a hostile name must not control the terminal.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

/// Writes `text` in lines of at most `width` characters, the first after `lead`, the others
/// under it.
pub(crate) fn wrapped(out: &mut String, lead: &str, text: &str, width: usize) {
    let indent = lead.chars().count();
    let room = width.saturating_sub(indent).max(1);
    let mut line = String::new();
    let mut length = 0;
    let mut first = true;
    let mut flush = |line: &mut String, length: &mut usize| {
        let _ = if first {
            writeln!(out, "{lead}{line}")
        } else {
            writeln!(out, "{:indent$}{line}", "")
        };
        first = false;
        line.clear();
        *length = 0;
    };
    for word in text.split(' ') {
        // A word longer than a line is split: no line may be longer than the table.
        let letters: Vec<char> = word.chars().collect();
        let mut pieces = letters.chunks(room);
        let mut piece: &[char] = pieces.next().unwrap_or(&[]);
        loop {
            let space = usize::from(length > 0);
            if length + space + piece.len() > room {
                flush(&mut line, &mut length);
            } else if space == 1 {
                line.push(' ');
                length += 1;
            }
            line.extend(piece);
            length += piece.len();
            match pieces.next() {
                Some(next) => piece = next,
                None => break,
            }
        }
    }
    if length > 0 {
        flush(&mut line, &mut length);
    }
}
