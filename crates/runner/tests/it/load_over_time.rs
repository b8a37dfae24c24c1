//! Loads that change over time: what is sent in each second, and whether a system that does not keep up is told from one
//! that does, against what was planted.

use std::ops::Range;

use pubgauge_driver::{Kind, Settings};
use pubgauge_figures::model::Status;
use pubgauge_simulator::{Behaviour, Pauses};
use pubgauge_workload::{Arrivals, Nanos, RateCurve, RatePiece, SECOND, Until, Workload};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::planted::*;

const MS: Nanos = 1_000_000;

hold_for_seeds!(
    each_second_of_a_course_has_exactly_its_messages,
    a_day_has_as_many_messages_as_its_cosine,
    a_backlog_that_rises_with_the_rate_alone_is_no_queue,
    a_system_that_does_not_keep_up_at_the_peak_is_found,
    a_system_that_pauses_under_a_changing_load_is_not_taken_for_one_that_does_not_keep_up,
);

fn load(publishers: u32, curve: RateCurve, measure: Nanos) -> Workload {
    let curve = Box::new(curve);
    let random = false;
    let mut w = workload(publishers, 1, Arrivals::Varying { curve, random });
    w.phases.warm_up = Until::Time(SECOND);
    w.phases.measure = Until::Time(measure);
    w
}

/// Lines of whole numbers: (seconds, messages per second at first, at last).
fn lines(rng: &mut StdRng) -> Vec<(i128, i128, i128)> {
    let mut rate = |least: i128| rng.random_range(least as i64..400) as i128;
    match rate(0) % 3 {
        0 => (0..4)
            .map(|nth| (rate(0) % 3 + 1, rate(i128::from(nth == 0))))
            .map(|(s, r)| (s, r, r))
            .collect(),
        1 => vec![(rate(0) % 9 + 2, rate(0), rate(1))],
        _ => (0..3)
            .map(|_| (rate(0) % 3 + 1, rate(1), rate(0)))
            .collect(),
    }
}

/// Twice the messages due in the first `t` ns, in parts of a billion and of the length of the line that it ends in:
/// (numerator, denominator).
fn twice_due(lines: &[(i128, i128, i128)], t: i128) -> (i128, i128) {
    const NS: i128 = 1_000_000_000;
    let (mut left, mut before) = (t, 0);
    for (s, from, to) in lines {
        let lasts = s * NS;
        if left < lasts {
            let area = 2 * from * left * lasts + (to - from) * left * left;
            return (before * lasts + area, lasts);
        }
        left -= lasts;
        before += (from + to) * lasts;
    }
    let last = lines[lines.len() - 1].2;
    (before + 2 * last * left, 1)
}

fn due_before(lines: &[(i128, i128, i128)], t: i128) -> u64 {
    let (numerator, denominator) = twice_due(lines, t);
    let of_one = denominator * 2_000_000_000;
    ((numerator + of_one - 1) / of_one) as u64
}

/// When each measured message was due, since the epoch, in ascending order.
fn due_times(run: &Run) -> Vec<Nanos> {
    let measured = run.truth.iter().filter_map(|record| record.header);
    let measured = measured.filter(|header| header.kind == Kind::Measured);
    let mut times: Vec<Nanos> = measured.map(|header| header.intended).collect();
    times.sort_unstable();
    times
}

fn each_second_of_a_course_has_exactly_its_messages(seeds: Range<u64>) {
    let seeds: Vec<u64> = seeds.collect();
    of_each(&seeds, |seed| {
        let mut rng = StdRng::seed_from_u64(*seed);
        let lines = lines(&mut rng);
        let piece = |(s, from, to): &(i128, i128, i128)| RatePiece {
            lasts: *s as Nanos * SECOND,
            from_per_s: *from as f64,
            to_per_s: *to as f64,
        };
        let curve = RateCurve::steps(lines.iter().map(piece).collect());
        let publishers = rng.random_range(1..8);
        let mut w = load(publishers, curve.clone(), 10 * SECOND);
        // The warm-up ends by time, or by count before that; the course does not depend on it.
        if seed.is_multiple_of(3) {
            w.phases.warm_up = Until::Count(20, 5 * SECOND);
        }
        let run = simulate(w, Behaviour::default(), Settings::default());
        run.agrees();
        let times = due_times(&run);
        // The first message of all is due as the course begins, unless it begins with silence: none of these does.
        let start = times[0];
        for (k, at) in (0..).zip(&times) {
            let at = i128::from(*at - start);
            let reached = |t: i128| {
                let (numerator, denominator) = twice_due(&lines, t);
                (numerator, k * 2_000_000_000 * denominator)
            };
            let ((here, k_here), (later, k_later)) = (reached(at), reached(at + 1));
            assert!(
                here <= k_here && later > k_later,
                "seed {seed}: message {k} at {at}"
            );
        }
        let records = run.trial.series.iter().map(|record| record.traffic);
        let records = records.filter(|record| record.t_s <= 10.0 + 1e-9);
        let mut all = 0;
        for (second, record) in (0..).zip(records) {
            let until = |s: i128| due_before(&lines, s * 1_000_000_000);
            let expected = until(second + 1) - until(second);
            assert_eq!(record.published, expected, "seed {seed}, second {second}");
            all += expected;
        }
        assert_eq!(all, curve.messages_within(10 * SECOND));
        assert_eq!(run.trial.messages.published, all);
        let corners = &run.trial.flows[0].rate_over_time;
        assert_eq!(corners[0], (0.0, lines[0].1 as f64));
        assert_eq!(corners[corners.len() - 1].0, 10.0);
    });
}

