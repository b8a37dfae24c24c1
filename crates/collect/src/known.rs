//! The brokers that may hold messages for a collector, over its restarts.

use std::collections::BTreeMap;
use std::io;

use pubgauge_place::{OpenFolder, is_refused};
use serde::{Deserialize, Serialize};

use crate::folder::SESSIONS;

/// Most bytes of the file that are read: 100,000 brokers.
const MOST: u64 = 16 << 20;

/// Brokers with a session, by address, and what the sessions are subscribed to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    pub brokers: BTreeMap<String, KnownBroker>,
    pub filters: Vec<String>,
}

/// A broker with a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownBroker {
    /// The configured address that it belongs to.
    pub name: String,
    /// When it was last connected, s since 1970.
    pub connected_s: u64,
}

impl Known {
    /// Reads the file in a collector's own folder; nothing if there is none, or it is damaged.
    ///
    /// # Errors
    /// If it is a link, a device or a pipe, or longer than such a file can be.
    pub fn read(own: &OpenFolder) -> io::Result<Known> {
        match own.read(SESSIONS, MOST) {
            Ok(text) => Ok(serde_json::from_slice(&text).unwrap_or_default()),
            Err(error) if is_refused(&error) => Err(error),
            Err(_) => Ok(Known::default()),
        }
    }

    /// Writes the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, own: &OpenFolder) -> io::Result<()> {
        own.fill(SESSIONS, |file| {
            Ok(serde_json::to_writer_pretty(file, self)?)
        })?;
        own.sync()
    }
}
