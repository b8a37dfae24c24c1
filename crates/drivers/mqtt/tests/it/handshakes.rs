//! Packets of the driver, one by one, against servers that follow a script.

use crate::common;

use std::io::Read;
use std::time::Duration;

use common::peer::*;
use common::*;
use pubgauge_driver::*;
use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_mqtt_codec::Publish as Sent;
use pubgauge_mqtt_codec::{
    Ack, ConnAck, Packet, Property, PropertyId, QoS, ReasonCode, SubAck, Version,
};

#[test]
fn answers_of_mqtt_5_are_told_apart() {
    for (reliability, reason, expected) in [
        (
            Reliability::AtLeastOnce,
            ReasonCode::SUCCESS,
            Acknowledgement::Taken,
        ),
        (
            Reliability::AtLeastOnce,
            ReasonCode::NO_MATCHING_SUBSCRIBERS,
            Acknowledgement::NoSubscriber,
        ),
        (
            Reliability::AtLeastOnce,
            ReasonCode::NOT_AUTHORIZED,
            Acknowledgement::Rejected(0x87),
        ),
        (
            Reliability::ExactlyOnce,
            ReasonCode::SUCCESS,
            Acknowledgement::Taken,
        ),
        (
            Reliability::ExactlyOnce,
            ReasonCode::NO_MATCHING_SUBSCRIBERS,
            Acknowledgement::NoSubscriber,
        ),
        (
            Reliability::ExactlyOnce,
            ReasonCode::QUOTA_EXCEEDED,
            Acknowledgement::Rejected(0x97),
        ),
        // A code that the specification gives to other packets is a rejection all the same.
        (
            Reliability::AtLeastOnce,
            ReasonCode::PACKET_TOO_LARGE,
            Acknowledgement::Rejected(0x95),
        ),
        (
            Reliability::ExactlyOnce,
            ReasonCode::PACKET_TOO_LARGE,
            Acknowledgement::Rejected(0x95),
        ),
    ] {
        let (port, server) = scripted(move |listener| {
            let mut peer = Peer::accept(&listener, Version::V5);
            peer.welcome(false, &[]);
            let (packet_id, ..) = peer.publish();
            let answer = Ack {
                reason,
                ..ack(packet_id)
            };
            if reliability == Reliability::AtLeastOnce {
                peer.send(Packet::PubAck(answer));
            } else {
                peer.send(Packet::PubRec(answer));
                if !reason.is_error() {
                    peer.next(|p| assert_eq!(p, Packet::PubRel(ack(packet_id))));
                    peer.send(Packet::PubComp(ack(packet_id)));
                }
            }
            peer.next(|p| assert!(matches!(p, Packet::Disconnect(_)), "{p:?}"));
        });
        let mut rig = on(port, reliable("5", reliability));
        let c = rig.named("c");
        let topic = rig.fleet.advertise(c, "t").unwrap();
        assert_eq!(rig.try_publish(c, topic, 42, 16), Publish::Accepted);
        assert_eq!(rig.fleet.unsettled(), 1);
        rig.until("answered", |s| !s.acknowledged.is_empty());
        assert_eq!(rig.seen.acknowledged, [(0, 42, expected)]);
        assert_eq!(rig.fleet.unsettled(), 0);
        rig.disconnect(c);
        server.join().unwrap();
    }
}

/// A client that hears a message of QoS 2 before it publishes one, as those do that answer. Before, its window was empty
/// for good.
#[test]
fn a_client_that_hears_first_may_publish() {
    let (port, server) = scripted(|listener| {
        let mut peer = Peer::accept(&listener, Version::V5);
        peer.welcome(false, &[]);
        peer.send(Packet::Publish(Sent {
            qos: QoS::ExactlyOnce,
            packet_id: 7,
            topic: "t",
            payload: b"0123456789abcdef",
            ..Sent::default()
        }));
        peer.next(|p| assert_eq!(p, Packet::PubRec(ack(7))));
        peer.send(Packet::PubRel(ack(7)));
        let mut own = 0;
        for _ in 0..2 {
            peer.next(|p| match p {
                Packet::Publish(p) => own = p.packet_id,
                other => assert_eq!(other, Packet::PubComp(ack(7))),
            });
        }
        peer.send(Packet::PubRec(ack(own)));
        peer.next(|p| assert_eq!(p, Packet::PubRel(ack(own))));
        peer.send(Packet::PubComp(ack(own)));
    });
    let mut rig = on(port, reliable("5", Reliability::ExactlyOnce));
    let c = rig.named("c");
    let topic = rig.fleet.advertise(c, "answers").unwrap();
    rig.until("heard", |s| s.delivered == 1);
    assert_eq!(rig.try_publish(c, topic, 3, 16), Publish::Accepted);
    rig.until("answered", |s| !s.acknowledged.is_empty());
    server.join().unwrap();
}

