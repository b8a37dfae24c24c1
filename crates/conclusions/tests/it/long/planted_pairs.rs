//! Rounds over synthetic trials whose truth is planted: how often equals are told apart, how often a difference
//! is found, and that the decision keeps to its bounds.

use pubgauge_conclusions::compare::{CellOf, ComparisonRule, conclude, next};
use pubgauge_figures::comparison::{Difference, Ended, GuardOutcome, PairComparison};
use pubgauge_figures::{Status, Trial};
use pubgauge_fixtures::TrialBuilder;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

fn question() -> ComparisonRule {
    ComparisonRule {
        precision: Some(0.03),
        margin: 0.05,
        guard: false,
        figures: Vec::new(),
        most: 200,
        seconds: f64::INFINITY,
        shuffled: Some(1),
        ablation: None,
    }
}

fn cell(system: &str) -> CellOf {
    CellOf {
        cell: system.into(),
        system: system.into(),
        settings: "default".into(),
        workload: "w".into(),
        axes: Vec::new(),
    }
}

/// About normal: the sum of twelve.
fn normal(draws: &mut StdRng) -> f64 {
    (0..12).map(|_| draws.random::<f64>()).sum::<f64>() - 6.0
}

fn trial(cell: &CellOf, round: u32, id: usize, status: Status, per_s: f64) -> Trial {
    TrialBuilder::flat_out(per_s, 1.0)
        .id(id as u32)
        .cell(&*cell.cell)
        .repeat(round)
        .status(status)
        .build()
}

/// A run of rounds to its end; `of` makes the trial of a cell in a round.
fn run(
    question: &ComparisonRule,
    cells: &[CellOf],
    mut of: impl FnMut(usize, u32) -> (Status, f64),
) -> (Vec<PairComparison>, Vec<Trial>) {
    let mut trials: Vec<Trial> = Vec::new();
    while let Some((at, round)) = next(question, cells, &trials, trials.len() as f64) {
        let (status, per_s) = of(at, round);
        trials.push(trial(&cells[at], round, trials.len(), status, per_s));
        assert!(trials.len() < 10_000, "no end");
    }
    let found = conclude(question, cells, &trials, trials.len() as f64);
    (found, trials)
}

/// Of 1,000 comparisons with so much noise in each trial and a drift that both of a pair share: how many told
/// a difference, and in how many the interval held the truth.
fn of_1000(noise: f64, change: f64) -> (usize, usize) {
    let cells = [cell("a"), cell("b")];
    let (mut told, mut held) = (0, 0);
    for seed in 0..1000 {
        let mut draws = StdRng::seed_from_u64(seed);
        let mut drift = (0, 1.0);
        let (found, _) = run(&question(), &cells, |at, round| {
            if drift.0 != round {
                drift = (round, (0.1 * normal(&mut draws)).exp());
            }
            let truth = if at == 1 { 1.0 + change } else { 1.0 };
            let own = (noise * normal(&mut draws)).exp();
            (Status::Valid, 1000.0 * truth * own * drift.1)
        });
        let figure = &found[0].figures[0];
        assert_eq!(found[0].ended, Ended::Precision);
        let (low, high) = (figure.low.unwrap(), figure.high.unwrap());
        assert!(((1.0 + high) / (1.0 + low)).sqrt() <= 1.03 + 1e-9);
        told += usize::from(matches!(
            figure.verdict,
            Difference::Better | Difference::Worse
        ));
        held += usize::from((low..=high).contains(&change));
    }
    println!("noise {noise}, change {change}: {told} told apart, {held} held of 1000");
    (told, held)
}

#[test]
fn equals_are_seldom_told_apart() {
    for noise in [0.03, 0.04, 0.05] {
        let (told, held) = of_1000(noise, 0.0);
        assert!(told <= 50, "noise {noise}: {told} of 1000");
        assert!(held >= 945, "noise {noise}: {held} of 1000");
    }
}

