//! Why a campaign cannot go on.

use std::fmt::Display;

/// Why a campaign cannot begin or go on. Both are told with what to do next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The request is not possible: nothing was begun.
    #[error("{0}")]
    Input(String),
    /// The measurement cannot be valid.
    #[error("{0}")]
    NotValid(String),
}

impl Error {
    /// The request is not possible, because of `why`.
    pub fn bad_input(why: impl Display) -> Error {
        Error::Input(format!("{why:#}"))
    }

    /// The measurement cannot be valid, because of `why`.
    pub fn not_valid(why: impl Display) -> Error {
        Error::NotValid(format!("{why:#}"))
    }
}
