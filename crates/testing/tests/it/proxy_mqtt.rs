//! The proxy's rules about MQTT packets: the tests hold both ends, or a real broker and the project's
//! own MQTT driver do.

use crate::common;

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use common::*;
use pubgauge_driver::{Reliability, Settings, Target};
use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_mqtt_codec::{Connect, Packet, PropertiesBuf, Property, Publish, QoS, Version};
use pubgauge_testing::Bench;
use pubgauge_testing::proxy::{Direction::*, Duplicate, Passed, Proxy, Rate, Rules, Select};

const MS: u64 = 1_000_000;
const TWICE: Duplicate = Duplicate {
    share: 1.0,
    late: Duration::ZERO,
};

#[test]
fn the_kth_publish_passes_at_the_start_and_k_intervals_and_others_in_their_order() {
    let server = Server::new();
    let builder = Proxy::to(server.address()).rate(ToServer, Rate::MessagesPerS(2000.0));
    let proxy = builder.traced().start().unwrap();
    let (mut client, mut served) = server.connect_mqtt(&proxy, "p", Version::V311);
    proxy.trace();
    let mut bytes = Vec::new();
    for number in 0..4000_u64 {
        let publish = Publish {
            topic: "a/b",
            payload: &number.to_le_bytes()[..if number % 3 == 0 { 8 } else { 3 }],
            ..Publish::default()
        };
        bytes.extend(client.encode(Packet::Publish(publish)));
        if number % 10 == 9 {
            bytes.extend(client.encode(Packet::PingReq));
        }
    }
    client.stream.write_all(&bytes).unwrap();
    let mut came = vec![0; bytes.len()];
    served.stream.read_exact(&mut came).unwrap();
    assert!(came == bytes, "the order is kept");
    let trace = way(&proxy.trace(), ToServer);
    assert_eq!(trace.len(), 4400);
    let (publishes, others): (Vec<Passed>, Vec<Passed>) =
        trace.iter().partition(|p| p.amount.publishes == 1);
    on_schedule(&publishes, 2000.0, false, 1, |_| 1);
    let tenths = publishes.iter().skip(9).step_by(10);
    assert!(others.iter().map(|p| p.due_ns).eq(tenths.map(|p| p.due_ns)));
    let traffic = proxy.counts().total(ToServer);
    assert_eq!((traffic.passed.publishes, traffic.duplicated), (4000, 0));
    adds_up(&traffic);
}

#[test]
fn all_publishers_share_the_rate_of_their_link() {
    let server = Server::new();
    let builder = Proxy::to(server.address()).rate(ToServer, Rate::MessagesPerS(1e-3));
    let proxy = builder.traced().start().unwrap();
    let mut ends: Vec<_> = (0..4)
        .map(|n| server.connect_mqtt(&proxy, &format!("p{n}"), Version::V5))
        .collect();
    for number in 0..200 {
        for (client, _) in &mut ends {
            client.publish(number, QoS::AtMostOnce, 0);
        }
    }
    until("all in the queue", || {
        let traffic = proxy.counts().total(ToServer);
        traffic.passed.publishes == 1 && traffic.received.publishes == 800
    });
    proxy.trace();
    proxy.change(&Select::All, ToServer, |rules| {
        rules.rate = Some(Rate::MessagesPerS(1000.0));
    });
    for (_, served) in &mut ends {
        for number in 0..200 {
            assert_eq!(served.publication().number, number);
        }
    }
    let mut trace = way(&proxy.trace(), ToServer);
    // What a proxy that got no processor passes at once, it passes connection by connection.
    trace.sort_by_key(|passed| passed.due_ns);
    on_schedule(&trace, 1000.0, false, 1, |p| p.amount.publishes);
}

