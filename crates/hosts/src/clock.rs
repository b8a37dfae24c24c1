//! The offset between the clocks of two hosts, with a hard bound.
//!
//! An [`ClockExchange`] is a question and its answer with four readings. Nothing arrives before it was sent, so each exchange
//! bounds the offset from both sides when it was made, whatever the delays and however unequal they are: by half of the
//! round trip around its middle. At other moments the bound grows by [`DRIFT_PPM`]. The offset lies within all of these
//! bounds at once ([`Band`]), which the fastest exchanges near each moment decide.

use pubgauge_driver::{Course, Nanos};

/// The largest drift of one clock against the other that is allowed for, parts per million: two oscillators of 100 each
/// (IEEE 802.3), and two kernels that slew their clocks in opposite directions by 500 each (`adjtimex`).
pub const DRIFT_PPM: u64 = 1_200;
/// A drift that is known to within this, ns per ns, is used: 5 ppm.
const KNOWN_DRIFT: f64 = 5e-6;
/// Readings are whole nanoseconds: each limit may be wrong by this much.
const READING: i64 = 1;

/// Four readings of two clocks, in ns of each clock's own origin, in the order in which they were taken. The *asker* is the
/// conductor, the *host* that which echoes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockExchange {
    /// The question was about to be sent, by the asker's clock.
    pub sent: Nanos,
    /// The question had been received, by the host's clock.
    pub received: Nanos,
    /// The answer was about to be sent, by the host's clock.
    pub answered: Nanos,
    /// The answer had been received, by the asker's clock.
    pub heard: Nanos,
}

impl ClockExchange {
    /// Both clocks went forward, and neither has gone for more than 292 years.
    fn is_possible(&self) -> bool {
        self.sent <= self.heard
            && self.received <= self.answered
            && i64::try_from(self.heard).is_ok()
            && i64::try_from(self.answered).is_ok()
    }

    /// The time that question and answer were under way, both together, ns.
    pub fn under_way(&self) -> u64 {
        (self.heard.saturating_sub(self.sent))
            .saturating_sub(self.answered.saturating_sub(self.received))
    }
}

/// Why the offset is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClockError {
    /// No exchange came back.
    #[error(
        "no question for its clock was answered\n  hint: is its UDP port {port} reachable from this host?"
    )]
    NoExchange {
        /// Where it was asked.
        port: u16,
    },
    /// Readings that no clock gives which only goes forward.
    #[error(
        "its clock went back within an exchange\n  hint: CLOCK_MONOTONIC must be its host's own"
    )]
    Impossible,
    /// No offset within the cap on drift agrees with all exchanges.
    #[error(
        "its clock was set or slewed, by at least {beyond_ns} ns more than {} ppm explain, {ago_s} s before the trial's end\n  hint: look at the time daemons of both hosts",
        DRIFT_PPM
    )]
    Set {
        /// By how much the bounds miss each other, ns.
        beyond_ns: u64,
        /// How long before the last exchange, s.
        ago_s: u64,
    },
}

/// All that the offset (asker minus host) can have been over a span of time.
#[derive(Clone, Debug)]
pub struct Band {
    /// In order of time; at least one.
    points: Vec<BoundPoint>,
}

#[derive(Clone, Copy, Debug)]
struct BoundPoint {
    /// By the host's clock, ns.
    at: Nanos,
    /// The lowest and the highest offset then, ns.
    low: i64,
    high: i64,
}

impl BoundPoint {
    fn middle(&self) -> i64 {
        self.low.midpoint(self.high)
    }

    /// Half its width, rounded up, ns.
    fn half(&self) -> i64 {
        (self.high - self.low + 1) / 2
    }
}

/// The best bound so far on the way through the points: it was `value` at `at`.
#[derive(Clone, Copy)]
struct Anchor {
    at: Nanos,
    value: i64,
}

