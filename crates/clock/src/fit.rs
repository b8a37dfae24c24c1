//! All courses that the offset may have taken, by set membership over segments of time.
//!
//! Within a segment the offset is taken for a straight line; by how much the true course may leave it
//! follows from the caps, and widens both the limits and the result. What a line may be (offset at the
//! segment's start, drift) is a convex [`Region`], cut by each limit of an exchange. Regions are carried
//! from segment to segment forwards and backwards; what both leave is exactly what a linear program over
//! all segments would leave. Over one segment it is the convex-hull bound of Moon, Skelly and Towsley,
//! "Estimation and Removal of Clock Skew from Network Delay Measurements", INFOCOM 1999.

use std::ops::Range;

use crate::band::{Fit, Point};
use crate::exchange::Exchange;
use crate::region::{Half, Region};

/// The longest segment, s; a sudden change of drift counts as one over this time.
const SEGMENT_S: f64 = 1.0;
/// The longest time of a fit, s: a day and some hours.
const LONGEST_S: u64 = 100_000;
/// Readings are whole nanoseconds: each limit may be wrong by this much.
const READING_NS: f64 = 1.0;

/// Limits that the clocks are trusted to keep. The bound is hard for clocks that keep them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Caps {
    /// Largest drift of one clock against the other, parts per million; above 0, at most 100,000.
    ///
    /// The default is 200: Ethernet allows each host's oscillator 100 (IEEE 802.3). A daemon that slews a
    /// clock goes beyond it (the kernel's own slew is 500), which shows as a [`FitError::Contradiction`].
    pub drift_ppm: f64,
    /// Largest change of the drift in a second, parts per million; above 0. At two moments further apart it
    /// may differ by this much for each second between them; a sudden change counts as one over a second.
    ///
    /// The default is 1. A daemon that changes a clock's frequency by more at once needs a higher cap; the
    /// bound does not hold for what it does beyond the cap, which is found only where exchanges show it.
    pub change_ppm_per_s: f64,
}

impl Default for Caps {
    fn default() -> Self {
        Caps {
            drift_ppm: 200.0,
            change_ppm_per_s: 1.0,
        }
    }
}

impl Caps {
    fn check(&self) -> Result<(), FitError> {
        let drift = self.drift_ppm > 0.0 && self.drift_ppm <= 100_000.0;
        let change = self.change_ppm_per_s > 0.0 && self.change_ppm_per_s.is_finite();
        match drift && change {
            true => Ok(()),
            false => Err(FitError::Caps(*self)),
        }
    }
}

/// A time within which the clocks did what the caps do not allow: one was set, or drifted too fast.
///
/// It runs from one exchange to a later one that contradicts it and those between. Exchanges before or
/// after these have no part in it. A clock that was set was set within that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Break {
    /// The first of these exchanges was sent, near clock, ns.
    pub from: u64,
    /// The last of them was heard, near clock, ns.
    pub until: u64,
    /// By how much that reading lies beyond any course that the caps allow, ns: the clock moved by at least
    /// this much more than they allow.
    pub beyond_ns: u64,
}

/// Why there is no fit.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FitError {
    /// No exchange came back.
    #[error(
        "no exchange of clock readings came back, so the offset between the clocks is not known\n  hint: is the far host's UDP port reachable?"
    )]
    NoExchange,
    /// Readings that no clock gives which only goes forward.
    #[error(
        "a clock went back within an exchange: {0:?} (ns)\n  hint: both must be read from CLOCK_MONOTONIC"
    )]
    Impossible(Exchange),
    /// No offset that keeps to the caps agrees with all exchanges; all times at which that shows.
    #[error(
        "the clocks did what their caps do not allow, {}\n  hint: a clock was set or slewed (look at the time daemons of both hosts), or drifts more than the caps say", told(.0)
    )]
    Contradiction(Vec<Break>),
    /// Caps out of their ranges.
    #[error(
        "caps on the clocks make no sense: {0:?}; expected a drift above 0 and at most 100000 ppm, a change of it above 0"
    )]
    Caps(Caps),
    /// More time than [`fit`] is made for, or a moment beyond 292 years.
    #[error(
        "exchanges of clock readings from {from} to {until} ns; at most {} s can be fitted at once",
        LONGEST_S
    )]
    Time {
        /// First moment, near clock, ns.
        from: u64,
        /// Last moment.
        until: u64,
    },
}

fn told(breaks: &[Break]) -> String {
    let told = breaks.iter().map(|one| {
        let seconds = |ns: u64| ns as f64 / 1e9;
        format!(
            "between {:.6} s and {:.6} s of the near clock by at least {} ns",
            seconds(one.from),
            seconds(one.until),
            one.beyond_ns
        )
    });
    told.collect::<Vec<_>>().join(", ")
}

