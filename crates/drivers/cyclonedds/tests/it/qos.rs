//! That QoS policies do what they are asked for, each beside a control without them.

use crate::common;

use common::*;
use pubgauge_driver::{
    Change, ClientSpec, Clock, Course, Fleet, FleetConfig, Publish, Refusal, Target, Will,
};
use pubgauge_driver_cyclonedds::CycloneddsDriver;
use pubgauge_testing::config;
use serde_json::json;

#[test]
fn a_late_reader_gets_the_last_message_of_each_writer() {
    let place = Place::new();
    let settings = settings(json!({"last-value": true}));
    let mut out = open(&settings, &place.target(), 1);
    for stream in 0..2 {
        let from = out.named(&format!("p{stream}"));
        let topic = out.fleet.advertise(from, "a/b").unwrap();
        send_all(&mut out, (from, topic), stream, 0..10, 64);
    }
    let mut into = open(&settings, &place.target(), 2);
    let to = into.named("s");
    into.subscribe(to, "a/#");
    assert!(into.poll_until(60 * SECOND, |s| s.seen.len() >= 2));
    into.poll_for(200 * MS);
    assert_eq!(
        (into.seen.of_stream(0), into.seen.of_stream(1)),
        (vec![9], vec![9])
    );
    assert!(into.seen.seen.iter().all(|m| m.retained));
    assert_eq!(into.seen.seen[0].topic, "a/b");
}

#[test]
fn what_was_written_before_is_not_for_a_volatile_late_reader() {
    let place = Place::new();
    let settings = settings(json!({}));
    let mut out = open(&settings, &place.target(), 1);
    let from = out.named("p");
    let topic = out.fleet.advertise(from, "a/b").unwrap();
    send_all(&mut out, (from, topic), 0, 0..10, 64);
    let mut into = open(&settings, &place.target(), 2);
    let to = into.named("s");
    into.subscribe(to, "a/b");
    for n in 10..200 {
        send_all(&mut out, (from, topic), 0, n..n + 1, 64);
        if into.poll_until(20 * MS, |s| !s.seen.is_empty()) {
            break;
        }
    }
    assert!(into.seen.seen[0].sequence >= 10 && !into.seen.seen[0].retained);
}

#[test]
fn a_message_expires_in_the_cache_of_a_reader_that_does_not_read() {
    for (lifespan_ms, expected) in [(300, 0), (60_000, 5)] {
        let mut pair = Pair::open(&settings(json!({"lifespan-ms": lifespan_ms})));
        pair.send(0..5, 64);
        pair.out.poll_for(700 * MS);
        pair.into.poll_for(100 * MS);
        assert_eq!(pair.into.seen.seen.len(), expected, "{lifespan_ms} ms");
    }
}

#[test]
fn keep_last_keeps_the_last_and_keep_all_all() {
    for (asked, expected) in [
        (json!({"on-full": "drop", "queue-limit": 5}), 95..100),
        (
            json!({"native": {"cyclonedds": {"history-depth": 7}}}),
            93..100,
        ),
        (json!({"conflate": true}), 99..100),
        (json!({"on-full": "block", "queue-limit": 500}), 0..100),
        (json!({}), 0..100),
    ] {
        let mut pair = Pair::open(&settings(asked.clone()));
        pair.send(0..100, 64);
        pair.out.poll_for(300 * MS);
        pair.both(200 * MS);
        let expected: Vec<u32> = expected.collect();
        assert_eq!(
            pair.into.seen.of_stream(0),
            expected,
            "{asked} {:?}",
            pair.into.seen.seen
        );
        assert_eq!(
            pair.into.seen.seen.len(),
            expected.len(),
            "{asked} {:?}",
            pair.into.seen.seen
        );
    }
}

#[test]
fn a_missed_deadline_is_counted() {
    let mut pair = Pair::open(&native(json!({"deadline-ms": 400})));
    let before = statistics(&pair.into).deadlines_missed;
    for n in 0..40 {
        pair.send(n..n + 1, 64);
        pair.into.poll_for(20 * MS);
    }
    let kept = statistics(&pair.into).deadlines_missed;
    pair.into.poll_for(1500 * MS);
    let missed = statistics(&pair.into).deadlines_missed;
    // Samples missed while the test began are no matter.
    assert!(
        kept - before <= 1 && missed >= kept + 2,
        "{before} {kept} {missed}"
    );
}

