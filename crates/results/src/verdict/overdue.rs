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
    /// What was overdue at each moment: due for longer than messages take at least, and not come. Below 0 where they
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

    /// The time that messages take at least, s: that of the tenth of them that waited least. 0 where most were due
    /// before the first moment, or it is a good part of all that is known.
    pub fn delay(&self) -> f64 {
        let length = match self.points {
            [first, .., last] => last.0 - first.0,
            _ => return 0.0,
        };
        if self.due.len() != self.points.len() {
            return 0.0;
        }
        // The age of what comes next, and the messages that fell due in that step.
        let mut ages: Vec<(f64, f64)> = Vec::new();
        let mut unknown = 0.0;
        for n in 1..self.points.len() {
            let weight = self.due[n] - self.due[n - 1];
            let (t, backlog) = self.points[n];
            let come = self.due[n] - backlog;
            if come < self.due[0] {
                unknown += weight;
            } else if weight > 0.0 {
                ages.push(((t - self.due_until(come)).max(0.0), weight));
            }
        }
        ages.sort_by(|a, b| a.0.total_cmp(&b.0));
        let known: f64 = ages.iter().map(|age| age.1).sum();
        let mut below = 0.0;
        let least = ages.iter().find(|age| {
            below += age.1;
            below >= thresholds::LEAST_DELAYED * known
        });
        let least = least.map_or(0.0, |least| least.0);
        // Such a delay says more of what was due before than of the measurement.
        let is_known = known > unknown && least <= thresholds::DELAY_SHARE * length;
        if is_known { least } else { 0.0 }
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

    /// The last time at which no more than so many deliveries were due.
    fn due_until(&self, count: f64) -> f64 {
        let after = self.due.partition_point(|due| *due <= count);
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
