//! Converts the engine's record and the observations beside it to one trial of `results.json`.

use std::collections::BTreeSet;
use std::time::Duration;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use pubgauge_driver::{Mapping, Nanos, Settings};
use pubgauge_engine::assignment::Role;
use pubgauge_engine::conductor::{DrainEnd, TrialEnd, TrialRecord};
use pubgauge_engine::recording::{FlowRecording, Recording, Usage};
use pubgauge_engine::times::{Measure, histogram};
use pubgauge_results::histogram::{ECDF_POINTS, Interval, ecdf, write_log};
use pubgauge_results::model::{
    ClientCpu, Connections, ContextSwitches, CountCheck, Distribution, Drain, FlowFigures,
    OddCounts, PhaseCounts, Questions, Trial, WorkerLoad, WorkloadInfo,
};
use pubgauge_workload::{Arrivals, Exchange, Flow, Sizes, Workload};

use crate::distribution::{Due, distribution, per_second};
use crate::observe::Observed;
use crate::{bursts, groups, series, windows};

const SECOND: f64 = 1e9;

/// What was `asked` for, and seen of its processes, with the figures of its traffic, without a verdict yet.
/// `of_flows` are the settings of flows that have their own, with what they became.
pub fn trial(
    asked: Trial,
    of_flows: &[(Settings, Vec<Mapping>)],
    workload: &Workload,
    record: &TrialRecord,
    observed: &Observed,
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
    Trial {
        workload: describe(workload),
        duration_s,
        offered: sum.offered,
        published: sum.published,
        refused: sum.refused,
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
        client_cpu_s: ClientCpu {
            publishers: cpu(record, Role::Publishers),
            subscribers: cpu(record, Role::Subscribers),
        },
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
        checks: checks(record, &sum),
        flows: flows(of_flows, workload, record, per_s),
        groups: groups::of_trial(workload, record),
        windows: windows::of_trial(workload, record, observed),
        at_start: series::at_start(record),
        series: series::series(record, observed),
        course: series::course(record, None),
        noise_ns: Distribution::from_histogram(&observed.noise),
        latency_ecdf: shared_by_all(ecdf(&latency, ECDF_POINTS), latency.len(), due.deliveries),
        noise_ecdf: ecdf(&observed.noise, ECDF_POINTS),
        errors,
        ..asked
    }
}

fn cpu(record: &TrialRecord, role: Role) -> f64 {
    let of_role = record.recordings.iter().filter(|r| r.role == role);
    seconds(of_role.map(|r| r.usage.running))
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
        ("the latencies", record.all_times(Measure::Latency).len()),
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
    WorkerLoad {
        publishers_running: busiest(Role::Publishers, |u| u.own_running),
        publishers_waiting: busiest(Role::Publishers, |u| u.own_waiting),
        subscribers_running: busiest(Role::Subscribers, |u| u.own_running),
        subscribers_waiting: busiest(Role::Subscribers, |u| u.own_waiting),
        publishers_stalled: stalled(Role::Publishers),
        subscribers_stalled: stalled(Role::Subscribers),
        machine_stalled: (observed.stalls.all as f64 / measured).min(1.0),
        machine_others: observed.others_cores,
        longest_stall_ns: (record.recordings.iter())
            .map(|r| r.usage.longest_stall)
            .fold(observed.stalls.longest, Nanos::max),
    }
}

