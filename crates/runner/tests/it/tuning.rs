//! Tunings over the simulated system, in simulated time: settings become behaviour, trials get a verdict, and what they tell is
//! what a real tuning gets. The best settings are planted, beside some that only look better.

use std::ops::Range;
use std::sync::Mutex;

use pubgauge_driver::Settings;
use pubgauge_figures::criterion::{Comparator, CriterionSpec, TrialFilter};
use pubgauge_figures::model::{Status, Trial};
use pubgauge_runner::searching::stored_step;
use pubgauge_runner::simulated::simulate;
use pubgauge_runner::tuning::{PointSearch, judge_trial};
use pubgauge_search::{Axis, Question as SearchQuestion, Step as SearchStep};
use pubgauge_simulator::Behaviour;
use pubgauge_tuning::{
    Conclusion, Factor, Finding, Levels, Objective, Point, Question, Seen, Step, Verdict, conclude,
    next,
};
use pubgauge_workload::{Arrivals, SECOND, Until, Workload};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Normal};
use serde_json::{Value, json};

/// Messages a second of a trial.
const RATE: f64 = 1_000.0;
/// Seconds that one takes.
const TRIAL_S: f64 = 3.0;

fn choices(name: &str, values: &[Value]) -> Factor {
    Factor {
        name: name.to_owned(),
        levels: Levels::Choices(values.to_vec()),
    }
}

fn factors() -> Vec<Factor> {
    vec![
        choices("batching", &[json!("adaptive"), json!("off")]),
        Factor {
            name: "in-flight".to_owned(),
            levels: Levels::Range {
                from: 1.0,
                to: 1000.0,
                is_logarithmic: true,
                whole: true,
                default: 20.0,
            },
        },
        // It halves latency, and loses messages.
        choices("turbo", &[json!(true)]),
        // It halves latency, and is too slow for the load.
        choices("careful", &[json!(true)]),
        choices("colour", &[json!("red"), json!("green")]),
    ]
}

fn question(seed: u64) -> Question {
    Question {
        factors: factors(),
        budget_s: 90.0 * TRIAL_S,
        expected_s: TRIAL_S,
        pairs: 6,
        seed,
        is_led: false,
    }
}

/// The median delay that is planted at a point, ns; of those settings that carry the load.
fn planted_ns(point: &Point, seed: u64) -> f64 {
    let best = 10f64.powf(0.5 + 2.0 * (seed % 11) as f64 / 10.0);
    let in_flight = point.0[1].as_ref().and_then(Value::as_f64).unwrap_or(20.0);
    let off = (in_flight / best).log10();
    let batching = match &point.0[0] {
        Some(value) if *value == json!("adaptive") => 0.7,
        Some(_) => 1.3,
        None => 1.0,
    };
    2e6 * batching * (1.0 + 0.3 * off * off)
}

/// The behaviour of the system with the settings of a point.
fn behaviour(point: &Point, median_ns: f64, seed: u64) -> Behaviour {
    let (turbo, careful) = (point.0[2].is_some(), point.0[3].is_some());
    let halves = if turbo || careful { 0.5 } else { 1.0 };
    Behaviour {
        delay_median_ns: (median_ns * halves) as u64,
        delay_sigma: 0.2,
        loss: if turbo { 0.02 } else { 0.0 },
        service_ns: if careful { (1.2e9 / RATE) as u64 } else { 0 },
        seed,
        ..Behaviour::default()
    }
}

fn trial(arrivals: Arrivals, behaviour: Behaviour) -> Trial {
    let mut workload = Workload::fan(1, 1, arrivals);
    workload.phases.warm_up = Until::Time(SECOND / 4);
    workload.phases.measure = Until::Time(2 * SECOND);
    workload.phases.drain_within = SECOND;
    let run = simulate(workload, behaviour, Settings::default());
    run.unwrap_or_else(|error| panic!("{error}")).trial
}

