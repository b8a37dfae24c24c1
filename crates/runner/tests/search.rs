//! Searches over the simulated system, in simulated time, through everything that a real one goes
//! through. What it carries is planted.

use std::sync::Mutex;

use pubgauge_driver::Settings;
use pubgauge_results::criterion::{Comparison, CriterionSpec, Filter};
use pubgauge_results::model::Trial;
use pubgauge_results::search::{Bound, Finding, Purpose, Search};
use pubgauge_runner::searching::told;
use pubgauge_runner::simulated::{search, simulate};
use pubgauge_search::Question;
use pubgauge_simulator::Behaviour;
use pubgauge_workload::{Arrivals, SECOND, Until, Workload};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Normal};

fn p99_at_most(ns: f64) -> CriterionSpec {
    CriterionSpec {
        text: "p99".into(),
        figure: "latency_ns.p99".into(),
        comparison: Comparison::AtMost,
        value: ns,
        filter: Filter::default(),
    }
}

/// Time for a message of a system that takes so many a second, ns.
fn service_ns(per_s: f64) -> u64 {
    (1e9 / per_s) as u64
}

/// Searches over systems that carry 500 to 2,000 messages a second, 3 % more or less in each trial.
fn many(count: u64, behaves: impl Fn(f64) -> Behaviour + Sync) -> Vec<(f64, Search)> {
    let question = Question::default();
    let all = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for first in 0..2 {
            let (all, behaves, question) = (&all, &behaves, &question);
            scope.spawn(move || {
                for seed in (first..count).step_by(2) {
                    let limit = 500.0 * 4f64.powf(seed as f64 / count as f64);
                    let mut draws = StdRng::seed_from_u64(seed);
                    let noise = Normal::new(0.0f64, 0.03).unwrap();
                    let found = search(question, &[p99_at_most(100e6)], 35, || Behaviour {
                        seed: draws.random(),
                        ..behaves(limit * noise.sample(&mut draws).exp())
                    });
                    all.lock().unwrap().push((limit, found.unwrap()));
                }
            });
        }
    });
    all.into_inner().unwrap()
}

fn holds(found: &Search, limit: f64) -> bool {
    found.low.is_some_and(|low| low <= limit) && found.high.is_some_and(|high| high >= limit)
}

/// How many hold the limit, which is `share` of what was planted; median width, median of trials.
fn summed(found: &[(f64, Search)], share: f64) -> (usize, f64, usize) {
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let width = |(_, s): &(f64, Search)| s.high.unwrap() / s.low.unwrap() - 1.0;
    let deciding = |(_, s): &(f64, Search)| {
        s.trials
            .iter()
            .filter(|t| t.purpose != Purpose::Cost)
            .count() as f64
    };
    let held = found
        .iter()
        .filter(|(limit, s)| holds(s, share * limit))
        .count();
    let width = median(found.iter().map(width).collect());
    let trials = median(found.iter().map(deciding).collect()) as usize;
    println!(
        "{held} of {} held, width {width:.3}, {trials} trials",
        found.len()
    );
    (held, width, trials)
}

#[test]
fn the_interval_holds_what_was_planted() {
    let found = many(30, |takes| Behaviour {
        service_ns: service_ns(takes),
        ..Behaviour::default()
    });
    let (held, width, trials) = summed(&found, 1.0);
    assert!(held >= 28 && width <= 0.10 && trials <= 18);
    let confirmed = found.iter().filter(|(_, s)| s.confirmed.is_some());
    assert!(confirmed.count() >= 25);
    assert!(found.iter().all(|(_, s)| s.bound != Bound::Client));
}

#[test]
fn what_lasts_half_a_minute_is_no_limit() {
    let found = many(6, |takes| Behaviour {
        service_ns: service_ns(takes),
        service_later: Some((20 * SECOND, service_ns(0.6 * takes))),
        ..Behaviour::default()
    });
    let (held, ..) = summed(&found, 0.6);
    assert!(held >= 5);
    let told = |s: &Search| s.notes.iter().any(|note| note.contains("did not last"));
    assert!(found.iter().filter(|(_, s)| told(s)).count() >= 5);
}

#[test]
fn a_system_that_is_slower_the_more_waits() {
    let found = many(10, |takes| Behaviour {
        service_ns: service_ns(takes),
        service_crowded: Some((SECOND / 5, service_ns(0.5 * takes))),
        ..Behaviour::default()
    });
    let (held, width, _) = summed(&found, 1.0);
    assert!(held >= 9 && width <= 0.10);
}

/// One trial in three has a client that is not run for a second and a half.
#[test]
fn a_client_that_sleeps_is_not_the_systems_limit() {
    let asleep = (3 * SECOND, 9 * SECOND / 2);
    let found = many(10, |takes| Behaviour {
        service_ns: service_ns(takes),
        // The last bits of what a trial takes are as good as drawn.
        client_sleeps: Vec::from_iter((takes.to_bits() % 3 == 0).then_some(asleep)),
        ..Behaviour::default()
    });
    let (held, ..) = summed(&found, 1.0);
    assert!(held >= 9);
    let slept = found.iter().flat_map(|(_, s)| &s.trials);
    let slept = slept.filter(|t| t.finding == Finding::Client);
    assert!(slept.count() > 20, "such trials are named");
}

/// What a machine that others kept busy could not do tells nothing of the system.
#[test]
fn what_others_may_have_done_is_no_limit() {
    let mut workload = Workload::fan(1, 1, Arrivals::Periodic { per_s: 2_000.0 });
    workload.phases.measure = Until::Time(2 * SECOND);
    let slow = Behaviour {
        service_ns: service_ns(500.0),
        ..Behaviour::default()
    };
    let mut trial = simulate(workload, slow, Settings::default()).unwrap().trial;
    let criteria = [p99_at_most(100e6)];
    let finding = |trial: &Trial| told(trial, &criteria).0;
    assert_eq!(finding(&trial), pubgauge_search::Finding::Beyond);
    trial.circumstances.cores = 2;
    trial.worker_load.machine_others = Some(1.8);
    assert_eq!(finding(&trial), pubgauge_search::Finding::Client);
    assert!(told(&trial, &criteria).1[0].contains("other programs kept 1.8"));
    trial.worker_load.machine_others = Some(0.1);
    assert_eq!(finding(&trial), pubgauge_search::Finding::Beyond);
}