#[test]
fn the_servers_receive_maximum_is_obeyed() {
    let (port, server) = scripted(|listener| {
        let mut peer = Peer::accept(&listener, Version::V5);
        peer.welcome(false, &[Property::ReceiveMaximum(2)]);
        let (first, ..) = peer.publish();
        peer.publish();
        peer.stream
            .set_read_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        let more = peer.stream.read(&mut [0; 100]);
        assert!(more.is_err(), "no third message before an answer: {more:?}");
        peer.stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        peer.send(Packet::PubAck(ack(first)));
        assert_eq!(peer.publish().1, 2);
    });
    let mut rig = on(port, reliable("5", Reliability::AtLeastOnce));
    let c = rig.named("c");
    let topic = rig.fleet.advertise(c, "t").unwrap();
    assert_eq!(rig.try_publish(c, topic, 0, 16), Publish::Accepted);
    assert_eq!(rig.try_publish(c, topic, 1, 16), Publish::Accepted);
    assert_eq!(rig.try_publish(c, topic, 2, 16), Publish::Blocked);
    assert_eq!(rig.fleet.unsettled(), 2);
    rig.until("writable", |s| !s.writable.is_empty());
    assert_eq!(rig.try_publish(c, topic, 2, 16), Publish::Accepted);
    rig.poll_for(Duration::from_millis(20));
    server.join().unwrap();
}

#[test]
fn a_resumed_session_sends_again_in_order_with_dup() {
    let (port, server) = scripted(|listener| {
        let mut peer = Peer::accept(&listener, Version::V5);
        peer.next(|p| match p {
            Packet::Connect(c) => {
                assert!(!c.clean_start);
                assert_eq!(
                    c.properties.number(PropertyId::SessionExpiryInterval),
                    Some(3600)
                );
            }
            other => panic!("{other:?}"),
        });
        peer.send(Packet::ConnAck(ConnAck::default()));
        let ids: Vec<_> = (0..4)
            .map(|n| {
                let (id, sequence, dup) = peer.publish();
                assert_eq!((sequence, dup), (n, false));
                id
            })
            .collect();
        // The first is seen through, the second got as far as PUBREL.
        peer.send(Packet::PubRec(ack(ids[0])));
        peer.send(Packet::PubRec(ack(ids[1])));
        for id in &ids[..2] {
            peer.next(|p| assert_eq!(p, Packet::PubRel(ack(*id))));
        }
        peer.send(Packet::PubComp(ack(ids[0])));
        peer.until_closed();

        let mut peer = Peer::accept(&listener, Version::V5);
        // A smaller window than before.
        peer.welcome(true, &[Property::ReceiveMaximum(2)]);
        peer.next(|p| assert_eq!(p, Packet::PubRel(ack(ids[1]))));
        assert_eq!(peer.publish(), (ids[2], 2, true));
        peer.send(Packet::PubComp(ack(ids[1])));
        assert_eq!(peer.publish(), (ids[3], 3, true));
        for id in &ids[2..] {
            peer.send(Packet::PubRec(ack(*id)));
            peer.next(|p| assert_eq!(p, Packet::PubRel(ack(*id))));
            peer.send(Packet::PubComp(ack(*id)));
        }
        let (_, sequence, dup) = peer.publish();
        assert_eq!(
            (sequence, dup),
            (4, false),
            "a new message after the old ones"
        );
    });
    let mut rig = on(port, durable("5", Reliability::ExactlyOnce));
    let c = rig.named("c");
    let topic = rig.fleet.advertise(c, "t").unwrap();
    for n in 0..4 {
        rig.publish(c, topic, n, 16);
    }
    rig.until("the first is seen through", |s| s.acknowledged.len() == 1);
    rig.fleet.abort(c);
    assert_eq!(rig.fleet.unsettled(), 3);
    assert!(rig.seen.failed.is_empty(), "an abort is not reported");
    rig.fleet.reconnect(c).unwrap();
    rig.until("connected again", |s| s.connected.len() == 2);
    assert_eq!(rig.seen.connected[1], (0, true));
    rig.until("the others too", |s| s.acknowledged.len() == 4);
    rig.publish(c, topic, 4, 16);
    rig.poll_for(Duration::from_millis(20));
    let tags: Vec<_> = rig.seen.acknowledged.iter().map(|a| a.1).collect();
    assert_eq!(tags, [0, 1, 2, 3]);
    server.join().unwrap();
}

