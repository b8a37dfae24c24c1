//! The protocol, packet by packet, in both versions.

mod common;

use std::time::{Duration, Instant};

use common::{Client, properties, start};
use pubgauge_broker::{Credential, Options};
use pubgauge_mqtt_codec::{
    Connect, Disconnect, Packet, Property, PropertyId, Publish, QoS, ReasonCode, RetainHandling,
    SubscribeOptions, Version, Will,
};

use QoS::{AtLeastOnce, AtMostOnce, ExactlyOnce};
use Version::{V5, V311};

const VERSIONS: [Version; 2] = [V311, V5];
const QOS: [QoS; 3] = [AtMostOnce, AtLeastOnce, ExactlyOnce];

/// Publishes and goes through the acknowledgements.
fn publish_fully(client: &mut Client, topic: &str, payload: &str, qos: QoS, retain: bool) -> u8 {
    let id = if qos == AtMostOnce { 0 } else { 99 };
    client.publish(topic, payload, qos, id, retain);
    match qos {
        AtMostOnce => 0,
        AtLeastOnce => {
            let ack = client.next();
            assert_eq!((ack.name, ack.packet_id), ("PUBACK", 99));
            ack.reason
        }
        ExactlyOnce => {
            let ack = client.next();
            assert_eq!((ack.name, ack.packet_id), ("PUBREC", 99));
            client.ack(99, Packet::PubRel);
            let comp = client.next();
            assert_eq!((comp.name, comp.packet_id, comp.reason), ("PUBCOMP", 99, 0));
            ack.reason
        }
    }
}

#[test]
fn every_qos_between_every_pair_of_versions() {
    let broker = start(Options::default());
    for (publisher, subscriber) in VERSIONS.iter().flat_map(|p| VERSIONS.map(|s| (*p, s))) {
        let mut from = Client::new(&broker, publisher, "from");
        let mut to = Client::new(&broker, subscriber, "to");
        for granted in QOS {
            assert_eq!(to.subscribe("a/+", granted).codes, [granted as u8]);
            for qos in QOS {
                // Twice: the second takes the short way.
                for payload in ["first", "second"] {
                    publish_fully(&mut from, "a/b", payload, qos, false);
                    let got = to.message();
                    assert_eq!((got.topic.as_str(), got.text()), ("a/b", payload));
                    assert_eq!(got.qos, (granted as u8).min(qos as u8));
                    assert!(!got.retain && !got.dup);
                }
            }
        }
        to.quiet();
    }
}

#[test]
fn many_messages_keep_their_order_over_topics_and_sizes() {
    let broker = start(Options::default());
    for version in VERSIONS {
        let mut from = Client::new(&broker, version, "from");
        let mut same = Client::new(&broker, version, "same");
        let mut other = Client::new(&broker, if version == V5 { V311 } else { V5 }, "other");
        same.subscribe("t/#", AtMostOnce);
        other.subscribe("t/+", AtMostOnce);
        let mut wire = Vec::new();
        let expected: Vec<(String, String)> = (0..20_000)
            .map(|i| {
                (
                    format!("t/{}", i / 100 % 3),
                    format!("{i:0>width$}", width = 5 + i % 90),
                )
            })
            .collect();
        for (topic, payload) in &expected {
            let publish = Publish {
                topic,
                payload: payload.as_bytes(),
                ..Publish::default()
            };
            Packet::Publish(publish).encode(version, &mut wire).unwrap();
        }
        from.send_bytes(&wire);
        for client in [&mut same, &mut other] {
            for (topic, payload) in &expected {
                let got = client.message();
                assert_eq!((&got.topic, got.text()), (topic, payload.as_str()));
            }
            client.quiet();
        }
    }
}

