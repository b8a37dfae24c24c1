use pubgauge_conclusions::compare::{Choice, comparable, compare, pair};
use pubgauge_figures::{Status, Trial};

use super::*;
use sample::{QUIET, SLOWER, of_system, run, systems};

/// Drawn runs, with which comparisons are tested.
#[path = "../../../conclusions/src/compare/sample.rs"]
mod sample;

/// More than a hundredfold is a factor, and so are the ends of its interval; its unit is not that of a percentage.
#[test]
fn large_changes_are_factors() {
    let shown = |effect, low, high| {
        format_change(FigureChange {
            relative: true,
            effect,
            low,
            high,
        })
    };
    let words = |effect: &str, interval: &str| (effect.to_owned(), interval.to_owned());
    assert_eq!(shown(0.13, 0.091, 0.17), words("+13.0 %", "+9.10 to +17.0"));
    assert_eq!(shown(149.0, 139.0, 159.0), words("x150", "x140 to x160"));
    assert_eq!(shown(90.0, 50.0, 159.0), words("x91.0", "x51.0 to x160"));
}

#[test]
fn the_text_fits_80_columns() {
    let both = run(6, 5, QUIET, SLOWER);
    let mut run = both.clone();
    run.trials[1].verdict.status = Status::Overloaded;
    let [a, b] = [of_system("a"), of_system("b")];
    let pairing = pair([&run, &run], [&a, &b], None).unwrap();
    let shown = text(&compare(
        &pairing.pairs,
        &comparable().collect::<Vec<_>>(),
        0.05,
    ));
    assert!(shown.lines().all(|l| l.chars().count() <= 80), "{shown}");
    let shown = text(&systems(&both, 0.05));
    insta::assert_snapshot!(shown);
}
