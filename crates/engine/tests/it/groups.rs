//! Groups with members on several workers: counted once, as the simulated system delivered.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pubgauge_driver::{Clock, Driver, Mark};
use pubgauge_engine::assignment::{Brief, Role, Workers, divide};
use pubgauge_engine::conductor::{DrainEnd, Nobody, TrialEnd, TrialRecord, TrialSpec, run};
use pubgauge_engine::groups::on_several;
use pubgauge_engine::link::Encoded;
use pubgauge_engine::times::Measure;
use pubgauge_simulator::{Behaviour, Bus, SimulatedDriver, Truth};
use pubgauge_workload::{Arrivals, SECOND, Until, Workload};

const MARK: Mark = Mark::from_seed(11);

/// 3 publishers of a topic each, and a group of `members` that hears all.
fn workload(members: u32, per_s: f64) -> Workload {
    let mut workload = Workload::fan(3, members, Arrivals::Periodic { per_s });
    for member in &mut workload.flows[0].subscribers {
        member.group = Some("team".into());
    }
    workload.phases.warm_up = Until::Time(SECOND / 10);
    workload.phases.measure = Until::Time(SECOND / 2);
    // Against hanging alone.
    workload.phases.drain_within = 60 * SECOND;
    workload
}

/// Runs a trial with so many subscribing workers, and says what really happened. The members are on as many workers.
fn on(subscribers: u32, workload: Workload, behaviour: Behaviour) -> (TrialRecord, Truth) {
    let (record, truth, with_members) = run_on(subscribers, workload, behaviour);
    assert_eq!(with_members, subscribers);
    (record, truth)
}

/// The same, and how many workers had members.
fn run_on(subscribers: u32, workload: Workload, behaviour: Behaviour) -> (TrialRecord, Truth, u32) {
    let clock = Clock::Monotonic;
    let bus = Arc::new(Bus::new(behaviour, clock.clone(), MARK));
    let target = SimulatedDriver::target(bus.clone());
    let brief = Brief::new(workload).expect("sound");
    let driver: Arc<dyn Driver> = Arc::new(SimulatedDriver);
    let here = TrialSpec::local(brief, driver, vec![target], clock, |_| Ok(()));
    let spec = TrialSpec {
        workers: Workers {
            publishers: 2,
            subscribers,
            ..Workers::default()
        },
        mark: MARK,
        place: Arc::new(Encoded(here.place.clone())),
        ..here
    };
    let record = run(&spec, &mut Nobody, &AtomicBool::new(false));
    assert_eq!(record.outcome, TrialEnd::Completed);
    let with_members = record.recordings.iter().filter(|r| !r.members.is_empty());
    let with_members = with_members.count() as u32;
    let truth = Truth::count(&bus.truth(), record.epoch);
    (record, truth, with_members)
}

/// Counts are those of the system, to the message, however they are added up.
fn agree(record: &TrialRecord, truth: &Truth) {
    let sum = record.sum();
    assert_eq!(
        (
            sum.messages.delivered,
            sum.messages.unique,
            sum.messages.duplicated(),
            sum.messages.missing()
        ),
        (
            truth.delivered,
            truth.unique,
            truth.duplicated,
            truth.lost + truth.under_way
        ),
        "delivered, unique, duplicated, missing"
    );
    assert_eq!(sum.distinct, truth.unique);
    let shares = record.recordings.iter().flat_map(|r| &r.members);
    assert_eq!(shares.map(|m| m.unique).sum::<u64>(), truth.unique);
    let times = record.all_times(Measure::Latency).len();
    assert_eq!(times - sum.messages.timed_again, truth.unique);
    let end = record.series.last().expect("a series").sum();
    assert_eq!(end.unique, sum.messages.unique + sum.warm_up_unique);
    let warm_up_repeated = sum.warm_up_delivered - sum.warm_up_unique;
    assert_eq!(end.repeated, sum.messages.duplicated() + warm_up_repeated);
}

#[test]
fn a_perfect_system_is_reported_as_perfect() {
    for workers in [2, 4] {
        let (record, truth) = on(workers, workload(4, 600.0), Behaviour::default());
        agree(&record, &truth);
        let sum = record.sum();
        assert_eq!(
            (sum.messages.unique, sum.lost()),
            (sum.messages.published, 0)
        );
        assert_eq!(
            (
                sum.messages.duplicated(),
                sum.messages.reordered,
                sum.passed_over
            ),
            (0, 0, 0)
        );
        assert_eq!(record.drain.ended, DrainEnd::Complete);
    }
}

#[test]
fn loss_and_reordering_are_reported_as_they_were() {
    for (workers, seed) in [(2, 1), (4, 2)] {
        let behaviour = Behaviour {
            loss: 0.05,
            duplication: 0.05,
            reordering: 0.05,
            seed,
            ..Behaviour::default()
        };
        let (record, truth) = on(workers, workload(4, 2_000.0), behaviour);
        agree(&record, &truth);
        let sum = record.sum();
        assert_eq!(sum.messages.reordered, truth.reordered);
        assert_eq!((sum.lost(), sum.under_way), (truth.lost, 0));
        assert!(truth.lost > 0 && truth.duplicated > 0 && truth.reordered > 0);
        assert_eq!(sum.messages.timed_again, 0);
    }
}

