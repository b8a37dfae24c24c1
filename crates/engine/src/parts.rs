//! Counts and times of the named windows of a measurement.
//!
//! The beginnings and ends of all windows, the bounds, cut the measurement into parts; windows may
//! overlap, and a window is one part or several neighbouring ones. A message belongs to the part of its
//! intended send time, and so do its deliveries, its losses and its times, whenever they come; that is
//! exact, because the header carries that time. Rates count what happened between two bounds: at each of
//! them every worker takes its totals, as at a cut of the series ([`crate::series`]).

use std::collections::BTreeMap;
use std::ops::Range;

use hdrhistogram::Histogram;
use pubgauge_driver::Nanos;
use pubgauge_workload::Phases;
use serde::{Deserialize, Serialize};

use crate::counts::add_all;
use crate::message_counts::{MessageCounts, Rejected};
use crate::series::Totals;
pub use crate::series::bounds;
use crate::times::Measure;
use crate::timetable::Timetable;

/// The observations of one worker, or of all, of one flow by windows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowParts {
    /// Part by part.
    pub of: Vec<MessageCounts>,
    /// The counts at each bound, of all messages, those of the warm-up included.
    pub by: Vec<Totals>,
}

impl FlowParts {
    /// Adds another worker's share, or the other half.
    pub fn add(&mut self, other: &FlowParts) {
        add_all(&mut self.of, &other.of, MessageCounts::add);
        crate::series::add_up(&mut self.by, &other.by);
    }
}

/// Number of parts, at least 1.
pub fn count(phases: &Phases) -> usize {
    bounds(phases).len() + 1
}

/// The parts of the window between two bounds.
fn parts_between(bounds: &[Nanos], from: Nanos, to: Nanos) -> Range<usize> {
    let after = |bound| bounds.partition_point(|b| *b <= bound);
    after(from)..after(to)
}

/// One flow's messages on one worker, part by part.
#[derive(Debug)]
pub struct Parts {
    /// Times of the trial's clock.
    bounds: Box<[Nanos]>,
    /// The measurement.
    measured: Range<Nanos>,
    /// The part that was asked for last, and its span.
    last: usize,
    span: Range<Nanos>,
    of: Vec<MessageCounts>,
    rejected: Vec<Rejected>,
}

impl Parts {
    /// Room for the parts of a measurement; `None` if it has no windows.
    pub fn new(table: Timetable, phases: &Phases) -> Option<Parts> {
        let bounds: Box<[Nanos]> = bounds(phases).iter().map(|b| table.measure + b).collect();
        (!bounds.is_empty()).then(|| Parts {
            measured: table.measure..table.end,
            last: 0,
            span: 0..bounds[0],
            of: vec![MessageCounts::default(); bounds.len() + 1],
            rejected: vec![Rejected::default(); bounds.len() + 1],
            bounds,
        })
    }

    /// The part of a message that was due at `at` (clock time).
    #[inline]
    pub fn number(&mut self, at: Nanos) -> usize {
        if !self.span.contains(&at) {
            self.look_up(at);
        }
        self.last
    }

    /// The part of a measured message that was sent at `at` (clock time, to 4 ns). One that left a
    /// moment after the end, or seems to have left before the beginning, belongs to the measurement.
    #[inline]
    pub fn sent_at(&mut self, at: Nanos) -> usize {
        let last = self.measured.end.saturating_sub(1);
        self.number(at.min(last).max(self.measured.start))
    }

    #[cold]
    fn look_up(&mut self, at: Nanos) {
        self.last = self.bounds.partition_point(|bound| *bound <= at);
        let begins = self.last.checked_sub(1).map(|before| self.bounds[before]);
        let ends = self.bounds.get(self.last);
        self.span = begins.unwrap_or(0)..ends.copied().unwrap_or(Nanos::MAX);
    }

    /// The counts of the part that was asked for last.
    #[inline]
    pub fn current(&mut self) -> &mut MessageCounts {
        &mut self.of[self.last]
    }

    /// The counts of messages that were due at `at` (clock time).
    #[inline]
    pub fn due_at(&mut self, at: Nanos) -> &mut MessageCounts {
        self.number(at);
        self.current()
    }

