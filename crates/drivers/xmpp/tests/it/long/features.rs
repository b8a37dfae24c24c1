//! Promises of the driver, each against a real ejabberd.

use crate::common;

use std::time::Duration;

use common::{Ejabberd, text};
use pubgauge_driver::{Acknowledgement, Publish, Secret, Settings, Subscription};
use pubgauge_driver_xmpp::XmppDriver;
use pubgauge_testing::{Rig, settings};
use serde_json::json;

/// For as long as what should not come might.
const A_WHILE: Duration = Duration::from_millis(300);

fn point_to_point() -> Settings {
    settings(json!({"pattern": "point-to-point"}))
}

fn by(mechanism: &str) -> Settings {
    settings(json!({"native": {"xmpp": {"mechanism": mechanism}}}))
}

#[test]
fn without_last_value_a_late_subscriber_gets_nothing_old() {
    let server = Ejabberd::start("xmpp");
    let mut rig = server.rig(Settings::default());
    let publisher = rig.named_publisher("p");
    let topic = rig.fleet.advertise(publisher, "t").unwrap();
    rig.publish(publisher, topic, 0, 64);
    rig.until("the answer", |seen| seen.acknowledged.len() == 1);
    let late = rig.named_subscriber("late");
    rig.subscribe(late, "t");
    rig.poll_for(A_WHILE);
    assert_eq!(rig.seen.messages, []);
    rig.publish(publisher, topic, 1, 64);
    rig.until("the new one", |seen| seen.delivered == 1);
    assert_eq!(rig.sequences(late), [1]);
}

#[test]
fn a_node_from_before_is_configured_anew() {
    // The node was made for last values, and now is not to have any.
    let server = Ejabberd::start("xmpp");
    let mut before = server.rig(settings(json!({"last-value": true})));
    let publisher = before.named_publisher("before");
    let topic = before.fleet.advertise(publisher, "t").unwrap();
    before.publish(publisher, topic, 0, 64);
    before.until("the answer", |seen| seen.acknowledged.len() == 1);
    // Not closed: it would delete its node.
    drop(before);
    let mut rig = server.rig(Settings::default());
    let publisher = rig.named_publisher("p");
    let topic = rig.fleet.advertise(publisher, "t").unwrap();
    rig.publish(publisher, topic, 1, 64);
    rig.until("the answer", |seen| seen.acknowledged.len() == 1);
    let late = rig.named_subscriber("late");
    rig.subscribe(late, "t");
    rig.poll_for(A_WHILE);
    assert_eq!(rig.seen.messages, []);
}

#[test]
fn a_direct_message_reaches_its_receiver_alone() {
    let server = Ejabberd::start("xmpp");
    let mut rig = server.rig(point_to_point());
    let publisher = rig.named_publisher("p");
    let names = ["valve/1 <é&>", "valve/2"];
    let receivers = names.map(|name| {
        let client = rig.named_subscriber(&format!("receiver of {name}"));
        rig.subscribe(client, name);
        client
    });
    for (n, name) in names.into_iter().enumerate() {
        let topic = rig.fleet.advertise(publisher, name).unwrap();
        rig.publish_body(publisher, topic, name.as_bytes(), n as u64);
    }
    rig.until("both", |seen| seen.delivered == 2);
    rig.poll_for(A_WHILE);
    assert_eq!(rig.seen.delivered, 2);
    for (receiver, name) in receivers.into_iter().zip(names) {
        let mut messages = rig.seen.messages.iter();
        let message = messages.find(|m| m.client == receiver.0).unwrap();
        assert_eq!(text(message), name.as_bytes());
        assert_eq!(message.topic, name);
    }
    assert_eq!(rig.fleet.unsettled(), 0);
    // An address that is taken is nobody else's; one topic is all that a receiver has.
    let second = rig.named_subscriber("second");
    let taken = Subscription::matching("valve/2");
    rig.fleet.subscribe(second, &taken).unwrap();
    rig.until("refused", |seen| !seen.refused.is_empty());
    let why = &rig.seen.refused[0].1;
    assert!(why.contains("conflict"), "{why}");
    let more = Subscription::matching("valve/3");
    let error = rig.fleet.subscribe(receivers[0], &more).unwrap_err();
    assert!(error.to_string().contains("one address"), "{error}");
}

