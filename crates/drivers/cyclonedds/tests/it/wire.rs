//! Facts that only the wire shows: datagrams and bytes.

use crate::common;

use common::*;
use pubgauge_driver::{Fleet, Publish};
use pubgauge_testing::{Datagrams, multicast_group};
use serde_json::json;
use std::time::Duration;

fn datagrams(rig: &Rig) -> u64 {
    let traffic = statistics(rig).traffic;
    let traffic = traffic.expect("this library lets itself be counted");
    traffic.sent_datagrams
}

/// Datagrams that a publisher sends for so many messages to so many subscriber fleets.
fn datagrams_for(asked: serde_json::Value, messages: u32, fleets: usize) -> u64 {
    let settings = settings(asked);
    let mut pair = Pair::open(&settings);
    let mut others: Vec<Rig> = Vec::new();
    for n in 1..fleets {
        let mut other = open(&settings, &pair.place.target(), 2 + n as u32);
        let to = other.named("s");
        other.subscribe(to, "a/b");
        // Reached: what comes now goes to all.
        for sequence in 0..500 {
            pair.send(sequence..sequence + 1, 64);
            if other.poll_until(20 * MS, |s| !s.seen.is_empty()) {
                break;
            }
        }
        others.push(other);
    }
    pair.both(500 * MS);
    for other in &mut others {
        other.poll_for(100 * MS);
        other.seen.seen.clear();
    }
    pair.into.seen.seen.clear();
    let before = datagrams(&pair.out);
    pair.send(1000..1000 + messages, 100);
    for rig in others.iter_mut().chain([&mut pair.into]) {
        let came = rig.poll_until(60 * SECOND, |s| s.seen.len() >= messages as usize);
        assert!(came, "{} of {messages} came", rig.seen.seen.len());
    }
    datagrams(&pair.out) - before
}

#[test]
fn unicast_sends_to_each_and_multicast_once_for_all() {
    let unicast = datagrams_for(json!({}), 300, 3);
    let multicast = datagrams_for(json!({"multicast": true}), 300, 3);
    assert!(unicast >= 900, "{unicast}");
    // Heartbeats and what was repeated come on top.
    assert!((300..500).contains(&multicast), "{multicast}");
}

#[test]
fn a_multicast_datagram_may_cross_as_many_routers_as_the_setting_says() {
    let hops = |asked: serde_json::Value| {
        let heard = Datagrams::listen();
        let settings = settings(json!({"multicast": true, "native": {"cyclonedds": asked}}));
        let mut pair = Pair::open(&settings);
        let mut other = open(&settings, &pair.place.target(), 2);
        let to = other.named("s");
        other.subscribe(to, "a/b");
        let group = multicast_group(&pair.place.target());
        (0..500).find_map(|sequence| {
            pair.send(sequence..sequence + 1, 64);
            heard.hops_to(group, Duration::from_millis(20))
        })
    };
    assert_eq!(hops(json!({})), Some(32));
    assert_eq!(hops(json!({"multicast-hops": 7})), Some(7));
}

#[test]
fn batches_share_datagrams() {
    let single = datagrams_for(json!({"batching": "off"}), 1000, 1);
    let small = datagrams_for(json!({"batching": {"bytes": 2000}}), 1000, 1);
    let large = datagrams_for(json!({"batching": {"bytes": 14_000}}), 1000, 1);
    // 148 bytes a message.
    assert!(single >= 1000, "{single}");
    assert!((75..200).contains(&small), "{small}");
    assert!((10..70).contains(&large), "{large}");
}

#[test]
fn adaptive_batches_follow_the_rate() {
    let flat_out = datagrams_for(json!({"batching": "adaptive"}), 2000, 1);
    assert!(flat_out < 500, "{flat_out}");

    let mut pair = Pair::open(&settings(json!({"batching": "adaptive"})));
    let before = datagrams(&pair.out);
    for n in 0..100 {
        // Without the poll in between that sends everything in any case.
        let taken = pair.out.publish(pair.from, pair.topic, 0, n, 100);
        assert_eq!(taken, Publish::Accepted);
        std::thread::sleep(std::time::Duration::from_millis(2));
        if n % 10 == 9 {
            pair.out.poll(0);
        }
    }
    pair.into.poll_until(60 * SECOND, |s| s.seen.len() >= 100);
    let slowly = datagrams(&pair.out) - before;
    assert!(slowly >= 90, "{slowly} datagrams for 100 messages");
}

#[test]
fn bytes_are_those_of_rtps() {
    let mut pair = Pair::open(&settings(json!({})));
    let (sent, received) = (pair.out.fleet.wire_bytes(), pair.into.fleet.wire_bytes());
    pair.send(0..500, 1000);
    assert!(pair.into.poll_until(60 * SECOND, |s| s.seen.len() >= 500));
    let sent = pair.out.fleet.wire_bytes().sent - sent.sent;
    let received = pair.into.fleet.wire_bytes().received - received.received;
    // Payload, CDR head 12, DATA 24, INFO_TS 12, RTPS header 20; then heartbeats, repetitions.
    let least = 500 * (1000 + 68);
    assert!((least..least * 3 / 2).contains(&sent), "{sent}");
    assert!((least..least * 3 / 2).contains(&received), "{received}");
    let acknowledged = pair.into.fleet.wire_bytes().sent;
    assert!(acknowledged > 0);
}
