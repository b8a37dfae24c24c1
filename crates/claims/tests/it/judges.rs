//! Each judge over planted data: what holds is found, what does not hold is found, a null is not taken
//! for the truth.

use crate::planted;

use planted::{World, above, claim, found, null, rule, seldom, tally};
use pubgauge_claims::Finding;
use pubgauge_claims::Outcome::{CannotTell, DoesNotHold, Holds};
use pubgauge_claims::several::all_hold;
use pubgauge_figures::rule::{BLOCK, Bounds, Claim, ClaimRule, Count, Judge, Points, Steps};

const SIZES: [&str; 5] = ["32B", "64B", "128B", "256B", "512B"];
const ALL: [&str; 9] = [
    "32B", "64B", "128B", "256B", "512B", "1KiB", "2KiB", "4KiB", "8KiB",
];
const N: u32 = 8;

fn one(rule: ClaimRule) -> Claim {
    claim(vec![rule])
}

/// Each system with a truth for each size.
fn curves(world: &mut World, sizes: &[&str], sd: f64, truths: &[(&str, &dyn Fn(usize) -> f64)]) {
    for (system, truth) in truths {
        for (at, size) in sizes.iter().enumerate() {
            world.plant(system, size, truth(at), sd, N);
        }
    }
}

#[test]
fn order_at_every_point() {
    let order = one(rule(&["a", "b", "c"], above(1.0)));
    let flat = |level: f64| move |_: usize| level;
    found(Holds, &order, |w| {
        curves(
            w,
            &SIZES,
            0.1,
            &[("a", &flat(3.0)), ("b", &flat(2.0)), ("c", &flat(1.3))],
        )
    });
    found(DoesNotHold, &order, |w| {
        curves(
            w,
            &SIZES,
            0.1,
            &[("a", &flat(1.3)), ("b", &flat(2.0)), ("c", &flat(1.0))],
        )
    });
    // One tie among clear orders.
    null(&order, |w| {
        let tie_at_two = |at: usize| if at == 2 { 2.0 } else { 3.0 };
        curves(
            w,
            &SIZES,
            0.1,
            &[("a", &tie_at_two), ("b", &flat(2.0)), ("c", &flat(1.3))],
        )
    });
    // Two systems that are the same are not contradicted either: in at most 5 of 100.
    let equal = one(rule(&["a", "b"], above(1.0)));
    let counts = tally(
        400,
        |w| curves(w, &SIZES, 0.1, &[("a", &flat(1.0)), ("b", &flat(1.0))]),
        &equal,
    );
    assert!(counts["cannot tell"] >= 380, "{counts:?}");
}

#[test]
fn some_point_and_the_mean() {
    let some = |points| {
        one(ClaimRule {
            points,
            ..rule(&["a", "b"], above(1.0))
        })
    };
    let flat = |level: f64| move |_: usize| level;
    let at_two = |at: usize| if at == 2 { 1.5 } else { 0.8 };
    found(Holds, &some(Points::Some), |w| {
        curves(w, &SIZES, 0.1, &[("a", &at_two), ("b", &flat(1.0))])
    });
    found(DoesNotHold, &some(Points::Some), |w| {
        curves(w, &SIZES, 0.1, &[("a", &flat(0.7)), ("b", &flat(1.0))])
    });
    null(&some(Points::Some), |w| {
        curves(w, &SIZES, 0.1, &[("a", &flat(1.0)), ("b", &flat(1.0))])
    });
    let mixed = |at: usize| [0.9, 1.2, 1.3, 1.4, 1.5][at];
    found(Holds, &some(Points::Mean), |w| {
        curves(w, &SIZES, 0.1, &[("a", &mixed), ("b", &flat(1.0))])
    });
    null(&some(Points::Mean), |w| {
        curves(w, &SIZES, 0.1, &[("a", &flat(1.0)), ("b", &flat(1.0))])
    });
}

