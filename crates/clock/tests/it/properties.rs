//! What holds for any exchanges.

use crate::common;

use common::{AHEAD, Drift, Path, Truth, exchanges, seeded};
use proptest::prelude::*;
use pubgauge_clock::{Caps, Exchange, FitError, fit, fit_over};

/// A truth of `seconds` and exchanges over it, sparse or dense.
fn scene(seed: u64, seconds: f64, count: usize) -> (Truth, Vec<Exchange>) {
    let random = &mut seeded(seed);
    let drift = Drift::ALL[seed as usize % 4];
    let truth = Truth::new(drift, seconds + 4.0, Caps::default(), random);
    let path = Path::any(random);
    let moments: Vec<f64> = (0..count)
        .map(|_| rand::RngExt::random_range(random, 0.0..seconds * 1e9))
        .collect();
    let all = exchanges(&truth, path, moments.into_iter(), random);
    (truth, all)
}

/// Lowest and highest offset, beyond [`AHEAD`].
fn band(fit: &pubgauge_clock::Fit, near: u64) -> (i64, i64) {
    let offset = fit.offset(near);
    let (middle, bound) = (offset.ns - AHEAD, offset.bound_ns as i64);
    (middle - bound, middle + bound)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Also where exchanges are few, and beyond the first and the last of them.
    #[test]
    fn the_truth_is_inside(seed: u64, seconds in 0.001..30.0f64, count in 1..60usize) {
        let (truth, all) = scene(seed, seconds, count);
        prop_assume!(!all.is_empty());
        let until = (seconds * 1e9) as u64;
        let fit = fit_over(&all, Caps::default(), 0, until).unwrap();
        for n in 0..200 {
            let near = until * n / 199;
            let (low, high) = band(&fit, near);
            let offset = truth.offset(near as f64);
            prop_assert!(low as f64 <= offset && offset <= high as f64, "{near}: {low} {offset} {high}");
        }
    }

    #[test]
    fn the_fit_lies_within_all_limits(seed: u64, count in 1..60usize) {
        let (_, all) = scene(seed, 5.0, count);
        prop_assume!(!all.is_empty());
        let caps = Caps::default();
        let fit = fit(&all, caps).unwrap();
        // What a course may leave a straight line by, and what reading and rounding may do.
        let slack = i128::from(caps.change_ppm_per_s as i64 * 1_000 / 4 + 3);
        for one in &all {
            prop_assert!(i128::from(fit.offset(one.sent).ns) <= one.upper() + slack);
            prop_assert!(i128::from(fit.offset(one.heard).ns) >= one.lower() - slack);
        }
    }

    #[test]
    fn order_does_not_matter(seed: u64, count in 1..60usize, other: u64) {
        let (_, all) = scene(seed, 5.0, count);
        prop_assume!(!all.is_empty());
        let mut shuffled = all.clone();
        rand::seq::SliceRandom::shuffle(&mut shuffled[..], &mut seeded(other));
        let (one, two) = (fit(&all, Caps::default()).unwrap(), fit(&shuffled, Caps::default()).unwrap());
        for near in (one.from()..one.until()).step_by(100_000_000) {
            prop_assert_eq!(one.offset(near), two.offset(near));
        }
    }

    #[test]
    fn more_exchanges_never_widen_the_bound(seed: u64, count in 2..60usize, share in 0.1..1.0f64) {
        let (_, all) = scene(seed, 5.0, count);
        let some = &all[..(all.len() as f64 * share) as usize];
        prop_assume!(!some.is_empty());
        let over = |all: &[Exchange]| fit_over(all, Caps::default(), 0, 9_000_000_000).unwrap();
        let (few, many) = (over(some), over(&all));
        for near in (0..9_000_000_000).step_by(50_000_000) {
            let (outer, inner) = (band(&few, near), band(&many, near));
            // Middle and bound are rounded.
            prop_assert!(outer.0 - 3 <= inner.0 && inner.1 <= outer.1 + 3, "{near}: {outer:?} {inner:?}");
        }
        prop_assert!(many.bound_ns() <= few.bound_ns() + 1);
    }

    #[test]
    fn a_far_clock_that_is_further_ahead_is_further_ahead(seed: u64, count in 1..60usize, by in 0..1u64 << 60) {
        let (_, all) = scene(seed, 5.0, count);
        prop_assume!(!all.is_empty());
        let ahead: Vec<_> = all.iter().map(|one| Exchange {
            received: one.received + by,
            answered: one.answered + by,
            ..*one
        }).collect();
        let (one, two) = (fit(&all, Caps::default()).unwrap(), fit(&ahead, Caps::default()).unwrap());
        for near in (one.from()..one.until()).step_by(100_000_000) {
            prop_assert_eq!(one.offset(near).ns + by as i64, two.offset(near).ns);
            prop_assert_eq!(one.offset(near).bound_ns, two.offset(near).bound_ns);
        }
    }

    #[test]
    fn readings_are_turned_there_and_back(seed: u64, count in 1..60usize, share in 0.0..1.0f64) {
        let (_, all) = scene(seed, 5.0, count);
        prop_assume!(!all.is_empty());
        let fit = fit(&all, Caps::default()).unwrap();
        let near = fit.from() + ((fit.until() - fit.from()) as f64 * share) as u64;
        prop_assert!((fit.near(fit.far(near) as u64) - near as i64).abs() <= 2);
    }

    /// A reading converted by the line of an early fit is no further from the truth than the later fit says.
    #[test]
    fn what_the_last_fit_changed_is_in_the_bound(seed: u64, count in 20..80usize) {
        let (truth, all) = scene(seed, 8.0, count);
        let early: Vec<_> = all.iter().filter(|one| one.heard < 2_000_000_000).copied().collect();
        prop_assume!(!early.is_empty());
        let caps = Caps::default();
        let used = fit_over(&early, caps, 0, 8_000_000_000).unwrap();
        let last = fit_over(&all, caps, 0, 8_000_000_000).unwrap();
        let (from, until) = (2_000_000_000, 8_000_000_000);
        let line = used.line(from);
        let bound = last.bound_of_line(&line, from, until) as f64;
        for near in (from..=until).step_by(10_000_000) {
            let gained = (near - line.near) as f64 * line.drift;
            let taken = (line.far as i64 - line.near as i64 - AHEAD) as f64 + gained;
            prop_assert!((taken - truth.offset(near as f64)).abs() <= bound);
            prop_assert!(bound + 2.0 >= last.offset(near).bound_ns as f64);
        }
    }

    /// Whatever is told: a fit or an error with words, no panic.
    #[test]
    fn any_readings_are_taken(readings in prop::collection::vec(any::<[u64; 4]>(), 0..20), narrow in prop_oneof![0..10u32, 26..60u32]) {
        let all: Vec<_> = readings.iter().map(|r| r.map(|r| r >> narrow)).map(|[sent, received, a, h]| Exchange {
            sent,
            received,
            answered: received.saturating_add(a >> 20),
            heard: sent.saturating_add(h >> 20),
        }).collect();
        match fit(&all, Caps::default()) {
            Ok(fit) => prop_assert!(fit.bound_ns() > 0),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}

/// The same bound by the book: over one segment, all straight lines between the limits; each extreme lies
/// where two limits cross.
fn by_the_book(all: &[Exchange], caps: Caps, near: u64) -> (f64, f64) {
    let from = all.iter().map(|one| one.sent).min().unwrap();
    let until = all.iter().map(|one| one.heard).max().unwrap();
    let bend = caps.change_ppm_per_s * 1e3 * (until - from) as f64 / 1e9 / 4.0;
    // offset * a + drift * b <= most
    let mut limits = vec![
        (0.0, 1.0, caps.drift_ppm * 1e3),
        (0.0, -1.0, caps.drift_ppm * 1e3),
    ];
    for one in all {
        let after = |at: u64| (at - from) as f64 / 1e9;
        let value = |offset: i128| (offset - i128::from(AHEAD)) as f64;
        let slack = bend + 1.0;
        limits.push((1.0, after(one.sent), value(one.upper()) + slack));
        limits.push((-1.0, -after(one.heard), slack - value(one.lower())));
    }
    let moment = (near - from) as f64 / 1e9;
    let mut range = (f64::INFINITY, f64::NEG_INFINITY);
    for (n, (a, b, most)) in limits.iter().enumerate() {
        for (c, d, other) in &limits[..n] {
            let determinant = a * d - b * c;
            let (offset, drift) = (
                (most * d - b * other) / determinant,
                (a * other - most * c) / determinant,
            );
            if limits
                .iter()
                .all(|(a, b, most)| a * offset + b * drift <= most + 1e-3)
            {
                let value = offset + drift * moment;
                range = (range.0.min(value), range.1.max(value));
            }
        }
    }
    (range.0 - bend, range.1 + bend)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn one_segment_is_as_by_the_book(seed: u64, count in 1..25usize) {
        let (_, all) = scene(seed, 0.6, count);
        // Those that outlast the segment make it two.
        let all: Vec<_> = all.into_iter().filter(|one| one.heard < 1_000_000_000).collect();
        prop_assume!(!all.is_empty());
        let fit = fit(&all, Caps::default()).unwrap();
        for n in 0..=20 {
            let near = fit.from() + (fit.until() - fit.from()) * n / 20;
            let ((low, high), book) = (band(&fit, near), by_the_book(&all, Caps::default(), near));
            prop_assert!((low as f64 - book.0).abs() < 4.0 && (high as f64 - book.1).abs() < 4.0,
                "{near}: {low} {high}, by the book {book:?}");
        }
    }
}

/// Between two bursts ten seconds apart the drift is known from both, and may bend in between as the caps say:
/// by a course that bends one way, then the other.
#[test]
fn between_bursts_the_bound_grows_as_the_change_allows() {
    let burst = |start: u64| {
        (0..20u64).map(move |n| Exchange {
            sent: start + n * 50_000_000,
            received: start + n * 50_000_000 + 1_000,
            answered: start + n * 50_000_000 + 1_000,
            heard: start + n * 50_000_000 + 2_000,
        })
    };
    let all: Vec<_> = burst(0).chain(burst(11_000_000_000)).collect();
    let caps = Caps {
        change_ppm_per_s: 0.1,
        ..Caps::default()
    };
    let fit = fit(&all, caps).unwrap();
    // A straight course with a bend of 100 ns/s^2 over 10 s leaves its chord by 100 * 10^2 / 8 = 1250 ns;
    // what is not known at the ends (1 us, and the drift to 2 ns in 0.95 s) adds to that.
    let middle = fit.offset(6_000_000_000);
    assert!(middle.ns.abs() <= 1, "{middle:?}");
    assert!((1_250..4_500).contains(&middle.bound_ns), "{middle:?}");
    assert!(fit.offset(500_000_000).bound_ns < 1_100);
    // The cap on drift alone would leave 200 ppm of 5 s: a millisecond.
    assert!(middle.bound_ns == fit.bound_ns() || middle.bound_ns + 5 > fit.bound_ns());
}

#[test]
fn what_cannot_be_fitted_is_told() {
    let caps = Caps::default();
    assert_eq!(fit(&[], caps).unwrap_err(), FitError::NoExchange);
    let good = Exchange {
        sent: 10,
        received: 20,
        answered: 21,
        heard: 30,
    };
    let back = Exchange { heard: 5, ..good };
    assert_eq!(
        fit(&[good, back], caps).unwrap_err(),
        FitError::Impossible(back)
    );
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let caps = Caps {
            drift_ppm: wrong,
            ..caps
        };
        assert!(matches!(fit(&[good], caps), Err(FitError::Caps(_))));
        let caps = Caps {
            change_ppm_per_s: wrong,
            ..Caps::default()
        };
        assert!(matches!(fit(&[good], caps), Err(FitError::Caps(_))));
    }
    let long = fit_over(&[good], caps, 0, 1 << 62).unwrap_err();
    assert!(matches!(long, FitError::Time { .. }));
    assert!(long.to_string().contains("100000 s"));
    // One exchange that takes no time at all.
    let short = Exchange {
        sent: 10,
        received: 20,
        answered: 20,
        heard: 10,
    };
    let fit = fit(&[short], caps).unwrap();
    assert_eq!(fit.offset(10).ns, 10);
    assert!(fit.bound_ns() <= 3, "{}", fit.bound_ns());
}
