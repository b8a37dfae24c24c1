//! Reports of trials, verdicts included, against planted truths of the simulated system: the
//! cases that matter when a system or the client is at its end. Each test names the case of
//! `docs/verdicts.md` that it shows.

use crate::planted;

use planted::*;
use proptest::prelude::*;
use pubgauge_driver::{Kind, Reliability, Settings};
use pubgauge_engine::assignment::Workers;
use pubgauge_figures::model::Status;
use pubgauge_runner::simulated::START;
use pubgauge_simulator::Behaviour;
use pubgauge_workload::{Arrivals, Exchange, SECOND, Until};

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
        assert_eq!(t.shortfall.lost, 0);
        assert!(t.shortfall.under_way > 0, "10 s of drain are not enough");
        within(t.messages.delivered_msgs_per_s, 1_000.0, 0.01);
        // The warm-up's queue stands before the measured messages, and is in the series from the
        // start: 2 s at 2,000/s too much.
        within(t.at_start.backlog as f64, 4_000.0, 0.01);
        // A tenth of the measurement each.
        let tenth = t.duration_s / 10.0;
        for record in t.series.iter().filter(|s| s.traffic.t_s <= t.duration_s) {
            within(record.traffic.delivered as f64, 1_000.0 * tenth, 0.01);
            within(record.traffic.published as f64, 3_000.0 * tenth, 0.01);
        }
        // Two thirds of the latencies are not known: the median is not quoted.
        assert!(t.messages.latency_ns.censored > 0);
        assert_eq!(
            (t.messages.latency_ns.p99, t.messages.latency_ns.max),
            (None, None)
        );
    }
}

/// A share of the measurement: of two publishers, both are held back for 1.8 of 4 s.
#[test]
fn publishers_are_blocked_for_the_share_that_was_planted() {
    let behaviour = Behaviour {
        stalls: vec![(3 * SECOND, 5 * SECOND)],
        capacity: 20,
        ..Behaviour::default()
    };
    let mut w = workload(2, 1, Arrivals::Periodic { per_s: 100.0 });
    w.phases.measure = Until::Time(4 * SECOND);
    let run = simulate(w.clone(), behaviour, Settings::default());
    let blocked = run.trial.publishers_blocked.expect("publishers");
    within(blocked, 1.8 / 4.0, 0.02);
    let calm = simulate(w, Behaviour::default(), Settings::default());
    assert_eq!(calm.trial.publishers_blocked, Some(0.0));
    assert_eq!(calm.trial.client_cpu_s.publishers_library, Some(0.0));
}

/// A library that sleeps in the call until its link has room: 50 ms for each of 10 messages a second are half of the
/// time, and no stall of the client. Short calls are none.
#[test]
fn publishers_whose_calls_sleep_are_blocked_and_not_stalled() {
    let w = workload(1, 1, Arrivals::Periodic { per_s: 10.0 });
    for (sleep_ms, share) in [(50, 0.5), (90, 0.9)] {
        let behaviour = Behaviour {
            publish_sleep_ns: sleep_ms * 1_000_000,
            ..Behaviour::default()
        };
        let run = simulate(w.clone(), behaviour, Settings::default());
        within(run.trial.publishers_blocked.unwrap(), share, 0.02);
        assert_eq!(run.trial.worker_load.publishers_stalled, 0.0);
        assert_eq!(
            run.trial.verdict.status,
            Status::Valid,
            "{:#?}",
            run.trial.verdict
        );
    }
    let short = Behaviour {
        publish_sleep_ns: 190_000,
        ..Behaviour::default()
    };
    let run = simulate(w, short, Settings::default());
    assert_eq!(run.trial.publishers_blocked, Some(0.0));
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
        assert_eq!((t.messages.delivered, t.shortfall.lost), (0, 0));
        assert_eq!(t.shortfall.under_way, t.messages.expected);
        run.is(Status::Overloaded, "under way");
        within(t.messages.delivered_msgs_per_s, 1_000.0, 0.01);
        assert_eq!(t.messages.latency_ns.p50, None);
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
        assert_eq!(run.trial.shortfall.lost, 0);
        within(run.trial.messages.delivered_msgs_per_s, 3_500.0, 0.01);
    }
}

