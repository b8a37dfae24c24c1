//! Bytes that are not MQTT, packets out of place, and too few file descriptors:
//! the broker goes on serving the others.

use crate::common;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use common::{Client, Running, start};
use proptest::prelude::*;
use pubgauge_broker::Options;
use pubgauge_mqtt_codec::{
    Ack, Connect, Disconnect, FiltersBuf, Packet, PropertiesBuf, Property, Publish, QoS,
    ReasonCode, RetainHandling, Subscribe, SubscribeOptions, TopicFiltersBuf, Unsubscribe, Version,
    Will,
};

use Version::{V5, V311};

/// Sends bytes, cut at `cut`, reads until the broker closes or has no more to say.
fn throw(broker: &Running, bytes: &[u8], cut: usize) {
    let mut stream = TcpStream::connect(broker.address).unwrap();
    let (first, second) = bytes.split_at(cut.min(bytes.len()));
    // The broker may have closed after the first part.
    let _ = stream.write_all(first);
    if !second.is_empty() {
        std::thread::sleep(Duration::from_micros(300));
        let _ = stream.write_all(second);
    }
    let _ = stream.shutdown(Shutdown::Write);
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut answer = Vec::new();
    if let Err(e) = stream.read_to_end(&mut answer) {
        assert_eq!(
            e.kind(),
            std::io::ErrorKind::ConnectionReset,
            "the broker must close: {e}"
        );
    }
}

/// The broker serves both versions.
fn serves(broker: &Running) {
    for version in [V311, V5] {
        let mut client = Client::new(broker, version, "witness");
        client.subscribe("witness/+", QoS::AtLeastOnce);
        client.publish("witness/x", "alive", QoS::AtMostOnce, 0, false);
        assert_eq!(client.message().text(), "alive");
    }
}

fn connect_bytes(version: Version, id: &str, clean_start: bool, expiry_s: Option<u32>) -> Vec<u8> {
    let mut properties = PropertiesBuf::default();
    if let (V5, Some(expiry_s)) = (version, expiry_s) {
        properties
            .push(Property::SessionExpiryInterval(expiry_s))
            .unwrap();
    }
    let will = Will {
        topic: "t/will",
        payload: b"w",
        retain: true,
        ..Will::default()
    };
    let connect = Connect {
        version,
        clean_start,
        client_id: id,
        will: expiry_s.map(|_| will),
        properties: properties.as_properties(),
        ..Connect::default()
    };
    let mut out = Vec::new();
    Packet::Connect(connect).encode(version, &mut out).unwrap();
    out
}

#[derive(Debug, Clone)]
enum Act {
    Publish {
        topic: String,
        len: usize,
        qos: u8,
        id: u16,
        retain: bool,
        alias: u16,
        expiry: u32,
    },
    Subscribe {
        filter: String,
        options: (u8, bool, bool, u8),
        id: u32,
    },
    Unsubscribe(String),
    Ack(u8, u16),
    Ping,
    Connect,
    Disconnect(u8),
    Garbage(Vec<u8>),
}

fn topic() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "t",
        "t/a",
        "t/b",
        "t/a/c",
        "t/",
        "$SYS/broker/version",
        "u",
    ])
    .prop_map(str::to_owned)
}

fn filter() -> impl Strategy<Value = String> {
    let list = [
        "t",
        "t/+",
        "#",
        "t/#",
        "+",
        "$SYS/#",
        "$share/g/t/#",
        "$share/h/#",
        "t/+/c",
        "u",
    ];
    prop::sample::select(list.to_vec()).prop_map(str::to_owned)
}

fn act() -> impl Strategy<Value = Act> {
    let publish = (
        topic(),
        0usize..2000,
        0u8..3,
        1u16..6,
        any::<bool>(),
        0u16..4,
        0u32..3,
    );
    let options = (0u8..3, any::<bool>(), any::<bool>(), 0u8..3);
    prop_oneof![
        60 => publish.prop_map(|(topic, len, qos, id, retain, alias, expiry)| Act::Publish {
            topic, len, qos, id, retain, alias, expiry
        }),
        20 => (filter(), options, 0u32..400)
            .prop_map(|(filter, options, id)| Act::Subscribe { filter, options, id }),
        8 => filter().prop_map(Act::Unsubscribe),
        20 => (4u8..8, 1u16..8).prop_map(|(kind, id)| Act::Ack(kind, id)),
        4 => Just(Act::Ping),
        1 => Just(Act::Connect),
        1 => prop::sample::select(vec![0u8, 4, 0x80]).prop_map(Act::Disconnect),
        1 => prop::collection::vec(any::<u8>(), 1..40).prop_map(Act::Garbage),
    ]
}