/// Delivers numbers 0 to 99 in pairs of QoS 0 and QoS 1, acknowledged at once and in order.
fn deliver_twice(version: Version) {
    let server = Server::new();
    let builder = Proxy::to(server.address()).duplicate(ToClient, TWICE);
    let proxy = builder.start().unwrap();
    let (mut client, mut served) = server.connect_mqtt(&proxy, "s", version);
    for pair in 0..50_u64 {
        let packet_id = 1 + pair as u16 % 2;
        served.publish(2 * pair, QoS::AtMostOnce, 0);
        served.publish(2 * pair + 1, QoS::AtLeastOnce, packet_id);
        for _ in 0..2 {
            let came = client.publication();
            // A PUBLISH of QoS 0 has no DUP flag.
            assert_eq!((came.number, came.dup), (2 * pair, false));
        }
        for dup in [false, true] {
            let came = client.publication();
            assert_eq!((came.number, came.dup), (2 * pair + 1, dup));
            assert_eq!(came.packet_id, packet_id);
            client.acknowledge(packet_id);
        }
        // One acknowledgement reaches the server, and nothing else before the next pair's.
        served.acknowledged(packet_id);
    }
    client.send(Packet::PingReq);
    served.receive(|packet| assert_eq!(packet, Packet::PingReq));
    let counts = proxy.counts();
    let delivered = counts.total(ToClient);
    assert_eq!(delivered.received.publishes, 100);
    assert_eq!(delivered.passed.publishes, 200);
    assert_eq!(
        (delivered.passed.duplicates, delivered.duplicated),
        (100, 100)
    );
    assert_eq!(counts.total(ToServer).acks_withheld, 50);
    adds_up(&delivered);
}

#[test]
fn every_delivery_comes_twice_and_is_acknowledged_once() {
    deliver_twice(Version::V311);
    deliver_twice(Version::V5);
}

#[test]
fn late_duplicates_are_told_from_new_messages_with_the_same_identifier() {
    let late = Duplicate {
        late: Duration::from_millis(200),
        ..TWICE
    };
    let server = Server::new();
    let builder = Proxy::to(server.address()).duplicate(ToClient, late);
    let proxy = builder.traced().start().unwrap();
    let (mut client, mut served) = server.connect_mqtt(&proxy, "s", Version::V5);
    let mut seen: HashMap<u64, u32> = HashMap::new();
    let mut sent = 0;
    // The server takes the identifier anew as soon as it is acknowledged, for longer than 200 ms.
    while seen.values().all(|times| *times < 2) || sent < 100 {
        served.publish(sent, QoS::AtLeastOnce, 7);
        loop {
            let came = client.publication();
            *seen.entry(came.number).or_default() += 1;
            assert_eq!(came.dup, seen[&came.number] == 2);
            client.acknowledge(7);
            if came.number == sent {
                break;
            }
        }
        served.acknowledged(7);
        sent += 1;
        std::thread::sleep(Duration::from_millis(3));
    }
    while seen.values().any(|times| *times < 2) {
        *seen.entry(client.publication().number).or_default() += 1;
        client.acknowledge(7);
    }
    assert_eq!(seen.len() as u64, sent);
    assert!(seen.values().all(|times| *times == 2));
    client.send(Packet::PingReq);
    served.receive(|packet| assert_eq!(packet, Packet::PingReq));
    let counts = proxy.counts();
    assert_eq!(counts.total(ToServer).acks_withheld, sent);
    assert_eq!(counts.total(ToClient).passed.duplicates, sent);
    adds_up(&counts.total(ToClient));
    duplicates_are_late_by(&way(&proxy.trace(), ToClient), 200 * MS);
}

/// Nothing passes early, and the n-th duplicate is due so long after the n-th original came.
#[track_caller]
fn duplicates_are_late_by(trace: &[Passed], late_ns: u64) {
    never_early(trace);
    let publishes = trace.iter().filter(|p| p.amount.publishes == 1).copied();
    let (duplicates, originals): (Vec<Passed>, Vec<Passed>) =
        publishes.partition(|p| p.amount.duplicates == 1);
    assert_eq!(duplicates.len(), originals.len());
    for (duplicate, original) in duplicates.iter().zip(originals) {
        assert_eq!(duplicate.due_ns, original.entered_ns + late_ns);
    }
}

/// Which of 2000 numbers come how often, under rules and a seed; the proxy's counts agree.
fn drawn(rules: Rules, seed: u64, qos: QoS) -> Vec<u32> {
    let server = Server::new();
    let builder = Proxy::to(server.address()).rules(Select::Order(0), ToClient, rules);
    let proxy = builder.seed(seed).start().unwrap();
    let (mut client, mut served) = server.connect_mqtt(&proxy, "s", Version::V5);
    let mut bytes = Vec::new();
    for number in 0..2000_u64 {
        let publish = Publish {
            topic: "a",
            qos,
            packet_id: if qos == QoS::AtMostOnce { 0 } else { 1 },
            payload: &number.to_le_bytes(),
            ..Publish::default()
        };
        bytes.extend(served.encode(Packet::Publish(publish)));
    }
    bytes.extend(served.encode(Packet::PingResp));
    served.stream.write_all(&bytes).unwrap();
    let mut times = vec![0; 2000];
    while let Some(number) = client.receive(|packet| match packet {
        Packet::Publish(publish) => Some(u64::from_le_bytes(publish.payload.try_into().unwrap())),
        _ => None,
    }) {
        times[number as usize] += 1;
    }
    let traffic = proxy.counts().total(ToClient);
    let count = |n| times.iter().filter(|times| **times == n).count() as u64;
    assert_eq!((traffic.dropped, traffic.duplicated), (count(0), count(2)));
    assert_eq!(traffic.received.publishes, 2000);
    adds_up(&traffic);
    times
}