#[test]
fn without_its_session_what_was_under_way_is_forgotten() {
    for settings in [
        durable("3.1.1", Reliability::AtLeastOnce),
        reliable("3.1.1", Reliability::AtLeastOnce),
    ] {
        let clean = settings.session.is_none();
        let (port, server) = scripted(move |listener| {
            let mut peer = Peer::accept(&listener, Version::V311);
            peer.welcome(false, &[]);
            peer.publish();
            drop(peer);
            let mut peer = Peer::accept(&listener, Version::V311);
            peer.welcome(false, &[]);
            assert_eq!(peer.publish().1, 1, "only the new one");
        });
        let mut rig = on(port, settings);
        let c = rig.named("c");
        let topic = rig.fleet.advertise(c, "t").unwrap();
        rig.publish(c, topic, 0, 16);
        rig.until("failed", |s| s.failed.len() == 1);
        // A clean session ended with its connection, a durable one may still be there.
        assert_eq!(rig.fleet.unsettled(), u64::from(!clean));
        rig.fleet.reconnect(c).unwrap();
        rig.until("connected again", |s| s.connected.len() == 2);
        assert_eq!(rig.fleet.unsettled(), 0);
        rig.publish(c, topic, 1, 16);
        rig.poll_for(Duration::from_millis(20));
        server.join().unwrap();
        assert!(rig.seen.acknowledged.is_empty());
    }
}

#[test]
fn exactly_once_is_delivered_once_also_across_connections() {
    let (port, server) = scripted(|listener| {
        let message = |dup, packet_id| {
            Packet::Publish(Sent {
                dup,
                qos: QoS::ExactlyOnce,
                topic: "t",
                packet_id,
                payload: b"0123456789abcdef",
                ..Sent::default()
            })
        };
        let mut peer = Peer::accept(&listener, Version::V311);
        peer.welcome(false, &[]);
        peer.send(message(false, 5));
        peer.next(|p| assert_eq!(p, Packet::PubRec(ack(5))));
        peer.send(message(true, 5));
        peer.next(|p| assert_eq!(p, Packet::PubRec(ack(5))));
        drop(peer);
        let mut peer = Peer::accept(&listener, Version::V311);
        peer.welcome(true, &[]);
        peer.send(message(true, 5));
        peer.next(|p| assert_eq!(p, Packet::PubRec(ack(5))));
        for _ in 0..2 {
            peer.send(Packet::PubRel(ack(5)));
            peer.next(|p| assert_eq!(p, Packet::PubComp(ack(5))));
        }
        peer.send(message(false, 5));
        peer.next(|p| assert_eq!(p, Packet::PubRec(ack(5))));
    });
    let mut rig = on(port, durable("3.1.1", Reliability::ExactlyOnce));
    let c = rig.named("c");
    rig.until("failed", |s| s.failed.len() == 1);
    assert_eq!(rig.seen.delivered, 1);
    rig.fleet.reconnect(c).unwrap();
    rig.until("failed again", |s| s.failed.len() == 2);
    assert_eq!(
        rig.seen.delivered, 2,
        "released, the identifier is a new message"
    );
    server.join().unwrap();
}

