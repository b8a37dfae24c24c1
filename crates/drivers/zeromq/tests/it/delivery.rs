//! Messages through real sockets: nothing lost, nothing damaged, in order; or dropped where the
//! settings say so.

use crate::common;

use common::*;
use pubgauge_driver::{Change, Publish, Settings, Target};
use pubgauge_driver_zeromq::ZeromqDriver;
use serde_json::json;

/// 200,000 messages with small queues: while the subscriber does not look, the publisher must
/// be blocked; in the end everything has arrived, in order.
fn lossless(driver: ZeromqDriver, settings: Settings, target: &Target) {
    const COUNT: u32 = 200_000;
    const LEN: usize = 200;
    let mut pair = Pair::open(driver, &settings, target);
    let from = pair.from;
    let mut sequence = 0;
    // The stalled subscriber: its queue, the socket buffers on the way, and the publisher's
    // queue fill up, until the publisher stays blocked.
    loop {
        match pair.publishing.publish(from, pair.topic, 1, sequence, LEN) {
            Publish::Accepted => sequence += 1,
            Publish::Blocked => {
                let writable = |s: &Recorder| s.has(from, |c| *c == Change::Writable);
                if !pair.publishing.poll_until(SECOND / 5, writable) {
                    break;
                }
                pair.publishing.seen.changes.clear();
            }
            Publish::Refused(why) => panic!("{why:?}"),
        }
        assert!(sequence < COUNT, "never blocked for good");
    }
    // The slow subscriber: it looks again only when the publisher is blocked.
    let subscribing = &mut pair.subscribing;
    while sequence < COUNT {
        match pair.publishing.publish(from, pair.topic, 1, sequence, LEN) {
            Publish::Accepted => sequence += 1,
            Publish::Blocked => {
                subscribing.poll_for(SECOND / 2000);
                pair.publishing.poll_for(0);
            }
            Publish::Refused(why) => panic!("{why:?}"),
        }
    }
    assert!(pair.publishing.seen.has(from, |c| *c == Change::Writable));
    subscribing.poll_until(60 * SECOND, |s| s.seen.len() >= COUNT as usize);
    subscribing.poll_for(SECOND / 50);
    let got = subscribing.seen.sequences(pair.to);
    assert_eq!(got.len(), COUNT as usize);
    assert!(got.iter().copied().eq(0..COUNT), "out of order");
    assert!(
        subscribing.seen.stamps < u64::from(COUNT),
        "a flood shares stamps"
    );
    assert!(
        subscribing
            .seen
            .seen
            .iter()
            .all(|s| s.topic == "a/b" && s.len == LEN)
    );
    pair.publishing.close();
    pair.subscribing.close();
}

#[test]
fn lossless_direct_tcp() {
    let scratch = scratch();
    lossless(
        ZeromqDriver,
        settings(json!({"queue-limit": 100})),
        &direct(&scratch),
    );
}

#[test]
fn lossless_direct_ipc() {
    let scratch = scratch();
    let settings = settings(json!({"queue-limit": 100, "transport": "ipc"}));
    lossless(ZeromqDriver, settings, &direct(&scratch));
    let left: Vec<_> = std::fs::read_dir(scratch.path()).unwrap().collect();
    assert!(left.is_empty(), "socket files are left: {left:?}");
}

#[test]
fn lossless_direct_in_two_frames() {
    let scratch = scratch();
    let settings =
        settings(json!({"queue-limit": 100, "native": {"zeromq": {"framing": "multipart"}}}));
    lossless(ZeromqDriver, settings, &direct(&scratch));
}

#[test]
fn lossless_through_a_tcp_forwarder() {
    let settings = settings(json!({"queue-limit": 100}));
    let forwarder = tcp_forwarder(&settings);
    lossless(ZeromqDriver, settings, &through(&forwarder));
    let counts = forwarder.stop();
    assert!(
        counts.messages >= 200_000 && counts.blocked > 0 && counts.subscriptions > 0,
        "{counts:?}"
    );
}

#[test]
fn lossless_through_an_ipc_forwarder() {
    let scratch = scratch();
    let settings = settings(json!({"queue-limit": 100, "transport": "ipc"}));
    let forwarder = ipc_forwarder(&scratch, &settings);
    lossless(ZeromqDriver, settings, &through(&forwarder));
    forwarder.stop();
    let left: Vec<_> = std::fs::read_dir(scratch.path()).unwrap().collect();
    assert!(left.is_empty(), "socket files are left: {left:?}");
}

