//! The message path allocates nothing for a message, counted.

#[path = "it/common/mod.rs"]
mod common;

use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{Client, start};
use pubgauge_broker::Options;
use pubgauge_mqtt_codec::{
    Packet, PropertiesBuf, Property, Publish, QoS, SubscribeOptions, Version, encode_ack,
};
use pubgauge_testing::allocator::ReportingAllocator;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

fn allocated(taken: usize, _: usize) {
    ALLOCATIONS.fetch_add(u64::from(taken > 0), Ordering::Relaxed);
}

#[global_allocator]
static ALLOCATOR: ReportingAllocator = ReportingAllocator(allocated);

/// Allocations while `rounds` windows of `window` messages go through.
fn count(
    version: Version,
    filter: &str,
    topics: usize,
    properties: &[Property<'_>],
    qos: QoS,
) -> (u64, u64) {
    let (rounds, window) = (100, 200);
    let broker = start(Options::default());
    let mut to = Client::new(&broker, version, "to");
    to.subscribe_with(
        filter,
        SubscribeOptions {
            qos,
            ..Default::default()
        },
        None,
    );
    let mut from = Client::new(&broker, version, "from");
    let (mut batch, mut acks, mut received) = (Vec::new(), Vec::new(), 0);
    for i in 0..window {
        let topic = format!("t/{}", i % topics);
        let mut sent = PropertiesBuf::default();
        for property in properties {
            sent.push(*property).unwrap();
        }
        let packet_id = if qos == QoS::AtMostOnce {
            0
        } else {
            1 + i as u16
        };
        let payload = &[b'x'; 64];
        let properties = sent.as_properties();
        let publish = Publish {
            topic: &topic,
            payload,
            properties,
            qos,
            packet_id,
            ..Publish::default()
        };
        Packet::Publish(publish)
            .encode(version, &mut batch)
            .unwrap();
        // The alias stays with the broker.
        let alias = properties.find(pubgauge_mqtt_codec::PropertyId::TopicAlias);
        let before = batch.len();
        Packet::Publish(publish)
            .encode(version, &mut batch)
            .unwrap();
        received += batch.len() - before - alias.map_or(0, |_| 3);
        batch.truncate(before);
        if qos == QoS::AtLeastOnce {
            encode_ack(
                pubgauge_mqtt_codec::PacketType::PubAck,
                packet_id,
                &mut acks,
            );
        }
    }
    let mut buf = vec![0; received];
    let mut ack_buf = vec![0; acks.len()];
    let mut next = 0u64;
    let mut round = || {
        from.send_bytes(&batch);
        to.stream.read_exact(&mut buf).unwrap();
        if !acks.is_empty() {
            from.stream.read_exact(&mut ack_buf).unwrap();
            // The broker numbers its messages one after the other.
            for ack in acks.chunks_exact_mut(4) {
                let id = (next % 65_535) as u16 + 1;
                ack[2..].copy_from_slice(&id.to_be_bytes());
                next += 1;
            }
            to.send_bytes(&acks);
        }
    };
    for _ in 0..20 {
        round();
    }
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    for _ in 0..rounds {
        round();
    }
    (
        ALLOCATIONS.load(Ordering::Relaxed) - before,
        (rounds * window) as u64,
    )
}

#[test]
fn no_allocation_for_a_message() {
    let user = Property::UserProperty(("key", "value"));
    let (v3, v5) = (Version::V311, Version::V5);
    type Case<'a> = (&'a str, Version, &'a str, usize, &'a [Property<'a>], QoS);
    let cases: [Case<'_>; 8] = [
        ("plain 3.1.1", v3, "t/+", 1, &[], QoS::AtMostOnce),
        ("plain 5", v5, "t/+", 1, &[], QoS::AtMostOnce),
        ("ten topics", v5, "t/+", 10, &[], QoS::AtMostOnce),
        ("user property", v5, "t/#", 1, &[user], QoS::AtMostOnce),
        (
            "topic alias",
            v5,
            "t/#",
            1,
            &[Property::TopicAlias(1)],
            QoS::AtMostOnce,
        ),
        ("shared", v3, "$share/g/t/#", 1, &[], QoS::AtMostOnce),
        ("QoS 1 in 3.1.1", v3, "t/#", 1, &[], QoS::AtLeastOnce),
        ("QoS 1 in 5", v5, "t/#", 1, &[user], QoS::AtLeastOnce),
    ];
    for (name, version, filter, topics, properties, qos) in cases {
        let (allocations, messages) = count(version, filter, topics, properties, qos);
        // Each read may leave part of a packet, which is kept aside.
        assert!(
            allocations < messages / 50,
            "{name}: {allocations} for {messages} messages"
        );
    }
}