#[test]
fn topic_aliases_are_introduced_on_each_connection_and_kept_within_the_servers_limit() {
    let (port, server) = scripted(|listener| {
        for _ in 0..2 {
            let mut peer = Peer::accept(&listener, Version::V5);
            peer.welcome(false, &[Property::TopicAliasMaximum(1)]);
            for (topic, alias) in [
                ("one", Some(1)),
                ("", Some(1)),
                ("two", None),
                ("", Some(1)),
                ("two", None),
            ] {
                peer.next(|p| match p {
                    Packet::Publish(p) => {
                        assert_eq!(
                            (p.topic, p.properties.number(PropertyId::TopicAlias)),
                            (topic, alias)
                        );
                    }
                    other => panic!("{other:?}"),
                });
            }
        }
    });
    let mut settings = common::version("5");
    native(&mut settings, "topic-alias", 10.into());
    let mut rig = on(port, settings);
    let c = rig.named("c");
    let one = rig.fleet.advertise(c, "one").unwrap();
    let two = rig.fleet.advertise(c, "two").unwrap();
    for n in 1..=2 {
        for topic in [one, one, two, one, two] {
            rig.publish(c, topic, 0, 16);
        }
        rig.until("failed", |s| s.failed.len() == n);
        rig.fleet.reconnect(c).unwrap();
        if n == 1 {
            rig.until("connected", |s| s.connected.len() == 2);
        }
    }
    server.join().unwrap();
}

