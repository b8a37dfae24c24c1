//! Repeats, points and parts that one side has and another lacks, or that are out of order.

use crate::planted;

use planted::{World, above, cell, claim, found, null, rule, tally};
use pubgauge_claims::Outcome::{CannotTell, DoesNotHold, Holds, InPart, NotApplicable};
use pubgauge_claims::open;
use pubgauge_figures::rule::{Bounds, CellFilter, Claim, ClaimRule, Judge, Needs, Steps};

fn one(rule: ClaimRule) -> Claim {
    claim(vec![rule])
}

fn values(world: &mut World, system: &str, payload: &str, values: &[(u32, f64)]) {
    for (repeat, value) in values {
        world.exactly(system, payload, *repeat, *value);
    }
}

/// The side of the largest mean is the largest, also where it has fewer repeats than the others.
#[test]
fn a_gap_is_that_of_means() {
    let gap = one(ClaimRule {
        along: None,
        gap: true,
        ..rule(&["a", "b"], Judge::Value(Bounds::above(1.5)))
    });
    // Nanoseconds: 5 repeats of 1 ms, 4 of 2 ms.
    let planted = |truth: f64| {
        move |world: &mut World| {
            world.plant("a", "64B", 1e6, 0.02, 5);
            world.plant("b", "64B", truth * 1e6, 0.02, 4);
        }
    };
    found(Holds, &gap, planted(2.0));
    found(Holds, &gap, planted(0.5));
    found(DoesNotHold, &gap, planted(1.2));
    null(&gap, planted(1.5));
}

/// A point in the middle of an axis has no weight in the trend; it must have been measured all the same.
#[test]
fn a_trend_needs_all_its_points() {
    let payload = CellFilter::from([(
        "payload".to_owned(),
        ["64B", "1KiB", "4KiB"].map(String::from).to_vec(),
    )]);
    let steps = Steps {
        tolerance: 0.05,
        ends: Bounds::above(1.0),
        plain: false,
    };
    for judge in [Judge::Flat(0.25), Judge::Rises(steps)] {
        let up = if matches!(judge, Judge::Flat(_)) {
            1.0
        } else {
            2.0
        };
        let rule = one(ClaimRule {
            filter: payload.clone(),
            ..rule(&["a"], judge)
        });
        let mut world = World::new(1);
        world.plant("a", "64B", 1.0, 0.01, 5);
        world.plant("a", "4KiB", up * up, 0.01, 5);
        assert_eq!(world.judge(&rule).outcome, CannotTell);
        world.plant("a", "1KiB", up, 0.01, 5);
        assert_eq!(world.judge(&rule).outcome, Holds);
        world.trials.last_mut().unwrap().verdict = "broken".into();
        assert_eq!(world.judge(&rule).outcome, CannotTell);
    }
}

/// Values of an axis that are numbers are taken in their order, in whichever they are written.
#[test]
fn an_axis_is_in_order() {
    let cross = |payloads: [&str; 3]| {
        one(ClaimRule {
            filter: CellFilter::from([("payload".to_owned(), payloads.map(String::from).to_vec())]),
            ..rule(&["a", "b"], Judge::Cross("512B".into(), "2KiB".into()))
        })
    };
    let mut world = World::new(1);
    for (payload, ratio) in [("64B", 2.0), ("1KiB", 1.0), ("4KiB", 0.5)] {
        world.plant("a", payload, ratio, 0.01, 5);
        world.plant("b", payload, 1.0, 0.01, 5);
    }
    for payloads in [["64B", "1KiB", "4KiB"], ["4KiB", "64B", "1KiB"]] {
        assert_eq!(world.judge(&cross(payloads)).outcome, Holds, "{payloads:?}");
    }
}

/// Curves are compared repeat by repeat by the repeats' numbers.
#[test]
fn a_repeat_is_compared_with_the_same_repeat() {
    let sooner = one(rule(&["a", "b"], Judge::Reaches(0.95)));
    let sizes = ["1B", "2B", "3B", "4B", "5B"];
    let mut world = World::new(1);
    // From the place on the curve is at its largest. a is earlier by one in each repeat, but lacks the first.
    let mut curve = |system: &str, repeat: u32, place: usize| {
        for (at, size) in sizes.iter().enumerate() {
            let value = if at < place { 1.0 } else { 2.0 };
            world.exactly(system, size, repeat, value);
        }
    };
    for repeat in 1..=9 {
        let place = 2 + (repeat as usize) % 2;
        curve("b", repeat, place);
        if repeat > 1 {
            curve("a", repeat, place - 1);
        }
    }
    let told = world.judge(&sooner);
    assert_eq!(told.outcome, Holds, "{told:?}");
    assert!(told.ours.contains("earlier in 8 of 8"), "{}", told.ours);
}