#[test]
fn span_strict_and_wide() {
    let span = |wide| {
        one(ClaimRule {
            wide,
            ..rule(
                &["a", "b"],
                Judge::Ratio(Bounds {
                    low: 1.2,
                    high: 2.1,
                }),
            )
        })
    };
    let flat = |level: f64| move |_: usize| level;
    found(Holds, &span(false), |w| {
        curves(w, &SIZES, 0.05, &[("a", &flat(1.6)), ("b", &flat(1.0))])
    });
    found(DoesNotHold, &span(false), |w| {
        curves(w, &SIZES, 0.05, &[("a", &flat(3.0)), ("b", &flat(1.0))])
    });
    found(Holds, &span(true), |w| {
        curves(w, &SIZES, 0.05, &[("a", &flat(3.0)), ("b", &flat(1.0))])
    });
    // Wide stays on its side of 1.
    found(DoesNotHold, &span(true), |w| {
        curves(w, &SIZES, 0.05, &[("a", &flat(0.8)), ("b", &flat(1.0))])
    });
    null(&span(false), |w| {
        curves(w, &SIZES, 0.05, &[("a", &flat(2.1)), ("b", &flat(1.0))])
    });
}

#[test]
fn equal_and_flat() {
    let equal = one(rule(&["a", "b"], Judge::Equal(0.1)));
    let flat = |level: f64| move |_: usize| level;
    found(Holds, &equal, |w| {
        curves(w, &SIZES, 0.02, &[("a", &flat(1.02)), ("b", &flat(1.0))])
    });
    found(DoesNotHold, &equal, |w| {
        curves(w, &SIZES, 0.02, &[("a", &flat(1.2)), ("b", &flat(1.0))])
    });
    null(&equal, |w| {
        curves(w, &SIZES, 0.02, &[("a", &flat(1.1)), ("b", &flat(1.0))])
    });
    let level = one(rule(&["a"], Judge::Flat(0.25)));
    found(Holds, &level, |w| {
        curves(w, &SIZES, 0.05, &[("a", &flat(7.0))])
    });
    let step = |at: usize| if at == 4 { 2.0 } else { 1.0 };
    found(DoesNotHold, &level, |w| {
        curves(w, &SIZES, 0.05, &[("a", &step)])
    });
    // A trend that the points alone would not show, and noise that is none.
    let drift = |at: usize| 2.2f64.powf(at as f64 / 8.0);
    found(DoesNotHold, &level, |w| {
        curves(w, &ALL, 0.15, &[("a", &drift)])
    });
    seldom(DoesNotHold, &level, |w| {
        curves(w, &ALL, 0.15, &[("a", &flat(7.0))])
    });
    // There and back.
    let hump = |at: usize| [1.0, 1.0, 2.0, 1.0, 1.0][at];
    found(DoesNotHold, &level, |w| {
        curves(w, &SIZES, 0.05, &[("a", &hump)])
    });
    // One point just at the tolerance: x over the mean of x, 1, 1, 1, 1 is x^(4/5).
    let edge = |at: usize| if at == 4 { 1.25f64.powf(1.25) } else { 1.0 };
    null(&level, |w| curves(w, &SIZES, 0.05, &[("a", &edge)]));
}

#[test]
fn rises_and_falls() {
    let rises = one(rule(
        &["a"],
        Judge::Rises(Steps {
            tolerance: 0.05,
            ends: Bounds::above(1.0),
            plain: false,
        }),
    ));
    let up = |at: usize| 1.5f64.powi(at as i32);
    let down = |at: usize| 1.5f64.powi(-(at as i32));
    let plateau = |at: usize| [1.0, 2.0, 4.0, 4.0, 4.0][at];
    found(Holds, &rises, |w| curves(w, &SIZES, 0.1, &[("a", &up)]));
    found(Holds, &rises, |w| {
        curves(w, &SIZES, 0.01, &[("a", &plateau)])
    });
    found(DoesNotHold, &rises, |w| {
        curves(w, &SIZES, 0.1, &[("a", &down)])
    });
    let dent = |at: usize| [1.0, 2.0, 1.4, 4.0, 8.0][at];
    found(DoesNotHold, &rises, |w| {
        curves(w, &SIZES, 0.05, &[("a", &dent)])
    });
    null(&rises, |w| curves(w, &SIZES, 0.01, &[("a", &|_| 1.0)]));
    // A step back by exactly the tolerance contradicts no rise.
    let back = |at: usize| [1.0, 2.0, 2.0 / 1.05, 4.0, 8.0][at];
    let back = |w: &mut World| curves(w, &SIZES, 0.02, &[("a", &back)]);
    found(Holds, &rises, back);
    // Many points of which none could be shown to rise by itself.
    let slow = |at: usize| 1.04f64.powi(at as i32);
    found(Holds, &rises, |w| curves(w, &ALL, 0.08, &[("a", &slow)]));
    // One step late in the curve, which its ends alone do not show.
    let late = |at: usize| if at < 8 { 1.0 } else { 1.3 };
    found(Holds, &rises, |w| curves(w, &ALL, 0.08, &[("a", &late)]));
    // Noise is no trend, either way.
    seldom(DoesNotHold, &rises, |w| {
        curves(w, &ALL, 0.2, &[("a", &|_| 1.0)])
    });
    let falls = one(rule(
        &["a"],
        Judge::Falls(Steps {
            tolerance: 0.05,
            ends: Bounds::below(0.9),
            plain: false,
        }),
    ));
    found(Holds, &falls, |w| curves(w, &SIZES, 0.1, &[("a", &down)]));
    found(DoesNotHold, &falls, |w| {
        curves(w, &SIZES, 0.1, &[("a", &up)])
    });
    null(&falls, |w| {
        curves(
            w,
            &SIZES,
            0.01,
            &[("a", &|at| 0.9f64.powf(at as f64 / 4.0))],
        )
    });
    // A ratio of sides over the axis.
    let mut ratio = rule(
        &["a"],
        Judge::Rises(Steps {
            tolerance: 0.0,
            ends: Bounds::above(1.0),
            plain: false,
        }),
    );
    ratio.against = vec![planted::side("b")];
    found(Holds, &one(ratio.clone()), |w| {
        curves(w, &SIZES, 0.05, &[("a", &up), ("b", &|_| 3.0)])
    });
    null(&one(ratio), |w| {
        curves(w, &SIZES, 0.05, &[("a", &up), ("b", &up)])
    });
}

