//! Words about what was run: each setting with those that had it, each system once, how connecting went and how groups
//! shared.

use crate::sample;

use pubgauge_figures::group::GroupFigures;
use pubgauge_figures::model::PresenceFigures;
use pubgauge_figures::party::PartyName;
use pubgauge_figures::slow::{SlowFigures, SlowSubscriber};
use pubgauge_report::{page, table};

/// The table without its line breaks.
fn text(results: &pubgauge_figures::Results) -> String {
    let words = table(results, 200);
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_setting_of_one_variant_stands_beside_the_default_of_the_others() {
    let (mut results, logs) = sample::run(1);
    assert!(!text(&results).contains("in-flight"));
    results.trials[0].settings.in_flight = Some(3);
    let said = "in-flight = 3 | default";
    assert!(text(&results).contains(said), "{}", text(&results));
    assert!(page(&results, &logs).contains(said));
    for trial in &mut results.trials {
        trial.settings.in_flight = Some(3);
    }
    assert!(
        text(&results).contains("in-flight = 3, "),
        "{}",
        text(&results)
    );
}

/// A row at several loads is one system.
#[test]
fn a_system_is_named_once() {
    let (mut results, _) = sample::grid(1);
    for trial in &mut results.trials {
        trial.circumstances.cores = 4;
        trial.worker_load.machine_others = Some(3.8);
        trial.verdict.others_busy = pubgauge_results::verdict::judge(trial).others_busy;
    }
    let words = text(&results);
    let (_, after) = words
        .split_once("processors busy (")
        .expect("a busy machine");
    let (names, _) = after.split_once(')').expect("names");
    let all: Vec<&str> = names.split(", ").collect();
    let mut once = all.clone();
    once.sort_unstable();
    once.dedup();
    assert!(!all.is_empty() && once.len() == all.len(), "{names}");
}

#[test]
fn slow_connecting_is_told() {
    let (mut results, logs) = sample::run(1);
    let said = "connecting and subscribing took";
    assert!(!text(&results).contains(said));
    results.trials[0].connections.made = 151;
    results.trials[0].connections.connect_s = 10.4;
    results.trials[0].connections.ready_s = 2.5;
    let words = text(&results);
    let sentence = "connecting and subscribing took 10.40 s; 2.50 s passed from then until every subscriber received";
    assert!(words.contains(sentence), "{words}");
    assert!(page(&results, &logs).contains(sentence));
}

#[test]
fn what_became_of_clients_that_came_and_went_is_told() {
    let (mut results, logs) = sample::run(1);
    assert!(!text(&results).contains("clients left"));
    let trial = &mut results.trials[0];
    trial.connections.refused = 18;
    trial.presence = Some(PresenceFigures {
        left: 5_000,
        returned: 4_999,
        ..PresenceFigures::default()
    });
    (trial.messages.missed, trial.messages.away) = (7, 0);
    let words = text(&results);
    for sentence in [
        "18 attempts to connect were turned away",
        "clients left 5000 times, and were back 4999 times; 7 deliveries were missed by who was away",
    ] {
        assert!(words.contains(sentence), "{words}");
        assert!(page(&results, &logs).contains(sentence));
    }
}

#[test]
fn what_became_of_slow_subscribers_is_told() {
    let (mut results, logs) = sample::run(1);
    assert!(!text(&results).contains("slow subscribers"));
    let of = |name: &str, lost, disconnects| SlowSubscriber {
        party: PartyName {
            name: name.into(),
            ..PartyName::default()
        },
        taken: 150,
        behind: 120,
        lost,
        disconnects,
    };
    results.trials[0].slow = Some(SlowFigures {
        subscribers: 3,
        fell_behind: 2,
        expected: 3_000,
        taken: 1_300,
        behind: 240,
        lost: 1_460,
        disconnects: 1,
        of: vec![of("a", None, 1), of("b", Some(730), 0)],
        ..SlowFigures::default()
    });
    let words = text(&results);
    let sentence = "2 of 3 slow subscribers fell behind: 1300 of 3000 messages due to them were taken, 240 had been kept and \
        came afterwards, 1460 never came, 1 connection was ended; subscriber `a` (150 taken, 120 kept, an unknown number \
        lost, disconnected), subscriber `b` (150 taken, 120 kept, 730 lost)";
    assert!(words.contains(sentence), "{words}");
    assert!(page(&results, &logs).contains("2 of 3 slow subscribers fell behind"));
}

#[test]
fn how_a_group_shared_is_told() {
    let (mut results, logs) = sample::run(1);
    assert!(!text(&results).contains("of a group"));
    let mut shared = |deliveries: &[u64]| {
        results.trials[0].groups = vec![GroupFigures {
            name: "crew".into(),
            deliveries: deliveries.to_vec(),
            ..GroupFigures::default()
        }];
        (text(&results), page(&results, &logs))
    };
    for (deliveries, sentence) in [
        (
            &[999, 1001, 1000, 1000][..],
            "members of a group got 25 % to 25 % of its messages",
        ),
        (
            &[2000, 1000, 500, 500],
            "members of a group got 12 % to 50 % of its messages",
        ),
        (
            &[4000, 0, 0, 0],
            "one of 4 members of a group got all of its messages: it is hardly shared",
        ),
        (
            &[3990, 10, 0, 0],
            "one of 4 members of a group got 99.75 % of its messages",
        ),
    ] {
        let (words, page) = shared(deliveries);
        assert!(words.contains(sentence), "{words}");
        assert!(page.contains(sentence));
    }
    let (words, _) = shared(&[4000]);
    assert!(!words.contains("of a group"), "a group of one: {words}");
}