/// As many messages come twice as are lost, so that the sum over workers is what was expected.
#[test]
fn messages_that_two_workers_get_do_not_stand_for_lost_ones() {
    for (workers, seed) in [(2, 1), (4, 2)] {
        let behaviour = Behaviour {
            loss: 0.1,
            group_duplication: 0.3,
            seed,
            ..Behaviour::default()
        };
        let (record, truth) = on(workers, workload(4, 2_000.0), behaviour);
        agree(&record, &truth);
        let sum = record.sum();
        assert_eq!((sum.lost(), sum.under_way), (truth.lost, 0));
        assert!(
            truth.lost > 0 && sum.messages.timed_again > truth.lost,
            "{sum:?}"
        );
        assert_ne!(record.drain.ended, DrainEnd::CutShort);
    }
}

/// One member takes its time, while the others get many messages twice.
#[test]
fn the_drain_waits_for_what_comes_late_to_one_worker() {
    let behaviour = Behaviour {
        group_duplication: 0.5,
        slow_subscribers: vec![("sub3".into(), 4_000_000)],
        ..Behaviour::default()
    };
    let (record, truth) = on(2, workload(4, 2_000.0), behaviour);
    agree(&record, &truth);
    let sum = record.sum();
    assert_eq!((sum.lost(), truth.lost, truth.under_way), (0, 0, 0));
    assert_eq!(record.drain.ended, DrainEnd::Complete);
    assert!(sum.messages.timed_again > 0);
}

#[test]
fn what_comes_after_the_drain_is_under_way_and_not_lost() {
    let mut workload = workload(4, 2_000.0);
    workload.phases.drain_within = SECOND / 2;
    workload.phases.drain_quiet = 60 * SECOND;
    // Some 250 messages wait for it, for 12 s.
    let behaviour = Behaviour {
        group_duplication: 0.5,
        slow_subscribers: vec![("sub3".into(), 50_000_000)],
        ..Behaviour::default()
    };
    let (record, truth) = on(2, workload, behaviour);
    agree(&record, &truth);
    let sum = record.sum();
    assert_eq!(record.drain.ended, DrainEnd::CutShort);
    assert_eq!((sum.under_way, sum.lost()), (truth.under_way, 0));
    assert!(truth.under_way > 0);
}

#[test]
fn when_a_member_ends_the_others_are_counted_on() {
    let mut workload = workload(4, 1_000.0);
    workload.phases.measure = Until::Time(2 * SECOND);
    let behaviour = Behaviour {
        disconnects: vec![(SECOND, "sub3".into())],
        ..Behaviour::default()
    };
    let (record, truth) = on(4, workload, behaviour);
    agree(&record, &truth);
    let sum = record.sum();
    assert_eq!(
        (sum.lost(), sum.messages.unique),
        (0, sum.messages.published)
    );
    let lost: u64 = record.recordings.iter().map(|r| r.lost).sum();
    assert_eq!(lost, 1);
}

#[test]
fn members_are_dealt_out_to_workers_and_hosts() {
    let brief = Brief::new(workload(4, 1.0)).expect("sound");
    let workers = Workers {
        subscriber_hosts: 2,
        ..Workers::default()
    };
    let all = divide(&brief, workers, MARK, &[false]);
    let members = all.iter().filter(|a| a.role == Role::Subscribers);
    let places: Vec<_> = members.map(|a| (a.host, a.devices.clone())).collect();
    assert_eq!(places, [(0, vec![3, 4]), (1, vec![5, 6])]);
    assert_eq!(on_several(&brief, &all)[..], [0]);
    // A group that is on one worker needs no account beyond that worker's.
    let all = divide(&brief, Workers::default(), MARK, &[false]);
    assert!(on_several(&brief, &all).is_empty());
}

/// Messages under way of a flow with a window are known where they arrive.
#[test]
fn a_group_of_a_flow_with_a_window_stays_on_one_worker() {
    let mut flat_out = workload(4, 1.0);
    flat_out.flows[0].arrivals = Arrivals::FlatOut;
    flat_out.flows[0].window = Some(20);
    flat_out.phases.measure = Until::Count(2_000, 60 * SECOND);
    let (record, truth, with_members) = run_on(4, flat_out, Behaviour::default());
    assert_eq!(with_members, 1);
    agree(&record, &truth);
    assert_eq!(
        record.sum().messages.unique,
        record.sum().messages.published
    );
}

/// One member publishes as well and is with the publishers' workers.
#[test]
fn a_group_with_members_on_both_sides_is_counted_once() {
    let mut workload = workload(2, 600.0);
    workload.flows[0].subscribers[0].device = 0;
    let brief = Brief::new(workload.clone()).expect("sound");
    let all = divide(&brief, Workers::default(), MARK, &[false]);
    assert_eq!(on_several(&brief, &all)[..], [0]);
    let (record, truth) = on(2, workload, Behaviour::default());
    agree(&record, &truth);
    assert_eq!(record.sum().lost(), 0);
}
