//! Subscribers that are collectors: a message is delivered once it is on disk.

use pubgauge_collect_driver::CollectDriver;
use pubgauge_driver::*;
use pubgauge_testing::mosquitto::Mosquitto;
use pubgauge_testing::{Rig, SECOND, settings};
use serde_json::json;

fn reliable(version: &str) -> Settings {
    settings(json!({
        "reliability": "at-least-once",
        "native": { "mqtt": { "collect": true, "version": version } },
    }))
}

fn collecting(settings: Settings, broker: &Mosquitto, scratch: &tempfile::TempDir) -> Rig {
    let target = Target {
        scratch: scratch.path().to_owned(),
        ..Target::single(format!("mqtt://127.0.0.1:{}", broker.port))
    };
    Rig::open(&CollectDriver, target, settings)
}

/// Whether a payload stands in a file of the collectors' logs, or in a finished file; payloads do not compress here.
fn is_on_disk(folder: &std::path::Path, payload: &[u8]) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return std::fs::read(folder)
            .is_ok_and(|bytes| bytes.windows(payload.len()).any(|part| part == payload));
    };
    entries
        .map(Result::unwrap)
        .any(|entry| is_on_disk(&entry.path(), payload))
}

#[test]
fn a_message_is_delivered_once_it_is_on_disk() {
    let broker = Mosquitto::start();
    let scratch = tempfile::tempdir().unwrap();
    let mut rig = collecting(reliable("5"), &broker, &scratch);
    let one = rig.named_subscriber("one");
    rig.subscribe(one, "t/+");
    rig.subscribe(one, "u/#");
    let publisher = rig.named_publisher("p");
    let topics = ["t/a", "u/b/c", "other"];
    let topics = topics.map(|topic| rig.fleet.advertise(publisher, topic).unwrap());
    for n in 0..300 {
        rig.publish(publisher, topics[n as usize % 3], n, 64);
    }
    rig.until("200 delivered", |seen| seen.delivered == 200);
    rig.until("300 acknowledged", |seen| seen.acknowledged.len() == 300);
    let expected: Vec<u64> = (0..300).filter(|n| n % 3 != 2).collect();
    assert_eq!(rig.sequences(one), expected);
    assert_eq!(rig.seen.messages[0].topic, "t/a");
    let last = &rig.seen.messages[199];
    assert!(!last.retained && !last.redelivered);
    assert!(is_on_disk(scratch.path(), &last.payload));
    let bytes = rig.fleet.wire_bytes();
    assert!(bytes.received > 200 * 64, "{bytes:?}");
    // One reads, one stores, one makes files.
    let threads = rig.fleet.later_threads();
    let runs = |id: &u32| std::path::Path::new(&format!("/proc/self/task/{id}")).exists();
    assert_eq!(threads.len(), 3);
    assert!(threads.iter().all(runs), "{threads:?}");
    rig.disconnect(one);
    rig.fleet.close(clock::monotonic_now() + 10 * SECOND);
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}

#[test]
fn a_group_of_collectors_shares_the_messages() {
    let broker = Mosquitto::start();
    let scratch = tempfile::tempdir().unwrap();
    let mut rig = collecting(reliable("5"), &broker, &scratch);
    let members = ["one", "two"].map(|name| rig.named_subscriber(name));
    for member in members {
        rig.subscribe_shared(member, "t", Some("g"));
    }
    let publisher = rig.named_publisher("p");
    let topic = rig.fleet.advertise(publisher, "t").unwrap();
    for n in 0..500 {
        rig.publish(publisher, topic, n, 64);
    }
    rig.until("all delivered", |seen| seen.delivered == 500);
    let heard = members.map(|member| rig.sequences(member).len());
    assert!(heard.iter().all(|count| *count > 100), "{heard:?}");
    rig.fleet.close(clock::monotonic_now() + 10 * SECOND);
}

#[test]
fn a_collector_whose_broker_is_gone_fails_and_comes_back() {
    let mut broker = Mosquitto::start();
    let scratch = tempfile::tempdir().unwrap();
    let mut rig = collecting(reliable("5"), &broker, &scratch);
    let one = rig.named_subscriber("one");
    rig.subscribe(one, "t");
    broker.kill();
    rig.until("failed", |seen| seen.failed.len() == 1);
    // It does not try again behind the caller's back.
    broker.restart();
    rig.fleet.reconnect(one).unwrap();
    rig.until("connected again", |seen| seen.connected.len() == 2);
    rig.subscribe(one, "t");
    let publisher = rig.named_publisher("p");
    let topic = rig.fleet.advertise(publisher, "t").unwrap();
    rig.publish(publisher, topic, 0, 64);
    rig.until("delivered", |seen| seen.delivered > 0);
    let neither = Rig::spec("both");
    let why = rig.fleet.connect(&neither).unwrap_err().to_string();
    assert!(why.contains("a collector does not publish"), "{why}");
    rig.fleet.close(clock::monotonic_now() + 10 * SECOND);
}

#[test]
fn a_durable_session_outlives_a_failure_and_is_given_up_at_the_end() {
    for version in ["5", "3.1.1"] {
        let broker = Mosquitto::start();
        let scratch = tempfile::tempdir().unwrap();
        let settings = Settings {
            session: Some(Session::Durable),
            ..reliable(version)
        };
        let mut rig = collecting(settings, &broker, &scratch);
        let one = rig.named_subscriber("one");
        rig.subscribe(one, "t");
        let publisher = rig.named_publisher("p");
        let topic = rig.fleet.advertise(publisher, "t").unwrap();
        rig.publish(publisher, topic, 0, 64);
        rig.until("delivered", |seen| seen.delivered == 1);
        let connected_again = |rig: &mut Rig| {
            let before = rig.seen.connected.len();
            rig.fleet.reconnect(one).unwrap();
            rig.until("connected again", |seen| seen.connected.len() > before);
            rig.seen.connected[before]
        };
        rig.fleet.abort(one);
        assert_eq!(connected_again(&mut rig), (one.0, true), "{version}");
        rig.disconnect(one);
        rig.until("closed", |seen| seen.closed.contains(&one.0));
        assert_eq!(connected_again(&mut rig), (one.0, false), "{version}");
        rig.fleet.close(clock::monotonic_now() + 10 * SECOND);
    }
}