#[test]
fn only_the_strongest_owner_is_heard_until_it_goes() {
    let place = Place::new();
    let owner =
        |strength: i32| native(json!({"ownership": "exclusive", "ownership-strength": strength}));
    let mut into = open(&owner(0), &place.target(), 9);
    let to = into.named("s");
    into.subscribe(to, "a/b");
    let mut owners = Vec::new();
    for strength in [1, 2] {
        let mut out = open(&owner(strength), &place.target(), strength as u32);
        let from = out.named("p");
        let topic = out.fleet.advertise(from, "a/b").unwrap();
        owners.push((out, from, topic));
    }
    let mut round = 0;
    let mut hear = |owners: &mut [(Rig, _, _)], into: &mut Rig| {
        into.seen.seen.clear();
        for _ in 0..10 {
            for (stream, (out, from, topic)) in owners.iter_mut().enumerate() {
                send_all(out, (*from, *topic), stream as u32, round..round + 1, 64);
            }
            round += 1;
            into.poll_for(5 * MS);
        }
        (into.seen.of_stream(0).len(), into.seen.of_stream(1).len())
    };
    let start = Clock::Monotonic.now();
    while hear(&mut owners, &mut into).1 == 0 {
        assert!(Clock::Monotonic.now() - start < 60 * SECOND);
    }
    // From now on the stronger one alone, and of it every message, however late.
    hear(&mut owners, &mut into);
    let last = into.poll_until(60 * SECOND, |s| s.of_stream(1).len() >= 10);
    assert!(last, "{:?}", into.seen.of_stream(1));
    assert!(
        into.seen.of_stream(0).is_empty(),
        "{:?}",
        into.seen.of_stream(0)
    );
    let (strong, from, _) = &mut owners[1];
    strong.fleet.abort(*from);
    let weak = &mut owners[..1];
    let start = Clock::Monotonic.now();
    while hear(weak, &mut into).0 < 10 {
        assert!(
            Clock::Monotonic.now() - start < 60 * SECOND,
            "nobody took over"
        );
    }

    // The control: shared, both are heard.
    let mut shared = Pair::open(&settings(json!({})));
    let second = shared.out.named("p2");
    let topic = shared.out.fleet.advertise(second, "a/b").unwrap();
    let start = Clock::Monotonic.now();
    let mut n = 0;
    while shared.into.seen.of_stream(1).is_empty() || shared.into.seen.of_stream(0).is_empty() {
        assert!(Clock::Monotonic.now() - start < 60 * SECOND);
        shared.send(n..n + 1, 64);
        send_all(&mut shared.out, (second, topic), 1, n..n + 1, 64);
        n += 1;
        shared.into.poll_for(20 * MS);
    }
}

/// Messages taken before a writer is held back, while nobody reads; all of them arrive.
fn taken_before_blocked(high_bytes: u32) -> u32 {
    let mut asked = native(json!({
        "whc-high-bytes": high_bytes, "whc-high-init-bytes": high_bytes, "whc-adaptive": false,
    }));
    asked.queue_limit = Some(50);
    let mut pair = Pair::open(&asked);
    let mut taken = 0;
    // Held back for good, not for a moment.
    let (mut refused, mut in_vain) = (0, 0);
    let told = |pair: &Pair| {
        let changes = pair.out.seen.changes.iter();
        changes.filter(|(_, c)| *c == Change::Writable).count()
    };
    while refused < 200 {
        let before = told(&pair);
        match pair.out.publish(pair.from, pair.topic, 0, taken, 1000) {
            Publish::Accepted => (taken, refused) = (taken + 1, 0),
            Publish::Blocked => {
                refused += 1;
                pair.out.poll_for(MS);
                in_vain += told(&pair) - before;
            }
            Publish::Refused(why) => panic!("{why:?}"),
        }
        assert!(taken < 100_000, "never held back");
    }
    // It is told when there is room, not to try each millisecond.
    assert!(in_vain < 100, "told {in_vain} times");
    let before = told(&pair);
    let start = Clock::Monotonic.now();
    while pair.into.seen.seen.len() < taken as usize || told(&pair) == before {
        assert!(
            Clock::Monotonic.now() - start < 60 * SECOND,
            "not all came, or it was not told of the room"
        );
        pair.both(10 * MS);
    }
    assert_eq!(pair.into.seen.measured(), (0..taken).collect::<Vec<_>>());
    taken
}

