//! Passwords, keys and passphrases.

use std::fmt;

/// A string that never appears in logs, results or debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Secret(secret.into())
    }

    /// The content of a variable of the environment, if there is any.
    pub fn of_variable(name: &str) -> Option<Self> {
        let text = std::env::var(name).ok()?;
        (!text.is_empty()).then(|| Secret::new(text))
    }

    /// The secret itself, for the wire only.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}
