//! A group that shrinks: what is in the session of a member that leaves is collected first.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use pubgauge_collect::{Collector, EndsAfter, Leave, Notice, names};
use pubgauge_driver::Reliability;
use pubgauge_testing::mosquitto::Mosquitto;

use crate::common::*;

const AT_END: EndsAfter = EndsAfter {
    messages: None,
    time: None,
    quiet: None,
    leave: Some(Leave::AtEnd),
};

/// A member of the group, with a data folder of its own.
fn member(place: &Path, name: &str, broker: &str, rest: &str, until: EndsAfter) -> Collecting {
    let more = format!(
        "topics = [\"t/#\"]\ngroup = \"g\"\nname = {name:?}\nstop-within = \"60s\"\n{rest}"
    );
    let config = config(&place.join(name), &[broker.to_owned()], &more);
    Collecting::with(config, names::system(), until)
}

/// All numbers that the members have stored.
fn all_numbers(place: &Path, members: &[&str]) -> BTreeSet<u64> {
    let each = members.iter().map(|name| place.join(name));
    each.flat_map(|data| {
        all_is_well(&data);
        numbers(&data).into_keys()
    })
    .collect()
}

fn has_new_session(notice: &Notice) -> bool {
    matches!(
        notice,
        Notice::Connected {
            session_present: false,
            ..
        }
    )
}

/// In turn a member comes and goes, so often.
#[track_caller]
fn grows_and_shrinks(times: u32) {
    for (version, qos) in [("5", 1), ("5", 2), ("3.1.1", 1)] {
        let broker = Broker::start();
        let place = tempfile::tempdir().unwrap();
        let rest = format!("mqtt = {version:?}\nqos = {qos}");
        let stays = member(
            place.path(),
            "stays",
            &broker.url(),
            &rest,
            EndsAfter::default(),
        );
        stays.connected(1);
        let over = Arc::<AtomicBool>::default();
        let sent = std::thread::scope(|scope| {
            let publishing = scope.spawn(|| {
                let mut publisher = Publisher::on(&broker, Reliability::AtLeastOnce);
                let mut sent = BTreeSet::new();
                while !over.load(Relaxed) {
                    sent.extend(publisher.publish("t/a", 50, 100));
                }
                sent
            });
            for _ in 0..times {
                let comes = member(place.path(), "comes", &broker.url(), &rest, AT_END);
                comes.told("a session of its own", has_new_session);
                comes.stored(200);
                let summary = comes.end();
                assert!(summary.complete, "{summary:?}");
                assert_eq!(summary.not_left, 0, "{version} {qos}: {summary:?}");
            }
            over.store(true, Relaxed);
            publishing.join().unwrap()
        });
        until("the rest is stored", || {
            let there = |name: &str| {
                let found = pubgauge_collect::verify::verify(&place.path().join(name)).unwrap();
                found.messages + found.messages_in_log
            };
            there("stays") + there("comes") >= sent.len() as u64
        });
        stays.end();
        assert_eq!(all_numbers(place.path(), &["stays", "comes"]), sent);
    }
}

#[test]
fn a_group_grows_and_shrinks_under_load_and_loses_nothing() {
    grows_and_shrinks(3);
}

mod long {
    #[test]
    fn a_group_grows_and_shrinks_20_times_under_load_and_loses_nothing() {
        super::grows_and_shrinks(20);
    }
}

#[test]
fn what_a_member_that_has_ended_left_behind_is_collected_and_no_more_goes_there() {
    for version in ["5", "3.1.1"] {
        // It sends a message once the one before is acknowledged: what waits comes one by one.
        let broker = Mosquitto::start_with("allow_anonymous true\nmax_inflight_messages 1");
        let place = tempfile::tempdir().unwrap();
        let rest = format!("mqtt = {version:?}");
        let begin = |name: &str, until: EndsAfter| {
            member(place.path(), name, &broker.address(), &rest, until)
        };
        let stays = begin("stays", EndsAfter::default());
        let goes = begin("goes", EndsAfter::default());
        stays.connected(1);
        goes.connected(1);
        assert_eq!(goes.end().not_left, 0);
        let mut publisher = Publisher::at(broker.address(), Reliability::AtLeastOnce);
        let mut sent = publisher.publish("t/a", 400, 100);
        // Its session has its share of them.
        let leaves = begin(
            "goes",
            EndsAfter {
                time: Some(Duration::from_secs(60)),
                leave: Some(Leave::AtOnce),
                ..EndsAfter::default()
            },
        );
        let summary = leaves.ended();
        assert!(summary.messages > 0 && summary.not_left == 0, "{summary:?}");
        let before = stays.status.stored.get();
        assert_eq!(before + summary.messages, 400);
        sent.extend(publisher.publish("t/a", 400, 100));
        stays.stored(before + 400);
        stays.end();
        assert_eq!(all_numbers(place.path(), &["stays", "goes"]), sent);
        // It has no session any more.
        let again = begin("goes", EndsAfter::default());
        again.told("a new session", has_new_session);
        again.end();
    }
}

#[test]
fn a_session_at_a_broker_that_is_away_is_not_given_up_and_that_is_told() {
    let broker = Broker::start();
    let address = broker.url();
    let place = tempfile::tempdir().unwrap();
    let begin = |until: EndsAfter| member(place.path(), "goes", &address, "", until);
    let goes = begin(EndsAfter::default());
    goes.connected(1);
    goes.end();
    drop(broker);
    let time = Some(Duration::from_secs(1));
    let leave = Some(Leave::AtOnce);
    let leaves = begin(EndsAfter {
        time,
        leave,
        ..EndsAfter::default()
    });
    assert_eq!(leaves.ended().not_left, 1);
    let config = pubgauge_collect::config::read(
        &place.path().join("goes.toml"),
        &pubgauge_collect::config::Given::default(),
    );
    // One that is told to stop does not wait.
    let until = EndsAfter {
        time: Some(Duration::from_secs(3600)),
        leave,
        ..EndsAfter::default()
    };
    let collector = Collector::new(config.unwrap(), names::system(), Arc::new(|_| {})).unwrap();
    let summary = collector.run(until, &AtomicBool::new(true)).unwrap();
    assert_eq!(summary.not_left, 1);
}
