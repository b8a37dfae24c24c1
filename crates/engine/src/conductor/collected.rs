//! Histograms that workers hand in while they run.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

use crate::intervals::{EncodedInterval, Intervals};
use crate::live::LatencyLive;
use crate::record::IntervalLatency;
use crate::times::{Interval, Measure, histogram};

/// How many of the newest records are kept as histograms, for the live figures.
const RECENT: usize = 4;

/// Histograms so far.
#[derive(Default)]
pub(super) struct Collected {
    /// By flow and measure, over the whole measurement.
    pub(super) times: BTreeMap<(u32, Measure), Histogram<u64>>,
    /// The histograms by part of the measurement, where it has windows.
    pub(super) by_part: BTreeMap<(u32, u32, Measure), Histogram<u64>>,
    /// Record by record, encoded.
    pub(super) intervals: Intervals,
    /// Of all flows and workers, the newest records. A histogram of each record would take 200 KB and more.
    recent: BTreeMap<u32, Histogram<u64>>,
    /// Latency of the newest record that a worker has handed in.
    pub(super) newest: Option<LatencyLive>,
}

impl Collected {
    /// Merges one worker's histogram of one record; `windowed`: of a measurement with windows.
    ///
    /// # Errors
    /// That it is no histogram.
    pub(super) fn take(&mut self, interval: Interval, windowed: bool) -> Result<(), String> {
        let Interval {
            flow,
            measure,
            number,
            part,
            values,
        } = interval;
        let values = values.decoded()?;
        let whole = self.times.entry((flow, measure)).or_insert_with(histogram);
        // Equal bounds by construction: adding cannot fail.
        let _ = whole.add(&values);
        if windowed {
            let of_part = self.by_part.entry((part, flow, measure));
            let _ = of_part.or_insert_with(histogram).add(&values);
        }
        if is_latency(measure) {
            let recent = self.recent.entry(number);
            let _ = recent.or_insert_with(histogram).add(&values);
            while self.recent.len() > RECENT {
                self.recent.pop_first();
            }
            let newest = self.recent.last_key_value();
            self.newest = newest.map(|(_, values)| LatencyLive {
                p50: values.value_at_quantile(0.5),
                p99: values.value_at_quantile(0.99),
            });
        }
        let mut encoded = Vec::new();
        if V2Serializer::new().serialize(&values, &mut encoded).is_ok() {
            self.intervals.push(&EncodedInterval {
                flow,
                measure,
                number,
                histogram: encoded,
            });
        }
        Ok(())
    }
}

/// Whether it is what the series shows.
fn is_latency(measure: Measure) -> bool {
    matches!(measure, Measure::Latency | Measure::RoundTrip)
}

/// Latency of all workers, record by record: of all flows (`None`), and of each. A record of which something is lost is
/// left out.
pub(super) fn latency_by_record(
    intervals: &Intervals,
) -> BTreeMap<(u32, Option<u32>), IntervalLatency> {
    let mut latencies = BTreeMap::new();
    let mut of_flow = [histogram(), histogram()];
    let mut of_all = [histogram(), histogram()];
    for number in intervals.numbers() {
        let lost = each_flow(intervals, number, &mut of_flow, &mut |flow, histograms| {
            for (sum, values) in of_all.iter_mut().zip(histograms) {
                // Equal bounds by construction: adding cannot fail.
                let _ = sum.add(values);
            }
            latencies.extend(latency(histograms).map(|of| ((number, Some(flow)), of)));
        });
        if lost {
            latencies.retain(|(of, _), _| *of != number);
        } else {
            latencies.extend(latency(&of_all).map(|of| ((number, None), of)));
        }
        of_all.iter_mut().for_each(Histogram::reset);
    }
    latencies
}

/// Passes on the histograms of each flow of a record, of what the series shows and of latency from the send. Returns
/// whether something of the record is lost.
fn each_flow(
    intervals: &Intervals,
    number: u32,
    sums: &mut [Histogram<u64>; 2],
    take: &mut dyn FnMut(u32, &[Histogram<u64>; 2]),
) -> bool {
    let mut decoder = Deserializer::new();
    let mut lost = false;
    let mut current = None;
    // Sorted by flow.
    for interval in intervals.of_record(number) {
        let Ok(interval) = interval else {
            lost = true;
            continue;
        };
        let which = match interval.measure {
            Measure::LatencyFromSend => 1,
            measure if is_latency(measure) => 0,
            _ => continue,
        };
        if let Some(flow) = current
            .replace(interval.flow)
            .filter(|f| *f != interval.flow)
        {
            take(flow, sums);
            sums.iter_mut().for_each(Histogram::reset);
        }
        // A histogram that was encoded here decodes to one of equal bounds.
        let values = decoder.deserialize::<u64, _>(&mut interval.histogram.as_slice());
        lost |= !values.is_ok_and(|values| sums[which].add(values).is_ok());
    }
    if let Some(flow) = current {
        take(flow, sums);
        sums.iter_mut().for_each(Histogram::reset);
    }
    lost
}

fn latency([values, from_send]: &[Histogram<u64>; 2]) -> Option<IntervalLatency> {
    (!values.is_empty()).then(|| IntervalLatency {
        p50: values.value_at_quantile(0.5),
        p90: values.value_at_quantile(0.9),
        p99: values.value_at_quantile(0.99),
        max: values.max(),
        from_send_p90: from_send.value_at_quantile(0.9),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_of_records_is_kept_in_little_and_loses_nothing() {
        let mut collected = Collected::default();
        let mut expected = BTreeMap::new();
        for number in 0..3_600_u32 {
            // Two workers; the second hands in its record four records later than the first.
            for (number, shift) in [(Some(number), 0), (number.checked_sub(4), 7)] {
                let Some(number) = number else { continue };
                let mut values = histogram();
                for n in 0..500_u64 {
                    values.saturating_record(50_000 + n * n * 40 + u64::from(number) * 100 + shift);
                }
                let sum = expected.entry(number).or_insert_with(histogram);
                let _ = sum.add(&values);
                let interval = Interval {
                    flow: 0,
                    measure: Measure::Latency,
                    number,
                    part: 0,
                    values: values.into(),
                };
                collected.take(interval, false).unwrap();
            }
            // The values that the test compares with are as large as those that must not be kept.
            while expected.len() > 40 {
                expected.pop_first();
            }
        }
        assert!(collected.recent.len() <= RECENT);
        let latencies = latency_by_record(&collected.intervals);
        assert_eq!(latencies.len(), 2 * 3_600);
        for (number, sum) in &expected {
            let latency = latencies[&(*number, None)];
            assert_eq!(latency, latencies[&(*number, Some(0))]);
            assert_eq!(latency.p90, sum.value_at_quantile(0.9));
            assert_eq!(latency.p99, sum.value_at_quantile(0.99));
            assert_eq!(latency.max, sum.max());
        }
    }
}