#[test]
fn large_messages_pass_and_too_large_ones_end_the_connection() {
    let broker = start(Options {
        max_packet_bytes: 5_000_000,
        ..Options::default()
    });
    for version in VERSIONS {
        let mut from = Client::new(&broker, version, "from");
        let mut to = Client::new(&broker, version, "to");
        to.subscribe("big", AtLeastOnce);
        for (qos, len) in QOS.into_iter().zip([100_000, 300_000, 4_900_000]) {
            let payload: String = (0..len)
                .map(|i| char::from(b'a' + (i % 26) as u8))
                .collect();
            publish_fully(&mut from, "big", &payload, qos, false);
            assert!(to.message().text() == payload, "{len} bytes");
        }
        from.send_bytes(&[0x30, 0xff, 0xff, 0xff, 0x7f, 0, 3, b'b', b'i', b'g']);
        let last = from.ends();
        match version {
            V5 => assert_eq!(last.unwrap().reason, ReasonCode::PACKET_TOO_LARGE.0),
            V311 => assert_eq!(last, None),
        }
    }
}

#[test]
fn retained_messages_are_sent_on_subscribing_and_can_be_removed() {
    let broker = start(Options::default());
    for version in VERSIONS {
        let mut from = Client::new(&broker, version, "from");
        for (topic, payload, qos) in [
            ("r/a", "1", AtMostOnce),
            ("r/b", "2", AtLeastOnce),
            ("r/b/c", "3", ExactlyOnce),
        ] {
            publish_fully(&mut from, topic, payload, qos, true);
        }
        from.quiet();
        let mut to = Client::new(&broker, version, "to");
        to.subscribe("r/a", ExactlyOnce);
        let got = to.message();
        assert_eq!((got.text(), got.qos, got.retain), ("1", 0, true));
        to.subscribe("r/#", AtLeastOnce);
        let mut got: Vec<_> = (0..3)
            .map(|_| to.message())
            .map(|m| (m.topic.clone(), m.qos, m.retain))
            .collect();
        got.sort();
        let expected = [("r/a", 0, true), ("r/b", 1, true), ("r/b/c", 1, true)];
        assert_eq!(got, expected.map(|(t, q, r)| (t.to_owned(), q, r)));
        // Live, the flag is off; an empty one removes.
        for topic in ["r/a", "r/b", "r/b/c"] {
            from.publish(topic, "", AtMostOnce, 0, true);
            let got = to.message();
            assert_eq!(
                (got.topic.as_str(), got.text(), got.retain),
                (topic, "", false)
            );
        }
        let mut late = Client::new(&broker, version, "late");
        late.subscribe("r/#", AtMostOnce);
        late.quiet();
    }
}

#[test]
fn subscription_options_of_version_5() {
    let broker = start(Options::default());
    let mut from = Client::new(&broker, V5, "from");
    from.publish("o/t", "kept", AtMostOnce, 0, true);
    from.quiet();
    let options = |handling, rap, no_local| SubscribeOptions {
        qos: AtLeastOnce,
        no_local,
        retain_as_published: rap,
        retain_handling: handling,
    };
    let mut to = Client::new(&broker, V5, "to");
    to.subscribe_with(
        "o/t",
        options(RetainHandling::DoNotSend, true, true),
        Some(300),
    );
    to.quiet();
    to.subscribe_with(
        "o/t",
        options(RetainHandling::SendIfNew, true, true),
        Some(300),
    );
    to.quiet();
    to.subscribe_with(
        "o/+",
        options(RetainHandling::SendIfNew, true, true),
        Some(1),
    );
    let got = to.message();
    assert_eq!(
        (got.text(), got.retain, got.ids.as_slice()),
        ("kept", true, &[1][..])
    );
    // One copy, with both identifiers, and the flag as published.
    from.publish("o/t", "live", AtMostOnce, 0, true);
    let got = to.message();
    assert_eq!(
        (got.text(), got.retain, got.ids.as_slice()),
        ("live", true, &[1, 300][..])
    );
    // No local.
    to.publish("o/t", "mine", AtMostOnce, 0, false);
    to.quiet();
    assert_eq!(to.unsubscribe("o/t").codes, [0]);
    assert_eq!(
        to.unsubscribe("o/t").codes,
        [ReasonCode::NO_SUBSCRIPTION_EXISTED.0]
    );
    from.publish("o/t", "one left", AtMostOnce, 0, false);
    assert_eq!(to.message().ids, [1]);
    to.unsubscribe("o/+");
    from.publish("o/t", "none left", AtMostOnce, 0, false);
    from.quiet();
    to.quiet();
}