#[test]
fn a_connect_says_what_the_settings_say() {
    let (port, server) = scripted(|listener| {
        let mut peer = Peer::accept(&listener, Version::V5);
        peer.next(|p| {
            let Packet::Connect(c) = p else {
                panic!("{p:?}")
            };
            assert_eq!(
                (c.client_id, c.keep_alive_s, c.clean_start),
                ("device-1", 17, true)
            );
            assert_eq!(
                (c.username, c.password),
                (Some("user"), Some(&b"secret"[..]))
            );
            assert_eq!(c.properties.number(PropertyId::ReceiveMaximum), Some(33));
            let will = c.will.unwrap();
            assert_eq!(
                (will.topic, will.payload, will.retain),
                ("gone", &b"bye"[..], true)
            );
            assert_eq!(will.qos, QoS::AtLeastOnce);
        });
        peer.send(Packet::ConnAck(ConnAck::default()));
        peer.next(|p| {
            let Packet::Subscribe(s) = p else {
                panic!("{p:?}")
            };
            let (filter, options) = s.filters.iter().next().unwrap();
            assert_eq!(
                (filter, options.qos, options.no_local),
                ("a/+", QoS::ExactlyOnce, true)
            );
            assert_eq!(options.retain_handling as u8, 2);
            let identifier = s.properties.number(PropertyId::SubscriptionIdentifier);
            assert_eq!(identifier, Some(268_435_455));
            peer_suback(s.packet_id)
        });
        // In the order asked for: granted less, then refused.
        peer.send(Packet::SubAck(SubAck {
            packet_id: 64_001,
            codes: &[1],
            ..SubAck::default()
        }));
        let id = peer.next(|p| match p {
            Packet::Subscribe(s) => {
                let (filter, options) = s.filters.iter().next().unwrap();
                assert_eq!((filter, options.no_local), ("$share/g/b", false));
                s.packet_id
            }
            other => panic!("{other:?}"),
        });
        peer.send(Packet::SubAck(SubAck {
            packet_id: id,
            codes: &[0x87],
            ..SubAck::default()
        }));
        peer.next(|p| {
            let Packet::Publish(p) = p else {
                panic!("{p:?}")
            };
            assert!(p.retain);
            assert_eq!(
                p.properties.number(PropertyId::MessageExpiryInterval),
                Some(2)
            );
            let pairs: Vec<_> = p.properties.user_properties().collect();
            assert_eq!(pairs, [("k", "v"), ("l", "w")]);
            assert_eq!(p.properties.text(PropertyId::ContentType), Some("a/cbor"));
            assert_eq!(p.properties.text(PropertyId::ResponseTopic), Some("r/1"));
        });
    });
    fn peer_suback(packet_id: u16) {
        assert_eq!(packet_id, 64_001);
    }
    let mut settings = reliable("5", Reliability::AtLeastOnce);
    settings.keep_alive_s = Some(17);
    settings.last_value = Some(true);
    settings.lifespan_ms = Some(1001);
    let pairs = [("k", "v"), ("l", "w")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    settings.user_properties = Some(pairs.into());
    native(&mut settings, "receive-maximum", 33.into());
    native(&mut settings, "subscribe-qos", 2.into());
    native(&mut settings, "no-local", true.into());
    native(&mut settings, "retain-handling", 2.into());
    native(&mut settings, "subscription-identifier", 268_435_455.into());
    native(&mut settings, "content-type", "a/cbor".into());
    native(&mut settings, "response-topic", "r/1".into());
    let target = Target {
        username: Some("user".into()),
        password: Some(Secret::new("secret")),
        ..common::target(port)
    };
    let mut rig = open(target, settings);
    let will = Will {
        topic: "gone".into(),
        payload: b"bye".to_vec(),
        retain: true,
        qos: None,
        delay_s: 0,
    };
    let c = rig.client(&ClientSpec {
        will: Some(will),
        ..Rig::spec("device-1")
    });
    let plain = Subscription::matching("a/+");
    rig.fleet.subscribe(c, &plain).unwrap();
    rig.until("refused", |s| s.refused.len() == 1);
    assert!(
        rig.seen.refused[0].1.contains("granted QoS 1 where QoS 2"),
        "{:?}",
        rig.seen.refused
    );
    let grouped = Subscription::matching("b").of_group("g");
    rig.fleet.subscribe(c, &grouped).unwrap();
    rig.until("refused", |s| s.refused.len() == 2);
    assert!(
        rig.seen.refused[1].1.contains("not authorized"),
        "{:?}",
        rig.seen.refused
    );
    for bad in [
        Subscription::matching("a#"),
        Subscription::matching(""),
        Subscription::matching("a").of_group("x/y"),
        Subscription::matching("a").of_group("+"),
        Subscription::matching("#/a"),
    ] {
        // A group with a slash would silently become another group and filter.
        let refused = rig.fleet.subscribe(c, &bad);
        assert!(refused.is_err(), "{bad:?}");
    }
    let topic = rig.fleet.advertise(c, "x").unwrap();
    rig.publish(c, topic, 0, 16);
    rig.poll_for(Duration::from_millis(20));
    server.join().unwrap();
}

#[test]
fn a_message_above_the_servers_limit_is_refused() {
    let (port, server) = scripted(|listener| {
        let mut peer = Peer::accept(&listener, Version::V5);
        peer.welcome(false, &[Property::MaximumPacketSize(40)]);
        peer.publish();
    });
    let mut rig = on(port, common::version("5"));
    let c = rig.named("c");
    let topic = rig.fleet.advertise(c, "t").unwrap();
    let too_large = rig.try_publish(c, topic, 0, 56);
    assert_eq!(too_large, Publish::Refused(Refusal::TooLarge));
    rig.publish(c, topic, 0, 16);
    rig.poll_for(Duration::from_millis(20));
    server.join().unwrap();
}

#[test]
fn an_alias_does_not_make_a_packet_longer_than_the_server_takes() {
    let (port, server) = scripted(|listener| {
        let mut peer = Peer::accept(&listener, Version::V5);
        // The plain form of 16 bytes to "one" has 24 bytes, that which introduces an alias 27.
        let limits = [
            Property::TopicAliasMaximum(1),
            Property::MaximumPacketSize(24),
        ];
        peer.welcome(false, &limits);
        peer.next(|p| match p {
            Packet::Publish(p) => {
                let alias = p.properties.number(PropertyId::TopicAlias);
                assert_eq!((p.topic, alias), ("one", None));
            }
            other => panic!("{other:?}"),
        });
    });
    let mut settings = common::version("5");
    native(&mut settings, "topic-alias", 1.into());
    let mut rig = on(port, settings);
    let c = rig.named("c");
    let one = rig.fleet.advertise(c, "one").unwrap();
    rig.publish(c, one, 0, 16);
    rig.until("failed", |s| s.failed.len() == 1);
    server.join().unwrap();
}

/// A server that takes a message and then answers its PUBREL with an error.
#[test]
fn an_error_in_a_pubcomp_rejects_the_message() {
    let (port, server) = scripted(move |listener| {
        let mut peer = Peer::accept(&listener, Version::V5);
        peer.welcome(false, &[]);
        let (packet_id, ..) = peer.publish();
        peer.send(Packet::PubRec(ack(packet_id)));
        peer.next(|p| assert_eq!(p, Packet::PubRel(ack(packet_id))));
        let [high, low] = packet_id.to_be_bytes();
        peer.raw(&[0x70, 3, high, low, 0x97]);
        peer.next(|p| assert!(matches!(p, Packet::Disconnect(_)), "{p:?}"));
    });
    let mut rig = on(port, reliable("5", Reliability::ExactlyOnce));
    let c = rig.named("c");
    let topic = rig.fleet.advertise(c, "t").unwrap();
    assert_eq!(rig.try_publish(c, topic, 42, 16), Publish::Accepted);
    rig.until("answered", |s| !s.acknowledged.is_empty());
    assert_eq!(
        rig.seen.acknowledged,
        [(0, 42, Acknowledgement::Rejected(0x97))]
    );
    assert_eq!(MqttDriver.rejection(0x97), "quota exceeded (0x97)");
    rig.disconnect(c);
    server.join().unwrap();
}

/// A server without subscription identifiers says so in its CONNACK; one that then leaves them out breaks the protocol.
#[test]
fn messages_without_their_subscription_identifier_are_told() {
    for granted in [false, true] {
        let (port, server) = scripted(move |listener| {
            let mut peer = Peer::accept(&listener, Version::V5);
            peer.welcome(false, &[Property::SubscriptionIdentifierAvailable(granted)]);
            if granted {
                let packet_id = peer.next(|p| match p {
                    Packet::Subscribe(s) => s.packet_id,
                    other => panic!("{other:?}"),
                });
                peer.send(Packet::SubAck(SubAck {
                    packet_id,
                    codes: &[0],
                    ..SubAck::default()
                }));
                // Topic `t`, no properties, one byte.
                peer.raw(&[0x30, 5, 0, 1, b't', 0, 9]);
            }
            peer.until_closed();
        });
        let mut settings = common::version("5");
        native(&mut settings, "subscription-identifier", 7.into());
        let mut rig = on(port, settings);
        let c = rig.fleet.connect(&Rig::spec("c")).unwrap();
        if granted {
            rig.until("connected", |s| !s.connected.is_empty());
            let filter = Subscription::matching("t");
            rig.fleet.subscribe(c, &filter).unwrap();
        }
        rig.until("failed", |s| s.failed.len() == 1);
        let said = if granted {
            "without the Subscription Identifier"
        } else {
            "does not support subscription identifiers"
        };
        assert!(rig.seen.failed[0].1.contains(said), "{:?}", rig.seen.failed);
        drop(rig);
        server.join().unwrap();
    }
}

#[test]
fn what_the_server_grants_is_told() {
    let (port, server) = scripted(move |listener| {
        let mut peer = Peer::accept(&listener, Version::V5);
        peer.welcome(
            false,
            &[
                Property::ReceiveMaximum(5),
                Property::TopicAliasMaximum(3),
                Property::ServerKeepAlive(10),
                Property::SessionExpiryInterval(90),
            ],
        );
        peer.next(|p| assert!(matches!(p, Packet::Disconnect(_)), "{p:?}"));
    });
    let mut settings = durable("5", Reliability::AtLeastOnce);
    native(&mut settings, "topic-alias", 200.into());
    let mut rig = on(port, settings);
    let c = rig.named("c");
    let granted = rig.fleet.grants();
    let told: Vec<_> = granted
        .iter()
        .map(|g| (g.setting.as_ref(), g.asked, g.granted))
        .collect();
    assert_eq!(
        told,
        [
            ("in-flight", 20, 5),
            ("native.mqtt.topic-alias", 200, 3),
            ("keep-alive-s", 60, 10),
            ("session-expiry-s", 3600, 90),
        ]
    );
    rig.disconnect(c);
    server.join().unwrap();
}
