//! Sums over a trial's record, and the figures that are made of these alone.

use hdrhistogram::Histogram;
use pubgauge_driver::Nanos;
use pubgauge_engine::assignment::Role;
use pubgauge_engine::conductor::TrialRecord;
use pubgauge_engine::connecting;
use pubgauge_engine::recording::{FlowRecording, Recording};
use pubgauge_engine::series::Totals;
use pubgauge_engine::times::{HistogramValues, Measure, histogram};
use pubgauge_engine::usage::Usage;
use pubgauge_figures::histogram::{ECDF_POINTS, ecdf};
use pubgauge_figures::model::{
    ClientCpu, Connections, Distribution, Interruption, OddCounts, PresenceFigures,
};
use pubgauge_figures::{Messages, Questions};
use pubgauge_workload::{Exchange, Flow, Workload};

use crate::distribution::{Due, distribution};

use crate::messages::messages;

const SECOND: f64 = 1e9;

/// The engine's record of a trial, with the sums that several figures are made of.
pub struct RecordSums<'a> {
    pub workload: &'a Workload,
    pub record: &'a TrialRecord,
    /// All flows together.
    pub sum: FlowRecording,
    /// Traffic of all flows within the measurement.
    pub measured: Totals,
    /// Values of all flows that were due.
    due: Due,
    /// Length of the measurement.
    pub duration_s: f64,
}

impl<'a> RecordSums<'a> {
    /// Adds up a record.
    pub fn new(workload: &'a Workload, record: &'a TrialRecord) -> Self {
        let mut due = Due::default();
        for (flow, counts) in workload.flows.iter().zip(&record.flows) {
            due.add(&Due::from_flow(flow, counts));
        }
        RecordSums {
            workload,
            record,
            sum: record.sum(),
            measured: record.in_measurement(None),
            due,
            duration_s: record.duration() as f64 / SECOND,
        }
    }

    /// A count of all workers.
    pub fn total(&self, count: fn(&Recording) -> u64) -> u64 {
        self.record.recordings.iter().map(count).sum()
    }

    /// A measure over all flows.
    fn distribution(&self, measure: Measure) -> Distribution {
        distribution([&self.record.all_times(measure)], measure, &self.due)
    }

    /// The measured messages of all flows.
    pub fn messages(&self) -> Messages {
        messages(
            &self.sum.messages,
            &self.measured,
            self.duration_s,
            |measure| self.distribution(measure),
        )
    }

    /// The distribution function of latency over all deliveries that were due.
    pub fn latency_ecdf(&self) -> Vec<(u64, f64)> {
        let latency = self.record.all_times(Measure::Latency);
        let points = ecdf(&latency, ECDF_POINTS);
        shared_by_all(points, latency.len(), self.due.deliveries)
    }

    /// The shortest time to an acknowledgement; `None` without any.
    pub fn fastest_acknowledgement(&self) -> Option<Nanos> {
        let acknowledgements = self.record.all_times(Measure::Acknowledgement);
        (!acknowledgements.is_empty()).then(|| acknowledgements.min())
    }

    /// Counts of messages that should not have been.
    pub fn odd_counts(&self) -> OddCounts {
        let sum = &self.sum;
        OddCounts {
            foreign: self.total(|r| r.foreign),
            corrupt: sum.corrupt,
            misdirected: sum.misdirected,
            lowered: sum.lowered,
            compared: sum.compared,
            compared_whole: sum.compared_whole,
            negative: sum.negative,
            overflowed: sum.overflowed,
            retained: self.total(|r| r.retained),
            redelivered: self.total(|r| r.redelivered),
        }
    }

    /// The questions of all ping-pong flows, and their answers.
    pub fn questions(&self) -> Option<Questions> {
        let flows = self.workload.flows.iter().zip(&self.record.flows);
        Questions::sum(flows.filter_map(|(flow, counts)| questions(flow, counts)))
    }

    /// Share of the measurement for which a publisher was held back, mean over all.
    pub fn publishers_blocked(&self) -> Option<f64> {
        let flows = self.workload.flows.iter();
        let publishers: usize = flows.map(|flow| flow.publishers.len()).sum();
        let whole = publishers as f64 * self.record.duration() as f64;
        (whole > 0.0).then(|| self.sum.held_back as f64 / whole)
    }

    /// Processor time of the workers of both sides.
    pub fn client_cpu(&self) -> ClientCpu {
        // A library's threads beside the worker's own.
        let of_library = |usage: &Usage| usage.running.saturating_sub(usage.own_running);
        ClientCpu {
            publishers: self.cpu_s(Role::Publishers, |usage| usage.running),
            subscribers: self.cpu_s(Role::Subscribers, |usage| usage.running),
            publishers_library: Some(self.cpu_s(Role::Publishers, of_library)),
            subscribers_library: Some(self.cpu_s(Role::Subscribers, of_library)),
        }
    }