#[test]
fn properties_are_passed_on() {
    let broker = start(Options::default());
    let mut from = Client::new(&broker, V5, "from");
    let mut to = Client::new(&broker, V5, "to");
    let mut old = Client::new(&broker, V311, "old");
    to.subscribe("p", AtMostOnce);
    old.subscribe("p", AtMostOnce);
    let list = [
        Property::UserProperty(("k", "v1")),
        Property::UserProperty(("k", "v2")),
        Property::ResponseTopic("answers/here"),
        Property::CorrelationData(b"\0\xff"),
        Property::ContentType("text/plain"),
        Property::PayloadFormatIndicator(true),
        Property::MessageExpiryInterval(1000),
    ];
    for _ in 0..2 {
        from.publish_with("p", "load", &list);
        let got = to.message();
        assert_eq!(
            got.user,
            [("k".into(), "v1".into()), ("k".into(), "v2".into())]
        );
        assert!(
            got.texts
                .contains(&(PropertyId::ResponseTopic, "answers/here".into()))
        );
        assert!(
            got.texts
                .contains(&(PropertyId::ContentType, "text/plain".into()))
        );
        assert_eq!(got.number(PropertyId::PayloadFormatIndicator), Some(1));
        assert_eq!(got.expiry_s, Some(1000));
        assert_eq!(old.message().text(), "load");
    }
}

#[test]
fn topic_aliases() {
    let broker = start(Options {
        topic_alias_maximum: 10,
        ..Options::default()
    });
    let (mut from, connack) = Client::connect(&broker, V5, "from", |_| {});
    assert_eq!(connack.number(PropertyId::TopicAliasMaximum), Some(10));
    let mut to = Client::new(&broker, V5, "to");
    to.subscribe("#", AtMostOnce);
    let alias = |n| [Property::TopicAlias(n)];
    for (topic, n, expected) in [
        ("a", 1, "a"),
        ("", 1, "a"),
        ("b", 10, "b"),
        ("", 1, "a"),
        ("c", 1, "c"),
        ("", 1, "c"),
    ] {
        from.publish_with(topic, "x", &alias(n));
        let got = to.message();
        assert_eq!(
            (got.topic.as_str(), got.number(PropertyId::TopicAlias)),
            (expected, None)
        );
    }
    from.publish_with("a", "x", &alias(11));
    assert_eq!(
        from.ends().unwrap().reason,
        ReasonCode::TOPIC_ALIAS_INVALID.0
    );
    let mut from = Client::new(&broker, V5, "from");
    from.publish_with("", "x", &alias(1));
    assert_eq!(from.ends().unwrap().reason, ReasonCode::PROTOCOL_ERROR.0);
    to.quiet();
}

#[test]
fn a_shared_subscription_is_split_and_an_ordinary_one_is_not() {
    let broker = start(Options::default());
    let mut from = Client::new(&broker, V5, "from");
    let mut workers: Vec<_> = VERSIONS
        .iter()
        .cycle()
        .take(3)
        .enumerate()
        .map(|(i, v)| Client::new(&broker, *v, &format!("w{i}")))
        .collect();
    for worker in &mut workers {
        worker.subscribe("$share/g/s/#", AtLeastOnce);
    }
    let mut all = Client::new(&broker, V5, "all");
    all.subscribe("s/#", AtMostOnce);
    for i in 0..30 {
        from.publish(&format!("s/{i}"), "x", AtMostOnce, 0, false);
    }
    from.quiet();
    for _ in 0..30 {
        all.message();
    }
    let mut topics = Vec::new();
    for worker in &mut workers {
        for _ in 0..10 {
            topics.push(worker.message().topic);
        }
        worker.quiet();
    }
    topics.sort();
    topics.dedup();
    assert_eq!(topics.len(), 30);
    // A member that leaves leaves no gap.
    drop(workers.pop());
    all.quiet();
    std::thread::sleep(Duration::from_millis(100));
    for i in 0..10 {
        from.publish(&format!("s/{i}"), "x", AtLeastOnce, 1 + i, false);
        assert_eq!(from.next().reason, 0);
    }
    for worker in &mut workers {
        for _ in 0..5 {
            worker.message();
        }
        worker.quiet();
    }
}

