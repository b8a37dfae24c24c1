//! Converts the engine's record and the observations beside it to one trial of `results.json`.

use std::sync::Arc;

use pubgauge_driver::{Driver, Nanos};
use pubgauge_engine::assignment::Role;
use pubgauge_engine::conductor::{DrainEnd, TrialEnd, TrialRecord};
use pubgauge_engine::recording::{FlowRecording, Recording, Usage};
use pubgauge_engine::times::Measure;
use pubgauge_figures::histogram::{ECDF_POINTS, ecdf};
use pubgauge_figures::model::{
    Circumstances, ClientCpu, Connections, ContextSwitches, CountCheck, Distribution, Drain,
    FlowFigures, HeldLimits, OddCounts, PhaseCounts, Questions, System, Trial, Verdict, WorkerLoad,
};
use pubgauge_results::verdict::judge;
use pubgauge_testbed::OwnMemory;
use pubgauge_workload::{Exchange, Flow, Workload};

use crate::describe::describe;
use crate::distribution::{Due, distribution, per_second};
use crate::hosts::Clocks;
use crate::job::{ResolvedSettings, TrialRequest};
use crate::observe::Observed;
use crate::on_request::CountedOnRequest;
use crate::{answers, bursts, groups, parties, series, windows};

const SECOND: f64 = 1e9;

/// What is known of a trial beside the engine's record, once it is over.
pub struct Beside {
    /// Names the system's rejections; absent where the trial did not begin.
    pub driver: Option<Arc<dyn Driver>>,
    /// RFC 3339.
    pub started: String,
    /// From the end of the trial before to the end of this one, s.
    pub took_s: f64,
    /// Of the system, where it tells.
    pub version: Option<String>,
    pub observed: Observed,
    pub counted: CountedOnRequest,
    pub limits: Option<HeldLimits>,
    pub client_limits: Option<HeldLimits>,
    /// Of other hosts that had the workers.
    pub clocks: Option<Clocks>,
    /// The system's own counts beside those of its clients.
    pub checks: Vec<CountCheck>,
    /// The memory of the system, as it says itself.
    pub own_memory: OwnMemory,
    pub circumstances: Circumstances,
    /// Beside those of the clients, in words.
    pub errors: Vec<String>,
    pub not_in_order: Vec<String>,
}

impl Beside {
    /// Nothing is known but the circumstances.
    pub fn nothing(circumstances: Circumstances) -> Beside {
        Beside {
            driver: None,
            started: String::new(),
            took_s: 0.0,
            version: None,
            observed: Observed::nothing(),
            counted: CountedOnRequest::default(),
            limits: None,
            client_limits: None,
            clocks: None,
            checks: Vec::new(),
            own_memory: OwnMemory::default(),
            circumstances,
            errors: Vec::new(),
            not_in_order: Vec::new(),
        }
    }
}