/// The offset over the time of these exchanges, in any order.
///
/// # Errors
/// No exchanges, or over more than 100,000 s; readings that go back, caps out of their ranges; clocks that
/// did what the caps do not allow.
pub fn fit(exchanges: &[Exchange], caps: Caps) -> Result<Fit, FitError> {
    fit_over(exchanges, caps, u64::MAX, 0)
}

/// The offset over the time of these exchanges and that from `from` to `until` (near clock, ns). Where
/// there are no exchanges the bound grows by what the caps allow.
///
/// # Errors
/// As [`fit`].
pub fn fit_over(
    exchanges: &[Exchange],
    caps: Caps,
    from: u64,
    until: u64,
) -> Result<Fit, FitError> {
    caps.check()?;
    if let Some(wrong) = exchanges.iter().find(|one| !one.is_possible()) {
        return Err(FitError::Impossible(*wrong));
    }
    let first = exchanges.iter().min_by_key(|one| one.sent);
    let last = exchanges.iter().map(|one| one.heard).max();
    let (Some(first), Some(last)) = (first, last) else {
        return Err(FitError::NoExchange);
    };
    let (from, until) = (from.min(first.sent), until.max(last));
    if i64::try_from(until).is_err() || until - from > LONGEST_S * 1_000_000_000 {
        return Err(FitError::Time { from, until });
    }
    // Both differences are of readings below 2^63.
    let base = first.received as i64 - first.sent as i64;
    let search = Search::new(exchanges, caps, from, until, base);
    let points = search.points().map_err(FitError::Contradiction)?;
    Ok(Fit::new(from, base, points, search.drift / 1e9))
}

/// One side of an exchange.
#[derive(Clone, Copy, Debug)]
struct Limit {
    /// Near clock, ns.
    at: u64,
    /// When its exchange was sent and heard.
    exchange: (u64, u64),
    segment: usize,
    /// Since the segment's start, s.
    since: f64,
    /// The offset is at most, or at least, this, ns.
    value: f64,
    is_upper: bool,
}

impl Limit {
    fn half(&self) -> Half {
        let sign = if self.is_upper { 1.0 } else { -1.0 };
        Half {
            a: sign,
            b: sign * self.since,
            most: sign * self.value,
        }
    }

    /// How far `region` lies outside, ns.
    fn beyond(&self, region: &Region) -> f64 {
        let (low, high) = region.offsets(self.since);
        match self.is_upper {
            true => low - self.value,
            false => self.value - high,
        }
    }
}

/// The limit that left an empty region, and by how much it was missed, ns.
struct Stuck {
    limit: usize,
    beyond: f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Forwards,
    Backwards,
}

struct Search {
    /// In order of time.
    limits: Vec<Limit>,
    /// Length of each segment, s.
    length: f64,
    segments: usize,
    /// Cap on drift, ns per s.
    drift: f64,
    /// Cap on the difference of drift between neighbouring segments, ns per s.
    change: f64,
    /// How far the true course leaves a straight line within a segment at most, ns.
    bend: f64,
    /// Bounds below and above all possible offsets, ns.
    range: (f64, f64),
}

impl Search {
    fn new(exchanges: &[Exchange], caps: Caps, from: u64, until: u64, base: i64) -> Search {
        let span = (until - from) as f64 / 1e9;
        let segments = (span / SEGMENT_S).ceil().max(1.0);
        let length = (span / segments).max(1e-6);
        let (drift, change) = (
            caps.drift_ppm * 1e3,
            caps.change_ppm_per_s * 1e3 * SEGMENT_S,
        );
        // A slope that varies by w over a length h leaves the chord by w * h / 4 at most.
        let bend = change * length / 4.0;
        let slack = bend + READING_NS;
        let mut limits: Vec<Limit> = Vec::with_capacity(2 * exchanges.len());
        for exchange in exchanges {
            let sides = [
                (exchange.sent, exchange.upper(), true),
                (exchange.heard, exchange.lower(), false),
            ];
            limits.extend(sides.map(|(at, value, is_upper)| {
                let after = (at - from) as f64 / 1e9;
                let segment = (after / length).floor().min(segments - 1.0);
                let value = (value - i128::from(base)) as f64;
                Limit {
                    at,
                    exchange: (exchange.sent, exchange.heard),
                    segment: segment as usize,
                    since: after - segment * length,
                    value: if is_upper {
                        value + slack
                    } else {
                        value - slack
                    },
                    is_upper,
                }
            }));
        }
        limits.sort_by_key(|limit| (limit.at, limit.is_upper));
        let values = || limits.iter().map(|limit| limit.value);
        let reach = drift * span + slack;
        let low = values().fold(f64::INFINITY, f64::min) - reach;
        let high = values().fold(f64::NEG_INFINITY, f64::max) + reach;
        Search {
            limits,
            length,
            segments: segments as usize,
            drift,
            change,
            bend,
            range: (low, high),
        }
    }

