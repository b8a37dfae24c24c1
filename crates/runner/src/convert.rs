//! Converts the engine's record and the observations beside it to one trial of `results.json`.

use std::sync::Arc;

use pubgauge_driver::{Driver, Nanos};
use pubgauge_engine::assignment::Role;
use pubgauge_engine::conductor::{DrainEnd, TrialEnd, TrialRecord};
use pubgauge_engine::recording::{FlowRecording, Recording, Silence};
use pubgauge_engine::times::Measure;
use pubgauge_engine::usage::Usage;
use pubgauge_figures::Shortfall;
use pubgauge_figures::histogram::{ECDF_POINTS, ecdf};
use pubgauge_figures::model::{
    Circumstances, ContextSwitches, CountCheck, Distribution, Drain, FlowFigures, HeldLimits,
    PhaseCounts, System, Trial, Verdict, WorkerLoad,
};
use pubgauge_results::verdict::judge;
use pubgauge_results::verdict::thresholds::stragglers_at_most;
use pubgauge_testbed::OwnMemory;
use pubgauge_workload::{Arrivals, Flow, Workload};

use crate::describe::describe;
use crate::distribution::{Due, distribution};
use crate::hosts::Clocks;
use crate::job::{ResolvedSettings, TrialRequest};
use crate::messages::{messages, shortfall};
use crate::observe::Observed;
use crate::on_request::CountedOnRequest;
use crate::record_sums::{RecordSums, questions};
use crate::{answers, bursts, failures, groups, late, parties, series, slow, wills, windows};

const SECOND: f64 = 1e9;

/// The facts of a trial beside the engine's record, once it is over.
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

/// Longest time for which nothing came to a worker although something was under way to it, or fell due for it to a
/// publisher that was not connected, ns. `counts`: whether a silence of a worker that got so many deliveries is one.
fn longest_silence(record: &TrialRecord, counts: impl Fn(&Silence, u64) -> bool) -> Nanos {
    let of_worker = |recording: &Recording| {
        let received = recording.traffic.received;
        let mut silences = recording.silences.iter();
        let longest = silences.rfind(|silence| counts(silence, received));
        longest.map_or(0, |silence| silence.span)
    };
    let longest = record.recordings.iter().map(of_worker).max();
    longest.unwrap_or(0).max(record.silence_of_outages)
}

/// Whether more than single stragglers came after a silence, of so many deliveries.
fn is_before_several(silence: &Silence, deliveries: u64) -> bool {
    silence.then_came as f64 > stragglers_at_most(deliveries)
}

/// The trial: what was `asked` for, what the engine recorded and what was seen beside it, with its verdict.
pub fn trial(
    asked: TrialRequest,
    workload: &Workload,
    record: &TrialRecord,
    mut beside: Beside,
) -> Trial {
    let sums = RecordSums::new(workload, record);
    let clocks = beside.clocks.take().unwrap_or_default();
    let driver = beside.driver.clone();
    let driver = driver.as_deref();
    let mut errors = clocks.errors;
    errors.append(&mut beside.errors);
    let mut checks = checks(record, &sums.sum);
    checks.append(&mut beside.checks);
    let flows = flows(&asked.of_flows, driver, &sums);
    let course = series::course(record, None);
    let observed = &beside.observed;
    let mut trial = Trial {
        duration_s: sums.duration_s,
        messages: sums.messages(),
        shortfall: Shortfall {
            rejections: answers::rejections(record, None, driver),
            unacknowledged: (0..record.flows.len())
                .map(|flow| record.unacknowledged(flow))
                .sum(),
            questions: sums.questions(),
            ..shortfall(&sums.sum)
        },
        sentinels: sums.total(|r| r.sentinels),
        warm_up: PhaseCounts {
            published: sums.sum.warm_up_published,
            delivered: sums.sum.warm_up_delivered,
        },
        odd: sums.odd_counts(),
        publishers_blocked: sums.publishers_blocked(),
        publisher_window: answers::publisher_window(record, sums.fastest_acknowledgement()),
        worker_load: worker_load(record, observed),
        size_limit: answers::size_limit(record),
        connections: sums.connections(),
        presence: sums.presence(),
        slow: slow::of_trial(&sums),
        late: late::of_trial(&sums),
        wills: wills::of_trial(&sums, clocks.one_way.is_none()),
        interruptions: sums.interruptions(),
        drain: Drain {
            seconds: record.drain.span as f64 / SECOND,
            cut_short: record.drain.ended == DrainEnd::CutShort,
        },
        longest_silence_ns: longest_silence(record, |_, _| true),
        silence_before_several_ns: Some(longest_silence(record, is_before_several)),
        hosts: clocks.hosts,
        checks,
        flows,
        groups: groups::of_trial(workload, record),
        parties: parties::of_trial(workload, record, clocks.one_way.is_none()),
        windows: windows::of_trial(workload, record, observed),
        at_start: series::at_start(record),
        series: series::series(record, observed),
        course: course.backlog,
        course_due: course.due,
        noise_ns: Distribution::from_histogram(&observed.noise),
        latency_ecdf: sums.latency_ecdf(),
        noise_ecdf: ecdf(&observed.noise, ECDF_POINTS),
        errors,
        client_failures: failures::of_clients(record, driver),
        ..as_asked(asked, workload, record, &mut beside)
    };
    note_use(&mut trial, &sums, &beside.observed);
    note_beside(&mut trial, beside);
    if let Some(bound) = clocks.one_way {
        trial.one_way_within(bound);
    }
    trial.verdict = verdict(&trial);
    trial
}

