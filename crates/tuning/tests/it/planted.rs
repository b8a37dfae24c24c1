//! Tunings of landscapes whose optimum is planted. A measurement is a draw around what the landscape says.

use pubgauge_tuning::{
    Conclusion, Factor, Finding, Levels, Objective, Point, Purpose, Question, Seen, Side, Step,
    Verdict, conclude, next,
};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution, Normal};
use serde_json::{Value, json};

fn choices(name: &str, values: &[Value]) -> Factor {
    Factor {
        name: name.to_owned(),
        levels: Levels::Choices(values.to_vec()),
    }
}

fn range(name: &str, (from, to, default): (f64, f64, f64)) -> Factor {
    Factor {
        name: name.to_owned(),
        levels: Levels::Range {
            from,
            to,
            is_logarithmic: true,
            whole: true,
            default,
        },
    }
}

/// Three factors that matter, two of them together, and three that do not.
fn factors() -> Vec<Factor> {
    vec![
        choices("batching", &[json!("adaptive"), json!("off")]),
        range("in-flight", (1.0, 1000.0, 20.0)),
        choices("threads", &[json!(1), json!(2), json!(4)]),
        range("buffer", (4096.0, 4_194_304.0, 212_992.0)),
        choices("no-delay", &[json!(false)]),
        choices("collector", &[json!("a"), json!("b")]),
    ]
}

fn question(seed: u64) -> Question {
    Question {
        factors: factors(),
        budget_s: 1800.0,
        expected_s: 10.0,
        pairs: 6,
        seed,
        is_led: false,
    }
}

fn number(value: Option<&Value>, default: f64) -> f64 {
    value.and_then(Value::as_f64).unwrap_or(default)
}

/// The true figure of a point, a latency in ms: 10 by default, the best is the smallest of all.
fn planted(point: &Point, seed: u64) -> Option<f64> {
    let [batching, in_flight, threads, buffer, ..] = &point.0[..] else {
        unreachable!("six factors")
    };
    // Where the best number lies differs from seed to seed.
    let best = 10f64.powf(1.0 + 1.8 * (seed % 17) as f64 / 16.0);
    let off = (number(in_flight.as_ref(), 20.0) / best).log10();
    let mut figure: f64 = 10.0 * (0.6 + 0.25 * off * off);
    let is_batching = batching == &Some(json!("adaptive"));
    figure *= match (is_batching, number(threads.as_ref(), 1.0) as u64) {
        (true, 4) => 0.6,
        (true, _) => 0.85,
        (false, 4) => 1.1,
        _ => 1.0,
    };
    if number(buffer.as_ref(), 212_992.0) < 16_384.0 {
        // Too little for the load.
        return None;
    }
    Some(figure)
}

/// The best of all.
fn best(seed: u64) -> f64 {
    let ladder = (0..=300).map(|n| 10f64.powf(f64::from(n) / 100.0).round());
    let point = |in_flight: f64| {
        Point(vec![
            Some(json!("adaptive")),
            Some(json!(in_flight)),
            Some(json!(4)),
            None,
            None,
            None,
        ])
    };
    let all = ladder.filter_map(|in_flight| planted(&point(in_flight), seed));
    all.fold(f64::INFINITY, f64::min)
}

/// Tunes to the end.
fn tune(
    seed: u64,
    noise: f64,
    truth: impl Fn(&Point) -> Option<f64>,
) -> (Vec<Seen>, Conclusion, Question) {
    let question = question(seed);
    let mut draws = StdRng::seed_from_u64(seed);
    let noise = Normal::new(0.0, noise).unwrap();
    let mut seen: Vec<Seen> = Vec::new();
    loop {
        assert!(seen.len() < 1000, "there is an end");
        let Step::Measure { purpose, point } = next(&question, &seen) else {
            break;
        };
        let finding = match truth(&point) {
            Some(figure) => Finding::Score(Objective::P99.score(figure) + noise.sample(&mut draws)),
            None => Finding::Hopeless,
        };
        seen.push(Seen {
            purpose,
            point,
            finding,
            seconds: 8.0,
        });
    }
    let conclusion = conclude(Objective::P99, &question, &seen);
    (seen, conclusion, question)
}

