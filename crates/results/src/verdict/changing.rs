//! Whether a system carried a load that changes over time.
//!
//! By Little's law the backlog rises and falls with the rate although nothing waits. What does not change with it is how late
//! deliveries are: the time since as many were due as have come. It is the backlog of an even load that has as much to carry
//! in all, and is judged as such a one. A system may carry a load over all its course and still not keep up where it is
//! highest: that stretch is judged by itself.

use super::carried::{self, Carried, Course};
use super::growth::{Growth, Kind};
use super::thresholds;

/// A backlog under a load that changes, and what was due.
pub(super) struct ChangingLoad<'a> {
    /// Seconds from the start of the measurement, in ascending order, and the backlog then.
    pub points: &'a [(f64, f64)],
    /// Deliveries due up to each of them.
    pub due: &'a [f64],
    /// Seconds for which nothing was delivered although messages were under way, at the longest.
    pub silence: f64,
    /// Seconds after which bursts of other arrivals repeat, and for which messages are gathered.
    pub cycle: f64,
}

/// A part of the course, as indices of points, both included.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    from: usize,
    to: usize,
}

impl ChangingLoad<'_> {
    /// The finding.
    pub fn carried(&self) -> Carried {
        let last = self.points.len().saturating_sub(1);
        let whole = Stretch { from: 0, to: last };
        if self.points.len() < 3 || self.due_per_s(whole) <= 0.0 {
            return Carried::All;
        }
        let climb = self.climb();
        if let Some(climb) = climb.filter(|climb| self.is_long_and_high(*climb))
            && let Carried::Not(_) = self.evened(climb).carried()
        {
            return Carried::Not(self.growth(climb));
        }
        match self.evened(whole).carried() {
            Carried::Not(_) => Carried::Not(self.growth(whole)),
            Carried::All => climb
                .filter(|climb| climb.to == last && self.may_go_on(*climb))
                .map_or(Carried::All, |climb| self.unknown(climb)),
            // The lowest is told as it was, not as it would have been under an even load.
            Carried::Unknown { needs_s, .. } => self.unsteady(needs_s),
        }
    }

    fn seconds(&self, stretch: Stretch) -> f64 {
        self.points[stretch.to].0 - self.points[stretch.from].0
    }

    fn due_in(&self, stretch: Stretch) -> f64 {
        self.due[stretch.to] - self.due[stretch.from]
    }

    fn due_per_s(&self, stretch: Stretch) -> f64 {
        self.due_in(stretch) / self.seconds(stretch).max(f64::MIN_POSITIVE)
    }

    /// A stretch under a load that is even and as high as that is on average: deliveries are as late.
    fn evened(&self, stretch: Stretch) -> Course {
        let rate = self.due_per_s(stretch);
        let part = stretch.from..=stretch.to;
        let start = self.points[stretch.from].0;
        let points: Vec<(f64, f64)> = part
            .map(|n| (self.points[n].0, rate * self.lateness(n)))
            .collect();
        let due = points.iter().map(|(t, _)| rate * (t - start)).collect();
        let growth = points[points.len() - 1].1 - points[0].1;
        Course {
            delivered: self.due_in(stretch) - growth,
            points,
            due,
            before: 0.0,
            rose: None,
            cycle: self.cycle,
            silence: self.silence,
            for_rate: 0.0,
        }
    }

    /// Seconds since as many deliveries were due as have come by a point.
    fn lateness(&self, n: usize) -> f64 {
        let (t, backlog) = self.points[n];
        let came = self.due[n] - backlog;
        let after = self.due.partition_point(|due| *due <= came);
        if after == self.due.len() {
            return 0.0;
        }
        let Some(before) = after.checked_sub(1) else {
            // Due in the warm-up, at the first rate.
            let rate = self.due_per_s(Stretch { from: 0, to: 1 });
            let rate = if rate > 0.0 {
                rate
            } else {
                self.due_per_s(Stretch {
                    from: 0,
                    to: self.points.len() - 1,
                })
            };
            return t - self.points[0].0 + (self.due[0] - came) / rate;
        };
        let share = (came - self.due[before]) / (self.due[after] - self.due[before]);
        let [from, to] = [self.points[before].0, self.points[after].0];
        (t - from - share * (to - from)).max(0.0)
    }

    /// The stretch in which deliveries became later and later until they were latest, if that came to more than a few
    /// messages.
    fn climb(&self) -> Option<Stretch> {
        let all = self.evened(Stretch {
            from: 0,
            to: self.points.len() - 1,
        });
        let overdue = all.overdue();
        let most = overdue.iter().map(|p| p.1).fold(0.0, f64::max);
        let to = overdue.iter().position(|p| p.1 >= most)?;
        let few = thresholds::CLIMB_FROM * most;
        let from = overdue[..to].iter().rposition(|p| p.1 <= few);
        let stretch = Stretch {
            from: from.unwrap_or(0),
            to,
        };
        let grew = self.points[to].1 - self.points[stretch.from].1;
        (grew >= thresholds::BACKLOG_FLOOR).then_some(stretch)
    }

    /// The growth in a stretch at its mean rate, messages: what is left of what was due there, if all the time as much comes
    /// as that which makes deliveries later.
    fn grew(&self, stretch: Stretch) -> f64 {
        (self.lateness(stretch.to) - self.lateness(stretch.from)) * self.due_per_s(stretch)
    }

    /// Whether a climb is no chance, takes a good part of the measurement, and has the highest load of all in it: elsewhere
    /// it is the system that became slower for a while.
    fn is_long_and_high(&self, climb: Stretch) -> bool {
        let whole = Stretch {
            from: 0,
            to: self.points.len() - 1,
        };
        let chance = thresholds::CLIMB_DEVIATIONS * (2.0 * self.due_in(climb)).sqrt();
        let highest = |stretch: Stretch| {
            // Over a few points, since one may have little due.
            let few = (self.points.len() / 50).max(1);
            let starts = stretch.from..=stretch.to.saturating_sub(few).max(stretch.from);
            let rates = starts.map(|from| {
                let to = (from + few).min(stretch.to);
                self.due_per_s(Stretch { from, to })
            });
            rates.fold(0.0, f64::max)
        };
        self.seconds(climb) >= thresholds::CLIMB_SHARE * self.seconds(whole)
            && self.grew(climb) > chance
            && highest(climb) >= thresholds::CLIMB_HIGH * highest(whole)
    }

    /// Whether a climb at the end of the measurement may be a queue that had only begun: it is more than a pause.
    fn may_go_on(&self, climb: Stretch) -> bool {
        let least = thresholds::RISE_SHARE * self.due_in(climb);
        self.seconds(climb) > thresholds::CYCLES * self.silence
            && climb.to - climb.from >= thresholds::CLIMB_POINTS
            && self.grew(climb) > least.max(thresholds::BACKLOG_FLOOR)
            && self.lateness(climb.to) > thresholds::QUEUE_FACTOR * self.lateness(climb.from)
    }

    fn growth(&self, stretch: Stretch) -> Growth {
        let [from, to] = [stretch.from, stretch.to].map(|n| self.points[n].1);
        let tenth = ((stretch.to - stretch.from) / 10).max(1);
        let rates = [stretch.from, stretch.to - tenth].map(|from| {
            let to = from + tenth;
            self.due_per_s(Stretch { from, to })
        });
        Growth {
            flow: None,
            kind: Kind::Changing {
                rates,
                share: self.grew(stretch) / self.due_in(stretch).max(1.0),
                late: self.lateness(stretch.to),
            },
            from,
            to,
            seconds: self.seconds(stretch),
        }
    }

    fn unsteady(&self, needs_s: f64) -> Carried {
        let third = self.points.len() / 3;
        let least = |part: std::ops::Range<usize>| {
            let late = part.map(|n| self.lateness(n));
            late.fold(f64::INFINITY, f64::min)
        };
        let count = self.points.len();
        let (first, last) = (least(0..third), least(count - third..count));
        Carried::Unknown {
            needs_s,
            why: format!(
                "{} of measurement are too short to tell whether the load was carried, which changes meanwhile: deliveries were \
                 {first:.3} s late at the least in the first third and {last:.3} s in the last; {} or more would do",
                carried::seconds(self.points[count - 1].0),
                carried::seconds(needs_s),
            ),
        }
    }

    fn unknown(&self, climb: Stretch) -> Carried {
        let last = self.points[self.points.len() - 1].0;
        let needs_s = thresholds::QUEUE_FACTOR * last;
        Carried::Unknown {
            needs_s,
            why: format!(
                "{} of measurement are too short to tell whether the load was carried: where it was highest, at the end, the \
                 backlog grew from {:.0} to {:.0} messages in {}; as much load for longer would do",
                carried::seconds(last),
                self.points[climb.from].1,
                self.points[climb.to].1,
                carried::seconds(self.seconds(climb)),
            ),
        }
    }
}
