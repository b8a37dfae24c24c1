//! Times that contain the stops of a quota are upper bounds.

use pubgauge_claims::Outcome::{CannotTell, DoesNotHold, Holds};
use pubgauge_figures::rule::{Bounds, Claim, ClaimRule, Judge};

use crate::planted;
use planted::{World, above, claim, rule};

/// Ten periods of 10 ms, in ns.
const SHORTEST: f64 = 100e6;

/// `a` and `b` with these latencies, on hosts that a quota stopped.
fn stopped(a: f64, b: f64) -> World {
    let mut world = World::new(1);
    for (system, latency) in [("a", a), ("b", b)] {
        world.plant(system, "64B", latency, 0.05, 6);
    }
    for trial in &mut world.trials {
        trial.figures.stretched_below = SHORTEST;
    }
    world
}

fn of_latency(judge: Judge) -> Claim {
    let sides: &[&str] = if matches!(judge, Judge::Value(_)) {
        &["a"]
    } else {
        &["a", "b"]
    };
    claim(vec![ClaimRule {
        figure: "latency.p50".into(),
        ..rule(sides, judge)
    }])
}

#[test]
fn a_ratio_of_two_short_times_tells_nothing() {
    for ratio in [0.5, 1.0, 2.0] {
        let world = stopped(ratio * 1e6, 1e6);
        for judge in [
            above(1.0),
            Judge::Ratio(Bounds::below(1.0)),
            Judge::Equal(0.25),
        ] {
            let found = world.judge(&of_latency(judge));
            assert_eq!(found.outcome, CannotTell, "{ratio}: {found:?}");
            assert_eq!(found.tells, None, "no repeats tell it");
        }
    }
}

#[test]
fn a_long_time_over_a_short_one_is_at_least_so_much() {
    let world = stopped(500e6, 1e6);
    let found = world.judge(&of_latency(above(2.0)));
    assert_eq!(found.outcome, Holds);
    assert!(found.ours.contains("or more"), "{found:?}");
    // Not more than that: nothing is known of its upper end.
    let below = of_latency(Judge::Ratio(Bounds::below(1000.0)));
    assert_eq!(world.judge(&below).outcome, CannotTell);
}

#[test]
fn a_bound_from_above_is_kept_and_one_from_below_is_not_shown() {
    let world = stopped(1e6, 1e6);
    let value = |bounds| world.judge(&of_latency(Judge::Value(bounds))).outcome;
    assert_eq!(value(Bounds::below(2e6)), Holds);
    assert_eq!(value(Bounds::above(0.5e6)), CannotTell);
    assert_eq!(value(Bounds::above(2e6)), DoesNotHold);
    assert_eq!(value(Bounds::below(0.5e6)), CannotTell);
}

#[test]
fn times_of_ten_periods_and_more_are_what_they_are() {
    let world = stopped(600e6, 200e6);
    assert_eq!(world.judge(&of_latency(above(2.0))).outcome, Holds);
}

#[test]
fn rates_are_not_stretched() {
    let world = stopped(2.0, 1.0);
    let rates = claim(vec![rule(&["a", "b"], above(1.0))]);
    assert_eq!(world.judge(&rates).outcome, Holds);
}

#[test]
fn quotients_and_series_of_short_times_are_off_either_way() {
    let mut world = stopped(1e6, 1e6);
    for trial in &mut world.trials {
        trial.figures.windows = vec![1e6; 10];
    }
    for figure in [
        "latency.p90@during / latency.p90@before",
        "latency.p50.growth",
    ] {
        let grows = claim(vec![ClaimRule {
            figure: figure.into(),
            ..rule(&["a"], Judge::Value(Bounds::above(1.25)))
        }]);
        let found = world.judge(&grows);
        assert_eq!(found.outcome, CannotTell, "{figure}");
        assert!(found.reason.contains("quota"), "{found:?}");
    }
    let spread = claim(vec![ClaimRule {
        figure: "latency.p90".into(),
        along: None,
        ..rule(&["a", "b"], Judge::Spread(Bounds::above(1.0)))
    }]);
    assert_eq!(world.judge(&spread).outcome, CannotTell);
}
