//! Readiness: that every subscriber receives is proven before anything is measured, whatever the system.

use pubgauge_driver::{Clock, Kind, Reliability, Settings};
use pubgauge_engine::conductor::TrialEnd;
use pubgauge_simulator::Behaviour;
use pubgauge_workload::{Arrivals, SECOND, Workload};

use super::{Run, agree, simulate, workload};

/// A publisher with 2,000 topics, which all subscribers hear.
fn many_topics(subscribers: u32) -> Workload {
    let mut workload = workload(1, subscribers, Arrivals::Periodic { per_s: 100.0 });
    workload.flows[0].publishers[0].topics = (0..2000).map(|t| format!("t/{t}")).collect();
    workload
}

/// No message took 100 ms: none stood behind sentinels in a queue.
#[track_caller]
fn none_waited(run: &Run) {
    let messages = run.truth.iter().filter(|t| {
        t.header
            .is_some_and(|h| matches!(h.kind, Kind::WarmUp | Kind::Measured))
    });
    let longest = messages.filter_map(|t| Some(t.delivered_at? - t.published_at));
    let longest = longest.max();
    assert!(longest.is_some_and(|ns| ns < SECOND / 10), "{longest:?}");
}

#[test]
fn late_subscribers_are_waited_for() {
    let behaviour = Behaviour {
        deaf_for_ns: 700_000_000,
        ..Behaviour::default()
    };
    let run = simulate(
        workload(2, 2, Arrivals::Periodic { per_s: 100.0 }),
        behaviour,
        Settings::default(),
        Clock::virtual_at(SECOND),
    );
    agree(&run);
    assert_eq!(run.record.sum().lost(), 0);
    assert!(
        run.record.prove_span >= 700_000_000,
        "{}",
        run.record.prove_span
    );
}

/// More topics than messages that may be unacknowledged: each gets its sentinel all the same.
#[test]
fn readiness_is_proven_at_any_window() {
    for in_flight in [1, 20] {
        let mut w = workload(2, 1, Arrivals::Periodic { per_s: 100.0 });
        for (p, publisher) in w.flows[0].publishers.iter_mut().enumerate() {
            publisher.topics = (0..50).map(|t| format!("t/{p}/{t}")).collect();
        }
        let settings = Settings {
            reliability: Some(Reliability::AtLeastOnce),
            in_flight: Some(in_flight),
            ..Settings::default()
        };
        let clock = Clock::virtual_at(SECOND);
        let run = simulate(w, Behaviour::default(), settings, clock);
        agree(&run);
        assert_eq!(run.record.recordings[0].sentinels, 100);
    }
}

/// 2,000 topics on a system that takes 1 ms for each message: one sentinel on each, and the measurement
/// begins with none of them in the system's queue.
#[test]
fn sentinels_do_not_load_a_slow_system() {
    let mut w = many_topics(1);
    w.phases.ready_within = 10 * SECOND;
    let behaviour = Behaviour {
        service_ns: 1_000_000,
        ..Behaviour::default()
    };
    let run = simulate(w, behaviour, Settings::default(), Clock::virtual_at(SECOND));
    agree(&run);
    assert_eq!(run.record.recordings[0].sentinels, 2000);
    let span = run.record.prove_span;
    assert!(
        (2 * SECOND..2 * SECOND + SECOND / 10).contains(&span),
        "{span}"
    );
    none_waited(&run);
}

/// The system hears nothing for 300 ms, which takes the rounds at 0 and 200 ms, and stands still for 400 ms later,
/// in the midst of the third, which begins at 600 ms: a fourth goes out at most, and no message waits behind a sentinel.
#[test]
fn sentinels_of_a_system_that_stalls_leave_no_backlog() {
    for stall in [SECOND + 700_000_000, 2 * SECOND, SECOND + 1_300_000_000] {
        let mut w = many_topics(2);
        w.phases.ready_within = 20 * SECOND;
        let behaviour = Behaviour {
            service_ns: 200_000,
            deaf_for_ns: 300_000_000,
            stalls: vec![(stall, 400_000_000)],
            ..Behaviour::default()
        };
        let run = simulate(w, behaviour, Settings::default(), Clock::virtual_at(SECOND));
        agree(&run);
        let sentinels = run.record.recordings[0].sentinels;
        // The first round, which nobody heard, and one or two on each stream.
        assert!((2 * 2000..=4 * 2000).contains(&sentinels), "{sentinels}");
        none_waited(&run);
    }
}

/// A system that loses a fifth of 20,000 sentinels delivers the others at once: it is not taken for a slow one, neither
/// before the measurement nor in the drain, where its losses are told from what is late.
#[test]
fn sentinels_that_are_lost_are_soon_sent_again() {
    let mut w = many_topics(1);
    w.flows[0].publishers[0].topics = (0..20_000).map(|t| format!("t/{t}")).collect();
    w.phases.ready_within = 5 * SECOND;
    w.phases.drain_within = 5 * SECOND;
    let behaviour = Behaviour {
        loss: 0.2,
        ..Behaviour::default()
    };
    let run = simulate(w, behaviour, Settings::default(), Clock::virtual_at(SECOND));
    agree(&run);
    let sum = run.record.sum();
    assert!(sum.lost() > 0, "{sum:?}");
    assert_eq!(sum.under_way, 0, "{sum:?}");
}