/// With small queues and a stalled subscriber, everything is accepted and most of it is lost.
fn drops(driver: ZeromqDriver, settings: Settings, target: &Target) {
    const COUNT: u32 = 100_000;
    let mut pair = Pair::open(driver, &settings, target);
    for sequence in 0..COUNT {
        // 1 KiB: far more in all than the socket buffers hold.
        let outcome = pair
            .publishing
            .publish(pair.from, pair.topic, 1, sequence, 1024);
        assert_eq!(outcome, Publish::Accepted);
    }
    pair.subscribing.poll_for(SECOND / 2);
    let got = pair.subscribing.seen.sequences(pair.to);
    assert!(
        !got.is_empty() && got.len() < COUNT as usize / 2,
        "{} arrived",
        got.len()
    );
    assert!(got.is_sorted(), "what arrives is in order");
    assert_eq!(got[0], 0, "the oldest stay, the newest are dropped");
}

#[test]
fn drop_mode_drops_direct() {
    let scratch = scratch();
    let settings = settings(json!({"queue-limit": 10, "on-full": "drop"}));
    drops(ZeromqDriver, settings, &direct(&scratch));
}

#[test]
fn drop_mode_drops_through_a_forwarder() {
    let settings = settings(json!({"queue-limit": 10, "on-full": "drop"}));
    let forwarder = tcp_forwarder(&settings);
    drops(ZeromqDriver, settings, &through(&forwarder));
}

#[test]
fn conflate_delivers_only_the_newest() {
    let scratch = scratch();
    let settings = settings(json!({"conflate": true}));
    let mut pair = Pair::open(ZeromqDriver, &settings, &direct(&scratch));
    let mut sequences = 0..10_060;
    let mut publish = |pair: &mut Pair| {
        let sequence = sequences.next().expect("the newest came within a minute");
        let outcome = pair
            .publishing
            .publish(pair.from, pair.topic, 1, sequence, 64);
        assert_eq!(outcome, Publish::Accepted);
        sequence
    };
    let mut newest = 0;
    for _ in 0..10_000 {
        newest = publish(&mut pair);
    }
    // The library's thread may still be carrying them over when the subscriber looks. A message that is written while the
    // reader takes the one before stays behind until the next is written (libzmq, dbuffer.hpp).
    let to = pair.to;
    while !pair.subscribing.poll_until(SECOND, |seen: &Recorder| {
        seen.sequences(to).last() == Some(&newest)
    }) {
        newest = publish(&mut pair);
    }
    let got = pair.subscribing.seen.sequences(to);
    assert!(got.is_sorted() && got.len() < 1_000, "{got:?}");
    let second = pair
        .subscribing
        .fleet
        .subscribe(pair.to, &Subscription::matching("c"));
    assert!(second.unwrap_err().to_string().contains("one subscription"));
}

/// Payloads of every size class of ZMTP and of libzmq's messages arrive as they were sent.
fn sizes(driver: ZeromqDriver, settings: Settings, target: &Target) {
    let mut pair = Pair::open(driver, &settings, target);
    let sizes = [
        16,
        17,
        28,
        29,
        33,
        64,
        250,
        251,
        255,
        256,
        8191,
        8192,
        65_536,
        2 << 20,
    ];
    let mut sequence = 0;
    for _ in 0..3 {
        for size in sizes {
            pair.publishing
                .send(pair.from, pair.topic, 1, sequence, size);
            sequence += 1;
        }
    }
    let all = pair
        .subscribing
        .poll_until(60 * SECOND, |s| s.seen.len() >= 3 * sizes.len());
    assert!(
        all,
        "{} of {}",
        pair.subscribing.seen.seen.len(),
        3 * sizes.len()
    );
    let got: Vec<usize> = pair.subscribing.seen.seen.iter().map(|s| s.len).collect();
    assert_eq!(got, [sizes, sizes, sizes].concat());
    let bytes = 3 * sizes.iter().sum::<usize>() as u64;
    let (sent, received) = (
        pair.publishing.fleet.wire_bytes(),
        pair.subscribing.fleet.wire_bytes(),
    );
    assert!(sent.sent > bytes && received.received > bytes);
    assert!(received.received < bytes + 100_000);
}

