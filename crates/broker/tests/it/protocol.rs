//! The protocol, packet by packet, in both versions.

use crate::common;

use common::{Client, properties, publish_fully, start};
use pubgauge_broker::Options;
use pubgauge_mqtt_codec::{
    Packet, Property, PropertyId, Publish, QoS, ReasonCode, RetainHandling, SubscribeOptions,
    Version,
};

use QoS::{AtLeastOnce, AtMostOnce, ExactlyOnce};
use Version::{V5, V311};

const VERSIONS: [Version; 2] = [V311, V5];
const QOS: [QoS; 3] = [AtMostOnce, AtLeastOnce, ExactlyOnce];

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
    // Once this comes back the broker has seen the end before it.
    Client::new(&broker, V5, "other").quiet();
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

#[test]
fn a_full_store_keeps_no_value_that_is_not_the_last() {
    let broker = start(Options {
        // The broker's own topics are in the store as well.
        max_retained_bytes: 64 << 10,
        ..Options::default()
    });
    let mut from = Client::new(&broker, V5, "from");
    let [old, new, long] = [("x", 40_000), ("y", 40_000), ("z", 100_000)].map(|(c, n)| c.repeat(n));
    publish_fully(&mut from, "r", &old, AtLeastOnce, true);
    publish_fully(&mut from, "r", &new, AtLeastOnce, true);
    let mut to = Client::new(&broker, V5, "to");
    to.subscribe("r", AtMostOnce);
    assert_eq!(to.message().text(), new, "in place of the one before");
    publish_fully(&mut from, "r", &long, AtLeastOnce, true);
    let mut late = Client::new(&broker, V5, "late");
    late.subscribe("r", AtMostOnce);
    late.quiet();
    drop((from, to, late));
    assert_eq!(broker.stop().publish_dropped, 1);
}
