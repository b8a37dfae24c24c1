//! Clients that are turned away at first, and clients that come and go: counts and times against what was planted.

use std::ops::Range;

use pubgauge_driver::{Reliability, Session, Settings};
use pubgauge_figures::figure::figure;
use pubgauge_figures::model::{FailureKind, Status};
use pubgauge_simulator::{Behaviour, Truth};
use pubgauge_workload::presence::{Between, Presence};
use pubgauge_workload::{Arrivals, Nanos, RateCurve, SECOND, Until, Workload};

use crate::planted::*;

const MS: Nanos = 1_000_000;

hold_for_seeds!(
    clients_that_are_turned_away_at_first_get_in_and_are_counted,
    a_durable_session_gets_all_that_was_due_while_it_was_away,
    what_a_subscriber_misses_while_it_is_away_is_no_loss_and_what_it_misses_later_is,
    nothing_falls_due_to_publishers_that_are_away,
    a_restart_has_a_length,
);

fn durable() -> Settings {
    Settings {
        session: Some(Session::Durable),
        reliability: Some(Reliability::AtLeastOnce),
        ..Settings::default()
    }
}

/// Half a second at most of everything, so that a thousand trials take seconds.
fn brief(publishers: u32, subscribers: u32, per_s: f64, seed: u64) -> Workload {
    let mut workload = workload(publishers, subscribers, Arrivals::Periodic { per_s });
    workload.phases.warm_up = Until::Time(SECOND / 10);
    workload.phases.measure = Until::Time(2 * SECOND);
    workload.phases.drain_quiet = SECOND / 5;
    workload.seed = seed;
    workload
}

fn come_and_go(workload: &mut Workload, publishers: bool, subscribers: bool) {
    workload.flows[0].presence = Some(Box::new(Presence {
        publishers,
        subscribers,
        online: Between {
            least: 200 * MS,
            most: 500 * MS,
        },
        offline: Between {
            least: 100 * MS,
            most: 400 * MS,
        },
        spread: true,
        back_within: None,
        vanishes: false,
    }));
}

fn clients_that_are_turned_away_at_first_get_in_and_are_counted(seeds: Range<u64>) {
    let seeds: Vec<u64> = seeds.collect();
    of_each(&seeds, |seed| {
        let publishers = 5 + (seed % 40) as u32;
        let turned_away: Vec<(String, u32)> = (0..publishers)
            .map(|n| {
                (
                    format!("pub{n}"),
                    ((seed * 7 + u64::from(n) * 13) % 4) as u32,
                )
            })
            .collect();
        let refused: u32 = turned_away.iter().map(|(_, attempts)| attempts).sum();
        let behaviour = Behaviour {
            connect_ns: (1 + seed % 9) * MS,
            turned_away,
            ..Behaviour::default()
        };
        let takes = behaviour.connect_ns as f64;
        let run = simulate(
            brief(publishers, 1, 100.0, *seed),
            behaviour,
            Settings::default(),
        );
        run.is(Status::Valid, "");
        let of = |name: &str| figure(&run.trial, None, name);
        assert_eq!(
            of("connections-refused"),
            Some(f64::from(refused)),
            "seed {seed}"
        );
        assert_eq!(of("connections-made"), Some(f64::from(publishers + 1)));
        assert_eq!(of("connections-lost"), Some(0.0));
        for quantile in ["min", "p50", "max"] {
            within(
                of(&format!("time-to-connect.{quantile}")).unwrap(),
                takes,
                0.002,
            );
        }
        let failures = &run.trial.client_failures;
        assert!(failures.iter().all(|f| f.kind == FailureKind::Refused));
        let told: u64 = failures.iter().map(|failure| failure.count).sum();
        assert_eq!(told, u64::from(refused));
    });
}

#[test]
fn who_never_gets_in_is_told_with_the_servers_words_and_their_count() {
    let behaviour = Behaviour {
        turned_away: (20..64).map(|n| (format!("pub{n}"), u32::MAX)).collect(),
        ..Behaviour::default()
    };
    let mut w = workload(64, 1, Arrivals::Periodic { per_s: 100.0 });
    w.phases.ready_within = 30 * SECOND;
    let run = simulate(w, behaviour, Settings::default());
    run.is(Status::Broken, "20 of 65 connections were made");
    run.is(Status::Broken, "the simulated system is busy");
    // An eighth of the 30 s, and what it took to get there.
    assert!(
        run.record.connect_span < 6 * SECOND,
        "{}",
        run.record.connect_span
    );
}

#[test]
fn the_code_with_which_a_system_rejects_what_proves_its_paths_is_told() {
    let behaviour = Behaviour {
        rejection: 1.0,
        rejection_code: 0x87,
        ..Behaviour::default()
    };
    let mut w = workload(2, 1, Arrivals::Periodic { per_s: 100.0 });
    w.phases.ready_within = 2 * SECOND;
    let run = simulate(w, behaviour, durable());
    run.is(Status::Broken, "135");
    let failure = &run.trial.client_failures[0];
    assert_eq!(failure.kind, FailureKind::Rejected);
    assert!(failure.count >= 2, "{failure}");
}

