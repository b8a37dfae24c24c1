//! Judges over several sides and over the seconds of a trial, and parts of which not all must hold, over planted
//! data.

use crate::planted;

use planted::{World, above, claim, found, null, rule, side};
use pubgauge_claims::Outcome::{CannotTell, Depends, DoesNotHold, Holds};
use pubgauge_figures::rule::{
    Bounds, CellFilter, Claim, ClaimPart, ClaimRule, Judge, Needs, Points, RuleGroup, Side, Steps,
};

const SIZES: [&str; 4] = ["64B", "1KiB", "4KiB", "16KiB"];
const N: u32 = 8;

fn one(rule: ClaimRule) -> Claim {
    claim(vec![rule])
}

fn steps(tolerance: f64, plain: bool) -> Steps {
    Steps {
        tolerance,
        ends: if plain {
            Bounds::above(0.0)
        } else {
            Bounds::below(1.0)
        },
        plain,
    }
}

/// Each system's values at each size.
fn levels(world: &mut World, sd: f64, of: &[(&str, [f64; 4])]) {
    for (system, levels) in of {
        for (size, level) in SIZES.iter().zip(levels) {
            world.plant(system, size, *level, sd, N);
        }
    }
}

/// The systems with the largest and the smallest value need not be the same at all points.
#[test]
fn the_gap_between_the_largest_and_the_smallest() {
    let falls = one(ClaimRule {
        gap: true,
        ..rule(&["a", "b", "c", "d"], Judge::Falls(steps(0.0, false)))
    });
    found(Holds, &falls, |w| {
        let b = [100.0, 300.0, 110.0, 100.0];
        levels(
            w,
            0.1,
            &[
                ("a", [800.0, 200.0, 100.0, 99.0]),
                ("b", b),
                ("c", [90.0, 90.0, 60.0, 70.0]),
                ("d", [10.0, 20.0, 40.0, 95.0]),
            ],
        );
    });
    found(DoesNotHold, &falls, |w| {
        let d = [90.0, 50.0, 20.0, 5.0];
        levels(
            w,
            0.1,
            &[
                ("a", [100.0; 4]),
                ("b", [95.0; 4]),
                ("c", [80.0; 4]),
                ("d", d),
            ],
        );
    });
    // A gap that is the same everywhere, with noise only at the first point: no gap that noise opens, no fall.
    null(&falls, |w| {
        for system in ["a", "b", "c", "d"] {
            for (at, size) in SIZES.iter().enumerate() {
                w.plant(system, size, 100.0, if at == 0 { 0.2 } else { 0.02 }, N);
            }
        }
    });
    // A plateau is no step back.
    found(Holds, &falls, |w| {
        let (a, d) = ([80.0, 40.0, 20.0, 20.0], [10.0; 4]);
        levels(
            w,
            0.1,
            &[("a", a), ("b", [15.0; 4]), ("c", [12.0; 4]), ("d", d)],
        );
    });
    // Against a bound.
    let bound = one(ClaimRule {
        gap: true,
        along: None,
        filter: CellFilter::from([("payload".into(), vec!["64B".into()])]),
        ..rule(&["a", "b", "c"], Judge::Value(Bounds::above(3.0)))
    });
    let apart = |gap: f64| {
        move |w: &mut World| levels(w, 0.1, &[("b", [gap; 4]), ("a", [1.0; 4]), ("c", [1.2; 4])])
    };
    found(Holds, &bound, apart(4.5));
    found(DoesNotHold, &bound, apart(2.0));
    null(&bound, apart(3.0));
}

#[test]
fn the_gap_between_limits() {
    let gap = |bounds| {
        let mut world = World::new(1);
        world.limit("a", 90.0, 100.0);
        world.limit("b", 9.0, 10.0);
        world.limit("c", 50.0, 60.0);
        world.outcome(ClaimRule {
            figure: "limit".into(),
            along: None,
            gap: true,
            ..rule(&["b", "c", "a"], Judge::Value(bounds))
        })
    };
    assert_eq!(gap(Bounds::above(8.5)), Holds);
    assert_eq!(gap(Bounds::above(10.0)), CannotTell);
    assert_eq!(gap(Bounds::above(12.0)), DoesNotHold);
}

