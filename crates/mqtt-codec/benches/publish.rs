//! Cost of the message path: a 64-byte PUBLISH, written and read.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pubgauge_mqtt_codec::*;

fn publish(c: &mut Criterion) {
    let (head, body) = ([7u8; 16], [9u8; 48]);
    let topic = "site/building-3/meter-17/power";
    let mut expiry = PropertiesBuf::default();
    expiry
        .push(Property::MessageExpiryInterval(60))
        .expect("a number always fits");
    let mut group = c.benchmark_group("publish-64B");
    group.throughput(Throughput::Elements(1));
    for (name, version, qos, properties) in [
        (
            "3.1.1-qos0",
            Version::V311,
            QoS::AtMostOnce,
            Properties::default(),
        ),
        (
            "5-qos0",
            Version::V5,
            QoS::AtMostOnce,
            Properties::default(),
        ),
        (
            "5-qos1-expiry",
            Version::V5,
            QoS::AtLeastOnce,
            expiry.as_properties(),
        ),
    ] {
        let template = PublishTemplate::new(version, topic, qos, false, properties)
            .expect("the topic is valid");
        let mut out = Vec::with_capacity(1 << 17);
        group.bench_function(format!("encode-{name}"), |b| {
            b.iter(|| {
                if out.len() > 65_536 {
                    out.clear();
                }
                black_box(template.append(&mut out, 3, black_box(&head), black_box(&body)))
            });
        });
        let mut wire = Vec::new();
        template.append(&mut wire, 3, &head, &body);
        group.bench_function(format!("decode-{name}"), |b| {
            b.iter(|| decode_publish(black_box(&wire), version, MAX_PACKET_LEN));
        });
    }
    group.finish();
}

criterion_group!(benches, publish);
criterion_main!(benches);
