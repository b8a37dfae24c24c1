//! How a system behaved otherwise than it claims.

use pubgauge_driver::DriverError;

/// How a system behaved otherwise than it claims, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Violation(String);

impl From<String> for Violation {
    fn from(words: String) -> Violation {
        Violation(words)
    }
}

impl From<&str> for Violation {
    fn from(words: &str) -> Violation {
        Violation(words.to_owned())
    }
}

impl From<DriverError> for Violation {
    fn from(error: DriverError) -> Violation {
        Violation(error.to_string())
    }
}
