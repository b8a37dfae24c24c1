//! Reports of the engine against what really happened in the simulated system.

mod bodies;
mod contents;
mod readiness;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use pubgauge_driver::{Clock, Driver, DriverError, Kind, Mark, Nanos, Reliability, Settings};
use pubgauge_engine::assignment::{Brief, Role, Workers};
use pubgauge_engine::conductor::{Nobody, Observer, Phase, TrialEnd, TrialRecord, TrialSpec, run};
use pubgauge_engine::failures::FailureKind;
use pubgauge_engine::link::{Command, Encoded, Order, Outbox, Secrets, WorkerLink, WorkerSite};
use pubgauge_engine::live::Live;
use pubgauge_engine::times::Measure;
use pubgauge_simulator::{Behaviour, Bus, SimulatedDriver, Truth, TruthRecord};
use pubgauge_workload::{Arrivals, Exchange, SECOND, Sizes, Until, Window, Workload};

const MARK: Mark = Mark::from_seed(21);

/// `publishers` devices on a topic each, all heard by each of `subscribers` devices.
fn workload(publishers: u32, subscribers: u32, arrivals: Arrivals) -> Workload {
    let mut workload = Workload::fan(publishers, subscribers, arrivals);
    workload.phases.warm_up = Until::Time(SECOND);
    workload.phases.measure = Until::Time(20 * SECOND);
    workload
}

struct Run {
    record: TrialRecord,
    truth: Vec<TruthRecord>,
}

/// Runs a trial; in simulated time also over a link that encodes all that is said, which must change
/// nothing.
fn simulate(workload: Workload, behaviour: Behaviour, settings: Settings, clock: Clock) -> Run {
    let again = match &clock {
        Clock::Monotonic => None,
        clock => Some(Clock::virtual_at(clock.now())),
    };
    let plain = once(
        &workload,
        &behaviour,
        &settings,
        clock,
        |place| place,
        &mut Nobody,
    );
    if let Some(clock) = again {
        let encoded = |place| Arc::new(Encoded(place)) as Arc<dyn WorkerSite>;
        let encoded = once(
            &workload,
            &behaviour,
            &settings,
            clock,
            encoded,
            &mut Nobody,
        );
        same(&plain.record, &encoded.record);
    }
    plain
}

fn same(one: &TrialRecord, other: &TrialRecord) {
    assert_eq!(one.outcome, other.outcome);
    assert_eq!(one.flows, other.flows);
    assert_eq!(one.series, other.series);
    assert_eq!(one.times, other.times);
    assert_eq!(one.intervals, other.intervals);
    assert_eq!(one.drain, other.drain);
    assert_eq!(one.traffic(), other.traffic());
}

fn once(
    workload: &Workload,
    behaviour: &Behaviour,
    settings: &Settings,
    clock: Clock,
    placed: impl FnOnce(Arc<dyn WorkerSite>) -> Arc<dyn WorkerSite>,
    observer: &mut dyn Observer,
) -> Run {
    let bus = Arc::new(Bus::new(behaviour.clone(), clock.clone(), MARK));
    let brief = Brief::new(workload.clone()).expect("a sound workload");
    let driver: Arc<dyn Driver> = Arc::new(SimulatedDriver);
    let target = SimulatedDriver::target(bus.clone());
    let targets = vec![target];
    let here = TrialSpec::local(brief, driver, targets, clock, |_| Ok(()));
    let spec = TrialSpec {
        settings: vec![with_behaviour(settings.clone(), behaviour)],
        mark: MARK,
        place: placed(here.place.clone()),
        ..here
    };
    let record = run(&spec, observer, &AtomicBool::new(false));
    Run {
        record,
        truth: bus.truth(),
    }
}

/// First deliveries per second of the measurement, of warm-up and measured messages.
fn delivered_per_s(record: &TrialRecord) -> f64 {
    let duration = record.duration();
    let at = |t| {
        let moment = record.series.iter().find(|moment| moment.at == t);
        moment.expect("a cut").sum().unique
    };
    (at(duration) - at(0)) as f64 * 1e9 / duration as f64
}

fn with_behaviour(mut settings: Settings, behaviour: &Behaviour) -> Settings {
    let serde_json::Value::Object(map) = serde_json::to_value(behaviour).expect("plain data")
    else {
        unreachable!("a struct is an object")
    };
    settings
        .native
        .insert(SimulatedDriver::NAME.into(), map.into_iter().collect());
    settings
}