fn flows(
    of_flows: &[(Settings, Vec<Mapping>)],
    workload: &Workload,
    record: &TrialRecord,
    per_s: impl Fn(u64) -> f64,
) -> Vec<FlowFigures> {
    let distribution = |flow: usize, measure: Measure| {
        let times = record.times.get(&(flow as u32, measure));
        let due = Due::of(&workload.flows[flow], &record.flows[flow]);
        distribution(times, measure, &due)
    };
    let several = workload.flows.len() > 1;
    // Flows with the trial's settings have no entry of their own.
    let own = |flow: &Flow| of_flows.get((flow.settings as usize).checked_sub(1)?);
    let figures = |(f, (flow, counts)): (usize, (&Flow, &FlowRecording))| FlowFigures {
        name: flow.name.clone(),
        settings: own(flow).map(|(settings, _)| settings.clone()),
        mappings: own(flow).map_or(Vec::new(), |(_, mappings)| mappings.clone()),
        flat_out: flow.is_flat_out(),
        bursts: bursts::figures(flow, &record.bursts[f]),
        cycle_s: flow.arrivals.cycle().map(|ns| ns as f64 / SECOND),
        series: if several {
            series::of_flow(record, f)
        } else {
            Vec::new()
        },
        course: if several {
            series::course(record, Some(f))
        } else {
            Vec::new()
        },
        windows: if several {
            windows::of_flow(workload, record, f)
        } else {
            Vec::new()
        },
        offered: counts.offered,
        published: counts.published,
        refused: counts.refused,
        not_connected: counts.not_connected,
        not_sent: counts.not_sent,
        not_tried: counts.not_tried,
        delivered: counts.delivered,
        expected: counts.expected + counts.unconnected_deliveries,
        lost: counts.lost() + counts.unconnected_deliveries,
        under_way: counts.under_way,
        duplicated: counts.duplicated,
        reordered: counts.reordered,
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

/// The histograms of a trial as logs: one per measure, one interval per flow and step of the series. `of` names the
/// trial in their comments.
///
/// # Errors
/// The histograms of a record are missing, or cannot be encoded.
pub fn logs(
    workload: &Workload,
    record: &TrialRecord,
    of: &str,
) -> Result<Vec<(String, String)>, String> {
    let names = [
        (Measure::Latency, "latency"),
        (Measure::LatencyFromSend, "latency-from-send"),
        (Measure::SendLag, "send-lag"),
        (Measure::Acknowledgement, "acknowledgement"),
        (Measure::RoundTrip, "round-trip"),
    ];
    let mut files = Vec::new();
    let at = |n: u32| {
        let moment = record.series.get(n as usize).or(record.series.last());
        Duration::from_nanos(moment.map_or(0, |moment| moment.at))
    };
    for (measure, name) in names {
        let mut lost = None;
        // One histogram at a time is in memory.
        let mut intervals = (record.intervals.each_of(measure))
            .map_while(|interval| interval.map_err(|error| lost = Some(error)).ok())
            .map(|i| Interval {
                tag: Some(workload.flows[i.flow as usize].name.clone()),
                start: at(i.number),
                length: at(i.number + 1).saturating_sub(at(i.number)),
                histogram: decode(&i.histogram),
            })
            .peekable();
        if intervals.peek().is_none() {
            continue;
        }
        let head = format!("{name} of {of}").replace(['\r', '\n'], " ");
        let log = write_log(&[&head], intervals).map_err(|error| error.to_string())?;
        if let Some(error) = lost {
            return Err(format!(
                "the histograms of single records are lost: {error}"
            ));
        }
        files.push((name.to_owned(), log));
    }
    Ok(files)
}

fn decode(encoded: &[u8]) -> Histogram<u64> {
    // The conductor wrote them with the same library.
    Deserializer::new()
        .deserialize(&mut &encoded[..])
        .unwrap_or_else(|_| histogram())
}

/// A workload in words.
pub fn describe(workload: &Workload) -> WorkloadInfo {
    let publishers = workload.flows.iter().flat_map(|f| &f.publishers);
    let topics: BTreeSet<&String> = publishers.flat_map(|p| &p.topics).collect();
    // A device with connections to several brokers counts once.
    let whole = |device: u32| {
        workload.devices[device as usize]
            .connection_of
            .unwrap_or(device)
    };
    let devices = |of: fn(&Flow) -> Vec<u32>| {
        let all: BTreeSet<u32> = workload.flows.iter().flat_map(of).map(whole).collect();
        all.len() as u32
    };
    let joined = |words: fn(&Flow) -> String| {
        let sending = workload.flows.iter().filter(|f| f.publishes());
        let mut all: Vec<String> = sending.map(words).collect();
        all.dedup();
        all.join(" + ")
    };
    WorkloadInfo {
        name: workload.name.clone(),
        publishers: devices(|f| f.publishers.iter().map(|p| p.device).collect()),
        subscribers: devices(|f| f.subscribers.iter().map(|s| s.device).collect()),
        topics: topics.len() as u32,
        payload: joined(|f| size_words(&f.size)),
        arrivals: joined(|f| arrival_words(&f.arrivals)),
        flat_out: workload.flows.iter().any(Flow::is_flat_out),
    }
}

/// Adds to the description of the arrivals that scheduled messages leave within a span of their due
/// time, ns; 0 adds nothing.
pub fn tell_pacing(info: &mut WorkloadInfo, workload: &Workload, pacing_within: Nanos) {
    let mut sending = workload.flows.iter().filter(|f| f.publishes());
    let scheduled = sending.any(|f| !f.is_flat_out());
    if pacing_within > 0 && scheduled {
        let ms = number(pacing_within as f64 / 1e6);
        info.arrivals.push_str(&format!(", within {ms} ms"));
    }
}

/// A payload size in words.
pub fn size_words(size: &Sizes) -> String {
    match size {
        Sizes::Fixed { bytes } => bytes_words(*bytes),
        Sizes::List { bytes } => bytes
            .iter()
            .map(|b| bytes_words(*b))
            .collect::<Vec<_>>()
            .join(", "),
        Sizes::Uniform { min, max } => format!("{} to {}", bytes_words(*min), bytes_words(*max)),
        Sizes::Normal { mean, sd, .. } => format!("normal, {mean:.0} B \u{b1} {sd:.0} B"),
        Sizes::LogNormal { median, sigma, .. } => {
            format!("log-normal, median {median:.0} B, sigma {}", number(*sigma))
        }
        Sizes::Recorded => "as recorded".into(),
    }
}

fn bytes_words(bytes: u32) -> String {
    match bytes {
        b if b >= 1 << 20 && b % (1 << 20) == 0 => format!("{} MiB", b >> 20),
        b if b >= 1 << 10 && b % (1 << 10) == 0 => format!("{} KiB", b >> 10),
        b => format!("{b} B"),
    }
}

pub fn arrival_words(arrivals: &Arrivals) -> String {
    match arrivals {
        Arrivals::FlatOut => "flat out".into(),
        Arrivals::Periodic { per_s } => rate_words(*per_s),
        Arrivals::Poisson { per_s } => format!("Poisson {}", rate_words(*per_s)),
        Arrivals::OnOff { per_s, on, off } => format!(
            "bursts of {} s every {} s, {}",
            number(*on as f64 / SECOND),
            number((*on + *off) as f64 / SECOND),
            per_s.map_or("flat out".into(), rate_words),
        ),
        Arrivals::Bursts { messages, every } => format!(
            "bursts of {messages} each, {}",
            every.map_or("one after the other".into(), |every| format!(
                "every {} s",
                number(every as f64 / SECOND)
            )),
        ),
        Arrivals::Replay(_) => "replayed trace".into(),
    }
}

/// A rate: `1000/s`, `3.33/s`; less than one a second as the interval: `1 every 15 min`.
fn rate_words(per_s: f64) -> String {
    if per_s >= 1.0 || per_s <= 0.0 {
        return format!("{}/s", number(per_s));
    }
    let (between, unit) = match 1.0 / per_s {
        s if s < 119.5 => (s, "s"),
        s if s < 119.5 * 60.0 => (s / 60.0, "min"),
        s => (s / 3600.0, "h"),
    };
    format!("1 every {} {unit}", number(between))
}

/// Whole numbers as they are, others in three digits without zeros at the end.
fn number(value: f64) -> String {
    let nearest = value.round();
    if (value - nearest).abs() < 1e-9 * nearest.abs().max(1.0) {
        return format!("{:.0}", nearest + 0.0);
    }
    let places = (2 - value.abs().log10().floor() as i32).max(0) as usize;
    let text = format!("{value:.places$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A paced flow beside one that only subscribes is one paced load.
    #[test]
    fn subscribing_is_no_load() {
        let mut workload = Workload::fan(2, 1, Arrivals::Periodic { per_s: 2000.0 });
        let mut listening = workload.flows[0].clone();
        workload.flows[0].subscribers.clear();
        (listening.publishers, listening.arrivals) = (Vec::new(), Arrivals::FlatOut);
        listening.size = Sizes::Fixed { bytes: 16 };
        let payload = describe(&workload).payload;
        workload.flows.push(listening);
        let mut told = describe(&workload);
        assert_eq!((told.arrivals.as_str(), told.flat_out), ("2000/s", false));
        assert_eq!(told.payload, payload);
        tell_pacing(&mut told, &workload, 1_000_000);
        assert_eq!(told.arrivals, "2000/s, within 1 ms");
        workload.flows[0].arrivals = Arrivals::FlatOut;
        let mut told = describe(&workload);
        tell_pacing(&mut told, &workload, 1_000_000);
        assert_eq!((told.arrivals.as_str(), told.flat_out), ("flat out", true));
    }

    #[test]
    fn rates_are_read_by_people() {
        for (per_s, words) in [
            (1000.0, "1000/s"),
            (10.0 / 3.0, "3.33/s"),
            (1234.5, "1234/s"),
            (0.1, "1 every 10 s"),
            (1.0 / 900.0, "1 every 15 min"),
            (100.0 / 900.0, "1 every 9 s"),
            (1.0 / 86_400.0, "1 every 24 h"),
        ] {
            assert_eq!(rate_words(per_s), words);
            assert_eq!(arrival_words(&Arrivals::Periodic { per_s }), words);
        }
        assert_eq!(number(0.3333333333333333), "0.333");
    }

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
