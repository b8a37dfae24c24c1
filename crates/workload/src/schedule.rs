//! Schedules: a pure function from a flow and a seed to the messages that are due.
//!
//! The k-th message of a periodic flow is due at k / rate, computed exactly, so that a schedule
//! neither drifts nor depends on who computes it: any split of the publishers over workers
//! yields the same messages at the same times with the same sizes.

mod curve;
mod pace;
mod replay;
mod shard;
mod size;

use std::sync::Arc;

use crate::curve::RateCurve;
use crate::draws::Draws;
use crate::model::{Arrivals, Flow, Sizes};
pub use crate::model::{Replay, ReplayMode};
use crate::popularity::{MOST_TOPIC_ZIPF, Popularity};
use crate::trace::TraceError;
use crate::units::{BURST_SLOT, Nanos};
pub(crate) use curve::CurvePace;
use pace::{Pace, SchedulePoint};
use replay::Player;
pub use shard::Shard;
use size::SizeModel;

pub use crate::units::{MAX_SIZE, MIN_SIZE};

/// One message that is due.
#[derive(Clone, Debug, PartialEq)]
pub struct Due {
    /// When, nanoseconds from the flow's start.
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

/// Why a flow has no schedule.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// The shard names a publisher that the flow does not have.
    #[error("publisher {0} was asked for, but the flow has only {1}")]
    NoSuchPublisher(u32, usize),
    /// A publisher without topics.
    #[error("publisher {0} of the flow has no topic")]
    NoTopics(u32),
    /// Sizes that cannot be drawn.
    #[error("{0}")]
    Sizes(String),
    /// [`Sizes::Recorded`] without [`Arrivals::Replay`].
    #[error("recorded sizes need a recorded trace as arrivals")]
    RecordedSizesWithoutTrace,
    /// A trace that cannot be read.
    #[error("{0}")]
    Trace(Box<TraceError>),
    /// A rate over time of which nothing follows.
    #[error("its rate over time sends nothing, or is too fast or too long to be kept exactly")]
    Curve,
    /// Topics whose popularity is none.
    #[error(
        "the exponent of the popularity of topics is {0}; it must be from 0 to {MOST_TOPIC_ZIPF}"
    )]
    Popularity(f64),
    /// Topics of a recording are those that were recorded.
    #[error("a trace has its own topics: it cannot be replayed by their popularity")]
    RecordedTopics,
    /// A speed that is not above zero.
    #[error("a trace cannot be replayed at {0} times its speed; the speed must be above 0")]
    Speed(f64),
}

/// The messages of one flow that one worker must send, in order of time.
///
/// Times count from the flow's own start: the engine adds [`Flow::start_offset`].
/// [`Flow::active_for`] is obeyed here for every flow that has due times.
pub struct Schedule {
    seed: u64,
    /// Publishers of this shard.
    shard: Shard,
    /// Topics of each publisher of the shard.
    topics: Box<[u32]>,
    popularity: Popularity,
    sizes: SizeModel,
    /// Messages due at or after this are not sent.
    end: Nanos,
    source: ScheduleSource,
}

enum ScheduleSource {
    Nothing,
    /// Publishers in turn, at once, for ever. `next` is a position in the shard, here and below.
    FlatOut {
        round: u64,
        next: usize,
    },
    Periodic {
        pace: Pace,
        point: SchedulePoint,
        /// From one publisher of the shard to another that is this many further on in the flow.
        step: (u32, SchedulePoint),
        /// From its last to its first.
        wrap: SchedulePoint,
        round: u64,
        next: usize,
    },
    Poisson {
        /// Mean gap in the shard, nanoseconds.
        mean_gap: f64,
        at: f64,
        draws: Draws,
        /// Messages so far, of each publisher of the shard.
        sent: Box<[u64]>,
    },
    Varying(Box<VaryingSource>),
    OnOff {
        pace: Pace,
        per_burst: u64,
        cycle: Nanos,
        publishers: u64,
        round: u64,
        next: usize,
    },
    Bursts {
        every: Nanos,
        /// Messages of each publisher in a burst.
        messages: u64,
        /// Which multiple of `every` the burst begins at, and how many bursts were before it.
        slot: u64,
        begun: u64,
        /// Messages of each publisher in the burst so far.
        round: u64,
        next: usize,
    },
    Replay {
        player: Box<Player>,
        /// Messages so far, of each publisher of the shard.
        sent: Box<[u64]>,
    },
}

