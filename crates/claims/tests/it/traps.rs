//! Traps that must not be judged: too little, the wrong trials, differences between implementations; and
//! claims that cannot both hold.

use crate::planted;

use planted::{World, above, claim, rule, side};
use proptest::prelude::*;
use pubgauge_claims::Outcome::{CannotTell, Depends, DoesNotHold, Holds, InPart, NotApplicable};
use pubgauge_figures::rule::{Bounds, ClaimRule, Count, Judge, Needs, Points, Steps};

fn two(truth: f64, repeats: u32) -> World {
    let mut world = World::new(7);
    for payload in ["64B", "128B"] {
        world.plant("a", payload, truth, 0.02, repeats);
        world.plant("b", payload, 1.0, 0.02, repeats);
    }
    world
}

#[test]
fn fewer_than_three_repeats_tell_nothing() {
    let order = claim(vec![rule(&["a", "b"], above(1.0))]);
    let found = two(5.0, 2).judge(&order);
    assert_eq!(found.outcome, CannotTell);
    assert!(
        found
            .reason
            .contains("2 valid repeats, at least 3 are needed"),
        "{}",
        found.reason
    );
    assert_eq!(found.repeats_to_tell(), Some(3));
    assert_eq!(two(5.0, 3).judge(&order).outcome, Holds);
}

#[test]
fn noise_tells_how_many_repeats_would_do() {
    let mut world = World::new(3);
    world.plant("a", "64B", 1.1, 0.2, 5);
    world.plant("b", "64B", 1.0, 0.2, 5);
    let found = world.judge(&claim(vec![rule(&["a", "b"], above(1.0))]));
    assert_eq!(found.outcome, CannotTell);
    let repeats = found.repeats_to_tell().expect("repeats would tell");
    assert!((6..=1000).contains(&repeats), "{repeats}");
    assert!(
        found
            .reason
            .contains(&format!("about {repeats} repeats would tell")),
        "{}",
        found.reason
    );
}

#[test]
fn a_point_that_is_missing_is_named() {
    let mut named = rule(&["a", "b"], above(1.0));
    named
        .filter
        .insert("payload".into(), vec!["64B".into(), "4KiB".into()]);
    let found = two(5.0, 5).judge(&claim(vec![named.clone()]));
    assert_eq!(found.outcome, CannotTell);
    assert!(
        found.reason.contains("a at 4KiB: not measured in this run"),
        "{}",
        found.reason
    );
    // At a scale it is that which leaves it out.
    let mut small = two(5.0, 5);
    small.scale = Some("smoke".into());
    let found = small.judge(&claim(vec![named.clone()]));
    assert_eq!(found.outcome, CannotTell);
    let why = "a at 4KiB: not measured at scale smoke";
    assert!(found.reason.contains(why), "{}", found.reason);
    // One that fails decides all the same.
    assert_eq!(two(0.2, 5).judge(&claim(vec![named])).outcome, DoesNotHold);
    // A system that is missing.
    let found = two(5.0, 5).judge(&claim(vec![rule(&["a", "c"], above(1.0))]));
    assert_eq!(found.outcome, CannotTell);
    assert!(
        found.reason.contains("c at 64B: not measured"),
        "{}",
        found.reason
    );
}

#[test]
fn the_same_size_in_another_unit_is_found() {
    let mut world = two(5.0, 5);
    world.plant("a", "1KiB", 5.0, 0.02, 5);
    world.plant("b", "1KiB", 1.0, 0.02, 5);
    let mut named = rule(&["a", "b"], above(1.0));
    named.filter.insert("payload".into(), vec!["1024B".into()]);
    assert_eq!(world.outcome(named), Holds);
}

#[test]
fn a_side_says_otherwise_than_the_rule() {
    let mut one = rule(&["a", "b"], above(1.0));
    one.filter.insert("system".into(), vec!["a".into()]);
    assert_eq!(two(5.0, 5).outcome(one), Holds);
}

#[test]
fn an_overloaded_trial_is_not_left_out() {
    let order = rule(&["a", "b"], above(1.0));
    let mut world = two(5.0, 8);
    world.trials[0].verdict = "overloaded".into();
    let found = world.judge(&claim(vec![order.clone()]));
    assert_eq!(found.outcome, CannotTell);
    assert!(
        found.reason.contains("1 of 8 repeats overloaded"),
        "{}",
        found.reason
    );
    // Unless the claim is about overload.
    let over = ClaimRule {
        verdicts: vec!["valid".into(), "overloaded".into()],
        ..order.clone()
    };
    assert_eq!(world.outcome(over), Holds);
    // Trials that the client spoilt are left out.
    world.trials[0].verdict = "client-bound".into();
    assert_eq!(world.outcome(order), Holds);
}