    /// Processor time of the workers of a side.
    fn cpu_s(&self, role: Role, part: fn(&Usage) -> Nanos) -> f64 {
        let of_role = self.record.recordings.iter().filter(|r| r.role == role);
        seconds(of_role.map(|r| part(&r.usage)))
    }

    /// Connections of all clients.
    pub fn connections(&self) -> Connections {
        let recordings = self.record.recordings.iter();
        Connections {
            planned: self.record.planned,
            made: self.total(|r| r.made),
            lost: self.total(|r| r.lost),
            remade: self.total(|r| r.remade),
            connect_s: self.record.connect_span as f64 / SECOND,
            ready_s: self.record.prove_span as f64 / SECOND,
            connect_cpu_s: seconds(recordings.map(|r| r.connect_usage.running)),
            refused: self.total(|r| r.connecting.refused),
            made_per_s: self.rate(|r| (r.made, r.connecting.connected)),
            subscribed_per_s: {
                self.rate(|r| (r.connecting.subscriptions, r.connecting.subscribed))
            },
            time_to_connect_ns: {
                let never = self.record.planned.saturating_sub(self.total(|r| r.made));
                self.united(|r| r.connecting.times.as_ref(), never)
            },
            time_to_reconnect_ns: self.united(|r| r.connecting.times_again.as_ref(), 0),
        }
    }

    /// The times in which clients were without a connection that they had lost.
    pub fn interruptions(&self) -> Vec<Interruption> {
        let each = self.record.recordings.iter();
        let each = each.flat_map(|r| r.connecting.interruptions.iter().cloned());
        let start = self
            .record
            .table
            .map_or(self.record.epoch, |table| table.measure);
        let since = |from: Nanos, to: Nanos| (to as f64 - from as f64) / SECOND;
        let united = connecting::Interruption::unite(each.collect());
        let told = united.iter().map(|one| Interruption {
            at_s: since(start, one.from),
            out_s: one.first_back.map(|back| since(one.from, back)),
            back_s: one.all_back.map(|back| since(one.from, back)),
            lost: one.lost,
        });
        told.collect()
    }

    /// The comings and goings of all clients; `None` if none was away.
    pub fn presence(&self) -> Option<PresenceFigures> {
        let left = self.total(|r| r.presence.left);
        (left > 0).then(|| PresenceFigures {
            left,
            returned: self.total(|r| r.presence.returned),
            first_message_ns: self.united(|r| r.presence.first_message.as_ref(), 0),
            backlog_ns: self.united(|r| r.presence.backlog.as_ref(), 0),
        })
    }

    /// The latency of what slow subscribers took; `None` if they took nothing.
    pub fn slow_latency(&self) -> Option<Distribution> {
        self.united(|r| r.slow.latency.as_ref(), 0)
    }

    /// The rate of so many events in these spans of the workers, over the span of all; `None` for a single event.
    fn rate(&self, events: impl Fn(&Recording) -> (u64, Option<(Nanos, Nanos)>)) -> Option<f64> {
        let each = self.record.recordings.iter().map(events);
        let (count, span) = each.fold((0, None), |(count, span), (more, other)| {
            let both = match (span, other) {
                (Some((a, b)), Some((c, d))) => Some((Nanos::min(a, c), Nanos::max(b, d))),
                (one, other) => one.or(other),
            };
            (count + more, both)
        });
        let (from, to) = span?;
        (count > 1 && to > from).then(|| count as f64 / ((to - from) as f64 / SECOND))
    }

    /// The distribution of times of all workers, of which `missing` are larger than all.
    pub fn united(
        &self,
        times: impl Fn(&Recording) -> Option<&HistogramValues>,
        missing: u64,
    ) -> Option<Distribution> {
        let mut all: Option<Histogram<u64>> = None;
        // The conductor has decoded them.
        let each = self.record.recordings.iter().filter_map(times);
        for values in each.filter_map(HistogramValues::histogram) {
            // Equal bounds by construction.
            let _ = all.get_or_insert_with(histogram).add(values);
        }
        Some(Distribution::censored(&all?, missing))
    }
}

/// The sum of spans in ns, s.
fn seconds(spans: impl Iterator<Item = Nanos>) -> f64 {
    // In Rust the sum of no values is -0.
    spans.map(|ns| ns as f64 / SECOND).sum::<f64>() + 0.0
}

/// The questions of a ping-pong flow, and their answers.
pub fn questions(flow: &Flow, counts: &FlowRecording) -> Option<Questions> {
    (flow.exchange == Exchange::PingPong).then(|| Questions {
        asked: counts.messages.published,
        answered: counts.answered,
        answered_late: counts.answered_late,
        unanswered: counts.messages.published.saturating_sub(counts.answered),
    })
}

/// A distribution function of the values that arrived, scaled to their share of all that were due.
fn shared_by_all(mut points: Vec<(u64, f64)>, arrived: u64, due: u64) -> Vec<(u64, f64)> {
    let share = arrived as f64 / due.max(arrived).max(1) as f64;
    points.iter_mut().for_each(|point| point.1 *= share);
    points
}