#[test]
fn a_difference_of_5_percent_is_found() {
    for noise in [0.03, 0.04, 0.05] {
        for change in [0.05, -0.05] {
            let (told, held) = of_1000(noise, change);
            assert!(told >= 900, "noise {noise}: {told} of 1000");
            assert!(held >= 945, "noise {noise}: {held} of 1000");
        }
    }
}

/// Of 1,000 releases that carry so much more, guarded with a margin of 5 %: those within the margin, those that are
/// worse, and the mean number of pairs.
fn guarded(noise: f64, change: f64) -> (usize, usize, f64) {
    let question = ComparisonRule {
        precision: Some(0.025),
        guard: true,
        ..question()
    };
    let cells = [cell("old"), cell("new")];
    let (mut within, mut worse, mut pairs) = (0, 0, 0);
    for seed in 0..1000 {
        let mut draws = StdRng::seed_from_u64(seed);
        let (found, _) = run(&question, &cells, |at, _| {
            let truth = if at == 1 { 1.0 + change } else { 1.0 };
            (
                Status::Valid,
                1000.0 * truth * (noise * normal(&mut draws)).exp(),
            )
        });
        let outcome = found[0].figures[0].guard;
        within += usize::from(outcome == Some(GuardOutcome::WithinMargin));
        worse += usize::from(outcome == Some(GuardOutcome::Worse));
        pairs += found[0].pairs;
    }
    let pairs = f64::from(pairs) / 1000.0;
    println!(
        "noise {noise}, change {change}: {within} within the margin, {worse} worse of 1000, {pairs} pairs"
    );
    (within, worse, pairs)
}

#[test]
fn a_release_that_is_no_worse_passes_and_one_that_is_does_not() {
    for noise in [0.03, 0.05] {
        // An equal release, and a better one.
        for change in [0.0, 0.05] {
            let (within, worse, _) = guarded(noise, change);
            assert!(
                within >= 950 && worse == 0,
                "{noise}, {change}: {within}, {worse}"
            );
        }
        // Twice the margin.
        let (within, worse, _) = guarded(noise, -0.10);
        assert!(worse >= 950 && within == 0, "{noise}: {within}, {worse}");
        // Just within and just beyond the margin: seldom the wrong answer, mostly none.
        let (_, worse, _) = guarded(noise, -0.046);
        assert!(worse <= 50, "{noise}: {worse} of 1000 blamed");
        let (within, _, _) = guarded(noise, -0.05);
        assert!(within <= 50, "{noise}: {within} of 1000 let through");
    }
}

#[test]
fn spoilt_trials_are_measured_again_within_bounds() {
    let cells = [cell("a"), cell("b")];
    let mut draws = StdRng::seed_from_u64(7);
    // Every third trial is spoilt.
    let mut count = 0;
    let (found, trials) = run(&question(), &cells, |_, _| {
        count += 1;
        let status = if count % 3 == 0 {
            Status::ClientBound
        } else {
            Status::Valid
        };
        (status, 1000.0 * (0.02 * normal(&mut draws)).exp())
    });
    assert_eq!(found[0].ended, Ended::Precision);
    let rounds = trials.iter().map(|t| t.repeat).max().unwrap();
    assert_eq!(found[0].pairs, rounds, "each round was made whole");
    let spoilt = trials
        .iter()
        .filter(|t| t.verdict.status != Status::Valid)
        .count();
    assert_eq!(found[0].not_valid as usize, spoilt);
    assert_eq!(trials.len(), 2 * rounds as usize + spoilt);
    // Rounds follow each other: what is measured again is so in its round.
    assert!(trials.is_sorted_by_key(|t| t.repeat));

    // A client that is always the limit ends it.
    let (found, trials) = run(&question(), &cells, |at, _| match at {
        0 => (Status::Valid, 1000.0),
        _ => (Status::ClientBound, 900.0),
    });
    assert_eq!(found[0].ended, Ended::Client);
    assert_eq!(found[0].figures[0].verdict, Difference::CannotTell);
    // Six rounds, in each of which the spoilt side was measured three times.
    assert_eq!(trials.len(), 6 * 4);
}