/// The trial: what was `asked` for, what the engine recorded and what was seen beside it, with its verdict.
pub fn trial(
    asked: TrialRequest,
    workload: &Workload,
    record: &TrialRecord,
    beside: Beside,
) -> Trial {
    let sum = record.sum();
    let duration_s = record.duration() as f64 / SECOND;
    let per_s = |count| per_second(count, duration_s);
    let measured = record.in_measurement(None);
    let recordings = || record.recordings.iter();
    let total = |of: fn(&Recording) -> u64| recordings().map(of).sum::<u64>();
    let of_each_flow = || workload.flows.iter().zip(&record.flows);
    let mut due = Due::default();
    of_each_flow().for_each(|(flow, counts)| due.add(&Due::of(flow, counts)));
    let distribution = |measure| distribution([&record.all_times(measure)], measure, &due);
    let some = |measure| Some(distribution(measure)).filter(|d: &Distribution| d.count > 0);
    let mut errors: Vec<String> = recordings()
        .flat_map(|r| r.errors.iter().map(|e| one_line(e)))
        .collect();
    let more = total(|r| r.more_errors);
    if more > 0 {
        errors.push(format!("and {more} more"));
    }
    let latency = record.all_times(Measure::Latency);
    let acknowledgements = record.all_times(Measure::Acknowledgement);
    let fastest = (!acknowledgements.is_empty()).then(|| acknowledgements.min());
    let driver = beside.driver.as_deref();
    let mut mappings = asked.settings.mappings;
    // Clients of other settings may have asked for something else.
    if asked.of_flows.is_empty() {
        answers::add_grants(&mut mappings, record);
    }
    let observed = &beside.observed;
    let clocks = beside.clocks.unwrap_or_default();
    errors.extend(clocks.errors);
    errors.extend(beside.errors);
    let mut checks = checks(record, &sum);
    checks.extend(beside.checks);
    let seen = observed.processes.clone();
    let course = series::course(record, None);
    let mut trial = Trial {
        id: asked.id,
        cell: asked.cell,
        system: System {
            name: asked.system,
            version: beside.version.unwrap_or_else(|| "unknown".into()),
        },
        settings: asked.settings.settings,
        mappings,
        settings_name: asked.settings_name,
        axes: asked.axes,
        search: asked.search,
        limit_share: asked.limit_share,
        repeat: asked.repeat,
        round: asked.round,
        verdict: Verdict::default(),
        started: beside.started,
        took_s: beside.took_s,
        workload: describe(workload, beside.circumstances.client.pacing_within),
        duration_s,
        offered: sum.offered,
        published: sum.published,
        refused: sum.refused,
        rejections: answers::rejections(record, None, driver),
        unacknowledged: (0..record.flows.len())
            .map(|flow| record.unacknowledged(flow))
            .sum(),
        not_connected: sum.not_connected,
        not_sent: sum.not_sent,
        not_tried: sum.not_tried,
        delivered: sum.delivered,
        expected: sum.expected + sum.unconnected_deliveries,
        lost: sum.lost() + sum.unconnected_deliveries,
        under_way: sum.under_way,
        duplicated: sum.duplicated,
        reordered: sum.reordered,
        sentinels: total(|r| r.sentinels),
        warm_up: PhaseCounts {
            published: sum.warm_up_published,
            delivered: sum.warm_up_delivered,
        },
        odd: OddCounts {
            foreign: total(|r| r.foreign),
            corrupt: sum.corrupt,
            misdirected: sum.misdirected,
            lowered: sum.lowered,
            compared: sum.compared,
            compared_whole: sum.compared_whole,
            negative: sum.negative,
            overflowed: sum.overflowed,
            retained: total(|r| r.retained),
            redelivered: total(|r| r.redelivered),
        },
        offered_msgs_per_s: per_s(sum.offered),
        published_msgs_per_s: per_s(measured.published),
        delivered_msgs_per_s: per_s(measured.unique),
        latency_ns: distribution(Measure::Latency),
        latency_from_send_ns: distribution(Measure::LatencyFromSend),
        send_lag_ns: distribution(Measure::SendLag),
        acknowledgement_ns: some(Measure::Acknowledgement),
        round_trip_ns: some(Measure::RoundTrip),
        half_round_trip_ns: some(Measure::RoundTrip).map(|d| d.halved()),
        questions: Questions::sum(of_each_flow().filter_map(|f| questions(f.0, f.1))),
        publishers_blocked: publishers_blocked(workload, record),
        publisher_window: answers::publisher_window(record, fastest),
        client_cpu_s: ClientCpu {
            publishers: cpu(record, Role::Publishers, |u| u.running),
            subscribers: cpu(record, Role::Subscribers, |u| u.running),
            publishers_library: Some(cpu(record, Role::Publishers, of_library)),
            subscribers_library: Some(cpu(record, Role::Subscribers, of_library)),
        },
        client_processes: seen.client_processes,
        client_rss_bytes: seen.client_rss_bytes,
        system_cpu_s: seen.system_cpu_s,
        system_rss_bytes: seen.system_rss_bytes,
        system_heap_bytes: beside.own_memory.heap,
        system_memory_limit_bytes: beside.own_memory.limit,
        system_context_switches: seen.system_context_switches,
        system_busiest_thread_cpu: seen.system_busiest_thread_cpu,
        system_processes: seen.system_processes,
        system_written_bytes: seen.system_written_bytes,
        brokers: seen.brokers,
        system_calls: beside.counted.system_calls,
        interface: beside.counted.interface,
        network: beside.counted.network,
        sized_hosts: beside.counted.sized_hosts,
        hosts: clocks.hosts,
        one_way: None,
        worker_load: worker_load(record, observed),
        client_context_switches: ContextSwitches {
            voluntary: total(|r| r.usage.voluntary_switches),
            involuntary: total(|r| r.usage.involuntary_switches),
        },
        wire_bytes_sent: total(|r| r.wire.sent),
        wire_bytes_received: total(|r| r.wire.received),
        connections: Connections {
            planned: record.planned,
            made: total(|r| r.made),
            lost: total(|r| r.lost),
            remade: total(|r| r.remade),
            connect_s: record.connect_span as f64 / SECOND,
            ready_s: record.prove_span as f64 / SECOND,
            connect_cpu_s: seconds(recordings().map(|r| r.connect_usage.running)),
        },
        drain: Drain {
            seconds: record.drain.span as f64 / SECOND,
            cut_short: record.drain.ended == DrainEnd::CutShort,
        },
        longest_silence_ns: record.silence,
        circumstances: beside.circumstances,
        limits: beside.limits,
        client_limits: beside.client_limits,
        checks,
        flows: flows(&asked.of_flows, workload, record, driver, per_s),
        groups: groups::of_trial(workload, record),
        parties: parties::of_trial(workload, record, clocks.one_way.is_none()),
        windows: windows::of_trial(workload, record, observed),
        at_start: series::at_start(record),
        series: series::series(record, observed),
        course: course.backlog,
        course_due: course.due,
        noise_ns: Distribution::from_histogram(&observed.noise),
        latency_ecdf: shared_by_all(ecdf(&latency, ECDF_POINTS), latency.len(), due.deliveries),
        noise_ecdf: ecdf(&observed.noise, ECDF_POINTS),
        errors,
        not_in_order: beside.not_in_order,
    };
    if let Some(bound) = clocks.one_way {
        trial.one_way_within(bound);
    }
    trial.verdict = verdict(&trial);
    trial
}

