//! Without a data folder: a message is acknowledged once the object that it is in is uploaded.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use pubgauge_collect::{Collector, Config, Notice, config, names};
use pubgauge_driver::Reliability;
use pubgauge_testing::object_store::{Answer, ObjectStore};

use crate::common::*;

/// A collect file without a data folder, beside which it is written.
fn direct(place: &Path, broker: &str, store: &ObjectStore, rest: &str) -> Config {
    let upload = store.upload("s3://fleet/raw", &place.join("s3.env"));
    let file = place.join("collect.toml");
    let text = format!(
        "brokers = [{broker:?}]\ntopics = [\"t/#\"]\nname = \"c\"\n[session]\nkeep-alive = \"1s\"\n{upload}acknowledge = \"uploaded\"\n{rest}\n"
    );
    std::fs::write(&file, text).unwrap();
    config::read(&file, &config::Given::default()).unwrap()
}

const QUICK: &str = "every = \"50ms\"\nrate = \"1k/s\"";

#[test]
fn a_message_is_acknowledged_once_it_is_in_the_store() {
    let place = tempfile::tempdir().unwrap();
    let broker = Broker::start();
    let store = ObjectStore::start();
    let collecting = Collecting::begin(direct(place.path(), &broker.url(), &store, QUICK));
    collecting.connected(1);
    let mut publisher = Publisher::on(&broker, Reliability::AtLeastOnce);
    let mut sent = publisher.publish("t/a", 200, 100);
    collecting.stored(200);
    until("all are acknowledged", || {
        collecting.status.acknowledged.get() == 200
    });
    // The store has it, and does not say so.
    store.answer(Answer::Holds);
    let puts = store.put_count();
    sent.extend(publisher.publish("t/a", 10, 100));
    until("the store has it", || store.put_count() > puts);
    // Longer than the broker waits for a client that is silent.
    std::thread::sleep(std::time::Duration::from_millis(2500));
    assert_eq!(collecting.status.acknowledged.get(), 200);
    store.answer(Answer::Works);
    until("all are acknowledged", || {
        collecting.status.acknowledged.get() == 210
    });
    let connections = collecting.status.brokers()[&broker.address()].connections;
    assert_eq!(connections, 1, "{:?}", collecting.notices());
    let summary = collecting.end();
    assert_eq!((summary.messages, summary.complete), (210, true));
    let objects = store.objects();
    assert_eq!(
        numbers_there(&objects).into_keys().collect::<BTreeSet<_>>(),
        sent
    );
    // Of the start, and of the messages: nothing else, and nothing here.
    assert!(
        objects
            .keys()
            .all(|path| path.starts_with("fleet/raw/collectors/c/c.")
                || path.starts_with("fleet/raw/date=")),
        "{:?}",
        objects.keys()
    );
    let left = std::fs::read_dir(place.path()).unwrap().count();
    assert_eq!(left, 2, "the collect file and the credentials");
}

#[test]
fn a_store_that_refuses_stalls_it_and_it_goes_on_by_itself() {
    let place = tempfile::tempdir().unwrap();
    let broker = Broker::start();
    let store = ObjectStore::start();
    let collecting = Collecting::begin(direct(place.path(), &broker.url(), &store, QUICK));
    collecting.connected(1);
    store.answer(Answer::Refuses);
    let sent = Publisher::on(&broker, Reliability::AtLeastOnce).publish("t/a", 300, 100);
    collecting.told("it stalls", |notice| {
        matches!(notice, Notice::Stalled { .. })
    });
    assert!(collecting.status.ill().is_some());
    assert_eq!(collecting.status.acknowledged.get(), 0);
    store.answer(Answer::Works);
    collecting.told("it goes on", |notice| {
        matches!(notice, Notice::GoesOn { .. })
    });
    collecting.stored(300);
    collecting.end();
    assert_eq!(
        numbers_there(&store.objects())
            .into_keys()
            .collect::<BTreeSet<_>>(),
        sent
    );
}

#[test]
fn topics_change_without_a_connection_that_is_lost() {
    let place = tempfile::tempdir().unwrap();
    let broker = Broker::start();
    let store = ObjectStore::start();
    let mut config = direct(place.path(), &broker.url(), &store, QUICK);
    let collecting = Collecting::begin(config.clone());
    collecting.connected(1);
    let mut publisher = Publisher::on(&broker, Reliability::AtLeastOnce);
    let mut sent = publisher.publish("t/a", 50, 100);
    collecting.stored(50);
    config.filters = vec!["new/#".to_owned()];
    collecting.reloads.replace(config);
    collecting.told("the new topic is subscribed to", |notice| {
        matches!(notice, Notice::Subscribed { .. })
    });
    sent.extend(publisher.publish("new/a", 50, 100));
    collecting.stored(100);
    let connections = collecting.status.brokers()[&broker.address()].connections;
    assert_eq!(connections, 1, "{:?}", collecting.notices());
    collecting.end();
    let there = numbers_there(&store.objects());
    assert_eq!(there.into_keys().collect::<BTreeSet<_>>(), sent);
}

#[test]
fn without_the_store_it_does_not_begin() {
    let place = tempfile::tempdir().unwrap();
    let store = ObjectStore::start();
    store.answer(Answer::Refuses);
    let config = direct(place.path(), "mqtt://127.0.0.1:1", &store, QUICK);
    let collector = Collector::new(config, names::system(), Arc::new(|_| {})).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let error = collector
        .run(pubgauge_collect::EndsAfter::default(), &stop)
        .unwrap_err();
    assert!(
        !error.is_input && error.what.contains("s3://fleet/raw/collectors/c/"),
        "{error}"
    );
}

#[test]
fn a_broker_that_allows_too_few_unacknowledged_messages_is_refused_with_the_figures() {
    let place = tempfile::tempdir().unwrap();
    // mosquitto allows 20 unless it is told otherwise.
    let broker = Broker::variant("defaults");
    let store = ObjectStore::start();
    let rest = "every = \"1s\"\nrate = \"100/s\"";
    let collecting = Collecting::begin(direct(place.path(), &broker.url(), &store, rest));
    let failed = collecting.told("it is refused", |notice| {
        matches!(notice, Notice::Failed { .. })
    });
    let words = failed.to_string();
    assert!(words.contains("the broker allows 20 unacknowledged messages; 100 messages a second, acknowledged within 1."), "{words}");
    assert!(words.contains("max_inflight_messages"), "{words}");
    collecting.end();
    // A rate that it can carry.
    let rest = "every = \"50ms\"\nrate = \"1/s\"";
    let collecting = Collecting::begin(direct(place.path(), &broker.url(), &store, rest));
    collecting.connected(1);
    collecting.end();
}
