//! Point-to-point: queues that receivers share.

use crate::common;

use std::collections::BTreeSet;

use common::*;
use pubgauge_driver::{
    Change, ClientId, Clock, Driver, Publish, Settings, Subscription, Target, TopicId,
};
use pubgauge_driver_zeromq::ZeromqDriver;
use serde_json::json;

fn point_to_point() -> Settings {
    settings(json!({"pattern": "point-to-point"}))
}

/// Publishers' and receivers' fleets, and the folder of their sockets.
struct Both {
    publishing: Rig,
    receiving: Rig,
    _scratch: tempfile::TempDir,
}

impl Both {
    fn open(settings: &Settings) -> Self {
        let scratch = scratch();
        let open = |n| Rig::open(ZeromqDriver, settings.clone(), direct(&scratch), n);
        Both {
            publishing: open(0),
            receiving: open(1),
            _scratch: scratch,
        }
    }

    fn publisher(&mut self) -> (ClientId, String) {
        let (id, address) = self.publishing.connect(&publisher("p"));
        (id, address.expect("direct"))
    }

    fn receiver(&mut self, peers: &[String], topics: &[&str]) -> ClientId {
        let (id, _) = self.receiving.connect(&subscriber("r", peers));
        for topic in topics {
            self.receiving.subscribe(id, topic);
        }
        id
    }

    fn advertise(&mut self, id: ClientId, topic: &str) -> TopicId {
        self.publishing
            .fleet
            .advertise(id, topic)
            .expect("advertises")
    }

    /// Sends messages of stream 999 until each receiver has one of each path, and forgets them.
    fn prove(&mut self, paths: &[(ClientId, TopicId)], receivers: &[ClientId]) {
        let mut heard = BTreeSet::new();
        let wanted = paths.len() * receivers.len();
        for sequence in 0.. {
            assert!(sequence < 1000, "only {} of {wanted} paths", heard.len());
            for (n, (from, topic)) in paths.iter().enumerate() {
                let stream = 1000 + n as u32;
                // Blocked until the first receiver is there.
                self.publishing.publish(*from, *topic, stream, sequence, 16);
            }
            self.publishing.poll_for(SECOND / 200);
            self.receiving.poll_for(SECOND / 100);
            let seen = self.receiving.seen.seen.drain(..);
            heard.extend(seen.map(|s| (s.client, s.stream)));
            if heard.len() == wanted {
                break;
            }
        }
        self.receiving.poll_for(SECOND / 10);
        self.receiving.seen.seen.clear();
    }

    /// Publishes `count` messages, both sides polled while blocked.
    fn publish(&mut self, from: ClientId, topic: TopicId, stream: u32, count: u32) {
        for sequence in 0..count {
            let start = Clock::Monotonic.now();
            while self.publishing.publish(from, topic, stream, sequence, 64) != Publish::Accepted {
                assert!(Clock::Monotonic.now() - start < 10 * SECOND, "blocked");
                self.receiving.poll_for(0);
                self.publishing.poll_for(0);
            }
        }
    }

    fn await_messages(&mut self, count: usize) {
        let all = |s: &Recorder| s.seen.len() >= count;
        let came = self.receiving.poll_until(60 * SECOND, all);
        assert!(came, "{} of {count} came", self.receiving.seen.seen.len());
        self.receiving.poll_for(SECOND / 20);
        assert_eq!(self.receiving.seen.seen.len(), count, "too many");
    }

    fn failure(&mut self, id: ClientId) -> String {
        let failed = |s: &Recorder| s.failure(id).is_some();
        assert!(self.receiving.poll_until(60 * SECOND, failed), "no failure");
        self.receiving.seen.failure(id).expect("failed").to_owned()
    }
}

