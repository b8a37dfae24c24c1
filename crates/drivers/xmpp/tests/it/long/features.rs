//! What the driver promises, each against a real ejabberd.

use crate::common;

use common::{Ejabberd, Rig, native, payload, text};
use pubgauge_driver::{
    Acknowledgement, Change, Clock, Driver, MessagingPattern, Publish, Settings, Subscription,
};
use pubgauge_driver_xmpp::XmppDriver;

fn point_to_point() -> Settings {
    Settings {
        pattern: Some(MessagingPattern::PointToPoint),
        ..Settings::default()
    }
}

fn last_value() -> Settings {
    Settings {
        last_value: Some(true),
        ..Settings::default()
    }
}

#[test]
fn a_late_subscriber_gets_the_last_value_and_only_that() {
    let server = Ejabberd::start("xmpp");
    let mut rig = Rig::open(&server.target(), &last_value());
    let publisher = rig.connect("p", false);
    let topic = rig.advertise(publisher, "room/temperature");
    for (tag, value) in [b"one", b"two"].into_iter().enumerate() {
        rig.publish(publisher, topic, value, tag as u64);
    }
    rig.until("both answers", |seen| seen.acknowledged.len() == 2);
    let late = rig.connect("late", true);
    rig.subscribe(late, "room/temperature");
    rig.until("the last value", |seen| !seen.delivered.is_empty());
    rig.publish(publisher, topic, b"three", 2);
    rig.until("the next", |seen| seen.delivered.len() > 1);
    rig.wait(200);
    let got: Vec<_> = rig
        .seen
        .delivered
        .iter()
        .map(|m| (text(m), m.retained))
        .collect();
    assert_eq!(got, [(&b"two"[..], true), (&b"three"[..], false)]);
    assert_eq!(
        rig.seen.delivered[0].topic.as_deref(),
        Some("room/temperature")
    );
    rig.close();
}

#[test]
fn without_last_value_a_late_subscriber_gets_nothing_old() {
    let server = Ejabberd::start("xmpp");
    let mut rig = Rig::open(&server.target(), &Settings::default());
    let publisher = rig.connect("p", false);
    let topic = rig.advertise(publisher, "t");
    rig.publish(publisher, topic, b"old", 0);
    rig.until("the answer", |seen| seen.acknowledged.len() == 1);
    let late = rig.connect("late", true);
    rig.subscribe(late, "t");
    rig.wait(300);
    assert_eq!(rig.seen.delivered, []);
    rig.publish(publisher, topic, b"new", 1);
    rig.until("the new one", |seen| seen.delivered.len() == 1);
    assert_eq!(text(&rig.seen.delivered[0]), b"new");
    rig.close();
}

#[test]
fn a_node_from_before_is_configured_anew() {
    // The node was made for last values, and now is not to have any.
    let server = Ejabberd::start("xmpp");
    let mut before = Rig::open(&server.target(), &last_value());
    let publisher = before.connect("p", false);
    let topic = before.advertise(publisher, "t");
    before.publish(publisher, topic, b"old", 0);
    before.until("the answer", |seen| seen.acknowledged.len() == 1);
    before.close();
    let mut rig = Rig::open(&server.target(), &Settings::default());
    let publisher = rig.connect("p", false);
    let topic = rig.advertise(publisher, "t");
    rig.publish(publisher, topic, b"new", 1);
    rig.until("the answer", |seen| seen.acknowledged.len() == 1);
    let late = rig.connect("late", true);
    rig.subscribe(late, "t");
    rig.wait(300);
    assert_eq!(rig.seen.delivered, []);
    rig.close();
}

