//! The driver against servers that misbehave: they refuse, hang, close, talk nonsense.

use crate::common;

use std::io::{Read, Write};
use std::time::Duration;

use common::peer::*;
use common::*;
use pubgauge_driver::*;
use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_mqtt_codec::Publish as Sent;
use pubgauge_mqtt_codec::{Disconnect, Packet, Property, QoS, Version};

/// Connects to a server that answers with these bytes and gives the reason of the failure.
fn failure(version: &str, answer: Vec<u8>) -> String {
    let (port, server) = scripted(move |listener| {
        let mut peer = Peer::accept(&listener, Version::V5);
        let _ = peer.stream.read(&mut [0; 4096]);
        peer.raw(&answer);
        // Keeps the connection open until the client has had enough of it.
        let _ = peer.stream.read(&mut [0; 4096]);
    });
    let why = Rig::failure(&MqttDriver, target(port), common::version(version));
    server.join().unwrap();
    why
}

#[test]
fn refusals_are_told_in_words_with_advice() {
    for (version, answer, words, hint) in [
        (
            "3.1.1",
            vec![0x20, 2, 0, 1],
            "unacceptable protocol version",
            "native.mqtt.version",
        ),
        (
            "3.1.1",
            vec![0x20, 2, 0, 2],
            "client identifier rejected",
            "identifier",
        ),
        ("3.1.1", vec![0x20, 2, 0, 3], "server unavailable", "limit"),
        (
            "3.1.1",
            vec![0x20, 2, 0, 4],
            "bad user name or password",
            "PUBGAUGE_PASSWORD",
        ),
        (
            "3.1.1",
            vec![0x20, 2, 0, 5],
            "not authorized",
            "PUBGAUGE_PASSWORD",
        ),
        (
            "5",
            vec![0x20, 2, 0, 1],
            "unsupported protocol version",
            "native.mqtt.version",
        ),
        (
            "5",
            vec![0x20, 3, 0, 0x87, 0],
            "not authorized (reason code 0x87)",
            "user name",
        ),
        (
            "5",
            b"\x20\x09\x00\x89\x06\x1f\x00\x03why".to_vec(),
            "server busy (reason code 0x89): why",
            "limit",
        ),
        (
            "5",
            vec![0xe0, 2, 0x8b, 0],
            "server shutting down",
            "ended the connection",
        ),
        (
            "3.1.1",
            b"HTTP/1.1 400 Bad Request\r\n".to_vec(),
            "broke the protocol",
            "§",
        ),
        (
            "5",
            vec![0x30, 4, 0, 1, b'a', 0],
            "PUBLISH before its CONNACK",
            "version",
        ),
        (
            "5",
            vec![0x20, 3, 1, 0, 0],
            "although a clean one was asked for",
            "§3.2.2.1.1",
        ),
    ] {
        let why = failure(version, answer.clone());
        assert!(
            why.contains(words) && why.contains(hint),
            "{answer:02x?}: {why}"
        );
        assert!(why.contains("mqtt://127.0.0.1:"), "{why}");
    }
    let why = failure("5", b"\xf0\x06\x18\x04\x15\x00\x01m".to_vec());
    assert!(why.contains("enhanced authentication"), "{why}");
}

#[test]
fn nobody_there_is_told_with_advice() {
    let mut rig = on(free_port(), Settings::default());
    let id = rig.fleet.connect(&Rig::spec("c")).unwrap();
    rig.until("failed", |s| !s.failed.is_empty());
    assert!(
        rig.seen.failed[0].1.contains("refused"),
        "{:?}",
        rig.seen.failed
    );
    assert!(rig.seen.failed[0].1.contains("hint: nothing listens there"));
    // And again: the client stays in place.
    rig.fleet.reconnect(id).unwrap();
    rig.until("failed again", |s| s.failed.len() == 2);
    let topic = rig.fleet.advertise(id, "t").unwrap();
    let refused = rig.try_publish(id, topic, 0, 16);
    assert_eq!(refused, Publish::Refused(Refusal::NotConnected));
}

