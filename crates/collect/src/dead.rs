//! Dead letters: messages that cannot be stored with the others, in a file of their own.
//!
//! They are acknowledged like the others, once they stand in it: else the broker would send them again and again, and
//! nothing behind them.

use std::io::{self, Seek, SeekFrom, Write};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use pubgauge_place::OpenFolder;
use serde::Serialize;

/// Name of the file in a collector's own folder.
pub const FILE: &str = "dead-letters.ndjson";

/// Most bytes of the file. Dead letters beyond it are told and counted alone: whoever sends them without end fills no disk.
const MOST: u64 = 64 << 20;

/// Most bytes of dead letters that one commit carries.
const MOST_OF_COMMIT: usize = 1 << 20;

/// Why a message cannot be stored with the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// It is larger than is taken.
    TooLarge,
    /// It is no message of its version of MQTT: a topic that is not UTF-8, properties that cannot be.
    Malformed,
}

impl Why {
    /// All of them, in the order of their counts.
    pub const ALL: [Why; 2] = [Why::TooLarge, Why::Malformed];

    /// As files and metrics have it.
    pub fn name(self) -> &'static str {
        match self {
            Why::TooLarge => "too-large",
            Why::Malformed => "malformed",
        }
    }
}

/// A message that is not stored with the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeadLetter {
    pub received_ns: i64,
    pub broker: String,
    /// Bytes that are no UTF-8 are replaced.
    pub topic: String,
    pub qos: u8,
    /// Length of its packet.
    pub bytes: usize,
    pub why: Why,
    /// The fault in words.
    pub words: String,
    /// The whole packet; without it where it is too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_base64: Option<String>,
}

impl DeadLetter {
    /// With the packet that it is.
    pub fn with_packet(mut self, packet: &[u8]) -> DeadLetter {
        self.packet_base64 = Some(BASE64_STANDARD.encode(packet));
        self
    }
}

/// The dead letters of a commit, a JSON object in a line each.
#[derive(Debug, Default)]
pub struct DeadLetters(Vec<u8>);

impl DeadLetters {
    /// Adds one, while there is room.
    pub fn add(&mut self, letter: &DeadLetter) {
        let Ok(line) = serde_json::to_vec(letter) else {
            return;
        };
        if self.0.len() + line.len() < MOST_OF_COMMIT {
            self.0.extend(line);
            self.0.push(b'\n');
        }
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Appends them to the file of a collector, while that has room, and returns when they are on disk.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn append(&self, own: &OpenFolder) -> io::Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let (mut file, is_new) = match own.file_to_change(FILE) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => (own.create(FILE)?, true),
            other => (other?, false),
        };
        let end = file.seek(SeekFrom::End(0))?;
        if end + self.0.len() as u64 > MOST {
            return Ok(());
        }
        let appended = file.write_all(&self.0).and_then(|()| file.sync_data());
        if let Err(error) = appended {
            // It is tried again as a whole.
            file.set_len(end)?;
            return Err(error);
        }
        if is_new { own.sync() } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(words: &str) -> DeadLetter {
        DeadLetter {
            received_ns: 5,
            broker: "h:1".into(),
            topic: "t".into(),
            qos: 1,
            bytes: 7,
            why: Why::Malformed,
            words: words.into(),
            packet_base64: None,
        }
    }

    #[test]
    fn they_are_appended_and_neither_a_commit_nor_the_file_grows_without_bound() {
        let place = tempfile::tempdir().unwrap();
        let own = OpenFolder::open(place.path()).unwrap();
        let mut letters = DeadLetters::default();
        letters.append(&own).unwrap();
        assert!(!place.path().join(FILE).exists(), "nothing died");
        letters.add(&letter("first").with_packet(&[0x32, 0]));
        letters.append(&own).unwrap();
        letters.append(&own).unwrap();
        let text = std::fs::read_to_string(place.path().join(FILE)).unwrap();
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["packet_base64"], "MgA=");
        assert_eq!(lines[0]["why"], Why::Malformed.name());
        let long = "x".repeat(1000);
        for _ in 0..2000 {
            letters.add(&letter(&long));
        }
        assert!(letters.0.len() <= MOST_OF_COMMIT);
        for _ in 0..100 {
            letters.append(&own).unwrap();
        }
        let len = std::fs::metadata(place.path().join(FILE)).unwrap().len();
        assert!(len <= MOST && len > MOST / 2, "{len} bytes");
    }
}