/// A rate that changes, and before it, where the flow begins with the warm-up, its first rate.
struct VaryingSource {
    curve: CurvePace,
    /// The first rate; absent: nothing is sent before the curve begins.
    lead: Option<Pace>,
    /// When the curve begins, and whether it has: what was before it counts no more then.
    begins: Nanos,
    begun: bool,
    /// Publishers of the flow, and of the shard.
    publishers: u64,
    round: u64,
    next: usize,
    random: Option<RandomArrivals>,
}

/// Messages at random, as many as a rate says on average.
struct RandomArrivals {
    /// Of the messages before the curve, and of those of the curve.
    draws: [Draws; 2],
    /// Mean gap between messages of the shard, in messages of the flow.
    gap: f64,
    at: f64,
    /// Messages so far, of each publisher of the shard.
    sent: Box<[u64]>,
}

impl VaryingSource {
    fn new(
        (curve, random): (&RateCurve, bool),
        shard: &Shard,
        publishers: u64,
        seed: u64,
    ) -> Result<Self, ScheduleError> {
        let draws = |item| Draws::new(seed, u64::MAX - u64::from(shard[0]), item);
        Ok(VaryingSource {
            curve: CurvePace::new(curve).ok_or(ScheduleError::Curve)?,
            lead: Pace::new(curve.first_per_s()),
            begins: 0,
            begun: true,
            publishers,
            round: 0,
            next: 0,
            random: random.then(|| RandomArrivals {
                draws: [draws(0), draws(1)],
                gap: publishers as f64 / shard.len() as f64,
                at: 0.0,
                sent: vec![0; shard.len()].into(),
            }),
        })
    }

    /// The next message: when, of which publisher by its position in the shard, and which of its messages it is.
    fn next(&mut self, shard: &Shard) -> Option<(Nanos, usize, u64)> {
        loop {
            let message = match &mut self.random {
                None => {
                    let k = self.round * self.publishers + u64::from(shard[self.next]);
                    let at = if self.begun {
                        self.curve.due_time(k)
                    } else {
                        self.lead.and_then(|pace| pace.due_time(k).nanos())
                    };
                    let message = at.map(|at| (at, self.next, self.round));
                    self.next += 1;
                    if self.next == shard.len() {
                        (self.next, self.round) = (0, self.round + 1);
                    }
                    message
                }
                Some(random) => {
                    let draws = &mut random.draws[usize::from(self.begun)];
                    random.at -= draws.unit().ln() * random.gap;
                    let position = draws.below(random.sent.len() as u64) as usize;
                    let at = if self.begun {
                        self.curve.time_at(random.at)
                    } else {
                        self.lead.map(|pace| pace.time_at(random.at))
                    };
                    let nth = random.sent[position];
                    random.sent[position] += 1;
                    at.map(|at| (at, position, nth))
                }
            };
            if self.begun {
                let (at, position, nth) = message?;
                return Some((self.begins.checked_add(at)?, position, nth));
            }
            if let Some(message) = message.filter(|(at, ..)| *at < self.begins) {
                return Some(message);
            }
            self.begin();
        }
    }

    /// The curve begins at `at`. If its first message was taken already, it begins anew.
    fn begin_at(&mut self, at: Nanos) {
        let random_taken = self.random.as_ref().is_some_and(|random| random.at > 0.0);
        let taken = random_taken || (self.round, self.next) != (0, 0);
        self.begins = at;
        if self.begun && taken || at == 0 {
            self.begin();
        } else {
            self.begun = false;
        }
    }

    fn begin(&mut self) {
        self.begun = true;
        self.curve.rewind();
        (self.round, self.next) = (0, 0);
        if let Some(random) = &mut self.random {
            random.at = 0.0;
            random.sent.fill(0);
        }
    }
}