#[test]
fn watermarks_hold_the_writer_back() {
    let (low, high) = (taken_before_blocked(20_000), taken_before_blocked(400_000));
    // Messages that are not acknowledged, at some 1100 bytes each, and those in the reader's cache.
    assert!((15..120).contains(&low), "{low}");
    assert!((300..500).contains(&high), "{high}");
}

#[test]
fn a_full_reader_makes_nobody_hear_twice() {
    let mut pair = Pair::with(&settings(json!({"queue-limit": 10})), 3);
    pair.send(0..3, 1000);
    for n in 3..300 {
        while pair.out.publish(pair.from, pair.topic, 0, n, 1000) == Publish::Blocked {
            pair.both(2 * MS);
        }
    }
    let start = Clock::Monotonic.now();
    while pair.into.seen.seen.len() < 900 {
        assert!(Clock::Monotonic.now() - start < 60 * SECOND, "not all came");
        pair.both(20 * MS);
    }
    pair.both(300 * MS);
    assert_eq!(pair.into.seen.seen.len(), 900);
}

#[test]
fn filters_per_level_are_exact() {
    let place = Place::new();
    let settings = settings(json!({}));
    let mut into = open(&settings, &place.target(), 2);
    let to = into.named("s");
    into.subscribe(to, "a/+/c");
    into.subscribe(to, "d/#");
    let mut out = open(&settings, &place.target(), 1);
    let from = out.named("p");
    let topics = [
        "a/b/c", "a/x/c", "d", "d/e/f", "a/b/x/c", "a/c", "a/b/cc", "dd/e",
    ];
    let ids = topics.map(|t| out.fleet.advertise(from, t).unwrap());
    let start = Clock::Monotonic.now();
    while (0..4).any(|n| into.seen.of_stream(n).is_empty()) {
        assert!(
            Clock::Monotonic.now() - start < 60 * SECOND,
            "{:?}",
            into.seen.seen
        );
        for (n, id) in ids.iter().enumerate() {
            send_all(&mut out, (from, *id), n as u32, 0..1, 64);
        }
        into.poll_for(20 * MS);
    }
    into.poll_for(100 * MS);
    for m in &into.seen.seen {
        assert!(m.stream < 4, "{m:?}");
        assert_eq!(m.topic, topics[m.stream as usize]);
    }
}

#[test]
fn an_orderly_end_loses_nothing() {
    let mut pair = Pair::open(&settings(json!({"batching": {"bytes": 8000}})));
    for n in 0..500 {
        while pair.out.publish(pair.from, pair.topic, 0, n, 100) == Publish::Blocked {
            pair.out.poll_for(MS);
        }
    }
    pair.out.fleet.disconnect(pair.from);
    assert_eq!(
        pair.out.publish(pair.from, pair.topic, 0, 500, 100),
        Publish::Refused(Refusal::NotConnected)
    );
    let start = Clock::Monotonic.now();
    while !pair.out.seen.has(pair.from, |c| *c == Change::Closed) {
        assert!(Clock::Monotonic.now() - start < 5 * SECOND, "never closed");
        pair.both(5 * MS);
    }
    assert!(pair.into.poll_until(60 * SECOND, |s| s.seen.len() >= 500));
    assert_eq!(pair.into.seen.measured(), (0..500).collect::<Vec<_>>());
}

#[test]
fn cyclone_takes_every_native_setting() {
    for table in [
        json!({"latency-budget-ms": 5, "transport-priority": -3}),
        json!({"whc-high-bytes": 100_000, "whc-high-init-bytes": 50_000, "whc-low-bytes": 500}),
        json!({"max-message-bytes": 60_000, "fragment-bytes": 50_000}),
        json!({"receive-buffer-bytes": 200_000, "send-buffer-bytes": 100_000}),
        json!({"heartbeat-ms": 20, "nack-delay-ms": 1}),
        json!({"busy-poll-us": 30, "retry-us": 50}),
        json!({"max-samples": 100, "interface": "lo", "peers": "127.0.0.1"}),
        json!({"multicast-mode": "spdp"}),
    ] {
        let mut pair = Pair::open(&native(table.clone()));
        // Best effort: what comes while the reader's thread waits for a processor may find no room.
        let came = (0..10).any(|n| {
            pair.send(20 * n..20 * (n + 1), 5000);
            pair.into.poll_until(SECOND, |s| s.seen.len() >= 20)
        });
        assert!(came, "{table}: {}", pair.into.seen.seen.len());
    }
    let mut pair = Pair::open(&settings(json!({"keep-alive-s": 1})));
    pair.both(4 * SECOND);
    pair.send(0..1, 64);
    assert!(
        pair.into.poll_until(60 * SECOND, |s| !s.seen.is_empty()),
        "the lease ran out"
    );
}

