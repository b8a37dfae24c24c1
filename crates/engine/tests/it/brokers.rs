//! Several brokers, groups on both sides: who works where, and that the counts add up.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pubgauge_driver::{Clock, Driver, Mark, Target};
use pubgauge_engine::assignment::{Brief, Workers, divide};
use pubgauge_engine::conductor::{Nobody, TrialEnd, TrialRecord, TrialSpec, run};
use pubgauge_engine::link::Encoded;
use pubgauge_simulator::{Behaviour, Bus, SimulatedDriver, Truth};
use pubgauge_workload::{Arrivals, SECOND, Until, Workload};

const MARK: Mark = Mark::from_seed(5);

fn workers(each: u32) -> Workers {
    Workers {
        publishers: each,
        subscribers: each,
        ..Workers::default()
    }
}

/// 6 publishers of a topic each and 2 subscribers of all.
fn workload(arrivals: Arrivals) -> Workload {
    let mut workload = Workload::fan(6, 2, arrivals);
    workload.phases.warm_up = Until::Time(SECOND / 10);
    workload.phases.measure = Until::Time(SECOND / 2);
    workload
}

/// Runs a workload over simulated brokers, each of which knows nothing of the others; the record, and
/// what happened on each.
fn over(workload: &Workload, brokers: u32, each: u32) -> (TrialRecord, Vec<Truth>) {
    let clock = Clock::Monotonic;
    let bus = |_| Arc::new(Bus::new(Behaviour::default(), clock.clone(), MARK));
    let buses: Vec<Arc<Bus>> = (0..brokers).map(bus).collect();
    let targets: Vec<Target> = buses.iter().cloned().map(SimulatedDriver::target).collect();
    let brief = Brief::new(workload.spread_over(brokers).expect("can be split")).expect("sound");
    let driver: Arc<dyn Driver> = Arc::new(SimulatedDriver);
    let here = TrialSpec::local(brief, driver, targets, clock, |_| Ok(()));
    let spec = TrialSpec {
        workers: workers(each),
        mark: MARK,
        place: Arc::new(Encoded(here.place.clone())),
        ..here
    };
    let record = run(&spec, &mut Nobody, &AtomicBool::new(false));
    let truth = |bus: &Arc<Bus>| Truth::count(&bus.truth(), record.epoch);
    let truth = buses.iter().map(truth).collect();
    (record, truth)
}

/// Such a trial on a machine that has time for all that is due: a worker that stands still at the end leaves
/// messages unsent.
fn over_in_time(workload: &Workload, brokers: u32, each: u32) -> (TrialRecord, Vec<Truth>) {
    let mut tries = (0..10).map(|_| over(workload, brokers, each));
    let in_time = |(record, _): &(TrialRecord, Vec<Truth>)| record.sum().messages.not_sent == 0;
    tries.find(in_time).expect("a trial that nothing held up")
}

#[test]
fn a_worker_serves_one_broker() {
    let workload = workload(Arrivals::FlatOut)
        .spread_over(3)
        .expect("6 over 3");
    let brief = Brief::new(workload).expect("sound");
    let assignments = divide(&brief, workers(2), MARK, &[]);
    // 2 for the publishers of each broker and 2 for its subscribers.
    assert_eq!(assignments.len(), 12);
    for (number, assignment) in assignments.iter().enumerate() {
        assert_eq!(assignment.worker as usize, number);
        let devices = assignment.devices.iter();
        let mut brokers = devices.map(|d| brief.workload.devices[*d as usize].broker);
        assert!(brokers.all(|broker| broker == assignment.broker));
    }
}

#[test]
fn a_group_of_two_settings_is_refused() {
    let mut workload = workload(Arrivals::FlatOut);
    let mut other = workload.flows[0].clone();
    other.settings = 1;
    other.publishers.clear();
    other.subscribers = vec![workload.flows[0].subscribers.remove(1)];
    workload.flows.push(other);
    for flow in &mut workload.flows {
        flow.subscribers[0].group = Some("team".into());
    }
    let error = Brief::new(workload).expect_err("no fleet has both");
    assert!(error.to_string().contains("group `team`"), "{error}");
}

#[test]
fn counts_over_several_brokers_are_those_over_one() {
    let workload = workload(Arrivals::Periodic { per_s: 600.0 });
    for brokers in [1, 2, 3] {
        let (record, truth) = over_in_time(&workload, brokers, 2);
        let sum = record.sum();
        assert_eq!(record.outcome, TrialEnd::Completed);
        assert_eq!(
            (
                sum.messages.offered,
                sum.messages.published,
                sum.messages.expected,
                sum.messages.unique,
                sum.lost()
            ),
            (300, 300, 600, 600, 0),
            "{brokers} brokers"
        );
        for truth in &truth {
            assert_eq!(truth.delivered, 600 / u64::from(brokers));
        }
    }
}

/// Flat out, with the window shared by workers of all brokers.
#[test]
fn flat_out_reaches_every_broker() {
    let mut workload = workload(Arrivals::FlatOut);
    workload.flows[0].window = Some(50);
    let (record, truth) = over(&workload, 3, 1);
    let sum = record.sum();
    assert_eq!(record.outcome, TrialEnd::Completed);
    assert_eq!(
        (sum.messages.unique, sum.lost()),
        (2 * sum.messages.published, 0)
    );
    let delivered: u64 = truth.iter().map(|truth| truth.delivered).sum();
    assert_eq!(delivered, sum.messages.unique);
    assert!(truth.iter().all(|truth| truth.delivered > 0));
}

#[test]
fn a_broker_that_is_not_there_is_said() {
    let clock = Clock::Monotonic;
    let bus = Arc::new(Bus::new(Behaviour::default(), clock.clone(), MARK));
    let targets = vec![SimulatedDriver::target(bus)];
    let two = workload(Arrivals::FlatOut)
        .spread_over(2)
        .expect("6 over 2");
    let brief = Brief::new(two).expect("sound");
    let driver: Arc<dyn Driver> = Arc::new(SimulatedDriver);
    let spec = TrialSpec {
        mark: MARK,
        ..TrialSpec::local(brief, driver, targets, clock, |_| Ok(()))
    };
    let record = run(&spec, &mut Nobody, &AtomicBool::new(false));
    let TrialEnd::NotReady(why) = &record.outcome else {
        panic!("{:?}", record.outcome);
    };
    assert!(why.contains("there is no broker 2"), "{why}");
}
