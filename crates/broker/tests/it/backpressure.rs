//! Subscribers that do not keep up: nothing is lost, nothing stands still, and
//! memory stays bounded.

use crate::common;

use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use common::{Client, properties, start};
use pubgauge_broker::Options;
use pubgauge_mqtt_codec::{Ack, Packet, Property, Publish, QoS, Version};

use QoS::{AtLeastOnce, AtMostOnce};
use Version::{V5, V311};

const LIMIT: usize = 256 * 1024;

fn small() -> Options {
    Options {
        max_backlog_bytes: LIMIT,
        ..Options::default()
    }
}

fn wire(topic: &str, number: u32, qos: QoS, packet_id: u16, len: usize) -> Vec<u8> {
    let mut payload = vec![b'.'; len];
    payload[..4].copy_from_slice(&number.to_be_bytes());
    let publish = Publish {
        topic,
        payload: &payload,
        qos,
        packet_id,
        ..Publish::default()
    };
    let mut out = Vec::new();
    Packet::Publish(publish).encode(V311, &mut out).unwrap();
    out
}

fn number(payload: &[u8]) -> u32 {
    u32::from_be_bytes(payload[..4].try_into().unwrap())
}

/// Writes until the broker takes no more for a while; gives how many bytes it
/// took.
fn write_until_stuck(client: &mut Client, bytes: &[u8]) -> usize {
    client.stream.set_nonblocking(true).unwrap();
    let mut written = 0;
    let mut last = Instant::now();
    while written < bytes.len() && last.elapsed() < Duration::from_millis(400) {
        match client.stream.write(&bytes[written..]) {
            Ok(n) => {
                written += n;
                last = Instant::now();
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(e) => panic!("{e}"),
        }
    }
    client.stream.set_nonblocking(false).unwrap();
    written
}

#[test]
fn a_slow_subscriber_stops_its_publisher_and_loses_nothing() {
    let broker = start(small());
    let mut slow = Client::new(&broker, V311, "slow");
    slow.subscribe("t", AtMostOnce);
    let mut from = Client::new(&broker, V311, "from");
    let count = 60_000;
    let bytes: Vec<u8> = (0..count)
        .flat_map(|i| wire("t", i, AtMostOnce, 0, 1000))
        .collect();
    let taken = write_until_stuck(&mut from, &bytes);
    assert!(
        taken < bytes.len(),
        "60 MB fit nowhere, so the publisher must have been stopped"
    );
    // Others are not held up, and the publisher of another topic neither.
    let mut other = Client::new(&broker, V5, "other");
    other.subscribe("u", AtMostOnce);
    other.publish("u", "x", AtMostOnce, 0, false);
    assert_eq!(other.message().text(), "x");
    let rest = bytes[taken..].to_vec();
    let writer = std::thread::spawn(move || {
        from.send_bytes(&rest);
        from.quiet();
    });
    for i in 0..count {
        assert_eq!(number(&slow.message().payload), i);
    }
    writer.join().unwrap();
    let counters = broker.stop();
    assert!(counters.publisher_pauses > 0);
    assert_eq!(
        (counters.publish_dropped, counters.publish_received),
        (0, u64::from(count) + 1)
    );
}

#[test]
fn a_publisher_that_closed_while_it_was_stopped_is_still_read_to_its_end() {
    let broker = start(small());
    let mut slow = Client::new(&broker, V311, "slow");
    slow.subscribe("t", AtMostOnce);
    let mut from = Client::new(&broker, V311, "from");
    let bytes: Vec<u8> = (0..60_000)
        .flat_map(|i| wire("t", i, AtMostOnce, 0, 1000))
        .collect();
    let taken = write_until_stuck(&mut from, &bytes);
    drop(from);
    let whole = (taken / wire("t", 0, AtMostOnce, 0, 1000).len()) as u32;
    for i in 0..whole {
        assert_eq!(number(&slow.message().payload), i);
    }
    slow.quiet();
}

#[test]
fn a_slow_subscriber_that_leaves_frees_its_publisher() {
    let broker = start(small());
    let mut slow = Client::new(&broker, V311, "slow");
    slow.subscribe("t", AtMostOnce);
    let mut from = Client::new(&broker, V311, "from");
    let bytes: Vec<u8> = (0..60_000)
        .flat_map(|i| wire("t", i, AtMostOnce, 0, 1000))
        .collect();
    let taken = write_until_stuck(&mut from, &bytes);
    assert!(taken < bytes.len());
    drop(slow);
    from.send_bytes(&bytes[taken..]);
    from.quiet();
}

#[test]
fn queued_qos_1_stops_the_publisher_until_the_acknowledgements_come() {
    let broker = start(small());
    let maximum = Box::leak(Box::new(properties(&[Property::ReceiveMaximum(10)])));
    let (mut slow, _) = Client::connect(&broker, V5, "slow", |c| {
        c.properties = maximum.as_properties()
    });
    slow.subscribe("t", AtLeastOnce);
    let mut from = Client::new(&broker, V311, "from");
    let count = 20_000u32;
    let sent = Arc::new(AtomicU32::new(0));
    let writes = sent.clone();
    let writer = std::thread::spawn(move || {
        for i in 0..count {
            from.send_bytes(&wire("t", i, AtLeastOnce, (i % 60_000) as u16 + 1, 1000));
            writes.store(i + 1, Ordering::Relaxed);
        }
        for _ in 0..count {
            assert_eq!(from.next().name, "PUBACK");
        }
        from.quiet();
    });
    // It is held back once it gets no further.
    let mut before = 0;
    loop {
        std::thread::sleep(Duration::from_millis(100));
        let now = sent.load(Ordering::Relaxed);
        if now > 0 && now == before {
            break;
        }
        before = now;
    }
    for i in 0..count {
        assert_eq!(number(&slow.message().payload), i);
    }
    writer.join().unwrap();
    let counters = broker.stop();
    assert!(counters.publisher_pauses > 0);
    assert_eq!(counters.publish_dropped, 0);
}

#[test]
fn a_client_that_floods_itself_and_reads_loses_nothing() {
    let broker = start(small());
    for version in [V311, V5] {
        let mut client = Client::new(&broker, version, "self");
        client.subscribe("t", AtMostOnce);
        let count = 40_000;
        let mut bytes = Vec::new();
        for i in 0..count {
            let payload = [&u32::to_be_bytes(i)[..], &[0; 996]].concat();
            let publish = Publish {
                topic: "t",
                payload: &payload,
                ..Publish::default()
            };
            Packet::Publish(publish)
                .encode(version, &mut bytes)
                .unwrap();
        }
        let mut writer = client.stream.try_clone().unwrap();
        let writing = std::thread::spawn(move || writer.write_all(&bytes).unwrap());
        for i in 0..count {
            assert_eq!(number(&client.message().payload), i);
        }
        writing.join().unwrap();
    }
    assert_eq!(broker.stop().publish_dropped, 0);
}

#[test]
fn a_client_that_floods_itself_at_qos_1_is_not_stuck() {
    let broker = start(small());
    let maximum = Box::leak(Box::new(properties(&[Property::ReceiveMaximum(5)])));
    let (mut client, _) = Client::connect(&broker, V5, "self", |c| {
        c.properties = maximum.as_properties()
    });
    client.subscribe("t", AtLeastOnce);
    // Each message is sent before any is acknowledged: the acknowledgements are
    // behind all of them in the stream. 800 KB fit into four times the limit.
    let count = 800u32;
    let mut bytes = Vec::new();
    for i in 0..count {
        let payload = [&u32::to_be_bytes(i)[..], &[0; 996]].concat();
        let publish = Publish {
            topic: "t",
            payload: &payload,
            qos: AtLeastOnce,
            packet_id: i as u16 + 1,
            ..Publish::default()
        };
        Packet::Publish(publish).encode(V5, &mut bytes).unwrap();
    }
    client.send_bytes(&bytes);
    let (mut acks, mut messages) = (0, 0);
    while acks < count || messages < count {
        let got = client.next();
        match got.name {
            "PUBACK" => acks += 1,
            "PUBLISH" => {
                assert_eq!(number(&got.payload), messages);
                messages += 1;
                client.send(&Packet::PubAck(Ack {
                    packet_id: got.packet_id,
                    ..Ack::default()
                }));
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(broker.stop().publish_dropped, 0);
}

#[test]
fn a_share_with_one_stuck_member_goes_on_with_the_other() {
    let broker = start(small());
    let mut stuck = Client::new(&broker, V311, "stuck");
    stuck.subscribe("$share/g/t", AtMostOnce);
    let mut good = Client::new(&broker, V311, "good");
    good.subscribe("end", AtMostOnce);
    good.subscribe("$share/g/t", AtMostOnce);
    let mut from = Client::new(&broker, V311, "from");
    let count = 30_000;
    let writer = std::thread::spawn(move || {
        for i in 0..count {
            from.send_bytes(&wire("t", i, AtMostOnce, 0, 1000));
        }
        from.publish("end", "", AtMostOnce, 0, false);
        from.quiet();
    });
    let mut got = 0;
    while good.message().topic != "end" {
        got += 1;
    }
    writer.join().unwrap();
    assert!(got > count / 2 && got < count, "{got}");
    for _ in got..count {
        stuck.message();
    }
    stuck.quiet();
}

/// Tests that need a machine that is not busy with other things.
mod real_time {
    use super::*;

    #[test]
    fn clients_that_flood_each_other_without_reading_get_on_and_what_is_lost_is_counted() {
        let broker = start(small());
        let mut clients = [
            Client::new(&broker, V311, "a"),
            Client::new(&broker, V311, "b"),
        ];
        clients[0].subscribe("to/a", AtMostOnce);
        clients[1].subscribe("to/b", AtMostOnce);
        let count = 15_000u32;
        let threads: Vec<_> = clients
            .into_iter()
            .zip(["to/b", "to/a"])
            .map(|(mut client, topic)| {
                std::thread::spawn(move || {
                    // First all is written, in blocking calls; only then is read.
                    let bytes: Vec<u8> = (0..count)
                        .flat_map(|i| wire(topic, i, AtMostOnce, 0, 1000))
                        .collect();
                    client.send_bytes(&bytes);
                    client
                        .stream
                        .set_read_timeout(Some(Duration::from_secs(3)))
                        .unwrap();
                    let mut got = 0u64;
                    let mut chunk = vec![0; 65_536];
                    while let Ok(n) = client.stream.read(&mut chunk) {
                        got += n as u64;
                    }
                    got / wire(topic, 0, AtMostOnce, 0, 1000).len() as u64
                })
            })
            .collect();
        let received: u64 = threads.into_iter().map(|t| t.join().unwrap()).sum();
        let counters = broker.stop();
        assert_eq!(counters.publish_received, 2 * u64::from(count));
        assert_eq!(received + counters.publish_dropped, 2 * u64::from(count));
    }
}
