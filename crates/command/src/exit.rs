//! Exit codes, and output that cannot harm a terminal.

use std::borrow::Cow;
use std::fmt::{Arguments, Display, Write as _};
use std::io::{self, ErrorKind, IsTerminal, Read, Write};
use std::sync::OnceLock;

use serde::Serialize;

/// All is well.
pub const FINE: i32 = 0;
/// A criterion of the study was not met.
pub const CRITERION: i32 = 1;
/// The run is not valid: a trial did not run as planned, or no figure can be trusted.
pub const NOT_VALID: i32 = 2;
/// Bad input; nothing was changed on disk.
pub const BAD_INPUT: i32 = 3;

/// An early end: what to tell the user, and the exit code.
#[derive(Debug)]
pub struct Ending {
    /// The fault, where it is, and what to do.
    pub message: String,
    /// The exit code.
    pub code: i32,
}

impl Ending {
    /// The user's input was wrong.
    pub fn bad_input(message: impl Display) -> Self {
        Ending {
            message: message.to_string(),
            code: BAD_INPUT,
        }
    }

    /// The run could not be carried through.
    pub fn not_valid(message: impl Display) -> Self {
        Ending {
            message: message.to_string(),
            code: NOT_VALID,
        }
    }
}

/// The first failed write to standard output.
static LOST: OnceLock<std::io::Error> = OnceLock::new();

/// Whether a character can control a terminal: the control characters of ASCII and of ISO 6429 but
/// for line end and tab, and those that turn the direction of writing (Unicode Standard Annex 9,
/// section 2).
fn orders(c: char) -> bool {
    let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || c.is_control() && !matches!(c, '\n' | '\t')
}

/// A text without control characters, for text from files, systems and servers. Such a character is written
/// as its number, as in JSON: `\u001b`.
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(orders) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if orders(c) {
            let _ = write!(plain, "\\u{:04x}", u32::from(c));
        } else {
            plain.push(c)
        }
    }
    Cow::Owned(plain)
}

/// Prints text to standard output, made [`plain`]. A closed pipe is no error; [`complete`] reports
/// any other failure at the end.
pub fn print(text: &str) {
    write_out(plain(text).as_bytes());
}

/// Prints data that need not be text: as it is, and made [`plain`] on a terminal.
pub fn print_bytes(bytes: &[u8]) {
    if std::io::stdout().is_terminal() {
        print(&String::from_utf8_lossy(bytes))
    } else {
        write_out(bytes);
    }
}

/// Prints a file, which is not held whole unless a terminal shows it.
///
/// # Errors
/// Those of the reader.
pub fn print_all(from: &mut impl Read) -> io::Result<()> {
    if std::io::stdout().is_terminal() {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes)?;
        print_bytes(&bytes);
        return Ok(());
    }
    let mut piece = vec![0; PIECE];
    loop {
        match from.read(&mut piece)? {
            0 => return Ok(()),
            length if write_out(&piece[..length]) => {}
            _ => return Ok(()),
        }
    }
}

/// Bytes that are printed at once.
const PIECE: usize = 64 << 10;

/// Prints the lines of a text as they are written, which is made [`plain`]: a long one is not held whole.
pub fn print_lines(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
    let mut lines = Lines::default();
    // A write that failed is known, and told at the end.
    let _ = write(&mut lines).and_then(|()| lines.pass_on(lines.0.len()));
}

/// Lines on their way to standard output.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn pass_on(&mut self, upto: usize) -> io::Result<()> {
        let text: Vec<u8> = self.0.drain(..upto).collect();
        if write_out(plain(&String::from_utf8_lossy(&text)).as_bytes()) {
            Ok(())
        } else {
            Err(ErrorKind::BrokenPipe.into())
        }
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        if self.0.len() >= PIECE
            && let Some(end) = self.0.iter().rposition(|byte| *byte == b'\n')
        {
            self.pass_on(end + 1)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether more can be written.
fn write_out(bytes: &[u8]) -> bool {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => true,
        Err(error) => {
            if error.kind() != ErrorKind::BrokenPipe {
                drop(LOST.set(error));
            }
            false
        }
    }
}

/// Checks that everything printed was written to standard output.
///
/// # Errors
/// The first write that failed, other than on a closed pipe.
pub fn complete() -> Result<(), Ending> {
    LOST.get().map_or(Ok(()), |error| {
        Err(Ending::not_valid(format!(
            "what was printed is not complete: standard output: {error}\n\
             hint: write to a place with room; results that were stored are not affected"
        )))
    })
}

/// Writes text to standard error, made [`plain`]. A failed write is ignored.
pub fn write_plain(words: Arguments) {
    let words = words.to_string();
    let _ = std::io::stderr().lock().write_all(plain(&words).as_bytes());
}

/// Writes a line to standard error, like `eprintln!`, but does not panic if the write fails.
#[macro_export]
macro_rules! tell {
    ($($words:tt)*) => { $crate::exit::write_plain(format_args!("{}\n", format_args!($($words)*))) };
}
pub use tell;

/// Prints a value as JSON, one member per line.
pub fn print_json(value: &impl Serialize) {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    print(&format!("{text}\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_printed() {
        let words = "lines\nand\ttabs, 145 µs, 温度 ≤ 3";
        assert!(matches!(plain(words), Cow::Borrowed(same) if same == words));
        for (text, shown) in [
            ("\x1b[2J", "\\u001b[2J"),
            ("\x1b]0;title\x07", "\\u001b]0;title\\u0007"),
            ("\u{9b}2J", "\\u009b2J"),
            ("over\rwritten", "over\\u000dwritten"),
            ("\u{202e}gpj.exe", "\\u202egpj.exe"),
            ("\x7f\0", "\\u007f\\u0000"),
        ] {
            assert_eq!(plain(text), shown);
        }
        // A JSON text still has the same value.
        let json = serde_json::to_string("\u{9b}\x1b\u{202e}").unwrap();
        let read: String = serde_json::from_str(&plain(&json)).unwrap();
        assert_eq!(read, "\u{9b}\x1b\u{202e}");
    }
}
