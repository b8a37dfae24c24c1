//! Another configuration for a collector that runs.

use std::collections::BTreeSet;

use pubgauge_collect::{Notice, folder};
use pubgauge_driver::Reliability;

use crate::common::*;

fn is_reloaded(notice: &Notice) -> bool {
    *notice == Notice::Reloaded
}

#[test]
fn topics_and_brokers_change_without_a_connection_that_is_lost() {
    let brokers = [Broker::start(), Broker::start()];
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let urls = [brokers[0].url(), brokers[1].url()];
    let rest = "topics = [\"t/#\", \"old/#\"]";
    let collecting = Collecting::begin(config(&data, &urls[..1], rest));
    collecting.connected(1);
    let mut publisher = Publisher::on(&brokers[0], Reliability::AtLeastOnce);
    let mut sent = publisher.publish("old/a", 100, 50);
    collecting.stored(100);
    let rest = "topics = [\"t/#\", \"new/#\"]\n[log]\ncommit-every = \"1ms\"";
    collecting.reloads.replace(config(&data, &urls, rest));
    collecting.told("reloaded", is_reloaded);
    collecting.connected(2);
    // The broker has answered to the new filters, and to the end of the old one.
    let sessions = || {
        let own = folder::names(&data).unwrap().remove(0);
        let path = data.join("collectors").join(own).join("sessions.json");
        std::fs::read_to_string(path).unwrap()
    };
    until("the old filter is left", || !sessions().contains("old/#"));
    sent.extend(publisher.publish("t/a", 100, 50));
    publisher.publish("old/a", 100, 50);
    sent.extend(publisher.publish("new/a", 1, 50));
    let mut second = Publisher::on(&brokers[1], Reliability::AtLeastOnce);
    second.skip(100_000);
    sent.extend(second.publish("new/a", 100, 50));
    collecting.stored(sent.len() as u64);
    let of_first = &collecting.status.brokers()[&brokers[0].address()];
    assert_eq!(of_first.connections, 1, "{of_first:?}");
    collecting.end();
    assert_eq!(numbers(&data).into_keys().collect::<BTreeSet<_>>(), sent);
    all_is_well(&data);
}

#[test]
fn a_broker_that_left_keeps_its_session_and_is_collected_when_it_is_back() {
    let brokers = [Broker::start(), Broker::start()];
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let urls = [brokers[0].url(), brokers[1].url()];
    let rest = "topics = [\"t/#\"]";
    let collecting = Collecting::begin(config(&data, &urls, rest));
    collecting.connected(2);
    collecting.reloads.replace(config(&data, &urls[..1], rest));
    let left = collecting.told("a broker left", |notice| {
        matches!(notice, Notice::BrokerLeft { .. })
    });
    let (name, broker) = (urls[1].clone(), brokers[1].address());
    assert_eq!(left, Notice::BrokerLeft { name, broker });
    collecting.told("reloaded", is_reloaded);
    assert_eq!(collecting.status.brokers().len(), 1);
    let mut sent = Publisher::on(&brokers[1], Reliability::AtLeastOnce).publish("t/a", 50, 50);
    let mut first = Publisher::on(&brokers[0], Reliability::AtLeastOnce);
    first.skip(1000);
    sent.extend(first.publish("t/a", 50, 50));
    collecting.stored(50);
    collecting.reloads.replace(config(&data, &urls, rest));
    collecting.stored(100);
    collecting.end();
    assert_eq!(numbers(&data).into_keys().collect::<BTreeSet<_>>(), sent);
    all_is_well(&data);
}

#[test]
fn certificates_that_cannot_be_read_change_nothing() {
    let broker = Broker::start();
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let rest = "topics = [\"t/#\"]";
    let collecting = Collecting::begin(config(&data, &[broker.url()], rest));
    collecting.connected(1);
    let rest = "topics = [\"u/#\"]\n[tls]\nca = \"/nonexistent.pem\"";
    let urls = [broker.url(), "mqtts://127.0.0.1".into()];
    collecting.reloads.replace(config(&data, &urls, rest));
    let told = collecting.told("it is refused", |notice| {
        matches!(notice, Notice::NotReloaded { .. })
    });
    assert!(told.to_string().contains("/nonexistent.pem"), "{told}");
    Publisher::on(&broker, Reliability::AtLeastOnce).publish("t/a", 10, 50);
    collecting.stored(10);
    assert_eq!(collecting.status.brokers().len(), 1);
    collecting.end();
}
