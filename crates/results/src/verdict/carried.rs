//! Whether a system carried what it was offered, told from the course of the backlog.
//!
//! Arrivals come in bursts, and systems deliver in lumps or pause; the backlog swings with them. What does not
//! swing is where it is lowest: over a span that is as long as a cycle of the arrivals and a lump of the
//! deliveries together, a system that carries its load comes down to the same level again and again, and one
//! that does not comes down less each time.

use super::growth::{DelayGrowth, Growth, Kind};
use super::overdue::Arrived;
use super::thresholds;

/// The finding from the course of a backlog.
pub(super) enum Carried {
    /// Everything offered was carried.
    All,
    /// A queue grew.
    Not(Growth),
    /// The measurement is too short to tell: how long one would have to be, s, and the reason.
    Unknown { needs_s: f64, why: String },
}

/// A backlog over a measurement, and what it swings with.
pub(super) struct Course {
    /// Seconds from the start of the measurement, in ascending order, and messages.
    pub points: Vec<(f64, f64)>,
    /// Deliveries due up to each point; empty where that is not known.
    pub due: Vec<f64>,
    /// First deliveries within the measurement.
    pub delivered: f64,
    /// Seconds for which the load had lasted at the first point.
    pub before: f64,
    /// Median latency, ns, first and last, where that rose.
    pub rose: Option<(f64, f64)>,
    /// Seconds after which the arrivals repeat, and for which messages are gathered; 0: they are even, or random.
    pub cycle: f64,
    /// Seconds for which nothing was delivered although messages were under way, at the longest.
    pub silence: f64,
    /// Seconds that the measurement must last because of the lumps in which a rate was delivered; 0: it is not
    /// a rate that is looked for.
    pub for_rate: f64,
}

impl Course {
    /// Length of what is known, s.
    fn length(&self) -> f64 {
        self.last_time() - self.points.first().map_or(0.0, |p| p.0)
    }

    fn last_time(&self) -> f64 {
        self.points.last().map_or(0.0, |p| p.0)
    }

    /// Deliveries that were due, per second.
    pub fn due_per_s(&self) -> f64 {
        let ends = [self.points.first(), self.points.last()];
        let [from, to] = ends.map(|p| p.map_or(0.0, |p| p.1));
        (self.delivered + to - from).max(0.0) / self.length().max(f64::MIN_POSITIVE)
    }

    /// Length of the lumps in which messages are delivered, s; 0 where they are too short, or too few messages, to
    /// matter.
    pub fn lumps(&self) -> f64 {
        let matter = self.silence > thresholds::LUMP_SHARE * self.length()
            && self.silence * self.due_per_s() >= thresholds::BACKLOG_FLOOR;
        if matter { self.silence } else { 0.0 }
    }

    /// The finding.
    pub fn carried(&self) -> Carried {
        let (length, due, lumps) = (self.length(), self.due_per_s(), self.lumps());
        if self.points.len() < 2 || due <= 0.0 {
            return Carried::All;
        }
        let swing = self.cycle + lumps;
        let needed = thresholds::CYCLES * swing + lumps;
        if length < thresholds::CYCLES_SLACK * needed {
            return if self.rests() {
                Carried::All
            } else {
                self.unknown(needed, &self.swings())
            };
        }
        let span = swing.max((length - lumps) / thresholds::CYCLES);
        // Messages that are under way because they take their time are no queue.
        let overdue = self.overdue();
        let (Some(seen), Some(lows)) = (Lows::new(&self.points, span), Lows::new(&overdue, span))
        else {
            return Carried::All;
        };
        let rise = lows.last() - lows.first();
        let step = (thresholds::RISE_SHARE * due * span).max(thresholds::RISE_FLOOR);
        let between = due * (length - span);
        // A few messages are no queue, whatever was under way at first.
        let queue = rise.min(seen.last());
        if queue >= thresholds::BACKLOG_FLOOR && lows.keep_rising(step) {
            let seconds = length - span;
            let delay = |backlog: f64| (backlog.max(0.0) + self.under_way()) / due;
            let from = delay(lows.first());
            return match DelayGrowth::classify((from, from + rise / due), seconds, self.before) {
                DelayGrowth::Queue => Carried::Not(self.growth(&seen, rise)),
                DelayGrowth::Unclear { needs_s } => self.unclear(needs_s),
                DelayGrowth::Nothing => Carried::All,
            };
        }
        if rise > (thresholds::RISE_UNCLEAR * between).max(thresholds::RISE_NOTHING) {
            let why = format!(
                "the backlog was {:.0} messages at its lowest in the first {span:.2} s and {:.0} in the last, but \
                 did not grow all the time",
                seen.first(),
                seen.last()
            );
            return self.unknown(thresholds::CYCLES * self.last_time(), &why);
        }
        let highest = lows.highest_before();
        let end = overdue.last().map_or(0.0, |p| p.1);
        if end - highest > (thresholds::END_UNCLEAR * due * length).max(thresholds::RISE_FLOOR) {
            let why = format!(
                "it ended with a backlog of {:.0} messages, {:.0} more than there had been at most before: whether \
                 that would have come to an end is not known",
                self.points.last().map_or(0.0, |p| p.1),
                end - highest
            );
            return self.unknown(thresholds::CYCLES * self.last_time(), &why);
        }
        if length < self.for_rate {
            self.unknown(self.for_rate, &self.swings())
        } else {
            Carried::All
        }
    }

