//! Windows of a measurement against what really happened in them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use hdrhistogram::Histogram;
use proptest::prelude::*;
use pubgauge_driver::{Clock, Driver, Kind, Mark, Nanos, Reliability, Settings};
use pubgauge_engine::assignment::{Brief, Workers};
use pubgauge_engine::conductor::{Nobody, TrialEnd, TrialRecord, TrialSpec, run};
use pubgauge_engine::link::{Encoded, WorkerSite};
use pubgauge_engine::parts::WindowRecord;
use pubgauge_engine::recording::MessageCounts;
use pubgauge_engine::series::Totals;
use pubgauge_engine::times::{Measure, histogram};
use pubgauge_simulator::{Behaviour, Bus, SimulatedDriver, Truth, TruthRecord};
use pubgauge_workload::{Arrivals, Flow, SECOND, Until, Window, Workload};

const MARK: Mark = Mark::from_seed(34);
const MS: Nanos = 1_000_000;

fn windows(of: &[(&str, Nanos, Nanos)]) -> Vec<Window> {
    let window = |(name, from, to): &(&str, Nanos, Nanos)| Window {
        name: (*name).into(),
        from: *from,
        to: *to,
    };
    of.iter().map(window).collect()
}

/// 3 publishers at a rate to 2 subscribers, and beside them, from 1.2 s on for 0.8 s, a second flow.
fn workload(arrivals: Arrivals, measure: Nanos, of: Vec<Window>) -> Workload {
    let mut workload = Workload::fan(3, 2, arrivals);
    let burst = Flow {
        name: "burst".into(),
        arrivals: Arrivals::Periodic { per_s: 90.0 },
        start_offset: Some(1_200 * MS),
        active_for: Some(800 * MS),
        ..workload.flows[0].clone()
    };
    workload.flows.push(burst);
    for publisher in &mut workload.flows[1].publishers {
        publisher.topics = vec![format!("burst/{}", publisher.device)];
    }
    for subscriber in &mut workload.flows[1].subscribers {
        subscriber.filters = vec!["burst/#".into()];
    }
    workload.phases.warm_up = Until::Time(SECOND / 2);
    workload.phases.measure = Until::Time(measure);
    workload.phases.windows = of;
    workload
}

fn trial(
    workload: &Workload,
    behaviour: &Behaviour,
    settings: Settings,
    clock: Clock,
    encoded: bool,
) -> (TrialRecord, Vec<TruthRecord>) {
    let bus = Arc::new(Bus::new(behaviour.clone(), clock.clone(), MARK));
    let brief = Brief::new(workload.clone()).expect("a sound workload");
    let driver: Arc<dyn Driver> = Arc::new(SimulatedDriver);
    let targets = vec![SimulatedDriver::target(bus.clone())];
    let here = TrialSpec::local(brief, driver, targets, clock, |_| Ok(()));
    let place: Arc<dyn WorkerSite> = if encoded {
        Arc::new(Encoded(here.place.clone()))
    } else {
        here.place.clone()
    };
    let spec = TrialSpec {
        settings: vec![settings],
        workers: Workers {
            publishers: 2,
            subscribers: 2,
            ..Workers::default()
        },
        mark: MARK,
        place,
        ..here
    };
    let record = run(&spec, &mut Nobody, &AtomicBool::new(false));
    assert_eq!(record.outcome, TrialEnd::Completed);
    (record, bus.truth())
}

/// The truth of the measured messages of a flow that were due in a window. Streams 0 to 2 are
/// those of the first flow.
fn truth_of(
    record: &TrialRecord,
    truth: &[TruthRecord],
    window: &WindowRecord,
    flow: usize,
) -> Truth {
    let table = record.table.expect("it ran");
    let span = table.measure + window.from..table.measure + window.to;
    let within = truth.iter().filter(|r| {
        let of_flow = |h: &pubgauge_driver::Header| {
            span.contains(&(record.epoch + h.intended)) && usize::from(h.stream >= 3) == flow
        };
        r.header.as_ref().is_some_and(of_flow)
    });
    Truth::count(&within.cloned().collect::<Vec<_>>(), record.epoch)
}

