//! Messages from recorded traces.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;

use super::shard::Shard;
use crate::draws::Draws;
use crate::model::{Replay, ReplayMode};
use crate::trace::{Outlets, Trace, TraceReading};
use crate::units::{MIN_SIZE, Nanos};

/// Keeps the draws of replays apart from other draws.
const STREAM: u64 = 1 << 41;

/// A message taken from a trace.
pub(super) struct Played {
    pub(super) at: Nanos,
    pub(super) publisher: u32,
    /// To be taken modulo the publisher's topics.
    pub(super) topic: u32,
    pub(super) size: u32,
    pub(super) content: Option<Arc<[u8]>>,
}

/// The readings that one shard replays.
pub(super) struct Player {
    tape: Tape,
    mode: Mode,
}

/// The readings that are replayed, for whom.
struct Tape {
    trace: Arc<Trace>,
    shard: Shard,
    publishers: u32,
    speed: f64,
    looped: bool,
    /// Where contents travel as recorded.
    outlets: Option<Outlets>,
}

enum Mode {
    Tape {
        heads: Vec<TapeHead>,
        /// Next reading of each head: (time on the tape from the head's start, head).
        next: BinaryHeap<Reverse<(u128, u32)>>,
    },
    Drawn {
        interval: Nanos,
        seed: u64,
        publishers: Vec<Walker>,
        /// Next message of each publisher: (time on the tape from its start, publisher).
        next: BinaryHeap<Reverse<(u64, u32)>>,
    },
}

/// A place where the tape is read. More publishers than devices need several, spread evenly over
/// the tape, so that copies of a device do not send in step.
struct TapeHead {
    /// First publisher that it plays for.
    first: u32,
    /// Where on the tape it began.
    offset: Nanos,
    begin: usize,
    index: usize,
    lap: u64,
}

/// A publisher that draws from its device's distributions.
struct Walker {
    /// Position on the tape.
    position: Nanos,
    /// Messages so far.
    nth: u64,
}

impl Player {
    pub(super) fn new(
        trace: Arc<Trace>,
        replay: &Replay,
        shard: Shard,
        publishers: u32,
        seed: u64,
    ) -> Self {
        let outlets = replay.contents.then(|| Outlets::new(&trace, publishers));
        let tape = Tape {
            trace,
            outlets,
            shard,
            publishers,
            speed: replay.speed,
            looped: replay.looped,
        };
        let mode = match replay.mode {
            ReplayMode::Tape => tape.heads(),
            ReplayMode::Drawn { interval } => tape.walkers(interval.max(1), seed),
        };
        Player { tape, mode }
    }
}

impl Tape {
    /// Device that a publisher draws from.
    fn device_of(&self, publisher: u32) -> u32 {
        publisher % self.trace.devices.len() as u32
    }

    fn heads(&self) -> Mode {
        let devices = self.trace.devices.len() as u32;
        let copies = self.publishers.div_ceil(devices).max(1);
        let mut heads = Vec::new();
        for copy in 0..copies {
            let first = copy * devices;
            let plays = copies == 1 || self.shard.meets(first..first.saturating_add(devices));
            if !plays || self.shard.is_empty() {
                continue;
            }
            let offset =
                (u128::from(self.trace.period()) * u128::from(copy) / u128::from(copies)) as Nanos;
            let begin = self.trace.readings.partition_point(|r| r.at < offset);
            heads.push(TapeHead {
                first,
                offset,
                begin,
                index: begin,
                lap: 0,
            });
        }
        let mut next = BinaryHeap::new();
        for (number, head) in heads.iter_mut().enumerate() {
            next.extend(self.seek(head).map(|at| Reverse((at, number as u32))));
        }
        Mode::Tape { heads, next }
    }

    /// Moves `head` to the first reading from where it is that belongs to the shard. Returns its
    /// time from the head's start, or nothing at the end of the tape.
    fn seek(&self, head: &mut TapeHead) -> Option<u128> {
        loop {
            if head.index == self.trace.readings.len() {
                head.index = 0;
                head.lap += 1;
            }
            // One that begins behind the last reading passes the end of the tape twice.
            let over = head.lap > 1 || head.lap > 0 && head.index >= head.begin;
            if over && !self.looped {
                return None;
            }
            let reading = &self.trace.readings[head.index];
            if self
                .publisher_of(head, reading)
                .is_some_and(|p| self.shard.position(p).is_some())
            {
                let laps = u128::from(head.lap) * u128::from(self.trace.period());
                return Some(laps + u128::from(reading.at) - u128::from(head.offset));
            }
            head.index += 1;
        }
    }