impl Schedule {
    /// The schedule of `flow` for the publishers in `shard`. Schedules of disjoint shards that
    /// cover all publishers together make exactly the schedule of the whole flow (Poisson: the
    /// same process, not the same draws).
    ///
    /// A [`Arrivals::FlatOut`] flow has no due times: its schedule yields `at == 0` for ever,
    /// publishers, topics and sizes in turn. So does the flat-out [`Arrivals::OnOff`]; see
    /// [`Arrivals::flat_out_at`].
    ///
    /// Equal seeds yield equal schedules; give every flow of a workload a seed of its own.
    ///
    /// # Panics
    /// Where [`Schedule::try_new`] returns an error. A workload that [`crate::Workload::check`]
    /// accepted has none.
    pub fn new(flow: &Flow, shard: impl Into<Shard>, seed: u64) -> Self {
        match Schedule::try_new(flow, shard, seed) {
            Ok(schedule) => schedule,
            Err(error) => panic!("flow {:?}: {error}", flow.name),
        }
    }

    /// As [`Schedule::new`].
    ///
    /// # Errors
    /// A flow that is not sound, or a trace that cannot be read.
    pub fn try_new(flow: &Flow, shard: impl Into<Shard>, seed: u64) -> Result<Self, ScheduleError> {
        let shard = shard.into();
        let count = flow.publishers.len();
        if let Some(last) = shard.last().filter(|last| **last as usize >= count) {
            return Err(ScheduleError::NoSuchPublisher(*last, count));
        }
        let mut topics = Vec::with_capacity(shard.len());
        for &publisher in shard.iter() {
            match flow.publishers[publisher as usize].topics.len() {
                0 => return Err(ScheduleError::NoTopics(publisher)),
                n => topics.push(n as u32),
            }
        }
        let sizes = SizeModel::new(&flow.size).map_err(ScheduleError::Sizes)?;
        if flow.size == Sizes::Recorded && !matches!(flow.arrivals, Arrivals::Replay(_)) {
            return Err(ScheduleError::RecordedSizesWithoutTrace);
        }
        if let Some(exponent) = flow.topic_zipf {
            if !(0.0..=MOST_TOPIC_ZIPF).contains(&exponent) {
                return Err(ScheduleError::Popularity(exponent));
            }
            if matches!(flow.arrivals, Arrivals::Replay(_)) {
                return Err(ScheduleError::RecordedTopics);
            }
        }
        let source = if shard.is_empty() {
            ScheduleSource::Nothing
        } else {
            ScheduleSource::new(&flow.arrivals, &shard, count as u64, seed)?
        };
        Ok(Schedule {
            seed,
            shard,
            popularity: Popularity::new(flow.topic_zipf, topics.iter().copied()),
            topics: topics.into(),
            sizes,
            end: flow.active_for.unwrap_or(Nanos::MAX),
            source,
        })
    }

    /// Takes back the message that came last, the first of a burst, and gives it again, due at `at`
    /// (nanoseconds from the flow's start) or the first multiple of the burst's period after that. Does
    /// nothing for arrivals without bursts.
    pub fn next_burst_at(&mut self, at: Nanos) {
        if let ScheduleSource::Bursts {
            every,
            slot,
            begun,
            round,
            next,
            ..
        } = &mut self.source
        {
            // A burst of one message was over with it.
            *begun -= u64::from((*round, *next) == (0, 0) && *begun > 0);
            *slot = at.div_ceil(*every);
            (*round, *next) = (0, 0);
        }
    }

    /// A rate that changes over time begins to at `at`, nanoseconds from the flow's start; before it its first rate holds. To
    /// be called before it has begun; what was taken of the schedule before stays as it was. Does nothing for other arrivals.
    pub fn begin_curve_at(&mut self, at: Nanos) {
        if let ScheduleSource::Varying(source) = &mut self.source {
            source.begin_at(at);
        }
    }

    /// The `nth` message of the publisher at this position in the shard, due at `at`.
    fn message(&self, at: Nanos, position: usize, nth: u64) -> Due {
        let (topics, publisher) = (self.topics[position], self.shard[position]);
        Due {
            at,
            publisher,
            topic: self.popularity.topic(self.seed, publisher, nth, topics),
            size: self.sizes.bytes_of(self.seed, publisher, nth),
            content: None,
        }
    }
}