/// The verdict, with each reason on one line.
fn verdict(trial: &Trial) -> Verdict {
    let mut verdict = judge(trial);
    for reason in &mut verdict.reasons {
        reason.text = one_line(&reason.text);
    }
    verdict
}

/// Processor time of the workers of a side, s.
fn cpu(record: &TrialRecord, role: Role, of: fn(&Usage) -> Nanos) -> f64 {
    let of_role = record.recordings.iter().filter(|r| r.role == role);
    seconds(of_role.map(|r| of(&r.usage)))
}

/// Processor time of a library's threads beside the worker's own.
fn of_library(usage: &Usage) -> Nanos {
    usage.running.saturating_sub(usage.own_running)
}

/// Share of the measurement for which a publisher was held back, mean over all.
fn publishers_blocked(workload: &Workload, record: &TrialRecord) -> Option<f64> {
    let publishers: usize = workload
        .flows
        .iter()
        .map(|flow| flow.publishers.len())
        .sum();
    let whole = publishers as f64 * record.duration() as f64;
    (whole > 0.0).then(|| record.sum().held_back as f64 / whole)
}

/// The sum of spans in ns, s.
fn seconds(spans: impl Iterator<Item = Nanos>) -> f64 {
    // In Rust the sum of no values is -0.
    spans.map(|ns| ns as f64 / SECOND).sum::<f64>() + 0.0
}

/// The questions of a ping-pong flow, and their answers.
fn questions(flow: &Flow, counts: &FlowRecording) -> Option<Questions> {
    (flow.exchange == Exchange::PingPong).then(|| Questions {
        asked: counts.published,
        answered: counts.answered,
        unanswered: counts.published.saturating_sub(counts.answered),
    })
}

