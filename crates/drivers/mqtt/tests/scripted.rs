//! The driver against servers that follow a script: what no well-behaved broker does on demand.

mod common;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use common::*;
use pubgauge_driver::*;
use pubgauge_mqtt_codec::Publish as Sent;
use pubgauge_mqtt_codec::{
    Ack, ConnAck, Disconnect, MAX_PACKET_LEN, Packet, PropertiesBuf, Property, PropertyId, QoS,
    ReasonCode, SubAck, Version, decode,
};

/// The server's side of one connection.
struct Peer {
    stream: TcpStream,
    version: Version,
    buf: Vec<u8>,
}

impl Peer {
    fn accept(listener: &TcpListener, version: Version) -> Peer {
        let (stream, _) = listener.accept().unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        Peer {
            stream,
            version,
            buf: Vec::new(),
        }
    }

    /// Hands the next packet to `look`; panics at the end of the stream.
    #[track_caller]
    fn next<T>(&mut self, look: impl FnOnce(Packet<'_>) -> T) -> T {
        self.try_next(look)
            .expect("the client closed the connection")
    }

    fn try_next<T>(&mut self, look: impl FnOnce(Packet<'_>) -> T) -> Option<T> {
        loop {
            let decoded =
                decode(&self.buf, self.version, MAX_PACKET_LEN).expect("the client sends packets");
            if let Some((packet, len)) = decoded {
                let result = look(packet);
                self.buf.drain(..len);
                return Some(result);
            }
            let mut chunk = [0; 65_536];
            match self
                .stream
                .read(&mut chunk)
                .expect("the client sends something")
            {
                0 => return None,
                n => self.buf.extend_from_slice(&chunk[..n]),
            }
        }
    }

    fn send(&mut self, packet: Packet<'_>) {
        let mut bytes = Vec::new();
        packet.encode(self.version, &mut bytes).unwrap();
        self.raw(&bytes);
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Reads the CONNECT and accepts it.
    fn welcome(&mut self, session_present: bool, properties: &[Property<'_>]) {
        self.next(|p| assert!(matches!(p, Packet::Connect(_)), "{p:?}"));
        let mut buf = PropertiesBuf::default();
        for p in properties {
            buf.push(*p).unwrap();
        }
        let properties = buf.as_properties();
        self.send(Packet::ConnAck(ConnAck {
            session_present,
            properties,
            ..ConnAck::default()
        }));
    }

    #[track_caller]
    fn publish(&mut self) -> (u16, u64, bool) {
        self.next(|p| match p {
            Packet::Publish(p) => (p.packet_id, sequence(p.payload), p.dup),
            other => panic!("not a PUBLISH: {other:?}"),
        })
    }

    /// Waits until the client has closed its side.
    fn until_closed(mut self) {
        while self.try_next(|_| ()).is_some() {}
    }
}

fn ack(packet_id: u16) -> Ack<'static> {
    Ack {
        packet_id,
        ..Ack::default()
    }
}

/// Runs a script on a port of its own.
fn scripted(script: impl FnOnce(TcpListener) + Send + 'static) -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    (port, std::thread::spawn(move || script(listener)))
}

fn reliable(version: &str, reliability: Reliability) -> Settings {
    Settings {
        reliability: Some(reliability),
        ..common::version(version)
    }
}

fn durable(version: &str, reliability: Reliability) -> Settings {
    Settings {
        session: Some(Session::Durable),
        ..reliable(version, reliability)
    }
}

fn try_publish(bench: &mut Bench, client: ClientId, topic: TopicId, n: u64) -> Publish {
    let head = head(n);
    bench.fleet.publish(
        client,
        topic,
        Payload {
            head: &head,
            body: &[],
        },
        n,
    )
}

/// Connects to a server that answers with these bytes and gives the reason of the failure.
fn failure(version: &str, answer: Vec<u8>) -> String {
    let (port, server) = scripted(move |listener| {
        let mut peer = Peer::accept(&listener, Version::V5);
        let _ = peer.stream.read(&mut [0; 4096]);
        peer.raw(&answer);
        // Keeps the connection open until the client has had enough of it.
        let _ = peer.stream.read(&mut [0; 4096]);
    });
    let mut bench = Bench::on(port, common::version(version));
    bench.fleet.connect(&Bench::spec("c")).unwrap();
    bench.until("failed", |s| !s.failed.is_empty());
    server.join().unwrap();
    bench.seen.failed.remove(0).1
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
            "check user name",
        ),
        (
            "3.1.1",
            vec![0x20, 2, 0, 5],
            "not authorized",
            "user name and password",
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
    let mut bench = Bench::on(free_port(), Settings::default());
    let id = bench.fleet.connect(&Bench::spec("c")).unwrap();
    bench.until("failed", |s| !s.failed.is_empty());
    assert!(
        bench.seen.failed[0].1.contains("refused"),
        "{:?}",
        bench.seen.failed
    );
    assert!(
        bench.seen.failed[0]
            .1
            .contains("hint: nothing listens there")
    );
    // And again: the client stays in place.
    bench.fleet.reconnect(id).unwrap();
    bench.until("failed again", |s| s.failed.len() == 2);
    let topic = bench.fleet.advertise(id, "t").unwrap();
    assert_eq!(
        try_publish(&mut bench, id, topic, 0),
        Publish::Refused(Refusal::NotConnected)
    );
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
    let mut bench = Bench::on(port, Settings::default());
    let id = bench.fleet.connect(&Bench::spec("c")).unwrap();
    bench.until("failed", |s| s.failed.len() == 1);
    bench.fleet.reconnect(id).unwrap();
    bench.until("failed again", |s| s.failed.len() == 2);
    server.join().unwrap();
    assert!(
        bench.seen.failed[0].1.contains("before its CONNACK"),
        "{:?}",
        bench.seen.failed
    );
    assert!(
        bench.seen.failed[1]
            .1
            .contains("the server closed the connection"),
        "{:?}",
        bench.seen.failed
    );
    assert_eq!(bench.seen.connected.len(), 1);
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
        let mut bench = Bench::on(port, Settings::default());
        bench.fleet.connect(&Bench::spec("c")).unwrap();
        bench.until("failed", |s| !s.failed.is_empty());
        assert!(
            bench.seen.failed[0].1.contains(words),
            "{bytes:02x?}: {:?}",
            bench.seen.failed
        );
        server.join().unwrap();
    }
}

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
        let mut bench = Bench::on(port, reliable("5", reliability));
        let c = bench.named("c");
        let topic = bench.fleet.advertise(c, "t").unwrap();
        assert_eq!(try_publish(&mut bench, c, topic, 42), Publish::Accepted);
        assert_eq!(bench.fleet.unsettled(), 1);
        bench.until("answered", |s| !s.acknowledged.is_empty());
        assert_eq!(bench.seen.acknowledged, [(0, 42, expected)]);
        assert_eq!(bench.fleet.unsettled(), 0);
        bench.fleet.disconnect(c);
        bench.until("closed", |s| !s.closed.is_empty());
        server.join().unwrap();
    }
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
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        peer.send(Packet::PubAck(ack(first)));
        assert_eq!(peer.publish().1, 2);
    });
    let mut bench = Bench::on(port, reliable("5", Reliability::AtLeastOnce));
    let c = bench.named("c");
    let topic = bench.fleet.advertise(c, "t").unwrap();
    assert_eq!(try_publish(&mut bench, c, topic, 0), Publish::Accepted);
    assert_eq!(try_publish(&mut bench, c, topic, 1), Publish::Accepted);
    assert_eq!(try_publish(&mut bench, c, topic, 2), Publish::Blocked);
    assert_eq!(bench.fleet.unsettled(), 2);
    bench.until("writable", |s| !s.writable.is_empty());
    assert_eq!(try_publish(&mut bench, c, topic, 2), Publish::Accepted);
    bench.poll_for(Duration::from_millis(20));
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
    let mut bench = Bench::on(port, durable("5", Reliability::ExactlyOnce));
    let c = bench.named("c");
    let topic = bench.fleet.advertise(c, "t").unwrap();
    for n in 0..4 {
        bench.publish(c, topic, n, 16);
    }
    bench.until("the first is seen through", |s| s.acknowledged.len() == 1);
    bench.fleet.abort(c);
    assert_eq!(bench.fleet.unsettled(), 3);
    assert!(bench.seen.failed.is_empty(), "an abort is not reported");
    bench.fleet.reconnect(c).unwrap();
    bench.until("connected again", |s| s.connected.len() == 2);
    assert_eq!(bench.seen.connected[1], (0, true));
    bench.until("the others too", |s| s.acknowledged.len() == 4);
    bench.publish(c, topic, 4, 16);
    bench.poll_for(Duration::from_millis(20));
    let tags: Vec<_> = bench.seen.acknowledged.iter().map(|a| a.1).collect();
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
        let mut bench = Bench::on(port, settings);
        let c = bench.named("c");
        let topic = bench.fleet.advertise(c, "t").unwrap();
        bench.publish(c, topic, 0, 16);
        bench.until("failed", |s| s.failed.len() == 1);
        // A clean session ended with its connection, a durable one may still be there.
        assert_eq!(bench.fleet.unsettled(), u64::from(!clean));
        bench.fleet.reconnect(c).unwrap();
        bench.until("connected again", |s| s.connected.len() == 2);
        assert_eq!(bench.fleet.unsettled(), 0);
        bench.publish(c, topic, 1, 16);
        bench.poll_for(Duration::from_millis(20));
        server.join().unwrap();
        assert!(bench.seen.acknowledged.is_empty());
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
    let mut bench = Bench::on(port, durable("3.1.1", Reliability::ExactlyOnce));
    let c = bench.named("c");
    bench.until("failed", |s| s.failed.len() == 1);
    assert_eq!(bench.seen.delivered, 1);
    bench.fleet.reconnect(c).unwrap();
    bench.until("failed again", |s| s.failed.len() == 2);
    assert_eq!(
        bench.seen.delivered, 2,
        "released, the identifier is a new message"
    );
    server.join().unwrap();
}

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
        let mut bench = Bench::on(port, settings);
        bench.named("c");
        bench.until("failed", |s| !s.failed.is_empty());
        assert!(
            bench.seen.failed[0].1.contains("no sign of life"),
            "{:?}",
            bench.seen.failed
        );
        server.join().unwrap();
    }
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
    let mut bench = Bench::on(port, settings);
    let c = bench.named("c");
    let one = bench.fleet.advertise(c, "one").unwrap();
    let two = bench.fleet.advertise(c, "two").unwrap();
    for n in 1..=2 {
        for topic in [one, one, two, one, two] {
            bench.publish(c, topic, 0, 16);
        }
        bench.until("failed", |s| s.failed.len() == n);
        bench.fleet.reconnect(c).unwrap();
        if n == 1 {
            bench.until("connected", |s| s.connected.len() == 2);
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
    let target = Target {
        username: Some("user".into()),
        password: Some(Secret::new("secret")),
        ..common::target(port)
    };
    let mut bench = Bench::open(target, settings);
    let will = Will {
        topic: "gone".into(),
        payload: b"bye".to_vec(),
        retain: true,
    };
    let c = bench.client(&ClientSpec {
        will: Some(will),
        ..Bench::spec("device-1")
    });
    let mut subscription = Subscription {
        filter: "a/+".into(),
        group: None,
    };
    bench.fleet.subscribe(c, &subscription).unwrap();
    bench.until("refused", |s| s.refused.len() == 1);
    assert!(
        bench.seen.refused[0]
            .1
            .contains("granted QoS 1 where QoS 2"),
        "{:?}",
        bench.seen.refused
    );
    subscription = Subscription {
        filter: "b".into(),
        group: Some("g".into()),
    };
    bench.fleet.subscribe(c, &subscription).unwrap();
    bench.until("refused", |s| s.refused.len() == 2);
    assert!(
        bench.seen.refused[1].1.contains("not authorized"),
        "{:?}",
        bench.seen.refused
    );
    for (filter, group) in [
        ("a#", None),
        ("", None),
        ("a", Some("x/y")),
        ("a", Some("+")),
        ("#/a", None),
    ] {
        let bad = Subscription {
            filter: filter.into(),
            group: group.map(str::to_owned),
        };
        // A group with a slash would silently become another group and filter.
        let refused = bench.fleet.subscribe(c, &bad);
        assert!(refused.is_err(), "{bad:?}");
    }
    let topic = bench.fleet.advertise(c, "x").unwrap();
    bench.publish(c, topic, 0, 16);
    bench.poll_for(Duration::from_millis(20));
    server.join().unwrap();
}

#[test]
fn a_message_above_the_servers_limit_is_refused() {
    let (port, server) = scripted(|listener| {
        let mut peer = Peer::accept(&listener, Version::V5);
        peer.welcome(false, &[Property::MaximumPacketSize(40)]);
        peer.publish();
    });
    let mut bench = Bench::on(port, common::version("5"));
    let c = bench.named("c");
    let topic = bench.fleet.advertise(c, "t").unwrap();
    let (head, body) = (head(0), [0; 40]);
    let too_large = Payload {
        head: &head,
        body: &body,
    };
    assert_eq!(
        bench.fleet.publish(c, topic, too_large, 0),
        Publish::Refused(Refusal::TooLarge)
    );
    bench.publish(c, topic, 0, 16);
    bench.poll_for(Duration::from_millis(20));
    server.join().unwrap();
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
        let mut bench = Bench::on(port, settings);
        let c = bench.named("c");
        let topic = bench.fleet.advertise(c, "t").unwrap();
        let (head, body) = (head(0), vec![0; 1000]);
        let mut accepted = 0;
        let answer = loop {
            match bench.fleet.publish(
                c,
                topic,
                Payload {
                    head: &head,
                    body: &body,
                },
                0,
            ) {
                Publish::Accepted => accepted += 1,
                other => break other,
            }
            assert!(accepted < 100_000, "held back at some point");
        };
        bench.poll_for(Duration::from_millis(50));
        assert!(bench.seen.writable.is_empty());
        let waiting = bench.fleet.unsettled();
        assert!(
            waiting > 0 && waiting < 100,
            "a buffer's worth, not more: {waiting}"
        );
        stop.send(()).unwrap();
        if on_full == OnFull::Drop {
            assert_eq!(answer, Publish::Refused(Refusal::Dropped));
        } else {
            assert_eq!(answer, Publish::Blocked);
            bench.until("writable", |s| !s.writable.is_empty());
        }
        let end = clock::monotonic_now() + 10 * SECOND;
        while bench.fleet.unsettled() > 0 {
            bench
                .fleet
                .poll(clock::monotonic_now() + 10_000_000, &mut bench.seen)
                .unwrap();
            assert!(clock::monotonic_now() < end);
        }
        bench.fleet.close(clock::monotonic_now() + 5 * SECOND);
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
    let mut bench = Bench::on(port, common::version("3.1.1"));
    bench.seen.count_only = true;
    bench.named("c");
    bench.until("the server has given up", |_| server.is_finished());
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
        let mut bench = Bench::on(port, common::version(name));
        let c = bench.named("c");
        let topic = bench.fleet.advertise(c, "t").unwrap();
        bench.publish(c, topic, 0, 16);
        bench.fleet.disconnect(c);
        bench.until("closed", |s| !s.closed.is_empty());
        assert!(bench.seen.failed.is_empty());
        server.join().unwrap();
    }
}

