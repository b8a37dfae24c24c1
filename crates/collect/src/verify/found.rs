//! Findings in a data folder.

use serde::Serialize;

use super::{SequencesFound, StreamCounts};
use crate::store::StoreAddress;

/// Something that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Discrepancy {
    /// Path below the data folder, or the collector.
    pub place: String,
    pub what: String,
}

/// Findings in a data folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    pub collectors: usize,
    /// Finished files that were read.
    pub files: u64,
    pub bytes: u64,
    /// Messages in them.
    pub messages: u64,
    /// Messages that are in the log alone.
    pub messages_in_log: u64,
    /// Messages by the QoS of their delivery.
    pub by_qos: [u64; 3],
    /// Messages that the broker marked as perhaps sent before.
    pub marked_duplicate: u64,
    /// Bytes at the end of a log that are no whole message. They are being written, or were when the collector was
    /// stopped, and nothing of them was acknowledged.
    pub unfinished_bytes: u64,
    /// Finished files that were moved to a store, which tells the length and the tag that it told when they were put
    /// there. Nobody has read them.
    pub files_elsewhere: u64,
    /// Messages in these.
    pub messages_elsewhere: u64,
    /// Counts of messages with pubgauge's header, by run.
    pub streams: Vec<StreamCounts>,
    /// Findings on the numbers in payloads, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<SequencesFound>,
    pub faults: Vec<Discrepancy>,
    /// Stores that could not be asked, and how many files are there.
    pub not_seen: Vec<NotSeen>,
}

/// Files in a store that could not be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotSeen {
    pub place: String,
    pub files: u64,
    pub why: String,
    /// The store as the list of files names it, if it was not asked because the user does not name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unnamed: Option<Box<StoreAddress>>,
}

impl Verified {
    pub(super) fn fault(&mut self, place: impl Into<String>, what: impl Into<String>) {
        self.faults.push(Discrepancy {
            place: place.into(),
            what: what.into(),
        });
    }
}