/// A distribution function of the values that arrived, scaled to their share of all that were due.
fn shared_by_all(mut points: Vec<(u64, f64)>, arrived: u64, due: u64) -> Vec<(u64, f64)> {
    let share = arrived as f64 / due.max(arrived).max(1) as f64;
    points.iter_mut().for_each(|point| point.1 *= share);
    points
}

/// The same count, determined in independent ways: by the ledger's bits, by the latency histograms,
/// by the series of the workers.
fn checks(record: &TrialRecord, sum: &FlowRecording) -> Vec<CountCheck> {
    if record.recordings.is_empty() {
        return Vec::new();
    }
    let end = record
        .series
        .last()
        .map(|moment| moment.sum())
        .unwrap_or_default();
    let check = |what: &str, counts: &[(&str, u64)]| CountCheck {
        what: what.to_owned(),
        counts: counts
            .iter()
            .map(|(who, n)| ((*who).to_owned(), *n))
            .collect(),
        ..CountCheck::default()
    };
    let mut arrivals = vec![
        ("the counters", sum.unique),
        ("the ledger", sum.distinct),
        (
            "the latencies",
            (record.all_times(Measure::Latency).len()).saturating_sub(sum.timed_again),
        ),
    ];
    let mut due = vec![("the publishers", sum.expected)];
    if record.table.is_some() {
        arrivals.push(("the series", end.unique.saturating_sub(sum.warm_up_unique)));
        let in_series = (end.due - end.rejected).saturating_sub(sum.warm_up_expected);
        due.push(("the series", in_series));
    }
    vec![
        check("first deliveries differ", &arrivals),
        check("expected deliveries differ", &due),
    ]
}

fn worker_load(record: &TrialRecord, observed: &Observed) -> WorkerLoad {
    let busiest = |role: Role, of: fn(&Usage) -> Nanos| {
        record
            .recordings
            .iter()
            .filter(|r| r.role == role && r.usage.span > 0)
            .map(|r| of(&r.usage) as f64 / r.usage.span as f64)
            .fold(0.0, f64::max)
    };
    // Stalls are those of the measurement alone.
    let measured = record.duration().max(1) as f64;
    let stalled = |role: Role| {
        let of_role = record.recordings.iter().filter(|r| r.role == role);
        let longest = of_role.map(|r| r.usage.own_stalled).max().unwrap_or(0);
        (longest as f64 / measured).min(1.0)
    };
    let machines = record.recordings.iter().filter_map(|r| r.usage.machine);
    let stolen = machines.map(|machine| machine.stolen_share());
    let waited = observed.processes.system_waiting;
    WorkerLoad {
        publishers_running: busiest(Role::Publishers, |u| u.own_running),
        publishers_waiting: busiest(Role::Publishers, |u| u.own_waiting),
        subscribers_running: busiest(Role::Subscribers, |u| u.own_running),
        subscribers_waiting: busiest(Role::Subscribers, |u| u.own_waiting),
        publishers_stalled: stalled(Role::Publishers),
        subscribers_stalled: stalled(Role::Subscribers),
        machine_stalled: (observed.stalls.all as f64 / measured).min(1.0),
        machine_others: observed.others_cores,
        quota: observed.quota,
        machine_stolen: (stolen.chain(observed.stolen)).reduce(f64::max),
        system_waiting: waited.map(|waited| (waited.all as f64 / measured).min(1.0)),
        system_longest_waiting_ns: waited.map(|waited| waited.longest),
        longest_stall_ns: (record.recordings.iter())
            .map(|r| r.usage.longest_stall)
            .fold(observed.stalls.longest, Nanos::max),
        machine_longest_stall_ns: Some(observed.stalls.longest),
    }
}