#[test]
fn crossing() {
    let cross = |wide| {
        one(ClaimRule {
            wide,
            ..rule(&["a", "b"], Judge::Cross("512B".into(), "2KiB".into()))
        })
    };
    // a over b: above 1 up to 512 B, 1 at 1 KiB, below 1 from 2 KiB on.
    let at_1k = |at: usize| [2.0, 1.9, 1.8, 1.6, 1.4, 1.0, 0.7, 0.6, 0.5][at];
    let early = |at: usize| [2.0, 0.8, 0.7, 0.7, 0.6, 0.6, 0.6, 0.6, 0.5][at];
    let flat = |level: f64| move |_: usize| level;
    for wide in [false, true] {
        found(Holds, &cross(wide), |w| {
            curves(w, &ALL, 0.1, &[("a", &at_1k), ("b", &flat(1.0))])
        });
        found(DoesNotHold, &cross(wide), |w| {
            curves(w, &ALL, 0.1, &[("a", &flat(1.5)), ("b", &flat(1.0))])
        });
        found(DoesNotHold, &cross(wide), |w| {
            curves(w, &ALL, 0.1, &[("a", &flat(1.0)), ("b", &at_1k)])
        });
        null(&cross(wide), |w| {
            curves(w, &ALL, 0.1, &[("a", &flat(1.0)), ("b", &flat(1.0))])
        });
    }
    found(DoesNotHold, &cross(false), |w| {
        curves(w, &ALL, 0.1, &[("a", &early), ("b", &flat(1.0))])
    });
    found(Holds, &cross(true), |w| {
        curves(w, &ALL, 0.1, &[("a", &early), ("b", &flat(1.0))])
    });
    // There and back again is no crossing.
    let twice = |at: usize| [2.0, 0.5, 0.5, 2.0, 2.0, 2.0, 0.5, 0.5, 0.5][at];
    found(CannotTell, &cross(true), |w| {
        curves(w, &ALL, 0.1, &[("a", &twice), ("b", &flat(1.0))])
    });
}

#[test]
fn jumps() {
    let rates = ["200/s", "400/s", "600/s", "800/s", "1000/s"];
    let jump = |wide| {
        one(ClaimRule {
            wide,
            ..rule(&["a"], Judge::Jump("400/s".into(), "600/s".into()))
        })
    };
    let there = |at: usize| [1.0, 1.1, 20.0, 22.0, 24.0][at];
    let later = |at: usize| [1.0, 1.1, 1.2, 22.0, 24.0][at];
    let slow = |at: usize| 1.2f64.powi(at as i32);
    found(Holds, &jump(false), |w| {
        curves(w, &rates, 0.1, &[("a", &there)])
    });
    found(DoesNotHold, &jump(false), |w| {
        curves(w, &rates, 0.1, &[("a", &later)])
    });
    found(Holds, &jump(true), |w| {
        curves(w, &rates, 0.1, &[("a", &later)])
    });
    found(DoesNotHold, &jump(true), |w| {
        curves(w, &rates, 0.05, &[("a", &slow)])
    });
    null(&jump(false), |w| curves(w, &rates, 0.1, &[("a", &|_| 1.0)]));
    null(&jump(true), |w| {
        curves(
            w,
            &rates,
            0.1,
            &[("a", &|at| if at > 1 { 2.0 } else { 1.0 })],
        )
    });
}

