//! Bursts of messages back to back: what became of each, and when the next one begins where it waits for
//! the one before.

use pubgauge_driver::Nanos;
use pubgauge_workload::{BURST_SLOT, Flow};
use serde::{Deserialize, Serialize};

use crate::timetable::Timetable;

/// The course of one burst of one flow in the measurement. Times count from its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BurstRecording {
    /// Messages that were due.
    pub due: u64,
    /// Of these, messages that could not be handed over before the end of the measurement.
    pub unsent: u64,
    /// Messages that the driver accepted.
    pub taken: u64,
    /// Bytes of these messages, headers included.
    pub bytes: u64,
    /// Deliveries that these messages should cause.
    pub expected: u64,
    /// First deliveries.
    pub unique: u64,
    /// When handing them over began, and when it ended, ns.
    pub handed: Option<(Nanos, Nanos)>,
    /// When the last first delivery came, ns.
    pub arrived: Nanos,
}

impl BurstRecording {
    /// Adds another worker's part of the same burst.
    pub fn add(&mut self, other: &BurstRecording) {
        self.due += other.due;
        self.unsent += other.unsent;
        self.taken += other.taken;
        self.bytes += other.bytes;
        self.expected += other.expected;
        self.unique += other.unique;
        self.handed = match (self.handed, other.handed) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        self.arrived = self.arrived.max(other.arrived);
    }

    /// Whether all of it was taken, and has arrived.
    pub fn is_whole(&self) -> bool {
        self.taken == self.due && self.unique == self.expected
    }
}

/// The bursts of one flow in the measurement, by when they begin.
pub struct Bursts {
    origin: Nanos,
    period: Nanos,
    /// Number of the first one, from the flow's beginning.
    first: u64,
    of: Vec<BurstRecording>,
}

impl Bursts {
    /// Room for all bursts of a flow; `None` if it sends none.
    pub fn new(table: Timetable, flow: &Flow) -> Option<Bursts> {
        let period = flow.arrivals.burst_period().filter(|period| *period > 0)?;
        let (origin, end) = table.span(flow);
        let first = table.measure.saturating_sub(origin).div_ceil(period);
        let upto = end.saturating_sub(origin).div_ceil(period);
        let count = upto.saturating_sub(first);
        Some(Bursts {
            origin,
            period,
            first,
            of: vec![BurstRecording::default(); count as usize],
        })
    }

    /// The number of the burst that began at this time.
    #[inline]
    pub fn number(&self, at: Nanos) -> Option<u32> {
        let number = at.checked_sub(self.origin)? / self.period;
        let number = number.checked_sub(self.first)?;
        (number < self.of.len() as u64).then_some(number as u32)
    }

    /// The burst of this number.
    #[inline]
    pub fn get(&mut self, number: u32) -> Option<&mut BurstRecording> {
        self.of.get_mut(number as usize)
    }

    /// The burst that began at this time.
    #[inline]
    pub fn begun_at(&mut self, at: Nanos) -> Option<&mut BurstRecording> {
        self.number(at).and_then(|number| self.get(number))
    }

    /// Their courses.
    pub fn finish(self) -> Vec<BurstRecording> {
        self.of
    }
}

/// When the next burst of a flow begins whose bursts wait for one another: kept by the conductor.
///
/// A burst is over when every worker with publishers has handed over its part, and as many tokens
/// (`window`) have come back as its messages took.
#[derive(Debug)]
pub struct BurstGate {
    /// Workers with publishers of the flow.
    pub workers: Vec<usize>,
    /// How long before it begins a burst is announced, ns.
    notice: Nanos,
    /// Of these, how many have handed over their part.
    sent: usize,
    /// Tokens under way; tokens may come back before it is known that they were taken.
    under_way: i64,
    /// When something came back last.
    last: Nanos,
}

impl BurstGate {
    /// For a flow that these workers publish; `notice`: how long before it begins they are told of a burst, ns.
    pub fn new(workers: Vec<usize>, notice: Nanos) -> BurstGate {
        BurstGate {
            workers,
            notice,
            sent: 0,
            under_way: 0,
            last: 0,
        }
    }

    /// A worker has handed over its part, which took this many tokens.
    pub fn sent(&mut self, tokens: u64) {
        self.sent += 1;
        self.under_way = self.under_way.saturating_add_unsigned(tokens);
    }

    /// Tokens came back.
    pub fn passed(&mut self, tokens: u64, now: Nanos) {
        self.under_way = self.under_way.saturating_sub_unsigned(tokens);
        self.last = now;
    }

    /// For how long nothing has come back, ns.
    pub fn silent_for(&self, now: Nanos) -> Nanos {
        now.saturating_sub(self.last)
    }

    /// When the next burst begins, if this one is over; `origin` is the flow's beginning. Returned
    /// once for each burst.
    pub fn next(&mut self, now: Nanos, origin: Nanos) -> Option<Nanos> {
        if self.sent < self.workers.len() || self.under_way > 0 {
            return None;
        }
        self.sent = 0;
        self.under_way = 0;
        let since = (now + self.notice).saturating_sub(origin);
        Some(origin + since.div_ceil(BURST_SLOT) * BURST_SLOT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubgauge_workload::{Arrivals, SECOND, Workload};

    #[test]
    fn a_burst_is_over_when_all_have_sent_and_all_came_back() {
        const NOTICE: Nanos = 12_000_000;
        let mut gate = BurstGate::new(vec![0, 3], NOTICE);
        gate.sent(5);
        gate.passed(5, SECOND);
        assert_eq!(gate.next(SECOND, 0), None, "worker 3 has not sent");
        gate.passed(2, SECOND);
        gate.sent(3);
        assert_eq!(gate.next(SECOND, 0), None, "one is under way");
        gate.passed(1, SECOND);
        let at = gate.next(SECOND, 3).expect("over");
        assert_eq!(at % BURST_SLOT, 3);
        assert!((SECOND + NOTICE..SECOND + NOTICE + BURST_SLOT).contains(&at));
        assert_eq!(gate.next(SECOND, 3), None, "told once");
    }

    #[test]
    fn bursts_of_the_measurement_alone_are_kept() {
        let every = Some(SECOND / 10);
        let workload = Workload::fan(1, 1, Arrivals::Bursts { messages: 3, every });
        let table = Timetable {
            warm_up: 7,
            measure: SECOND,
            end: 2 * SECOND,
            interval: SECOND,
            steps: 1,
        };
        let mut bursts = Bursts::new(table, &workload.flows[0]).expect("bursts");
        // From 7 ns on every tenth of a second: the tenth one is the first in the measurement.
        assert!(bursts.begun_at(7 + 9 * SECOND / 10).is_none());
        bursts.begun_at(7 + SECOND).expect("measured").due += 1;
        assert!(bursts.begun_at(7 + 2 * SECOND).is_none());
        let all = bursts.finish();
        assert_eq!((all.len(), all[0].due), (10, 1));
    }
}