/// A claim about the loads that a system carries is not about the others.
#[test]
fn a_cell_that_the_rule_is_not_about_is_left_out() {
    let mut world = two(5.0, 5);
    for trial in world.trials.iter_mut().filter(|t| t.cell.system == "b") {
        trial.figures.value = 0.0;
    }
    let none_lost = |sides: &[&str]| ClaimRule {
        leave_out: vec!["overloaded".into()],
        ..rule(sides, Judge::Count(Count::Exactly(0.0)))
    };
    let lost = world.judge(&claim(vec![none_lost(&["a", "b"])]));
    assert_eq!(lost.outcome, DoesNotHold);
    for trial in world.trials.iter_mut().filter(|t| t.cell.system == "a") {
        trial.verdict = "overloaded".into();
    }
    let left = world.judge(&claim(vec![none_lost(&["a", "b"])]));
    assert_eq!(left.outcome, Holds, "{left:?}");
    assert!(
        left.reason
            .contains("left out: a at 64B: a at 64B: 5 of 5 repeats overloaded"),
        "{}",
        left.reason
    );
    let nothing = world.judge(&claim(vec![none_lost(&["a"])]));
    assert_eq!(nothing.outcome, NotApplicable);
}

#[test]
fn a_filter_that_is_not_clear_is_not_guessed() {
    let loose = ClaimRule {
        along: None,
        ..rule(&["a", "b"], above(1.0))
    };
    let found = two(5.0, 5).judge(&claim(vec![loose]));
    assert_eq!(found.outcome, CannotTell);
    assert!(found.reason.contains("2 cells fit"), "{}", found.reason);
}

#[test]
fn no_ratio_is_taken_of_a_zero() {
    let mut world = two(5.0, 3);
    world.trials[0].figures.value = 0.0;
    let found = world.judge(&claim(vec![rule(&["a", "b"], above(1.0))]));
    assert_eq!(found.outcome, CannotTell);
    let why = "one side is 0 in 1 of 3 repeats: no ratio can be taken";
    assert!(found.reason.contains(why), "{}", found.reason);
}

#[test]
fn implementations_must_agree() {
    let mut both = side("dds");
    both.alternatives = vec![
        side("a").alternatives.remove(0),
        side("b").alternatives.remove(0),
    ];
    let ratio = ClaimRule {
        sides: vec![both, side("c")],
        ..rule(&[], above(1.0))
    };
    let judged = |b: f64| {
        let mut world = two(5.0, 5);
        for trial in world.trials.iter_mut().filter(|t| t.cell.system == "b") {
            trial.figures.value *= b;
        }
        for payload in ["64B", "128B"] {
            world.plant("c", payload, 2.0, 0.02, 5);
        }
        world.judge(&claim(vec![ratio.clone()]))
    };
    assert_eq!(judged(4.0).outcome, Holds);
    let differ = judged(0.5);
    assert_eq!(differ.outcome, Depends);
    assert!(
        differ
            .reason
            .starts_with("holds with a; does not hold with b (dds/c at 64B"),
        "{}",
        differ.reason
    );
}