impl ScheduleSource {
    fn new(
        arrivals: &Arrivals,
        shard: &Shard,
        count: u64,
        seed: u64,
    ) -> Result<Self, ScheduleError> {
        let (first, last) = (shard[0], shard[shard.len() - 1]);
        let next = 0;
        let source = match *arrivals {
            Arrivals::FlatOut | Arrivals::OnOff { per_s: None, .. } => {
                ScheduleSource::FlatOut { round: 0, next }
            }
            Arrivals::Periodic { per_s } => match Pace::new(per_s) {
                None => ScheduleSource::Nothing,
                Some(pace) => ScheduleSource::Periodic {
                    pace,
                    point: pace.due_time(u64::from(first)),
                    step: (1, pace.due_time(1)),
                    wrap: pace.due_time(count - u64::from(last - first)),
                    round: 0,
                    next,
                },
            },
            Arrivals::Poisson { per_s } => {
                let share = per_s * shard.len() as f64 / count as f64;
                if !(share > 0.0 && share.is_finite()) {
                    return Ok(ScheduleSource::Nothing);
                }
                ScheduleSource::Poisson {
                    mean_gap: 1e9 / share,
                    at: 0.0,
                    draws: Draws::new(seed, u64::MAX - u64::from(first), 0),
                    sent: vec![0; shard.len()].into(),
                }
            }
            Arrivals::Varying { ref curve, random } => ScheduleSource::Varying(
                VaryingSource::new((curve, random), shard, count, seed)?.into(),
            ),
            Arrivals::OnOff {
                per_s: Some(per_s),
                on,
                off,
            } => match Pace::new(per_s) {
                Some(pace) if on > 0 => ScheduleSource::OnOff {
                    pace,
                    per_burst: pace.due_within(on),
                    cycle: on.saturating_add(off),
                    publishers: count,
                    round: 0,
                    next,
                },
                _ => ScheduleSource::Nothing,
            },
            Arrivals::Bursts { messages: 0, .. } | Arrivals::Bursts { every: Some(0), .. } => {
                ScheduleSource::Nothing
            }
            Arrivals::Bursts { messages, every } => ScheduleSource::Bursts {
                every: every.unwrap_or(BURST_SLOT),
                messages: u64::from(messages),
                slot: 0,
                begun: 0,
                round: 0,
                next,
            },
            Arrivals::Replay(ref replay) => {
                if !(replay.speed > 0.0 && replay.speed.is_finite()) {
                    return Err(ScheduleError::Speed(replay.speed));
                }
                let trace = replay
                    .open()
                    .map_err(|error| ScheduleError::Trace(error.into()))?;
                ScheduleSource::Replay {
                    player: Player::new(trace, replay, shard.clone(), count as u32, seed).into(),
                    sent: vec![0; shard.len()].into(),
                }
            }
        };
        Ok(source)
    }
}

impl Iterator for Schedule {
    type Item = Due;

    fn next(&mut self) -> Option<Due> {
        let shard = &self.shard;
        // Moves to the next publisher of the shard; true if that closes a round.
        let turn = |next: &mut usize, round: &mut u64| {
            *next += 1;
            let wrapped = *next == shard.len();
            if wrapped {
                *next = 0;
                *round += 1;
            }
            wrapped
        };
        let (at, position, nth) = match &mut self.source {
            ScheduleSource::Nothing => return None,
            ScheduleSource::FlatOut { round, next } => {
                let message = (0, *next, *round);
                turn(next, round);
                // Flat out there are no due times, so the engine ends the flow.
                return Some(self.message(message.0, message.1, message.2));
            }
            ScheduleSource::Periodic {
                pace,
                point,
                step,
                wrap,
                round,
                next,
            } => {
                let message = (point.nanos()?, *next, *round);
                let before = *next;
                if turn(next, round) {
                    pace.advance(point, *wrap);
                } else {
                    let gap = shard[*next] - shard[before];
                    if gap != step.0 {
                        *step = (gap, pace.due_time(u64::from(gap)));
                    }
                    pace.advance(point, step.1);
                }
                message
            }
            ScheduleSource::Poisson {
                mean_gap,
                at,
                draws,
                sent,
            } => {
                *at -= draws.unit().ln() * *mean_gap;
                let index = draws.below(sent.len() as u64) as usize;
                let nth = sent[index];
                sent[index] += 1;
                (*at as Nanos, index, nth)
            }
            ScheduleSource::Varying(source) => source.next(shard)?,
            ScheduleSource::OnOff {
                pace,
                per_burst,
                cycle,
                publishers,
                round,
                next,
            } => {
                let k = *round * *publishers + u64::from(shard[*next]);
                let burst = (k / *per_burst).checked_mul(*cycle)?;
                let at = burst.checked_add(pace.due_time(k % *per_burst).nanos()?)?;
                let message = (at, *next, *round);
                turn(next, round);
                message
            }
            ScheduleSource::Bursts {
                every,
                messages,
                slot,
                begun,
                round,
                next,
            } => {
                let at = slot.checked_mul(*every)?;
                let message = (at, *next, *begun * *messages + *round);
                if turn(next, round) && *round == *messages {
                    *round = 0;
                    *begun += 1;
                    *slot += 1;
                }
                message
            }
            ScheduleSource::Replay { player, sent } => {
                let played = player.next()?;
                if played.at >= self.end {
                    return None;
                }
                let index = shard.position(played.publisher)?;
                let nth = sent[index];
                sent[index] += 1;
                let (size, content) = match &self.sizes {
                    SizeModel::Recorded => (played.size, played.content),
                    sizes => (sizes.bytes_of(self.seed, played.publisher, nth), None),
                };
                return Some(Due {
                    at: played.at,
                    publisher: played.publisher,
                    topic: played.topic % self.topics[index],
                    size,
                    content,
                });
            }
        };
        if at >= self.end {
            return None;
        }
        Some(self.message(at, position, nth))
    }
}