#[test]
fn a_direct_message_reaches_its_receiver_alone() {
    let server = Ejabberd::start("xmpp");
    let mut rig = Rig::open(&server.target(), &point_to_point());
    let publisher = rig.connect("p", false);
    let names = ["valve/1 <é&>", "valve/2"];
    let receivers = names.map(|name| {
        let client = rig.connect(&format!("receiver of {name}"), true);
        rig.subscribe(client, name);
        client
    });
    for (n, name) in names.into_iter().enumerate() {
        let topic = rig.advertise(publisher, name);
        rig.publish(publisher, topic, name.as_bytes(), n as u64);
    }
    rig.until("both", |seen| seen.delivered.len() == 2);
    rig.wait(200);
    assert_eq!(rig.seen.delivered.len(), 2);
    for (n, name) in names.into_iter().enumerate() {
        let message = rig
            .seen
            .delivered
            .iter()
            .find(|m| m.client == receivers[n])
            .unwrap();
        assert_eq!(
            (text(message), message.topic.as_deref()),
            (name.as_bytes(), Some(name))
        );
    }
    assert_eq!(rig.fleet.unsettled(), 0);
    // An address that is taken is nobody else's; one topic is all that a receiver has.
    let second = rig.connect("second", true);
    let change = rig.ask(second, "valve/2");
    assert!(
        matches!(&change, Change::SubscriptionRefused(why) if why.contains("conflict")),
        "{change:?}"
    );
    let more = Subscription {
        filter: "valve/3".into(),
        group: None,
    };
    let error = rig.fleet.subscribe(receivers[0], &more).unwrap_err();
    assert!(error.to_string().contains("one address"), "{error}");
    rig.close();
}

#[test]
fn a_receiver_may_answer() {
    let server = Ejabberd::start("xmpp");
    let mut rig = Rig::open(&server.target(), &point_to_point());
    let asks = rig.connect("asks", true);
    rig.subscribe(asks, "answers");
    let answers = rig.connect("answers", true);
    rig.subscribe(answers, "questions");
    let question = rig.advertise(asks, "questions");
    let answer = rig.advertise(answers, "answers");
    rig.publish(asks, question, b"?", 0);
    rig.until("the question", |seen| seen.delivered.len() == 1);
    rig.publish(answers, answer, b"!", 0);
    rig.until("the answer", |seen| seen.delivered.len() == 2);
    // One that publishes before it has subscribed gets an address for that.
    let early = rig.connect("early", true);
    let topic = rig.advertise(early, "answers");
    assert_eq!(
        rig.fleet.publish(early, topic, payload(b"early"), 0),
        Publish::Blocked
    );
    rig.until("room", |seen| {
        seen.changes.contains(&(early, Change::Writable))
    });
    rig.publish(early, topic, b"early", 0);
    rig.until("the early one", |seen| seen.delivered.len() == 3);
    rig.close();
}

#[test]
fn wildcards_find_nodes_that_come_later() {
    let server = Ejabberd::start("xmpp");
    let settings = native(&[("discovery-interval-ms", "100")]);
    let mut rig = Rig::open(&server.target(), &settings);
    let publisher = rig.connect("p", false);
    let before = rig.advertise(publisher, "a/1/x");
    let other = rig.advertise(publisher, "b/1/x");
    rig.publish(publisher, before, b"nobody listens", 0);
    rig.publish(publisher, other, b"nobody listens", 1);
    rig.until("the answers", |seen| seen.acknowledged.len() == 2);
    let all = rig.connect("all", true);
    rig.subscribe(all, "a/#");
    let level = rig.connect("level", true);
    rig.subscribe(level, "a/+/x");
    for topic in [before, other] {
        rig.publish(publisher, topic, b"first", 2);
    }
    rig.until("one for each", |seen| seen.delivered.len() == 2);
    // Both are found, but only one matches both filters.
    let later = [
        rig.advertise(publisher, "a/2/x"),
        rig.advertise(publisher, "a/2/y"),
    ];
    for topic in later {
        rig.publish(publisher, topic, b"makes the node", 3);
    }
    rig.wait(500);
    rig.seen.delivered.clear();
    for topic in later {
        rig.publish(publisher, topic, b"second", 4);
    }
    rig.until("what matches", |seen| seen.delivered.len() >= 3);
    rig.wait(200);
    let mut got: Vec<_> = rig
        .seen
        .delivered
        .iter()
        .map(|m| (m.client, m.topic.clone().unwrap_or_default()))
        .collect();
    got.sort();
    let expected = [(all, "a/2/x"), (all, "a/2/y"), (level, "a/2/x")];
    assert_eq!(
        got,
        expected.map(|(client, topic)| (client, topic.to_owned()))
    );
    rig.close();
}