impl Anchor {
    /// How much an offset can have changed since.
    fn change(&self, now: Nanos) -> i64 {
        (now.abs_diff(self.at).div_ceil(1_000_000 / DRIFT_PPM)) as i64
    }
}

impl Band {
    /// The bounds that these exchanges, in any order, leave open.
    ///
    /// # Errors
    /// No exchanges; readings that go back; clocks that did what no offset explains.
    pub fn from_exchanges(exchanges: &[ClockExchange], port: u16) -> Result<Band, ClockError> {
        if !exchanges.iter().all(ClockExchange::is_possible) {
            return Err(ClockError::Impossible);
        }
        // Readings are below 2^63, and so are their differences.
        let mut points: Vec<BoundPoint> = exchanges
            .iter()
            .flat_map(|one| {
                let low = one.sent as i64 - one.received as i64 - READING;
                let high = one.heard as i64 - one.answered as i64 + READING;
                let lower = BoundPoint {
                    at: one.received,
                    low,
                    high: i64::MAX,
                };
                let upper = BoundPoint {
                    at: one.answered,
                    low: i64::MIN,
                    high,
                };
                [lower, upper]
            })
            .collect();
        points.sort_unstable_by_key(|point| point.at);
        let last = points.last().ok_or(ClockError::NoExchange { port })?.at;
        tighten(points.iter_mut());
        tighten(points.iter_mut().rev());
        let widest = points
            .iter()
            .max_by_key(|point| point.low.saturating_sub(point.high));
        match widest.filter(|point| point.low > point.high) {
            None => Ok(Band { points }),
            Some(point) => Err(ClockError::Set {
                beyond_ns: point.low.abs_diff(point.high),
                ago_s: (last - point.at) / 1_000_000_000,
            }),
        }
    }

    /// A straight line from the last point on, by which readings of the host's clock are converted: through the middle of
    /// the band, with the drift so far if that is known to within 5 ppm, else without any.
    pub fn course(&self) -> Course {
        let last = self.points[self.points.len() - 1];
        let third = self.points.len().div_ceil(3);
        let tightest =
            |points: &[BoundPoint]| points.iter().min_by_key(|point| point.half()).copied();
        let early = tightest(&self.points[..third]).unwrap_or(last);
        let late = tightest(&self.points[self.points.len() - third..]).unwrap_or(last);
        let span = late.at.saturating_sub(early.at) as f64;
        let is_known = (early.half() + late.half()) as f64 <= span * KNOWN_DRIFT;
        let drift = (late.middle() - early.middle()) as f64 / span;
        Course {
            near: last.at,
            far: last.at.saturating_add_signed(last.middle()),
            drift: if is_known { drift } else { 0.0 },
        }
    }

    /// The largest error of a reading that was converted by `course`, from its beginning to the band's end, ns.
    pub fn error_of(&self, course: &Course) -> Nanos {
        let begin = self.points.partition_point(|point| point.at <= course.near);
        let since = &self.points[begin.saturating_sub(1)..];
        let error = |point: &BoundPoint| {
            let taken = course.far_reading(point.at) as i64 - point.at as i64;
            (point.high - taken).max(taken - point.low).max(0)
        };
        // Between two points the band and the line leave each other by their drifts at most, from the nearer one.
        let slope = DRIFT_PPM as f64 / 1e6 + course.drift.abs();
        let between = since.windows(2).map(|two| {
            let apart = (two[1].at - two[0].at) as f64;
            error(&two[0]).max(error(&two[1])) + (slope * apart / 2.0).ceil() as i64
        });
        let at = since.iter().map(error);
        // A line is rounded twice.
        2 + between.chain(at).max().unwrap_or(0).unsigned_abs()
    }