/// A thousand messages a second over a system of this behaviour, until 6.02 s: all come.
fn over_a_freeze(behaviour: Behaviour) -> Run {
    let mut w = workload(2, 1, Arrivals::Periodic { per_s: 1_000.0 });
    w.phases.measure = Until::Time(4 * SECOND);
    let run = simulate(w, behaviour, Settings::default());
    run.agrees();
    let t = &run.trial;
    assert_eq!(
        (t.shortfall.lost, t.shortfall.under_way, t.messages.unique()),
        (0, 0, 4_000)
    );
    run
}

#[test]
fn a_freeze_across_the_end_loses_nothing_and_is_not_steady() {
    for seed in 0..6 {
        // It begins 0.1 to 0.6 s before the end of the measurement at 6.02 s and lasts 2 s.
        let from = 6 * SECOND - (1 + seed) * SECOND / 10;
        let run = over_a_freeze(Behaviour {
            stalls: vec![(from, from + 2 * SECOND)],
            delay_sigma: 0.5,
            seed,
            ..Behaviour::default()
        });
        let t = &run.trial;
        let p99 = t.messages.latency_ns.p99.expect("all have come");
        assert!(p99 > 1_400 * MS, "{p99}");
        assert_eq!(t.verdict.status, Status::Unsteady, "{:#?}", t.verdict);
        assert!(
            t.verdict.reasons[0].text.contains("stood still"),
            "{:?}",
            t.verdict
        );
    }
}

/// A queue stands at the end of the measurement; it comes within 0.1 s, and the last message of all 3 s later. A freeze
/// before that is told with its own length.
#[test]
fn a_straggler_behind_a_queue_is_no_standstill() {
    for (frozen_for, stood_still) in [(200 * MS, false), (1_300 * MS, true)] {
        for seed in 0..4 {
            let thaw = 6_100 * MS;
            let run = over_a_freeze(Behaviour {
                stalls: vec![(thaw - frozen_for, thaw)],
                // The sentinels behind it are as late: order is kept.
                slower: vec![(6_018 * MS, 8 * SECOND, 3 * SECOND)],
                ordered: true,
                seed,
                ..Behaviour::default()
            });
            let t = &run.trial;
            let latest = t.messages.latency_ns.max.unwrap();
            assert!(latest >= 3 * SECOND, "{latest}");
            let before_several = t.silence_before_several_ns.unwrap();
            within(before_several as f64, frozen_for as f64, 0.02);
            assert_eq!(run.stood_still(), stood_still, "{:#?}", t.verdict);
        }
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
        for record in run.trial.series.iter().filter(|s| s.traffic.t_s < 9.5) {
            assert_eq!(
                (
                    record.traffic.published,
                    record.traffic.due,
                    record.traffic.delivered
                ),
                (1, 100, 100)
            );
        }
    }
}

#[test]
fn records_have_the_length_that_is_asked_for() {
    for (seed, seconds) in [(0, 2), (1, 5), (2, 11)] {
        let mut w = workload(1, 3, Arrivals::Periodic { per_s: 10.0 });
        w.phases.measure = Until::Time(90 * SECOND);
        w.phases.record = Some(seconds * SECOND);
        let behaviour = Behaviour {
            seed,
            ..Behaviour::default()
        };
        let run = simulate(w, behaviour, Settings::default());
        run.agrees();
        run.is(Status::Valid, "");
        let whole = run.trial.series.iter().take((90 / seconds) as usize);
        for (n, record) in (1..).zip(whole) {
            within(record.traffic.t_s, (n * seconds) as f64, 0.01);
            assert_eq!(
                (record.traffic.published, record.traffic.delivered),
                (10 * seconds, 30 * seconds)
            );
        }
    }
}

