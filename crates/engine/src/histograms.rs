//! Histograms that fill: values of one measure of one flow, until a record of the series ends.

use hdrhistogram::Histogram;
use pubgauge_driver::Nanos;

use crate::reports::{Outbox, Report};
use crate::times::{Interval, LONGEST, Measure, histogram};

/// A series of histograms. Full ones go to the conductor, which merges and encodes them.
pub struct Times {
    flow: u32,
    measure: Measure,
    /// Part by part ([`crate::parts`]), of those that had a value in this record; one if there are no
    /// windows.
    current: Vec<Option<Histogram<u64>>>,
    /// Equal values in a row that `current` does not have yet.
    run: EqualValues,
    /// Values of the records that have ended.
    sent: u64,
    out: Outbox,
    overflowed: u64,
}

/// Equal values of one part: messages that share two readings of the clock have the same times.
#[derive(Clone, Copy, Default)]
struct EqualValues {
    value: Nanos,
    part: usize,
    count: u64,
}

impl Times {
    /// A series of histograms that go to `out`, of a measurement of `parts` parts.
    pub fn new(flow: u32, measure: Measure, parts: usize, out: Outbox) -> Self {
        Times {
            flow,
            measure,
            current: (0..parts).map(|part| (part == 0).then(histogram)).collect(),
            run: EqualValues::default(),
            sent: 0,
            out,
            overflowed: 0,
        }
    }

    /// Adds a value of a message of a part. Times above [`LONGEST`] are kept as [`LONGEST`] and counted;
    /// 0 is kept as 1, the histogram's smallest. The first value of a part in a record makes room for
    /// the others.
    #[inline]
    pub fn add(&mut self, value: Nanos, part: usize) {
        if (value, part) == (self.run.value, self.run.part) {
            self.run.count += 1;
            return;
        }
        let count = 1;
        let ended = std::mem::replace(&mut self.run, EqualValues { value, part, count });
        self.record(ended);
    }

    /// Values so far.
    pub fn count(&self) -> u64 {
        let current = self.current.iter().flatten();
        self.sent + current.map(Histogram::len).sum::<u64>() + self.run.count
    }

    #[inline]
    fn record(&mut self, EqualValues { value, part, count }: EqualValues) {
        if count == 0 {
            return;
        }
        if value > LONGEST {
            self.overflowed += count;
        }
        let current = self.current[part].get_or_insert_with(histogram);
        current.saturating_record_n(value.max(1), count);
    }

    /// Sends the conductor what came in record `number`, which ends here.
    pub fn cut(&mut self, number: u32) {
        let ended = std::mem::take(&mut self.run);
        self.record(ended);
        let newest = self.current.iter().rposition(Option::is_some);
        for (part, current) in self.current.iter_mut().enumerate() {
            if current.as_ref().is_none_or(Histogram::is_empty) {
                continue;
            }
            // The next value is of the same part, or of one that nothing has come of.
            let next = (Some(part) == newest).then(histogram);
            if let Some(values) = std::mem::replace(current, next) {
                self.sent += values.len();
                self.out.send(Report::Interval(Interval {
                    flow: self.flow,
                    measure: self.measure,
                    number,
                    part: part as u32,
                    values: values.into(),
                }));
            }
        }
    }

    /// Sends the conductor what is left, as of record `number`. Returns how many values were above
    /// [`LONGEST`].
    pub fn finish(mut self, number: u32) -> u64 {
        self.cut(number);
        self.overflowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// Values that come in rows are recorded as those that come one by one, in their record and part.
    #[test]
    fn rows_of_equal_values_are_counted_where_they_came() {
        let (sender, collected) = channel();
        let mut times = Times::new(0, Measure::Latency, 2, Outbox::new(0, sender));
        let row = |times: &mut Times, value, part, count| {
            (0..count).for_each(|_| times.add(value, part));
        };
        row(&mut times, 0, 0, 3);
        row(&mut times, 7, 0, 2);
        row(&mut times, 7, 1, 4);
        times.cut(0);
        // The row goes on beyond the cut.
        row(&mut times, 7, 1, 5);
        row(&mut times, LONGEST + 1, 1, 2);
        assert_eq!(times.finish(1), 2);
        let counts = |values: &Histogram<u64>| {
            let recorded = values.iter_recorded();
            let each = recorded.map(|v| (v.value_iterated_to(), v.count_at_value()));
            each.collect::<Vec<_>>()
        };
        let seen: Vec<_> = collected
            .iter()
            .map(|sent| match sent.report {
                Report::Interval(i) => (i.number, i.part, counts(&i.values.decoded().unwrap())),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(seen[0], (0, 0, vec![(1, 3), (7, 2)]));
        assert_eq!(seen[1], (0, 1, vec![(7, 4)]));
        assert_eq!((seen[2].0, seen[2].1, seen[2].2[0]), (1, 1, (7, 5)));
        let (longest, count) = seen[2].2[1];
        assert_eq!((longest >= LONGEST, count), (true, 2));
        assert_eq!(seen.len(), 3);
    }

    #[test]
    fn intervals_add_up_to_the_whole() {
        let (sender, collected) = channel();
        let mut times = Times::new(3, Measure::Latency, 1, Outbox::new(0, sender));
        for number in 0..5 {
            for i in 0..1_000 {
                times.add(number * 1_000 + i, 0);
                assert_eq!(times.count(), number * 1_000 + i + 1);
            }
            times.cut(number as u32);
        }
        times.cut(5);
        times.add(LONGEST + 1, 0);
        assert_eq!(times.finish(10), 1);
        let intervals: Vec<_> = collected
            .iter()
            .map(|sent| match sent.report {
                Report::Interval(i) => (i.number, i.values.decoded().unwrap().len()),
                other => panic!("{other:?}"),
            })
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