    /// Device k is played by publisher k modulo their number; where there are more publishers
    /// than devices, each head plays for as many publishers as there are devices.
    fn publisher_of(&self, head: &TapeHead, reading: &TraceReading) -> Option<u32> {
        if self.publishers <= self.trace.devices.len() as u32 {
            return Some(reading.device % self.publishers);
        }
        head.first
            .checked_add(reading.device)
            .filter(|publisher| *publisher < self.publishers)
    }

    fn walkers(&self, interval: Nanos, seed: u64) -> Mode {
        let mut publishers = Vec::with_capacity(self.shard.len());
        let mut next = BinaryHeap::with_capacity(self.shard.len());
        for &publisher in self.shard.iter() {
            let mut draws = Draws::new(seed, STREAM + u64::from(publisher), u64::MAX);
            let position = draws.below(self.trace.period());
            // The start falls into the middle of a gap, not at its beginning.
            let gap = self.gap(publisher, position, interval, &mut draws);
            let first = (gap as f64 * (1.0 - draws.unit())) as Nanos;
            publishers.push(Walker {
                position: (position + first) % self.trace.period(),
                nth: 0,
            });
            next.push(Reverse((first, publisher)));
        }
        Mode::Drawn {
            interval,
            seed,
            publishers,
            next,
        }
    }

    /// The readings of the publisher's device in the interval around `position`, or in the last
    /// interval before that has any: as range of [`Trace::indices_of`].
    fn interval(&self, device: u32, position: Nanos, interval: Nanos) -> Range<usize> {
        let indices = self.trace.indices_of(device);
        let at = |index: &u32| self.trace.readings[*index as usize].at;
        let start = position - position % interval;
        let to = indices.partition_point(|i| at(i) < start.saturating_add(interval));
        let from = indices[..to].partition_point(|i| at(i) < start);
        if from < to {
            return from..to;
        }
        // No readings there: the interval of the reading before counts, round the loop.
        let last = if to == 0 { indices.len() - 1 } else { to - 1 };
        let start = at(&indices[last]) - at(&indices[last]) % interval;
        indices[..last].partition_point(|i| at(i) < start)..last + 1
    }

    fn gap(&self, publisher: u32, position: Nanos, interval: Nanos, draws: &mut Draws) -> Nanos {
        let device = self.device_of(publisher);
        let indices = self.trace.indices_of(device);
        let range = self.interval(device, position, interval);
        let pick = range.start + draws.below(range.len() as u64) as usize;
        let at = |place: usize| self.trace.readings[indices[place] as usize].at;
        match indices.len() - 1 {
            last if pick == last => self.trace.period() - at(last) + at(0),
            _ => at(pick + 1) - at(pick),
        }
    }

    fn message(&self, at: f64, publisher: u32, topic: u32, reading: TraceReading) -> Played {
        let (topic, size) = match &self.outlets {
            // The header is none of the recorded bytes.
            Some(outlets) => (
                outlets.position(publisher, &reading),
                reading.size + MIN_SIZE,
            ),
            None => (topic, reading.size.max(MIN_SIZE)),
        };
        Played {
            at: (at / self.speed) as Nanos,
            publisher,
            topic,
            size,
            content: self.trace.payload(&reading).cloned(),
        }
    }
}

impl Iterator for Player {
    type Item = Played;

    fn next(&mut self) -> Option<Played> {
        let tape = &self.tape;
        match &mut self.mode {
            Mode::Tape { heads, next } => {
                let Reverse((at, number)) = next.pop()?;
                let head = &mut heads[number as usize];
                let reading = tape.trace.readings[head.index];
                let publisher = tape.publisher_of(head, &reading)?;
                let topic = tape.trace.topic_number(&reading) + reading.device / tape.publishers;
                head.index += 1;
                next.extend(tape.seek(head).map(|at| Reverse((at, number))));
                Some(tape.message(at as f64, publisher, topic, reading))
            }
            Mode::Drawn {
                interval,
                seed,
                publishers,
                next,
            } => {
                let Reverse((at, publisher)) = next.pop()?;
                let walker = &mut publishers[tape.shard.position(publisher)?];
                let mut draws = Draws::new(*seed, STREAM + u64::from(publisher), walker.nth);
                walker.nth += 1;
                let device = tape.device_of(publisher);
                let range = tape.interval(device, walker.position, *interval);
                let pick = range.start + draws.below(range.len() as u64) as usize;
                let reading = tape.trace.readings[tape.trace.indices_of(device)[pick] as usize];
                let gap = tape.gap(publisher, walker.position, *interval, &mut draws);
                let period = tape.trace.period();
                walker.position = (walker.position + gap) % period;
                let following = at.saturating_add(gap);
                if tape.looped || following < period {
                    next.push(Reverse((following, publisher)));
                }
                let topic = tape.trace.topic_number(&reading);
                Some(tape.message(at as f64, publisher, topic, reading))
            }
        }
    }
}
