//! Subscribers whose applications are slow: what became of the measured messages to each, apart from all others.

use hdrhistogram::Histogram;
use pubgauge_driver::Nanos;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::times::{HistogramValues, histogram};

/// The slow subscribers of one worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowRecording {
    /// Each of them.
    pub of: Vec<SlowParty>,
    /// From when a message was due until such a subscriber took it, within the measurement; absent without any.
    pub latency: Option<HistogramValues>,
}

/// The measured messages to one slow subscriber.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowParty {
    /// The subscriber, as (index into the workload's flows, index into that flow's subscribers).
    pub subscriber: (u32, u32),
    /// First deliveries within the measurement.
    pub taken: u64,
    /// First deliveries after its end.
    pub behind: u64,
    /// Messages that have not come although something later of their stream has.
    pub passed_over: u64,
    /// How often the system, or whoever is in between, ended its connection.
    pub disconnects: u64,
}

/// The deliveries to slow subscribers, as they are seen.
#[derive(Default)]
pub(crate) struct SlowLog {
    of: FxHashMap<u32, SlowParty>,
    latency: Option<Histogram<u64>>,
}

impl SlowLog {
    /// The counts of a slow subscriber, by the number of its party in the audience.
    pub fn party(&mut self, party: u32, subscriber: (u32, u32)) -> &mut SlowParty {
        let new = SlowParty {
            subscriber,
            ..SlowParty::default()
        };
        self.of.entry(party).or_insert(new)
    }

    /// A subscriber took a message so long after it was due.
    pub fn time(&mut self, latency: Nanos) {
        let times = self.latency.get_or_insert_with(histogram);
        times.saturating_record(latency.max(1));
    }

    /// All that was seen, where so many messages have passed each of the parties over.
    pub fn finish(&mut self, passed_over: impl Iterator<Item = (u32, u32)>) -> SlowRecording {
        for (party, messages) in passed_over {
            if let Some(of) = self.of.get_mut(&party) {
                of.passed_over += u64::from(messages);
            }
        }
        let mut of: Vec<SlowParty> = self.of.drain().map(|(_, of)| of).collect();
        of.sort_unstable_by_key(|of| of.subscriber);
        SlowRecording {
            of,
            latency: self.latency.take().map(Into::into),
        }
    }
}