#[test]
fn parts() {
    let holds = rule(&["a", "b"], above(1.0));
    let fails = rule(&["b", "a"], above(1.0));
    let missing = rule(&["a", "c"], above(1.0));
    let judged = |rules: Vec<ClaimRule>| two(5.0, 5).judge(&claim(rules));
    assert_eq!(judged(vec![holds.clone(), holds.clone()]).outcome, Holds);
    let one_fails = judged(vec![missing.clone(), fails.clone(), holds.clone()]);
    assert_eq!(one_fails.outcome, InPart);
    assert!(
        one_fails.reason.starts_with("holds: c; does not hold: b ("),
        "{}",
        one_fails.reason
    );
    assert_eq!(judged(vec![missing.clone(), fails]).outcome, DoesNotHold);
    assert_eq!(
        judged(vec![holds.clone(), missing.clone()]).outcome,
        CannotTell
    );
    // A part that needs what is not there is left out and named.
    let mut partly = claim(vec![holds.clone(), missing]);
    partly.parts[1].needs = Needs {
        systems: vec!["c".into()],
        ..Needs::default()
    };
    let found = two(5.0, 5).judge(&partly);
    assert_eq!(
        (found.outcome, found.reason.as_str()),
        (InPart, "holds: a; left out: b (the run has no c)")
    );
    let mut wired = claim(vec![holds]);
    wired.needs.network = Some("links of 95 Mbit/s".into());
    let found = two(5.0, 5).judge(&wired);
    assert_eq!(found.outcome, NotApplicable);
    assert!(
        found.reason.contains("it needs links of 95 Mbit/s"),
        "{}",
        found.reason
    );
    let mut linked = two(5.0, 5);
    for system in ["a", "b"] {
        let found = linked.judge(&wired);
        assert_eq!(found.outcome, NotApplicable, "{found:?}");
        linked.on_network(system, "links of 95 Mbit/s");
    }
    assert_eq!(linked.judge(&wired).outcome, Holds);
}

/// A run may have several beds: what a claim needs is asked of the cells that its rules use.
#[test]
fn what_a_claim_needs_is_asked_of_its_own_cells() {
    let links = || Needs {
        network: Some("links of 95 Mbit/s".into()),
        ..Needs::default()
    };
    let mut world = two(5.0, 5);
    world.plant("c", "64B", 1.0, 0.02, 5);
    world.plant("d", "64B", 1.0, 0.02, 5);
    for system in ["a", "b"] {
        world.on_network(system, "links of 95 Mbit/s");
    }
    world.on_network("d", "links of 1 Gbit/s");
    let judged = |sides: &[&str]| {
        let mut claim = claim(vec![rule(sides, above(1.0))]);
        claim.needs = links();
        world.judge(&claim)
    };
    assert_eq!(judged(&["a", "b"]).outcome, Holds);
    for (sides, says) in [
        (["a", "c"], "not all of its cells ran on such a network"),
        (["d", "d"], "its cells have links of 1 Gbit/s"),
    ] {
        let found = judged(&sides);
        assert_eq!(found.outcome, NotApplicable, "{sides:?}");
        assert!(found.reason.contains(says), "{}", found.reason);
    }
    // Cells that were not measured at all are not the network's fault.
    assert_eq!(judged(&["e", "e"]).outcome, CannotTell);
    // Of parts each is asked for itself: without one of them the claim holds in part.
    let mut parts = claim(vec![
        rule(&["a", "b"], above(1.0)),
        rule(&["c", "a"], above(1.0)),
    ]);
    parts.parts[1].needs = links();
    assert_eq!(world.judge(&parts).outcome, InPart);
}

#[test]
fn a_share_leaves_out_parts_that_need_what_is_not_there() {
    let mut world = World::new(1);
    for payload in ["1B", "2B", "3B", "4B", "5B", "6B"] {
        world.plant("a", payload, 3.0, 0.02, 5);
        world.plant("b", payload, 1.0, 0.02, 5);
    }
    let won = rule(&["a", "b"], above(1.0));
    let lost = rule(&["b", "a"], above(1.0));
    let mut share = claim(vec![won, lost]);
    share.share = Some(0.5);
    assert_eq!(world.judge(&share).outcome, CannotTell);
    share.parts[1].needs.systems = vec!["joram".into()];
    let found = world.judge(&share);
    assert_eq!(found.outcome, InPart, "{found:?}");
    assert!(
        found.ours.starts_with("6 of 6 decided points"),
        "{}",
        found.ours
    );
}

/// Claims of which two cannot both hold: K02 and K30, K05 a and K30, K09 and K30, K21 and K22 with K37.
#[derive(Clone, Debug)]
struct Figures {
    /// Of zmq, dds, mqtt at three sizes, three repeats each.
    values: Vec<f64>,
}

fn random() -> impl Strategy<Value = Figures> {
    // Systems mostly apart, so that claims do hold; noise small or large.
    let systems = prop::collection::vec(prop::sample::select(vec![1.0, 1.1, 2.0, 4.0]), 9);
    let noise = prop::collection::vec(-1.0f64..1.0, 27);
    (systems, noise, 0.001f64..0.3).prop_map(|(levels, noise, sd)| {
        let of = |(at, noise): (usize, &f64)| levels[at / 3] * (sd * noise).exp();
        Figures {
            values: noise.iter().enumerate().map(of).collect(),
        }
    })
}

