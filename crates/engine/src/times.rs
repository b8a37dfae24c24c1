//! Histograms of times: one for each interval of the series, handed on whole and exact.

use std::sync::mpsc::{Receiver, Sender, channel};

use hdrhistogram::Histogram;
use pubgauge_driver::Nanos;

/// Largest time a histogram holds: one hour, in nanoseconds.
pub const LONGEST: Nanos = 3_600 * 1_000_000_000;

/// An empty histogram for times: 1 ns to 1 h, three significant digits.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST, 3).expect("the bounds are constants that are in range")
}

/// What a histogram is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Measure {
    /// Arrival minus intended send time.
    Latency,
    /// Arrival minus actual send time.
    LatencyFromSend,
    /// Actual minus intended send time.
    SendLag,
    /// Acknowledgement minus actual send time.
    Acknowledgement,
    /// Return of the answer minus intended send time.
    RoundTrip,
}

/// One interval's worth of one measure of one flow.
pub struct Interval {
    /// The flow.
    pub flow: u32,
    /// What it is of.
    pub measure: Measure,
    /// Which interval of the measurement, from 0.
    pub number: u32,
    /// The values.
    pub values: Histogram<u64>,
}

/// A series of histograms. Full ones go through a channel to the conductor's thread, which
/// merges and encodes them; the worker gets emptied ones back, so that it allocates nothing in
/// its steady state.
pub struct Times {
    flow: u32,
    measure: Measure,
    number: u32,
    length: Nanos,
    ends: Nanos,
    current: Histogram<u64>,
    spares: Receiver<Histogram<u64>>,
    give_back: Sender<Histogram<u64>>,
    out: Sender<(Interval, Sender<Histogram<u64>>)>,
    overflowed: u64,
}

impl Times {
    /// A series of intervals of `length`, the first of which begins at `start`.
    pub fn new(
        flow: u32,
        measure: Measure,
        start: Nanos,
        length: Nanos,
        out: Sender<(Interval, Sender<Histogram<u64>>)>,
    ) -> Self {
        let (give_back, spares) = channel();
        Times {
            flow,
            measure,
            number: 0,
            length,
            ends: start + length,
            current: histogram(),
            spares,
            give_back,
            out,
            overflowed: 0,
        }
    }

    /// Adds a value that belongs to time `at`. Times above [`LONGEST`] are kept as [`LONGEST`]
    /// and counted; 0 is kept as 1, the histogram's smallest.
    #[inline]
    pub fn add(&mut self, at: Nanos, value: Nanos) {
        if at >= self.ends {
            self.turn(at);
        }
        if value > LONGEST {
            self.overflowed += 1;
        }
        self.current.saturating_record(value.max(1));
    }

    #[cold]
    fn turn(&mut self, at: Nanos) {
        self.hand_on();
        let passed = (at - self.ends) / self.length + 1;
        self.number += passed as u32;
        self.ends += passed * self.length;
    }

    fn hand_on(&mut self) {
        if self.current.is_empty() {
            return;
        }
        let spare = self.spares.try_recv().unwrap_or_else(|_| histogram());
        let values = std::mem::replace(&mut self.current, spare);
        let interval = Interval {
            flow: self.flow,
            measure: self.measure,
            number: self.number,
            values,
        };
        // A conductor that is gone wants no more values.
        let _ = self.out.send((interval, self.give_back.clone()));
    }

    /// Hands on what is left; the number of values that were above [`LONGEST`].
    pub fn finish(mut self) -> u64 {
        self.hand_on();
        self.overflowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    #[test]
    fn intervals_add_up_to_the_whole() {
        let (out, collected) = channel();
        let mut times = Times::new(3, Measure::Latency, 10 * SECOND, SECOND, out);
        for i in 0..5_000u64 {
            times.add(10 * SECOND + i * 1_000_000, 1 + i);
        }
        times.add(20 * SECOND, LONGEST + 1);
        assert_eq!(times.finish(), 1);
        let intervals: Vec<_> = collected
            .iter()
            .map(|(i, _)| (i.number, i.values.len()))
            .collect();
        assert_eq!(
            intervals,
            [
                (0, 1000),
                (1, 1000),
                (2, 1000),
                (3, 1000),
                (4, 1000),
                (10, 1)
            ]
        );
    }
}
