//! Why a campaign cannot go on.

use std::fmt::Display;

/// Why a campaign cannot begin or go on. Both are told with what to do next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// What was asked for is not possible: nothing was begun.
    #[error("{0}")]
    Input(String),
    /// What is measured cannot be valid.
    #[error("{0}")]
    NotValid(String),
}

impl Error {
    /// What was asked for is not possible, because of `why`.
    pub fn bad_input(why: impl Display) -> Error {
        Error::Input(format!("{why:#}"))
    }

    /// What is measured cannot be valid, because of `why`.
    pub fn not_valid(why: impl Display) -> Error {
        Error::NotValid(format!("{why:#}"))
    }
}