#[test]
fn a_durable_session_keeps_what_its_client_missed() {
    let broker = start(Options::default());
    for version in VERSIONS {
        let keep = properties(&[Property::SessionExpiryInterval(1000)]);
        let durable = |c: &mut Connect<'_>| {
            c.clean_start = false;
            if version == V5 {
                // The buffer outlives the connect call, which copies.
                let keep: &'static _ = Box::leak(Box::new(keep.clone()));
                c.properties = keep.as_properties();
            }
        };
        let (mut to, connack) = Client::connect(&broker, version, "durable", durable);
        assert!(!connack.session_present);
        to.subscribe("d/#", ExactlyOnce);
        drop(to);
        let mut from = Client::new(&broker, version, "from");
        std::thread::sleep(Duration::from_millis(100));
        for (i, qos) in QOS.into_iter().enumerate() {
            publish_fully(&mut from, "d/x", &i.to_string(), qos, false);
        }
        let (mut to, connack) = Client::connect(&broker, version, "durable", durable);
        assert!(connack.session_present);
        let got = to.message();
        assert_eq!((got.text(), got.qos, got.dup), ("1", 1, false));
        let got = to.message();
        assert_eq!((got.text(), got.qos, got.dup), ("2", 2, false));
        to.quiet();
        // What was not acknowledged comes again, marked, in order.
        publish_fully(&mut from, "d/x", "3", AtLeastOnce, false);
        publish_fully(&mut from, "d/x", "4", ExactlyOnce, false);
        publish_fully(&mut from, "d/x", "5", ExactlyOnce, false);
        let ids: Vec<_> = (0..3).map(|_| to.next().packet_id).collect();
        to.ack(ids[1], Packet::PubRec);
        assert_eq!(to.next().name, "PUBREL");
        drop(to);
        let (mut to, _) = Client::connect(&broker, version, "durable", durable);
        let again = to.next();
        assert_eq!(
            (again.text(), again.dup, again.packet_id),
            ("3", true, ids[0])
        );
        let again = to.next();
        assert_eq!((again.name, again.packet_id), ("PUBREL", ids[1]));
        let again = to.next();
        assert_eq!(
            (again.text(), again.dup, again.packet_id),
            ("5", true, ids[2])
        );
        to.ack(ids[0], Packet::PubAck);
        to.ack(ids[1], Packet::PubComp);
        to.ack(ids[2], Packet::PubRec);
        assert_eq!(to.next().name, "PUBREL");
        to.ack(ids[2], Packet::PubComp);
        to.quiet();
        // A clean start forgets.
        drop(Client::new(&broker, version, "durable"));
        let (mut to, connack) = Client::connect(&broker, version, "durable", durable);
        assert!(!connack.session_present);
        publish_fully(&mut from, "d/x", "6", AtLeastOnce, false);
        to.quiet();
        drop(to);
        drop(Client::new(&broker, version, "durable"));
    }
}

#[test]
fn an_offline_queue_is_bounded_and_what_is_dropped_is_counted() {
    let broker = start(Options {
        max_offline_messages: 10,
        ..Options::default()
    });
    let durable = |c: &mut Connect<'_>| c.clean_start = false;
    let (mut to, _) = Client::connect(&broker, V311, "durable", durable);
    to.subscribe("d", AtLeastOnce);
    to.send(&Packet::Disconnect(Disconnect::default()));
    assert_eq!(to.ends(), None);
    let mut from = Client::new(&broker, V311, "from");
    for i in 0..25 {
        publish_fully(&mut from, "d", &i.to_string(), AtLeastOnce, false);
    }
    let (mut to, _) = Client::connect(&broker, V311, "durable", durable);
    for i in 0..10 {
        assert_eq!(to.message().text(), i.to_string());
    }
    to.quiet();
    assert_eq!(broker.stop().publish_dropped, 15);
}

