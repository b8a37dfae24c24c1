//! Errors of collecting.

use std::fmt;

/// Why collecting cannot begin or go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The fault, and where it is.
    pub what: String,
    /// Advice.
    pub hint: Option<String>,
    /// Whether the input was wrong, and nothing was begun.
    pub is_input: bool,
}

impl Error {
    /// Wrong input.
    pub fn input(what: impl Into<String>, hint: impl Into<String>) -> Error {
        Error {
            what: what.into(),
            hint: Some(hint.into()),
            is_input: true,
        }
    }

    /// A failure on the way.
    pub fn failed(what: impl Into<String>) -> Error {
        Error {
            what: what.into(),
            hint: None,
            is_input: false,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}
