//! The broker's own counters against the driver's: mosquitto and the reference broker.

use crate::common;

use std::time::Duration;

use common::*;
use pubgauge_driver::*;

const RELIABILITIES: [Reliability; 3] = [
    Reliability::AtMostOnce,
    Reliability::AtLeastOnce,
    Reliability::ExactlyOnce,
];

const COUNT: u64 = 3000;

/// Publishes [`COUNT`] messages from one fleet to two subscribers of another and compares every
/// count there is: accepted, acknowledged, delivered.
fn exchange(port: u16, settings: Settings) {
    let count = COUNT;
    let reliability = settings.reliability.unwrap();
    let mut subscribers = on(port, settings.clone());
    let a = subscribers.named("a");
    let b = subscribers.named("b");
    subscribers.subscribe(a, "count/+");
    subscribers.subscribe(b, "#");
    let mut publishers = on(port, settings);
    let p = publishers.named("p");
    let topic = publishers.fleet.advertise(p, "count/1").unwrap();
    assert_eq!(publishers.fleet.advertise(p, "count/1").unwrap(), topic);
    for sequence in 0..count {
        publishers.publish(p, topic, sequence, 16 + (sequence % 500) as usize);
        if sequence % 500 == 0 {
            subscribers.poll_for(Duration::from_millis(1));
        }
    }
    if reliability != Reliability::AtMostOnce {
        publishers.until("all acknowledged", |s| {
            s.acknowledged.len() == count as usize
        });
        let mut tags: Vec<_> = publishers
            .seen
            .acknowledged
            .iter()
            .map(|(_, tag, _)| *tag)
            .collect();
        tags.sort_unstable();
        assert!(tags.into_iter().eq(0..count));
        assert!(
            publishers
                .seen
                .acknowledged
                .iter()
                .all(|a| a.2 == Acknowledgement::Taken)
        );
    }
    publishers.poll_for(Duration::from_millis(20));
    assert_eq!(publishers.fleet.unsettled(), 0);
    subscribers.until("all delivered", |s| s.delivered >= 2 * count as usize);
    subscribers.poll_for(Duration::from_millis(200));
    for client in [a, b] {
        assert!(
            subscribers.sequences(client).into_iter().eq(0..count),
            "in order, none twice"
        );
    }
    for m in &subscribers.seen.messages {
        assert_eq!(m.payload.len(), 16 + (sequence(&m.payload) % 500) as usize);
        assert_eq!(m.topic, "count/1");
        assert!(!m.retained && !m.redelivered);
    }
    subscribers.fleet.close(clock::monotonic_now() + SECOND);
    publishers.fleet.close(clock::monotonic_now() + SECOND);
}

fn counts_agree(mqtt: &str) {
    for reliability in RELIABILITIES {
        let settings = reliable(mqtt, reliability);
        let broker = Mosquitto::start();
        exchange(broker.port, settings.clone());
        let [packets, received, sent] = broker
            .counters([
                "messages/received",
                "publish/messages/received",
                "publish/messages/sent",
            ])
            .map(|count| count as u64);
        assert_eq!(sent, 2 * COUNT, "{mqtt} {reliability:?}");
        // mosquitto 2.0.11 leaves QoS 2 out of its count of PUBLISH received. Its count of all
        // packets received has them: CONNECT, SUBSCRIBE (subscribers), DISCONNECT, and for each
        // message PUBLISH and PUBREL, or PUBREC and PUBCOMP.
        if reliability == Reliability::ExactlyOnce {
            assert_eq!(packets, (2 + 2 * COUNT) + 2 * (3 + 2 * COUNT), "{mqtt}");
        } else {
            assert_eq!(received, COUNT, "{mqtt} {reliability:?}");
        }
        let broker = reference();
        exchange(broker.address.port(), settings);
        let counted = broker.stop();
        let (received, sent) = (counted.publish_received, counted.publish_sent);
        assert_eq!(
            (received, sent),
            (COUNT, 2 * COUNT),
            "{mqtt} {reliability:?}"
        );
    }
}

#[test]
fn counts_agree_with_the_broker_under_3_1_1() {
    counts_agree("3.1.1");
}

#[test]
fn counts_agree_with_the_broker_under_5() {
    counts_agree("5");
}
