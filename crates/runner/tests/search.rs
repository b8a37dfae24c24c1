//! Searches over the simulated system, in simulated time, through everything that a real one goes
//! through: engine, figures, verdict, evidence, next load. What it carries is planted.

mod planted;

use planted::*;
use pubgauge_driver::Settings;
use pubgauge_results::criterion::{Comparison, CriterionSpec, Filter};
use pubgauge_results::model::Trial;
use pubgauge_results::search::{Bound, Finding, Purpose, Search};
use pubgauge_runner::searching::{conclude, next, stored_step};
use pubgauge_search::{Question, Step};
use pubgauge_simulator::Behaviour;
use pubgauge_workload::{Arrivals, SECOND, Until};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Normal};

/// What is planted.
#[derive(Clone, Copy)]
struct Planted {
    /// Messages a second that the system takes.
    limit: f64,
    /// Standard deviation of its logarithm from trial to trial.
    noise: f64,
    /// One trial in ten finds it 15 % slower.
    strays: bool,
}

fn p99_at_most(ns: f64) -> CriterionSpec {
    CriterionSpec {
        text: "p99".into(),
        figure: "latency_ns.p99".into(),
        comparison: Comparison::AtMost,
        value: ns,
        filter: Filter::default(),
    }
}

/// Runs a search to its end.
fn search(planted: Planted, seed: u64, criteria: &[CriterionSpec]) -> Search {
    let question = Question::default();
    let mut draws = StdRng::seed_from_u64(seed);
    let mut trials: Vec<Trial> = Vec::new();
    loop {
        let step = next(&question, "rate", 0, &trials, criteria);
        let Some(stored) = stored_step(0, step) else {
            break;
        };
        let noise = Normal::new(0.0, planted.noise).unwrap().sample(&mut draws);
        let stray = if planted.strays && draws.random_bool(0.1) {
            0.85
        } else {
            1.0
        };
        let takes = planted.limit * noise.exp() * stray;
        let arrivals = match stored.load {
            Some(per_s) => Arrivals::Periodic { per_s },
            None => Arrivals::FlatOut,
        };
        let mut w = workload(1, 1, arrivals);
        w.phases.warm_up = Until::Time(SECOND);
        w.phases.measure = Until::Time(SECOND * if matches!(step, Step::Long(_)) { 30 } else { 5 });
        w.phases.drain_within = 2 * SECOND;
        let behaviour = Behaviour {
            service_ns: (1e9 / takes) as u64,
            seed: draws.random(),
            ..Behaviour::default()
        };
        let mut trial = simulate(w, behaviour, Settings::default()).trial;
        trial.id = trials.len() as u32;
        trial.search = Some(stored);
        trials.push(trial);
        assert!(trials.len() < 50, "it does not end");
    }
    conclude(&question, "rate", 0, &trials, criteria, Search::default())
}

fn holds(search: &Search, limit: f64) -> bool {
    search.low.is_some_and(|low| low <= limit) && search.high.is_some_and(|high| high >= limit)
}

#[test]
fn the_interval_holds_what_was_planted() {
    let mut held = 0;
    let mut widths = Vec::new();
    let mut trials = Vec::new();
    let count = 30;
    for seed in 0..count {
        let limit = 500.0 * 1.05f64.powi(seed as i32);
        let planted = Planted {
            limit,
            noise: 0.03,
            strays: false,
        };
        let found = search(planted, seed, &[p99_at_most(100e6)]);
        held += usize::from(holds(&found, limit));
        widths.push(found.high.unwrap() / found.low.unwrap() - 1.0);
        trials.push(
            found
                .trials
                .iter()
                .filter(|t| t.purpose != Purpose::Cost)
                .count(),
        );
        assert_eq!(found.bound, Bound::System);
        if !holds(&found, limit) {
            println!("{limit}: {:?} to {:?}", found.low, found.high);
        }
    }
    widths.sort_by(f64::total_cmp);
    trials.sort_unstable();
    println!(
        "{held} of {count}, width {:.3}, trials {}",
        widths[15], trials[15]
    );
    assert!(held >= 28, "{held} of {count}");
    assert!(widths[15] <= 0.10 && trials[15] <= 18);
}
