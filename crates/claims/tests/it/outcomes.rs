//! Answers that are neither yes nor no: in part, by the implementation, of a stand-in; and what repeats would tell.

use crate::planted;

use planted::{World, above, claim, found, rule, seldom, side};
use pubgauge_claims::Outcome::{
    CannotTell, Depends, DoesNotHold, Holds, InPart, StandInDoesNotHold, StandInHolds,
    StandInInPart,
};
use pubgauge_figures::rule::{Claim, ClaimRule, Judge, Points, Side};

const SIZES: [&str; 4] = ["64B", "1KiB", "4KiB", "16KiB"];
const N: u32 = 6;

/// Both halves of a sentence: `a` is above `b` at small sizes, and at large ones.
fn two_halves() -> Claim {
    let half = |sizes: [&str; 2]| {
        let mut half = rule(&["a", "b"], above(1.0));
        half.points = Points::Joint;
        let sizes = sizes.map(str::to_owned).to_vec();
        half.filter.insert("payload".into(), sizes);
        half
    };
    let mut both = claim(vec![half([SIZES[0], SIZES[1]]), half([SIZES[2], SIZES[3]])]);
    both.parts[0].name = "small".into();
    both.parts[1].name = "large".into();
    both
}

/// `a` over `b` at small and at large sizes.
fn ratios(small: f64, large: f64, sd: f64) -> impl Fn(&mut World) {
    move |w| {
        for (at, size) in SIZES.iter().enumerate() {
            w.plant("a", size, if at < 2 { small } else { large }, sd, N);
            w.plant("b", size, 1.0, sd, N);
        }
    }
}

#[test]
fn one_half_holds() {
    let both = two_halves();
    found(Holds, &both, ratios(1.5, 1.5, 0.1));
    found(InPart, &both, ratios(1.5, 0.7, 0.1));
    found(DoesNotHold, &both, ratios(0.7, 0.7, 0.1));
    let mut world = World::new(1);
    ratios(1.5, 0.7, 0.1)(&mut world);
    let reason = world.judge(&both).reason;
    assert!(
        reason.starts_with("holds: small; does not hold: large (a/b: "),
        "{reason}"
    );
    // Where one half fails and the other is a tie, nothing is said to hold; where both are, nothing at all.
    seldom(InPart, &both, ratios(1.0, 0.7, 0.1));
    seldom(InPart, &both, ratios(1.0, 1.0, 0.1));
    seldom(Holds, &both, ratios(1.0, 1.5, 0.1));
}

#[test]
fn a_half_that_cannot_be_judged_here() {
    let mut both = two_halves();
    both.parts[1].needs.network = Some("links of 95 Mbit/s".into());
    found(InPart, &both, ratios(1.5, 1.5, 0.1));
    found(DoesNotHold, &both, ratios(0.7, 1.5, 0.1));
    seldom(InPart, &both, ratios(1.0, 1.5, 0.1));
}

/// `dds` is `c` or `f`, `mqtt` is `q0` or `q2`.
fn implementations() -> Claim {
    let both = |name: &str, of: [&str; 2]| Side {
        name: name.into(),
        choice: None,
        alternatives: of
            .map(|system| side(system).alternatives.remove(0))
            .to_vec(),
    };
    claim(vec![ClaimRule {
        sides: vec![both("dds", ["c", "f"]), both("mqtt", ["q0", "q2"])],
        points: Points::Joint,
        ..rule(&[], above(1.0))
    }])
}

fn levels(c: f64, f: f64, q0: f64, q2: f64) -> impl Fn(&mut World) {
    move |w| {
        for (system, level) in [("c", c), ("f", f), ("q0", q0), ("q2", q2)] {
            for size in SIZES {
                w.plant(system, size, level, 0.1, N);
            }
        }
    }
}

#[test]
fn it_depends_on_the_implementation() {
    let order = implementations();
    found(Holds, &order, levels(2.0, 2.0, 1.0, 1.0));
    found(DoesNotHold, &order, levels(1.0, 1.0, 2.0, 2.0));
    found(Depends, &order, levels(2.0, 1.0, 1.4, 0.7));
    let mut world = World::new(1);
    levels(2.0, 1.0, 1.4, 0.7)(&mut world);
    let reason = world.judge(&order).reason;
    assert!(
        reason.starts_with("holds with c + q0, c + q2, f + q2; does not hold with f + q0 ("),
        "{reason}"
    );
    // All the same, or a tie beside what holds: noise makes no difference of implementations.
    seldom(Depends, &order, levels(1.0, 1.0, 1.0, 1.0));
    seldom(Depends, &order, levels(1.4, 1.0, 1.0, 1.0));
    seldom(Holds, &order, levels(1.4, 1.0, 1.0, 1.0));
}