#[test]
fn what_cannot_be_is_said() {
    let place = Place::new();
    let mut rig = open(&settings(json!({})), &place.target(), 1);
    let id = rig.named("c");
    rig.subscribe(id, "a/#");
    let twice = rig
        .fleet
        .subscribe(id, &Subscription::matching("a/b"))
        .unwrap_err();
    assert!(twice.to_string().contains("overlap"), "{twice}");
    assert!(rig.fleet.advertise(id, "a/*").is_err());
    let will = ClientSpec {
        will: Some(Will {
            topic: "t".into(),
            payload: vec![1],
            retain: false,
            qos: None,
            delay_s: 0,
        }),
        ..ClientSpec::default()
    };
    assert!(rig.fleet.connect(&will).is_err());
    let elsewhere = Target {
        endpoints: vec!["dds://localhost/3".into(), "dds://localhost/4".into()],
        ..Target::default()
    };
    assert!(try_open(&settings(json!({})), &elsewhere, 1).is_err());
    let no_such = native(json!({"interface": "nosuch0"}));
    let error = try_open(&no_such, &place.target(), 1).err().unwrap();
    assert!(error.to_string().contains("nosuch0"), "{error}");
}

#[test]
fn writers_with_another_qos_are_counted() {
    let place = Place::new();
    let mut into = open(&settings(json!({})), &place.target(), 2);
    let to = into.named("s");
    into.subscribe(to, "a/b");
    let weak = settings(json!({"reliability": "best-effort"}));
    let mut out = open(&weak, &place.target(), 1);
    let from = out.named("p");
    out.fleet.advertise(from, "a/b").unwrap();
    let start = Clock::Monotonic.now();
    while statistics(&into).incompatible_writers == 0 {
        assert!(Clock::Monotonic.now() - start < 60 * SECOND);
        into.poll_for(20 * MS);
    }
}

#[test]
fn another_domain_hears_nothing() {
    let none = Target::default();
    let url = Target::single("dds://localhost/211");
    // By the endpoint and by the native setting.
    let mut out = open(&native(json!({"domain": 211})), &none, 1);
    let mut same = open(&settings(json!({})), &url, 2);
    let mut other = open(&native(json!({"domain": 212})), &none, 3);
    let from = out.named("p");
    let topic = out.fleet.advertise(from, "a").unwrap();
    for rig in [&mut same, &mut other] {
        let to = rig.named("s");
        rig.subscribe(to, "#");
    }
    let start = Clock::Monotonic.now();
    while same.seen.seen.len() < 20 {
        assert!(Clock::Monotonic.now() - start < 60 * SECOND);
        send_all(&mut out, (from, topic), 0, 0..1, 64);
        same.poll_for(10 * MS);
    }
    other.poll_for(50 * MS);
    assert!(other.seen.seen.is_empty());
}

#[test]
fn a_fleet_by_another_hosts_clock_sleeps_no_longer_than_it_is_asked_to() {
    let near = Clock::Monotonic.now();
    // The other host has been up for ten seconds longer.
    let course = Course {
        near,
        far: near + 10 * SECOND,
        drift: 0.0,
    };
    let asked = FleetConfig {
        clock: Clock::Converted(course),
        ..config(Place::new().target(), settings(json!({})))
    };
    let fleet = CycloneddsDriver.open_fleet(&asked).expect("opens");
    let mut rig = Rig::around(Box::new(fleet), 64);
    let until = asked.clock.now() + 10 * MS;
    rig.poll(until);
    let late = asked.clock.now() - until;
    assert!(late < 5 * SECOND, "{late} ns late");
}