/// Tunes a system in simulated time to the end. `truth` is the planted median of a point.
fn tune(seed: u64, noise: f64, truth: impl Fn(&Point) -> f64) -> (Conclusion, Vec<Seen>) {
    let question = question(seed);
    let mut draws = StdRng::seed_from_u64(seed);
    let noise = Normal::new(0.0f64, noise).unwrap();
    let mut seen: Vec<Seen> = Vec::new();
    loop {
        assert!(seen.len() < 500, "there is an end");
        let Step::Measure { purpose, point } = next(&question, &seen) else {
            break;
        };
        let median = truth(&point) * noise.sample(&mut draws).exp();
        let behaviour = behaviour(&point, median, draws.random());
        let trial = trial(Arrivals::Periodic { per_s: RATE }, behaviour);
        let told = judge_trial(Objective::P99, &trial);
        let status = trial.verdict.status;
        assert_eq!(
            matches!(told.finding, Finding::Score(_)),
            status == Status::Valid,
            "{status:?}"
        );
        seen.push(Seen {
            purpose,
            point,
            finding: told.finding,
            seconds: TRIAL_S,
        });
    }
    (conclude(Objective::P99, &question, &seen), seen)
}

fn chosen(conclusion: &Conclusion) -> Option<Point> {
    let named = conclusion.best.as_ref()?.iter();
    let named = named.map(|(name, value)| (name.as_str(), value.as_str()));
    Point::from_named(&factors(), named)
}

/// Counts the seeds that something is true of, on two threads.
fn count(seeds: Range<u64>, is_so: impl Fn(u64) -> bool + Sync) -> usize {
    let all = Mutex::new(0);
    std::thread::scope(|scope| {
        for first in 0..2 {
            let (all, is_so, seeds) = (&all, &is_so, seeds.clone());
            scope.spawn(move || {
                let own = seeds.skip(first).step_by(2).filter(|seed| is_so(*seed));
                let count = own.count();
                *all.lock().unwrap() += count;
            });
        }
    });
    all.into_inner().unwrap()
}

/// How many of these seeds come within 5 % of the planted optimum and say that it is better; none chooses what loses
/// messages or does not carry the load.
fn found(seeds: Range<u64>) -> usize {
    count(seeds, |seed| {
        let (conclusion, _) = tune(seed, 0.03, |point| planted_ns(point, seed));
        let Some(point) = chosen(&conclusion) else {
            return false;
        };
        assert_eq!(
            (&point.0[2], &point.0[3]),
            (&None, &None),
            "{seed}: {conclusion:?}"
        );
        let ladder = (0..=300).map(|n| 10f64.powf(f64::from(n) / 100.0).round());
        let best = |in_flight: f64| {
            let of = [
                Some(json!("adaptive")),
                Some(json!(in_flight)),
                None,
                None,
                None,
            ];
            planted_ns(&Point(of.to_vec()), seed)
        };
        let best = ladder.map(best).fold(f64::INFINITY, f64::min);
        planted_ns(&point, seed) <= 1.05 * best
            && matches!(conclusion.verdict, Verdict::Better { .. })
    })
}

/// How many of these seeds claim something where no setting makes a difference.
fn claimed(seeds: Range<u64>) -> usize {
    count(seeds, |seed| {
        let (conclusion, _) = tune(seed, 0.03, |_| 2e6);
        matches!(conclusion.verdict, Verdict::Better { .. })
    })
}

#[test]
fn a_planted_optimum_is_found_and_what_only_looks_better_is_not_chosen() {
    let found = found(0..10);
    println!("{found} of 10 within 5 %");
    assert!(found >= 9, "{found}");
}

#[test]
fn nothing_is_claimed_where_nothing_helps() {
    let claimed = claimed(0..10);
    println!("{claimed} of 10 claimed");
    assert!(claimed <= 1, "{claimed}");
}

mod long {
    use super::*;