/// The options of a flat-out flow at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Send, until this time (nanoseconds from the flow's start).
    Open(Nanos),
    /// Be silent, until this time (nanoseconds from the flow's start).
    Shut(Nanos),
}

impl Arrivals {
    /// Whether messages have no due times but are sent as fast as the system takes them.
    pub fn is_flat_out(&self) -> bool {
        matches!(
            self,
            Arrivals::FlatOut | Arrivals::OnOff { per_s: None, .. }
        )
    }

    /// Whether messages come at random. Workers that share a flow's publishers draw them each for itself.
    pub fn is_random(&self) -> bool {
        matches!(
            self,
            Arrivals::Poisson { .. } | Arrivals::Varying { random: true, .. }
        )
    }

    /// The time between bursts, or, where they wait for one another, [`BURST_SLOT`], the unit of that
    /// time; absent for other arrivals.
    pub fn burst_period(&self) -> Option<Nanos> {
        match *self {
            Arrivals::Bursts { every, .. } => Some(every.unwrap_or(BURST_SLOT)),
            _ => None,
        }
    }

    /// The time after which they repeat: from the beginning of a burst to that of the next, or between two messages
    /// that are evenly spaced. Absent where they are random, recorded, flat out or wait for one another.
    pub fn cycle(&self) -> Option<Nanos> {
        match *self {
            Arrivals::Periodic { per_s } => Some((1e9 / per_s) as Nanos),
            Arrivals::OnOff { on, off, .. } => Some(on.saturating_add(off)),
            Arrivals::Bursts { every, .. } => every,
            Arrivals::FlatOut
            | Arrivals::Poisson { .. }
            | Arrivals::Varying { .. }
            | Arrivals::Replay(_) => None,
        }
    }

    /// Whether a burst begins only when the one before has arrived whole.
    pub fn bursts_wait(&self) -> bool {
        matches!(self, Arrivals::Bursts { every: None, .. })
    }

    /// Whether a flat-out flow may send at `t`, nanoseconds from its start. Flows with due times
    /// may always send what is due.
    pub fn flat_out_at(&self, t: Nanos) -> Gate {
        match *self {
            Arrivals::OnOff {
                per_s: None,
                on,
                off,
            } if off > 0 => {
                let cycle = on.saturating_add(off);
                let start = t - t % cycle;
                if t - start < on {
                    Gate::Open(start + on)
                } else {
                    Gate::Shut(start.saturating_add(cycle))
                }
            }
            _ => Gate::Open(Nanos::MAX),
        }
    }

    /// Messages per second over all publishers, averaged over on and off times and over the pieces of a curve; absent flat
    /// out, for [`Arrivals::Bursts`] and for a trace.
    pub fn mean_per_s(&self) -> Option<f64> {
        match *self {
            Arrivals::Periodic { per_s } | Arrivals::Poisson { per_s } => Some(per_s),
            Arrivals::Varying { ref curve, .. } => Some(curve.mean_per_s(curve.length())),
            Arrivals::OnOff {
                per_s: Some(per_s),
                on,
                off,
            } => Some(per_s * on as f64 / (on as f64 + off as f64)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