impl Act {
    fn encode(&self, version: Version, out: &mut Vec<u8>) {
        let v5 = version == V5;
        let ack = |packet_id| Ack {
            packet_id,
            ..Ack::default()
        };
        let mut properties = PropertiesBuf::default();
        let result = match self {
            Act::Publish {
                topic,
                len,
                qos,
                id,
                retain,
                alias,
                expiry,
            } => {
                let mut topic = topic.as_str();
                if v5 && *alias > 0 {
                    properties.push(Property::TopicAlias(*alias)).unwrap();
                    if *len % 2 == 0 {
                        topic = "";
                    }
                }
                if v5 && *expiry > 0 {
                    properties
                        .push(Property::MessageExpiryInterval(*expiry))
                        .unwrap();
                    properties.push(Property::UserProperty(("k", "v"))).unwrap();
                }
                let publish = Publish {
                    dup: *qos > 0 && *len % 3 == 0,
                    qos: QoS::from_bits(*qos).unwrap(),
                    retain: *retain,
                    topic,
                    packet_id: if *qos > 0 { *id } else { 0 },
                    properties: properties.as_properties(),
                    payload: &vec![b'p'; *len],
                };
                Packet::Publish(publish).encode(version, out)
            }
            Act::Subscribe {
                filter,
                options,
                id,
            } => {
                if v5 && *id > 0 {
                    properties
                        .push(Property::SubscriptionIdentifier(*id))
                        .unwrap();
                }
                let (qos, no_local, retain_as_published, handling) = *options;
                let options = SubscribeOptions {
                    qos: QoS::from_bits(qos).unwrap(),
                    no_local: v5 && no_local && !filter.starts_with("$share"),
                    retain_as_published: v5 && retain_as_published,
                    retain_handling: match handling {
                        1 if v5 => RetainHandling::SendIfNew,
                        2 if v5 => RetainHandling::DoNotSend,
                        _ => RetainHandling::Send,
                    },
                };
                let mut filters = FiltersBuf::default();
                filters.push(filter, options).unwrap();
                let filters = filters.as_filters();
                let properties = properties.as_properties();
                Packet::Subscribe(Subscribe {
                    packet_id: 9,
                    filters,
                    properties,
                })
                .encode(version, out)
            }
            Act::Unsubscribe(filter) => {
                let mut filters = TopicFiltersBuf::default();
                filters.push(filter).unwrap();
                let filters = filters.as_filters();
                Packet::Unsubscribe(Unsubscribe {
                    packet_id: 9,
                    filters,
                    ..Default::default()
                })
                .encode(version, out)
            }
            Act::Ack(4, id) => Packet::PubAck(ack(*id)).encode(version, out),
            Act::Ack(5, id) => Packet::PubRec(ack(*id)).encode(version, out),
            Act::Ack(6, id) => Packet::PubRel(ack(*id)).encode(version, out),
            Act::Ack(_, id) => Packet::PubComp(ack(*id)).encode(version, out),
            Act::Ping => Packet::PingReq.encode(version, out),
            Act::Connect => {
                out.extend(connect_bytes(version, "again", true, None));
                Ok(())
            }
            Act::Disconnect(reason) => {
                let reason = ReasonCode(if v5 { *reason } else { 0 });
                Packet::Disconnect(Disconnect {
                    reason,
                    ..Default::default()
                })
                .encode(version, out)
            }
            Act::Garbage(bytes) => {
                out.extend(bytes);
                Ok(())
            }
        };
        result.unwrap();
    }
}

fn tight() -> Options {
    Options {
        max_packet_bytes: 4096,
        max_backlog_bytes: 32_768,
        max_offline_messages: 20,
        max_retained_bytes: 4096,
        topic_alias_maximum: 2,
        receive_maximum: 3,
        max_sessions: 50,
        ..Options::default()
    }
}

#[test]
fn random_bytes_never_stop_the_broker() {
    let broker = start(tight());
    let config = ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..Default::default()
    };
    let bytes = prop::collection::vec(any::<u8>(), 0..300);
    let strategy = (bytes, any::<bool>(), any::<bool>(), 0usize..320);
    proptest!(config, |((bytes, connected, v5, cut) in strategy)| {
        let mut all = Vec::new();
        if connected {
            all = connect_bytes(if v5 { V5 } else { V311 }, "fuzz", true, None);
        }
        all.extend(&bytes);
        throw(&broker, &all, cut);
    });
    serves(&broker);
}

