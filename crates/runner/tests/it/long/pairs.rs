//! Pairs over the simulated system, in simulated time, through engine, figures, verdict and decision. What each
//! side carries is planted: two identical ones, or one that is 5 % slower.

use std::sync::Mutex;

use pubgauge_conclusions::compare::{CellOf, ComparisonRule, conclude, next};
use pubgauge_driver::Settings;
use pubgauge_figures::Trial;
use pubgauge_figures::comparison::{Difference, Ended, PairComparison};
use pubgauge_runner::searching::seconds;
use pubgauge_runner::simulated::simulate;
use pubgauge_simulator::Behaviour;
use pubgauge_workload::{Arrivals, SECOND, Until, Workload};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Normal};

/// The limit of the base, messages a second.
const BASE: f64 = 500.0;
/// Noise of each trial, as a share.
const NOISE: f64 = 0.04;
/// Drift that both trials of a round share, as a share.
const DRIFT: f64 = 0.1;

fn trial(cell: &CellOf, repeat: u32, per_s: f64, seed: u64) -> Trial {
    let behaviour = Behaviour {
        service_ns: (1e9 / per_s) as u64,
        capacity: 10,
        seed,
        ..Behaviour::default()
    };
    let mut workload = Workload::fan(1, 1, Arrivals::FlatOut);
    workload.phases.warm_up = Until::Time(SECOND / 2);
    workload.phases.measure = Until::Time(SECOND);
    let run = simulate(workload, behaviour, Settings::default());
    let mut trial = run.expect("a possible workload").trial;
    trial.series.clear();
    Trial {
        cell: cell.cell.clone(),
        repeat,
        ..trial
    }
}

/// One comparison of a system with one that carries so much more, at plus or minus 3 %.
fn compared(more: f64, seed: u64) -> PairComparison {
    let question = ComparisonRule {
        precision: Some(0.03),
        margin: 0.05,
        guard: false,
        figures: Vec::new(),
        most: 200,
        seconds: 3600.0,
        shuffled: Some(seed),
        ablation: None,
    };
    let cells = ["a", "b"].map(|name| CellOf {
        cell: name.into(),
        system: name.into(),
        settings: "default".into(),
        workload: "fan".into(),
        axes: Vec::new(),
    });
    let mut draws = StdRng::seed_from_u64(seed);
    let (noise, drift) = (
        Normal::new(0.0f64, NOISE).expect("a spread"),
        Normal::new(0.0f64, DRIFT).expect("a spread"),
    );
    let mut shared = (0, 1.0);
    let mut trials: Vec<Trial> = Vec::new();
    let spent = |trials: &[Trial]| trials.iter().map(seconds).sum::<f64>();
    while let Some((at, round)) = next(&question, &cells, &trials, spent(&trials)) {
        if shared.0 != round {
            shared = (round, drift.sample(&mut draws).exp());
        }
        let truth = BASE * if at == 1 { 1.0 + more } else { 1.0 };
        let per_s = truth * shared.1 * noise.sample(&mut draws).exp();
        let mut trial = trial(&cells[at], round, per_s, draws.random());
        trial.id = trials.len() as u32;
        trials.push(trial);
    }
    let mut found = conclude(&question, &cells, &trials, spent(&trials));
    found.remove(0)
}

/// How many of so many comparisons tell a difference, and that each ends as it should.
fn told(count: u64, more: f64) -> usize {
    let told = Mutex::new(0);
    std::thread::scope(|scope| {
        for first in 0..2 {
            let told = &told;
            scope.spawn(move || {
                for seed in (first..count).step_by(2) {
                    let found = compared(more, seed);
                    assert_eq!(found.ended, Ended::Precision, "{found:?}");
                    assert_eq!(found.figures[0].figure, "delivered-rate");
                    let verdict = found.figures[0].verdict;
                    assert_ne!(
                        verdict,
                        if more > 0.0 {
                            Difference::Worse
                        } else {
                            Difference::Better
                        }
                    );
                    let clear = matches!(verdict, Difference::Better | Difference::Worse);
                    *told.lock().expect("no panic") += usize::from(clear);
                }
            });
        }
    });
    told.into_inner().expect("no panic")
}

#[test]
fn equals_are_seldom_told_apart() {
    let found = (0..40).filter(|seed| {
        let found = compared(0.0, *seed);
        assert_eq!(found.ended, Ended::Precision, "{found:?}");
        matches!(
            found.figures[0].verdict,
            Difference::Better | Difference::Worse
        )
    });
    let found = found.count();
    println!("{found} of 40 told apart");
    assert!(found <= 2, "{found} of 40");
}

#[test]
fn a_difference_of_5_percent_is_found() {
    for more in [0.05, -0.05] {
        let found = told(20, more);
        println!("{more}: {found} of 20 found");
        assert!(found >= 18, "{more}: {found} of 20");
    }
}
