//! Messages that leave gathered, against what really left the client, in simulated time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pubgauge_driver::{Clock, Driver, Kind, Mark, Nanos};
use pubgauge_engine::assignment::Brief;
use pubgauge_engine::conductor::{Nobody, TrialEnd, TrialRecord, TrialSpec, run};
use pubgauge_engine::times::Measure;
use pubgauge_setup::ClientSetup;
use pubgauge_simulator::{Behaviour, Bus, SimulatedDriver, Truth, TruthRecord};
use pubgauge_workload::{Arrivals, SECOND, Until, Workload};

const MARK: Mark = Mark::from_seed(9);
const US: Nanos = 1_000;
const MS: Nanos = 1_000_000;
const SPANS: [Nanos; 5] = [0, 200 * US, MS, 7 * MS, 100 * MS];

/// 20 publishers, of which each delivery wakes the one worker while it gathers.
fn workload(arrivals: Arrivals) -> Workload {
    let mut workload = Workload::fan(20, 1, arrivals);
    workload.phases.warm_up = Until::Time(SECOND / 2);
    workload.phases.measure = Until::Time(2 * SECOND);
    workload
}

fn paced(workload: &Workload, pacing_within: Nanos) -> (TrialRecord, Vec<TruthRecord>) {
    let clock = Clock::virtual_at(SECOND);
    let behaviour = Behaviour {
        delay_median_ns: 300 * US,
        delay_sigma: 0.5,
        ..Behaviour::default()
    };
    let bus = Arc::new(Bus::new(behaviour, clock.clone(), MARK));
    let brief = Brief::new(workload.clone()).expect("a sound workload");
    let driver: Arc<dyn Driver> = Arc::new(SimulatedDriver);
    let targets = vec![SimulatedDriver::target(bus.clone())];
    let spec = TrialSpec {
        mark: MARK,
        client: ClientSetup {
            pacing_within,
            ..ClientSetup::default()
        },
        ..TrialSpec::local(brief, driver, targets, clock, |_| Ok(()))
    };
    let record = run(&spec, &mut Nobody, &AtomicBool::new(false));
    assert_eq!(record.outcome, TrialEnd::Completed);
    (record, bus.truth())
}

/// Warm-up and measured messages: (when due, when handed over, stream, sequence), clock time.
fn messages(record: &TrialRecord, truth: &[TruthRecord]) -> Vec<(Nanos, Nanos, u32, u32)> {
    let headers = truth.iter().filter_map(|t| Some((t, t.header?)));
    let mut messages: Vec<_> = headers
        .filter(|(_, header)| matches!(header.kind, Kind::Measured | Kind::WarmUp))
        .map(|(t, h)| {
            (
                record.epoch + h.intended,
                t.published_at,
                h.stream,
                h.sequence,
            )
        })
        .collect();
    messages.sort_unstable();
    messages
}

#[test]
fn gathered_messages_leave_in_time_and_in_few_wake_ups() {
    for arrivals in [
        Arrivals::Periodic { per_s: 10_000.0 },
        Arrivals::Poisson { per_s: 10_000.0 },
    ] {
        let workload = workload(arrivals);
        let mut precise = Vec::new();
        for span in SPANS {
            let (record, truth) = paced(&workload, span);
            let sent = messages(&record, &truth);
            for (due, left, ..) in &sent {
                assert!(left >= due, "{span} ns: due {due}, left {left}");
                assert!(*left <= due + span, "{span} ns: due {due}, left {left}");
            }
            // Messages are due at the same times, whenever they leave.
            let schedule: Vec<_> = sent.iter().map(|(due, _, s, n)| (*due, *s, *n)).collect();
            if span == 0 {
                precise.clone_from(&schedule);
            }
            assert!(schedule == precise, "{span} ns changes the schedule");

            let sum = record.sum();
            let counts = Truth::count(&truth, record.epoch);
            assert_eq!(
                (
                    sum.messages.offered,
                    sum.messages.published,
                    sum.messages.not_sent
                ),
                (sum.messages.published, sum.messages.unique, 0),
                "{span} ns"
            );
            assert_eq!(
                (sum.messages.unique, sum.lost()),
                (counts.unique, 0),
                "{span} ns"
            );
            assert_eq!(
                sent.len() as u64,
                sum.messages.published + sum.warm_up_published,
                "{span} ns"
            );

            // Lateness is recorded as it was, and latency contains it.
            let lag = record.all_times(Measure::SendLag);
            assert_eq!(lag.len(), sum.messages.published);
            assert!(lag.max() <= span + span / 500 + 1, "{} ns", lag.max());
            let latency = record.all_times(Measure::Latency);
            for q in [0.01, 0.5, 0.99, 1.0] {
                let (real, told) = (counts.quantile(q), latency.value_at_quantile(q));
                assert!(
                    told.abs_diff(real) <= real / 100 + 1,
                    "{span} ns, {q}: {told} for {real}"
                );
            }

            // Moments at which messages leave: one for each span and what begins the next.
            let moments: BTreeSet<Nanos> = sent.iter().map(|(_, left, ..)| *left).collect();
            let dues: BTreeSet<Nanos> = sent.iter().map(|(due, ..)| *due).collect();
            match span {
                0 => assert_eq!(moments, dues),
                span => {
                    let most = (5 * SECOND / 2).div_ceil(span) + 2;
                    assert!(
                        moments.len() as u64 <= most,
                        "{} at {span} ns",
                        moments.len()
                    );
                }
            }
        }
    }
}

#[test]
fn the_end_of_a_measurement_waits_for_no_span() {
    // 7 ms do not divide 50 ms: a span is begun when the measurement ends.
    let mut workload = workload(Arrivals::Periodic { per_s: 10_000.0 });
    workload.phases.measure = Until::Time(SECOND / 20);
    let (record, truth) = paced(&workload, 7 * MS);
    let end = record.table.expect("it was measured").end;
    assert!(
        messages(&record, &truth)
            .iter()
            .all(|(_, left, ..)| *left <= end)
    );
    assert_eq!(
        (
            record.sum().messages.offered,
            record.sum().messages.published
        ),
        (500, 500)
    );

    // An end by count neither.
    workload.phases.measure = Until::Count(1_234, 10 * SECOND);
    let (record, truth) = paced(&workload, 7 * MS);
    let end = record.table.expect("it was measured").end;
    assert!(end < record.epoch + 2 * SECOND, "{end}");
    assert!(
        messages(&record, &truth)
            .iter()
            .all(|(_, left, ..)| *left <= end)
    );
    assert_eq!(
        record.sum().messages.offered,
        record.sum().messages.published
    );
}

#[test]
fn a_second_flow_wakes_nobody_by_itself() {
    let mut workload = workload(Arrivals::Periodic { per_s: 1_000.0 });
    let mut second = workload.flows[0].clone();
    second.name = "second".into();
    second.arrivals = Arrivals::Poisson { per_s: 1_000.0 };
    for publisher in &mut second.publishers {
        publisher.topics = vec![format!("second/{}", publisher.device)];
    }
    for subscriber in &mut second.subscribers {
        subscriber.filters = vec!["second/#".into()];
    }
    workload.flows.push(second);
    let (record, truth) = paced(&workload, 10 * MS);
    let sent = messages(&record, &truth);
    assert!(
        sent.iter()
            .all(|(due, left, ..)| (*due..=due + 10 * MS).contains(left))
    );
    let moments: BTreeSet<Nanos> = sent.iter().map(|(_, left, ..)| *left).collect();
    assert!(moments.len() <= 252, "{}", moments.len());
}