fn flows(
    of_flows: &[ResolvedSettings],
    workload: &Workload,
    record: &TrialRecord,
    driver: Option<&dyn Driver>,
    per_s: impl Fn(u64) -> f64,
) -> Vec<FlowFigures> {
    let distribution = |flow: usize, measure: Measure| {
        let times = record.times.get(&(flow as u32, measure));
        let due = Due::of(&workload.flows[flow], &record.flows[flow]);
        distribution(times, measure, &due)
    };
    let several = workload.flows.len() > 1;
    let mut courses: Vec<series::Course> = (0..workload.flows.len())
        .map(|f| {
            if several {
                series::course(record, Some(f))
            } else {
                series::Course::default()
            }
        })
        .collect();
    // Flows with the trial's settings have no entry of their own.
    let own = |flow: &Flow| of_flows.get((flow.settings as usize).checked_sub(1)?);
    let figures = |(f, (flow, counts)): (usize, (&Flow, &FlowRecording))| FlowFigures {
        name: flow.name.clone(),
        settings: own(flow).map(|own| own.settings.clone()),
        mappings: own(flow).map_or(Vec::new(), |own| own.mappings.clone()),
        flat_out: flow.is_flat_out(),
        bursts: bursts::figures(flow, &record.bursts[f]),
        cycle_s: flow.arrivals.cycle().map(|ns| ns as f64 / SECOND),
        series: if several {
            series::of_flow(record, f)
        } else {
            Vec::new()
        },
        course: std::mem::take(&mut courses[f].backlog),
        course_due: std::mem::take(&mut courses[f].due),
        windows: if several {
            windows::of_flow(workload, record, f)
        } else {
            Vec::new()
        },
        offered: counts.offered,
        published: counts.published,
        refused: counts.refused,
        rejections: answers::rejections(record, Some(f), driver),
        unacknowledged: record.unacknowledged(f),
        not_connected: counts.not_connected,
        not_sent: counts.not_sent,
        not_tried: counts.not_tried,
        delivered: counts.delivered,
        expected: counts.expected + counts.unconnected_deliveries,
        lost: counts.lost() + counts.unconnected_deliveries,
        under_way: counts.under_way,
        duplicated: counts.duplicated,
        reordered: counts.reordered,
        published_msgs_per_s: Some(per_s(record.in_measurement(Some(f)).published)),
        delivered_msgs_per_s: per_s(record.in_measurement(Some(f)).unique),
        latency_ns: distribution(f, Measure::Latency),
        latency_from_send_ns: distribution(f, Measure::LatencyFromSend),
        send_lag_ns: distribution(f, Measure::SendLag),
        round_trip_ns: Some(distribution(f, Measure::RoundTrip)).filter(|d| d.count > 0),
        questions: questions(flow, counts),
    };
    let flows = workload.flows.iter();
    flows.zip(&record.flows).enumerate().map(figures).collect()
}

/// Why a trial did not run as planned; `None` if it did.
pub fn not_run(outcome: &TrialEnd) -> Option<String> {
    match outcome {
        TrialEnd::Completed => None,
        TrialEnd::NotReady(why) => Some(format!(
            "it was never ready to be measured: {}",
            one_line(why)
        )),
        TrialEnd::Aborted(why) => Some(format!("it was ended early: {}", one_line(why))),
        TrialEnd::Interrupted => Some("it was interrupted by the user".into()),
    }
}

/// A message, with its hint or list, joined to one line for `results.json`.
pub fn one_line(message: &str) -> String {
    let mut line = String::new();
    for part in message.lines().map(str::trim).filter(|p| !p.is_empty()) {
        if !line.is_empty() {
            line.push_str(match part {
                _ if line.ends_with(':') => " ",
                hint if hint.starts_with("hint: ") => "; ",
                _ => " / ",
            });
        }
        line.push_str(part);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_stand_on_one_line() {
        let text = "x was ended; its last lines:\n    ready\n\n    bye\n  hint: look";
        assert_eq!(
            one_line(text),
            "x was ended; its last lines: ready / bye; hint: look"
        );
        assert_eq!(one_line("plain"), "plain");
    }
}
