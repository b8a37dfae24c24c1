//! Windows of messages without an acknowledgement: where they are the limit, and where the system is.

use crate::planted;

use planted::*;
use pubgauge_driver::{Reliability, Settings};
use pubgauge_figures::model::{Rule, Status};
use pubgauge_simulator::Behaviour;
use pubgauge_workload::{Arrivals, SECOND, Until};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const MS: f64 = 1e6;

/// A window over a path, and a system behind it.
#[derive(Clone, Copy, Debug)]
struct Case {
    window: u32,
    publishers: u32,
    /// From a message to its acknowledgement where nothing waits, ns.
    round_trip: f64,
    /// Deliveries of the system, as a share of what the windows let through.
    capacity: f64,
    seed: u64,
}

impl Case {
    /// A window of 1 to 1,000 over 5 to 100 ms, of which at most 2,000 messages a second come.
    fn draw(seed: u64, capacity: std::ops::Range<f64>) -> Case {
        let mut rng = StdRng::seed_from_u64(seed);
        let round_trip = 5.0 * MS * 20f64.powf(rng.random_range(0.0..1.0));
        let publishers = rng.random_range(1..4u32);
        let most = (2_000.0 * round_trip / 1e9 / f64::from(publishers)).max(1.0);
        let window = 1000f64.min(most).powf(rng.random_range(0.0..1.0)).floor();
        Case {
            window: window as u32,
            publishers,
            round_trip,
            capacity: rng.random_range(capacity),
            seed,
        }
    }

    /// Messages that the windows let through, per second.
    fn most(&self) -> f64 {
        f64::from(self.window * self.publishers) / self.round_trip * 1e9
    }

    fn run(&self, arrivals: Arrivals) -> Run {
        let service = 1e9 / (self.most() * self.capacity);
        let behaviour = Behaviour {
            delay_median_ns: (self.round_trip - service).max(1e5) as u64,
            service_ns: service as u64,
            seed: self.seed,
            ..Behaviour::default()
        };
        simulate(self.workload(arrivals), behaviour, self.settings())
    }

    fn workload(&self, arrivals: Arrivals) -> pubgauge_workload::Workload {
        let mut w = workload(self.publishers, 1, arrivals);
        w.phases.warm_up = Until::Time(SECOND);
        w.phases.measure = Until::Time(5 * SECOND);
        w
    }

    fn settings(&self) -> Settings {
        Settings {
            reliability: Some(Reliability::AtLeastOnce),
            in_flight: Some(self.window),
            ..Settings::default()
        }
    }

    /// Paced at a share of what the smaller one of window and system lets through.
    fn paced(&self, share: f64) -> Run {
        let least = self.most() * self.capacity.min(1.0);
        // The rate is that of all publishers together.
        self.run(Arrivals::Periodic {
            per_s: least * share,
        })
    }
}

fn seeds() -> u64 {
    std::env::var("PUBGAUGE_SWEEP").map_or(6, |n| n.parse().expect("a number of seeds"))
}

/// At most one in a hundred may be wrong.
fn few_wrong(wrong: &[String], all: u64) {
    println!("{} of {all} wrong", wrong.len());
    assert!(
        wrong.len() as u64 * 100 <= all,
        "{} of {all}: {wrong:#?}",
        wrong.len()
    );
}

/// The system has half as much room again as the window uses, or up to twenty times as much.
#[test]
fn a_window_over_a_system_with_room_is_named() {
    let (mut wrong, mut all) = (Vec::new(), 0);
    for seed in 0..seeds() {
        let case = Case::draw(seed, 1.5..20.0);
        for run in [
            case.run(Arrivals::FlatOut),
            case.paced(1.3),
            case.paced(1.9),
        ] {
            all += 1;
            let verdict = &run.trial.verdict;
            let named = verdict.has(Rule::WindowFull);
            if verdict.status != Status::SettingBound || !named {
                wrong.push(format!("{case:?}: {verdict:?}"));
                continue;
            }
            let says = format!("in-flight = {}", case.window);
            assert!(verdict.reasons[0].text.starts_with(&says), "{verdict:#?}");
            within(run.trial.messages.delivered_msgs_per_s, case.most(), 0.05);
        }
    }
    few_wrong(&wrong, all);
}

/// The system carries 10 to 45 % of what the window lets through.
#[test]
fn a_system_at_its_end_is_not_excused_by_a_window() {
    let (mut wrong, mut all) = (Vec::new(), 0);
    for seed in 0..seeds() {
        let mut case = Case::draw(seed, 0.1..0.45);
        // A window of one is never larger than what is under way where nothing waits.
        case.window = case.window.max(8);
        let flat_out = case.run(Arrivals::FlatOut);
        // The slowest of them carries 8 messages a second.
        let paced = case.paced(3.0);
        for (run, expected) in [(flat_out, Status::Valid), (paced, Status::Overloaded)] {
            all += 1;
            let verdict = &run.trial.verdict;
            if verdict.status != expected {
                wrong.push(format!("{case:?}: {verdict:?}"));
            }
        }
    }
    few_wrong(&wrong, all);
}

#[test]
fn a_window_with_room_is_not_named() {
    let (mut wrong, mut all) = (Vec::new(), 0);
    for seed in 0..seeds() {
        let case = Case::draw(seed, 1.5..20.0);
        // Publishers that are due together wait for one another in the system.
        let run = case.paced(0.5);
        all += 1;
        if run.trial.verdict.status != Status::Valid {
            wrong.push(format!("{case:?}: {:?}", run.trial.verdict));
        }
    }
    few_wrong(&wrong, all);
}

/// A smaller window that the system grants is named, and stands in the mappings.
#[test]
fn what_the_server_grants_is_named() {
    let case = Case {
        window: 1000,
        publishers: 1,
        round_trip: 40.0 * MS,
        capacity: 20.0,
        seed: 1,
    };
    let behaviour = Behaviour {
        delay_median_ns: case.round_trip as u64,
        grants: 20,
        ..Behaviour::default()
    };
    let run = simulate(case.workload(Arrivals::FlatOut), behaviour, case.settings());
    run.is(
        Status::SettingBound,
        "window = 20, which the server granted where in-flight = 1000 was asked for",
    );
    let window = run.trial.publisher_window.as_ref().expect("a window");
    assert_eq!((window.asked, window.granted), (1000, 20));
}
