//! What workers hand in: histograms while they run, recordings at the end.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use pubgauge_driver::Nanos;

use super::{Conductor, DrainEnd, IntervalLatency, Moment, TrialRecord};
use crate::intervals::{EncodedInterval, Intervals};
use crate::live::LatencyLive;
use crate::parts::{FlowParts, windows};
use crate::record::Outcome;
use crate::recording::{FlowRecording, Recording};
use crate::series::{Cuts, Totals, add_up};
use crate::times::{Interval, Measure, histogram};

/// How many of the newest records are kept as histograms, for the live figures.
const RECENT: usize = 4;

/// Histograms so far.
#[derive(Default)]
pub(super) struct Collected {
    /// Whole ones.
    times: BTreeMap<(u32, Measure), Histogram<u64>>,
    /// The same by part of the measurement, where it has windows.
    by_part: BTreeMap<(u32, u32, Measure), Histogram<u64>>,
    /// Record by record, encoded.
    intervals: Intervals,
    /// Of all flows and workers, the newest records. A histogram of each record would take 200 KB and more.
    recent: BTreeMap<u32, Histogram<u64>>,
    /// Latency of the newest record that a worker has handed in.
    pub(super) newest: Option<LatencyLive>,
}

impl Collected {
    /// Merges one worker's histogram of one record; `windowed`: of a measurement with windows.
    pub(super) fn take(&mut self, interval: Interval, windowed: bool) {
        let Interval {
            flow,
            measure,
            number,
            part,
            values,
        } = interval;
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
    }
}

/// Whether it is what the series shows.
fn is_latency(measure: Measure) -> bool {
    matches!(measure, Measure::Latency | Measure::RoundTrip)
}

/// Latency of all flows and workers, record by record. A record of which something is lost is left out.
fn latency_by_record(intervals: &Intervals) -> BTreeMap<u32, IntervalLatency> {
    let mut decoder = Deserializer::new();
    let mut latencies = BTreeMap::new();
    let mut sum = histogram();
    let mut lost = false;
    for number in intervals.numbers() {
        for interval in intervals.of(number) {
            // What was encoded here decodes, to a histogram of equal bounds.
            match interval {
                Ok(interval) if is_latency(interval.measure) => {
                    let bytes = &mut interval.histogram.as_slice();
                    let values = decoder.deserialize::<u64, _>(bytes);
                    lost |= !values.is_ok_and(|values| sum.add(values).is_ok());
                }
                Ok(_) => {}
                Err(_) => lost = true,
            }
        }
        if !lost && !sum.is_empty() {
            let latency = IntervalLatency {
                p50: sum.value_at_quantile(0.5),
                p99: sum.value_at_quantile(0.99),
                max: sum.max(),
            };
            latencies.insert(number, latency);
        }
        lost = false;
        sum.reset();
    }
    latencies
}

impl Conductor<'_> {
    /// Adds everything up.
    pub(super) fn record(mut self, outcome: Outcome) -> TrialRecord {
        let recordings: Vec<Recording> = self
            .workers
            .iter_mut()
            .filter_map(|handle| handle.recording.take())
            .collect();
        let mut flows = vec![FlowRecording::default(); self.spec.brief.workload.flows.len()];
        let mut series = vec![Vec::new(); flows.len()];
        let mut bursts = vec![Vec::new(); flows.len()];
        let mut parts = vec![FlowParts::default(); flows.len()];
        for recording in &recordings {
            for (sum, part) in flows.iter_mut().zip(&recording.flows) {
                sum.add(part);
            }
            for (sum, part) in series.iter_mut().zip(&recording.series) {
                add_up(sum, part);
            }
            for (sum, part) in bursts.iter_mut().zip(&recording.bursts) {
                crate::bursts::add_up(sum, part);
            }
            for (sum, part) in parts.iter_mut().zip(&recording.parts) {
                sum.add(part);
            }
            self.exhausted.extend(&recording.exhausted);
        }
        if self.drain.ended == DrainEnd::CutShort {
            flows.iter_mut().for_each(FlowRecording::cut_short);
        }
        let closed_at = recordings.iter().map(|r| r.closed_at).max();
        let series = self.moments(series, closed_at.unwrap_or_default());
        let collected = std::mem::take(&mut self.collected);
        let phases = &self.spec.brief.workload.phases;
        let duration = self.table.map_or(0, |t| t.end.saturating_sub(t.measure));
        let windows = windows(phases, duration, &parts, &collected.by_part);
        TrialRecord {
            outcome,
            recordings,
            flows,
            times: collected.times,
            latency_by_interval: latency_by_record(&collected.intervals),
            intervals: collected.intervals,
            series,
            bursts,
            windows,
            drain: self.drain,
            table: self.table,
            epoch: self.epoch,
            exhausted: std::mem::take(&mut self.exhausted),
            planned: self.spec.brief.workload.devices.len() as u64,
            connect_span: self.connect_span,
            prove_span: self.prove_span,
        }
    }

    /// The series with its times; the last moment is `closed_at`, when no worker counted any more. It is
    /// later than the cut before it, so that nothing is left out that came between.
    fn moments(&self, series: Vec<Vec<Totals>>, closed_at: Nanos) -> Vec<Moment> {
        let Some(table) = self.table else {
            return Vec::new();
        };
        let cuts = Cuts::new(table, &self.spec.brief.workload);
        let count = series.iter().map(Vec::len).max().unwrap_or(0);
        let moment = |n: usize| {
            let cut = |n: usize| cuts.at(n as u32);
            let at = match n + 1 == count {
                true => closed_at.max(n.checked_sub(1).map_or(0, |last| cut(last) + 1)),
                false => cut(n),
            };
            let last = |totals: &Vec<Totals>| totals.get(n).or(totals.last()).copied();
            Moment {
                at: at.saturating_sub(table.measure),
                flows: series.iter().map(|f| last(f).unwrap_or_default()).collect(),
            }
        };
        (0..count).map(moment).collect()
    }
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
                    values,
                };
                collected.take(interval, false);
            }
            // What the test compares with is as large as what must not be kept.
            while expected.len() > 40 {
                expected.pop_first();
            }
        }
        assert!(collected.recent.len() <= RECENT);
        let latencies = latency_by_record(&collected.intervals);
        assert_eq!(latencies.len(), 3_600);
        for (number, sum) in &expected {
            let latency = latencies[number];
            assert_eq!(latency.p99, sum.value_at_quantile(0.99));
            assert_eq!(latency.max, sum.max());
        }
    }
}
