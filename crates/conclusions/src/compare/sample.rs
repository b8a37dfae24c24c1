//! Runs of two systems whose figures are drawn.

use pubgauge_figures::model::Results;
use pubgauge_fixtures::TrialBuilder;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;

/// A draw of a standard normal (Box and Muller).
fn normal(draws: &mut StdRng) -> f64 {
    let (u, v): (f64, f64) = (draws.random(), draws.random());
    (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// The spread of trials.
#[derive(Clone, Copy)]
pub struct Scatter {
    /// Spread that a repeat shares with the others of its turn: drift.
    pub turn: f64,
    /// Spread of the repeat alone.
    pub own: f64,
    /// Factor on all times and costs.
    pub times: f64,
}

/// A trial whose figures are drawn: log-normal, and correlated within a trial as in reality.
pub fn trial(
    draws: &mut StdRng,
    turn: f64,
    scatter: Scatter,
    id: u32,
    system: &str,
    repeat: u32,
) -> Trial {
    let own = normal(draws);
    let mut drawn = |centre: f64| {
        let log = scatter.turn * turn + scatter.own * (0.7 * own + 0.7 * normal(draws));
        centre * scatter.times * log.exp()
    };
    let [p50, p99] = [drawn(100e3), drawn(500e3)].map(|ns| ns as u64);
    let delivered_per_s = drawn(1000.0) / scatter.times;
    let trial = TrialBuilder::periodic(1_000.0, 10.0)
        .id(id)
        .cell(system)
        .system(system)
        .repeat(repeat)
        .times(p50, p99)
        .cpu(drawn(0.3), 0.0, drawn(0.4));
    let mut trial = trial.build();
    trial.messages.delivered_msgs_per_s = delivered_per_s;
    trial
}

pub fn results(trials: Vec<Trial>) -> Results {
    Results {
        trials,
        ..Results::default()
    }
}

/// A run of two systems over some repeats, in turns.
pub fn run(seed: u64, repeats: u32, scatter: Scatter, b: Scatter) -> Results {
    let mut draws = StdRng::seed_from_u64(seed);
    let mut trials = Vec::new();
    for repeat in 1..=repeats {
        let turn = normal(&mut draws);
        for (nth, (system, scatter)) in [("a", scatter), ("b", b)].into_iter().enumerate() {
            let id = 2 * (repeat - 1) + nth as u32;
            trials.push(trial(&mut draws, turn, scatter, id, system, repeat));
        }
    }
    results(trials)
}

pub fn of_system(name: &str) -> Choice {
    Choice {
        system: Some(name.into()),
        settings: None,
    }
}

pub fn systems(results: &Results, margin: f64) -> Comparison {
    let [a, b] = [of_system("a"), of_system("b")];
    let pairing = pair([results, results], [&a, &b], None).unwrap();
    compare(&pairing.pairs, &[], margin)
}

pub const QUIET: Scatter = Scatter {
    turn: 0.03,
    own: 0.02,
    times: 1.0,
};
pub const SLOWER: Scatter = Scatter {
    times: 1.1,
    ..QUIET
};