#[test]
fn differences_that_rise() {
    let rises = one(ClaimRule {
        against: vec![side("b")],
        ..rule(&["a"], Judge::Rises(steps(0.0, true)))
    });
    let with = |differences: [f64; 4]| {
        move |w: &mut World| {
            let base = [30.0, 40.0, 80.0, 200.0];
            let a = std::array::from_fn(|at| base[at] + differences[at]);
            levels(w, 0.02, &[("a", a), ("b", base)]);
        }
    };
    // The ratio falls while the difference rises.
    found(Holds, &rises, with([-10.0, 5.0, 20.0, 60.0]));
    found(DoesNotHold, &rises, with([40.0, 20.0, 5.0, -40.0]));
    null(&rises, with([5.0, 5.0, 5.0, 5.0]));
    found(Holds, &rises, with([1.0, 10.0, 10.0, 60.0]));
    found(DoesNotHold, &rises, with([1.0, 30.0, 10.0, 90.0]));
    // A tolerance in the figure's unit.
    let tolerant = one(ClaimRule {
        against: vec![side("b")],
        ..rule(&["a"], Judge::Rises(steps(15.0, true)))
    });
    found(Holds, &tolerant, with([1.0, 20.0, 10.0, 60.0]));
}

#[test]
fn where_a_share_of_the_maximum_is_reached() {
    let earlier = one(rule(&["a", "b"], Judge::Reaches(0.95)));
    let (early, late) = ([20.0, 100.0, 101.0, 100.0], [20.0, 40.0, 70.0, 100.0]);
    found(Holds, &earlier, |w| {
        levels(w, 0.01, &[("a", early), ("b", late)])
    });
    found(DoesNotHold, &earlier, |w| {
        levels(w, 0.01, &[("a", late), ("b", early)])
    });
    // That curve, so noisy that the place is one of three.
    let flat = [20.0, 100.0, 100.0, 100.0];
    null(&earlier, |w| levels(w, 0.1, &[("a", flat), ("b", flat)]));
    found(CannotTell, &earlier, |w| {
        levels(w, 0.01, &[("a", early), ("b", early)])
    });
    // Four of four may be chance: one in 16.
    let mut world = World::new(1);
    for (system, levels) in [("a", early), ("b", late)] {
        for (size, level) in SIZES.iter().zip(levels) {
            world.plant(system, size, level, 0.01, 4);
        }
    }
    let told = world.judge(&earlier);
    assert_eq!(
        (told.outcome, told.repeats_to_tell()),
        (CannotTell, Some(6)),
        "{told:?}"
    );
    assert!(
        told.ours
            .contains("a at 1KiB, 1KiB, 1KiB, 1KiB; b at 16KiB"),
        "{}",
        told.ours
    );
}

/// Repeats of `system` with records of a mean that goes from the first to the second value.
fn records(w: &mut World, system: &str, (from, to): (f64, f64), sd: f64, count: usize) {
    for repeat in 1..=N {
        w.exactly(system, "64B", repeat, 1.0);
        let step = |at: usize| from + (to - from) * at as f64 / (count - 1) as f64;
        let level = w.noise(0.1).exp();
        let windows = (0..count).map(|at| level * step(at) * w.noise(sd).exp());
        let windows = windows.collect();
        let last = w.trials.last_mut().expect("just planted");
        last.figures.windows = windows;
    }
}

#[test]
fn the_last_quarter_over_the_first() {
    let grows = one(ClaimRule {
        figure: "latency.p50.growth".into(),
        along: None,
        ..rule(&["a"], Judge::Value(Bounds::above(1.0)))
    });
    let from_to = |to: f64| move |w: &mut World| records(w, "a", (100.0, to), 0.1, 20);
    found(Holds, &grows, from_to(150.0));
    found(DoesNotHold, &grows, from_to(70.0));
    null(&grows, from_to(100.0));
    // Fewer than 8 records have no quarters.
    found(CannotTell, &grows, |w| records(w, "a", (1.0, 2.0), 0.0, 7));
}

#[test]
fn coefficients_of_variation() {
    let steadier = one(ClaimRule {
        figure: "delivered-rate.cv".into(),
        along: None,
        ..rule(&["a", "b"], Judge::Ratio(Bounds::below(1.0)))
    });
    let of = |a: f64, b: f64| {
        move |w: &mut World| {
            // Ten times the level, so that plain deviations would say the opposite.
            records(w, "a", (1000.0, 1000.0), a, 10);
            records(w, "b", (100.0, 100.0), b, 10);
        }
    };
    found(Holds, &steadier, of(0.03, 0.1));
    found(DoesNotHold, &steadier, of(0.1, 0.03));
    null(&steadier, of(0.05, 0.05));
}