/// A measurement that ends by count has as few records as it happens to last: an overload is none the less none that is
/// carried.
#[test]
fn overload_within_a_single_record_is_not_valid() {
    for record in [None, Some(5 * SECOND)] {
        for messages in [3_000, 9_000, 45_000] {
            let mut w = workload(1, 1, Arrivals::Periodic { per_s: 3_000.0 });
            w.phases.measure = Until::Count(messages, 60 * SECOND);
            w.phases.record = record;
            let run = simulate(w, limited(messages), Settings::default());
            run.agrees();
            let status = run.trial.verdict.status;
            println!("{record:?} {messages}: {status:?}");
            assert!(
                matches!(status, Status::Overloaded | Status::TooShort),
                "{record:?} {messages}: {status:?}"
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
            (
                t.messages.unique(),
                t.messages.duplicated,
                t.messages.delivered
            ),
            (5_000, 5_000, 10_000)
        );
        within(t.messages.delivered_msgs_per_s, 500.0, 0.01);
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
        assert_eq!(
            (run.trial.messages.unique(), run.trial.messages.duplicated),
            (5_000, 5_000)
        );
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
        within(run.trial.messages.delivered_msgs_per_s, per_s, 0.02);
        assert!(run.trial.messages.delivered_msgs_per_s <= 1.001 * per_s);
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
    assert!(run.trial.shortfall.lost > 0);
    // 20 under way at 5 ms each, less 5 %.
    within(run.trial.messages.delivered_msgs_per_s, 3_800.0, 0.03);
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
        assert_eq!(t.messages.offered, 6_000);
        assert!(
            t.messages.not_sent.abs_diff(200 * (seed + 1)) <= 11,
            "{}",
            t.messages.not_sent
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
            assert_eq!(
                (
                    t.messages.duplicated,
                    t.messages.reordered,
                    t.shortfall.lost
                ),
                (0, 0, 0)
            );
            assert_eq!((t.messages.published, t.messages.unique()), (1_000, 1_000));
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
        drain_ms in 50u64..3_000, outage_ms in prop_oneof![Just(None), (1u64..6_000).prop_map(Some)],
    ) {
        let disconnects = outage_ms.map(|at| (at * MS, "pub0".to_owned()));
        let plant = Behaviour { disconnects: disconnects.into_iter().collect(), ..plant };
        let arrivals = if flat_out { Arrivals::FlatOut } else { Arrivals::Periodic { per_s: rate } };
        let mut w = workload(publishers, subscribers, arrivals);
        w.flows[0].window = Some(200);
        w.phases.measure = Until::Time(seconds * SECOND + 250 * MS);
        w.phases.drain_within = drain_ms * MS;
        w.phases.reconnect_after = Some(300 * MS);
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
        assert_eq!(run.record.recordings.len(), 6, "{what}");
        assert!(run.trial.messages.unique() > 250, "{what}");
        run.agrees_to(0.05);
    }
}

/// 50,000 a second that leave in batches, of a client that hands them over at 1 million a second, on a system
/// with room.
#[test]
fn what_is_gathered_leaves_whole() {
    for (seed, (seconds, span)) in [(1, 100), (1, 37), (2, 250), (5, 100)]
        .into_iter()
        .enumerate()
    {
        let behaviour = Behaviour {
            publish_cost_ns: 1_000,
            seed: seed as u64,
            ..Behaviour::default()
        };
        let mut w = workload(5, 1, Arrivals::Periodic { per_s: 50_000.0 });
        w.phases.warm_up = Until::Time(SECOND / 2);
        w.phases.measure = Until::Time(seconds * SECOND);
        let run = gathered(w, behaviour, span * MS);
        run.agrees();
        run.is(Status::Valid, "");
        let t = &run.trial;
        let due = 50_000 * seconds;
        assert_eq!(
            (
                t.messages.offered,
                t.messages.published,
                t.messages.not_sent
            ),
            (due, due, 0)
        );
        let longest = t.messages.send_lag_ns.max.expect("all have left");
        assert!(longest <= span * MS + 20 * MS, "{longest}");
    }
}

/// A client that hands over a fifth less than is due leaves the rest to itself, and not to a system with room.
#[test]
fn what_a_slow_client_never_offered_is_its_own() {
    for (seed, span) in [0, 0, 20, 100].into_iter().enumerate() {
        let behaviour = Behaviour {
            publish_cost_ns: 500_000,
            seed: seed as u64,
            ..Behaviour::default()
        };
        let w = workload(1 + seed as u32, 1, Arrivals::Periodic { per_s: 2_500.0 });
        let run = gathered(w, behaviour, span * MS);
        run.agrees();
        run.is(Status::ClientBound, "never offered to the system");
        let t = &run.trial;
        assert_eq!(t.messages.offered, 25_000);
        // 500 a second of 12 s stay behind, those of the warm-up first; 2 leave in each ms after the end, for 20 ms
        // and the span, in which it had nothing to send when it began.
        within(t.messages.not_sent as f64, 5_960.0, 0.003);
        assert_eq!(t.shortfall.not_tried, t.messages.not_sent);
    }
}

/// Messages that a full system holds back were offered to it: the system is named, as before.
#[test]
fn what_a_full_system_holds_back_is_its_own() {
    for seed in 0..4 {
        let behaviour = Behaviour {
            capacity: 50,
            ..limited(seed)
        };
        let w = workload(1 + seed as u32, 1, Arrivals::Periodic { per_s: 1_300.0 });
        let run = simulate(w, behaviour, Settings::default());
        run.agrees();
        run.is(Status::Overloaded, "could not be handed over");
        assert_eq!(run.trial.shortfall.not_tried, 0);
    }
}

/// Percentiles are those of all that was due: with 0.59 % without a latency there is none above 99.41.
#[test]
fn percentiles_count_what_was_not_sent() {
    for seed in 0..4 {
        // The system takes nothing more in the last 60 ms of the measurement, which ends at 12.02 s.
        let end = 12 * SECOND + 20 * MS;
        let behaviour = Behaviour {
            capacity: 1,
            stalls: vec![(end - 60 * MS, end + 200 * MS)],
            delay_median_ns: MS / 2,
            seed,
            ..Behaviour::default()
        };
        let w = workload(1 + seed as u32, 1, Arrivals::Periodic { per_s: 1_000.0 });
        let run = simulate(w, behaviour, Settings::default());
        run.agrees();
        run.is(Status::Valid, "");
        let t = &run.trial;
        assert_eq!(t.messages.offered, 10_000);
        let ended = run.record.table.expect("it was measured").end - START;
        let due = (ended - (end - 60 * MS)) / MS;
        assert!(
            t.messages.not_sent.abs_diff(due) <= 2,
            "{} of {due}",
            t.messages.not_sent
        );
        for d in [
            &t.messages.latency_ns,
            &t.messages.latency_from_send_ns,
            &t.messages.send_lag_ns,
        ] {
            assert!(d.p99.is_some_and(|p99| p99 < 2 * MS), "{d:?}");
            assert_eq!((d.p99_9, d.p99_99, d.max, d.mean), (None, None, None, None));
        }
    }
}

/// Lost messages have no latency, where losses are allowed too.
#[test]
fn percentiles_count_what_was_lost() {
    for (seed, loss) in [(0, 0.004), (1, 0.05), (2, 0.2)] {
        let behaviour = Behaviour {
            loss,
            seed,
            ..Behaviour::default()
        };
        let mut w = workload(2, 2, Arrivals::Periodic { per_s: 1_000.0 });
        w.phases.losses_allowed = true;
        let run = simulate(w, behaviour, Settings::default());
        run.agrees();
        run.is(Status::Valid, "");
        let d = &run.trial.messages.latency_ns;
        assert_eq!(d.count + d.censored, 20_000);
        assert!(d.p50.is_some() && d.max.is_none());
        assert_eq!(d.p90.is_some(), loss < 0.1);
        assert_eq!(d.p99.is_some(), loss < 0.01);
        assert_eq!(d.p99_9, None);
    }
}

/// A client that is stopped across the start of the measurement, across its end, or through all of it, is named
/// with the share that it stood still.
#[test]
fn a_client_that_is_stopped_is_named_with_its_share() {
    // The measurement is from 2.02 to 12.02 s.
    for (from, to, share) in [
        (1_500, 10_120, 0.81),
        (1_900, 4_020, 0.2),
        (7_720, 40_000, 0.43),
        (1_000, 2_900, 0.088),
        (1_500, 40_000, 1.0),
        (2_021, 40_000, 1.0),
    ] {
        let behaviour = Behaviour {
            client_sleeps: vec![(from * MS, to * MS)],
            ..Behaviour::default()
        };
        let w = workload(2, 1, Arrivals::Periodic { per_s: 200.0 });
        let run = simulate(w, behaviour, Settings::default());
        run.agrees();
        run.is(Status::ClientBound, "stood still");
        let t = &run.trial;
        assert_eq!(t.messages.offered, 2_000);
        for stalled in [
            t.worker_load.publishers_stalled,
            t.worker_load.longest_stall_ns as f64 / 10e9,
        ] {
            assert!((stalled - share).abs() < 0.005, "{stalled} for {share}");
        }
        // Its running time is a share of the time that it had a reading of.
        let usage = &run.record.recordings[0].usage;
        let measured = usage.span as f64 / 1e9;
        assert!((9.9..10.2).contains(&measured), "{measured} s");
    }
}

/// A publisher that the system stops reading: what it never acknowledged is under way, not lost.
#[test]
fn what_was_never_acknowledged_is_under_way() {
    for (seed, window) in [(0, 1), (1, 4), (2, 10), (3, 10)] {
        let behaviour = Behaviour {
            unread: vec![(8 * SECOND, "pub1".into())],
            seed,
            ..Behaviour::default()
        };
        let settings = Settings {
            in_flight: Some(window),
            ..at_least_once()
        };
        let w = workload(4, 1 + seed as u32 % 2, Arrivals::Periodic { per_s: 400.0 });
        let receivers = 1 + seed % 2;
        let run = simulate(w, behaviour, settings);
        run.agrees();
        run.is(Status::Overloaded, "never acknowledged");
        let t = &run.trial;
        assert_eq!(
            (t.shortfall.lost, t.shortfall.under_way),
            (0, u64::from(window) * receivers)
        );
        let acknowledged = t
            .messages
            .acknowledgement_ns
            .expect("the system acknowledges");
        assert_eq!(acknowledged.censored, u64::from(window));
        assert_eq!(
            acknowledged.count + acknowledged.censored,
            t.messages.published
        );
    }
}

/// An acknowledgement that comes long after the last delivery is waited for.
#[test]
fn late_acknowledgements_are_awaited() {
    for seed in 0..8 {
        // An acknowledgement takes 400 ms, a delivery half of the time less.
        let behaviour = Behaviour {
            delay_median_ns: 400 * MS,
            delay_sigma: 1.0,
            ordered: false,
            seed,
            ..Behaviour::default()
        };
        let mut w = workload(1, 1, Arrivals::Periodic { per_s: 1.0 });
        // Longer than any delivery takes: none is given up.
        w.phases.drain_quiet = 8 * SECOND;
        let run = simulate(w, behaviour, at_least_once());
        run.agrees();
        let acknowledged = run
            .trial
            .messages
            .acknowledgement_ns
            .expect("the system acknowledges");
        assert_eq!((acknowledged.count, acknowledged.censored), (10, 0));
        assert!(acknowledged.max.is_some());
    }
}

/// A broker that is away for 1.2 s: what was due meanwhile is a count of its own and reached nobody, latency is
/// that of all that was due, and the silence is as long as the outage.
#[test]
fn an_outage_is_told_as_an_outage() {
    for (seed, publishers) in [(0, 1), (1, 3)] {
        let clients = (0..publishers).map(|n| format!("pub{n}"));
        let clients = clients.chain(["sub0".to_owned()]);
        let behaviour = Behaviour {
            disconnects: clients.map(|name| (5 * SECOND, name)).collect(),
            seed,
            ..Behaviour::default()
        };
        for losses_allowed in [false, true] {
            let mut w = workload(publishers, 1, Arrivals::Periodic { per_s: 500.0 });
            w.phases.reconnect_after = Some(1_200 * MS);
            w.phases.disconnects_allowed = true;
            w.phases.losses_allowed = losses_allowed;
            let run = simulate(w, behaviour.clone(), Settings::default());
            run.adds_up();
            let t = &run.trial;
            assert_eq!(
                (t.messages.offered, t.messages.refused, t.messages.not_sent),
                (5_000, 0, 0)
            );
            assert!(
                t.messages.not_connected.abs_diff(600) <= 3,
                "{}",
                t.messages.not_connected
            );
            assert_eq!(t.messages.expected, 5_000);
            // One message or two were on their way when the connections ended.
            assert!(
                (t.shortfall.lost - t.messages.not_connected) <= 2,
                "{}",
                t.shortfall.lost
            );
            assert_eq!(t.messages.unique() + t.shortfall.lost, 5_000);
            within(t.longest_silence_ns as f64, 1.2e9, 0.01);
            assert_eq!(
                (t.messages.latency_ns.p90, t.messages.latency_ns.max),
                (None, None)
            );
            assert!(t.messages.latency_ns.p50.is_some());
            let status = if losses_allowed {
                Status::Unsteady
            } else {
                Status::Lossy
            };
            run.is(
                status,
                "the system stood still: nothing was delivered for 1.20 s",
            );
            if !losses_allowed {
                run.is(
                    status,
                    "600 messages fell due while their publisher was not connected",
                );
            }
        }
    }
}

/// Without acknowledgements from the subscriber of one topic, the others' silence is not that of its publisher.
#[test]
fn an_outage_of_one_of_two_publishers_is_no_silence() {
    let behaviour = Behaviour {
        disconnects: vec![(5 * SECOND, "pub0".into())],
        ..Behaviour::default()
    };
    let mut w = workload(2, 1, Arrivals::Periodic { per_s: 100.0 });
    w.phases.reconnect_after = Some(1_200 * MS);
    w.phases.disconnects_allowed = true;
    w.phases.losses_allowed = true;
    let run = simulate(w, behaviour, Settings::default());
    run.adds_up();
    run.is(Status::Valid, "");
    assert!(run.trial.messages.not_connected.abs_diff(60) <= 1);
    assert!(run.trial.longest_silence_ns < 50 * MS);
}

/// One publisher asks on 20 topics, each heard by a device of its own: all answer, paced and one after the other.
#[test]
fn every_question_is_answered_by_who_hears_it() {
    for arrivals in [Arrivals::FlatOut, Arrivals::Periodic { per_s: 200.0 }] {
        let mut w = workload(1, 20, arrivals.clone());
        w.flows[0].exchange = Exchange::PingPong;
        w.phases.measure = Until::Time(2 * SECOND);
        let topic = |n: usize| format!("command/{n}");
        w.flows[0].publishers[0].topics = (0..20).map(topic).collect();
        for (n, subscriber) in w.flows[0].subscribers.iter_mut().enumerate() {
            subscriber.filters = vec![topic(n)];
        }
        let run = simulate(w, Behaviour::default(), Settings::default());
        run.adds_up();
        run.is(Status::Valid, "");
        let t = &run.trial;
        let questions = t.shortfall.questions.expect("a ping-pong");
        assert_eq!(
            (questions.asked, questions.unanswered),
            (t.messages.published, 0)
        );
        assert!(t.messages.published >= 400, "{}", t.messages.published);
        let round_trips = t.messages.round_trip_ns.expect("a ping-pong");
        assert_eq!(
            (round_trips.count, round_trips.censored),
            (t.messages.published, 0)
        );
        let max = round_trips.max.expect("all were answered");
        assert!(max.abs_diff(2 * MS) < 10_000, "{max}");
    }
}

/// Questions and answers that are lost: the trial says how many and is not valid; round trips are those of all.
#[test]
fn unanswered_questions_are_no_valid_trial() {
    for (seed, loss) in [(0, 0.02), (1, 0.1)] {
        let behaviour = Behaviour {
            loss,
            delay_median_ns: 100 * MS,
            seed,
            ..Behaviour::default()
        };
        let mut w = workload(2, 1, Arrivals::Periodic { per_s: 200.0 });
        w.flows[0].exchange = Exchange::PingPong;
        let run = simulate(w, behaviour, Settings::default());
        run.adds_up();
        let came = run.truth.iter().filter(|record| {
            let measured = record.header.filter(|header| {
                let start = run.record.table.expect("it was measured").measure;
                header.kind == Kind::Reply && run.record.epoch + header.intended >= start
            });
            measured.is_some()
                && record.delivered_at.is_some()
                && record.subscriber.starts_with("pub")
        });
        let end = run.record.table.expect("it was measured").end;
        let late = came
            .clone()
            .filter(|record| record.delivered_at >= Some(end));
        let late = late.count() as u64;
        let (came, t) = (came.count() as u64, &run.trial);
        let questions = t.shortfall.questions.expect("a ping-pong");
        assert_eq!((questions.asked, questions.answered), (2_000, came));
        // A round trip takes 200 ms, in which 40 are asked.
        assert_eq!(questions.answered_late, late);
        assert!((30..=40).contains(&late), "{late}");
        assert_eq!(questions.unanswered, 2_000 - came);
        run.is(Status::Lossy, "questions got no answer");
        let round_trips = t.messages.round_trip_ns.expect("a ping-pong");
        assert_eq!(
            (round_trips.count, round_trips.censored),
            (came, 2_000 - came)
        );
        assert_eq!((round_trips.p99, round_trips.max), (None, None));
    }
}

/// Answers that come twice are one answer.
#[test]
fn an_answer_that_comes_twice_counts_once() {
    let behaviour = Behaviour {
        duplication: 1.0,
        ..Behaviour::default()
    };
    let mut w = workload(2, 1, Arrivals::Periodic { per_s: 200.0 });
    w.flows[0].exchange = Exchange::PingPong;
    let run = simulate(w, behaviour, at_least_once());
    run.adds_up();
    let questions = run.trial.shortfall.questions.expect("a ping-pong");
    assert_eq!((questions.asked, questions.answered), (2_000, 2_000));
    assert_eq!(
        run.trial.messages.round_trip_ns.map(|d| d.count),
        Some(2_000)
    );
}
