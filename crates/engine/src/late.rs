//! Subscribers that come late: what the system had kept for each, and what came afterwards, apart from all others.

use pubgauge_driver::Nanos;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use crate::assignment::Brief;
use crate::times::{HistogramValues, histogram};

/// The late subscribers of one worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LateRecording {
    /// Each of them.
    pub of: Vec<LateParty>,
    /// From when each asked for its subscriptions until all were taken; absent without any.
    pub subscribing: Option<HistogramValues>,
    /// From when each asked until the last of the last values came to it; absent without any.
    pub last_values: Option<HistogramValues>,
    /// Likewise until the last of the messages that were published before.
    pub backlog: Option<HistogramValues>,
}

impl LateRecording {
    /// Its histograms, which may still be encoded.
    pub fn histograms_mut(&mut self) -> impl Iterator<Item = &mut HistogramValues> {
        let times = [
            &mut self.subscribing,
            &mut self.last_values,
            &mut self.backlog,
        ];
        times.into_iter().flatten()
    }
}

/// The messages to one late subscriber.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateParty {
    /// The subscriber, as (index into the workload's flows, index into that flow's subscribers).
    pub subscriber: (u32, u32),
    /// Its subscriptions were taken.
    pub subscribed: bool,
    /// Topics that it hears and whose last message the system was asked to keep.
    pub topics: u64,
    /// Of these, topics whose last value came.
    pub last_values: u64,
    /// Further deliveries of last values, on topics that had come.
    pub last_values_repeated: u64,
    /// First deliveries, not as last values, of messages that were published before it asked.
    pub backlog: u64,
    /// First deliveries of measured messages that were published after it had asked.
    pub live: u64,
    /// Measured messages that have not come although something later of their stream has, without those that it missed.
    pub lost: u64,
    /// Streams that were not closed: it is not known whether anything is missing behind the last delivery.
    pub open_streams: u64,
    /// Deliveries of messages that it had.
    pub duplicated: u64,
    /// Deliveries of any of these, and of last values, within the measurement.
    pub within: u64,
}

/// One late subscriber as its deliveries are seen; times are ns since the epoch.
#[derive(Debug, Default)]
pub(crate) struct LateState {
    pub counts: LateParty,
    /// When it asked for its first subscription.
    pub asked: Option<Nanos>,
    /// When it read that the last one was taken.
    pub subscribed: Option<Nanos>,
    last_value_at: Nanos,
    backlog_at: Nanos,
    /// Topics whose last value came, each by its first stream.
    topics: FxHashSet<u32>,
}

/// The deliveries to late subscribers, as they are seen.
#[derive(Default)]
pub(crate) struct LateLog {
    /// By the number of the party in the audience.
    pub of: FxHashMap<u32, LateState>,
    /// The first stream on the topic of each stream; empty where nobody is late.
    first_streams: Vec<u32>,
}

impl LateLog {
    /// The late ones of `parties`, where the system was asked to keep the last messages of flows for which `keeps` holds.
    pub fn new(
        brief: &Brief,
        parties: impl Iterator<Item = u32>,
        keeps: impl Fn(usize) -> bool,
    ) -> LateLog {
        let all = &brief.audience.parties;
        let late: Vec<u32> = parties
            .filter(|party| all[*party as usize].is_late())
            .collect();
        if late.is_empty() {
            return LateLog::default();
        }
        let mut first: FxHashMap<&str, u32> = FxHashMap::default();
        let streams = 0..brief.stream_count();
        let first_streams: Vec<u32> = streams
            .map(|stream| *first.entry(brief.topic_of(stream)).or_insert(stream))
            .collect();
        let kept = |stream: &u32| brief.flow_of(*stream).is_some_and(&keeps);
        let of = late.into_iter().map(|number| {
            let party = &all[number as usize];
            let streams = party.streams.iter().cloned().flatten().filter(kept);
            let topics: FxHashSet<u32> = streams
                .map(|stream| first_streams[stream as usize])
                .collect();
            let counts = LateParty {
                subscriber: party.members[0],
                topics: topics.len() as u64,
                ..LateParty::default()
            };
            let state = LateState {
                counts,
                ..LateState::default()
            };
            (number, state)
        });
        LateLog {
            of: of.collect(),
            first_streams,
        }
    }

    /// Whether a party that is late has subscribed.
    pub fn has_subscribed(&self, party: u32) -> bool {
        self.of
            .get(&party)
            .is_some_and(|late| late.subscribed.is_some())
    }

    /// A last value came to a party at `now`.
    pub fn last_value(&mut self, party: u32, stream: u32, now: Nanos, within: bool) {
        let topic = self.first_streams[stream as usize];
        if let Some(late) = self.of.get_mut(&party) {
            let first = late.topics.insert(topic);
            late.counts.last_values += u64::from(first);
            late.counts.last_values_repeated += u64::from(!first);
            late.counts.within += u64::from(within);
            late.last_value_at = now;
        }
    }

    /// The first delivery to a party of a message that was sent at `sent`.
    pub fn message(&mut self, party: u32, measured: bool, sent: Nanos, now: Nanos, within: bool) {
        let Some(late) = self.of.get_mut(&party) else {
            return;
        };
        if !measured || late.asked.is_none_or(|asked| sent < asked) {
            late.counts.backlog += 1;
            late.backlog_at = now;
        } else {
            late.counts.live += 1;
        }
        late.counts.within += u64::from(within);
    }

    /// All that was seen, where so many messages have passed each party over and it was late for so many of them.
    pub fn finish(
        &mut self,
        passed_over: &FxHashMap<u32, u64>,
        missed: &FxHashMap<u32, u64>,
        open: &FxHashMap<u32, u64>,
    ) -> LateRecording {
        let mut times = [(); 3].map(|()| None);
        let mut of = Vec::with_capacity(self.of.len());
        for (party, mut late) in self.of.drain() {
            let of_party = |all: &FxHashMap<u32, u64>| all.get(&party).copied().unwrap_or(0);
            late.counts.subscribed = late.subscribed.is_some();
            late.counts.lost = of_party(passed_over).saturating_sub(of_party(missed));
            late.counts.open_streams = of_party(open);
            of.push(late.counts);
            let Some(asked) = late.asked else { continue };
            let came = |count: u64, at: Nanos| (count > 0).then_some(at);
            let ends = [
                late.subscribed,
                came(late.counts.last_values, late.last_value_at),
                came(late.counts.backlog, late.backlog_at),
            ];
            for (times, end) in times.iter_mut().zip(ends) {
                if let Some(end) = end {
                    let times = times.get_or_insert_with(histogram);
                    times.saturating_record(end.saturating_sub(asked).max(1));
                }
            }
        }
        of.sort_unstable_by_key(|of| of.subscriber);
        let [subscribing, last_values, backlog] = times.map(|times| times.map(Into::into));
        LateRecording {
            of,
            subscribing,
            last_values,
            backlog,
        }
    }
}
