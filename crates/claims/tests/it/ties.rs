//! A margin within which two sides are alike: what lies there neither holds nor fails, however many repeats there are.

use proptest::prelude::*;
use pubgauge_claims::Outcome::{CannotTell, DoesNotHold, Holds};
use pubgauge_claims::decide::{Demand, Ways, inside};
use pubgauge_claims::{Finding, Outcome};
use pubgauge_figures::rule::{Bounds, ClaimRule, Judge, Points};
use pubgauge_quantities::stats::Estimate;

use crate::planted;
use planted::{World, above, claim, found, rule, seldom};

const SIZES: [&str; 4] = ["2KiB", "4KiB", "8KiB", "16KiB"];

/// Ratios of `a` to `b` at four sizes, with noise of half a percent.
fn ratios(ratios: [f64; 4]) -> impl Fn(&mut World) {
    move |w| {
        for (size, ratio) in SIZES.iter().zip(ratios) {
            w.plant("a", size, ratio, 0.005, 6);
            w.plant("b", size, 1.0, 0.005, 6);
        }
    }
}

fn order(margin: f64, points: Points) -> ClaimRule {
    ClaimRule {
        margin,
        points,
        ..rule(&["a", "b"], above(1.0))
    }
}

#[test]
fn on_a_full_link_sides_that_differ_by_headers_are_alike() {
    let full = [0.995, 1.008, 1.01, 1.012];
    // Without a margin half a percent at one size decides.
    let strict = claim(vec![order(0.0, Points::Joint)]);
    let mut world = World::new(1);
    ratios([0.98, 1.008, 1.01, 1.012])(&mut world);
    assert_eq!(world.judge(&strict).outcome, DoesNotHold);
    let with = claim(vec![order(0.02, Points::Joint)]);
    found(CannotTell, &with, ratios(full));
    found(Holds, &with, ratios([1.0, 1.2, 1.2, 1.2]));
    found(DoesNotHold, &with, ratios([0.9, 1.2, 1.2, 1.2]));
    seldom(DoesNotHold, &with, ratios([0.985, 1.2, 1.2, 1.2]));
    // It says why, and asks for no repeats.
    let mut world = World::new(1);
    ratios([1.0; 4])(&mut world);
    let tie = world.judge(&claim(vec![order(0.02, Points::Mean)]));
    assert_eq!(tie.outcome, CannotTell);
    assert!(tie.reason.contains("a tie within 2 %"), "{tie:?}");
    assert_eq!(tie.tells, None);
}

#[test]
fn both_ends_of_a_range_have_the_margin() {
    let slightly = Judge::Ratio(Bounds {
        low: 1.0,
        high: 1.5,
    });
    let slightly = claim(vec![ClaimRule {
        margin: 0.02,
        points: Points::Mean,
        ..rule(&["a", "b"], slightly)
    }]);
    found(Holds, &slightly, ratios([1.2; 4]));
    found(CannotTell, &slightly, ratios([1.0; 4]));
    found(CannotTell, &slightly, ratios([0.985; 4]));
    found(CannotTell, &slightly, ratios([1.5; 4]));
    found(DoesNotHold, &slightly, ratios([0.95; 4]));
    found(DoesNotHold, &slightly, ratios([1.6; 4]));
}

fn judged(values: &[f64], demand: Demand) -> Finding {
    let estimate = Estimate::mean_of(values);
    inside(&estimate, demand, Ways::ONE, &|value| value.to_string())
}

proptest! {
    /// A margin takes outcomes away and never makes or turns one; the wider it is the fewer are left.
    #[test]
    fn a_margin_only_takes_outcomes_away(
        values in prop::collection::vec(-1.0..1.0f64, 3..8),
        low in -1.0..0.5f64,
        width in prop::option::of(0.2..1.0f64),
        margin in 0.0..0.1f64,
        more in 0.0..0.1f64,
    ) {
        let high = width.map_or(f64::INFINITY, |width| low + width);
        let at = |margin| judged(&values, Demand { low, high, margin }).outcome;
        let (none, some, wide) = (at(0.0), at(margin), at(margin + more));
        for (narrow, wide) in [(none, some), (some, wide)] {
            prop_assert!(wide == narrow || wide == CannotTell, "{narrow} became {wide}");
        }
        prop_assert_eq!(none, judged(&values, (low, high).into()).outcome);
    }

    /// An interval that lies wholly within the margin of an end is a tie, on whichever side its middle is.
    #[test]
    fn what_lies_within_the_margin_is_a_tie(
        middle in -0.015..0.015f64,
        noise in prop::collection::vec(-0.0005..0.0005f64, 6..9),
    ) {
        let values: Vec<f64> = noise.iter().map(|n| middle + n).collect();
        let found = judged(&values, Demand { low: 0.0, high: f64::INFINITY, margin: 0.02 });
        prop_assert_eq!(found.outcome, Outcome::CannotTell);
        prop_assert_eq!(found.tells, None);
    }
}
