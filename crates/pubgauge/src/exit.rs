//! How the program ends.

use std::fmt::{Arguments, Display};
use std::io::{ErrorKind, Write};
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
    /// What was wrong, where, and what to do.
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

/// Prints data to standard output. A reader that has gone away is no error; of any other failure
/// [`complete`] tells at the end.
pub fn print(text: &str) {
    print_bytes(text.as_bytes());
}

/// The same for data that need not be text.
pub fn print_bytes(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => drop(LOST.set(error)),
        _ => {}
    }
}

/// Whether all that was printed went to standard output.
///
/// # Errors
/// The first write that failed, but for a reader that has gone away.
pub fn complete() -> Result<(), Ending> {
    LOST.get().map_or(Ok(()), |error| {
        Err(Ending::not_valid(format!(
            "what was printed is not complete: standard output: {error}\n\
             hint: write to a place with room; results that were stored are not affected"
        )))
    })
}

/// Writes words to standard error. A terminal that has been closed, or a full disk, ends nothing.
pub fn say(words: Arguments) {
    let _ = std::io::stderr().lock().write_fmt(words);
}

/// Writes a line to standard error, as `eprintln!` does, which panics where nobody listens.
macro_rules! tell {
    ($($words:tt)*) => { $crate::exit::say(format_args!("{}\n", format_args!($($words)*))) };
}
pub(crate) use tell;

/// Prints a value as JSON, one member a line.
pub fn print_json(value: &impl Serialize) {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    print(&format!("{text}\n"));
}