#[test]
fn content_of_every_size_is_intact_in_two_frames() {
    let scratch = scratch();
    let settings = settings(json!({"native": {"zeromq": {"framing": "multipart"}}}));
    sizes(ZeromqDriver, settings, &direct(&scratch));
}

#[test]
fn content_of_every_size_is_intact_through_a_forwarder() {
    let forwarder = tcp_forwarder(&Settings::default());
    sizes(ZeromqDriver, Settings::default(), &through(&forwarder));
}

/// Publishes one message on each topic until all that were expected have come; then waits a
/// little for those that should not.
fn received_topics(filters: &[&str], settings: Settings, topics: &[&str]) -> Vec<String> {
    let scratch = scratch();
    let target = direct(&scratch);
    let mut pair = Pair::open(ZeromqDriver, &settings, &target);
    for filter in filters {
        pair.subscribing.subscribe(pair.to, filter);
    }
    // Subscriptions travel in order: once the last one works, all do.
    pair.subscribing.subscribe(pair.to, "last");
    let last = pair.publishing.fleet.advertise(pair.from, "last").unwrap();
    let mut sequence = 0;
    while !pair.subscribing.seen.seen.iter().any(|s| s.topic == "last") {
        pair.publishing.send(pair.from, last, 2, sequence, 16);
        pair.publishing.poll_for(0);
        pair.subscribing.poll_for(SECOND / 100);
        sequence += 1;
        assert!(sequence < 1000);
    }
    pair.subscribing.seen.seen.clear();
    for (stream, topic) in topics.iter().enumerate() {
        let id = pair.publishing.fleet.advertise(pair.from, topic).unwrap();
        assert_eq!(
            pair.publishing.fleet.advertise(pair.from, topic).unwrap(),
            id
        );
        pair.publishing.send(pair.from, id, stream as u32, 0, 32);
    }
    pair.publishing.send(pair.from, last, 2, sequence, 16);
    let end = pair.subscribing.poll_until(60 * SECOND, |s| {
        s.seen.iter().any(|s| s.sequence == sequence)
    });
    assert!(end);
    let seen = &pair.subscribing.seen.seen;
    seen.iter()
        .filter(|s| s.topic != "last")
        .map(|s| s.topic.clone())
        .collect()
}

#[test]
fn exact_filters_and_subtrees() {
    // "a/b" is subscribed by the pair itself.
    let topics = ["a", "a/b", "a/bc", "a/b/c", "x", "x/y", "x/y/z", "xy", "q"];
    let got = received_topics(&["x/#"], Settings::default(), &topics);
    assert_eq!(got, ["a/b", "x", "x/y", "x/y/z"]);
}

#[test]
fn overlapping_filters_deliver_once() {
    let got = received_topics(&["x/#", "x/y", "#"], Settings::default(), &["x/y", "q"]);
    assert_eq!(got, ["x/y", "q"]);
}

#[test]
fn plus_is_filtered_at_the_receiver_on_request() {
    let settings = settings(json!({"native": {"zeromq": {"plus-wildcard": "filter-at-receiver"}}}));
    let topics = ["s/1/p", "s/1/q", "s/2/p", "s/p", "s/1/p/x", "a/b"];
    let got = received_topics(&["s/+/p"], settings, &topics);
    assert_eq!(got, ["s/1/p", "s/2/p", "a/b"]);
}

#[test]
fn a_late_subscriber_gets_what_comes_after_it() {
    let scratch = scratch();
    let mut pair = Pair::open(ZeromqDriver, &Settings::default(), &direct(&scratch));
    for sequence in 0..100 {
        pair.publishing.send(pair.from, pair.topic, 1, sequence, 64);
    }
    assert!(
        pair.subscribing
            .poll_until(60 * SECOND, |s| s.seen.len() >= 100)
    );
    let peers: Vec<String> = pair.address.iter().cloned().collect();
    let (late, _) = pair.subscribing.connect(&subscriber("late", &peers));
    pair.subscribing.subscribe(late, "a/b");
    let mut sequence = 100;
    while pair.subscribing.seen.sequences(late).is_empty() {
        pair.publishing.send(pair.from, pair.topic, 1, sequence, 64);
        sequence += 1;
        pair.publishing.poll_for(0);
        pair.subscribing.poll_for(SECOND / 100);
        assert!(sequence < 1000, "the late subscriber hears nothing");
    }
    assert!(pair.subscribing.seen.sequences(late)[0] >= 100);
}