fn agree(run: &Run) {
    let truth = Truth::count(&run.truth, run.record.epoch);
    let sum = run.record.sum();
    assert_eq!(run.record.outcome, TrialEnd::Completed);
    assert_eq!(
        (
            sum.messages.delivered,
            sum.messages.unique,
            sum.messages.missing(),
            sum.messages.duplicated(),
            sum.messages.reordered
        ),
        (
            truth.delivered,
            truth.unique,
            truth.lost + truth.under_way,
            truth.duplicated,
            truth.reordered
        ),
        "delivered, unique, missing, duplicated, reordered"
    );
    // A message that is overtaken by later ones of its stream for longer than the drain waits is lost by
    // definition; otherwise the two can be told apart.
    if truth.under_way == 0 {
        assert_eq!((sum.lost(), sum.under_way), (truth.lost, 0));
    }
    let measured = run.record.all_times(Measure::Latency);
    assert_eq!(measured.len(), truth.unique);
    for q in [0.5, 0.9, 0.99, 0.999] {
        if truth.latencies.is_empty() {
            break;
        }
        let (real, reported) = (truth.quantile(q), measured.value_at_quantile(q));
        assert!(
            reported.abs_diff(real) as f64 <= 0.02 * real as f64 + 1.0,
            "p{}: reported {reported}, really {real}",
            q * 100.0
        );
    }
}

#[test]
fn a_perfect_system_is_reported_as_perfect() {
    let clock = Clock::virtual_at(SECOND);
    let run = simulate(
        workload(3, 2, Arrivals::Periodic { per_s: 500.0 }),
        Behaviour::default(),
        Settings::default(),
        clock,
    );
    agree(&run);
    let sum = run.record.sum();
    assert_eq!(
        (
            sum.messages.offered,
            sum.messages.published,
            sum.messages.expected
        ),
        (10_000, 10_000, 20_000)
    );
    assert_eq!(
        (
            sum.lost(),
            sum.messages.duplicated(),
            sum.messages.reordered,
            sum.messages.not_sent,
            sum.messages.refused
        ),
        (0, 0, 0, 0, 0)
    );
    assert_eq!(run.record.all_times(Measure::SendLag).max(), 1);
    assert_eq!(sum.warm_up_published, 500);
    assert_eq!(run.record.recordings[0].foreign, 0);
}