fn a_day_has_as_many_messages_as_its_cosine(seeds: Range<u64>) {
    let seeds: Vec<u64> = seeds.collect();
    of_each(&seeds, |seed| {
        let mut rng = StdRng::seed_from_u64(*seed);
        let (low, high) = (rng.random_range(0.0..50.0), rng.random_range(100.0..500.0));
        let day = rng.random_range(3.0..15.0_f64);
        let peak = rng.random_range(0.0..day);
        let ns = |s: f64| (s * 1e9) as Nanos;
        let curve = RateCurve::daily((low, high), ns(day), ns(peak));
        let run = simulate(
            load(3, curve, 10 * SECOND),
            Behaviour::default(),
            Settings::default(),
        );
        run.agrees();
        run.is(Status::Valid, "");
        let turn = std::f64::consts::TAU / day;
        let due = |t: f64| {
            let swing = ((turn * (t - peak)).sin() + (turn * peak).sin()) / turn;
            (low + high) / 2.0 * t + (high - low) / 2.0 * swing
        };
        let records = run.trial.series.iter().map(|record| record.traffic);
        let records = records.filter(|record| record.t_s <= 10.0 + 1e-9);
        let mut published = 0;
        for record in records {
            published += record.published;
            let expected = due(record.t_s);
            // Straight lines of a quarter of an hour lie below the cosine by a part in 2,800 at the most.
            let off = (published as f64 - expected).abs();
            assert!(
                off < 1.0 + high * day / 6.0 / 2_800.0,
                "seed {seed}: {published} {expected}"
            );
        }
    });
}

/// A course with a peak: its kind by the seed; all have it in 20 s, at 1,000/s.
fn with_peak(seed: u64) -> RateCurve {
    let level = |per_s, s: u64| RatePiece::level(per_s, s * SECOND);
    match seed % 4 {
        0 => RateCurve::ramp(100.0, 1_000.0, 20 * SECOND),
        1 => RateCurve::daily((100.0, 1_000.0), 20 * SECOND, 10 * SECOND),
        2 => RateCurve::steps(vec![
            level(100.0, 5),
            level(400.0, 5),
            level(1_000.0, 5),
            level(300.0, 5),
        ]),
        _ => RateCurve::daily((100.0, 1_000.0), 10 * SECOND, 6 * SECOND),
    }
}

fn over_peak(seed: u64, behaviour: Behaviour) -> Run {
    let mut rng = StdRng::seed_from_u64(seed);
    let curve = Box::new(with_peak(seed));
    let random = seed.is_multiple_of(5);
    let mut w = load(rng.random_range(1..20), *curve.clone(), 20 * SECOND);
    w.flows[0].arrivals = Arrivals::Varying { curve, random };
    w.phases.drain_quiet = 5 * SECOND;
    w.phases.drain_within = 30 * SECOND;
    w.seed = seed;
    simulate(w, Behaviour { seed, ..behaviour }, Settings::default())
}

/// The load ends with 5 s of 8 messages a second, fewer than all stragglers may be: a freeze of 2 s and more in that part, or
/// across its end, is told.
#[test]
fn a_freeze_in_the_quiet_part_of_a_load_is_told() {
    for (from, to) in [(7_000, 9_000), (9_000, 12_500)] {
        let behaviour = Behaviour {
            stalls: vec![(from * MS, to * MS)],
            ..Behaviour::default()
        };
        let pieces = [(2_000.0, 5), (8.0, 5)];
        let level = |(per_s, s): (f64, Nanos)| RatePiece::level(per_s, s * SECOND);
        let curve = RateCurve::steps(pieces.map(level).into());
        let mut w = load(1, curve, 10 * SECOND);
        w.phases.drain_quiet = 5 * SECOND;
        let run = simulate(w, behaviour, Settings::default());
        run.agrees();
        assert!(run.stood_still(), "{:#?}", run.trial.verdict);
    }
}

