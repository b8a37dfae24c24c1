//! Shares of trials, and the largest step that a system sustains.

use crate::planted;

use planted::{World, above, claim, found, null, rule};
use pubgauge_claims::Outcome::{CannotTell, DoesNotHold, Holds};
use pubgauge_figures::rule::{Bounds, Claim, ClaimRule, Judge, LOSS_FREE, Points, SUSTAINED};

const STEPS: [&str; 5] = ["2", "4", "8", "12", "16"];

/// Three repeats at each step: those above `limit` have this verdict.
fn steps(world: &mut World, system: &str, limit: f64, beyond: &str) {
    for step in STEPS {
        let first = world.trials.len();
        world.plant(system, step, 1.0, 0.1, 3);
        let gives_way = step.parse::<f64>().expect("a number") > limit;
        for trial in world.trials[first..].iter_mut().filter(|_| gives_way) {
            trial.verdict = beyond.into();
        }
    }
}

fn sustains(sides: &[&str], judge: Judge) -> Claim {
    claim(vec![ClaimRule {
        figure: SUSTAINED.into(),
        ..rule(sides, judge)
    }])
}

/// The limits of both lie between steps; only the steps are known of them.
#[test]
fn the_largest_step_that_is_sustained() {
    let order = sustains(&["a", "b"], above(1.0));
    for beyond in ["overloaded", "lossy", "broken"] {
        let limits = |a: f64, b: f64| {
            move |world: &mut World| {
                steps(world, "a", a, beyond);
                steps(world, "b", b, beyond);
            }
        };
        found(Holds, &order, limits(100.0, 9.0));
        found(Holds, &order, limits(12.0, 9.0));
        found(Holds, &order, limits(3.0, 1.0));
        found(DoesNotHold, &order, limits(9.0, 13.0));
        found(DoesNotHold, &order, limits(1.0, 3.0));
        // Between the same two steps, or beyond the last of them: which is larger is not known.
        found(CannotTell, &order, limits(9.0, 11.0));
        found(CannotTell, &order, limits(100.0, 50.0));
        let mut world = World::new(1);
        limits(9.0, 3.0)(&mut world);
        let finding = world.judge(&sustains(&["a"], Judge::Value(Bounds::above(7.0))));
        assert_eq!((finding.outcome, finding.tells), (Holds, None));
        assert_eq!(finding.ours, "a: 9.8 (8 to 12)");
    }
}

/// A step at which the client was the limit, or repeats differ, says nothing.
#[test]
fn a_step_that_does_not_tell_is_passed_over() {
    let mut world = World::new(1);
    steps(&mut world, "a", 9.0, "client-bound");
    let value = |low| sustains(&["a"], Judge::Value(Bounds::above(low)));
    assert_eq!(world.judge(&value(7.0)).outcome, Holds);
    assert_eq!(world.judge(&value(9.0)).outcome, CannotTell);
    // One of three repeats at 8 gave way.
    let mut world = World::new(1);
    steps(&mut world, "a", 9.0, "overloaded");
    let mut at_eight = world.trials.iter_mut().filter(|t| t.cell.axes[0].1 == "8");
    at_eight.next().expect("a trial").verdict = "overloaded".into();
    let finding = world.judge(&value(3.0));
    assert_eq!(
        (finding.outcome, &*finding.ours),
        (Holds, "a: 6.93 (4 to 12)")
    );
    assert_eq!(
        World::new(1).judge(&value(3.0)).outcome,
        CannotTell,
        "without a trial nothing is known"
    );
}

#[test]
fn the_words_name_the_axis() {
    let claim = sustains(&["a", "b"], above(1.0));
    let words = pubgauge_claims::rule_sentence(&claim, &|_, value| value.to_string());
    assert_eq!(words, "largest payload sustained: a > b.");
}

/// Trials of `system` of which this share is free of loss, drawn one by one.
fn lossy(world: &mut World, share: f64, repeats: u32) {
    for step in ["2", "4"] {
        for repeat in 1..=repeats {
            let free = world.noise(1.0) < normal(share);
            world.exactly("a", step, repeat, f64::from(u8::from(free)));
        }
    }
}

/// Below what a standard normal value lies with this probability; for the shares of this test.
fn normal(share: f64) -> f64 {
    match share {
        0.1 => -1.2816,
        0.5 => 0.0,
        0.9 => 1.2816,
        0.0 => f64::NEG_INFINITY,
        _ => f64::INFINITY,
    }
}

fn share_is(bounds: Bounds) -> Claim {
    claim(vec![ClaimRule {
        figure: LOSS_FREE.into(),
        points: Points::Mean,
        ..rule(&["a"], Judge::Value(bounds))
    }])
}

#[test]
fn a_share_of_trials_has_the_interval_of_a_share() {
    let most = share_is(Bounds::above(0.5));
    found(Holds, &most, |w| lossy(w, 1.0, 5));
    found(Holds, &most, |w| lossy(w, 0.9, 20));
    found(DoesNotHold, &most, |w| lossy(w, 0.0, 5));
    found(DoesNotHold, &most, |w| lossy(w, 0.1, 20));
    // Of ten trials that were all free, fewer than nine of ten may be.
    found(CannotTell, &share_is(Bounds::above(0.9)), |w| {
        lossy(w, 1.0, 5)
    });
    null(&most, |w| lossy(w, 0.5, 20));
    null(&share_is(Bounds::below(0.5)), |w| lossy(w, 0.5, 20));
    let mut world = World::new(1);
    lossy(&mut world, 1.0, 5);
    let finding = world.judge(&share_is(Bounds::above(0.9)));
    assert_eq!(finding.ours, "a: 1 (0.722 to 1)");
    // About 20 trials, over two points.
    assert_eq!(finding.repeats_to_tell(), Some(10));
}