#[test]
fn delays_loss_duplicates_and_reorderings_are_reported_as_they_were() {
    for ordered in [true, false] {
        let behaviour = Behaviour {
            delay_median_ns: 3_000_000,
            delay_sigma: 0.7,
            ordered,
            loss: 0.01,
            duplication: 0.02,
            reordering: 0.005,
            ..Behaviour::default()
        };
        let clock = Clock::virtual_at(SECOND);
        let run = simulate(
            workload(4, 3, Arrivals::Poisson { per_s: 800.0 }),
            behaviour,
            Settings::default(),
            clock,
        );
        agree(&run);
        let sum = run.record.sum();
        assert!(
            sum.lost() > 0 && sum.messages.duplicated() > 0 && sum.messages.reordered > 0,
            "the test must test something: {sum:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_behaviour_is_reported_as_it_was(
        median in 1_000u64..50_000_000, sigma in 0.0f64..1.5, ordered: bool, loss in 0.0f64..0.3,
        duplication in 0.0f64..0.3, reordering in 0.0f64..0.3, seed: u64, publishers in 1u32..4, subscribers in 1u32..4,
    ) {
        let behaviour = Behaviour {
            delay_median_ns: median, delay_sigma: sigma, ordered, loss, duplication, reordering, seed,
            ..Behaviour::default()
        };
        let mut w = workload(publishers, subscribers, Arrivals::Periodic { per_s: 300.0 });
        w.phases.measure = Until::Time(3 * SECOND);
        agree(&simulate(w, behaviour, Settings::default(), Clock::virtual_at(SECOND)));
    }
}

#[test]
fn a_stall_counts_from_when_messages_should_have_been_delivered() {
    let behaviour = Behaviour {
        stalls: vec![(5 * SECOND, 7 * SECOND)],
        ..Behaviour::default()
    };
    let run = simulate(
        workload(1, 1, Arrivals::Periodic { per_s: 100.0 }),
        behaviour,
        Settings::default(),
        Clock::virtual_at(SECOND),
    );
    agree(&run);
    let latency = run.record.all_times(Measure::Latency);
    assert!(
        latency.max() > 1_950_000_000,
        "the message sent as the stall began waited 2 s: {}",
        latency.max()
    );
    assert_eq!(run.record.sum().lost(), 0);
}

#[test]
fn back_pressure_shows_as_lateness_and_unsent_messages_not_as_calm() {
    // 1,000/s offered, 500/s capacity, and publishers are held back after 50.
    let behaviour = Behaviour {
        service_ns: 2_000_000,
        capacity: 50,
        ..Behaviour::default()
    };
    let run = simulate(
        workload(1, 1, Arrivals::Periodic { per_s: 1000.0 }),
        behaviour,
        Settings::default(),
        Clock::virtual_at(SECOND),
    );
    let sum = run.record.sum();
    assert_eq!(sum.messages.offered, 20_000);
    assert_eq!(
        sum.messages.offered,
        sum.messages.published + sum.messages.not_sent
    );
    assert!(sum.messages.not_sent > 9_000, "{sum:?}");
    let lag = run.record.all_times(Measure::SendLag);
    assert!(
        lag.value_at_quantile(0.5) > 2 * SECOND,
        "median lag {}",
        lag.value_at_quantile(0.5)
    );
    let (intended, from_send) = (
        run.record.all_times(Measure::Latency),
        run.record.all_times(Measure::LatencyFromSend),
    );
    assert!(intended.value_at_quantile(0.5) > 2 * SECOND);
    assert!(from_send.value_at_quantile(0.5) < SECOND / 5);
}

/// Seconds of the measurement for which publishers were held back, added up over them.
fn held_back_s(run: &Run) -> f64 {
    run.record.sum().held_back as f64 / SECOND as f64
}

/// The planted times: nobody is held back; a stall of 2 s fills a system that takes 20 messages, at 100/s from two
/// publishers within 0.2 s, and holds both back for the rest of it; a system with half of the capacity that is asked of it
/// holds its publisher back all the time.
#[test]
fn blocked_time_is_that_of_the_system() {
    let held = |publishers, per_s, behaviour| {
        let work = workload(publishers, 1, Arrivals::Periodic { per_s });
        let run = simulate(
            work,
            behaviour,
            Settings::default(),
            Clock::virtual_at(SECOND),
        );
        held_back_s(&run)
    };
    assert_eq!(held(2, 100.0, Behaviour::default()), 0.0);
    let stalled = Behaviour {
        stalls: vec![(5 * SECOND, 7 * SECOND)],
        capacity: 20,
        ..Behaviour::default()
    };
    let seconds = held(2, 100.0, stalled);
    assert!((seconds - 2.0 * 1.8).abs() < 0.05, "{seconds}");
    let slow = Behaviour {
        service_ns: 2_000_000,
        capacity: 50,
        ..Behaviour::default()
    };
    let seconds = held(1, 1000.0, slow);
    assert!((19.7..=20.0).contains(&seconds), "{seconds}");
}

#[test]
fn acknowledgements_are_timed() {
    let settings = Settings {
        reliability: Some(Reliability::AtLeastOnce),
        ..Settings::default()
    };
    let behaviour = Behaviour {
        delay_median_ns: 4_000_000,
        ..Behaviour::default()
    };
    let run = simulate(
        workload(2, 1, Arrivals::Periodic { per_s: 200.0 }),
        behaviour,
        settings,
        Clock::virtual_at(SECOND),
    );
    agree(&run);
    let acknowledgement = run.record.all_times(Measure::Acknowledgement);
    assert_eq!(acknowledgement.len(), 4000);
    assert!(acknowledgement.value_at_quantile(0.5).abs_diff(4_000_000) < 10_000);
}

#[test]
fn a_lost_connection_is_counted_and_made_again() {
    let mut w = workload(2, 1, Arrivals::Periodic { per_s: 100.0 });
    w.phases.reconnect_after = Some(SECOND / 2);
    let behaviour = Behaviour {
        disconnects: vec![(8 * SECOND, "pub1".into())],
        ..Behaviour::default()
    };
    let run = simulate(w, behaviour, Settings::default(), Clock::virtual_at(SECOND));
    let sum = run.record.sum();
    let recording = &run.record.recordings[0];
    assert_eq!((recording.lost, recording.remade), (1, 1));
    assert_eq!(
        sum.messages.offered,
        sum.messages.published + sum.messages.not_connected
    );
    assert!(
        (20..=30).contains(&sum.messages.not_connected),
        "half a second of 50/s: {}",
        sum.messages.not_connected
    );
    assert_eq!(sum.lost(), 0);
    assert_eq!(recording.failures[0].first, "pub1");
    assert_eq!(recording.failures[0].kind, FailureKind::Lost);
}

#[test]
fn groups_share_messages_and_lose_none() {
    let mut w = workload(2, 3, Arrivals::Periodic { per_s: 300.0 });
    for s in &mut w.flows[0].subscribers {
        s.group = Some("team".into());
    }
    let run = simulate(
        w,
        Behaviour::default(),
        Settings::default(),
        Clock::virtual_at(SECOND),
    );
    let sum = run.record.sum();
    assert_eq!(
        (
            sum.messages.published,
            sum.messages.expected,
            sum.messages.unique,
            sum.lost()
        ),
        (6000, 6000, 6000, 0)
    );
    assert_eq!(sum.messages.reordered, 0);
}

#[test]
fn a_damaged_body_is_noticed() {
    let behaviour = Behaviour {
        corruption: 0.1,
        ..Behaviour::default()
    };
    let run = simulate(
        workload(1, 1, Arrivals::Periodic { per_s: 100.0 }),
        behaviour,
        Settings::default(),
        Clock::virtual_at(SECOND),
    );
    let sum = run.record.sum();
    assert!((100..400).contains(&sum.corrupt), "{}", sum.corrupt);
}

#[test]
fn ping_pong_reports_the_round_trip() {
    let mut w = workload(1, 1, Arrivals::FlatOut);
    w.flows[0].exchange = Exchange::PingPong;
    let behaviour = Behaviour {
        delay_median_ns: 5_000_000,
        ..Behaviour::default()
    };
    let run = simulate(w, behaviour, Settings::default(), Clock::virtual_at(SECOND));
    let round_trip = run.record.all_times(Measure::RoundTrip);
    // 20 s of one question after the other, 10 ms each.
    assert!(
        (1990..=2001).contains(&round_trip.len()),
        "{}",
        round_trip.len()
    );
    assert!(round_trip.value_at_quantile(0.5).abs_diff(10_000_000) < 20_000);
}

/// A question is given up after a second; its answer, which comes later, lets no question out beside the one in flight.
#[test]
fn a_late_answer_lets_no_second_question_out() {
    let mut w = workload(1, 1, Arrivals::FlatOut);
    w.flows[0].exchange = Exchange::PingPong;
    let behaviour = Behaviour {
        delay_median_ns: 5_000_000,
        stalls: vec![(3 * SECOND, 3 * SECOND + 3 * SECOND / 2)],
        ..Behaviour::default()
    };
    let run = simulate(w, behaviour, Settings::default(), Clock::virtual_at(SECOND));
    let sum = run.record.sum();
    // 18.5 s of one question after the other, 10 ms each; two at a time would be 3,400.
    assert!(
        (1800..=1870).contains(&sum.messages.published),
        "{}",
        sum.messages.published
    );
    assert_eq!(sum.answered, sum.messages.published);
}

#[test]
fn flat_out_follows_back_pressure() {
    let behaviour = Behaviour {
        service_ns: 100_000,
        capacity: 200,
        publish_cost_ns: 100,
        ..Behaviour::default()
    };
    let mut w = workload(2, 1, Arrivals::FlatOut);
    w.phases.measure = Until::Time(2 * SECOND);
    let run = simulate(w, behaviour, Settings::default(), Clock::virtual_at(SECOND));
    agree(&run);
    let per_s = delivered_per_s(&run.record);
    assert!(
        (9_900.0..10_100.0).contains(&per_s),
        "the system serves 10,000/s, reported {per_s}"
    );
}

/// Drops of a full queue do not silence its publisher: the system gets what it can carry.
#[test]
fn flat_out_goes_on_where_the_client_drops() {
    let behaviour = Behaviour {
        service_ns: 100_000,
        capacity: 200,
        drops: true,
        publish_cost_ns: 100,
        ..Behaviour::default()
    };
    let mut w = workload(2, 1, Arrivals::FlatOut);
    w.phases.measure = Until::Time(2 * SECOND);
    let run = simulate(w, behaviour, Settings::default(), Clock::virtual_at(SECOND));
    agree(&run);
    let sum = run.record.sum();
    assert!(sum.messages.refused > 100, "{}", sum.messages.refused);
    assert_eq!(
        sum.messages.offered,
        sum.messages.published + sum.messages.refused
    );
    let per_s = delivered_per_s(&run.record);
    assert!((9_900.0..10_100.0).contains(&per_s), "{per_s}");
}

/// Messages of a library that takes its time each have their own send time. Before, 64 had that of the first, and the
/// last of them seemed to have taken 1.3 ms longer.
#[test]
fn flat_out_messages_leave_when_they_say() {
    let behaviour = Behaviour {
        publish_cost_ns: 20_000,
        ..Behaviour::default()
    };
    let mut w = workload(2, 1, Arrivals::FlatOut);
    w.phases.measure = Until::Time(SECOND / 10);
    let run = simulate(w, behaviour, Settings::default(), Clock::virtual_at(SECOND));
    agree(&run);
    let headers = run.truth.iter().filter_map(|t| Some((t, t.header?)));
    let measured = headers.filter(|(_, header)| header.kind == Kind::Measured);
    let late = measured.map(|(t, header)| t.published_at - (run.record.epoch + header.intended));
    let late: Vec<u64> = late.collect();
    assert!(late.len() > 1_000, "{}", late.len());
    assert!(
        late.iter().all(|late| *late <= 30_000),
        "{:?}",
        late.iter().max()
    );
}

/// Messages that wait for a full window when the connection is lost are refused with it: none is kept for later.
#[test]
fn what_waits_is_lost_with_its_connection() {
    let mut w = workload(1, 1, Arrivals::Periodic { per_s: 100.0 });
    w.phases.reconnect_after = Some(SECOND / 2);
    let behaviour = Behaviour {
        capacity: 5,
        stalls: vec![(5 * SECOND, 9 * SECOND)],
        disconnects: vec![(8 * SECOND, "pub0".into())],
        ..Behaviour::default()
    };
    let run = simulate(w, behaviour, Settings::default(), Clock::virtual_at(SECOND));
    let sum = run.record.sum();
    assert_eq!(
        sum.messages.offered,
        sum.messages.published + sum.messages.not_connected
    );
    // All but five of 3 s, and those of the half second without a connection.
    assert!(
        (340..=352).contains(&sum.messages.not_connected),
        "{}",
        sum.messages.not_connected
    );
}

/// Whoever is held back sends afterwards what was due, not what comes next: else back-pressure
/// would choose among the sizes.
#[test]
fn back_pressure_does_not_change_the_mix_of_sizes() {
    let behaviour = Behaviour {
        service_ns: 100_000,
        capacity: 1,
        publish_cost_ns: 100,
        ..Behaviour::default()
    };
    let mut w = workload(1, 1, Arrivals::FlatOut);
    w.flows[0].size = Sizes::List {
        bytes: vec![64, 1024],
    };
    w.phases.measure = Until::Time(2 * SECOND);
    let run = simulate(w, behaviour, Settings::default(), Clock::virtual_at(SECOND));
    agree(&run);
    let sum = run.record.sum();
    let recording = &run.record.recordings[0];
    let messages = sum.messages.published + sum.warm_up_published;
    assert!(messages > 1000, "{messages}");
    let bytes = recording.wire.sent - 16 * recording.sentinels;
    let (small, large) = (messages.div_ceil(2), messages / 2);
    assert_eq!(bytes, 64 * small + 1024 * large);
}

#[test]
fn flat_out_without_back_pressure_is_bounded_by_a_window() {
    let behaviour = Behaviour {
        delay_median_ns: 10_000_000,
        publish_cost_ns: 100,
        ..Behaviour::default()
    };
    let mut w = workload(1, 1, Arrivals::FlatOut);
    w.flows[0].window = Some(1000);
    w.phases.measure = Until::Time(2 * SECOND);
    let run = simulate(w, behaviour, Settings::default(), Clock::virtual_at(SECOND));
    agree(&run);
    // Little's law: 1,000 under way at 10 ms each is 100,000/s.
    let per_s = delivered_per_s(&run.record);
    assert!((90_000.0..112_000.0).contains(&per_s), "{per_s}");
    // Of each 10 ms the messages themselves take 0.1 ms, and the window holds the publisher back for the rest, but for
    // what it lets go while messages of the last 10 ms still come.
    let held_back = held_back_s(&run);
    assert!((1.0..2.0).contains(&held_back), "{held_back}");
}

#[test]
fn phases_may_end_by_count() {
    let mut w = workload(3, 1, Arrivals::Periodic { per_s: 1000.0 });
    w.phases.warm_up = Until::Count(100, 10 * SECOND);
    w.phases.measure = Until::Count(777, 60 * SECOND);
    let run = simulate(
        w,
        Behaviour::default(),
        Settings::default(),
        Clock::virtual_at(SECOND),
    );
    agree(&run);
    let sum = run.record.sum();
    // The workers tell what they have counted every 10 ms, and know 20 ms beforehand when the measurement ends.
    assert!(
        (777..777 + 40).contains(&sum.messages.offered),
        "{}",
        sum.messages.offered
    );
    assert_eq!(
        (sum.messages.offered, sum.messages.published),
        (sum.messages.unique, sum.messages.unique)
    );
    // No more messages than the span has room for, and no fewer.
    let due = run.record.duration() as f64 / 1e6;
    assert!((due - sum.messages.offered as f64).abs() <= 1.0, "{due}");
}

/// A limit of 1,000/s is no higher where the measurement ends by count. Before, it ended in the past, and had what was
/// delivered until that was known.
#[test]
fn a_rate_is_true_where_the_measurement_ends_by_count() {
    let behaviour = Behaviour {
        service_ns: 1_000_000,
        capacity: 10,
        publish_cost_ns: 100,
        ..Behaviour::default()
    };
    for count in [50, 100, 1_000] {
        let mut w = workload(3, 1, Arrivals::FlatOut);
        w.phases.measure = Until::Count(count, 60 * SECOND);
        let clock = Clock::virtual_at(SECOND);
        let run = simulate(w, behaviour.clone(), Settings::default(), clock);
        agree(&run);
        assert!(run.record.sum().messages.offered >= count);
        let delivered = delivered_per_s(&run.record) * run.record.duration() as f64 / 1e9;
        let due = run.record.duration() as f64 / 1e6;
        assert!((delivered - due).abs() <= 2.0, "{delivered} of {due}");
    }
}

/// The client sleeps from within the measurement until long after the count was reached: what fell due meanwhile is late,
/// and neither lost nor of another span.
#[test]
fn a_client_that_sleeps_across_an_end_by_count() {
    for sleeps_to in [SECOND / 20, SECOND] {
        let mut w = workload(2, 1, Arrivals::Periodic { per_s: 1_000.0 });
        w.phases.measure = Until::Count(100, 60 * SECOND);
        let measured = 1_020_000_000;
        let behaviour = Behaviour {
            client_sleeps: vec![(measured + SECOND / 100, measured + SECOND / 100 + sleeps_to)],
            ..Behaviour::default()
        };
        let run = simulate(w, behaviour, Settings::default(), Clock::virtual_at(SECOND));
        agree(&run);
        let (sum, span) = (run.record.sum(), run.record.duration());
        assert!(sum.messages.offered >= 100, "{}", sum.messages.offered);
        assert_eq!(
            sum.messages.offered,
            sum.messages.published + sum.messages.not_sent
        );
        let due = span as f64 / 1e6;
        assert!(
            (due - sum.messages.offered as f64).abs() <= 2.0,
            "{due} and {}",
            sum.messages.offered
        );
    }
}

/// A flow that sends seldom does not keep a measurement by count going, on a worker of its own. Before, each worker had
/// a share of the count by its devices, and 50 messages at 5/s took 10 s.
#[test]
fn flows_keep_their_shares_where_the_measurement_ends_by_count() {
    let mut w = workload(2, 1, Arrivals::Periodic { per_s: 500.0 });
    let mut seldom = w.flows[0].clone();
    seldom.name = "seldom".into();
    seldom.arrivals = Arrivals::Periodic { per_s: 5.0 };
    seldom.publishers = vec![w.flows[0].publishers.remove(1)];
    seldom.publishers[0].topics = vec!["seldom".into()];
    seldom.subscribers[0].filters = vec!["seldom".into()];
    w.flows.push(seldom);
    w.phases.warm_up = Until::Time(SECOND / 10);
    w.phases.measure = Until::Count(101, 60 * SECOND);
    let (clock, driver) = (Clock::Monotonic, Arc::new(SimulatedDriver));
    let bus = Bus::new(Behaviour::default(), clock.clone(), MARK);
    let brief = Brief::new(w).expect("a sound workload");
    let targets = vec![SimulatedDriver::target(Arc::new(bus))];
    let spec = TrialSpec {
        workers: Workers {
            publishers: 2,
            ..Workers::default()
        },
        mark: MARK,
        ..TrialSpec::local(brief, driver, targets, clock, |_| Ok(()))
    };
    let record = run(&spec, &mut Nobody, &AtomicBool::new(false));
    assert_eq!(record.outcome, TrialEnd::Completed);
    assert_eq!(record.recordings.len(), 3);
    let [often, seldom] = [0, 1].map(|flow| record.flows[flow].messages.offered);
    assert!(often + seldom >= 101, "{often} and {seldom}");
    assert!(often >= 20 * seldom, "{often} and {seldom}");
}

/// Has enough once the measurement has lasted for so long, ns.
struct EndsAfter {
    lasts: Nanos,
    began: Option<Nanos>,
}

impl Observer for EndsAfter {
    fn phase(&mut self, phase: Phase, now: Nanos) {
        self.began = (phase == Phase::Measure).then_some(now).or(self.began);
    }

    fn has_enough(&mut self, _: &Live, now: Nanos) -> bool {
        self.began.is_some_and(|began| now >= began + self.lasts)
    }
}

/// A measurement that its observer ends is one of that length: nothing of it is missing, and what waits is drained.
#[test]
fn a_measurement_may_end_early() {
    let behaviour = Behaviour {
        service_ns: 2_000_000,
        ..Behaviour::default()
    };
    let w = workload(2, 1, Arrivals::Periodic { per_s: 1_000.0 });
    let mut observer = EndsAfter {
        lasts: 3 * SECOND,
        began: None,
    };
    let (settings, clock) = (Settings::default(), Clock::virtual_at(SECOND));
    let run = once(
        &w,
        &behaviour,
        &settings,
        clock,
        |place| place,
        &mut observer,
    );
    agree(&run);
    let duration = run.record.duration();
    assert!(
        (3 * SECOND..4 * SECOND + SECOND / 2).contains(&duration),
        "{duration}"
    );
    let due = duration / 1_000_000;
    assert!(run.record.sum().messages.offered.abs_diff(due) <= 2);
}

#[test]
fn a_flow_may_start_late_and_stop_early() {
    let mut w = workload(1, 1, Arrivals::Periodic { per_s: 100.0 });
    w.flows[0].start_offset = Some(5 * SECOND);
    w.flows[0].active_for = Some(10 * SECOND);
    let run = simulate(
        w,
        Behaviour::default(),
        Settings::default(),
        Clock::virtual_at(SECOND),
    );
    agree(&run);
    assert_eq!(run.record.sum().messages.published, 1000);
    assert_eq!(run.record.sum().warm_up_published, 0);
}

#[test]
fn a_flow_that_starts_at_0_starts_with_the_measurement() {
    let mut w = workload(1, 1, Arrivals::Periodic { per_s: 100.0 });
    w.flows[0].start_offset = Some(0);
    let clock = Clock::virtual_at(SECOND);
    let run = simulate(w, Behaviour::default(), Settings::default(), clock);
    agree(&run);
    assert_eq!(run.record.sum().messages.published, 2000);
    assert_eq!(run.record.sum().warm_up_published, 0);
}

#[test]
fn nobody_may_publish_or_subscribe() {
    for (publishers, subscribers) in [(0, 2), (2, 0)] {
        let w = workload(publishers, subscribers, Arrivals::Periodic { per_s: 10.0 });
        let run = simulate(
            w,
            Behaviour::default(),
            Settings::default(),
            Clock::virtual_at(SECOND),
        );
        assert_eq!(run.record.outcome, TrialEnd::Completed);
        assert_eq!(
            run.record.sum().messages.published,
            u64::from(publishers > 0) * 200
        );
        assert_eq!(run.record.sum().lost(), 0);
    }
}

#[test]
fn connections_are_begun_at_their_rate_over_all_workers() {
    for clock in [Clock::virtual_at(SECOND), Clock::Monotonic] {
        let mut w = workload(10, 11, Arrivals::Periodic { per_s: 100.0 });
        w.phases.connect_per_s = Some(20.0);
        w.phases.warm_up = Until::Time(SECOND / 10);
        w.phases.measure = Until::Time(SECOND / 5);
        let simulated = matches!(clock, Clock::Virtual(_));
        let run = simulate(w, Behaviour::default(), Settings::default(), clock);
        // The last of 21 begins a second after the first; two workers begin side by side, so that
        // rounding may take up to a gap of each (0.1 s) off.
        let span = run.record.connect_span;
        assert!(span >= 850_000_000, "{span} ns");
        assert!(!simulated || span < 1_100_000_000, "{span} ns");
    }
}

/// Real threads and real time: the worker threads, the conductor and the sleeping.
#[test]
fn real_time_agrees_too() {
    let mut w = workload(2, 2, Arrivals::Periodic { per_s: 1000.0 });
    w.phases.warm_up = Until::Time(SECOND / 10);
    w.phases.measure = Until::Time(SECOND);
    let behaviour = Behaviour {
        delay_median_ns: 2_000_000,
        delay_sigma: 0.5,
        loss: 0.01,
        duplication: 0.01,
        ..Behaviour::default()
    };
    let run = simulate(w, behaviour, Settings::default(), Clock::Monotonic);
    let truth = Truth::count(&run.truth, run.record.epoch);
    let sum = run.record.sum();
    assert_eq!(
        (
            sum.lost(),
            sum.messages.duplicated(),
            sum.messages.reordered
        ),
        (truth.lost, truth.duplicated, truth.reordered)
    );
    assert_eq!(run.record.recordings.len(), 2);
    assert!(
        run.record
            .recordings
            .iter()
            .all(|r| r.usage.span > 900_000_000 && r.usage.running > 0)
    );
}

/// Where the workers that only subscribe learn of the timetable when traffic has begun.
struct LateForSubscribers(Arc<dyn WorkerSite>);

struct LateLink(Box<dyn WorkerLink>);

impl WorkerSite for LateForSubscribers {
    fn start(
        &self,
        order: Order,
        secrets: Secrets,
        outbox: Outbox,
    ) -> Result<Box<dyn WorkerLink>, DriverError> {
        let subscribes = order.assignment.role == Role::Subscribers;
        let link = self.0.start(order, secrets, outbox)?;
        Ok(if subscribes {
            Box::new(LateLink(link))
        } else {
            link
        })
    }
}

impl WorkerLink for LateLink {
    fn send(&mut self, command: Command) {
        if let Command::Run(_) = command {
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
        self.0.send(command);
    }

    fn join(&mut self) {
        self.0.join();
    }
}

/// A subscribing worker on a busy machine may get messages before it looks at its commands.
#[test]
fn messages_that_come_before_the_timetable_count_in_full() {
    let mut w = workload(2, 2, Arrivals::Periodic { per_s: 1000.0 });
    w.phases.warm_up = Until::Time(0);
    w.phases.measure = Until::Time(SECOND);
    w.phases.windows = vec![Window {
        name: "all".into(),
        from: 0,
        to: SECOND,
    }];
    let late = |place| Arc::new(LateForSubscribers(place)) as Arc<dyn WorkerSite>;
    let settings = Settings::default();
    let behaviour = Behaviour::default();
    let run = once(
        &w,
        &behaviour,
        &settings,
        Clock::Monotonic,
        late,
        &mut Nobody,
    );
    let (record, sum) = (&run.record, run.record.sum());
    agree(&run);
    assert_eq!(
        (sum.messages.published, sum.messages.unique),
        (1_000, 2_000)
    );
    assert_eq!(record.all_times(Measure::Latency).len(), 2_000);
    assert_eq!(record.windows[0].due[0].unique, 2_000);
}