/// The counts of each window are those of what really happened, flow by flow.
fn counts_agree(record: &TrialRecord, truth: &[TruthRecord]) {
    for window in &record.windows {
        for (flow, due) in window.due.iter().enumerate() {
            let truth = truth_of(record, truth, window, flow);
            assert_eq!(
                (
                    due.delivered,
                    due.unique,
                    due.missing(),
                    due.delivered - due.unique
                ),
                (
                    truth.delivered,
                    truth.unique,
                    truth.lost + truth.under_way,
                    truth.duplicated
                ),
                "{} of flow {flow}: delivered, unique, missing, repeated",
                window.name
            );
            let latency = window.times.get(&(flow as u32, Measure::Latency));
            assert_eq!(
                latency.map_or(0, |l| l.len()),
                truth.unique,
                "{}",
                window.name
            );
        }
    }
}

/// The latencies of each flow that came in each record are those that really came then.
#[test]
fn each_flow_has_its_latencies_record_by_record() {
    let work = workload(Arrivals::Periodic { per_s: 200.0 }, 3 * SECOND, Vec::new());
    let behaviour = Behaviour {
        delay_median_ns: 4 * MS,
        delay_sigma: 0.6,
        slower: vec![(2 * SECOND, 3 * SECOND, 20 * MS)],
        ..Behaviour::default()
    };
    let settings = Settings::default();
    let (record, truth) = trial(&work, &behaviour, settings, Clock::virtual_at(SECOND), true);
    let table = record.table.expect("it ran");
    let mut compared = 0;
    for (number, pair) in record.series.windows(2).enumerate() {
        let span = table.measure + pair[0].at..table.measure + pair[1].at;
        for flow in 0..2 {
            let came = truth.iter().filter(|r| {
                let of_flow = |h: &pubgauge_driver::Header| usize::from(h.stream >= 3) == flow;
                let then = r.delivered_at.is_some_and(|at| span.contains(&at));
                then && r.header.as_ref().is_some_and(of_flow)
            });
            let truth = Truth::count(&came.cloned().collect::<Vec<_>>(), record.epoch);
            let found = record
                .latency_by_interval
                .get(&(number as u32, Some(flow as u32)));
            assert_eq!(found.is_some(), truth.unique > 0, "record {number}");
            let Some(found) = found else { continue };
            for (value, quantile) in [
                (found.p50, 0.5),
                (found.p90, 0.9),
                (found.from_send_p90, 0.9),
            ] {
                let truth = truth.quantile(quantile);
                let error = value.abs_diff(truth) as f64 / truth as f64;
                assert!(
                    error < 0.01,
                    "flow {flow}, record {number}: {value} of {truth}"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 40, "{compared}");
}

/// Windows that tile the measurement add up to it, in every count and every time.
fn tiles_add_up(record: &TrialRecord) {
    for flow in 0..record.flows.len() {
        let mut due = MessageCounts::default();
        let mut passed = Totals::default();
        for window in &record.windows {
            due.add(&window.due[flow]);
            passed.published += window.passed[flow].published;
            passed.due += window.passed[flow].due;
            passed.unique += window.passed[flow].unique;
            passed.repeated += window.passed[flow].repeated;
        }
        let whole = &record.flows[flow];
        let of_flow = MessageCounts {
            offered: whole.messages.offered,
            published: whole.messages.published,
            refused: whole.messages.refused,
            not_connected: whole.messages.not_connected,
            not_sent: whole.messages.not_sent,
            expected: whole.messages.expected,
            untaken_deliveries: whole.messages.untaken_deliveries,
            unconnected_deliveries: whole.messages.unconnected_deliveries,
            delivered: whole.messages.delivered,
            unique: whole.messages.unique,
            reordered: whole.messages.reordered,
            timed_again: whole.messages.timed_again,
            ..MessageCounts::default()
        };
        assert_eq!(due, of_flow, "flow {flow}");
        let all = record.in_measurement(Some(flow));
        assert_eq!(
            (passed.published, passed.due, passed.unique, passed.repeated),
            (all.published, all.due, all.unique, all.repeated),
            "flow {flow}"
        );
    }
    for (of, whole) in &record.times {
        let mut sum: Histogram<u64> = histogram();
        for window in &record.windows {
            if let Some(times) = window.times.get(of) {
                sum.add(times).expect("equal bounds");
            }
        }
        assert!(
            sum == *whole,
            "{of:?}: {} of {} values",
            sum.len(),
            whole.len()
        );
    }
}

const THIRDS: [(&str, Nanos, Nanos); 3] = [
    ("before", 0, 1_200 * MS),
    ("during", 1_200 * MS, 2_050 * MS),
    ("after", 2_050 * MS, 3_000 * MS),
];

/// The bus is made half a second of warm-up and a little before the measurement: slow from well before
/// the middle window to its middle, so that what it delays arrives in windows that it was not due in.
#[test]
fn a_system_that_slows_down_does_so_in_its_window() {
    let behaviour = Behaviour {
        slower: vec![(1_700 * MS, 2_200 * MS, 900 * MS)],
        delay_sigma: 0.4,
        loss: 0.01,
        duplication: 0.02,
        ..Behaviour::default()
    };
    let w = workload(
        Arrivals::Poisson { per_s: 700.0 },
        3 * SECOND,
        windows(&THIRDS),
    );
    let run = |encoded| {
        let clock = Clock::virtual_at(SECOND);
        trial(&w, &behaviour, Settings::default(), clock, encoded)
    };
    let (record, truth) = run(false);
    counts_agree(&record, &truth);
    tiles_add_up(&record);
    // In simulated time every time is exact as well.
    let table = record.table.expect("it ran");
    for window in &record.windows {
        for flow in 0..2 {
            let mut real = histogram();
            for latency in truth_of(&record, &truth, window, flow).latencies {
                real.record(latency.max(1)).expect("in range");
            }
            let seen = window.times.get(&(flow as u32, Measure::Latency));
            assert_eq!(
                seen.cloned().unwrap_or_else(histogram),
                real,
                "{}",
                window.name
            );
        }
        // All arrivals in it, whenever they were due: the warm-up's messages too.
        let span = table.measure + window.from..table.measure + window.to;
        let ours = |r: &&TruthRecord| {
            r.header
                .is_some_and(|h| matches!(h.kind, Kind::Measured | Kind::WarmUp))
        };
        let arrived = truth.iter().filter(ours);
        let arrived = arrived.filter(|r| r.delivered_at.is_some_and(|at| span.contains(&at)));
        let passed: u64 = window.passed.iter().map(|p| p.unique + p.repeated).sum();
        assert_eq!(passed, arrived.count() as u64, "{}", window.name);
    }
    let [before, during, after] = &record.windows[..] else {
        panic!("three windows")
    };
    let p50 = |w: &WindowRecord| w.times[&(0, Measure::Latency)].value_at_quantile(0.5);
    assert!(p50(before) < 10 * MS && p50(during) > 500 * MS && p50(after) < 600 * MS);
    assert!(during.due[0].missing() > 0, "the test must test something");
    let burst: Vec<u64> = record.windows.iter().map(|w| w.due[1].offered).collect();
    assert_eq!(burst, [0, 72, 0], "90/s for 0.8 s");
    // More came after the middle window than was due there.
    assert!(after.passed[0].unique > after.due[0].unique);

    let (encoded, _) = run(true);
    assert!(encoded.windows == record.windows);
    assert!(encoded.times == record.times);
}

/// Such a trial over threads that each keep accounts of their own, and over the encoding link. Nothing here
/// depends on the machine's speed: counts are exact, and a planted delay is a lower bound.
#[test]
fn windows_are_exact_over_several_workers() {
    for encoded in [false, true] {
        let behaviour = Behaviour {
            // From before the measurement can have begun to after it: everything takes 40 ms longer.
            slower: vec![(0, 600 * SECOND, 40 * MS)],
            loss: 0.05,
            ..Behaviour::default()
        };
        let of = windows(&[
            ("a", 0, 333 * MS),
            ("b", 333 * MS, 1_500 * MS),
            ("c", 1_500 * MS, 2 * SECOND),
        ]);
        let w = workload(Arrivals::Periodic { per_s: 600.0 }, 2 * SECOND, of);
        let settings = Settings::default();
        let (record, truth) = trial(&w, &behaviour, settings, Clock::Monotonic, encoded);
        assert!(record.recordings.len() > 2, "several workers");
        counts_agree(&record, &truth);
        tiles_add_up(&record);
        for window in &record.windows {
            assert!(window.due[0].published > 0 && window.due[0].missing() > 0);
            assert!(window.times[&(0, Measure::Latency)].min() >= 40 * MS * 999 / 1000);
        }
    }
}

#[test]
fn a_window_may_hold_others_and_leave_some_out() {
    let of = windows(&[
        ("late", 2 * SECOND, 2_500 * MS),
        ("all", 0, 3 * SECOND),
        ("middle", SECOND, 2_200 * MS),
    ]);
    let w = workload(Arrivals::Periodic { per_s: 300.0 }, 3 * SECOND, of);
    let clock = Clock::virtual_at(SECOND);
    let (record, truth) = trial(&w, &Behaviour::default(), Settings::default(), clock, false);
    counts_agree(&record, &truth);
    let offered: Vec<u64> = record.windows.iter().map(|w| w.due[0].offered).collect();
    assert_eq!(offered, [150, 900, 360]);
    let all = &record.windows[1];
    assert_eq!(all.due[0].unique, record.flows[0].messages.unique);
    for ((flow, measure), times) in &record.times {
        assert!(
            all.times.get(&(*flow, *measure)) == Some(times),
            "{measure:?}"
        );
    }
}

#[test]
fn without_windows_there_are_none() {
    let w = workload(Arrivals::Periodic { per_s: 300.0 }, SECOND, Vec::new());
    let clock = Clock::virtual_at(SECOND);
    let (record, _) = trial(&w, &Behaviour::default(), Settings::default(), clock, true);
    assert!(record.windows.is_empty());
    assert!(
        record
            .recordings
            .iter()
            .all(|r| r.parts.iter().all(|p| p.of.is_empty()))
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn windows_that_tile_the_measurement_add_up_to_it(
        mut ends in proptest::collection::btree_set(1u64..2_999_999_999, 0..5),
        slow in 0u64..2_000_000_000, capacity in prop_oneof![Just(0usize), 1usize..60],
        acknowledged: bool, flat_out: bool, loss in 0.0f64..0.2, seed: u64,
    ) {
        ends.insert(3 * SECOND);
        let mut from = 0;
        let tiles: Vec<Window> = ends.into_iter().map(|to| {
            let window = Window { name: format!("from-{from}"), from, to };
            from = to;
            window
        }).collect();
        let behaviour = Behaviour {
            slower: vec![(slow, slow + SECOND, 700 * MS)],
            service_ns: 2 * MS, publish_cost_ns: 100_000, capacity, loss, seed, reordering: 0.02,
            ..Behaviour::default()
        };
        let arrivals = if flat_out && capacity > 0 { Arrivals::FlatOut } else { Arrivals::Periodic { per_s: 600.0 } };
        let settings = Settings {
            reliability: acknowledged.then_some(Reliability::AtLeastOnce),
            native: [(SimulatedDriver::NAME.to_owned(), native(&behaviour))].into(),
            ..Settings::default()
        };
        let w = workload(arrivals, 3 * SECOND, tiles);
        let (record, truth) = trial(&w, &behaviour, settings, Clock::virtual_at(SECOND), false);
        tiles_add_up(&record);
        counts_agree(&record, &truth);
    }
}

fn native(behaviour: &Behaviour) -> std::collections::BTreeMap<String, serde_json::Value> {
    match serde_json::to_value(behaviour).expect("plain data") {
        serde_json::Value::Object(map) => map.into_iter().collect(),
        _ => unreachable!("a struct is an object"),
    }
}