#[test]
fn a_receiver_may_answer() {
    let server = Ejabberd::start("xmpp");
    let mut rig = server.rig(point_to_point());
    let asks = rig.named("asks");
    rig.subscribe(asks, "answers");
    let answers = rig.named("answers");
    rig.subscribe(answers, "questions");
    let question = rig.fleet.advertise(asks, "questions").unwrap();
    let answer = rig.fleet.advertise(answers, "answers").unwrap();
    rig.publish(asks, question, 0, 64);
    rig.until("the question", |seen| seen.delivered == 1);
    rig.publish(answers, answer, 1, 64);
    rig.until("the answer", |seen| seen.delivered == 2);
    // One that publishes before it has subscribed gets an address for that.
    let early = rig.named("early");
    let topic = rig.fleet.advertise(early, "answers").unwrap();
    assert_eq!(rig.try_publish(early, topic, 2, 64), Publish::Blocked);
    rig.until("room", |seen| seen.writable.contains(&early.0));
    rig.publish(early, topic, 2, 64);
    rig.until("the early one", |seen| seen.delivered == 3);
}

#[test]
fn wildcards_find_nodes_that_come_later() {
    let server = Ejabberd::start("xmpp");
    let often = json!({"native": {"xmpp": {"discovery-interval-ms": 100}}});
    let mut rig = server.rig(settings(often));
    let publisher = rig.named_publisher("p");
    let advertise = |rig: &mut Rig, topic| rig.fleet.advertise(publisher, topic).unwrap();
    let before = advertise(&mut rig, "a/1/x");
    let other = advertise(&mut rig, "b/1/x");
    // Nobody listens.
    rig.publish(publisher, before, 0, 64);
    rig.publish(publisher, other, 1, 64);
    rig.until("the answers", |seen| seen.acknowledged.len() == 2);
    let all = rig.named_subscriber("all");
    rig.subscribe(all, "a/#");
    let level = rig.named_subscriber("level");
    rig.subscribe(level, "a/+/x");
    for topic in [before, other] {
        rig.publish(publisher, topic, 2, 64);
    }
    rig.until("one for each", |seen| seen.delivered == 2);
    // Both are found, but only one matches both filters.
    let later = ["a/2/x", "a/2/y"].map(|topic| advertise(&mut rig, topic));
    for topic in later {
        // Makes the node.
        rig.publish(publisher, topic, 3, 64);
    }
    rig.poll_for(Duration::from_millis(500));
    rig.seen.messages.clear();
    for topic in later {
        rig.publish(publisher, topic, 4, 64);
    }
    rig.until("what matches", |seen| seen.messages.len() >= 3);
    rig.poll_for(A_WHILE);
    let messages = rig.seen.messages.iter();
    let mut got: Vec<_> = messages.map(|m| (m.client, m.topic.as_str())).collect();
    got.sort_unstable();
    let expected = [(all, "a/2/x"), (all, "a/2/y"), (level, "a/2/x")];
    assert_eq!(got, expected.map(|(client, topic)| (client.0, topic)));
}

#[test]
fn every_way_to_log_in() {
    let server = Ejabberd::start("xmpp");
    for mechanism in ["plain", "scram-sha-1", "scram-sha-256", "auto"] {
        server.rig(by(mechanism)).named_publisher(mechanism);
    }
    // Not on this host, and not with a wrong password, which is not told.
    let mut unknown = server.target();
    unknown.features.clear();
    let why = Rig::failure(&XmppDriver, unknown, by("anonymous"));
    assert!(why.contains("does not offer SASL ANONYMOUS"), "{why}");
    for mechanism in ["plain", "scram-sha-1", "scram-sha-256"] {
        let mut target = server.target();
        target.password = Some(Secret::new("wr0ng"));
        let why = Rig::failure(&XmppDriver, target, by(mechanism));
        assert!(
            why.contains("not-authorized") && why.contains("hint"),
            "{why}"
        );
        assert!(!why.contains("wr0ng"), "{why}");
    }
}