    /// The band, or all times at which the limits contradict each other.
    fn points(&self) -> Result<Vec<Point>, Vec<Break>> {
        let all = 0..self.limits.len();
        let whole = 0..self.segments;
        let forwards = self.walk(all.clone(), whole.clone(), Way::Forwards);
        let backwards = self.walk(all, whole, Way::Backwards);
        let (Ok(mut regions), Ok(backwards)) = (forwards, backwards) else {
            return Err(self.breaks());
        };
        for (region, other) in regions.iter_mut().zip(&backwards) {
            let mut both = region.clone();
            both.meet(other);
            // Both ways left something, and so do both together; should rounding say otherwise, one way
            // alone is a bound as well.
            if !both.is_empty() {
                *region = both;
            }
        }
        Ok(self.band(&regions))
    }

    /// Regions of the segments `over`, each cut by those of `limits` that lie in it or before it on the
    /// way.
    fn walk(
        &self,
        limits: Range<usize>,
        over: Range<usize>,
        way: Way,
    ) -> Result<Vec<Region>, Stuck> {
        let mut region = Region::new(self.range.0, self.range.1, self.drift);
        let mut regions = Vec::with_capacity(over.len());
        let first = limits.start;
        let own = &self.limits[limits];
        // Limits in order of time are in order of segments.
        let begin = |segment: usize| first + own.partition_point(|limit| limit.segment < segment);
        let mut segments: Vec<usize> = over.collect();
        if way == Way::Backwards {
            segments.reverse();
        }
        for (n, segment) in segments.into_iter().enumerate() {
            if n > 0 {
                self.step(&mut region, way);
            }
            let chunk = begin(segment)..begin(segment + 1);
            match way {
                Way::Forwards => self.cut(&mut region, chunk)?,
                Way::Backwards => self.cut(&mut region, chunk.rev())?,
            }
            regions.push(region.clone());
        }
        if way == Way::Backwards {
            regions.reverse();
        }
        Ok(regions)
    }

    /// To the next segment.
    fn step(&self, region: &mut Region, way: Way) {
        match way {
            Way::Forwards => {
                region.pass(self.length);
                region.vary(self.change, self.drift);
            }
            Way::Backwards => {
                region.vary(self.change, self.drift);
                region.pass(-self.length);
            }
        }
    }

    fn cut(&self, region: &mut Region, limits: impl Iterator<Item = usize>) -> Result<(), Stuck> {
        for n in limits {
            let limit = &self.limits[n];
            let beyond = limit.beyond(region);
            region.cut(limit.half());
            if region.is_empty() {
                return Err(Stuck { limit: n, beyond });
            }
        }
        Ok(())
    }

    /// All times at which the limits leave nothing, each after the one before.
    fn breaks(&self) -> Vec<Break> {
        let mut breaks: Vec<Break> = Vec::new();
        let mut start = 0;
        while start < self.limits.len() {
            let over = self.limits[start].segment..self.segments;
            let Err(stuck) = self.walk(start..self.limits.len(), over, Way::Forwards) else {
                break;
            };
            let end = stuck.limit;
            let over = self.limits[start].segment..self.limits[end].segment + 1;
            let back = self.walk(start..end + 1, over, Way::Backwards);
            let from = back.err().map_or(start, |stuck| stuck.limit);
            breaks.push(Break {
                from: self.limits[from]
                    .exchange
                    .0
                    .min(self.limits[end].exchange.0),
                until: self.limits[end]
                    .exchange
                    .1
                    .max(self.limits[from].exchange.1),
                beyond_ns: stuck.beyond.max(0.0) as u64,
            });
            start = end;
        }
        breaks
    }

    fn band(&self, regions: &[Region]) -> Vec<Point> {
        let mut points = Vec::new();
        let mut point = |region: &Region, segment: usize, since: f64| {
            let (low, high) = region.offsets(since);
            points.push(Point {
                at: (segment as f64 * self.length + since) * 1e9,
                low: low - self.bend,
                high: high + self.bend,
            });
        };
        for (segment, region) in regions.iter().enumerate() {
            point(region, segment, 0.0);
            for moment in region.kinks(self.length) {
                point(region, segment, moment);
            }
        }
        if let Some(last) = regions.last() {
            point(last, regions.len() - 1, self.length);
        }
        points
    }
}