#[test]
fn a_system_at_its_end_is_given_up_and_the_others_go_on() {
    let cells = [cell("a"), cell("b"), cell("c")];
    let mut draws = StdRng::seed_from_u64(3);
    let (found, trials) = run(&question(), &cells, |at, _| match at {
        1 => (Status::Lossy, 1000.0),
        _ => (Status::Valid, 1000.0 * (0.01 * normal(&mut draws)).exp()),
    });
    let ended: Vec<Ended> = found.iter().map(|c| c.ended).collect();
    assert_eq!(ended, [Ended::System, Ended::Precision]);
    assert_eq!(trials.iter().filter(|t| t.cell == "b").count(), 1);
    assert!(found[0].figures[0].why.as_ref().unwrap().contains("lossy"));
    assert_eq!(found[1].figures[0].verdict, Difference::Same);
}

#[test]
fn pairs_and_time_are_bounds() {
    let cells = [cell("a"), cell("b")];
    let mut draws = StdRng::seed_from_u64(5);
    let mut noisy = |_: usize, _: u32| (Status::Valid, 1000.0 * (0.5 * normal(&mut draws)).exp());
    let few = ComparisonRule {
        most: 10,
        ..question()
    };
    let (found, trials) = run(&few, &cells, &mut noisy);
    assert_eq!((found[0].ended, trials.len()), (Ended::Budget, 20));
    // Each trial takes a second here, and a round that has begun is finished.
    let short = ComparisonRule {
        seconds: 13.0,
        ..question()
    };
    let (found, trials) = run(&short, &cells, &mut noisy);
    assert_eq!((found[0].ended, trials.len()), (Ended::Budget, 14));
}

#[test]
fn an_ablation_compares_each_change_with_the_base_of_its_system() {
    let with = |system: &str, settings: &str| CellOf {
        settings: settings.into(),
        cell: format!("{system} {settings}"),
        ..cell(system)
    };
    // The base cannot be had on one system.
    let cells = [
        with("a", "base"),
        with("a", "x"),
        with("b", "x"),
        with("b", "y"),
        with("c", "x"),
        with("c", "base"),
    ];
    let question = ComparisonRule {
        ablation: Some("base".into()),
        ..question()
    };
    let found = conclude(&question, &cells, &[], 0.0);
    let pairs: Vec<_> = found
        .iter()
        .map(|c| {
            (
                &c.base.system[..],
                &c.base.settings[..],
                c.ablation.as_deref().unwrap(),
            )
        })
        .collect();
    assert_eq!(pairs, [("a", "base", "x"), ("c", "base", "x")]);
}

/// Whatever was cut off goes on as if it had not been.
#[test]
fn what_is_next_follows_from_what_is_stored() {
    let cells = [cell("a"), cell("b"), cell("c")];
    let mut draws = StdRng::seed_from_u64(11);
    let (found, trials) = run(&question(), &cells, |_, _| {
        (Status::Valid, 1000.0 * (0.03 * normal(&mut draws)).exp())
    });
    for cut in 0..trials.len() {
        let (at, round) = next(&question(), &cells, &trials[..cut], 0.0).unwrap();
        assert_eq!(
            (&cells[at].cell, round),
            (&trials[cut].cell, trials[cut].repeat)
        );
    }
    assert_eq!(found, conclude(&question(), &cells, &trials, 0.0));
    // Systems take turns in being first.
    let first = |at: &str| {
        (1..=6)
            .filter(|r| trials.iter().find(|t| t.repeat == *r).unwrap().cell == at)
            .count()
    };
    assert!(first("a") < 6 && first("b") < 6, "drawn in each round");
}
