//! Histograms of times: one for each interval of the series, sent to the conductor whole.

use hdrhistogram::Histogram;
use pubgauge_driver::Nanos;
use serde::{Deserialize, Serialize};

use crate::link::Outbox;
use crate::worker::Report;

/// Largest time a histogram holds: one hour, in nanoseconds.
pub const LONGEST: Nanos = 3_600 * 1_000_000_000;

/// An empty histogram for times: 1 ns to 1 h, three significant digits.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST, 3).expect("the bounds are constants that are in range")
}

/// What a histogram measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
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

/// The values of one measure of one flow in one record of the series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The flow.
    pub flow: u32,
    /// What was measured.
    pub measure: Measure,
    /// Which record of the series, from 0.
    pub number: u32,
    /// The part of the measurement that the messages belong to ([`crate::parts`]).
    #[serde(default)]
    pub part: u32,
    /// The values.
    #[serde(with = "encoded")]
    pub values: Histogram<u64>,
}

/// Histograms as HdrHistogram's V2 encoding in base64.
mod encoded {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::{Deserializer, Serializer as _, V2Serializer};
    use serde::{Deserialize, de, ser};

    pub fn serialize<S: ser::Serializer>(
        histogram: &Histogram<u64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        let written = V2Serializer::new().serialize(histogram, &mut bytes);
        written.map_err(|error| ser::Error::custom(format!("{error:?}")))?;
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub fn deserialize<'de, D: de::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Histogram<u64>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text).map_err(de::Error::custom)?;
        let read = Deserializer::new().deserialize(&mut &bytes[..]);
        read.map_err(|error| de::Error::custom(format!("{error:?}")))
    }
}

/// A series of histograms. Full ones go to the conductor, which merges and encodes them.
pub struct Times {
    flow: u32,
    measure: Measure,
    /// Part by part ([`crate::parts`]), of those that had a value in this record; one if there are no
    /// windows.
    current: Vec<Option<Histogram<u64>>>,
    /// Equal values in a row that `current` does not have yet.
    run: Run,
    out: Outbox,
    overflowed: u64,
}

/// Equal values of one part: messages that share two readings of the clock have the same times.
#[derive(Clone, Copy, Default)]
struct Run {
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
            run: Run::default(),
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
        let ended = std::mem::replace(&mut self.run, Run { value, part, count });
        self.record(ended);
    }

    #[inline]
    fn record(&mut self, Run { value, part, count }: Run) {
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
            // What comes next is of the same part, or of one that nothing has come of.
            let next = (Some(part) == newest).then(histogram);
            if let Some(values) = std::mem::replace(current, next) {
                self.out.send(Report::Interval(Interval {
                    flow: self.flow,
                    measure: self.measure,
                    number,
                    part: part as u32,
                    values,
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

    #[test]
    fn an_interval_is_the_same_after_the_wire() {
        let mut values = histogram();
        for value in [1, 1_000, 1_000_000, LONGEST] {
            values.record(value).unwrap();
        }
        let interval = Interval {
            flow: 1,
            measure: Measure::SendLag,
            number: 2,
            part: 1,
            values,
        };
        let text = serde_json::to_string(&interval).unwrap();
        assert_eq!(serde_json::from_str::<Interval>(&text).unwrap(), interval);
    }

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
            .map(|(_, report)| match report {
                Report::Interval(i) => (i.number, i.part, counts(&i.values)),
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
            }
            times.cut(number as u32);
        }
        times.cut(5);
        times.add(LONGEST + 1, 0);
        assert_eq!(times.finish(10), 1);
        let intervals: Vec<_> = collected
            .iter()
            .map(|(_, report)| match report {
                Report::Interval(i) => (i.number, i.values.len()),
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
