//! Histograms of times: one for each interval of the series, handed on whole and exact.

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

/// What a histogram is of.
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

/// One record's worth of one measure of one flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The flow.
    pub flow: u32,
    /// What it is of.
    pub measure: Measure,
    /// Which record of the series, from 0.
    pub number: u32,
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
    current: Histogram<u64>,
    out: Outbox,
    overflowed: u64,
}

impl Times {
    /// A series of histograms that go to `out`.
    pub fn new(flow: u32, measure: Measure, out: Outbox) -> Self {
        Times {
            flow,
            measure,
            current: histogram(),
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
        let values = std::mem::replace(&mut self.current, histogram());
        self.out.send(Report::Interval(Interval {
            flow: self.flow,
            measure: self.measure,
            number,
            values,
        }));
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
            values,
        };
        let text = serde_json::to_string(&interval).unwrap();
        assert_eq!(serde_json::from_str::<Interval>(&text).unwrap(), interval);
    }

    #[test]
    fn intervals_add_up_to_the_whole() {
        let (sender, collected) = channel();
        let mut times = Times::new(3, Measure::Latency, Outbox::new(0, sender));
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
