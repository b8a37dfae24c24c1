//! Histograms of times: one for each interval of the series, sent to the conductor whole.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use pubgauge_driver::Nanos;
use serde::{Deserialize, Serialize};

/// Largest time a histogram holds: one hour, in nanoseconds.
pub const LONGEST: Nanos = 3_600 * 1_000_000_000;

/// An empty histogram for times: 1 ns to 1 h, three significant digits.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST, 3).expect("the bounds are constants that are in range")
}

/// The time that a histogram measures.
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

impl Measure {
    /// All of them.
    pub const ALL: [Measure; 5] = [
        Measure::Latency,
        Measure::LatencyFromSend,
        Measure::SendLag,
        Measure::Acknowledgement,
        Measure::RoundTrip,
    ];
}

/// The values of one measure of one flow in one record of the series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub flow: u32,
    /// The time that was measured.
    pub measure: Measure,
    /// Which record of the series, from 0.
    pub number: u32,
    /// The part of the measurement that the messages belong to ([`crate::parts`]).
    pub part: u32,
    pub values: HistogramValues,
}

/// A histogram; one that came over a link stays encoded until it is read, because it takes 270 KB then.
#[derive(Clone, Debug, PartialEq)]
pub enum HistogramValues {
    /// As it was filled.
    Here(Histogram<u64>),
    /// HdrHistogram's V2 encoding of one with the bounds of [`histogram`].
    Encoded(Vec<u8>),
}

impl HistogramValues {
    /// The histogram, unless it is still encoded.
    pub fn histogram(&self) -> Option<&Histogram<u64>> {
        match self {
            HistogramValues::Here(values) => Some(values),
            HistogramValues::Encoded(_) => None,
        }
    }

    /// Reads it, if it is still encoded.
    ///
    /// # Errors
    /// Why the bytes are none.
    pub fn decode(&mut self) -> Result<(), String> {
        if let HistogramValues::Encoded(bytes) = self {
            let encoded = HistogramValues::Encoded(std::mem::take(bytes));
            *self = HistogramValues::Here(encoded.decoded()?);
        }
        Ok(())
    }

    /// The histogram.
    ///
    /// # Errors
    /// Why the bytes are none.
    pub fn decoded(self) -> Result<Histogram<u64>, String> {
        match self {
            HistogramValues::Here(values) => Ok(values),
            HistogramValues::Encoded(bytes) => {
                let read = Deserializer::new().deserialize(&mut &bytes[..]);
                read.map_err(|error| format!("{error:?}"))
            }
        }
    }
}

impl From<Histogram<u64>> for HistogramValues {
    fn from(values: Histogram<u64>) -> HistogramValues {
        HistogramValues::Here(values)
    }
}

/// Histograms as HdrHistogram's V2 encoding in base64.
mod encoded {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use hdrhistogram::serialization::{Serializer as _, V2Serializer};
    use serde::{Deserialize, Serialize, de, ser};

    use super::HistogramValues;

    impl Serialize for HistogramValues {
        fn serialize<S: ser::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let text = match self {
                HistogramValues::Encoded(bytes) => STANDARD.encode(bytes),
                HistogramValues::Here(histogram) => {
                    let mut bytes = Vec::new();
                    let written = V2Serializer::new().serialize(histogram, &mut bytes);
                    written.map_err(|error| ser::Error::custom(format!("{error:?}")))?;
                    STANDARD.encode(bytes)
                }
            };
            serializer.serialize_str(&text)
        }
    }

    impl<'de> Deserialize<'de> for HistogramValues {
        fn deserialize<D: de::Deserializer<'de>>(
            deserializer: D,
        ) -> Result<HistogramValues, D::Error> {
            let text = String::deserialize(deserializer)?;
            let bytes = STANDARD.decode(text).map_err(de::Error::custom)?;
            check(&bytes).map_err(de::Error::custom)?;
            Ok(HistogramValues::Encoded(bytes))
        }
    }

    /// Checks that it is a histogram of the bounds of [`super::histogram`], and whole: the decoder would take memory for
    /// whatever length and bounds the bytes claim.
    fn check(bytes: &[u8]) -> Result<(), &'static str> {
        let mut own = Vec::new();
        let written = V2Serializer::new().serialize(&super::histogram(), &mut own);
        let (Ok(_), Some((own, _)), Some((head, counts))) = (
            written,
            own.split_at_checked(HEAD),
            bytes.split_at_checked(HEAD),
        ) else {
            return Err("the histogram is cut off");
        };
        let length = head[LENGTH].try_into().map_or(0, u32::from_be_bytes);
        let but_for_length = |head: &[u8]| [&head[..LENGTH.start], &head[LENGTH.end..]].concat();
        if but_for_length(own) == but_for_length(head) && length as usize == counts.len() {
            Ok(())
        } else {
            Err("the histogram has other bounds than those of times, or another length")
        }
    }

    /// Bytes before the counts, and where their length stands.
    const HEAD: usize = 40;
    const LENGTH: std::ops::Range<usize> = 4..8;
}

#[cfg(test)]
mod tests {
    use super::*;

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
            values: values.clone().into(),
        };
        let text = serde_json::to_string(&interval).unwrap();
        let again: Interval = serde_json::from_str(&text).unwrap();
        assert_eq!((again.flow, again.number, again.part), (1, 2, 1));
        assert_eq!(serde_json::to_string(&again).unwrap(), text);
        assert_eq!(again.values.decoded().unwrap(), values);
    }

    /// A worker on another host may send 40 bytes instead that claim gigabytes.
    #[test]
    fn a_histogram_that_claims_more_than_it_has_is_refused() {
        use base64::Engine as _;
        use hdrhistogram::serialization::{Serializer as _, V2Serializer};
        let encoded = |histogram: &Histogram<u64>, length: Option<u32>| {
            let mut bytes = Vec::new();
            V2Serializer::new()
                .serialize(histogram, &mut bytes)
                .unwrap();
            if let Some(length) = length {
                bytes[4..8].copy_from_slice(&length.to_be_bytes());
            }
            base64::engine::general_purpose::STANDARD.encode(bytes)
        };
        let wide = Histogram::new_with_bounds(1, u64::MAX / 4, 5).unwrap();
        for (values, fine) in [
            (encoded(&histogram(), None), true),
            (encoded(&histogram(), Some(u32::MAX)), false),
            (encoded(&wide, None), false),
            ("AAAA".to_owned(), false),
        ] {
            let text = format!(
                r#"{{"flow":0,"measure":"Latency","number":0,"part":0,"values":"{values}"}}"#
            );
            assert_eq!(
                serde_json::from_str::<Interval>(&text).is_ok(),
                fine,
                "{text:.200}"
            );
        }
    }
}
