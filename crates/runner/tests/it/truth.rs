//! What a trial reports, verdict included, against what was planted in the simulated system: the
//! cases that matter when a system or the client is at its end. Each test names the case of
//! `docs/verdicts.md` that it shows.

use crate::planted;

use planted::*;
use proptest::prelude::*;
use pubgauge_driver::{Reliability, Settings};
use pubgauge_engine::assignment::Workers;
use pubgauge_results::model::Status;
use pubgauge_simulator::Behaviour;
use pubgauge_workload::{Arrivals, SECOND, Until};

const MS: u64 = 1_000_000;

/// A system that takes exactly 1,000 messages a second.
fn limited(seed: u64) -> Behaviour {
    Behaviour {
        service_ns: MS,
        seed,
        ..Behaviour::default()
    }
}

fn at_least_once() -> Settings {
    Settings {
        reliability: Some(Reliability::AtLeastOnce),
        ..Settings::default()
    }
}

#[test]
fn three_times_what_the_system_takes_is_overload_without_loss() {
    for seed in 0..8 {
        let mut w = workload(
            1 + seed as u32 % 3,
            1,
            Arrivals::Periodic { per_s: 3_000.0 },
        );
        w.phases.measure = Until::Time((5 + seed % 3) * SECOND);
        let run = simulate(w, limited(seed), Settings::default());
        run.agrees();
        run.is(Status::Overloaded, "the backlog grew");
        let t = &run.trial;
        assert_eq!(t.lost, 0);
        assert!(t.under_way > 0, "10 s of drain are not enough");
        within(t.delivered_msgs_per_s, 1_000.0, 0.01);
        // The warm-up's queue stands before the measured messages, and is in the series from the
        // start: 2 s at 2,000/s too much.
        within(t.at_start.backlog as f64, 4_000.0, 0.01);
        // A tenth of the measurement each.
        let tenth = t.duration_s / 10.0;
        for record in t.series.iter().filter(|s| s.t_s <= t.duration_s) {
            within(record.delivered as f64, 1_000.0 * tenth, 0.01);
            within(record.published as f64, 3_000.0 * tenth, 0.01);
        }
        // Two thirds of the latencies are not known: the median is not quoted.
        assert!(t.latency_ns.censored > 0);
        assert_eq!((t.latency_ns.p99, t.latency_ns.max), (None, None));
    }
}

#[test]
fn flat_out_behind_a_deep_queue_is_overload() {
    for seed in 0..2 {
        let mut w = workload(1, 1, Arrivals::FlatOut);
        w.phases.warm_up = Until::Time(SECOND / 2);
        w.phases.measure = Until::Time(2 * SECOND);
        // 100,000 a second, without any bound on what is under way.
        w.flows[0].window = Some(u32::MAX);
        let behaviour = Behaviour {
            publish_cost_ns: 10_000,
            ..limited(seed)
        };
        let run = simulate(w, behaviour, Settings::default());
        run.agrees();
        let t = &run.trial;
        // None of the measured messages came: all that came were the warm-up's.
        assert_eq!((t.delivered, t.lost), (0, 0));
        assert_eq!(t.under_way, t.expected);
        run.is(Status::Overloaded, "under way");
        within(t.delivered_msgs_per_s, 1_000.0, 0.01);
        assert_eq!(t.latency_ns.p50, None);
    }
}

#[test]
fn one_slow_subscriber_of_four_is_overload() {
    for seed in 0..4 {
        let behaviour = Behaviour {
            slow_subscribers: vec![("sub3".into(), 2 * MS)],
            delay_sigma: 0.3,
            seed,
            ..Behaviour::default()
        };
        let w = workload(2, 4, Arrivals::Periodic { per_s: 1_000.0 });
        let run = simulate(w, behaviour, at_least_once());
        run.agrees();
        run.is(Status::Overloaded, "the backlog grew");
        assert_eq!(run.trial.lost, 0);
        within(run.trial.delivered_msgs_per_s, 3_500.0, 0.01);
    }
}

#[test]
fn a_freeze_across_the_end_loses_nothing_and_is_not_steady() {
    for seed in 0..6 {
        // It begins 0.1 to 0.6 s before the end of the measurement at 6.02 s and lasts 2 s.
        let from = 6 * SECOND - (1 + seed) * SECOND / 10;
        let behaviour = Behaviour {
            stalls: vec![(from, from + 2 * SECOND)],
            delay_sigma: 0.5,
            seed,
            ..Behaviour::default()
        };
        let mut w = workload(2, 1, Arrivals::Periodic { per_s: 1_000.0 });
        w.phases.measure = Until::Time(4 * SECOND);
        let run = simulate(w, behaviour, Settings::default());
        run.agrees();
        let t = &run.trial;
        assert_eq!((t.lost, t.under_way, t.unique()), (0, 0, 4_000));
        let p99 = t.latency_ns.p99.expect("all have come");
        assert!(p99 > 1_400 * MS, "{p99}");
        assert_eq!(t.verdict.status, Status::Unsteady, "{:#?}", t.verdict);
        assert!(
            t.verdict.reasons[0].contains("stood still"),
            "{:?}",
            t.verdict
        );
    }
}