#[test]
fn sessions_and_messages_expire() {
    let broker = start(Options::default());
    let two = Box::leak(Box::new(properties(&[Property::SessionExpiryInterval(2)])));
    let connect = |c: &mut Connect<'_>| {
        c.clean_start = false;
        c.properties = two.as_properties();
    };
    let (mut to, _) = Client::connect(&broker, V5, "to", connect);
    to.subscribe("e/#", AtLeastOnce);
    drop(to);
    std::thread::sleep(Duration::from_millis(50));
    let mut from = Client::new(&broker, V5, "from");
    for (topic, expiry_s) in [("e/short", 1), ("e/long", 100)] {
        let expiry = properties(&[Property::MessageExpiryInterval(expiry_s)]);
        from.send(&Packet::Publish(Publish {
            topic,
            qos: AtLeastOnce,
            packet_id: 5,
            retain: true,
            properties: expiry.as_properties(),
            ..Publish::default()
        }));
        // Nobody is there, but there is a subscription.
        assert_eq!(from.next().reason, 0);
    }
    // An empty payload removes rather than retains, so retain with content.
    for (topic, expiry_s) in [("k/short", 1), ("k/long", 100)] {
        let expiry = properties(&[Property::MessageExpiryInterval(expiry_s)]);
        from.send(&Packet::Publish(Publish {
            topic,
            payload: b"x",
            retain: true,
            properties: expiry.as_properties(),
            ..Publish::default()
        }));
    }
    std::thread::sleep(Duration::from_millis(1200));
    let (mut to, connack) = Client::connect(&broker, V5, "to", connect);
    assert!(connack.session_present);
    let got = to.message();
    assert_eq!(got.topic, "e/long");
    assert!(
        (98..=99).contains(&got.expiry_s.unwrap()),
        "{:?}",
        got.expiry_s
    );
    to.quiet();
    to.subscribe("k/#", AtMostOnce);
    let got = to.message();
    assert_eq!(got.topic, "k/long");
    assert!(
        (98..=99).contains(&got.expiry_s.unwrap()),
        "{:?}",
        got.expiry_s
    );
    to.quiet();
    drop(to);
    std::thread::sleep(Duration::from_millis(2300));
    let (_, connack) = Client::connect(&broker, V5, "to", connect);
    assert!(!connack.session_present);
    assert_eq!(broker.stop().publish_expired, 1);
}

#[test]
fn a_session_does_not_end_with_an_earlier_ones_time() {
    let broker = start(Options::default());
    let expiry = [1, 1000].map(|s| properties(&[Property::SessionExpiryInterval(s)]));
    let [short, long] = &*Box::leak(Box::new(expiry));
    drop(Client::connect(&broker, V5, "s", |c| {
        c.properties = short.as_properties()
    }));
    std::thread::sleep(Duration::from_millis(50));
    drop(Client::connect(&broker, V5, "s", |c| {
        c.properties = long.as_properties()
    }));
    std::thread::sleep(Duration::from_millis(1500));
    let (_, connack) = Client::connect(&broker, V5, "s", |c| c.clean_start = false);
    assert!(connack.session_present);
}

