//! Where a trace comes from, and what can be wrong with it.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::format::TraceFormat;

/// Where a trace comes from and how it is read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceSource {
    /// Files, absolute; several are merged in order of time.
    pub files: Vec<PathBuf>,
    /// How to read them; absent: the plain format.
    pub format: Option<TraceFormat>,
    /// Sort readings that are out of order within a file, instead of refusing them.
    pub sort: bool,
}

/// An error in a trace, and its place.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub struct TraceError {
    pub file: PathBuf,
    /// Line, from 1.
    pub line: Option<u64>,
    /// Column of text, from 1.
    pub column: Option<u64>,
    /// The error, and what was expected.
    pub message: String,
    /// The next step for the user.
    pub hint: Option<String>,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(column) = self.column {
            write!(f, ":{column}")?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}