/// Of a share each point counts by itself: it is no harder to lose one than to win one.
#[test]
fn a_share_counts_won_and_lost_points_alike() {
    let share = |sides: [&str; 2]| Claim {
        share: Some(0.5),
        ..one(rule(&sides, above(1.0)))
    };
    // Half of 12 points are won as clearly as the others are lost: neither side has more than half.
    let sizes: Vec<String> = (1..=12).map(|n| format!("{n}B")).collect();
    let planted = |world: &mut World| {
        for (n, size) in sizes.iter().enumerate() {
            let ratio = if n % 2 == 0 { 1.2 } else { 1.0 / 1.2 };
            world.plant("a", size, ratio, 0.1, 5);
            world.plant("b", size, 1.0, 0.1, 5);
        }
    };
    for sides in [["a", "b"], ["b", "a"]] {
        let counts = tally(200, planted, &share(sides));
        let wrong = counts.get("holds").copied().unwrap_or(0);
        assert!(wrong <= 10, "{counts:?}");
    }
    // Trials with counted system calls are slower than those without: not compared in a share, either.
    let mut world = World::new(1);
    planted(&mut world);
    let of_a = world.trials.iter_mut().filter(|t| t.cell.system == "a");
    of_a.for_each(|trial| trial.figures.slowed = true);
    let told = world.judge(&share(["a", "b"]));
    assert_eq!(told.outcome, CannotTell);
    assert!(told.reason.contains("were counted"), "{}", told.reason);
    // The inapplicable one is named.
    let mut parts = claim(vec![
        rule(&["a", "b"], above(0.5)),
        rule(&["a", "b"], above(0.5)),
    ]);
    parts.share = Some(0.5);
    let never = |why: &str| Needs {
        never: Some(why.into()),
        ..Needs::default()
    };
    parts.parts[0].needs = never("no such server");
    let mut world = World::new(1);
    planted(&mut world);
    let told = world.judge(&parts);
    assert_eq!(
        (told.outcome, &*told.reason),
        (InPart, "left out: a: no such server")
    );
    parts.parts[1].needs = never("nor that");
    assert_eq!(world.judge(&parts).outcome, NotApplicable);
}

/// A range that is doubled is doubled also where a value is 0 and has no logarithm.
#[test]
fn a_wide_range_is_wide_for_zero() {
    let below = one(ClaimRule {
        wide: true,
        ..rule(&["a"], Judge::Value(Bounds::below(5.0)))
    });
    let mut world = World::new(1);
    values(&mut world, "a", "64B", &[(1, 7.0), (2, 7.1), (3, 6.9)]);
    values(&mut world, "a", "1KiB", &[(1, 0.0), (2, 0.1), (3, 0.0)]);
    assert_eq!(world.judge(&below).outcome, Holds);
}

/// A filter that lets several flows through does not choose one of them.
#[test]
fn one_flow_is_judged() {
    let of = |flows: &[&str]| {
        let names = flows.iter().map(ToString::to_string).collect();
        one(ClaimRule {
            filter: CellFilter::from([("flow".to_owned(), names)]),
            ..rule(&["a"], Judge::Value(Bounds::above(1.0)))
        })
    };
    let mut world = World::new(1);
    world.plant("a", "64B", 5.0, 0.1, 5);
    assert_eq!(world.judge(&of(&["commands"])).outcome, Holds);
    let told = world.judge(&of(&["commands", "states"]));
    assert_eq!(told.outcome, CannotTell);
    assert!(told.reason.contains("name one"), "{}", told.reason);
}

/// Implementations that differ, but not at the confidence of both: the cells of both are to be measured again.
#[test]
fn implementations_that_may_differ_are_repeated() {
    let mut order = rule(&["a", "b"], above(1.0));
    order.along = None;
    let implementations =
        ["c", "f"].map(|name| CellFilter::from([("system".to_owned(), vec![name.to_owned()])]));
    order.sides[0].alternatives = implementations.to_vec();
    let order = one(order);
    // Means 3 and 2.5 standard errors off, of opposite sides: decided at 95 %, and not at 97.5 %.
    let mut world = World::new(1);
    let five = |mean: f64| -> Vec<(u32, f64)> {
        let noise = [-1.0, -0.5, 0.0, 0.5, 1.0];
        (1..)
            .zip(noise)
            .map(|(repeat, z)| (repeat, (mean + 0.1 * z).exp()))
            .collect()
    };
    values(&mut world, "b", "64B", &five(0.0));
    values(&mut world, "c", "64B", &five(0.125));
    values(&mut world, "f", "64B", &five(-0.125));
    let told = world.judge(&order);
    assert_eq!(told.outcome, CannotTell, "{told:?}");
    let needed = world
        .as_run(|run| open(&order, run))
        .expect("repeats would tell");
    assert!((6..30).contains(&needed.repeats), "{needed:?}");
    for system in ["b", "c", "f"] {
        assert!(
            needed.cells.contains(&cell(system, "64B")),
            "{system}: {needed:?}"
        );
    }
}