#[test]
fn shares_are_drawn_from_the_seed_and_counted() {
    let lossy = Rules {
        lose: 0.1,
        ..Rules::default()
    };
    let doubling = Rules {
        duplicate: Some(Duplicate {
            share: 0.25,
            ..TWICE
        }),
        ..Rules::default()
    };
    for (rules, n, expected) in [(lossy, 0, 200), (doubling, 2, 500)] {
        let times = drawn(rules, 5, QoS::AtMostOnce);
        assert_eq!(times, drawn(rules, 5, QoS::AtMostOnce));
        assert_ne!(times, drawn(rules, 6, QoS::AtMostOnce));
        // Five standard deviations at most; the seed decides, not chance.
        let drawn = times.iter().filter(|times| **times == n).count() as i64;
        assert!((drawn - expected).abs() < 100, "{drawn} of {expected}");
    }
    let ones = vec![1; 2000];
    assert_eq!(
        drawn(lossy, 5, QoS::AtLeastOnce),
        ones,
        "only QoS 0 is lost"
    );
    let all = Rules {
        lose: 0.0,
        duplicate: Some(TWICE),
        ..lossy
    };
    assert_eq!(drawn(all, 5, QoS::ExactlyOnce), ones, "QoS 2 is left alone");
    assert_eq!(drawn(all, 5, QoS::AtMostOnce), vec![2; 2000]);
}

#[test]
fn one_slow_client_is_known_by_its_identifier() {
    let server = Server::new();
    let slow = Rules {
        rate: Some(Rate::MessagesPerS(100.0)),
        ..Rules::default()
    };
    let slow_ones = Select::ClientId("slow-*".to_owned());
    let builder = Proxy::to(server.address()).rules(slow_ones.clone(), ToClient, slow);
    let proxy = builder.traced().start().unwrap();
    let mut ends = ["fast", "slow-7", "slow"]
        .map(|client_id| server.connect_mqtt(&proxy, client_id, Version::V5));
    proxy.trace();
    for (_, served) in &mut ends {
        for number in 0..50 {
            served.publish(number, QoS::AtMostOnce, 0);
        }
    }
    for (client, _) in &mut ends {
        for number in 0..50 {
            assert_eq!(client.publication().number, number);
        }
    }
    let trace = proxy.trace();
    let (slow, others): (Vec<Passed>, Vec<Passed>) =
        trace.iter().copied().partition(|p| p.connection == 1);
    assert!(others.iter().all(|p| p.due_ns == p.entered_ns));
    assert_eq!(slow[49].due_ns - slow[0].due_ns, 490 * MS);
    never_early(&trace);
    let counts = proxy.counts();
    assert_eq!(counts.client("slow-7"), Some(&counts.connections[1]));
    assert_eq!(proxy.cut(slow_ones), 1);
}