#[test]
fn every_way_to_log_in() {
    let server = Ejabberd::start("xmpp");
    for mechanism in ["plain", "scram-sha-1", "scram-sha-256", "auto"] {
        let settings = native(&[("mechanism", &format!("{mechanism:?}"))]);
        let mut rig = Rig::open(&server.target(), &settings);
        rig.connect(mechanism, false);
        rig.close();
    }
    // Not on this host, and not with a wrong password, which is not told.
    let settings = native(&[("mechanism", "\"anonymous\"")]);
    let mut unknown = server.target();
    unknown.features.clear();
    let mut rig = Rig::open(&unknown, &settings);
    let client = rig.begin("a", false);
    let change = rig.change(client);
    assert!(
        matches!(&change, Change::Failed(failure) if failure.why.contains("does not offer SASL ANONYMOUS")),
        "{change:?}"
    );
    for mechanism in ["plain", "scram-sha-1", "scram-sha-256"] {
        let mut target = server.target();
        target.password = Some(pubgauge_driver::Secret::new("wr0ng"));
        let settings = native(&[("mechanism", &format!("{mechanism:?}"))]);
        let mut rig = Rig::open(&target, &settings);
        let client = rig.begin("a", false);
        let change = rig.change(client);
        let Change::Failed(pubgauge_driver::Failure { why, .. }) = change else {
            panic!("{change:?}")
        };
        assert!(
            why.contains("not-authorized") && why.contains("hint"),
            "{why}"
        );
        assert!(!why.contains("wr0ng"), "{why}");
    }
}

#[test]
fn the_window_holds_a_publisher_back() {
    let server = Ejabberd::start("xmpp");
    let settings = Settings {
        in_flight: Some(3),
        ..Settings::default()
    };
    let mut rig = Rig::open(&server.target(), &settings);
    let publisher = rig.connect("p", false);
    let topic = rig.advertise(publisher, "t");
    rig.publish(publisher, topic, b"makes the node", 0);
    rig.until("the answer", |seen| seen.acknowledged.len() == 1);
    for tag in 1..4 {
        assert_eq!(
            rig.fleet.publish(publisher, topic, payload(b""), tag),
            Publish::Accepted
        );
    }
    assert_eq!(
        rig.fleet.publish(publisher, topic, payload(b""), 4),
        Publish::Blocked
    );
    assert_eq!(rig.fleet.unsettled(), 3);
    rig.until("room", |seen| {
        seen.changes.contains(&(publisher, Change::Writable))
    });
    rig.until("all answers", |seen| seen.acknowledged.len() == 4);
    assert_eq!(rig.fleet.unsettled(), 0);
    let all_taken = rig
        .seen
        .acknowledged
        .iter()
        .all(|(_, _, a)| *a == Acknowledgement::Taken);
    assert!(all_taken, "{:?}", rig.seen.acknowledged);
    rig.close();
}

#[test]
fn what_is_too_large_for_the_server_is_rejected_in_its_words() {
    let server = Ejabberd::start_with("xmpp", |text| {
        text.replace("max_payload_size: 8388608", "max_payload_size: 1000")
    });
    let mut rig = Rig::open(&server.target(), &Settings::default());
    let publisher = rig.connect("p", false);
    let topic = rig.advertise(publisher, "t");
    rig.publish(publisher, topic, &[0; 2000], 5);
    rig.until("the answer", |seen| seen.acknowledged.len() == 1);
    assert_eq!(
        rig.seen.acknowledged[0],
        (publisher, 5, Acknowledgement::Rejected(406))
    );
    // The connection lives on.
    rig.publish(publisher, topic, b"small", 6);
    rig.until("the next answer", |seen| seen.acknowledged.len() == 2);
    rig.close();
}