#[test]
fn a_stand_in_says_so() {
    let mut both = two_halves();
    both.stand_in = Some("a stands in for A".into());
    found(StandInHolds, &both, ratios(1.5, 1.5, 0.1));
    found(StandInInPart, &both, ratios(1.5, 0.7, 0.1));
    found(StandInDoesNotHold, &both, ratios(0.7, 0.7, 0.1));
    seldom(StandInHolds, &both, ratios(1.0, 1.0, 0.1));
    let mut world = World::new(1);
    ratios(1.0, 1.0, 0.0)(&mut world);
    assert_eq!(world.judge(&both).outcome, CannotTell);
    let words = pubgauge_claims::rule_sentence(&both, &|_, value| value.to_string());
    assert!(
        words.starts_with("Of a stand-in: a stands in for A. "),
        "{words}"
    );
}

#[test]
fn together_the_points_of_an_axis_decide() {
    let joint = |judge| {
        claim(vec![ClaimRule {
            points: Points::Joint,
            ..rule(&["a", "b"], judge)
        }])
    };
    let at = |ratios: [f64; 4], sd: f64| {
        move |w: &mut World| {
            for (size, ratio) in SIZES.iter().zip(ratios) {
                w.plant("a", size, ratio, sd, N);
                w.plant("b", size, 1.0, sd, N);
            }
        }
    };
    let order = joint(above(1.0));
    // A tie at one point, and noise in which no point could be told.
    found(Holds, &order, at([1.5, 1.5, 1.0, 1.5], 0.1));
    found(Holds, &order, at([1.2; 4], 0.1));
    found(DoesNotHold, &order, at([0.8; 4], 0.1));
    // One point is the other way round: the curve is not above.
    found(DoesNotHold, &order, at([2.0, 2.0, 0.6, 2.0], 0.1));
    seldom(Holds, &order, at([1.0; 4], 0.1));
    seldom(DoesNotHold, &order, at([1.0; 4], 0.1));
    seldom(DoesNotHold, &order, at([1.5, 1.5, 1.0, 1.5], 0.1));
    // About equal, by a margin.
    let equal = joint(Judge::Equal(0.2));
    found(Holds, &equal, at([1.0, 1.05, 0.95, 1.0], 0.08));
    found(DoesNotHold, &equal, at([1.5; 4], 0.1));
    found(DoesNotHold, &equal, at([1.0, 2.0, 0.5, 1.0], 0.05));
    seldom(Holds, &equal, at([1.2; 4], 0.1));
    seldom(Holds, &equal, at([1.0 / 1.2; 4], 0.1));
    seldom(DoesNotHold, &equal, at([1.2; 4], 0.1));
}

#[test]
fn a_crossing_of_noisy_curves() {
    let cross = claim(vec![rule(
        &["a", "b"],
        Judge::Cross("1KiB".into(), "4KiB".into()),
    )]);
    found(Holds, &cross, ratios(1.25, 0.8, 0.1));
    found(DoesNotHold, &cross, ratios(0.8, 1.25, 0.1));
    found(DoesNotHold, &cross, ratios(1.25, 1.25, 0.1));
    seldom(Holds, &cross, ratios(1.0, 0.7, 0.1));
    seldom(Holds, &cross, ratios(1.0, 1.0, 0.1));
    seldom(DoesNotHold, &cross, ratios(1.0, 1.0, 0.1));
}

/// One part would fail after few repeats, others would hold after many: the few tell.
#[test]
fn repeats_are_counted_for_what_decides() {
    let mut world = World::new(3);
    for (size, ratio) in SIZES.iter().zip([1.03, 0.85, 1.03, 1.03]) {
        for (repeat, noise) in (1..).zip([-0.15, -0.1, 0.0, 0.1, 0.15]) {
            world.exactly("a", size, repeat, f64::exp(noise) * ratio);
            world.exactly("b", size, repeat, f64::exp(noise));
        }
    }
    let at = |size: &str| {
        let mut at = rule(&["a", "b"], above(1.0));
        at.filter.insert("payload".into(), vec![size.into()]);
        at
    };
    let alone = |size: &str| world.judge(&claim(vec![at(size)])).repeats_to_tell();
    let (few, many) = (alone("1KiB").expect("few"), alone("64B").expect("many"));
    assert!(few < 20 && many > 100, "{few} {many}");
    let all = world.judge(&claim(SIZES.map(at).to_vec()));
    let told = all.tells.expect("repeats tell");
    assert_eq!(all.outcome, CannotTell);
    assert_eq!(told.outcome, Some(DoesNotHold));
    assert!((few..3 * few).contains(&told.repeats), "{told:?} {few}");
    // Where none would fail all must be told.
    let hold = world.judge(&claim(vec![at("64B"), at("4KiB")]));
    let told = hold.tells.expect("repeats tell");
    assert!(
        told.outcome == Some(Holds) && told.repeats >= many,
        "{told:?}"
    );
}
