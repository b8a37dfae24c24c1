//! A thousand trials between simulated clocks: the true offset lies inside the bound at every moment.

use crate::common;

use common::{AHEAD, Drift, Path, Truth, exchanges, seeded};
use pubgauge_clock::{Caps, Exchange, FitError, fit};
use rand::RngExt;
use rand::rngs::StdRng;

const TRIALS: u64 = 1_000;
const SECONDS: f64 = 60.0;

/// Between the first and the last exchange, every 50 ms, near clock, ns.
fn moments(from: u64, until: u64) -> impl Iterator<Item = u64> {
    (from..=until).step_by(50_000_000).chain([until])
}

/// 50 exchanges in the first half second and in the last, and one every 200 ms in between, at random
/// moments around that.
fn around_a_trial(seconds: f64, random: &mut StdRng) -> Vec<f64> {
    let end = seconds * 1e9;
    let mut moments: Vec<f64> = (0..50).map(|n| n as f64 * 10e6).collect();
    moments.extend((0..50).map(|n| end - 1e9 + n as f64 * 10e6));
    let mut next = 0.5e9;
    while next < end - 1e9 {
        moments.push(next);
        next += random.random_range(100e6..300e6);
    }
    moments
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The mean of what each exchange says if both ways take as long, over exchanges sent within `window` ns of
/// each moment; over all of them where there are none.
struct Average {
    middles: Vec<(f64, f64)>,
    all: f64,
}

impl Average {
    fn new(exchanges: &[Exchange]) -> Average {
        let middle = |one: &Exchange| {
            let sum = one.upper() + one.lower() - 2 * i128::from(AHEAD);
            (one.sent as f64, sum as f64 / 2.0)
        };
        let middles: Vec<_> = exchanges.iter().map(middle).collect();
        let sum: f64 = middles.iter().map(|(_, middle)| middle).sum();
        let all = sum / middles.len() as f64;
        Average { middles, all }
    }

    fn near(&self, moment: f64, window: f64) -> f64 {
        let inside = self.middles.iter();
        let (count, sum) = inside
            .filter(|(sent, _)| (sent - moment).abs() <= window)
            .fold((0, 0.0), |(count, sum), (_, middle)| {
                (count + 1, sum + middle)
            });
        if count == 0 {
            self.all
        } else {
            sum / f64::from(count)
        }
    }
}

#[test]
fn the_true_offset_lies_inside_the_bound() {
    let caps = Caps::default();
    let (mut held, mut bounds, mut errors) = (0, Vec::new(), Vec::new());
    let (mut averages, mut averages_worse, mut averages_outside) = (Vec::new(), 0, 0);
    for seed in 0..TRIALS {
        let random = &mut seeded(seed);
        let drift = Drift::ALL[seed as usize % Drift::ALL.len()];
        let truth = Truth::new(drift, SECONDS, caps, random);
        let path = Path::any(random);
        let sent = around_a_trial(SECONDS, random);
        let exchanges = exchanges(&truth, path, sent.into_iter(), random);
        let fit = fit(&exchanges, caps).unwrap_or_else(|error| panic!("trial {seed}: {error}"));
        let average = Average::new(&exchanges);
        let (mut all_inside, mut worst, mut worst_average) = (true, 0.0f64, 0.0f64);
        for near in moments(fit.from(), fit.until()) {
            let truth = truth.offset(near as f64);
            let offset = fit.offset(near);
            let error = ((offset.ns - AHEAD) as f64 - truth).abs();
            all_inside &= error <= offset.bound_ns as f64 && offset.bound_ns <= fit.bound_ns();
            worst = worst.max(error);
            let error = (average.near(near as f64, 0.5e9) - truth).abs();
            worst_average = worst_average.max(error);
        }
        held += u64::from(all_inside);
        let bound = fit.bound_ns() as f64;
        averages_worse += u64::from(worst_average > worst);
        averages_outside += u64::from(worst_average > bound);
        bounds.push(bound);
        errors.push(worst);
        averages.push(worst_average);
    }
    let us = |values: &[f64]| median(values.to_vec()) / 1e3;
    println!(
        "{held} of {TRIALS} inside at every moment; medians: bound +-{:.1} us, worst error {:.1} us, \
         worst error of averages over a second {:.1} us; averages worse in {averages_worse}, beyond the \
         bound in {averages_outside}",
        us(&bounds),
        us(&errors),
        us(&averages)
    );
    assert_eq!(held, TRIALS);
    assert!(us(&errors) < us(&bounds));
    assert!(
        us(&averages) > 2.0 * us(&errors),
        "averaging is the worse estimate"
    );
    assert!(averages_worse > TRIALS * 9 / 10);
    // Delays are unequal here, and half of that is what averages are wrong by.
    assert!(
        us(&bounds) < 500.0,
        "a bound that is always wide would hold too"
    );
}

/// A clock that is set by 10 ms, either way, is told with when; what is told holds the moment.
#[test]
fn a_clock_that_was_set_is_told() {
    let caps = Caps::default();
    let mut widths = Vec::new();
    for seed in 0..200 {
        let random = &mut seeded(5_000 + seed);
        let drift = Drift::ALL[seed as usize % Drift::ALL.len()];
        let mut truth = Truth::new(drift, SECONDS, caps, random);
        let by = if seed % 2 == 0 { 10e6 } else { -10e6 };
        let when = 1.3e9 + seed as f64 * 0.28e9;
        truth.set = Some((when, by));
        let sent = around_a_trial(SECONDS, random);
        let exchanges = exchanges(&truth, Path::any(random), sent.into_iter(), random);
        let told = fit(&exchanges, caps).map(|fit| fit.bound_ns());
        let Err(FitError::Contradiction(breaks)) = told else {
            panic!("trial {seed}: set by {by} ns, and not told: {told:?}");
        };
        let [only] = breaks[..] else {
            panic!("trial {seed}: one was planted, told were {breaks:?}");
        };
        assert!(
            (only.from as f64) < when && when < only.until as f64,
            "trial {seed}: {only:?}"
        );
        assert!(
            only.beyond_ns > 0 && (only.beyond_ns as f64) <= by.abs(),
            "trial {seed}: {only:?}"
        );
        widths.push((only.until - only.from) as f64);
    }
    println!(
        "{} told by contradiction; median width {:.3} s",
        widths.len(),
        median(widths) / 1e9
    );
}

/// Two set clocks are two times, and the second is not lost behind the first.
#[test]
fn each_time_is_told() {
    let random = &mut seeded(9);
    let caps = Caps::default();
    let mut truth = Truth::new(Drift::Constant, SECONDS, caps, random);
    let path = Path {
        base: [40e3, 60e3],
        tail: (5e3, 1.5),
        loss: 0.1,
    };
    let sent = || (0..1_200).map(|n| n as f64 * 50e6);
    truth.set = Some((20e9, 10e6));
    let mut all = exchanges(&truth, path, sent().take(800), random);
    truth.set = Some((40e9, 30e6));
    let later = exchanges(&truth, path, sent().skip(800), random);
    all.extend(later);
    let Err(FitError::Contradiction(breaks)) = fit(&all, caps) else {
        panic!("two were planted, and none told");
    };
    let holds =
        |n: usize, when: f64| (breaks[n].from as f64) < when && when < breaks[n].until as f64;
    assert!(
        breaks.len() == 2 && holds(0, 20e9) && holds(1, 40e9),
        "{breaks:?}"
    );
    let text = FitError::Contradiction(breaks).to_string();
    assert!(text.contains("19.") && text.contains("hint:"), "{text}");
}

/// A drift of 300 ppm is within no cap of 200, and within one of 400.
#[test]
fn a_drift_beyond_the_cap_is_told() {
    let random = &mut seeded(10);
    let caps = Caps::default();
    let truth = Truth::new(Drift::Constant, SECONDS, caps, random);
    let path = Path {
        base: [40e3, 60e3],
        tail: (5e3, 1.5),
        loss: 0.1,
    };
    let sent = (0..600).map(|n| n as f64 * 100e6);
    let mut all = exchanges(&truth, path, sent, random);
    for exchange in &mut all {
        for reading in [&mut exchange.received, &mut exchange.answered] {
            let near = *reading - AHEAD as u64;
            *reading += (near as f64 * 300e-6) as u64;
        }
    }
    assert!(matches!(fit(&all, caps), Err(FitError::Contradiction(_))));
    let wider = Caps {
        drift_ppm: 400.0,
        ..caps
    };
    assert!(fit(&all, wider).is_ok());
}