fn chosen(conclusion: &Conclusion, question: &Question) -> Option<Point> {
    let named = conclusion.best.as_ref()?;
    let named = named
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    Point::from_named(&question.factors, named)
}

/// How many of these seeds come within 5 % of the planted optimum and say that it is better.
fn found(seeds: std::ops::Range<u64>, noise: f64) -> usize {
    let is_found = |seed: &u64| {
        let (_, conclusion, question) = tune(*seed, noise, |point| planted(point, *seed));
        let figure = chosen(&conclusion, &question).and_then(|point| planted(&point, *seed));
        let is_near = figure.is_some_and(|figure| figure <= 1.05 * best(*seed));
        if !is_near {
            println!(
                "seed {seed}: {figure:?} where {} is the best: {:?}",
                best(*seed),
                conclusion.best
            );
        }
        is_near && matches!(conclusion.verdict, Verdict::Better { .. })
    };
    seeds.filter(is_found).count()
}

/// How many of these seeds claim something where settings make no difference.
fn claimed(seeds: std::ops::Range<u64>, noise: f64) -> usize {
    let claims = |seed: &u64| {
        let (_, conclusion, _) = tune(*seed, noise, |_| Some(10.0));
        matches!(conclusion.verdict, Verdict::Better { .. })
    };
    seeds.filter(claims).count()
}

#[test]
fn a_planted_optimum_is_found() {
    let found = found(0..40, 0.03);
    println!("{found} of 40 within 5 %");
    assert!(found >= 36, "{found}");
}

#[test]
fn nothing_is_claimed_where_nothing_helps() {
    let claimed = claimed(0..100, 0.05);
    println!("{claimed} of 100 claimed");
    assert!(claimed <= 5, "{claimed}");
}

mod long {
    use super::*;

    #[test]
    fn a_planted_optimum_is_found_in_nine_of_ten_of_a_thousand() {
        let found = found(0..1000, 0.03);
        println!("{found} of 1000 within 5 %");
        assert!(found >= 900, "{found}");
    }

    #[test]
    fn nothing_is_claimed_in_95_of_100_of_a_thousand() {
        let claimed = claimed(0..1000, 0.05);
        println!("{claimed} of 1000 claimed");
        assert!(claimed <= 50, "{claimed}");
    }
}

/// A tuning that was cut off goes on as if it had not been.
#[test]
fn the_same_list_leads_to_the_same_step() {
    let (seen, _, question) = tune(3, 0.03, |point| planted(point, 3));
    for n in 0..seen.len() {
        let Step::Measure { purpose, point } = next(&question, &seen[..n]) else {
            panic!("ended after {n}");
        };
        assert_eq!((purpose, &point), (seen[n].purpose, &seen[n].point));
    }
}

#[test]
fn its_parts_come_in_order_and_within_the_budget() {
    let (seen, conclusion, question) = tune(5, 0.03, |point| planted(point, 5));
    let spent: f64 = seen.iter().map(|one| one.seconds).sum();
    assert!(spent <= question.budget_s + 8.0, "{spent}");
    let rank = |one: &Seen| match one.purpose {
        Purpose::Base => None,
        Purpose::OneFactor => Some(0),
        Purpose::Combination => Some(1),
        Purpose::Again => Some(2),
        Purpose::Pair { .. } => Some(3),
    };
    assert!(seen.iter().filter_map(rank).is_sorted());
    // Both sides of a pair follow each other, and each side begins every other pair.
    let firsts: Vec<Side> = seen
        .iter()
        .filter_map(|one| match one.purpose {
            Purpose::Pair { side, .. } => Some(side),
            _ => None,
        })
        .step_by(2)
        .collect();
    assert!(
        firsts.len() >= 6 && firsts.windows(2).all(|two| two[0] != two[1]),
        "{firsts:?}"
    );
    // Values that are too small for the load are named, and smaller ones not tried.
    let small: Vec<_> = conclusion
        .effects
        .iter()
        .filter(|e| e.factor == "buffer")
        .collect();
    assert!(
        small
            .iter()
            .any(|effect| effect.hopeless && effect.gain.is_none()),
        "{small:?}"
    );
    assert_eq!(
        conclusion.hopeless,
        seen.iter()
            .filter(|s| s.finding == Finding::Hopeless)
            .count()
    );
}