#[test]
fn a_server_that_closes_is_told_from_one_that_refuses() {
    let (port, server) = scripted(|listener| {
        let mut peer = Peer::accept(&listener, Version::V5);
        let _ = peer.stream.read(&mut [0; 4096]);
        drop(peer);
        let mut peer = Peer::accept(&listener, Version::V5);
        peer.welcome(false, &[]);
    });
    let mut rig = on(port, Settings::default());
    let id = rig.fleet.connect(&Rig::spec("c")).unwrap();
    rig.until("failed", |s| s.failed.len() == 1);
    rig.fleet.reconnect(id).unwrap();
    rig.until("failed again", |s| s.failed.len() == 2);
    server.join().unwrap();
    assert!(
        rig.seen.failed[0].1.contains("before its CONNACK"),
        "{:?}",
        rig.seen.failed
    );
    assert!(
        rig.seen.failed[1]
            .1
            .contains("the server closed the connection"),
        "{:?}",
        rig.seen.failed
    );
    assert_eq!(rig.seen.connected.len(), 1);
}

#[test]
fn wrong_packets_on_a_connection_in_use_end_it() {
    for (bytes, words) in [
        (vec![0x20, 3, 0, 0, 0], "CONNACK in the middle"),
        (vec![0x40, 2, 0, 1], "PUBACK for packet identifier 1"),
        (vec![0x70, 2, 0, 1], "PUBCOMP for packet identifier 1"),
        (vec![0x90, 4, 0, 1, 0, 0], "SUBACK for packet identifier 1"),
        (vec![0x90, 5, 0, 1, 0, 0, 0], "SUBACK with 2 codes"),
        (vec![0xc0, 0], "PINGREQ in the middle"),
        (
            vec![0x82, 7, 0, 1, 0, 0, 1, b'a', 0],
            "SUBSCRIBE in the middle",
        ),
        (vec![0x30, 3, 0, 1, b'#'], "wildcard"),
        (vec![0x30, 0xff, 0xff, 0xff, 0x7f], "larger than allowed"),
        (
            vec![0x30, 6, 0, 0, 3, 0x23, 0, 1],
            "topic alias that was not allowed",
        ),
        (vec![0xff; 64], "broke the protocol"),
        (b"\xe0\x02\x8e\x00".to_vec(), "session taken over"),
    ] {
        let sent = bytes.clone();
        let (port, server) = scripted(move |listener| {
            let mut peer = Peer::accept(&listener, Version::V5);
            peer.welcome(false, &[]);
            peer.raw(&sent);
            peer.until_closed();
        });
        let why = Rig::failure(&MqttDriver, target(port), Settings::default());
        assert!(why.contains(words), "{bytes:02x?}: {why}");
        server.join().unwrap();
    }
}

#[test]
fn a_server_that_does_not_read_holds_the_publisher_back_or_has_it_drop() {
    for on_full in [OnFull::Block, OnFull::Drop] {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let (port, server) = scripted(move |listener| {
            let mut peer = Peer::accept(&listener, Version::V5);
            peer.welcome(false, &[]);
            stopped.recv().unwrap(); // Reads nothing until told to.
            peer.until_closed();
        });
        let settings = Settings {
            on_full: Some(on_full),
            ..common::version("5")
        };
        let mut rig = on(port, settings);
        let c = rig.named("c");
        let topic = rig.fleet.advertise(c, "t").unwrap();
        let mut accepted = 0;
        let answer = loop {
            match rig.try_publish(c, topic, 0, 1016) {
                Publish::Accepted => accepted += 1,
                other => break other,
            }
            assert!(accepted < 100_000, "held back at some point");
        };
        rig.poll_for(Duration::from_millis(50));
        assert!(rig.seen.writable.is_empty());
        let waiting = rig.fleet.unsettled();
        assert!(
            waiting > 0 && waiting < 100,
            "a buffer's worth, not more: {waiting}"
        );
        stop.send(()).unwrap();
        if on_full == OnFull::Drop {
            assert_eq!(answer, Publish::Refused(Refusal::Dropped));
        } else {
            assert_eq!(answer, Publish::Blocked);
            rig.until("writable", |s| !s.writable.is_empty());
        }
        let end = clock::monotonic_now() + 60 * SECOND;
        while rig.fleet.unsettled() > 0 {
            rig.fleet
                .poll(clock::monotonic_now() + 10_000_000, &mut rig.seen)
                .unwrap();
            assert!(clock::monotonic_now() < end);
        }
        rig.fleet.close(clock::monotonic_now() + 5 * SECOND);
        server.join().unwrap();
    }
}