#[test]
fn packets_that_come_in_pieces_are_put_together() {
    let server = Server::new();
    let builder = Proxy::to(server.address()).duplicate(ToClient, TWICE);
    let proxy = builder.start().unwrap();
    let (client, served) = server.connect(&proxy);
    let (mut client, mut served) = [client, served]
        .map(|stream| Mqtt::new(stream, Version::V5))
        .into();
    let connect = client.encode(Packet::Connect(Connect {
        client_id: "in pieces",
        clean_start: true,
        ..Connect::default()
    }));
    for byte in connect.chunks(1) {
        client.stream.write_all(byte).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    served.receive(|packet| assert!(matches!(packet, Packet::Connect(_))));
    assert!(proxy.counts().client("in pieces").is_some());
    let payload = vec![0x5a; 300_000];
    let publish = Packet::Publish(Publish {
        topic: "large",
        payload: &payload,
        ..Publish::default()
    });
    let bytes = served.encode(publish);
    for piece in [
        &bytes[..1],
        &bytes[1..3],
        &bytes[3..200_000],
        &bytes[200_000..],
    ] {
        served.stream.write_all(piece).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    for _ in 0..2 {
        client.receive(|packet| assert_eq!(packet, publish));
    }
}

/// Why the proxy ended a connection on which this was sent.
fn problem(rules: Rules, speak: impl FnOnce(&Server, &Proxy)) -> String {
    let server = Server::new();
    let builder = Proxy::to(server.address()).rules(Select::Order(0), ToClient, rules);
    let proxy = builder
        .rules(Select::Order(0), ToServer, rules)
        .start()
        .unwrap();
    speak(&server, &proxy);
    until("a problem", || {
        proxy.counts().connections[0].problem.is_some()
    });
    proxy.counts().connections.remove(0).problem.unwrap()
}

#[test]
fn what_cannot_be_planted_ends_the_connection_and_is_told() {
    let lossy = Rules {
        lose: 0.5,
        ..Rules::default()
    };
    let amqp = problem(lossy, |server, proxy| {
        let (mut client, _) = server.connect(proxy);
        client.write_all(b"AMQP\0\0\x09\x01").unwrap();
    });
    assert!(amqp.contains("not plain MQTT"), "{amqp}");
    let alias = problem(lossy, |server, proxy| {
        let (_client, mut served) = server.connect_mqtt(proxy, "s", Version::V5);
        let mut properties = PropertiesBuf::default();
        properties.push(Property::TopicAlias(1)).unwrap();
        served.send(Packet::Publish(Publish {
            topic: "a",
            properties: properties.as_properties(),
            ..Publish::default()
        }));
    });
    assert!(alias.contains("topic alias"), "{alias}");
    let malformed = problem(Rules::default(), |server, proxy| {
        let (_client, mut served) = server.connect_mqtt(proxy, "s", Version::V5);
        served.stream.write_all(&[0x36, 0]).unwrap();
    });
    assert!(
        malformed.starts_with("ToClient: an MQTT packet is not one"),
        "{malformed}"
    );
}

#[test]
fn a_real_broker_and_client_agree_with_the_proxys_counts() {
    const MESSAGES: usize = 2000;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let broker = std::thread::spawn(move || {
        pubgauge_broker::serve(listener, pubgauge_broker::Options::default(), &stopped).unwrap()
    });
    let builder = Proxy::to(address)
        .rate(ToServer, Rate::MessagesPerS(4000.0))
        .duplicate(ToClient, TWICE);
    let proxy = builder.traced().start().unwrap();
    let target = Target {
        endpoints: vec![format!("mqtt://{}", proxy.address())],
        ..Target::default()
    };
    let settings = Settings {
        reliability: Some(Reliability::AtLeastOnce),
        ..Settings::default()
    };
    let mut bench = Bench::open(&MqttDriver, target, settings);
    let subscriber = bench.named("subscriber");
    bench.subscribe(subscriber, "proxy/#");
    let publisher = bench.named_publisher("publisher");
    let topic = bench.fleet.advertise(publisher, "proxy/a").unwrap();
    for sequence in 0..MESSAGES as u64 {
        bench.publish(publisher, topic, sequence, 64);
    }
    let withheld = || proxy.counts().total(ToServer).acks_withheld;
    bench.until("all of them twice, and acknowledged", |seen| {
        let all = seen.messages.len() == 2 * MESSAGES && seen.acknowledged.len() == MESSAGES;
        all && withheld() == MESSAGES as u64
    });
    let twice: Vec<u64> = (0..MESSAGES as u64).flat_map(|n| [n, n]).collect();
    assert_eq!(bench.sequences(subscriber), twice);
    assert_eq!(bench.seen.failed, []);
    let counts = proxy.counts();
    let to_server = counts.client("publisher").unwrap().to_server.clone();
    let subscribed = counts.client("subscriber").unwrap();
    assert_eq!(to_server.passed.publishes, MESSAGES as u64);
    assert_eq!(subscribed.to_client.received.publishes, MESSAGES as u64);
    assert_eq!(subscribed.to_client.passed.publishes, 2 * MESSAGES as u64);
    let publish = |p: &&Passed| p.amount.publishes == 1;
    let trace = way(&proxy.trace(), ToServer);
    let publishes: Vec<_> = trace.iter().filter(publish).copied().collect();
    assert_eq!(publishes.len(), MESSAGES);
    never_early(&publishes);
    for (k, passed) in publishes.iter().enumerate() {
        let from_first = passed.due_ns - publishes[0].due_ns;
        assert!(from_first >= k as u64 * 250_000, "the {k}-th: {from_first}");
    }
    bench.fleet.close(u64::MAX);
    stop.store(true, Relaxed);
    broker.join().unwrap();
}