#[test]
fn receivers_of_a_topic_share_it_and_others_get_none_of_it() {
    let mut both = Both::open(&point_to_point());
    let (p0, a0) = both.publisher();
    let (p1, a1) = both.publisher();
    let shared = [both.advertise(p0, "work"), both.advertise(p1, "work")];
    let own = both.advertise(p0, "work/own");
    let peers = [a0, a1];
    let sharers: Vec<_> = (0..3).map(|_| both.receiver(&peers, &["work"])).collect();
    let single = both.receiver(&peers, &["work/own"]);
    let idle = both.receiver(&peers, &["idle"]);
    both.prove(&[(p0, shared[0]), (p1, shared[1])], &sharers);
    both.prove(&[(p0, own)], &[single]);
    both.publish(p0, shared[0], 0, 3000);
    both.publish(p1, shared[1], 1, 3000);
    both.publish(p0, own, 2, 500);
    both.await_messages(6500);

    let seen = std::mem::take(&mut both.receiving.seen.seen);
    let distinct: BTreeSet<_> = seen.iter().map(|s| (s.stream, s.sequence)).collect();
    assert_eq!(distinct.len(), 6500, "each exactly once");
    for receiver in &sharers {
        for stream in [0, 1] {
            let of = |s: &&Heard| s.client == *receiver && s.stream == stream;
            let numbers: Vec<u32> = seen.iter().filter(of).map(|s| s.sequence).collect();
            assert!(numbers.len() > 100, "a share, not {}", numbers.len());
            assert!(numbers.is_sorted(), "in order");
        }
    }
    assert!(seen.iter().all(|s| s.client != idle));
    for s in seen {
        assert_eq!(s.client == single, s.stream == 2);
        assert_eq!(s.topic, if s.stream == 2 { "work/own" } else { "work" });
    }
}

#[test]
fn one_receiver_of_several_topics_gets_them_all() {
    let mut both = Both::open(&point_to_point());
    let (from, address) = both.publisher();
    let topics = ["a", "a/b", "a/c"].map(|t| both.advertise(from, t));
    let to = both.receiver(&[address], &["a", "a/c"]);
    both.prove(&[(from, topics[0]), (from, topics[2])], &[to]);
    // Nobody takes from the queue of the second.
    let nobody = both.publishing.publish(from, topics[1], 1, 0, 64);
    assert_eq!(nobody, Publish::Blocked);
    both.publish(from, topics[0], 0, 300);
    both.publish(from, topics[2], 2, 300);
    both.await_messages(600);
}

#[test]
fn a_publisher_is_held_back_until_somebody_receives() {
    let mut both = Both::open(&point_to_point());
    let (from, address) = both.publisher();
    let topic = both.advertise(from, "work");
    let blocked = both.publishing.publish(from, topic, 0, 0, 64);
    assert_eq!(blocked, Publish::Blocked);
    let is_writable = |s: &Recorder| s.has(from, |c| *c == Change::Writable);
    assert!(!both.publishing.poll_until(SECOND / 10, is_writable));
    let (to, _) = both.receiving.connect(&subscriber("r", &[address]));
    both.receiving.subscribe(to, "work");
    for _ in 0..500 {
        both.receiving.poll_for(SECOND / 100);
        if both.publishing.poll_until(SECOND / 100, is_writable) {
            break;
        }
    }
    assert!(is_writable(&both.publishing.seen), "never told");
    both.publish(from, topic, 0, 100);
    both.await_messages(100);
    assert_eq!(
        both.receiving.seen.sequences(to)[0],
        0,
        "not even the first"
    );
}

#[test]
fn a_topic_advertised_after_it_was_subscribed_to_is_received() {
    let mut both = Both::open(&point_to_point());
    let (from, address) = both.publisher();
    let to = both.receiver(&[address], &["late"]);
    both.publishing.poll_for(SECOND / 20);
    let topic = both.advertise(from, "late");
    both.prove(&[(from, topic)], &[to]);
    both.publish(from, topic, 0, 100);
    both.await_messages(100);
}

#[test]
fn a_full_queue_holds_back_without_loss() {
    let limited = settings(json!({"pattern": "point-to-point", "queue-limit": 10}));
    let mut both = Both::open(&limited);
    let (from, address) = both.publisher();
    let topic = both.advertise(from, "work");
    let to = both.receiver(&[address], &["work"]);
    both.prove(&[(from, topic)], &[to]);
    let mut sent = 0;
    while both.publishing.publish(from, topic, 0, sent, 100_000) == Publish::Accepted {
        sent += 1;
        assert!(sent < 10_000, "no back-pressure");
    }
    both.await_messages(sent as usize);
    both.publishing.writable(from);
    assert!(both.receiving.seen.sequences(to).into_iter().eq(0..sent));
}