/// Figures of trials that say nothing rank nothing, and are not compared.
#[test]
fn what_tells_nothing_leads_nowhere() {
    let question = question(1);
    let mut seen: Vec<Seen> = Vec::new();
    let end = loop {
        let (purpose, point) = match next(&question, &seen) {
            Step::Measure { purpose, point } => (purpose, point),
            end => break end,
        };
        let finding = match purpose {
            Purpose::Base | Purpose::Pair { .. } => Finding::Score(1.0),
            _ => Finding::Nothing,
        };
        seen.push(Seen {
            purpose,
            point,
            finding,
            seconds: 8.0,
        });
    };
    assert_eq!(end, Step::End(pubgauge_tuning::Ended::NothingBetter));
    let conclusion = conclude(Objective::Cost, &question, &seen);
    assert_eq!(
        (conclusion.best, conclusion.verdict),
        (None, Verdict::NothingFound)
    );
}

/// A default that does not carry the load is told after a few trials.
#[test]
fn a_default_without_a_figure_ends_it() {
    let (seen, conclusion, _) = tune(1, 0.03, |_| None);
    assert!(seen.len() <= 5, "{}", seen.len());
    assert!(matches!(conclusion.verdict, Verdict::CannotTell { .. }));
}

/// A best that did not carry the load in one of its pairs is not called better.
#[test]
fn a_best_that_gives_way_in_a_pair_is_not_better() {
    let question = question(2);
    let mut seen: Vec<Seen> = Vec::new();
    while let Step::Measure { purpose, point } = next(&question, &seen) {
        let finding = match (purpose, planted(&point, 2)) {
            (
                Purpose::Pair {
                    nth: 2,
                    side: Side::Best,
                },
                _,
            )
            | (_, None) => Finding::Hopeless,
            (_, Some(figure)) => Finding::Score(figure.ln()),
        };
        seen.push(Seen {
            purpose,
            point,
            finding,
            seconds: 8.0,
        });
    }
    let conclusion = conclude(Objective::P99, &question, &seen);
    assert!(
        matches!(conclusion.verdict, Verdict::CannotTell { .. }),
        "{conclusion:?}"
    );
}

/// Half of the time gives fewer combinations, and no fewer pairs.
#[test]
fn pairs_have_their_time_in_a_small_budget() {
    for budget_s in [200.0, 400.0, 800.0] {
        let question = Question {
            budget_s,
            ..question(4)
        };
        let mut seen: Vec<Seen> = Vec::new();
        while let Step::Measure { purpose, point } = next(&question, &seen) {
            let finding = match planted(&point, 4) {
                Some(figure) => Finding::Score(figure.ln()),
                None => Finding::Hopeless,
            };
            seen.push(Seen {
                purpose,
                point,
                finding,
                seconds: 8.0,
            });
        }
        let spent: f64 = seen.iter().map(|one| one.seconds).sum();
        assert!(spent <= budget_s + 8.0, "{spent} of {budget_s}");
        let pairs = seen
            .iter()
            .filter(|s| matches!(s.purpose, Purpose::Pair { .. }))
            .count();
        assert!(pairs >= 12, "{pairs} of {budget_s}");
    }
}