fn a_durable_session_gets_all_that_was_due_while_it_was_away(seeds: Range<u64>) {
    let seeds: Vec<u64> = seeds.collect();
    of_each(&seeds, |seed| {
        let mut w = brief(2, 3, 200.0, *seed);
        come_and_go(&mut w, false, true);
        let behaviour = Behaviour {
            connect_ns: 3 * MS,
            closing_ns: (seed % 2) * 50 * MS,
            backlog_every_ns: 10_000,
            ordered: true,
            seed: *seed,
            ..Behaviour::default()
        };
        let run = simulate(w, behaviour, durable());
        run.is(Status::Valid, "");
        let truth = Truth::count(&run.truth, run.record.epoch);
        let messages = &run.trial.messages;
        assert_eq!(messages.delivered, truth.delivered, "seed {seed}");
        assert_eq!(messages.expected, truth.unique);
        assert_eq!((run.trial.shortfall.lost, messages.missed), (0, 0));
        // All that took longer than its way was kept for who was away.
        let late = truth.latencies.iter().filter(|ns| **ns > 2 * MS).count() as u64;
        assert!(late <= messages.backlog, "{late} {}", messages.backlog);
        let presence = run.trial.presence.unwrap();
        let all = messages.backlog;
        assert!(all - late <= 4 * presence.left, "seed {seed}: {late} {all}");
        assert_eq!(messages.latency_ns.count + messages.backlog, truth.unique);
        // Behind the backlog of a subscriber that is just back, at most.
        assert!(messages.latency_ns.max.unwrap() <= 2_100_000);
        assert!((6..=20).contains(&presence.left), "{}", presence.left);
        // Who was still closing its connection when all had come does not come back.
        let closing = presence.left - presence.returned;
        assert!(closing == 0 || seed % 2 == 1 && closing <= 3, "{closing}");
        assert_eq!(run.trial.connections.remade, presence.returned);
        assert_eq!(run.trial.connections.lost, 0);
        within(
            run.trial
                .connections
                .time_to_reconnect_ns
                .unwrap()
                .max
                .unwrap() as f64,
            3e6,
            0.002,
        );
        let backlog = presence.backlog_ns.unwrap();
        assert_eq!(backlog.count, messages.backlog);
        within(backlog.min.unwrap() as f64, 1e6, 0.002);
    });
}

/// The system is deaf for a while after it has confirmed a subscription: what is due then is lost, and nothing else is.
fn what_a_subscriber_misses_while_it_is_away_is_no_loss_and_what_it_misses_later_is(
    seeds: Range<u64>,
) {
    let seeds: Vec<u64> = seeds.collect();
    of_each(&seeds, |seed| {
        let deaf = (seed % 3) * 40 * MS;
        let mut w = brief(3, 2, 300.0, *seed);
        let (mut slowest, mut fastest) = (300.0, 300.0);
        // Of some the rate changes meanwhile.
        if seed % 5 == 1 {
            (slowest, fastest) = (200.0, 400.0);
            w.flows[0].arrivals = Arrivals::Varying {
                curve: RateCurve::ramp(slowest, fastest, 2 * SECOND).into(),
                random: false,
            };
        }
        come_and_go(&mut w, false, true);
        let behaviour = Behaviour {
            connect_ns: 2 * MS,
            // Half of them get messages until their connection has ended.
            closing_ns: (seed % 2) * 50 * MS,
            deaf_for_ns: deaf,
            seed: *seed,
            ..Behaviour::default()
        };
        let run = simulate(w, behaviour, Settings::default());
        let truth = Truth::count(&run.truth, run.record.epoch);
        let t = &run.trial;
        assert_eq!(t.messages.delivered, truth.delivered, "seed {seed}");
        assert_eq!(
            t.messages.expected,
            t.messages.unique() + t.messages.missed + t.shortfall.lost,
            "seed {seed}"
        );
        let left = t.presence.unwrap().left;
        // At 300/s, 12 of 40 ms, give or take one of each of three streams.
        let lost = t.shortfall.lost as f64;
        let each = deaf as f64 / 1e9 * slowest;
        let returned = (t.connections.remade as f64) * deaf as f64 / 1e9 * fastest;
        match deaf {
            0 => run.is(Status::Valid, ""),
            _ => run.is(Status::Lossy, "were lost"),
        }
        assert!(
            lost <= returned + 3.0 * left as f64,
            "seed {seed}: {lost} {returned}"
        );
        if deaf > 0 {
            // Those that came back at the end have nothing to miss.
            assert!(
                lost >= each * (left as f64 - 4.0) - 3.0 * left as f64,
                "{lost}"
            );
        } else {
            assert_eq!(lost, 0.0);
        }
        assert!(t.messages.missed > 0);
    });
}