#[test]
fn one_message_a_second_to_many_is_steady() {
    for seed in 0..20 {
        let behaviour = Behaviour {
            delay_median_ns: 2 * MS,
            delay_sigma: 1.0,
            ordered: false,
            seed,
            ..Behaviour::default()
        };
        let mut w = workload(1, 100, Arrivals::Periodic { per_s: 1.0 });
        // Messages are due on the full second of the measurement, and just before and after it.
        w.phases.warm_up = Until::Time(2 * SECOND + seed * 200_000 - 2 * MS);
        let run = simulate(w, behaviour, Settings::default());
        run.agrees();
        run.is(Status::Valid, "");
        for record in run.trial.series.iter().filter(|s| s.t_s < 9.5) {
            assert_eq!(
                (record.published, record.due, record.delivered),
                (1, 100, 100)
            );
        }
    }
}

#[test]
fn doubled_deliveries_are_no_throughput() {
    for seed in 0..4 {
        let behaviour = Behaviour {
            duplication: 1.0,
            repeated_after_ns: Some(seed * 100 * MS),
            seed,
            ..Behaviour::default()
        };
        let w = workload(2, 1, Arrivals::Periodic { per_s: 500.0 });
        let run = simulate(w, behaviour, at_least_once());
        run.agrees();
        run.is(Status::Valid, "");
        let t = &run.trial;
        assert_eq!(
            (t.unique(), t.duplicated, t.delivered),
            (5_000, 5_000, 10_000)
        );
        within(t.delivered_msgs_per_s, 500.0, 0.01);
        let again: u64 = t.series.iter().map(|s| s.duplicated).sum();
        assert!(again >= 5_000, "{again} beside the deliveries");
    }
}

#[test]
fn late_duplicates_are_awaited() {
    for seed in 0..4 {
        let behaviour = Behaviour {
            duplication: 1.0,
            repeated_after_ns: Some(500 * MS),
            seed,
            ..Behaviour::default()
        };
        let w = workload(1, 1, Arrivals::Periodic { per_s: 500.0 });
        // Whether the settings promise that there are none or not.
        let settings = if seed % 2 == 0 {
            at_least_once()
        } else {
            Settings::default()
        };
        let run = simulate(w, behaviour, settings);
        run.agrees();
        assert_eq!((run.trial.unique(), run.trial.duplicated), (5_000, 5_000));
    }
}

#[test]
fn windows_are_kept_to_the_message() {
    for (seed, (window, subscribers, publishers)) in [
        (1, 1, 1),
        (1, 3, 2),
        (2, 1, 3),
        (3, 4, 1),
        (10, 2, 2),
        (64, 1, 1),
        (1_000, 3, 2),
    ]
    .into_iter()
    .enumerate()
    {
        let behaviour = Behaviour {
            delay_median_ns: 5 * MS,
            publish_cost_ns: 200,
            seed: seed as u64,
            ..Behaviour::default()
        };
        let mut w = workload(publishers, subscribers, Arrivals::FlatOut);
        w.flows[0].window = Some(window);
        w.phases.measure = Until::Time(2 * SECOND);
        let run = simulate(w, behaviour, Settings::default());
        run.agrees();
        assert_eq!(run.most_under_way(), u64::from(window));
        // Little's law: so many under way at 5 ms each; a full window is looked at every 50 µs.
        let per_s = f64::from(window * subscribers) * 200.0;
        within(run.trial.delivered_msgs_per_s, per_s, 0.02);
        assert!(run.trial.delivered_msgs_per_s <= 1.001 * per_s);
    }
}

#[test]
fn a_window_given_up_is_not_given_twice() {
    for (seed, subscribers) in [(0, 1), (1, 3)] {
        // Frozen for so long that what is under way is given up, and comes all the same.
        let behaviour = Behaviour {
            delay_median_ns: 5 * MS,
            publish_cost_ns: 200,
            stalls: vec![(3 * SECOND, 6 * SECOND)],
            seed,
            ..Behaviour::default()
        };
        let mut w = workload(2, subscribers, Arrivals::FlatOut);
        w.flows[0].window = Some(10);
        w.phases.measure = Until::Time(8 * SECOND);
        let run = simulate(w, behaviour, Settings::default());
        run.agrees();
        // After the thaw never more than ten at once, those given up aside.
        let after = run.most_under_way_from(6 * SECOND + 20 * MS);
        assert_eq!(after, 10);
    }
}

