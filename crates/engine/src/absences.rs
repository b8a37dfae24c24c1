//! Subscribers that come and go get some messages late, and some not at all.
//!
//! Where the system keeps nothing for who is away, a message that was due before its subscriber was back, and does not come,
//! was missed; one that was due later was lost. Nobody tells a subscriber when what it did not get was due. But a flow's
//! schedule is known, and a message's place in its stream too: as long as all that was due was sent, both together say it.

use std::collections::BTreeSet;

use hdrhistogram::Histogram;
use pubgauge_driver::Nanos;
use pubgauge_workload::Schedule;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::assignment::Brief;
use crate::times::{HistogramValues, histogram};
use crate::timetable::Timetable;

/// Gaps that are kept, at the most; what is in others counts as missed.
const MOST_GAPS: usize = 1 << 20;

/// The comings and goings of one worker's clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PresenceRecording {
    /// How often a client left, as the workload has it.
    pub left: u64,
    /// How often one was back: connected, with its subscriptions.
    pub returned: u64,
    /// From when a subscriber was back to the first delivery to it after that; absent without any.
    pub first_message: Option<HistogramValues>,
    /// From when a subscriber was back to each delivery of a message that was due before; absent without any.
    pub backlog: Option<HistogramValues>,
}

impl PresenceRecording {
    /// Its histograms, which may still be encoded.
    pub fn histograms_mut(&mut self) -> impl Iterator<Item = &mut HistogramValues> {
        self.first_message.iter_mut().chain(&mut self.backlog)
    }
}

/// Messages of a stream that a party did not get, the last delivery before them from before an absence.
struct Gap {
    party: u32,
    flow: u32,
    /// When the subscriber was back, since the epoch.
    back_at: Nanos,
    /// When the first message was due that came after them, since the epoch; the end of the measurement, if none did.
    until: Nanos,
    /// Measured messages of the stream that were sent before that one, or in all.
    sent: u32,
    /// How many they are.
    messages: u32,
}

impl Gap {
    /// How many of its messages were due after the subscriber was back, in a stream whose messages were `due` at these times.
    fn lost(&self, due: &[Nanos]) -> u32 {
        let before = |at: Nanos| due.partition_point(|due| *due < at) as u32;
        let all = before(self.until);
        // Otherwise some that were due were not sent, and no place in the stream is known.
        if all == self.sent {
            self.messages
                .min(all - before(self.back_at.min(self.until)))
        } else {
            0
        }
    }
}

/// The deliveries to subscribers that come and go, as they are seen.
#[derive(Default)]
pub(crate) struct AbsenceLog {
    recording: PresenceRecording,
    first_message: Option<Histogram<u64>>,
    backlog: Option<Histogram<u64>>,
    /// By stream.
    gaps: FxHashMap<u32, Vec<Gap>>,
    count: usize,
    /// Messages beyond the gaps that are kept, by party and flow.
    missed: FxHashMap<(u32, u32), u64>,
}

impl AbsenceLog {
    pub fn note_leave(&mut self) {
        self.recording.left += 1;
    }

    pub fn note_return(&mut self) {
        self.recording.returned += 1;
    }

    /// The first delivery to a subscriber that was back so long before.
    pub fn first_message(&mut self, after: Nanos) {
        let times = self.first_message.get_or_insert_with(histogram);
        times.saturating_record(after.max(1));
    }

    /// A delivery of a message that was due before its subscriber was back, so long after that.
    pub fn backlog(&mut self, after: Nanos) {
        let times = self.backlog.get_or_insert_with(histogram);
        times.saturating_record(after.max(1));
    }

    /// A party did not get `messages` of a stream that lie across an absence; `until` and `sent` as in [`Gap`].
    pub fn gap(
        &mut self,
        (party, flow, stream): (u32, u32, u32),
        back_at: Nanos,
        until: Nanos,
        sent: u32,
        messages: u32,
    ) {
        if self.count == MOST_GAPS {
            *self.missed.entry((party, flow)).or_default() += u64::from(messages);
            return;
        }
        self.count += 1;
        self.gaps.entry(stream).or_default().push(Gap {
            party,
            flow,
            back_at,
            until,
            sent,
            messages,
        });
    }

    /// How many deliveries were missed, by party and flow, in a measurement of this `table`, whose times count from `epoch`.
    pub fn missed(
        &mut self,
        brief: &Brief,
        table: Option<Timetable>,
        epoch: Nanos,
    ) -> FxHashMap<(u32, u32), u64> {
        let mut due = FxHashMap::default();
        if let Some(table) = table {
            let flows: BTreeSet<u32> = self.gaps.values().flatten().map(|gap| gap.flow).collect();
            for flow in flows {
                self.look_up_schedule(brief, table, epoch, flow, &mut due);
            }
        }
        for (stream, gap) in
            (self.gaps.iter()).flat_map(|(s, gaps)| gaps.iter().map(move |g| (s, g)))
        {
            let missed = self.missed.entry((gap.party, gap.flow)).or_default();
            let due = due.get(stream).map_or(&[][..], Vec::as_slice);
            *missed += u64::from(gap.messages - gap.lost(due));
        }
        std::mem::take(&mut self.missed)
    }

    /// Adds, stream by stream, when the measured messages of a flow were due that has gaps, since the epoch, in ascending
    /// order. Arrivals at random are none of this: workers that share the publishers draw them each for itself.
    fn look_up_schedule(
        &self,
        brief: &Brief,
        table: Timetable,
        epoch: Nanos,
        number: u32,
        found: &mut FxHashMap<u32, Vec<Nanos>>,
    ) {
        let flow = &brief.workload.flows[number as usize];
        if flow.arrivals.is_random() {
            return;
        }
        let publishers = 0..flow.publishers.len() as u32;
        let seed = brief.workload.seed_of(number);
        let Ok(mut schedule) = Schedule::try_new(flow, publishers, seed) else {
            return;
        };
        let (origin, end) = table.span(flow);
        schedule.begin_curve_at(table.measure.saturating_sub(origin));
        for due in schedule {
            let at = origin.saturating_add(due.at);
            if at >= end {
                return;
            }
            let stream = brief.audience.first_stream(number, due.publisher) + due.topic;
            if at >= table.measure && self.gaps.contains_key(&stream) {
                found.entry(stream).or_default().push(at - epoch);
            }
        }
    }

    /// All that was seen.
    pub fn finish(&mut self) -> PresenceRecording {
        PresenceRecording {
            first_message: self.first_message.take().map(Into::into),
            backlog: self.backlog.take().map(Into::into),
            ..std::mem::take(&mut self.recording)
        }
    }
}