#[test]
fn random_packets_never_stop_the_broker() {
    let broker = start(tight());
    let config = ProptestConfig {
        cases: 150,
        failure_persistence: None,
        ..Default::default()
    };
    let who = (
        prop::sample::select(vec!["a", "b", "", "again"]),
        any::<bool>(),
        any::<bool>(),
    );
    let expiry = prop::option::of(0u32..3);
    let acts = prop::collection::vec(act(), 0..40);
    let cut = 0usize..4000;
    proptest!(config, |(((id, v5, clean), expiry, acts, cut) in (who, expiry, acts, cut))| {
        let version = if v5 { V5 } else { V311 };
        let clean = clean || id.is_empty();
        let mut bytes = connect_bytes(version, id, clean, expiry);
        for act in &acts {
            act.encode(version, &mut bytes);
        }
        // A subscriber of everything, which reads nothing.
        let mut all = Client::new(&broker, V5, "all");
        let everything = SubscribeOptions { qos: QoS::ExactlyOnce, ..Default::default() };
        let mut filters = FiltersBuf::default();
        filters.push("#", everything).unwrap();
        let filters = filters.as_filters();
        all.send(&Packet::Subscribe(Subscribe { packet_id: 1, filters, ..Default::default() }));
        throw(&broker, &bytes, cut);
    });
    serves(&broker);
    let counters = broker.stop();
    assert!(
        counters.protocol_errors > 10 && counters.publish_received > 100,
        "{counters:?}"
    );
}

#[test]
fn every_cut_of_a_stream_gives_the_same() {
    let broker = start(Options::default());
    for version in [V311, V5] {
        let mut bytes = connect_bytes(version, "cut", true, None);
        let acts = [
            Act::Subscribe {
                filter: "t/#".into(),
                options: (2, false, false, 0),
                id: 5,
            },
            Act::Publish {
                topic: "t/a".into(),
                len: 90,
                qos: 0,
                id: 1,
                retain: false,
                alias: 0,
                expiry: 0,
            },
            Act::Publish {
                topic: "t/a".into(),
                len: 3,
                qos: 1,
                id: 1,
                retain: false,
                alias: 0,
                expiry: 2,
            },
            Act::Ping,
        ];
        for act in &acts {
            act.encode(version, &mut bytes);
        }
        for cut in 1..bytes.len() {
            let mut client = Client::raw(&broker, version);
            client.send_bytes(&bytes[..cut]);
            std::thread::sleep(Duration::from_micros(200));
            client.send_bytes(&bytes[cut..]);
            let got: Vec<_> = (0..6).map(|_| client.next().name).collect();
            let mut sorted = got.clone();
            sorted[2..].sort_unstable();
            let expected = [
                "CONNACK", "SUBACK", "PINGRESP", "PUBACK", "PUBLISH", "PUBLISH",
            ];
            assert_eq!(sorted, expected, "cut at {cut}");
            assert_eq!(got[2], "PUBLISH");
        }
    }
}

#[test]
fn deep_topics_are_refused_and_do_not_overflow_the_stack() {
    let broker = start(Options::default());
    let deep = vec!["a"; 30_000].join("/");
    let mut client = Client::new(&broker, V5, "deep");
    let suback = client.subscribe(&deep, QoS::AtMostOnce);
    assert_eq!(suback.codes, [ReasonCode::TOPIC_FILTER_INVALID.0]);
    client.publish(&deep, "", QoS::AtMostOnce, 0, false);
    assert_eq!(
        client.ends().unwrap().reason,
        ReasonCode::TOPIC_NAME_INVALID.0
    );
    let mut old = Client::new(&broker, V311, "deep");
    assert_eq!(old.subscribe(&deep, QoS::AtMostOnce).codes, [0x80]);
    old.subscribe(&"+/".repeat(150), QoS::AtMostOnce);
    old.publish(&"a/".repeat(150), "x", QoS::AtMostOnce, 0, false);
    assert_eq!(old.message().text(), "x");
}

#[test]
fn a_long_packet_announced_and_never_sent_holds_no_memory() {
    let broker = start(Options {
        max_packet_bytes: 200_000_000,
        ..Options::default()
    });
    let rss = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|l| l.starts_with("VmRSS")).unwrap();
        line.split_whitespace()
            .nth(1)
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    let before = rss();
    let clients: Vec<_> = (0..100)
        .map(|i| {
            let mut client = Client::new(&broker, V311, &format!("c{i}"));
            client.send_bytes(&[0x30, 0xff, 0xff, 0xff, 0x50, 0, 1, b't', 1, 2, 3]);
            client
        })
        .collect();
    serves(&broker);
    let grown_kib = rss().saturating_sub(before);
    assert!(
        grown_kib < 50_000,
        "{grown_kib} KiB for {} clients",
        clients.len()
    );
}