fn part(name: &str, rule: ClaimRule) -> ClaimPart {
    ClaimPart {
        name: name.into(),
        rule: Some(rule),
        ..ClaimPart::default()
    }
}

fn at(size: &str) -> ClaimPart {
    let mut order = rule(&["a", "b"], above(1.0));
    order.filter.insert("payload".into(), vec![size.into()]);
    part(size, order)
}

fn group(least: Option<usize>, parts: Vec<ClaimPart>) -> Claim {
    Claim {
        id: "T01".into(),
        parts: vec![ClaimPart {
            group: Some(RuleGroup { least, parts }),
            ..ClaimPart::default()
        }],
        ..Claim::default()
    }
}

fn won(ratios: [f64; 4]) -> impl Fn(&mut World) {
    move |w| levels(w, 0.1, &[("a", ratios), ("b", [1.0; 4])])
}

#[test]
fn some_parts_suffice() {
    let any = group(Some(1), SIZES.map(at).to_vec());
    found(Holds, &any, won([0.7, 0.7, 1.4, 0.7]));
    found(DoesNotHold, &any, won([0.7; 4]));
    null(&any, won([1.0; 4]));
    let two = group(Some(2), SIZES.map(at).to_vec());
    found(Holds, &two, won([1.4, 0.7, 1.4, 0.7]));
    found(DoesNotHold, &two, won([0.6, 0.6, 1.4, 0.6]));
    null(&two, won([2.0, 1.0, 1.0, 1.0]));
    // Alternatives of several parts each.
    let both = |sizes: [&str; 2]| ClaimPart {
        name: sizes.join(" and "),
        group: Some(RuleGroup {
            least: None,
            parts: sizes.map(at).to_vec(),
        }),
        ..ClaimPart::default()
    };
    let nested = group(
        Some(1),
        vec![both(["64B", "1KiB"]), both(["4KiB", "16KiB"])],
    );
    found(Holds, &nested, won([1.4, 0.7, 1.4, 1.4]));
    found(DoesNotHold, &nested, won([1.4, 0.6, 0.6, 1.4]));
    null(&nested, won([1.0, 2.0, 2.0, 1.0]));
}

/// Points that are left out could have held: where they would decide, nobody can tell.
#[test]
fn a_part_that_is_left_out_may_have_held() {
    let mut parts = SIZES[..3].iter().map(|size| at(size)).collect::<Vec<_>>();
    parts[2].needs = Needs {
        network: Some("links of 95 Mbit/s".into()),
        ..Needs::default()
    };
    let judged = |least, ratios: [f64; 4]| {
        let mut world = World::new(3);
        won(ratios)(&mut world);
        world.judge(&group(Some(least), parts.clone()))
    };
    let told = judged(2, [2.0, 0.5, 1.0, 1.0]);
    assert_eq!(told.outcome, CannotTell);
    assert!(told.reason.contains("1 of 3 hold"), "{}", told.reason);
    assert!(
        told.reason.contains("4KiB: not applicable: it needs links"),
        "{}",
        told.reason
    );
    assert_eq!(judged(2, [2.0, 2.0, 1.0, 1.0]).outcome, Holds);
    assert_eq!(judged(2, [0.5, 0.5, 1.0, 1.0]).outcome, DoesNotHold);
    assert_eq!(judged(1, [0.5, 0.5, 1.0, 1.0]).outcome, CannotTell);
    assert_eq!(judged(3, [2.0, 2.0, 1.0, 1.0]).outcome, CannotTell);
    assert_eq!(judged(3, [2.0, 0.5, 1.0, 1.0]).outcome, DoesNotHold);
    // Where all must hold, too.
    let mut world = World::new(3);
    won([2.0, 2.0, 1.0, 1.0])(&mut world);
    let whole = ClaimPart {
        group: Some(RuleGroup {
            least: None,
            parts: parts.clone(),
        }),
        ..ClaimPart::default()
    };
    let told = world.judge(&group(Some(1), vec![whole]));
    assert_eq!(told.outcome, CannotTell, "{told:?}");
    assert!(told.reason.contains("left out: 4KiB"), "{}", told.reason);
}

