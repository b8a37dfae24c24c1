//! Messages of a real broker are stored as they were sent.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use pubgauge_collect::{EndsAfter, Notice, names};
use pubgauge_driver::Reliability;
use pubgauge_testing::sequence;

use crate::common::*;

pub fn mosquitto_pub(broker: &Broker, args: &[&str]) {
    let address = broker.address();
    let (host, port) = address.rsplit_once(':').unwrap();
    let mut command = Command::new("mosquitto_pub");
    let done = command.args(["-h", host, "-p", port]).args(args).output();
    let done = done.expect("these tests need mosquitto_pub (apt install mosquitto-clients)");
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

#[test]
fn every_message_of_every_qos_is_stored_in_either_version() {
    let broker = Broker::start();
    for (version, qos) in [("5", 0), ("5", 1), ("5", 2), ("3.1.1", 1), ("3.1.1", 2)] {
        let place = tempfile::tempdir().unwrap();
        let data = place.path().join("data");
        let rest = format!(
            "topics = [\"t/#\"]\nqos = {qos}\nmqtt = {version:?}\nname = \"c{qos}{}\"",
            version.len()
        );
        let collecting = Collecting::begin(config(&data, &[broker.url()], &rest));
        collecting.connected(1);
        let reliability = [
            Reliability::AtMostOnce,
            Reliability::AtLeastOnce,
            Reliability::ExactlyOnce,
        ][qos];
        let sent = Publisher::on(&broker, reliability).publish("t/a", 500, 200);
        collecting.stored(500);
        let status = collecting.status.clone();
        let summary = collecting.end();
        assert!(summary.complete && summary.messages == 500, "{summary:?}");
        let acknowledged = if qos == 0 { 0 } else { 500 };
        assert_eq!(summary.acknowledged, acknowledged);
        assert_eq!(status.received[qos].get(), 500);
        let stored = stored(&data);
        let numbers: BTreeSet<u64> = stored
            .iter()
            .map(|message| sequence(&message.payload))
            .collect();
        assert_eq!(numbers, sent);
        assert!(
            stored
                .iter()
                .all(|m| m.topic == "t/a" && usize::from(m.qos) == qos && m.payload.len() == 200)
        );
        assert_eq!(all_is_well(&data).by_qos[qos], 500);
    }
}

#[test]
fn properties_of_mqtt_5_and_the_retain_flag_are_stored() {
    let broker = Broker::start();
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    mosquitto_pub(&broker, &["-t", "t/kept", "-m", "old", "-r", "-q", "1"]);
    let rest = "topics = [\"t/#\"]\nform = \"ndjson\"";
    let collecting = Collecting::begin(config(&data, &[broker.url()], rest));
    collecting.stored(1);
    let properties = [
        "-V",
        "5",
        "-D",
        "publish",
        "content-type",
        "text/plain",
        "-D",
        "publish",
        "user-property",
        "k",
        "v",
    ];
    let mut args = vec!["-t", "t/new", "-m", "payload", "-q", "1"];
    args.extend(properties);
    mosquitto_pub(&broker, &args);
    collecting.stored(2);
    collecting.end();
    let path = &finished(&data)[0];
    let text = std::fs::read_to_string(path).unwrap();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        (&lines[0]["topic"], &lines[0]["retain"]),
        (&"t/kept".into(), &true.into())
    );
    assert_eq!(
        (&lines[1]["payload"], &lines[1]["retain"]),
        (&"payload".into(), &false.into())
    );
    assert_eq!(lines[1]["content_type"], "text/plain");
    assert_eq!(
        lines[1]["properties"],
        serde_json::json!({"user": [["k", "v"]]})
    );
    assert_eq!(lines[1]["broker"], broker.address());
    all_is_well(&data);
}

#[test]
fn a_group_shares_the_messages_and_loses_none() {
    let broker = Broker::start();
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let begin = |name: &str| {
        let rest = format!("topics = [\"t/#\"]\ngroup = \"g\"\nname = {name:?}");
        let collecting = Collecting::begin(config(&data, &[broker.url()], &rest));
        collecting.connected(1);
        collecting
    };
    let both = [begin("one"), begin("two")];
    let sent = Publisher::on(&broker, Reliability::AtLeastOnce).publish("t/a", 2000, 100);
    until("all stored", || {
        both.iter().map(|one| one.status.stored.get()).sum::<u64>() == 2000
    });
    let shares = both.map(|one| one.end().messages);
    assert!(shares.iter().all(|share| *share > 0), "{shares:?}");
    assert_eq!(numbers(&data).into_keys().collect::<BTreeSet<_>>(), sent);
    assert_eq!(all_is_well(&data).collectors, 2);
}

#[test]
fn what_comes_while_the_collector_is_away_is_kept_for_it() {
    let broker = Broker::start();
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let rest = "topics = [\"t/#\"]";
    let first = Collecting::begin(config(&data, &[broker.url()], rest));
    first.connected(1);
    let is_new = |new: bool| move |notice: &Notice| matches!(notice, Notice::Connected { session_present, .. } if *session_present != new);
    first.told("a new session", is_new(true));
    first.end();
    let mut publisher = Publisher::on(&broker, Reliability::AtLeastOnce);
    let sent = publisher.publish("t/a", 3000, 300);
    // It ends by itself once it has all.
    let until = EndsAfter {
        messages: Some(3000),
        ..EndsAfter::default()
    };
    let second = Collecting::with(config(&data, &[broker.url()], rest), names::system(), until);
    second.told("the session from before", is_new(false));
    assert_eq!(second.ended().messages, 3000);
    assert_eq!(numbers(&data).into_keys().collect::<BTreeSet<_>>(), sent);
    let quiet = EndsAfter {
        quiet: Some(Duration::from_millis(300)),
        ..EndsAfter::default()
    };
    let third = Collecting::with(config(&data, &[broker.url()], rest), names::system(), quiet);
    assert_eq!(third.ended().messages, 0);
    all_is_well(&data);
}

#[test]
fn a_filter_that_is_not_asked_for_any_more_brings_nothing() {
    let broker = Broker::start();
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let first = Collecting::begin(config(
        &data,
        &[broker.url()],
        "topics = [\"t/#\", \"old/#\"]",
    ));
    first.connected(1);
    first.end();
    let second = Collecting::begin(config(&data, &[broker.url()], "topics = [\"t/#\"]"));
    second.connected(1);
    let mut publisher = Publisher::on(&broker, Reliability::AtLeastOnce);
    publisher.publish("old/a", 1, 50);
    publisher.publish("t/a", 1, 50);
    second.told("nothing", |_| true);
    until("the second message", || holds(&data, &2u64.to_le_bytes()));
    second.end();
    let topics: Vec<String> = stored(&data)
        .into_iter()
        .map(|message| message.topic)
        .collect();
    assert_eq!(topics, ["t/a"]);
}