/// A server that sends QoS 1 messages without end and never reads our answers must not make us
/// keep answers without end.
#[test]
fn a_server_that_only_talks_is_not_listened_to_for_ever() {
    let (port, server) = scripted(|listener| {
        let mut peer = Peer::accept(&listener, Version::V311);
        peer.welcome(false, &[]);
        let mut batch = Vec::new();
        let message = Sent {
            qos: QoS::AtLeastOnce,
            topic: "t",
            packet_id: 1,
            payload: &[0; 16],
            ..Sent::default()
        };
        for _ in 0..1000 {
            Packet::Publish(message)
                .encode(Version::V311, &mut batch)
                .unwrap();
        }
        peer.stream
            .set_write_timeout(Some(Duration::from_secs(1)))
            .unwrap();
        let mut written = 0;
        while peer.stream.write_all(&batch).is_ok() {
            written += batch.len();
            assert!(written < 1 << 30, "the client stops reading at some point");
        }
    });
    let mut rig = on(port, common::version("3.1.1"));
    rig.seen.count_only = true;
    rig.named("c");
    rig.until("the server has given up", |_| server.is_finished());
    server.join().unwrap();
}

#[test]
fn an_orderly_end_says_so() {
    for version in [Version::V311, Version::V5] {
        let (port, server) = scripted(move |listener| {
            let mut peer = Peer::accept(&listener, version);
            peer.welcome(false, &[]);
            peer.publish();
            peer.next(|p| assert_eq!(p, Packet::Disconnect(Disconnect::default())));
            assert_eq!(peer.try_next(|_| ()), None, "and nothing after it");
        });
        let name = if version == Version::V5 { "5" } else { "3.1.1" };
        let mut rig = on(port, common::version(name));
        let c = rig.named("c");
        let topic = rig.fleet.advertise(c, "t").unwrap();
        rig.publish(c, topic, 0, 16);
        rig.disconnect(c);
        assert!(rig.seen.failed.is_empty());
        server.join().unwrap();
    }
}

/// Tests that need a machine that is not busy with other things.
mod real_time {
    use super::*;

    #[test]
    fn silence_is_noticed_and_the_server_may_set_the_interval() {
        for settings in [
            Settings {
                keep_alive_s: Some(1),
                ..common::version("3.1.1")
            },
            Settings {
                keep_alive_s: Some(60),
                ..common::version("5")
            },
        ] {
            let version = if settings.keep_alive_s == Some(1) {
                Version::V311
            } else {
                Version::V5
            };
            let (port, server) = scripted(move |listener| {
                let mut peer = Peer::accept(&listener, version);
                let properties = [Property::ServerKeepAlive(1)];
                peer.welcome(
                    false,
                    if version == Version::V5 {
                        &properties
                    } else {
                        &[]
                    },
                );
                let start = std::time::Instant::now();
                peer.next(|p| assert_eq!(p, Packet::PingReq));
                assert!(start.elapsed() > Duration::from_millis(700));
                peer.send(Packet::PingResp);
                peer.next(|p| assert_eq!(p, Packet::PingReq));
                peer.until_closed();
            });
            let mut rig = on(port, settings);
            rig.named("c");
            rig.until("failed", |s| !s.failed.is_empty());
            assert!(
                rig.seen.failed[0].1.contains("no sign of life"),
                "{:?}",
                rig.seen.failed
            );
            server.join().unwrap();
        }
    }
}

/// A length that the settings name is insisted on; the driver's own hour is not.
#[test]
fn a_session_that_the_server_shortens_is_not_taken_for_the_one_asked_for() {
    for session_expiry_s in [Some(90), None] {
        let (port, server) = scripted(|listener| {
            let mut peer = Peer::accept(&listener, Version::V5);
            peer.welcome(false, &[Property::SessionExpiryInterval(60)]);
            // Keeps the connection open until the client has had enough of it.
            let _ = peer.stream.read(&mut [0; 4096]);
        });
        let settings = Settings {
            session_expiry_s,
            ..durable("5", Reliability::AtLeastOnce)
        };
        if session_expiry_s.is_some() {
            let why = Rig::failure(&MqttDriver, target(port), settings);
            assert!(why.contains("it grants 60 s"), "{why}");
        } else {
            on(port, settings).named("c");
        }
        server.join().unwrap();
    }
}
