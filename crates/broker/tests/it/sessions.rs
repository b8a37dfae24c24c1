//! Sessions, and how connections begin and end, packet by packet.

use crate::common;

use std::time::{Duration, Instant};

use common::{Client, properties, publish_fully, start};
use pubgauge_broker::{Credential, Options};
use pubgauge_mqtt_codec::{
    Connect, Disconnect, Packet, Property, PropertyId, Publish, QoS, ReasonCode, Version, Will,
};

use QoS::{AtLeastOnce, AtMostOnce, ExactlyOnce};
use Version::{V5, V311};

const VERSIONS: [Version; 2] = [V311, V5];
const QOS: [QoS; 3] = [AtMostOnce, AtLeastOnce, ExactlyOnce];

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
        // Once this comes back the broker has seen the end before it.
        from.quiet();
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
        // Messages that were not acknowledged come again, marked, in order.
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

/// Tests that need a machine that is not busy with other things.
mod real_time {
    use super::*;

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
        let mut from = Client::new(&broker, V5, "from");
        // Once this comes back the broker has seen the end before it.
        from.quiet();
        // 100 s less more than 1 s since they were begun, in whole seconds.
        let sent = Instant::now();
        let left = |sent: &Instant| 99 - sent.elapsed().as_secs() as u32..=99;
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
            left(&sent).contains(&got.expiry_s.unwrap()),
            "{:?}",
            got.expiry_s
        );
        to.quiet();
        to.subscribe("k/#", AtMostOnce);
        let got = to.message();
        assert_eq!(got.topic, "k/long");
        assert!(
            left(&sent).contains(&got.expiry_s.unwrap()),
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
        // Once this comes back the broker has seen the end before it.
        Client::new(&broker, V5, "other").quiet();
        drop(Client::connect(&broker, V5, "s", |c| {
            c.properties = long.as_properties()
        }));
        std::thread::sleep(Duration::from_millis(1500));
        let (_, connack) = Client::connect(&broker, V5, "s", |c| c.clean_start = false);
        assert!(connack.session_present);
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
}
