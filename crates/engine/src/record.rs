//! Everything that one trial gave, added up over its workers.

use std::collections::{BTreeMap, BTreeSet};

use hdrhistogram::Histogram;
use pubgauge_driver::{Nanos, Resource};

use crate::bursts::BurstRecording;
use crate::intervals::Intervals;
use crate::parts::WindowRecord;
use crate::recording::{FlowRecording, Recording, Traffic};
use crate::series::Totals;
use crate::times::{Measure, histogram};
use crate::timetable::Timetable;

/// How a trial ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TrialEnd {
    /// As planned.
    #[default]
    Completed,
    /// It never came to a measurement, because of this.
    NotReady(String),
    /// It was ended early because of this.
    Aborted(String),
    /// The user ended it.
    Interrupted,
}

/// A moment of a trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moment {
    /// Nanoseconds since the start of the measurement.
    pub at: Nanos,
    /// The counts by then since the first warm-up message, flow by flow.
    pub flows: Vec<Totals>,
}

impl Moment {
    /// Sums over the flows.
    pub fn sum(&self) -> Totals {
        let mut sum = Totals::default();
        self.flows.iter().for_each(|flow| sum.add(flow));
        sum
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DrainEnd {
    /// Every message has come, or something later of its stream has come instead.
    Complete,
    /// Nothing has come for so long that what was missing is lost.
    Silent,
    /// Messages were still coming, or might be, when its time was over.
    #[default]
    CutShort,
}

/// The drain of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drain {
    pub ended: DrainEnd,
    /// How long it took, ns.
    pub span: Nanos,
}

/// Latencies of one interval, for the series; 0 of what has no value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IntervalLatency {
    /// Median, ns.
    pub p50: u64,
    /// 90th percentile, ns.
    pub p90: u64,
    /// 99th percentile, ns.
    pub p99: u64,
    /// Largest, ns.
    pub max: u64,
    /// 90th percentile from the actual send, ns.
    pub from_send_p90: u64,
}

/// Everything a trial gave.
#[derive(Debug, Default)]
pub struct TrialRecord {
    /// How it ended.
    pub outcome: TrialEnd,
    /// Worker by worker.
    pub recordings: Vec<Recording>,
    /// The sums, flow by flow.
    pub flows: Vec<FlowRecording>,
    /// The whole histograms.
    pub times: BTreeMap<(u32, Measure), Histogram<u64>>,
    /// The histograms interval by interval.
    pub intervals: Intervals,
    /// Latency interval by interval: over all flows (`None`), and of each flow.
    pub latency_by_interval: BTreeMap<(u32, Option<u32>), IntervalLatency>,
    /// The series: what had happened by each cut (see [`crate::series::Cuts`]), and by the end of the
    /// drain.
    pub series: Vec<Moment>,
    /// The course: the same within the measurement, in finer steps ([`crate::timetable::steps_of`]).
    pub course: Vec<Moment>,
    /// Flow by flow, the bursts of the measurement in their order; empty for a flow that sends none.
    pub bursts: Vec<Vec<BurstRecording>>,
    /// The windows of the measurement that began before its end, in the order in which the study
    /// names them.
    pub windows: Vec<WindowRecord>,
    /// Longest time, from the start of the measurement on, for which nothing came to a worker while messages fell due
    /// for it to a publisher that was not connected, ns.
    pub silence_of_outages: Nanos,
    pub drain: Drain,
    /// The timetable; `end` is the real end.
    pub table: Option<Timetable>,
    /// Origin of the times in headers.
    pub epoch: Nanos,
    /// The resources that the client itself ran out of.
    pub exhausted: BTreeSet<Resource>,
    /// Connections planned.
    pub planned: u64,
    /// From the beginning of the trial until all clients were connected and subscribed, ns.
    pub connect_span: Nanos,
    /// From then to the last proof of readiness, ns.
    pub prove_span: Nanos,
}

impl TrialRecord {
    /// Everything that all fleets took and reported.
    pub fn traffic(&self) -> Traffic {
        let mut sum = Traffic::default();
        self.recordings.iter().for_each(|r| sum.add(&r.traffic));
        sum
    }

    /// The record of a trial of `flows` flows that did not begin.
    pub fn nothing(outcome: TrialEnd, flows: usize) -> Self {
        TrialRecord {
            outcome,
            flows: vec![FlowRecording::default(); flows],
            bursts: vec![Vec::new(); flows],
            ..TrialRecord::default()
        }
    }

    /// Sums over all flows.
    pub fn sum(&self) -> FlowRecording {
        let mut sum = FlowRecording::default();
        self.flows.iter().for_each(|f| sum.add(f));
        sum
    }

    /// Accepted measured messages of a flow that the system had neither acknowledged nor rejected when its clients closed.
    /// Messages that were cut off with a connection are not among them.
    pub fn unacknowledged(&self, flow: usize) -> u64 {
        let unsettled = self.recordings.iter().map(|r| r.unsettled).sum();
        self.flows[flow].unacknowledged.min(unsettled)
    }

    /// One measure over all flows.
    pub fn all_times(&self, measure: Measure) -> Histogram<u64> {
        let mut all = histogram();
        for ((_, m), times) in &self.times {
            if *m == measure {
                // Equal bounds by construction.
                let _ = all.add(times);
            }
        }
        all
    }

    /// The counts of the measurement, of one flow or of all.
    pub fn in_measurement(&self, flow: Option<usize>) -> Totals {
        let totals = |moment: &Moment| match flow {
            None => moment.sum(),
            Some(flow) => moment.flows[flow],
        };
        let within = |moment: &&Moment| moment.at <= self.duration();
        let first = self.series.first().map(totals).unwrap_or_default();
        let last = self.series.iter().take_while(within).last();
        last.map(totals).unwrap_or_default() - first
    }

    /// Length of the measurement, ns.
    pub fn duration(&self) -> Nanos {
        self.table.map_or(0, |t| t.end.saturating_sub(t.measure))
    }
}
