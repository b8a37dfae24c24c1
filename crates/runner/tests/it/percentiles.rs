//! Percentiles of few messages, and latencies of a client that was late, against what was planted: what a criterion on
//! latency says.

use crate::planted::{gathered, simulate, workload};

use pubgauge_driver::Settings;
use pubgauge_figures::criterion::{Comparator, CriterionSpec, TrialFilter};
use pubgauge_figures::model::{Status, Trial};
use pubgauge_results::criterion::bearing;
use pubgauge_simulator::Behaviour;
use pubgauge_workload::{Arrivals, SECOND, Until};

const MS: u64 = 1_000_000;

fn p99_below(ms: u64) -> CriterionSpec {
    CriterionSpec {
        text: format!("latency.p99 < {ms} ms"),
        figure: "latency_ns.p99".into(),
        comparison: Comparator::Less,
        value: (ms * MS) as f64,
        filter: TrialFilter::default(),
    }
}

/// Numbers of answers, of `trials`.
#[derive(Debug, Default)]
struct Answers {
    trials: u32,
    yes: u32,
    no: u32,
    /// "Yes" by the percentile of the messages that there were.
    yes_by_percentile: u32,
}

/// A share of all messages takes 200 ms and the others 1 ms, of which so many are measured, 40 in a second.
fn answers(slow: f64, messages: u64, subscribers: u32, seeds: u64) -> Answers {
    let mut answers = Answers::default();
    for seed in 0..seeds {
        let mut w = workload(1, subscribers, Arrivals::Periodic { per_s: 40.0 });
        w.phases.warm_up = Until::Time(SECOND);
        w.phases.measure = Until::Time(messages * SECOND / 40);
        let behaviour = Behaviour {
            reordering: slow,
            hold_back_ns: 199 * MS,
            delay_median_ns: MS,
            seed,
            ..Behaviour::default()
        };
        let mut trial = simulate(w, behaviour, Settings::default()).trial.clone();
        // Only the number of messages is in question here.
        trial.verdict.status = Status::Valid;
        let latency = &trial.messages.latency_ns;
        let due = messages * u64::from(subscribers);
        assert!(
            latency.count.abs_diff(due) <= 1,
            "{} of {due}",
            latency.count
        );
        answers.trials += 1;
        answers.yes_by_percentile += u32::from(latency.p99 < Some(50 * MS));
        match bearing(&trial, &p99_below(50)).met {
            Some(true) => answers.yes += 1,
            Some(false) => answers.no += 1,
            None => {}
        }
    }
    answers
}

fn seeds(of_gate: u64) -> u64 {
    let asked = std::env::var("PUBGAUGE_SWEEP").ok();
    asked.map_or(of_gate, |seeds| seeds.parse().expect("a number of seeds"))
}

/// Of 2 % slow messages the 99th percentile is 200 ms, however few are looked at; of 0.1 % it is 1 ms.
#[test]
fn a_percentile_of_few_messages_is_seldom_told_wrong() {
    for (slow, truth) in [(0.02, false), (0.001, true)] {
        let (mut wrong, mut told, mut all) = (0, 0, 0);
        for messages in [52, 100, 152, 200, 300, 500, 1_000, 5_000] {
            let answers = answers(slow, messages, 1, seeds(40).min(60_000 / messages));
            println!("{slow}, {messages} messages: {answers:?}");
            wrong += if truth { answers.no } else { answers.yes };
            told += answers.yes + answers.no;
            all += answers.trials;
        }
        assert!(100 * wrong <= all, "{slow}: {wrong} wrong of {all}");
        assert!(told > 0);
    }
}

/// A hundred messages to three subscribers are no three hundred: of a slow message all deliveries may be slow.
#[test]
fn deliveries_of_one_message_count_once() {
    let mut w = workload(1, 3, Arrivals::Periodic { per_s: 10.0 });
    w.phases.measure = Until::Time(10 * SECOND);
    let trial = simulate(w, Behaviour::default(), Settings::default())
        .trial
        .clone();
    assert_eq!(trial.messages.latency_ns.count, 300);
    assert_eq!(trial.messages.latency_ns.messages, Some(100));
    let says = bearing(&trial, &p99_below(50));
    assert_eq!(says.met, None);
    let words = says.figure(|ns| format!("{ns} ns"));
    assert!(
        words.contains("100 messages are too few, it takes 299"),
        "{words}"
    );
}

/// A client that sleeps again and again for `sleep` ms in each second, over a system that takes 1 ms.
fn late(sleep: u64, behaviour: Behaviour) -> Trial {
    let sleeps = (0..12).map(|n| (n * 1_000 * MS, (n * 1_000 + sleep) * MS));
    let behaviour = Behaviour {
        client_sleeps: sleeps.collect(),
        delay_median_ns: MS,
        ..behaviour
    };
    let mut w = workload(2, 2, Arrivals::Periodic { per_s: 500.0 });
    w.phases.measure = Until::Time(8 * SECOND + 500 * MS);
    simulate(w, behaviour, Settings::default()).trial.clone()
}