#[test]
fn a_will_is_published_unless_the_client_says_goodbye() {
    let broker = start(Options::default());
    for version in VERSIONS {
        let mut to = Client::new(&broker, version, "to");
        to.subscribe("will/#", AtLeastOnce);
        let will = Will {
            topic: "will/t",
            payload: b"gone",
            qos: AtLeastOnce,
            retain: true,
            ..Will::default()
        };
        let connect = |c: &mut Connect<'_>| c.will = Some(will);
        let (mut polite, _) = Client::connect(&broker, version, "w", connect);
        polite.send(&Packet::Disconnect(Disconnect::default()));
        assert_eq!(polite.ends(), None);
        to.quiet();
        let (rude, _) = Client::connect(&broker, version, "w", connect);
        drop(rude);
        let got = to.message();
        assert_eq!(
            (got.topic.as_str(), got.text(), got.qos),
            ("will/t", "gone", 1)
        );
        assert!(!got.retain);
        if version == V5 {
            let (mut asks, _) = Client::connect(&broker, version, "w", connect);
            let reason = ReasonCode::DISCONNECT_WITH_WILL;
            asks.send(&Packet::Disconnect(Disconnect {
                reason,
                ..Disconnect::default()
            }));
            assert_eq!(to.message().text(), "gone");
        }
        let mut late = Client::new(&broker, version, "late");
        late.subscribe("will/t", AtMostOnce);
        assert!(late.message().retain);
        late.publish("will/t", "", AtMostOnce, 0, true);
        assert_eq!(to.message().text(), "");
    }
}

#[test]
fn a_delayed_will_waits_and_is_called_off() {
    let broker = start(Options::default());
    let mut to = Client::new(&broker, V5, "to");
    to.subscribe("will", AtMostOnce);
    let session = Box::leak(Box::new(properties(&[Property::SessionExpiryInterval(
        100,
    )])));
    let delay = Box::leak(Box::new(properties(&[
        Property::WillDelayInterval(1),
        Property::UserProperty(("w", "p")),
    ])));
    let connect = |c: &mut Connect<'_>| {
        c.clean_start = false;
        c.properties = session.as_properties();
        let (topic, payload) = ("will", &b"late"[..]);
        c.will = Some(Will {
            topic,
            payload,
            properties: delay.as_properties(),
            ..Will::default()
        });
    };
    let (first, _) = Client::connect(&broker, V5, "w", connect);
    drop(first);
    std::thread::sleep(Duration::from_millis(300));
    let (second, connack) = Client::connect(&broker, V5, "w", connect);
    assert!(connack.session_present);
    std::thread::sleep(Duration::from_millis(1200));
    to.quiet();
    let dropped = Instant::now();
    drop(second);
    let got = to.message();
    assert!(
        dropped.elapsed() >= Duration::from_millis(900),
        "{:?}",
        dropped.elapsed()
    );
    assert_eq!(
        (got.text(), got.user.as_slice()),
        ("late", &[("w".into(), "p".into())][..])
    );
}

#[test]
fn a_client_identifier_is_taken_over() {
    let broker = start(Options::default());
    for version in VERSIONS {
        let mut first = Client::new(&broker, version, "same");
        first.subscribe("x", AtMostOnce);
        let mut second = Client::new(&broker, version, "same");
        match version {
            V5 => assert_eq!(
                first.ends().unwrap().reason,
                ReasonCode::SESSION_TAKEN_OVER.0
            ),
            V311 => assert_eq!(first.ends(), None),
        }
        second.publish("x", "for nobody", AtMostOnce, 0, false);
        second.quiet();
    }
}

#[test]
fn silence_beyond_the_keep_alive_ends_the_connection() {
    let broker = start(Options::default());
    for version in VERSIONS {
        let started = Instant::now();
        let (mut client, _) = Client::connect(&broker, version, "k", |c| c.keep_alive_s = 1);
        let last = client.ends();
        assert!(
            started.elapsed() >= Duration::from_millis(1450),
            "{:?}",
            started.elapsed()
        );
        match version {
            V5 => assert_eq!(last.unwrap().reason, ReasonCode::KEEP_ALIVE_TIMEOUT.0),
            V311 => assert_eq!(last, None),
        }
        let (mut client, _) = Client::connect(&broker, version, "k", |c| c.keep_alive_s = 1);
        for _ in 0..4 {
            std::thread::sleep(Duration::from_millis(600));
            client.quiet();
        }
    }
}