const SIZES: [&str; 3] = ["64B", "512B", "8KiB"];

fn world(figures: &Figures) -> World {
    let mut world = World::new(0);
    let mut values = figures.values.iter();
    for system in ["zmq", "dds", "mqtt"] {
        for size in SIZES {
            for repeat in 1..=3 {
                world.exactly(system, size, repeat, *values.next().expect("27 values"));
            }
        }
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_cannot_both_hold_does_not(figures in random()) {
        let world = world(&figures);
        let holds = |rule: &ClaimRule| world.outcome(rule.clone()) == Holds;
        let k02 = rule(&["zmq", "dds", "mqtt"], above(1.0));
        let k05a = ClaimRule { wide: true, ..rule(&["zmq", "dds"], Judge::Cross("64B".into(), "8KiB".into())) };
        let against = |one: &str, others: &[&str], points| ClaimRule {
            against: others.iter().map(|name| side(name)).collect(),
            points,
            ..rule(&[one], above(1.0))
        };
        let k09 = against("zmq", &["dds", "mqtt"], Points::Every);
        let k30 = against("dds", &["zmq", "mqtt"], Points::Every);
        for other in [&k02, &k05a, &k09] {
            prop_assert!(!(holds(&k30) && holds(other)), "{:?}", figures);
        }
        // K21 and K22 say that throughput falls at both fan-outs, K37 that it rises at one.
        let falls = |system: &str| ClaimRule {
            points: Points::Mean,
            ..rule(&[system, "dds"], Judge::Ratio(Bounds::below(1.0)))
        };
        let (k21, k22) = (falls("zmq"), falls("mqtt"));
        let rises = |system| against(system, &["dds"], Points::Mean);
        prop_assert!(!(holds(&k21) && holds(&k22) && (holds(&rises("zmq")) || holds(&rises("mqtt")))));
    }

    #[test]
    fn a_rule_and_its_opposite(figures in random()) {
        let world = world(&figures);
        let up = rule(&["zmq"], Judge::Rises(Steps {
 tolerance: 0.05,
 ends: Bounds::above(1.0),
 plain: false,
 }));
        let down = rule(&["zmq"], Judge::Falls(Steps {
 tolerance: 0.05,
 ends: Bounds::below(1.0),
 plain: false,
 }));
        let (more, less) = (rule(&["zmq", "dds"], above(1.0)), rule(&["dds", "zmq"], above(1.0)));
        for (one, other) in [(up, down), (more, less)] {
            prop_assert!(world.outcome(one) != Holds || world.outcome(other) != Holds);
        }
    }
}

/// The random figures reach what the cross-checks are about: each claim does hold for some of them.
#[test]
fn each_of_the_claims_can_hold() {
    let order = |levels: [f64; 3]| {
        let values = levels
            .iter()
            .flat_map(|level| (0..9).map(move |at| level * (1.0 + 0.001 * f64::from(at % 3))));
        world(&Figures {
            values: values.collect(),
        })
    };
    let k02 = rule(&["zmq", "dds", "mqtt"], above(1.0));
    assert_eq!(order([4.0, 2.0, 1.0]).outcome(k02.clone()), Holds);
    assert_eq!(order([2.0, 4.0, 1.0]).outcome(k02), DoesNotHold);
    let k30 = ClaimRule {
        against: vec![side("zmq"), side("mqtt")],
        ..rule(&["dds"], above(1.0))
    };
    assert_eq!(order([2.0, 4.0, 1.0]).outcome(k30), Holds);
}

#[test]
fn what_was_slowed_is_not_compared_with_what_was_not() {
    let order = claim(vec![rule(&["a", "b"], above(1.0))]);
    let slowed = |which: &[&str]| {
        let mut world = two(5.0, 5);
        for trial in &mut world.trials {
            trial.figures.slowed = which.contains(&trial.cell.system.as_str());
        }
        world.judge(&order)
    };
    assert_eq!(slowed(&[]).outcome, Holds);
    assert_eq!(slowed(&["a", "b"]).outcome, Holds);
    for one in ["a", "b"] {
        let found = slowed(&[one]);
        assert_eq!(found.outcome, CannotTell);
        assert!(
            found.reason.contains("were counted in some"),
            "{}",
            found.reason
        );
    }
}
