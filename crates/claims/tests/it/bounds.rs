//! Trials that the client limited: what they delivered is *at least so much*.

use crate::planted;

use planted::{World, above, claim, found, null, rule};
use pubgauge_claims::Outcome::{CannotTell, DoesNotHold, Holds};
use pubgauge_figures::rule::{Bounds, ClaimRule, Judge, Steps};

const N: u32 = 5;

/// Repeats of `system` that the client cut off at `reached` of its truth.
fn limited(world: &mut World, system: &str, payload: &str, truth: f64, reached: f64) {
    let first = world.trials.len();
    world.plant(system, payload, truth * reached, 0.03, N);
    for trial in &mut world.trials[first..] {
        trial.verdict = "client-bound".into();
    }
}

/// Values of `a` with `b` at 1, and which of them the client limited.
fn pair(a: f64, limited_a: bool, limited_b: bool) -> impl Fn(&mut World) {
    move |world: &mut World| {
        for (system, truth, is_limited) in [("a", a, limited_a), ("b", 1.0, limited_b)] {
            if is_limited {
                limited(world, system, "64B", truth, 0.8)
            } else {
                world.plant(system, "64B", truth, 0.03, N)
            }
        }
    }
}

#[test]
fn a_lower_bound_decides_where_it_suffices() {
    let order = claim(vec![rule(&["a", "b"], above(1.0))]);
    found(Holds, &order, pair(2.0, true, false));
    // Twice as much, of which the client let through too little to show it.
    found(CannotTell, &order, pair(1.1, true, false));
    // At least as much as the other: the order is the other way round.
    found(DoesNotHold, &order, pair(0.5, false, true));
    found(CannotTell, &order, pair(2.0, false, true));
    found(CannotTell, &order, pair(2.0, true, true));
    null(&order, pair(1.0, true, false));
    null(&order, pair(1.0 / 0.8, true, false));
}

#[test]
fn a_lower_bound_has_no_upper_end() {
    let span = |low, high| {
        let bounds = Bounds { low, high };
        claim(vec![rule(&["a", "b"], Judge::Ratio(bounds))])
    };
    found(CannotTell, &span(1.2, 2.0), pair(1.9, true, false));
    found(DoesNotHold, &span(1.2, 2.0), pair(4.0, true, false));
    let equal = claim(vec![rule(&["a", "b"], Judge::Equal(0.1))]);
    found(CannotTell, &equal, pair(1.25, true, false));
    found(DoesNotHold, &equal, pair(2.0, true, false));
}

#[test]
fn the_words_say_or_more() {
    let mut world = World::new(1);
    pair(2.0, true, false)(&mut world);
    let order = claim(vec![rule(&["a", "b"], above(1.0))]);
    let finding = world.judge(&order);
    assert_eq!(finding.ours, "a/b at 64B: 1.59 (1.52 or more)");
    // More repeats would not tell whether it is below.
    let below = claim(vec![rule(
        &["a", "b"],
        Judge::Ratio(Bounds {
            low: 0.0,
            high: 3.0,
        }),
    )]);
    let finding = world.judge(&below);
    assert_eq!(finding.outcome, CannotTell);
    assert_eq!(finding.repeats_to_tell(), None);
}

#[test]
fn enough_valid_repeats_need_no_bound() {
    let equal = claim(vec![rule(&["a", "b"], Judge::Equal(0.1))]);
    let world = |world: &mut World| {
        limited(world, "a", "64B", 1.0, 0.5);
        world.plant("a", "64B", 1.0, 0.01, N);
        world.plant("b", "64B", 1.0, 0.01, N);
    };
    found(Holds, &equal, world);
}

#[test]
fn a_bound_is_of_deliveries_alone() {
    let latency = ClaimRule {
        figure: "latency.p50".into(),
        ..rule(&["a", "b"], above(1.0))
    };
    found(CannotTell, &claim(vec![latency]), pair(2.0, true, false));
    let mut flow = rule(&["a", "b"], above(1.0));
    flow.filter.insert("flow".into(), vec!["first".into()]);
    found(CannotTell, &claim(vec![flow]), pair(2.0, true, false));
    let curve = |judge| claim(vec![rule(&["a"], judge)]);
    let rising = |world: &mut World| {
        for (payload, truth, reached) in [("64B", 1.0, 1.0), ("128B", 2.0, 1.0), ("256B", 8.0, 0.5)]
        {
            limited(world, "a", payload, truth, reached);
        }
        // Only the last point is a bound.
        for trial in &mut world.trials[..2 * N as usize] {
            trial.verdict = "valid".into();
        }
    };
    let steps = Steps {
        tolerance: 0.05,
        plain: false,
        ends: Bounds::above(1.0),
    };
    found(Holds, &curve(Judge::Rises(steps)), rising);
    found(DoesNotHold, &curve(Judge::Falls(steps)), rising);
    found(DoesNotHold, &curve(Judge::Flat(0.25)), rising);
    let jump = Judge::Jump("128B".into(), "256B".into());
    found(CannotTell, &curve(jump), rising);
}