/// A trial without figures: its place in the plan, and what it was to be.
fn as_asked(
    asked: TrialRequest,
    workload: &Workload,
    record: &TrialRecord,
    beside: &mut Beside,
) -> Trial {
    let mut mappings = asked.settings.mappings;
    // Clients of other settings may have asked for something else.
    if asked.of_flows.is_empty() {
        answers::add_grants(&mut mappings, record);
    }
    Trial {
        id: asked.id,
        cell: asked.cell,
        system: System {
            name: asked.system,
            version: beside.version.take().unwrap_or_else(|| "unknown".into()),
        },
        settings: asked.settings.settings,
        mappings,
        settings_name: asked.settings_name,
        axes: asked.axes,
        search: asked.search,
        limit_share: asked.limit_share,
        repeat: asked.repeat,
        round: asked.round,
        workload: describe(workload, beside.circumstances.client.pacing_within),
        ..Trial::default()
    }
}

/// Processor time, memory and bytes of client and system.
fn note_use(trial: &mut Trial, sums: &RecordSums<'_>, observed: &Observed) {
    let seen = observed.processes.clone();
    trial.client_cpu_s = sums.client_cpu();
    trial.client_processes = seen.client_processes;
    trial.client_rss_bytes = seen.client_rss_bytes;
    trial.client_context_switches = ContextSwitches {
        voluntary: sums.total(|r| r.usage.voluntary_switches),
        involuntary: sums.total(|r| r.usage.involuntary_switches),
    };
    trial.wire_bytes_sent = sums.total(|r| r.wire.sent);
    trial.wire_bytes_received = sums.total(|r| r.wire.received);
    trial.system_cpu_s = seen.system_cpu_s;
    trial.system_rss_bytes = seen.system_rss_bytes;
    trial.system_context_switches = seen.system_context_switches;
    trial.system_busiest_thread_cpu = seen.system_busiest_thread_cpu;
    trial.system_processes = seen.system_processes;
    trial.system_descriptors = seen.system_descriptors;
    trial.system_written_bytes = seen.system_written_bytes;
    trial.brokers = seen.brokers;
}

/// The facts that neither clients nor observers have.
fn note_beside(trial: &mut Trial, beside: Beside) {
    trial.started = beside.started;
    trial.took_s = beside.took_s;
    trial.system_heap_bytes = beside.own_memory.heap;
    trial.system_memory_limit_bytes = beside.own_memory.limit;
    trial.system_calls = beside.counted.system_calls;
    trial.interface = beside.counted.interface;
    trial.network = beside.counted.network;
    trial.sized_hosts = beside.counted.sized_hosts;
    trial.circumstances = beside.circumstances;
    trial.limits = beside.limits;
    trial.client_limits = beside.client_limits;
    trial.not_in_order = beside.not_in_order;
}

/// The verdict, with each reason on one line.
fn verdict(trial: &Trial) -> Verdict {
    let mut verdict = judge(trial);
    for reason in &mut verdict.reasons {
        reason.text = one_line(&reason.text);
    }
    verdict
}

/// Counts that are determined in independent ways: by the ledger's bits, by the latency histograms,
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
        ("the counters", sum.messages.unique),
        ("the ledger", sum.distinct),
        (
            "the latencies",
            (record.all_times(Measure::Latency).len() + sum.messages.backlog)
                .saturating_sub(sum.messages.timed_again),
        ),
    ];
    let mut due = vec![("the publishers", sum.messages.expected)];
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
    let busiest = |role: Role, time: fn(&Usage) -> Nanos| {
        record
            .recordings
            .iter()
            .filter(|r| r.role == role && r.usage.span > 0)
            .map(|r| time(&r.usage) as f64 / r.usage.span as f64)
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
        workers_kept_waiting: busiest(Role::Publishers, Usage::kept_waiting)
            + busiest(Role::Subscribers, Usage::kept_waiting),
        workers_longest_wait_ns: (record.recordings.iter())
            .map(|r| r.usage.longest_wait)
            .max()
            .unwrap_or(0),
        applications_busy: (record.recordings.iter())
            .filter_map(|r| r.busiest_application)
            .max()
            .map(|busy| (busy as f64 / measured).min(1.0)),
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
    driver: Option<&dyn Driver>,
    sums: &RecordSums<'_>,
) -> Vec<FlowFigures> {
    let (workload, record) = (sums.workload, sums.record);
    let distribution = |flow: usize, measure: Measure| {
        let times = record.times.get(&(flow as u32, measure));
        let due = Due::from_flow(&workload.flows[flow], &record.flows[flow]);
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
        rate_over_time: rate_over_time(flow, workload.phases.measure.latest()),
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
        messages: messages(
            &counts.messages,
            &record.in_measurement(Some(f)),
            sums.duration_s,
            |measure| distribution(f, measure),
        ),
        shortfall: Shortfall {
            rejections: answers::rejections(record, Some(f), driver),
            unacknowledged: record.unacknowledged(f),
            questions: questions(flow, counts),
            ..shortfall(counts)
        },
    };
    let flows = workload.flows.iter();
    flows.zip(&record.flows).enumerate().map(figures).collect()
}

/// The corners of a flow's rate over time in a measurement that takes so long; empty where its rate does not change.
fn rate_over_time(flow: &Flow, measure: Nanos) -> Vec<(f64, f64)> {
    let Arrivals::Varying { curve, .. } = &flow.arrivals else {
        return Vec::new();
    };
    let (start, sends) = (flow.start_offset.unwrap_or(0), flow.sends_for(measure));
    let ends = (start + sends < measure).then_some((sends, 0.0));
    let points = curve.points(sends).into_iter().chain(ends);
    points
        .map(|(t, per_s)| ((start + t) as f64 / SECOND, per_s))
        .collect()
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
