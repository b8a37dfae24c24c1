//! The part of a backlog that the system's delay does not explain.
//!
//! By Little's law as many messages are under way as fall due in the time that each takes: the number rises with
//! the rate although nothing waits. What is overdue, beyond the time that messages take anyway, is a queue.

use super::thresholds;

/// A course of deliveries: what was due at each moment, and what had not come.
pub(super) struct Arrived<'a> {
    /// Seconds from the start of the measurement, in ascending order, and the backlog then.
    pub points: &'a [(f64, f64)],
    /// Deliveries due up to each of them.
    pub due: &'a [f64],
}

impl Arrived<'_> {
    /// The overdue deliveries at each moment: due for longer than messages take at least, and not come. Below 0 where they
    /// took less. Without counts of what was due it is the whole backlog.
    pub fn overdue(&self) -> Vec<(f64, f64)> {
        let delay = self.delay();
        if delay <= 0.0 {
            return self.points.to_vec();
        }
        let start = self.points[0].0;
        // How fast messages fell due before the first moment, of which nothing is known: as at first.
        let early = (self.due_at(start + delay) - self.due[0]) / delay;
        let points = self.points.iter().zip(self.due);
        points
            .map(|((t, backlog), due)| {
                let then = t - delay;
                if then >= start {
                    (*t, backlog - (due - self.due_at(then)))
                } else {
                    let before = self.due[0] - early * (start - then);
                    (*t, (backlog - (due - before)).max(0.0))
                }
            })
            .collect()
    }

    /// The time that messages take at least, s: that of the tenth of them that waited least, in the third of the course
    /// in which it is shortest, so that a queue that grows meanwhile is no part of it. 0 where most were due before the
    /// first moment, or it is a good part of all that is known.
    pub fn delay(&self) -> f64 {
        let length = match self.points {
            [first, .., last] => last.0 - first.0,
            _ => return 0.0,
        };
        if self.due.len() != self.points.len() {
            return 0.0;
        }
        let (mut ages, unknown) = self.ages();
        let known: f64 = ages.iter().map(|age| age.deliveries).sum();
        let third = ages.len().div_ceil(3).max(1);
        let thirds = ages.chunks_mut(third).filter_map(|third| {
            third.sort_by(|a, b| a.age.total_cmp(&b.age));
            let all: f64 = third.iter().map(|age| age.deliveries).sum();
            let mut below = 0.0;
            let least = third.iter().find(|age| {
                below += age.deliveries;
                below >= thresholds::LEAST_DELAYED * all
            });
            // A few messages are an exception.
            least.filter(|_| all >= thresholds::LEAST_DELAYED * known)
        });
        let least = thirds.map(|least| least.age).fold(f64::INFINITY, f64::min);
        // Such a delay says more of what was due before than of the measurement.
        let is_known = known > unknown && least <= thresholds::DELAY_SHARE * length;
        if is_known { least } else { 0.0 }
    }

    /// How old was what came last in each step of the course in which something came, as if messages came in the order
    /// in which they fell due; and how many came of which that is not known, since they were due before the first moment.
    fn ages(&self) -> (Vec<Came>, f64) {
        let come = |n: usize| self.due[n] - self.points[n].1;
        let mut ages = Vec::new();
        let mut unknown = 0.0;
        // Messages that were counted as passed over or refused may make it less again.
        let mut before = come(0);
        for n in 1..self.points.len() {
            let deliveries = come(n) - before;
            if deliveries <= 0.0 {
                continue;
            }
            before = come(n);
            if come(n) <= self.due[0] {
                unknown += deliveries;
            } else {
                let age = (self.points[n].0 - self.due_since(come(n))).max(0.0);
                ages.push(Came { age, deliveries });
            }
        }
        (ages, unknown)
    }

    /// Deliveries due until a time within the course.
    fn due_at(&self, t: f64) -> f64 {
        let after = self.points.partition_point(|p| p.0 < t);
        let before = after.saturating_sub(1);
        let after = after.min(self.points.len() - 1);
        let (from, to) = (self.points[before].0, self.points[after].0);
        let share = if to > from {
            (t - from) / (to - from)
        } else {
            0.0
        };
        self.due[before] + share.clamp(0.0, 1.0) * (self.due[after] - self.due[before])
    }

    /// The first time at which so many deliveries were due.
    fn due_since(&self, count: f64) -> f64 {
        let after = self.due.partition_point(|due| *due < count);
        let before = after.saturating_sub(1);
        let after = after.min(self.due.len() - 1);
        let (from, to) = (self.due[before], self.due[after]);
        let share = if to > from {
            (count - from) / (to - from)
        } else {
            0.0
        };
        let (t, u) = (self.points[before].0, self.points[after].0);
        t + share.clamp(0.0, 1.0) * (u - t)
    }
}

/// Deliveries of a step of the course, and how old the last of them was, s.
struct Came {
    age: f64,
    deliveries: f64,
}