#[test]
fn what_is_too_large_for_the_server_is_rejected_in_its_words() {
    let server = Ejabberd::start_with("xmpp", |text| {
        text.replace("max_payload_size: 8388608", "max_payload_size: 1000")
    });
    let mut rig = server.rig(Settings::default());
    let publisher = rig.named_publisher("p");
    let topic = rig.fleet.advertise(publisher, "t").unwrap();
    rig.publish(publisher, topic, 5, 2000);
    rig.until("the answer", |seen| seen.acknowledged.len() == 1);
    // The connection lives on.
    rig.publish(publisher, topic, 6, 64);
    rig.until("the next answer", |seen| seen.acknowledged.len() == 2);
    let answers = [
        (publisher.0, 5, Acknowledgement::Rejected(406)),
        (publisher.0, 6, Acknowledgement::Taken),
    ];
    assert_eq!(rig.seen.acknowledged, answers);
}

#[test]
fn a_subscriber_that_crashed_hears_each_message_once() {
    let server = Ejabberd::start("xmpp");
    let mut rig = server.rig(Settings::default());
    let publisher = rig.named_publisher("p");
    let topic = rig.fleet.advertise(publisher, "t").unwrap();
    let subscriber = rig.named_subscriber("s");
    rig.subscribe(subscriber, "t");
    rig.publish(publisher, topic, 0, 64);
    rig.until("it", |seen| seen.delivered == 1);
    // The address is free again, and the subscription is answered for once although the server
    // still had it.
    rig.fleet.abort(subscriber);
    rig.poll_for(A_WHILE);
    rig.fleet.reconnect(subscriber).unwrap();
    rig.until("connected again", |seen| seen.connected.len() == 3);
    assert_eq!(rig.seen.connected[2], (subscriber.0, false));
    rig.subscribe(subscriber, "t");
    rig.publish(publisher, topic, 1, 64);
    rig.until("the next", |seen| seen.delivered > 1);
    rig.poll_for(A_WHILE);
    assert_eq!(rig.sequences(subscriber), [0, 1]);
}

#[test]
fn wire_bytes_are_those_of_base64() {
    let server = Ejabberd::start("xmpp");
    let mut rig = server.rig(Settings::default());
    let publisher = rig.named_publisher("p");
    let topic = rig.fleet.advertise(publisher, "t").unwrap();
    let subscriber = rig.named_subscriber("s");
    rig.subscribe(subscriber, "t");
    rig.publish(publisher, topic, 0, 16);
    rig.until("it", |seen| {
        seen.delivered == 1 && seen.acknowledged.len() == 1
    });
    let before = rig.fleet.wire_bytes();
    rig.publish(publisher, topic, 1, 30_000);
    rig.until("it", |seen| {
        seen.delivered == 2 && seen.acknowledged.len() == 2
    });
    let after = rig.fleet.wire_bytes();
    for bytes in [after.sent - before.sent, after.received - before.received] {
        assert!((40_000..41_000).contains(&bytes), "{bytes} B for 30,000 B");
    }
    assert_eq!(rig.seen.messages[1].payload.len(), 30_000);
}

#[test]
fn subscriptions_end_with_an_orderly_disconnection() {
    let server = Ejabberd::start("xmpp");
    let mut rig = server.rig(Settings::default());
    let subscriber = rig.named_subscriber("s");
    rig.subscribe(subscriber, "t");
    rig.disconnect(subscriber);
    rig.fleet.reconnect(subscriber).unwrap();
    rig.until("connected again", |seen| seen.connected.len() == 2);
    let publisher = rig.named_publisher("p");
    let topic = rig.fleet.advertise(publisher, "t").unwrap();
    rig.publish(publisher, topic, 0, 16);
    rig.until("the answer", |seen| seen.acknowledged.len() == 1);
    rig.poll_for(A_WHILE);
    assert_eq!(rig.seen.messages, []);
}
