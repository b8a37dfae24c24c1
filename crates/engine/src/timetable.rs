//! The points in time of a run.

use pubgauge_driver::{Kind, Nanos};
use pubgauge_workload::{Flow, Phases};
use serde::{Deserialize, Serialize};

/// Longest sleep of a worker, so that commands are seen soon.
pub const NAP: Nanos = 10_000_000;
/// A message that was due before the end of the measurement may leave for this time after it, because the worker may have
/// slept that long, and for the span in which messages are gathered: if it does not leave then, it is not sent.
pub const GRACE: Nanos = 2 * NAP;

/// The points in time of a run, on the trial's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timetable {
    /// Warm-up traffic begins.
    pub warm_up: Nanos,
    /// The measurement begins.
    pub measure: Nanos,
    /// The measurement ends at the latest.
    pub end: Nanos,
    /// Length of the intervals of the series: see [`Phases::record_length`].
    pub interval: Nanos,
    /// Into how many steps an interval is divided for the course of the backlog: see [`steps_of`].
    pub steps: u32,
}

impl Timetable {
    /// The part to which a message that is due at `at` belongs.
    #[inline]
    pub fn kind_at(&self, at: Nanos) -> Kind {
        if at >= self.measure {
            Kind::Measured
        } else {
            Kind::WarmUp
        }
    }

    /// When a flow's schedule begins: with the warm-up, or, where the flow has a start offset or a
    /// length of its own, that offset after the start of the measurement.
    pub fn origin(&self, flow: &Flow) -> Nanos {
        match flow.start_offset.or(flow.active_for.map(|_| 0)) {
            Some(offset) => self.measure + offset,
            None => self.warm_up,
        }
    }

    /// When a flow's schedule begins and when it ends.
    pub fn span(&self, flow: &Flow) -> (Nanos, Nanos) {
        let origin = self.origin(flow);
        let end = flow.active_for.map(|span| origin.saturating_add(span));
        (origin, end.map_or(self.end, |end| end.min(self.end)))
    }
}

/// Into how many steps each record of the measurement is divided for the course of the backlog: as many as make 600 over
/// the measurement, 20 at the most. What the backlog does within a step is less than a verdict would notice.
pub fn steps_of(phases: &Phases) -> u32 {
    const STEPS: u64 = 600;
    let length = phases.measure.latest();
    let intervals = length.div_ceil(phases.record_length()).max(1);
    (STEPS / intervals).clamp(1, 20) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubgauge_workload::Until;

    #[test]
    fn the_course_has_two_hundred_steps_and_600_at_the_most() {
        for (length_s, steps) in [(1, 20), (10, 20), (30, 20), (60, 10), (600, 1), (86_400, 1)] {
            let phases = Phases {
                measure: Until::Time(length_s * 1_000_000_000),
                ..Phases::default()
            };
            assert_eq!(steps_of(&phases), steps, "{length_s} s");
        }
    }
}