/// Both sides of a pair are the same implementation: other pairs would say something else.
#[test]
fn one_implementation_for_all_sides() {
    let of = |name: &str, size: &str, choice: Option<&str>| Side {
        name: name.into(),
        choice: choice.map(str::to_owned),
        alternatives: ["c", "f"]
            .map(|system| {
                let cell = [("system", system), ("payload", size)];
                CellFilter::from(cell.map(|(key, value)| (key.into(), vec![value.into()])))
            })
            .to_vec(),
    };
    let pair = |choice| {
        one(ClaimRule {
            along: None,
            sides: vec![of("multicast", "1KiB", choice), of("base", "64B", choice)],
            ..rule(&[], above(1.0))
        })
    };
    let plant = |w: &mut World| {
        levels(
            w,
            0.05,
            &[("c", [1.0, 2.0, 1.0, 1.0]), ("f", [5.0, 10.0, 1.0, 1.0])],
        )
    };
    found(Holds, &pair(Some("dds")), plant);
    found(Depends, &pair(None), plant);
    let mut world = World::new(1);
    plant(&mut world);
    let told = world.judge(&pair(Some("dds"))).ours;
    assert!(told.starts_with("c: ") && told.contains("; f: "), "{told}");
}

#[test]
fn ranges_of_values() {
    let order = |values: &str| {
        let mut order = rule(&["a", "b"], above(1.0));
        order.filter.insert("payload".into(), vec![values.into()]);
        one(order)
    };
    let small = won([1.5, 1.5, 0.7, 0.7]);
    found(Holds, &order("..1KiB"), &small);
    found(DoesNotHold, &order("1KiB..4KiB"), &small);
    found(DoesNotHold, &order("4KiB.."), &small);
    // Nothing of it was measured.
    found(CannotTell, &order("32KiB.."), &small);
    // Points in a range are those of the run, in rising order.
    let mean = ClaimRule {
        points: Points::Mean,
        ..rule(&["a", "b"], above(1.0))
    };
    found(Holds, &one(mean), won([2.0, 2.0, 0.9, 0.9]));
}

/// The steps of a curve have an order, not a distance: an axis of names has them too.
#[test]
fn spreads_over_an_axis_of_names() {
    let names = ["calm", "busy", "busier", "full"];
    let mut spread = rule(&["a", "b"], Judge::Spread(Bounds::above(1.0)));
    let filter = names.map(str::to_owned).to_vec();
    spread.filter.insert("payload".into(), filter);
    let plant = |a: [f64; 4]| {
        move |w: &mut World| {
            for (system, levels) in [("a", a), ("b", [100.0, 101.0, 99.0, 100.0])] {
                for (name, level) in names.iter().zip(levels) {
                    w.plant(system, name, level, 0.02, N);
                }
            }
        }
    };
    found(
        Holds,
        &one(spread.clone()),
        plant([100.0, 200.0, 90.0, 300.0]),
    );
    null(&one(spread.clone()), plant([100.0, 101.0, 99.0, 100.0]));
    // A slope has none there.
    let slope = ClaimRule {
        judge: Judge::Slope { linear: false },
        ..spread
    };
    found(CannotTell, &one(slope), plant([100.0, 200.0, 300.0, 400.0]));
}

/// Of a cell that could not be measured nobody can tell, and the reason is that of the run; a point of an axis is not
/// left out for that.
#[test]
fn cells_that_could_not_be_measured() {
    let above = one(rule(&["a", "b"], above(1.0)));
    let plant = |world: &mut World| {
        for size in &SIZES[..3] {
            world.plant("a", size, 200.0, 0.01, N);
            world.plant("b", size, 100.0, 0.01, N);
        }
    };
    let mut world = World::new(1);
    plant(&mut world);
    assert_eq!(world.judge(&above).outcome, Holds);
    world.plant("a", "16KiB", 200.0, 0.01, N);
    world.absent("b", "16KiB", "the search found at least 9");
    let finding = world.judge(&above);
    assert_eq!(finding.outcome, CannotTell, "{finding:?}");
    assert!(
        finding
            .reason
            .contains("b at 16KiB: the search found at least 9"),
        "{}",
        finding.reason
    );
    // Without any trial at the point, too.
    let mut world = World::new(1);
    plant(&mut world);
    world.absent("b", "16KiB", "the search found at least 9");
    assert_eq!(world.judge(&above).outcome, CannotTell);
}