#[test]
fn a_connection_without_connect_is_ended() {
    let options = Options {
        connect_timeout: Duration::from_millis(200),
        ..Options::default()
    };
    let broker = start(options);
    let mut silent = Client::raw(&broker, V5);
    assert_eq!(silent.ends(), None);
    let mut wrong = Client::raw(&broker, V5);
    wrong.send(&Packet::PingReq);
    assert_eq!(wrong.ends(), None);
    let mut good = Client::new(&broker, V5, "good");
    std::thread::sleep(Duration::from_millis(400));
    good.quiet();
    let mut twice = Client::new(&broker, V5, "twice");
    twice.send(&Packet::Connect(Connect {
        client_id: "x",
        ..Connect::default()
    }));
    assert_eq!(twice.ends().unwrap().reason, ReasonCode::PROTOCOL_ERROR.0);
}

#[test]
fn unknown_versions_and_bad_identifiers_are_refused() {
    let broker = start(Options::default());
    let mut old = Client::raw(&broker, V311);
    old.send_bytes(b"\x10\x0e\x00\x06MQIsdp\x03\x02\x00\x00\x00\x00");
    let last = old.ends();
    assert!(last.is_none_or(|l| (l.name, l.reason) == ("CONNACK", 1)));
    let mut new = Client::raw(&broker, V311);
    new.send_bytes(b"\x10\x0d\x00\x04MQTT\x06\x02\x00\x00\x00\x00\x00");
    assert_eq!(new.ends().unwrap().reason, 1);
    let (mut empty, connack) = Client::connect(&broker, V311, "", |c| c.clean_start = false);
    assert_eq!((connack.reason, empty.ends()), (2, None));
    let (_, connack) = Client::connect(&broker, V311, "", |_| {});
    assert_eq!(connack.reason, 0);
    let (_, connack) = Client::connect(&broker, V5, "", |_| {});
    assert_eq!(connack.texts[0].0, PropertyId::AssignedClientIdentifier);
}

#[test]
fn passwords_are_checked_where_there_are_any() {
    let credential = Credential {
        username: "u".into(),
        password: b"p".to_vec(),
    };
    assert!(!format!("{credential:?}").contains("112"));
    let broker = start(Options {
        credentials: vec![credential],
        ..Options::default()
    });
    for (version, wrong, none) in [(V311, 4, 5), (V5, 0x86, 0x87)] {
        let login = |password: &'static [u8]| {
            move |c: &mut Connect<'_>| (c.username, c.password) = (Some("u"), Some(password))
        };
        let (mut client, connack) = Client::connect(&broker, version, "a", login(b"p"));
        assert_eq!(connack.reason, 0);
        client.quiet();
        let (mut client, connack) = Client::connect(&broker, version, "b", login(b"q"));
        assert_eq!((connack.reason, client.ends()), (wrong, None));
        let (mut client, connack) = Client::connect(&broker, version, "c", |_| {});
        assert_eq!((connack.reason, client.ends()), (none, None));
    }
}

#[test]
fn a_repeated_qos_2_message_is_delivered_once() {
    let broker = start(Options::default());
    for version in VERSIONS {
        let mut from = Client::new(&broker, version, "from");
        let mut to = Client::new(&broker, version, "to");
        to.subscribe("q", AtMostOnce);
        for _ in 0..3 {
            from.publish("q", "once", ExactlyOnce, 5, false);
            assert_eq!(from.next().name, "PUBREC");
        }
        from.ack(5, Packet::PubRel);
        assert_eq!(from.next().name, "PUBCOMP");
        from.publish("q", "again", ExactlyOnce, 5, false);
        assert_eq!(from.next().name, "PUBREC");
        assert_eq!(to.message().text(), "once");
        assert_eq!(to.message().text(), "again");
        to.quiet();
        from.ack(6, Packet::PubRel);
        let comp = from.next();
        let expected = if version == V5 {
            ReasonCode::PACKET_IDENTIFIER_NOT_FOUND.0
        } else {
            0
        };
        assert_eq!((comp.name, comp.reason), ("PUBCOMP", expected));
    }
}

