//! How the program ends.

use std::fmt::Display;
use std::io::Write;

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

/// Prints data to standard output; a reader that has gone away is no error.
pub fn print(text: &str) {
    print_bytes(text.as_bytes());
}

/// The same for data that need not be text.
pub fn print_bytes(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}

/// Prints a value as JSON, one member a line.
pub fn print_json(value: &impl Serialize) {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    print(&format!("{text}\n"));
}