#[test]
fn lost_messages_do_not_fill_a_window_for_good() {
    let behaviour = Behaviour {
        delay_median_ns: 5 * MS,
        publish_cost_ns: 200,
        loss: 0.05,
        ..Behaviour::default()
    };
    let mut w = workload(1, 1, Arrivals::FlatOut);
    w.flows[0].window = Some(20);
    w.phases.measure = Until::Time(4 * SECOND);
    let run = simulate(w, behaviour, Settings::default());
    run.agrees();
    assert!(run.trial.lost > 0);
    // 20 under way at 5 ms each, less 5 %.
    within(run.trial.delivered_msgs_per_s, 3_800.0, 0.03);
}

#[test]
fn what_the_client_sleeps_through_was_due() {
    for seed in 0..6 {
        // It sleeps through the end of the measurement at 8.02 s: the last 0.8 s of 6.
        let length = 200 * MS * (seed + 1);
        let behaviour = Behaviour {
            client_sleeps: vec![(8 * SECOND + 20 * MS - length, 9 * SECOND)],
            seed,
            ..Behaviour::default()
        };
        let mut w = workload(3, 2, Arrivals::Periodic { per_s: 1_000.0 });
        w.phases.measure = Until::Time(6 * SECOND);
        let run = simulate(w, behaviour, Settings::default());
        run.agrees();
        let t = &run.trial;
        assert_eq!(t.offered, 6_000);
        assert!(
            t.not_sent.abs_diff(200 * (seed + 1)) <= 11,
            "{}",
            t.not_sent
        );
        if seed > 0 {
            run.is(Status::ClientBound, "stood still");
        }
    }
}

#[test]
fn a_client_that_sleeps_flat_out_is_named() {
    for (seed, (sleep, every)) in [(150, 1_000), (30, 200), (500, 1_000), (40, 80)]
        .into_iter()
        .enumerate()
    {
        let sleeps = (0..12_000 / every).map(|n| (n * every * MS, (n * every + sleep) * MS));
        let behaviour = Behaviour {
            client_sleeps: sleeps.collect(),
            publish_cost_ns: 10_000,
            seed: seed as u64,
            ..Behaviour::default()
        };
        let mut w = workload(1, 1, Arrivals::FlatOut);
        w.phases.warm_up = Until::Time(SECOND / 2);
        w.phases.measure = Until::Time(4 * SECOND);
        let run = simulate(w, behaviour, Settings::default());
        run.agrees();
        run.is(Status::ClientBound, "stood still");
        let share = run.trial.worker_load.publishers_stalled;
        within(share, sleep as f64 / every as f64, 0.15);
    }
}

#[test]
fn a_small_overload_is_overload_and_one_per_cent_below_is_not() {
    for seed in 0..12 {
        for (rate, status) in [
            (1_007.0, Status::Overloaded),
            (1_003.0, Status::Overloaded),
            (990.0, Status::Valid),
        ] {
            let behaviour = Behaviour {
                delay_median_ns: 20 * MS,
                delay_sigma: if seed % 2 == 0 { 0.0 } else { 0.2 },
                ..limited(seed)
            };
            let w = workload(1 + seed as u32 % 4, 1, Arrivals::Periodic { per_s: rate });
            let run = simulate(w, behaviour, Settings::default());
            run.agrees();
            let part = match status {
                Status::Overloaded => "straight line",
                _ => "",
            };
            run.is(status, part);
        }
    }
}

/// Arrivals that are random keep a queue at 90 % of the capacity, which ends by itself.
#[test]
fn a_queue_that_comes_and_goes_is_no_overload() {
    let overloaded = (0..40).filter(|seed| {
        let mut w = workload(2, 1, Arrivals::Poisson { per_s: 900.0 });
        w.seed = *seed;
        let run = simulate(w, limited(*seed), Settings::default());
        run.agrees();
        run.trial.verdict.status == Status::Overloaded
    });
    assert_eq!(overloaded.count(), 0);
}

#[test]
fn cuts_and_losses_on_purpose_are_allowed_by_the_study() {
    let behaviour = Behaviour {
        disconnects: vec![(4 * SECOND, "sub0".into())],
        ..Behaviour::default()
    };
    for (disconnects, losses, status) in [
        (false, false, Status::Broken),
        (true, false, Status::Lossy),
        (true, true, Status::Valid),
    ] {
        let mut w = workload(1, 2, Arrivals::Periodic { per_s: 200.0 });
        w.phases.reconnect_after = Some(SECOND / 2);
        w.phases.disconnects_allowed = disconnects;
        w.phases.losses_allowed = losses;
        let run = simulate(w, behaviour.clone(), Settings::default());
        assert_eq!(run.trial.connections.lost, 1);
        assert_eq!(run.trial.verdict.status, status, "{:?}", run.trial.verdict);
    }
}