#[test]
fn slopes() {
    let slope = |linear| one(rule(&["a", "b"], Judge::Slope { linear }));
    let sizes = ["1KiB", "2KiB", "4KiB", "8KiB", "16KiB"];
    let x = |at: usize| 2f64.powi(at as i32);
    let (slow, fast) = (|at: usize| 20.0 + x(at), |at: usize| 20.0 + 3.0 * x(at));
    let bent = |at: usize| if at < 3 { 20.0 } else { 90.0 };
    for linear in [false, true] {
        found(Holds, &slope(linear), |w| {
            curves(w, &sizes, 0.03, &[("a", &slow), ("b", &fast)])
        });
        found(DoesNotHold, &slope(linear), |w| {
            curves(w, &sizes, 0.03, &[("a", &fast), ("b", &slow)])
        });
        null(&slope(linear), |w| {
            curves(w, &sizes, 0.03, &[("a", &slow), ("b", &slow)])
        });
    }
    found(DoesNotHold, &slope(true), |w| {
        curves(w, &sizes, 0.03, &[("a", &slow), ("b", &bent)])
    });
    // Where noise is as large as the range no repeat looks straight, and nothing contradicts a line.
    let flat = |at: usize| 40.0 + 0.1 * x(at);
    let counts = tally(
        400,
        |w| curves(w, &sizes, 0.05, &[("a", &flat), ("b", &flat)]),
        &slope(true),
    );
    let wrong = counts.get("does not hold").copied().unwrap_or(0);
    assert!(wrong <= 20, "{counts:?}");
}

/// Seconds of each repeat with a standard deviation of their own.
fn seconds(world: &mut World, system: &str, sd: f64, count: usize) {
    for repeat in 1..=N {
        world.exactly(system, "64B", repeat, 100.0);
        let windows = (0..count).map(|_| 100.0 + world.noise(sd)).collect();
        world
            .trials
            .last_mut()
            .expect("just planted")
            .figures
            .windows = windows;
    }
}

#[test]
fn spreads() {
    let spread = one(ClaimRule {
        along: None,
        ..rule(&["a", "b"], Judge::Spread(Bounds::above(1.0)))
    });
    let both = |a: f64, b: f64, n: usize| {
        move |w: &mut World| {
            seconds(w, "a", a, n);
            seconds(w, "b", b, n);
        }
    };
    found(Holds, &spread, both(10.0, 3.0, 10));
    found(DoesNotHold, &spread, both(3.0, 10.0, 10));
    found(CannotTell, &spread, both(10.0, 1.0, 7));
    null(&spread, both(5.0, 5.0, 10));
    // Along an axis: how unsmooth the curve is.
    let steps = one(rule(&["a", "b"], Judge::Spread(Bounds::above(1.0))));
    let zigzag = |at: usize| if at.is_multiple_of(2) { 1.0 } else { 2.0 };
    let smooth = |at: usize| 1.2f64.powi(at as i32);
    found(Holds, &steps, |w| {
        curves(w, &ALL, 0.03, &[("a", &zigzag), ("b", &smooth)])
    });
    null(&steps, |w| {
        curves(w, &ALL, 0.03, &[("a", &smooth), ("b", &smooth)])
    });
}

#[test]
fn values_and_differences() {
    let below = one(rule(&["a"], Judge::Value(Bounds::below(1.0))));
    found(Holds, &below, |w| {
        curves(w, &SIZES, 0.1, &[("a", &|_| 0.6)])
    });
    found(DoesNotHold, &below, |w| {
        curves(w, &SIZES, 0.1, &[("a", &|_| 1.6)])
    });
    null(&below, |w| {
        curves(
            w,
            &SIZES,
            0.1,
            &[("a", &|at| if at == 0 { 1.0 } else { 0.5 })],
        )
    });
    let difference = one(rule(
        &["a", "b"],
        Judge::Difference(Bounds {
            low: 100.0,
            high: 300.0,
        }),
    ));
    found(Holds, &difference, |w| {
        curves(w, &SIZES, 0.02, &[("a", &|_| 600.0), ("b", &|_| 400.0)])
    });
    found(DoesNotHold, &difference, |w| {
        curves(w, &SIZES, 0.02, &[("a", &|_| 400.0), ("b", &|_| 600.0)])
    });
    null(&difference, |w| {
        curves(w, &SIZES, 0.02, &[("a", &|_| 500.0), ("b", &|_| 400.0)])
    });
}