#[test]
fn a_killed_server_is_told_and_its_clients_come_back() {
    let server = Ejabberd::start("xmpp");
    let mut rig = Rig::open(&server.target(), &Settings::default());
    let publisher = rig.connect("p", false);
    let topic = rig.advertise(publisher, "t");
    let subscriber = rig.connect("s", true);
    rig.subscribe(subscriber, "t");
    rig.publish(publisher, topic, b"before", 0);
    rig.until("it", |seen| seen.delivered.len() == 1);
    // A crash of the clients, first: the address is free again, and the subscription is
    // answered for once although the server still had it.
    for client in [publisher, subscriber] {
        rig.fleet.abort(client);
    }
    rig.wait(300);
    for client in [publisher, subscriber] {
        rig.fleet.reconnect(client).unwrap();
        let change = rig.change(client);
        assert!(
            matches!(
                change,
                Change::Connected {
                    session_present: false,
                    ..
                }
            ),
            "{change:?}"
        );
    }
    rig.subscribe(subscriber, "t");
    rig.seen.delivered.clear();
    rig.publish(publisher, topic, b"after", 1);
    rig.until("it", |seen| !seen.delivered.is_empty());
    rig.wait(200);
    assert_eq!(rig.seen.delivered.len(), 1, "{:?}", rig.seen.delivered);
    // Then the server's end.
    let pid = server.server.pid().unwrap();
    std::process::Command::new("kill")
        .args(["-9", &pid.to_string()])
        .status()
        .unwrap();
    for client in [publisher, subscriber] {
        let change = rig.change(client);
        assert!(
            matches!(&change, Change::Failed(failure) if failure.why.contains("hint")),
            "{change:?}"
        );
    }
    assert_eq!(
        rig.fleet.publish(publisher, topic, payload(b""), 2),
        Publish::Refused(pubgauge_driver::Refusal::NotConnected)
    );
    rig.close();
}

#[test]
fn wire_bytes_are_those_of_base64() {
    let server = Ejabberd::start("xmpp");
    let mut rig = Rig::open(&server.target(), &Settings::default());
    let publisher = rig.connect("p", false);
    let topic = rig.advertise(publisher, "t");
    let subscriber = rig.connect("s", true);
    rig.subscribe(subscriber, "t");
    rig.publish(publisher, topic, b"", 0);
    rig.until("it", |seen| {
        seen.delivered.len() == 1 && seen.acknowledged.len() == 1
    });
    let before = rig.fleet.wire_bytes();
    rig.publish(publisher, topic, &[5; 30_000 - 16], 1);
    rig.until("it", |seen| {
        seen.delivered.len() == 2 && seen.acknowledged.len() == 2
    });
    let after = rig.fleet.wire_bytes();
    for bytes in [after.sent - before.sent, after.received - before.received] {
        assert!((40_000..41_000).contains(&bytes), "{bytes} B for 30,000 B");
    }
    assert_eq!(rig.seen.delivered[1].payload.len(), 30_000);
    rig.close();
}

#[test]
fn subscriptions_end_with_an_orderly_disconnection() {
    let server = Ejabberd::start("xmpp");
    let mut rig = Rig::open(&server.target(), &Settings::default());
    let subscriber = rig.connect("s", true);
    rig.subscribe(subscriber, "t");
    rig.fleet.disconnect(subscriber);
    assert_eq!(rig.change(subscriber), Change::Closed);
    rig.fleet.reconnect(subscriber).unwrap();
    rig.change(subscriber);
    let publisher = rig.connect("p", false);
    let topic = rig.advertise(publisher, "t");
    rig.publish(publisher, topic, b"", 0);
    rig.until("the answer", |seen| seen.acknowledged.len() == 1);
    rig.wait(200);
    assert_eq!(rig.seen.delivered, []);
    rig.close();
}

#[test]
fn closing_is_quick_and_complete() {
    let server = Ejabberd::start("xmpp");
    let mut rig = Rig::open(&server.target(), &Settings::default());
    for n in 0..20 {
        rig.connect(&format!("c{n}"), n % 2 == 0);
    }
    let start = Clock::Monotonic.now();
    rig.close();
    assert!(Clock::Monotonic.now() - start < 3_000_000_000);
    assert_eq!(XmppDriver.name(), "xmpp");
}