/// Workers draw random arrivals each for itself, so that nobody else knows when a message was due.
#[test]
fn with_random_arrivals_losses_after_an_absence_are_not_told_from_misses() {
    let seeds: Vec<u64> = (0..50).collect();
    of_each(&seeds, |seed| {
        let mut w = brief(3, 2, 300.0, *seed);
        w.flows[0].arrivals = Arrivals::Poisson { per_s: 300.0 };
        come_and_go(&mut w, false, true);
        let behaviour = Behaviour {
            connect_ns: 2 * MS,
            deaf_for_ns: 40 * MS,
            seed: *seed,
            ..Behaviour::default()
        };
        let run = simulate(w, behaviour, Settings::default());
        let messages = &run.trial.messages;
        assert_eq!(run.trial.shortfall.lost, 0, "seed {seed}");
        assert_eq!(messages.expected, messages.unique() + messages.missed);
    });
}

fn nothing_falls_due_to_publishers_that_are_away(seeds: Range<u64>) {
    let seeds: Vec<u64> = seeds.collect();
    of_each(&seeds, |seed| {
        let mut w = brief(10, 1, 500.0, *seed);
        come_and_go(&mut w, true, false);
        let absences: Vec<(Nanos, Nanos)> = (0..10)
            .flat_map(|device| {
                let presence = w.flows[0].presence.as_ref().unwrap();
                let all = presence.absences(*seed, device);
                all.map(|absence| (absence.from, absence.to))
                    .take_while(|(from, _)| *from < 2 * SECOND)
            })
            .collect();
        let settings = Settings {
            reliability: Some(Reliability::AtLeastOnce),
            ..Settings::default()
        };
        let behaviour = Behaviour {
            connect_ns: 5 * MS,
            ordered: true,
            seed: *seed,
            ..Behaviour::default()
        };
        let run = simulate(w, behaviour, settings);
        run.is(Status::Valid, "");
        let t = &run.trial;
        assert_eq!(
            t.presence.unwrap().left,
            absences.len() as u64,
            "seed {seed}"
        );
        assert_eq!(t.messages.offered + t.messages.away, 1_000);
        // Who is connecting when the measurement ends does not send what it was to.
        assert_eq!(
            t.messages.published + t.messages.not_sent,
            t.messages.offered
        );
        assert!(t.messages.not_sent <= 3, "{}", t.messages.not_sent);
        assert_eq!((t.shortfall.lost, t.messages.not_connected), (0, 0));
        // 50/s of each publisher.
        let away: Nanos = absences
            .iter()
            .map(|(from, to)| to.min(&(2 * SECOND)) - from)
            .sum();
        let due = away as f64 / 1e9 * 50.0;
        let off = (t.messages.away as f64 - due).abs();
        assert!(
            off <= absences.len() as f64,
            "seed {seed}: {} {due}",
            t.messages.away
        );
        // Messages that fell due while it connected waited for that, and no longer.
        let latency = t.messages.latency_ns.max;
        assert!(
            t.messages.not_sent > 0 || latency.unwrap() <= 7 * MS,
            "{latency:?}"
        );
    });
}

fn a_restart_has_a_length(seeds: Range<u64>) {
    let seeds: Vec<u64> = seeds.collect();
    of_each(&seeds, |seed| {
        let (first, apart) = (5 * SECOND / 2 + (seed % 400) * 5 * MS, (seed % 300) * MS);
        let mut w = workload(4, 1, Arrivals::Periodic { per_s: 200.0 });
        w.phases.measure = Until::Time(4 * SECOND);
        w.phases.reconnect_after = Some(SECOND / 2);
        w.phases.disconnects_allowed = true;
        w.phases.losses_allowed = true;
        let behaviour = Behaviour {
            connect_ns: 20 * MS,
            disconnects: vec![(first, "pub1".into()), (first + apart, "pub3".into())],
            ..Behaviour::default()
        };
        let run = simulate(w, behaviour, Settings::default());
        let t = &run.trial;
        let [one] = &t.interruptions[..] else {
            panic!("seed {seed}: {:?}", t.interruptions)
        };
        assert_eq!(one.lost, 2);
        within(one.out_s.unwrap(), 0.52, 0.03);
        within(one.back_s.unwrap(), 0.52 + apart as f64 / 1e9, 0.03);
        // 50/s of each publisher.
        let due = t.messages.not_connected as f64;
        assert!((due - 52.0).abs() <= 4.0, "seed {seed}: {due}");
    });
}

/// Those who are away at the end of the measurement are called back as carefully as they were connected at first: a rush that
/// the workload does not have would throw some out of a system that turns away what is too many at once.
#[test]
fn all_are_called_back_without_a_rush() {
    let mut workload = brief(1, 300, 20.0, 3);
    workload.flows[0].presence = Some(Box::new(Presence {
        publishers: false,
        subscribers: true,
        online: Between::exactly(SECOND),
        offline: Between::exactly(60 * SECOND),
        spread: false,
        back_within: Some(SECOND / 2),
        vanishes: false,
    }));
    let behaviour = Behaviour {
        connect_ns: 20 * MS,
        connecting_at_once: 64,
        ..Behaviour::default()
    };
    let run = simulate(workload, behaviour, durable());
    run.is(Status::Valid, "");
    let connections = &run.trial.connections;
    assert_eq!((connections.made, connections.remade), (301, 300));
    assert_eq!((connections.refused, connections.lost), (0, 0));
    assert_eq!(run.trial.shortfall.lost, 0);
    assert!(run.trial.messages.backlog > 0);
}