#[test]
fn ablations_in_turns() {
    let pair = |paired| {
        one(ClaimRule {
            paired,
            along: None,
            ..rule(&["turbo", "base"], above(1.0))
        })
    };
    // A drift of 30 % that both share, 3 % of their own.
    let drifting = |effect: f64| {
        move |w: &mut World| {
            for repeat in 1..=N {
                let drift = w.noise(0.3).exp();
                for (system, factor) in [("turbo", effect), ("base", 1.0)] {
                    let value = drift * factor * w.noise(0.03).exp();
                    w.exactly(system, "64B", repeat, value);
                }
            }
        }
    };
    found(Holds, &pair(true), drifting(1.1));
    found(DoesNotHold, &pair(true), drifting(0.9));
    null(&pair(true), drifting(1.0));
    // A part that both share would hide it.
    let unpaired = tally(100, drifting(1.1), &pair(false));
    assert!(unpaired["cannot tell"] > 90, "{unpaired:?}");
}

#[test]
fn limits_of_searches() {
    let order = ClaimRule {
        figure: "limit".into(),
        along: None,
        ..rule(&["a", "b"], above(1.0))
    };
    let outcome = |a: (f64, f64), b: (f64, f64)| {
        let mut world = World::new(1);
        world.limit("a", a.0, a.1);
        world.limit("b", b.0, b.1);
        world.outcome(order.clone())
    };
    assert_eq!(outcome((30.0, 40.0), (10.0, 20.0)), Holds);
    assert_eq!(outcome((10.0, 20.0), (30.0, 40.0)), DoesNotHold);
    assert_eq!(outcome((10.0, 32.0), (30.0, 40.0)), CannotTell);
    // The client was the limit: at least so much.
    assert_eq!(outcome((30.0, f64::INFINITY), (10.0, 20.0)), Holds);
    assert_eq!(outcome((30.0, f64::INFINITY), (50.0, 60.0)), CannotTell);
    assert_eq!(outcome((30.0, 40.0), (50.0, f64::INFINITY)), DoesNotHold);
    // Both passed the last step of a ladder: a tie.
    assert_eq!(
        outcome((30.0, f64::INFINITY), (30.0, f64::INFINITY)),
        CannotTell
    );
}

#[test]
fn counts_are_exact() {
    let none = ClaimRule {
        along: None,
        figure: "lost".into(),
        ..rule(&["a"], Judge::Count(Count::Exactly(0.0)))
    };
    let counted = |values: &[f64]| {
        let mut world = World::new(1);
        for (repeat, value) in (1..).zip(values) {
            world.exactly("a", "64B", repeat, *value);
            let named = &mut world.trials.last_mut().expect("just planted").figures.named;
            named.insert("expected".into(), 1000.0);
        }
        world
    };
    let clean = counted(&[0.0, 0.0, 0.0]).judge(&one(none.clone()));
    assert_eq!(clean.outcome, Holds);
    assert_eq!(clean.ours, "a: 0 of 3000: a share of at most 0.001");
    // Not of deliveries: what a system supports, calls that it makes.
    let supported = ClaimRule {
        figure: "supports multicast".into(),
        ..none.clone()
    };
    let clean = counted(&[0.0, 0.0, 0.0]).judge(&one(supported));
    assert_eq!((clean.outcome, &*clean.ours), (Holds, "a: 0, 0, 0"));
    let lost = counted(&[0.0, 2.0, 0.0]).judge(&one(none.clone()));
    assert_eq!(
        (lost.outcome, lost.reason.as_str()),
        (DoesNotHold, "a: 2 in repeat 2")
    );
    assert_eq!(counted(&[0.0, 0.0]).outcome(none.clone()), CannotTell);
    let some = ClaimRule {
        judge: Judge::Count(Count::Above(0.0)),
        ..none
    };
    assert_eq!(counted(&[4.0, 1.0, 2.0]).outcome(some.clone()), Holds);
    assert_eq!(counted(&[4.0, 0.0, 2.0]).outcome(some.clone()), DoesNotHold);
    assert_eq!(counted(&[0.5, 0.4, 0.001]).outcome(some), Holds);
}