/// A system that takes 1 ms, and until `warm` 6 ms: before that only, or after it only.
fn changing(warm: u64, is_warming_up: bool) -> Trial {
    let end = 100 * SECOND;
    let (from, to) = if is_warming_up {
        (0, warm)
    } else {
        (warm, end)
    };
    let behaviour = Behaviour {
        slower: vec![(from, to, 5 * MS)],
        delay_median_ns: MS,
        ..Behaviour::default()
    };
    let w = workload(2, 2, Arrivals::Periodic { per_s: 500.0 });
    simulate(w, behaviour, Settings::default()).trial.clone()
}

/// A system that warms up has no steady latency yet, but one that is no higher than it was; one that becomes slower may go on.
#[test]
fn a_system_that_warms_up_is_below_what_it_was() {
    for warm in 4..8 {
        let falls = changing(warm * SECOND, true);
        assert_eq!(
            falls.verdict.status,
            Status::Unsteady,
            "{:?}",
            falls.verdict
        );
        let met = bearing(&falls, &p99_below(100));
        assert_eq!(met.met, Some(true), "{:?}", falls.verdict);
        let words = met.figure(|ns| format!("{} ms", (ns / 1e6).round()));
        assert_eq!(words, "at most 6 ms (it was falling)");
        assert_eq!(bearing(&falls, &p99_below(3)).met, None);
        let rises = changing(warm * SECOND, false);
        assert_eq!(
            bearing(&rises, &p99_below(100)).met,
            None,
            "{:?}",
            rises.verdict
        );
    }
}

#[test]
fn a_late_client_measures_what_latency_is_at_most() {
    for sleep in [60, 100, 150, 250] {
        let trial = late(sleep, Behaviour::default());
        assert_eq!(
            trial.verdict.status,
            Status::ClientBound,
            "{sleep}: {:?}",
            trial.verdict
        );
        let p99 = trial.messages.latency_ns.p99.expect("all came");
        assert!(p99 > sleep / 2 * MS, "{p99}");
        let says = |ms| bearing(&trial, &p99_below(ms));
        let met = says(1_000);
        assert_eq!(met.met, Some(true), "{sleep}: {:?}", trial.verdict);
        let words = met.figure(|ns| format!("{} ms", (ns / 1e6).round()));
        assert!(words.starts_with("at most "), "{words}");
        assert!(
            words.ends_with("(the client's own lateness included)"),
            "{words}"
        );
        // The client's lateness may be all of it.
        assert_eq!(says(sleep / 2).met, None);
        let of_send = CriterionSpec {
            figure: "latency_from_send_ns.p99".into(),
            ..p99_below(1_000)
        };
        assert_eq!(bearing(&trial, &of_send).met, None);
    }
}

/// Other faults leave it open, or decide.
#[test]
fn a_late_client_proves_nothing_where_more_is_amiss() {
    let amiss = [
        Behaviour {
            loss: 0.01,
            ..Behaviour::default()
        },
        // It takes 450 of 500 a second.
        Behaviour {
            service_ns: 2_222_222,
            ..Behaviour::default()
        },
    ];
    for behaviour in amiss {
        let trial = late(100, behaviour.clone());
        let met = bearing(&trial, &p99_below(1_500)).met;
        assert_ne!(met, Some(true), "{behaviour:?}: {:?}", trial.verdict);
    }
    // It sleeps through the end.
    let behaviour = Behaviour {
        client_sleeps: vec![(11 * SECOND, 13 * SECOND)],
        ..Behaviour::default()
    };
    let w = workload(2, 1, Arrivals::Periodic { per_s: 500.0 });
    let trial = simulate(w, behaviour, Settings::default()).trial.clone();
    assert!(trial.messages.not_sent > 0);
    assert_ne!(bearing(&trial, &p99_below(10_000)).met, Some(true));
    // No message is due at a time of its own.
    let behaviour = Behaviour {
        client_sleeps: (0..12)
            .map(|n| (n * SECOND, n * SECOND + 150 * MS))
            .collect(),
        publish_cost_ns: 10_000,
        ..Behaviour::default()
    };
    let mut w = workload(1, 1, Arrivals::FlatOut);
    w.phases.warm_up = Until::Time(SECOND / 2);
    w.phases.measure = Until::Time(4 * SECOND);
    let trial = simulate(w, behaviour, Settings::default()).trial.clone();
    assert_eq!(trial.verdict.status, Status::ClientBound);
    assert_eq!(bearing(&trial, &p99_below(10_000)).met, None);
}

/// Gathered messages leave late because the study asks for it: nothing of that is an upper bound of its own.
#[test]
fn gathered_messages_of_a_client_in_time_are_compared_as_they_are() {
    let w = workload(2, 1, Arrivals::Periodic { per_s: 500.0 });
    let trial = gathered(w, Behaviour::default(), 5 * MS).trial.clone();
    assert_eq!(trial.verdict.status, Status::Valid, "{:?}", trial.verdict);
    let says = bearing(&trial, &p99_below(50));
    assert_eq!(says.met, Some(true));
    assert!(!says.figure(|ns| ns.to_string()).contains("lateness"));
}