    /// The backlog without what is under way because it takes its time.
    pub fn overdue(&self) -> Vec<(f64, f64)> {
        self.arrived().overdue()
    }

    fn arrived(&self) -> Arrived<'_> {
        Arrived {
            points: &self.points,
            due: &self.due,
        }
    }

    /// Messages that are under way at the mean rate because they take their time.
    pub fn under_way(&self) -> f64 {
        self.arrived().delay() * self.due_per_s()
    }

    /// A delay that grew, and may be of a queue or of a path that became slower.
    pub fn unclear(&self, needs_s: f64) -> Carried {
        let why = "messages took longer and longer, but not yet twice as long as when the load began: a queue that \
                   grows, or a path that became slower";
        self.unknown(self.last_time() + needs_s, why)
    }

    fn growth(&self, lows: &Lows, rise: f64) -> Growth {
        let (from, to) = (lows.first(), lows.last());
        let seconds = self.length() - lows.span;
        let rate = self.delivered / self.length();
        Growth {
            flow: None,
            kind: Kind::Backlog {
                share: rise / (self.due_per_s() * seconds).max(1.0),
                in_seconds: to / rate.max(f64::MIN_POSITIVE),
                latency: self.rose,
            },
            from,
            to,
            seconds,
        }
    }

    /// Whether the system rested for a good part of the last whole cycle: what was due in it was carried with
    /// time to spare, even if there was no other.
    fn rests(&self) -> bool {
        let lumps = self.lumps();
        if self.cycle <= 0.0 || self.length() < self.cycle + 2.0 * lumps {
            return false;
        }
        let few =
            (thresholds::RISE_SHARE * self.due_per_s() * self.cycle).max(thresholds::RISE_FLOOR);
        let from = self.last_time() - self.cycle;
        let last: Vec<f64> = (self.overdue().iter().filter(|p| p.0 >= from))
            .map(|p| p.1)
            .collect();
        let rested = last.iter().filter(|backlog| **backlog <= few).count();
        let share = rested as f64 / last.len().max(1) as f64;
        share >= thresholds::RESTED + lumps / self.cycle
    }

    /// The rhythm with which the backlog swings, in words.
    fn swings(&self) -> String {
        let lumps = self.lumps();
        let arrivals = format!("arrivals repeat every {}", seconds(self.cycle));
        let deliveries = format!(
            "nothing was delivered for up to {} at a time",
            seconds(self.silence)
        );
        match (self.cycle > lumps / 10.0, lumps > self.cycle / 10.0) {
            (true, true) => format!("{arrivals}, and {deliveries}"),
            (true, false) => arrivals,
            _ => deliveries,
        }
    }

    fn unknown(&self, needed: f64, why: &str) -> Carried {
        // Nothing before the first point is judged.
        let before = self.points.first().map_or(0.0, |p| p.0);
        let needs_s = needed.max(self.for_rate) + before;
        Carried::Unknown {
            needs_s,
            why: format!(
                "{} of measurement are too short to tell whether the load was carried: {why}; {} or more would do",
                seconds(self.last_time()),
                seconds(needs_s),
            ),
        }
    }
}

/// Seconds in three digits; what would do is rounded up.
pub(super) fn seconds(s: f64) -> String {
    let places = (2 - s.max(1e-9).log10().floor() as i32).clamp(0, 3);
    let unit = 10f64.powi(places);
    let up = (s * unit - 1e-6).ceil() / unit;
    format!("{up} s")
}

/// Where a backlog was lowest, span by span.
struct Lows<'a> {
    points: &'a [(f64, f64)],
    span: f64,
    /// The lowest from each point on, as far as a whole span follows.
    lowest: Vec<f64>,
}

impl<'a> Lows<'a> {
    /// `None` if the points are too few for two spans, as in an old trial of one or two records.
    fn new(points: &'a [(f64, f64)], span: f64) -> Option<Self> {
        let end = points.last()?.0;
        let mut lowest = Vec::new();
        for (n, (from, _)) in points.iter().enumerate() {
            // Times are sums of steps.
            let to = from + span * (1.0 + 1e-9) + 1e-9;
            if from + span > end + 1e-6 {
                break;
            }
            let within = points[n..].iter().take_while(|p| p.0 <= to);
            lowest.push(within.map(|p| p.1).fold(f64::INFINITY, f64::min));
        }
        let lows = Lows {
            points,
            span,
            lowest,
        };
        (lows.later(0) < lows.lowest.len()).then_some(lows)
    }

    fn first(&self) -> f64 {
        self.lowest[0]
    }

    fn last(&self) -> f64 {
        self.lowest[self.lowest.len() - 1]
    }

    /// The point that is a span later than this one.
    fn later(&self, n: usize) -> usize {
        let at = self.points[n].0 + self.span - 1e-6;
        self.points.partition_point(|p| p.0 < at)
    }

    /// Whether the lowest rises by more than `step` from each span to the one that follows it, wherever they
    /// begin.
    fn keep_rising(&self, step: f64) -> bool {
        let pairs = (0..self.lowest.len()).map(|n| (n, self.later(n)));
        let mut pairs = pairs.take_while(|(_, later)| *later < self.lowest.len());
        pairs.all(|(n, later)| self.lowest[later] - self.lowest[n] > step)
    }

    /// The highest backlog before the last span.
    fn highest_before(&self) -> f64 {
        let before = &self.points[..self.lowest.len()];
        before.iter().map(|p| p.1).fold(0.0, f64::max)
    }
}