    /// By how much the error of a reading converted by `course` may have grown from the last exchange to `asker` (the
    /// asker's clock), if none came later, ns.
    pub fn growth_until(&self, asker: Nanos, course: &Course) -> Nanos {
        let last = self.points[self.points.len() - 1];
        let silent = asker.saturating_sub(last.at.saturating_add_signed(last.middle()));
        let slope = DRIFT_PPM as f64 / 1e6 + course.drift.abs();
        (silent as f64 * slope).ceil() as Nanos
    }
}

/// Carries each bound on to the later points of this order, where it is tighter than theirs.
fn tighten<'a>(points: impl Iterator<Item = &'a mut BoundPoint>) {
    let (mut low, mut high): (Option<Anchor>, Option<Anchor>) = (None, None);
    for point in points {
        let carried = low.map(|anchor| anchor.value.saturating_sub(anchor.change(point.at)));
        match carried.filter(|carried| *carried > point.low) {
            Some(carried) => point.low = carried,
            None if point.low > i64::MIN => {
                let (at, value) = (point.at, point.low);
                low = Some(Anchor { at, value });
            }
            None => {}
        }
        let carried = high.map(|anchor| anchor.value.saturating_add(anchor.change(point.at)));
        match carried.filter(|carried| *carried < point.high) {
            Some(carried) => point.high = carried,
            None if point.high < i64::MAX => {
                let (at, value) = (point.at, point.high);
                high = Some(Anchor { at, value });
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    /// Nothing was answered for 10 s at the end of a trial: the bound grows by as much as clocks may drift.
    #[test]
    fn the_bound_grows_while_nothing_is_answered() {
        let one = ClockExchange {
            sent: 5_000 * MS,
            received: 2_000 * MS + 20_000,
            answered: 2_000 * MS + 30_000,
            heard: 5_000 * MS + 50_000,
        };
        let band = Band::from_exchanges(&[one], 1).unwrap();
        let course = band.course();
        assert!(band.error_of(&course) < 30_000);
        let growth = band.growth_until(15_000 * MS, &course);
        assert!((12 * MS - 1_000..13 * MS).contains(&growth), "{growth}");
        assert_eq!(band.growth_until(4_000 * MS, &course), 0);
    }

    /// An asker's clock as the host's goes on: ahead by `ahead` at first, and gaining `ppm`.
    fn asker(host: u64, ahead: i64, ppm: f64) -> u64 {
        let gained = host as f64 * ppm / 1e6;
        (host as i64 + ahead + gained as i64) as u64
    }

    /// An exchange that reaches the host at `at`, by its clock, with these times there, at work and back.
    fn exchange(
        at: u64,
        [there, work, back]: [u64; 3],
        clock: impl Fn(u64) -> u64,
    ) -> ClockExchange {
        ClockExchange {
            sent: clock(at - there),
            received: at,
            answered: at + work,
            heard: clock(at + work + back),
        }
    }

    #[test]
    fn one_exchange_bounds_the_offset_by_half_of_its_round_trip() {
        let clock = |host| asker(host, 5_000_000, 0.0);
        let one = exchange(10 * MS, [30_000, 0, 50_000], clock);
        assert_eq!(one.under_way(), 80_000);
        let band = Band::from_exchanges(&[one], 1).unwrap();
        let course = band.course();
        // The middle is off by half of the difference of both ways.
        assert_eq!(course.far_reading(10 * MS), 15 * MS + 10_000);
        assert!((40_000..40_010).contains(&band.error_of(&course)));
    }

    #[test]
    fn the_fastest_exchange_nearby_decides() {
        let clock = |host| asker(host, -7_000, 0.0);
        let slow = |at| exchange(at, [2 * MS, 0, 2 * MS], clock);
        let fast = exchange(30 * MS, [5_000, 0, 5_000], clock);
        let band = Band::from_exchanges(&[slow(20 * MS), fast, slow(40 * MS)], 1).unwrap();
        // 10 ms at 1,200 ppm, and 5 us of its own.
        let course = band.course();
        assert!(
            (16_000..18_000).contains(&band.error_of(&course)),
            "{}",
            band.error_of(&course)
        );
        assert_eq!(course.far_reading(40 * MS), 40 * MS - 7_000);
    }

    #[test]
    fn a_clock_that_was_set_is_told() {
        let all: Vec<ClockExchange> = (1..100)
            .map(|n| {
                let ahead = if n < 50 { 0 } else { 300_000 };
                exchange(n * 20 * MS, [20_000, 0, 20_000], |host| {
                    asker(host, ahead, 0.0)
                })
            })
            .collect();
        let Err(ClockError::Set { beyond_ns, ago_s }) = Band::from_exchanges(&all, 1) else {
            panic!("nothing told");
        };
        // 300 us less both halves and 20 ms at 1,200 ppm.
        assert!((200_000..300_000).contains(&beyond_ns), "{beyond_ns}");
        assert!(ago_s <= 1);
        // Later exchanges are as good as ever.
        assert!(Band::from_exchanges(&all[50..], 1).is_ok());
    }

    #[test]
    fn nothing_and_nonsense_are_told() {
        assert_eq!(
            Band::from_exchanges(&[], 7).unwrap_err(),
            ClockError::NoExchange { port: 7 }
        );
        let good = exchange(MS, [1, 1, 1], |host| asker(host, 0, 0.0));
        for bad in [
            ClockExchange { heard: 0, ..good },
            ClockExchange {
                answered: 0,
                ..good
            },
            ClockExchange {
                heard: u64::MAX,
                ..good
            },
        ] {
            assert_eq!(
                Band::from_exchanges(&[good, bad], 1).unwrap_err(),
                ClockError::Impossible
            );
        }
    }

    proptest! {
        /// Whatever the delays, and the drift within the cap: the band holds the true offset, and a converted reading is
        /// as wrong as is told at most.
        #[test]
        fn the_bound_is_hard(
            ahead in -1_000_000_000_000i64..1_000_000_000_000,
            ppm in -1_190.0..1_190.0f64,
            delays in prop::collection::vec((0u64..3_000_000, 0u64..50_000, 0u64..3_000_000), 10..200),
            gap in 1u64..60,
            begin in 0.1..0.9f64,
        ) {
            let start = 2_000_000 * MS;
            let clock = |host| asker(host, ahead, ppm);
            let all: Vec<ClockExchange> = delays
                .iter()
                .zip(1u64..)
                .map(|((there, work, back), n)| exchange(start + n * gap * MS, [*there, *work, *back], clock))
                .collect();
            let before = (all.len() as f64 * begin) as usize + 1;
            let course = Band::from_exchanges(&all[..before], 1).unwrap().course();
            let band = Band::from_exchanges(&all, 1).unwrap();
            for point in &band.points {
                let offset = clock(point.at) as i64 - point.at as i64;
                prop_assert!(point.low <= offset && offset <= point.high, "{offset} {point:?}");
            }
            let error = band.error_of(&course);
            let last = band.points.last().unwrap().at;
            for step in 0..=1_000 {
                let host = course.near + (last - course.near) / 1_000 * step;
                let wrong = course.far_reading(host).abs_diff(clock(host));
                prop_assert!(wrong <= error, "{wrong} {error}");
            }
        }
    }

    /// With many exchanges over a minute the drift is known, and used.
    #[test]
    fn a_drift_that_is_known_is_used() {
        let clock = |host| asker(host, 0, 40.0);
        let all: Vec<ClockExchange> = (1..3_000)
            .map(|n| exchange(n * 20 * MS, [30_000, 0, 30_000], clock))
            .collect();
        let course = Band::from_exchanges(&all, 1).unwrap().course();
        assert!((course.drift - 40e-6).abs() < 5e-6, "{}", course.drift);
        let few = Band::from_exchanges(&all[..50], 1).unwrap().course();
        assert_eq!(few.drift, 0.0);
    }
}