/// Findings that several points share are said once.
#[test]
fn the_same_of_many_points_is_said_once() {
    let said = |ours: &[&str]| {
        let each = ours.iter().enumerate().map(|(nth, ours)| {
            let finding = Finding::new(Holds, "", *ours);
            (format!("at {nth}"), finding)
        });
        all_hold(&each.collect::<Vec<_>>()).ours
    };
    assert_eq!(said(&["5", "6"]), "at 0: 5; at 1: 6");
    assert_eq!(said(&["5", "5"]), "at 0, at 1: 5");
    assert_eq!(said(&["5", "6", "5", "5"]), "at 0 and 2 more: 5; at 1: 6");
}

/// Where all points must hold, the nearest would change what holds, and every one that fails what does not.
#[test]
fn the_figure_that_would_change_the_outcome_is_named() {
    let order = one(rule(&["a", "b"], above(1.0)));
    let turn = |of_a: &dyn Fn(usize) -> f64| {
        let mut world = World::new(1);
        curves(&mut world, &SIZES, 1e-4, &[("a", of_a), ("b", &|_| 1.0)]);
        let found = world.judge(&order);
        (found.outcome, found.turn.map(|turn| turn.words))
    };
    let (outcome, words) = turn(&|at| if at == 3 { 1.5 } else { 4.0 });
    assert_eq!(outcome, Holds);
    let words = words.unwrap();
    assert!(
        words.starts_with("a/b at 256B: 1 instead of 1.5"),
        "{words}"
    );
    let (outcome, words) = turn(&|at| [4.0, 0.5, 4.0, 0.25, 4.0][at]);
    assert_eq!(outcome, DoesNotHold);
    let words = words.unwrap();
    assert!(
        words.starts_with("all 2, the furthest a/b at 256B: 1 instead of 0.25"),
        "{words}"
    );
    let (outcome, words) = turn(&|_| 1.0);
    assert_eq!((outcome, words), (CannotTell, None));
}

#[test]
fn shares_of_decided_points() {
    let share = Claim {
        share: Some(0.5),
        ..one(rule(&["a", "b"], above(1.0)))
    };
    let won = |won: usize, lost: usize| {
        move |w: &mut World| {
            let level = |at: usize| {
                if at < won {
                    2.0
                } else if at < won + lost {
                    0.5
                } else {
                    1.0
                }
            };
            curves(w, &ALL, 0.1, &[("a", &level), ("b", &|_| 1.0)]);
        }
    };
    found(Holds, &share, won(9, 0));
    found(DoesNotHold, &share, won(0, 9));
    found(CannotTell, &share, won(5, 4));
    // Ties are out; fewer than six decided points say nothing.
    null(&share, won(4, 0));
    null(&share, won(0, 0));
}

/// One long trial stays as it is, or is disturbed in one of its ten blocks; of two, both count.
#[test]
fn blocks_of_a_long_trial() {
    let flat = ClaimRule {
        along: Some(BLOCK.to_owned()),
        blocks: Some(10),
        ..rule(&["a"], Judge::Flat(0.1))
    };
    let stays = |from: usize, to: usize, level: f64| {
        move |w: &mut World| {
            w.plant("a", "32B", 100.0, 0.0, 1);
            let record = |record: usize| {
                let level = if (from..to).contains(&record) {
                    level
                } else {
                    1.0
                };
                100.0 * level * (1.0 + w.noise(0.05))
            };
            let records: Vec<f64> = (0..500).map(record).collect();
            w.trials[0].figures.windows = records;
        }
    };
    let claim = one(flat.clone());
    found(Holds, &claim, stays(0, 0, 1.0));
    found(DoesNotHold, &claim, stays(300, 350, 1.5));
    found(DoesNotHold, &claim, stays(0, 50, 0.7));
    let short = |w: &mut World| {
        w.plant("a", "32B", 100.0, 0.0, 1);
        w.trials[0].figures.windows = vec![1.0; 49];
    };
    found(CannotTell, &claim, short);
    // A figure that is no series has no blocks.
    found(CannotTell, &claim, |w| w.plant("a", "32B", 100.0, 0.0, 5));
}
