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
    /// Which record of the series, from 0.
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
    current: Histogram<u64>,
    spares: Receiver<Histogram<u64>>,
    give_back: Sender<Histogram<u64>>,
    out: Sender<(Interval, Sender<Histogram<u64>>)>,
    overflowed: u64,
}

impl Times {
    /// A series of histograms that go to `out`.
    pub fn new(
        flow: u32,
        measure: Measure,
        out: Sender<(Interval, Sender<Histogram<u64>>)>,
    ) -> Self {
        let (give_back, spares) = channel();
        Times {
            flow,
            measure,
            current: histogram(),
            spares,
            give_back,
            out,
            overflowed: 0,
        }
    }

    /// Adds a value. Times above [`LONGEST`] are kept as [`LONGEST`] and counted; 0 is kept as 1,
    /// the histogram's smallest.
    #[inline]
    pub fn add(&mut self, value: Nanos) {
        if value > LONGEST {
            self.overflowed += 1;
        }
        self.current.saturating_record(value.max(1));
    }

    /// Hands on what came in record `number`, which ends here.
    pub fn cut(&mut self, number: u32) {
        if self.current.is_empty() {
            return;
        }
        let spare = self.spares.try_recv().unwrap_or_else(|_| histogram());
        let values = std::mem::replace(&mut self.current, spare);
        let interval = Interval {
            flow: self.flow,
            measure: self.measure,
            number,
            values,
        };
        // A conductor that is gone wants no more values.
        let _ = self.out.send((interval, self.give_back.clone()));
    }

    /// Hands on what is left, in record `number`; how many values were above [`LONGEST`].
    pub fn finish(mut self, number: u32) -> u64 {
        self.cut(number);
        self.overflowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_add_up_to_the_whole() {
        let (out, collected) = channel();
        let mut times = Times::new(3, Measure::Latency, out);
        for number in 0..5 {
            for i in 0..1_000 {
                times.add(number * 1_000 + i);
            }
            times.cut(number as u32);
        }
        times.cut(5);
        times.add(LONGEST + 1);
        assert_eq!(times.finish(10), 1);
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