/// However the bytes are cut, the messages are the same.
#[test]
fn packets_cut_anywhere_are_put_together() {
    let mut wire = Vec::new();
    for n in 0..200u64 {
        let mut payload = head(n).to_vec();
        payload.resize(16 + (n as usize * 37) % 3000, n as u8);
        let message = Sent {
            topic: "a/b",
            payload: &payload,
            ..Sent::default()
        };
        Packet::Publish(message)
            .encode(Version::V5, &mut wire)
            .unwrap();
    }
    let (port, server) = scripted(move |listener| {
        let mut peer = Peer::accept(&listener, Version::V5);
        peer.stream.set_nodelay(true).unwrap();
        peer.welcome(false, &[]);
        let mut step = 1;
        let mut rest = &wire[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(step.min(rest.len()));
            peer.raw(now);
            rest = later;
            step = step * 7 % 5003 + 1;
        }
        peer.until_closed();
    });
    let mut bench = Bench::on(port, common::version("5"));
    let c = bench.named("c");
    bench.until("all delivered", |s| s.delivered == 200);
    assert!(bench.sequences(c).into_iter().eq(0..200));
    for m in &bench.seen.messages {
        let n = sequence(&m.payload);
        assert_eq!(m.payload.len(), 16 + (n as usize * 37) % 3000);
    }
    bench.fleet.abort(c);
    server.join().unwrap();
}