#[test]
fn what_the_client_ran_out_of_is_not_the_systems_fault() {
    let behaviour = Behaviour {
        starves: vec!["sub1".into()],
        ..Behaviour::default()
    };
    let w = workload(1, 2, Arrivals::Periodic { per_s: 200.0 });
    let run = simulate(w.clone(), behaviour, Settings::default());
    run.is(Status::ClientBound, "ran out of file descriptors");
    // A system that refuses is to blame itself.
    let behaviour = Behaviour {
        refuses: vec!["sub1".into()],
        ..Behaviour::default()
    };
    let run = simulate(w, behaviour, Settings::default());
    run.is(Status::Broken, "refuses sub1");
}

#[test]
fn two_runs_at_once_count_their_own() {
    for named in [false, true] {
        for run in two_at_once(named) {
            let t = &run.trial;
            assert_eq!((t.duplicated, t.reordered, t.lost), (0, 0, 0));
            assert_eq!((t.published, t.unique()), (1_000, 1_000));
            if named {
                // Both hear the topic that both were told to use.
                assert!(t.odd.foreign >= 900, "{}", t.odd.foreign);
                run.is(Status::Broken, "not of this trial");
            } else {
                assert_eq!(t.odd.foreign, 0);
                assert_ne!(t.verdict.status, Status::Broken, "{:?}", t.verdict);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever the system and the client do: every message and every delivery is accounted for
    /// once, the series adds up to the totals, and no percentile is quoted that is not known.
    #[test]
    fn everything_is_accounted_for_once(
        plant in plants(), rate in 50.0f64..2_000.0, flat_out: bool, publishers in 1u32..4,
        subscribers in 0u32..4, grouped: bool, acknowledged: bool, seconds in 1u64..4,
        drain_ms in 50u64..3_000,
    ) {
        let arrivals = match flat_out {
            true => Arrivals::FlatOut,
            false => Arrivals::Periodic { per_s: rate },
        };
        let mut w = workload(publishers, subscribers, arrivals);
        w.flows[0].window = Some(200);
        w.phases.measure = Until::Time(seconds * SECOND + 250 * MS);
        w.phases.drain_within = drain_ms * MS;
        if grouped {
            w.flows[0].subscribers.iter_mut().for_each(|s| s.group = Some("team".into()));
        }
        let settings = if acknowledged { at_least_once() } else { Settings::default() };
        let run = simulate(w, plant, settings);
        run.adds_up();
    }
}

/// Three workers on each side, in real time: loss, repeats, a window, a group and a bounded rate are
/// seen as by one.
#[test]
fn three_workers_on_each_side_see_what_one_sees() {
    let workers = Workers {
        publishers: 3,
        subscribers: 3,
        ..Workers::default()
    };
    let lossy = Behaviour {
        loss: 0.02,
        duplication: 0.05,
        seed: 3,
        ..Behaviour::default()
    };
    let narrow = Behaviour {
        capacity: 50,
        ..limited(4)
    };
    let periodic = Arrivals::Periodic { per_s: 300.0 };
    let flat_out = Arrivals::FlatOut;
    for (behaviour, arrivals, settings, group) in [
        (lossy.clone(), periodic.clone(), Settings::default(), None),
        (lossy, flat_out, Settings::default(), None),
        (
            Behaviour::default(),
            periodic.clone(),
            at_least_once(),
            Some("g"),
        ),
        (narrow, periodic, at_least_once(), None),
    ] {
        let what = format!("{behaviour:?}, {arrivals:?}, {group:?}");
        let mut w = workload(7, 5, arrivals);
        w.phases.warm_up = Until::Time(SECOND / 5);
        w.phases.measure = Until::Time(SECOND);
        w.phases.drain_within = 30 * SECOND;
        w.flows[0].window = Some(200);
        for subscriber in &mut w.flows[0].subscribers {
            subscriber.group = group.map(Into::into);
        }
        let run = on_threads(w, behaviour, settings, workers);
        // A group's members share one ledger, and so one worker.
        let subscribing = if group.is_some() { 1 } else { 3 };
        assert_eq!(run.record.recordings.len(), 3 + subscribing, "{what}");
        assert!(run.trial.unique() > 250, "{what}");
        run.agrees_to(0.05);
    }
}