#[test]
fn what_a_vanished_publisher_had_sent_is_received_before_the_failure() {
    for transport in ["tcp", "ipc"] {
        let mut both = Both::open(&settings(
            json!({"pattern": "point-to-point", "transport": transport}),
        ));
        let (from, address) = both.publisher();
        let topic = both.advertise(from, "work");
        let to = both.receiver(&[address], &["work"]);
        both.prove(&[(from, topic)], &[to]);
        both.publish(from, topic, 0, 900);
        both.publishing.fleet.disconnect(from); // In order: lingers until all is sent.
        let why = both.failure(to);
        assert!(why.contains("lost"), "{why}");
        assert!(both.receiving.seen.sequences(to).into_iter().eq(0..900));
    }
}

#[test]
fn a_publisher_comes_back_and_another_stays() {
    for transport in ["tcp", "ipc"] {
        let mut both = Both::open(&settings(
            json!({"pattern": "point-to-point", "transport": transport}),
        ));
        let (lost, lost_address) = both.publisher();
        let (stays, address) = both.publisher();
        let topics = [both.advertise(lost, "work"), both.advertise(stays, "work")];
        let paths = [(lost, topics[0]), (stays, topics[1])];
        let to = both.receiver(&[lost_address.clone(), address], &["work"]);
        both.prove(&paths, &[to]);
        for _ in 0..3 {
            both.publishing.fleet.abort(lost);
            let why = both.failure(to);
            assert!(why.contains(&lost_address), "{why}");
            both.receiving.seen.changes.clear();
            both.publish(stays, topics[1], 1, 100);
            both.await_messages(100);
            both.receiving.seen.seen.clear();
            both.publishing.fleet.reconnect(lost).unwrap();
            assert_eq!(
                both.publishing.connected(lost).as_ref(),
                Some(&lost_address)
            );
            both.receiving.fleet.reconnect(to).unwrap();
            both.receiving.connected(to);
            both.prove(&paths, &[to]);
            both.publish(lost, topics[0], 0, 100);
            both.publish(stays, topics[1], 1, 100);
            both.await_messages(200);
            both.receiving.seen.seen.clear();
        }
    }
}

#[test]
fn a_receiver_that_goes_leaves_the_rest_to_the_others() {
    let mut both = Both::open(&point_to_point());
    let (from, address) = both.publisher();
    let topic = both.advertise(from, "work");
    let peers = [address];
    let goes = both.receiver(&peers, &["work"]);
    let stays = both.receiver(&peers, &["work"]);
    both.prove(&[(from, topic)], &[goes, stays]);
    both.receiving.fleet.abort(goes);
    both.publishing.poll_for(SECOND / 5);
    both.publish(from, topic, 0, 500);
    both.await_messages(500);
    assert!(both.receiving.seen.sequences(stays).into_iter().eq(0..500));
}

#[test]
fn what_a_queue_cannot_be_is_refused() {
    let target = Target::default();
    let check = |subscription: Subscription| {
        ZeromqDriver.check_subscription(&point_to_point(), &target, &subscription)
    };
    for wildcard in ["a/#", "+/b", "#"] {
        let why = check(Subscription::matching(wildcard))
            .unwrap_err()
            .to_string();
        assert!(why.contains("names its topic"), "{why}");
    }
    // Receivers share in any case.
    assert!(check(Subscription::matching("a/b").of_group("g")).is_ok());
    let forwarder = Target::single("zmq-forwarder+tcp://127.0.0.1:1,2");
    let refused = ZeromqDriver
        .resolve(&point_to_point(), &forwarder)
        .unwrap_err();
    assert_eq!(refused.len(), 1);
    assert!(refused[0].reason.contains("one queue for all topics"));
}