#[test]
fn the_clients_receive_maximum_and_packet_size_are_kept() {
    let broker = start(Options::default());
    let limits = Box::leak(Box::new(properties(&[
        Property::ReceiveMaximum(3),
        Property::MaximumPacketSize(100),
    ])));
    let (mut to, _) = Client::connect(&broker, V5, "to", |c| c.properties = limits.as_properties());
    to.subscribe("w", ExactlyOnce);
    let mut from = Client::new(&broker, V5, "from");
    for (i, qos) in QOS.into_iter().chain(QOS).chain(QOS).enumerate() {
        publish_fully(&mut from, "w", &"x".repeat(200), qos, false);
        publish_fully(&mut from, "w", &i.to_string(), qos, false);
    }
    // All of QoS 0 came, and three others.
    let first: Vec<_> = (0..6).map(|_| to.next()).collect();
    to.quiet();
    let under_way: Vec<_> = first.iter().filter(|m| m.qos > 0).collect();
    assert_eq!(
        under_way.iter().map(|m| m.text()).collect::<Vec<_>>(),
        ["1", "2", "4"]
    );
    to.ack(under_way[0].packet_id, Packet::PubAck);
    // Each one that is done makes room for one.
    for expected in ["5", "7", "8"] {
        assert_eq!(to.message().text(), expected);
    }
    to.ack(under_way[1].packet_id, Packet::PubRec);
    assert_eq!(to.next().name, "PUBREL");
    to.ack(under_way[1].packet_id, Packet::PubComp);
    to.ack(under_way[2].packet_id, Packet::PubAck);
    to.quiet();
    assert_eq!(broker.stop().publish_dropped, 9);
}

#[test]
fn the_brokers_receive_maximum_is_enforced() {
    let broker = start(Options {
        receive_maximum: 2,
        ..Options::default()
    });
    let (mut from, connack) = Client::connect(&broker, V5, "from", |_| {});
    assert_eq!(connack.number(PropertyId::ReceiveMaximum), Some(2));
    for id in 1..=2 {
        from.publish("x", "", ExactlyOnce, id, false);
        assert_eq!(from.next().reason, ReasonCode::NO_MATCHING_SUBSCRIBERS.0);
    }
    from.publish("x", "", ExactlyOnce, 3, false);
    assert_eq!(
        from.ends().unwrap().reason,
        ReasonCode::RECEIVE_MAXIMUM_EXCEEDED.0
    );
}

#[test]
fn stopping_says_goodbye_quickly() {
    let broker = start(Options::default());
    let mut new = Client::new(&broker, V5, "new");
    let mut old = Client::new(&broker, V311, "old");
    let asked = Instant::now();
    broker.stop();
    let took = asked.elapsed();
    assert_eq!(
        new.ends().unwrap().reason,
        ReasonCode::SERVER_SHUTTING_DOWN.0
    );
    assert_eq!(old.ends(), None);
    // 100 ms on a machine that is not busy; this one may be.
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[test]
fn sys_topics_count_as_mosquitto_does() {
    let broker = start(Options::default());
    let mut from = Client::new(&broker, V311, "from");
    let mut to = Client::new(&broker, V311, "to");
    to.subscribe("c", AtMostOnce);
    for _ in 0..1000 {
        from.publish("c", "x", AtMostOnce, 0, false);
    }
    for _ in 0..1000 {
        to.message();
    }
    let sys = |topic: &str| {
        let mut reader = Client::new(&broker, V311, "reader");
        reader.subscribe(&format!("$SYS/broker/{topic}"), AtMostOnce);
        let got = reader.message();
        assert!(got.retain);
        got.text().to_owned()
    };
    assert_eq!(sys("publish/messages/received"), "1000");
    // The 1000, and the one answer above.
    assert_eq!(sys("publish/messages/sent"), "1001");
    assert_eq!(sys("clients/connected"), "3");
    assert!(sys("version").starts_with("pubgauge reference broker version "));
    // They are nobody else's to publish.
    let mut liar = Client::new(&broker, V5, "liar");
    liar.publish("$SYS/broker/version", "lie", AtLeastOnce, 1, true);
    assert_eq!(liar.next().reason, ReasonCode::NOT_AUTHORIZED.0);
    assert!(sys("version").starts_with("pubgauge reference broker version "));
}