/// A client whose queue drops what is beyond its length loses the same messages of equal rounds each time.
#[test]
fn a_queue_shorter_than_a_round_is_proven_in_parts() {
    for (topics, queue) in [(1200, 1000), (3000, 1000), (10_000, 1000), (3000, 100)] {
        let mut w = many_topics(1);
        w.flows[0].publishers[0].topics = (0..topics).map(|t| format!("t/{t}")).collect();
        w.phases.ready_within = 10 * SECOND;
        let behaviour = Behaviour {
            service_ns: 1000,
            queue,
            ..Behaviour::default()
        };
        let run = simulate(w, behaviour, Settings::default(), Clock::virtual_at(SECOND));
        agree(&run);
        assert_eq!(run.record.sum().lost(), 0, "{topics} topics");
    }
}

/// One of 2,000 topics reaches nobody: it is named.
#[test]
fn a_topic_that_never_comes_is_named() {
    let mut w = many_topics(1);
    w.phases.ready_within = 10 * SECOND;
    let behaviour = Behaviour {
        silences: vec!["t/1234".into()],
        ..Behaviour::default()
    };
    let run = simulate(w, behaviour, Settings::default(), Clock::virtual_at(SECOND));
    let TrialEnd::NotReady(why) = &run.record.outcome else {
        panic!("{:?}", run.record.outcome)
    };
    assert!(why.starts_with("1 of the publisher-to-"), "{why}");
    assert!(
        why.contains("within 10 s, one of them on \"t/1234\""),
        "{why}"
    );
}

/// One client with more subscriptions than its requests have numbers.
#[test]
fn subscriptions_are_asked_for_as_they_are_answered() {
    for (topics, at_once) in [
        (3000, 1500),
        (4000, 1000),
        (1000, 1000),
        (1001, 1000),
        (1, 1000),
    ] {
        let mut w = workload(1, 1, Arrivals::Periodic { per_s: 100.0 });
        let names: Vec<String> = (0..topics).map(|t| format!("t/{t}")).collect();
        w.flows[0].publishers[0].topics.clone_from(&names);
        w.flows[0].subscribers[0].filters = names;
        let behaviour = Behaviour {
            subscriptions_at_once: at_once,
            ..Behaviour::default()
        };
        let run = simulate(w, behaviour, Settings::default(), Clock::virtual_at(SECOND));
        agree(&run);
        assert_eq!(run.record.sum().lost(), 0, "{topics} subscriptions");
    }
}

/// A system that needs 4 s for the sentinels, of which it has 1 s.
#[test]
fn a_system_too_slow_to_be_ready_in_time_is_told() {
    let mut w = many_topics(2);
    w.phases.ready_within = SECOND;
    let behaviour = Behaviour {
        service_ns: 1_000_000,
        ..Behaviour::default()
    };
    let run = simulate(w, behaviour, Settings::default(), Clock::virtual_at(SECOND));
    let TrialEnd::NotReady(why) = &run.record.outcome else {
        panic!("{:?}", run.record.outcome)
    };
    assert!(why.contains("carried no sentinel"), "{why}");
    assert!(why.contains("the system is slow"), "{why}");
    assert_eq!(run.record.recordings[0].sentinels, 2000);
}

/// The first round is lost, and the second one is heard after 80 ms. Whether the first is only late is not known before
/// nothing came for 50 ms more.
#[test]
fn sentinels_that_have_not_come_in_time_are_told() {
    let mut w = many_topics(1);
    w.flows[0].publishers[0].topics.truncate(500);
    w.phases.ready_within = 110_000_000;
    let behaviour = Behaviour {
        deaf_for_ns: 40_000_000,
        ..Behaviour::default()
    };
    let run = simulate(w, behaviour, Settings::default(), Clock::virtual_at(SECOND));
    let TrialEnd::NotReady(why) = &run.record.outcome else {
        panic!("{:?}", run.record.outcome)
    };
    assert!(why.contains("500 sentinels"), "{why}");
    assert!(why.contains("had not come within 0.11 s"), "{why}");
}

#[test]
fn a_subscriber_that_never_hears_is_not_measured() {
    let behaviour = Behaviour {
        deaf_for_ns: u64::MAX / 4,
        ..Behaviour::default()
    };
    let mut w = workload(1, 1, Arrivals::Periodic { per_s: 100.0 });
    w.phases.ready_within = 3 * SECOND;
    let run = simulate(w, behaviour, Settings::default(), Clock::virtual_at(SECOND));
    let TrialEnd::NotReady(why) = &run.record.outcome else {
        panic!("{:?}", run.record.outcome)
    };
    assert!(why.contains("sentinel"), "{why}");
    assert!(why.contains("messages do not reach them"), "{why}");
}