fn a_backlog_that_rises_with_the_rate_alone_is_no_queue(seeds: Range<u64>) {
    let seeds: Vec<u64> = seeds.collect();
    of_each(&seeds, |seed| {
        let mut rng = StdRng::seed_from_u64(seed + 1);
        // Messages take up to 800 ms, by one time or by many, and the system has a fifth of its capacity left at the peak.
        let behaviour = Behaviour {
            delay_median_ns: rng.random_range(1..800) * MS,
            delay_sigma: [0.0, 0.15, 0.3][(seed % 3) as usize],
            ordered: seed.is_multiple_of(2),
            service_ns: rng.random_range(1..800_000),
            ..Behaviour::default()
        };
        let run = over_peak(*seed, behaviour.clone());
        let verdict = &run.trial.verdict;
        // Where messages of all times keep their order, those behind a late one wait: the more, the higher the rate.
        let waits = behaviour.ordered && behaviour.delay_sigma > 0.0;
        let told = [Status::Valid, Status::TooShort];
        assert!(
            told[..=usize::from(waits)].contains(&verdict.status),
            "seed {seed}: {behaviour:?} {:#?}",
            verdict.reasons
        );
    });
}

fn a_system_that_does_not_keep_up_at_the_peak_is_found(seeds: Range<u64>) {
    let seeds: Vec<u64> = seeds.collect();
    of_each(&seeds, |seed| {
        let mut rng = StdRng::seed_from_u64(seed + 2);
        // It takes 400 to 800 of the 1,000 messages a second at the peak, and carries all in the end where the load falls.
        let behaviour = Behaviour {
            delay_median_ns: rng.random_range(1..50) * MS,
            service_ns: rng.random_range(1_250_000..2_500_000),
            ..Behaviour::default()
        };
        let run = over_peak(*seed, behaviour.clone());
        let verdict = &run.trial.verdict;
        assert_eq!(
            verdict.status,
            Status::Overloaded,
            "seed {seed}: {behaviour:?} {:#?}",
            verdict.reasons
        );
        run.is(Status::Overloaded, "deliveries a second were due at first");
    });
}

fn a_system_that_pauses_under_a_changing_load_is_not_taken_for_one_that_does_not_keep_up(
    seeds: Range<u64>,
) {
    let seeds: Vec<u64> = seeds.collect();
    of_each(&seeds, |seed| {
        let mut rng = StdRng::seed_from_u64(seed + 3);
        let behaviour = Behaviour {
            service_ns: 500_000,
            pauses: Some(Pauses {
                first_ns: rng.random_range(4..16) * SECOND,
                lasts_ns: rng.random_range(200..1_500) * MS,
                every_ns: 0,
            }),
            ..Behaviour::default()
        };
        let run = over_peak(*seed, behaviour.clone());
        let verdict = &run.trial.verdict;
        assert_ne!(
            verdict.status,
            Status::Overloaded,
            "seed {seed}: {behaviour:?} {:#?}",
            verdict.reasons
        );
    });
}

/// A system whose capacity is 4 to 17 % below a ramp's end, which is 4 to 20 % beyond it: for the last moments it does not keep up. It is found, or it
/// cannot be told; it is not valid.
#[test]
fn a_ramp_that_ends_just_beyond_the_capacity_is_not_carried() {
    let seeds: Vec<u64> = (0..100).collect();
    let told = of_each(&seeds, |seed| {
        let mut rng = StdRng::seed_from_u64(*seed);
        let beyond: f64 = rng.random_range(1.04..1.2);
        let curve = RateCurve::ramp(0.0, 3_000.0, 30 * SECOND);
        let behaviour = Behaviour {
            service_ns: (beyond * 1e9 / 3_000.0) as Nanos,
            seed: *seed,
            ..Behaviour::default()
        };
        let run = simulate(load(10, curve, 30 * SECOND), behaviour, Settings::default());
        let status = run.trial.verdict.status;
        let reasons = &run.trial.verdict.reasons;
        assert!(
            matches!(status, Status::Overloaded | Status::TooShort),
            "seed {seed}: {beyond} {reasons:#?}"
        );
        (beyond, status)
    });
    let clear = told.iter().filter(|(beyond, _)| *beyond > 1.15);
    for (beyond, status) in clear {
        assert_eq!(*status, Status::Overloaded, "{beyond}");
    }
}
