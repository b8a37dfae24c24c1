//! The brokers that may hold messages for a collector, over its restarts.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::folder::replace;

/// Brokers with a session, by address, and what the sessions are subscribed to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    pub brokers: BTreeMap<String, Seen>,
    pub filters: Vec<String>,
}

/// A broker with a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The configured address that it belongs to.
    pub name: String,
    /// When it was last connected, s since 1970.
    pub connected_s: u64,
}

impl Known {
    /// What the file holds; nothing if there is none, or it cannot be read.
    pub fn read(path: &Path) -> Known {
        let text = std::fs::read(path).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Writes the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        replace(path, |file| Ok(serde_json::to_writer_pretty(file, self)?))
    }
}
