//! Schedules: a pure function from a flow and a seed to the messages that are due.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Flow, Nanos};

/// How a recorded trace is replayed. Filled by the trace module.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// Recorded trace file, absolute.
    pub path: std::path::PathBuf,
}

/// One message that is due.
#[derive(Clone, Debug, PartialEq)]
pub struct Due {
    /// When, nanoseconds from the start of the phase.
    pub at: Nanos,
    /// Index into [`Flow::publishers`].
    pub publisher: u32,
    /// Index into that publisher's topics.
    pub topic: u32,
    /// Payload length in bytes, at least 16.
    pub size: u32,
    /// Recorded payload, where the trace has one.
    pub content: Option<Arc<[u8]>>,
}

/// The messages of one flow that one worker must send, in order of time.
pub struct Schedule {
    _private: (),
}

impl Schedule {
    /// The schedule of `flow` for the publishers in `shard`. Schedules of disjoint shards that
    /// cover all publishers together make exactly the schedule of the whole flow (Poisson: the
    /// same process, not the same draws).
    ///
    /// A [`crate::Arrivals::FlatOut`] flow has no due times: its schedule yields `at == 0`
    /// for ever, publishers and sizes in turn.
    pub fn new(_flow: &Flow, _shard: Range<u32>, _seed: u64) -> Self {
        Schedule { _private: () }
    }
}

impl Iterator for Schedule {
    type Item = Due;

    fn next(&mut self) -> Option<Due> {
        None
    }
}