    #[test]
    fn a_planted_optimum_is_found_in_nine_of_ten_of_a_thousand() {
        let found = found(0..1000);
        println!("{found} of 1000 within 5 %");
        assert!(found >= 900, "{found}");
    }

    #[test]
    fn nothing_is_claimed_in_95_of_100_of_a_thousand() {
        let claimed = claimed(0..1000);
        println!("{claimed} of 1000 claimed");
        assert!(claimed <= 50, "{claimed}");
    }
}

/// A fault of a trial stands in its finding, and its figure does not.
#[test]
fn only_valid_trials_have_a_score() {
    let paced = Arrivals::Periodic { per_s: RATE };
    let judged = |behaviour: Behaviour| {
        let told = judge_trial(Objective::P99, &trial(paced.clone(), behaviour));
        (told.finding, !told.why.is_empty())
    };
    let default = Behaviour::default;
    assert!(matches!(judged(default()), (Finding::Score(_), false)));
    let lossy = Behaviour {
        loss: 0.05,
        ..default()
    };
    assert_eq!(judged(lossy), (Finding::Hopeless, true));
    let overloaded = Behaviour {
        service_ns: (1.3e9 / RATE) as u64,
        ..default()
    };
    assert_eq!(judged(overloaded), (Finding::Hopeless, true));
    let busy_client = Behaviour {
        publish_cpu_ns: (0.95e9 / RATE) as u64,
        ..default()
    };
    assert_eq!(judged(busy_client), (Finding::Nothing, true));
    // Few messages: no 99th percentile.
    let slow = Arrivals::Periodic { per_s: 5.0 };
    let told = judge_trial(Objective::P99, &trial(slow, default()));
    assert_eq!(told.finding, Finding::Nothing);
}

/// Searches for the limit of points: one that is far behind ends after its first trial, the others come near what is planted.
#[test]
fn the_limit_of_a_point_is_searched_for_and_hopeless_ones_end_early() {
    let criteria = [CriterionSpec {
        text: "p99".into(),
        figure: "latency_ns.p99".into(),
        comparison: Comparator::AtMost,
        value: 100e6,
        filter: TrialFilter::default(),
    }];
    let question = SearchQuestion {
        width: 0.15,
        most_trials: 8,
        most_seconds: f64::INFINITY,
        ..SearchQuestion::default()
    };
    let mut trials: Vec<Trial> = Vec::new();
    let mut default_flat_out = None;
    for (number, takes, expected) in [
        (0, 1000.0, Some(1000.0)),
        (1, 1500.0, Some(1500.0)),
        (2, 300.0, None),
    ] {
        let search = PointSearch {
            question: &question,
            axis: Axis::Rate,
            number,
            criteria: &criteria,
        };
        let before = trials.len();
        while let Some(step) = search.next(&trials, default_flat_out) {
            let arrivals = match step {
                SearchStep::Short(per_s) => Arrivals::Periodic { per_s },
                _ => Arrivals::FlatOut,
            };
            let behaviour = Behaviour {
                service_ns: (1e9 / takes) as u64,
                capacity: 1000,
                seed: trials.len() as u64,
                ..Behaviour::default()
            };
            let mut one = trial(arrivals, behaviour);
            one.search = stored_step(number, step);
            trials.push(one);
        }
        let measured = trials.len() - before;
        let told = search.judge(&trials, default_flat_out);
        match (expected, told.finding) {
            (Some(limit), Finding::Score(score)) => {
                let figure = Objective::Limit.figure(score);
                assert!((figure / limit - 1.0).abs() < 0.15, "{figure} of {limit}");
                assert!((6..=8).contains(&measured), "{measured}");
            }
            (None, Finding::Hopeless) => assert_eq!(measured, 1),
            (expected, found) => panic!("{expected:?}: {found:?}"),
        }
        if number == 0 {
            default_flat_out = search.flat_out(&trials);
        }
    }
}