    /// Notes that the system rejected a message that was sent at `at` (clock time), so that these
    /// deliveries were expected in vain.
    pub fn rejected_at(&mut self, at: Nanos, deliveries: u64) {
        let number = self.sent_at(at);
        self.rejected[number].messages += 1;
        self.rejected[number].deliveries += deliveries;
    }

    /// Adds the counts to those of the sending half, and takes away what was rejected.
    pub fn finish(self, sum: &mut FlowParts) {
        sum.add(&FlowParts {
            of: self.of,
            by: Vec::new(),
        });
        for (part, rejected) in sum.of.iter_mut().zip(&self.rejected) {
            part.reject(rejected);
        }
    }
}

/// The result of a trial in one of its windows.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowRecord {
    pub name: String,
    /// Its beginning, ns from the start of the measurement.
    pub from: Nanos,
    /// Its end; earlier than planned if the measurement was cut off.
    pub to: Nanos,
    /// Flow by flow, the messages that were due in it.
    pub due: Vec<MessageCounts>,
    /// Flow by flow, what happened in it, of all messages.
    pub passed: Vec<Totals>,
    /// Times of the messages that were due in it; acknowledgements of those sent in it.
    pub times: BTreeMap<(u32, Measure), Histogram<u64>>,
}

/// The windows of a trial that measured for `duration` ns, from the sums of its workers and the times by
/// part.
pub fn windows(
    phases: &Phases,
    duration: Nanos,
    flows: &[FlowParts],
    times: &BTreeMap<(u32, u32, Measure), Histogram<u64>>,
) -> Vec<WindowRecord> {
    let bounds = bounds(phases);
    let measured = phases.windows.iter().filter(|w| w.from < duration);
    measured
        .map(|window| {
            let parts = parts_between(&bounds, window.from, window.to);
            let due = |flow: &FlowParts| {
                let mut sum = MessageCounts::default();
                let of = flow.of.iter().skip(parts.start).take(parts.len());
                of.for_each(|part| sum.add(part));
                sum
            };
            let passed = |flow: &FlowParts| {
                let by = |part: usize| flow.by.get(part).copied().unwrap_or_default();
                by(parts.end - 1) - by(parts.start - 1)
            };
            let mut of_window: BTreeMap<(u32, Measure), Histogram<u64>> = BTreeMap::new();
            for ((part, flow, measure), values) in times {
                if parts.contains(&(*part as usize)) {
                    let sum = of_window.entry((*flow, *measure));
                    // Equal bounds by construction: adding cannot fail.
                    let _ = sum.or_insert_with(crate::times::histogram).add(values);
                }
            }
            WindowRecord {
                name: window.name.clone(),
                from: window.from,
                to: window.to.min(duration),
                due: flows.iter().map(due).collect(),
                passed: flows.iter().map(passed).collect(),
                times: of_window,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubgauge_workload::Window;

    fn phases(windows: &[(Nanos, Nanos)]) -> Phases {
        let window = |(from, to): &(Nanos, Nanos)| Window {
            name: format!("{from}-{to}"),
            from: *from,
            to: *to,
        };
        Phases {
            windows: windows.iter().map(window).collect(),
            ..Phases::default()
        }
    }

    #[test]
    fn a_message_belongs_to_the_part_it_was_due_in() {
        let table = Timetable {
            warm_up: 0,
            measure: 1_000,
            end: 1_100,
            interval: 10,
            steps: 1,
        };
        assert!(Parts::new(table, &phases(&[])).is_none());
        // They overlap: bounds at 0, 20, 30, 50.
        let phases = phases(&[(0, 30), (20, 50)]);
        assert_eq!(count(&phases), 5);
        let mut parts = Parts::new(table, &phases).expect("windows");
        for (due, part) in [
            (999, 0),
            (1_000, 1),
            (1_019, 1),
            (1_020, 2),
            (1_049, 3),
            (1_050, 4),
            (1_005, 1),
        ] {
            assert_eq!(parts.number(due), part, "{due}");
            parts.due_at(due).offered += 1;
        }
        parts.rejected_at(1_025, 0);
        let mut flow = FlowParts::default();
        parts.finish(&mut flow);
        let windows = windows(&phases, 40, &[flow], &BTreeMap::new());
        let seen = windows
            .iter()
            .map(|w| (w.to, w.due[0].offered, w.due[0].refused));
        assert_eq!(seen.collect::<Vec<_>>(), [(30, 4, 1), (40, 2, 1)]);
    }
}
