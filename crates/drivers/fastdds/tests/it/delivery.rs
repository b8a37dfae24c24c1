//! Promises of the settings, on the system's Fast DDS.

use crate::common;

use std::time::{Duration, Instant};

use common::{Rig, SECOND, settings, target};
use pubgauge_driver::{Change, ClientSpec, Driver, Publish, Refusal, Target};
use pubgauge_driver_fastdds::FastddsDriver;
use pubgauge_testing::{Datagrams, config, multicast_group};
use serde_json::json;

#[test]
fn a_late_subscriber_gets_the_last_value_and_nothing_older() {
    let scratch = tempfile::tempdir().expect("a folder");
    let settings = settings(json!({"last-value": true}));
    let mut out = Rig::open(&target(&scratch), &settings, 1);
    let (client, topic) = out.publisher("kept/a");
    for n in 0..5 {
        out.send(client, topic, n);
    }
    let mut into = Rig::open(&target(&scratch), &settings, 2);
    into.subscriber("kept/#");
    common::run(&mut out, &mut into, 5 * SECOND, |_, into| {
        !into.got().is_empty()
    });
    common::run(&mut out, &mut into, SECOND / 3, |_, _| false);
    assert_eq!(into.got(), [4]);
    assert_eq!(into.retained(), 1);
    out.send(client, topic, 5);
    common::run(&mut out, &mut into, 5 * SECOND, |_, into| into.count() > 1);
    assert_eq!((into.got(), into.retained()), (vec![4, 5], 1));
}

#[test]
fn without_last_value_a_late_subscriber_gets_nothing_old() {
    // Whether its writer keeps it or not.
    for durability in ["volatile", "transient-local"] {
        let scratch = tempfile::tempdir().expect("a folder");
        let settings = settings(json!({"native": {"fastdds": {"writer-durability": durability}}}));
        let mut out = Rig::open(&target(&scratch), &settings, 1);
        let (client, topic) = out.publisher("kept/a");
        out.send(client, topic, 0);
        let mut into = Rig::open(&target(&scratch), &settings, 2);
        into.subscriber("kept/a");
        common::prove(&mut out, &mut into, client, topic);
        assert!(!into.got().contains(&0), "{:?}", into.got());
        assert_eq!(into.retained(), 0);
    }
}

/// How many of 10 messages arrive at a subscriber that looks 600 ms after they were sent.
fn arrive_after_a_pause(json: serde_json::Value) -> usize {
    let scratch = tempfile::tempdir().expect("a folder");
    let (mut out, mut into, client, topic) = common::pair(&scratch, &settings(json));
    for n in 0..10 {
        out.send(client, topic, n);
    }
    std::thread::sleep(Duration::from_millis(600));
    common::run(&mut out, &mut into, SECOND / 2, |_, _| false);
    into.count()
}

#[test]
fn expired_messages_do_not_arrive_and_others_do() {
    assert_eq!(arrive_after_a_pause(json!({"lifespan-ms": 200})), 0);
    assert_eq!(arrive_after_a_pause(json!({"lifespan-ms": 30_000})), 10);
    assert_eq!(arrive_after_a_pause(json!({})), 10);
}

#[test]
fn a_message_expires_in_a_writers_backlog_too() {
    let scratch = tempfile::tempdir().expect("a folder");
    // 20 kB/s: 100 messages of 1000 bytes would take 5 s.
    let slow = json!({"lifespan-ms": 300, "rate-limit-bytes-per-s": 20_000,
                      "native": {"fastdds": {"flow-period-ms": 100}}});
    let (mut out, mut into, client, topic) = common::pair(&scratch, &settings(slow));
    out.len = 1000;
    for n in 0..100 {
        out.send(client, topic, n);
    }
    common::run(&mut out, &mut into, 6 * SECOND, |_, _| false);
    let got = into.count();
    assert!((1..50).contains(&got), "{got} of 100 arrived");
}

#[test]
fn keep_last_gives_up_what_is_older_and_keep_all_does_not() {
    for (json, expected) in [
        (
            json!({"native": {"fastdds": {"history-depth": 3}}}),
            vec![7, 8, 9],
        ),
        (json!({"conflate": true}), vec![9]),
        (json!({}), (0..10).collect::<Vec<u32>>()),
    ] {
        let scratch = tempfile::tempdir().expect("a folder");
        let (mut out, mut into, client, topic) = common::pair(&scratch, &settings(json.clone()));
        for n in 0..10 {
            out.send(client, topic, n);
        }
        // All have arrived in the reader's history before it is looked at: it has acknowledged them.
        let until = Instant::now() + Duration::from_secs(60);
        while out.fleet().unsettled() > 0 {
            assert!(Instant::now() < until, "not acknowledged: {json}");
            out.poll(1_000_000);
        }
        common::run(&mut out, &mut into, SECOND / 2, |_, _| false);
        assert_eq!(into.got(), expected, "{json}");
    }
}

#[test]
fn in_flight_limits_what_is_not_acknowledged() {
    // The reader turns away what it has no room for, so that no acknowledgement comes.
    let accepted = |json: serde_json::Value| {
        let scratch = tempfile::tempdir().expect("a folder");
        let (mut out, mut into, client, topic) = common::pair(&scratch, &settings(json));
        let mut accepted = 0;
        let mut refused = None;
        for n in 0..500 {
            match out.try_send(client, topic, n) {
                Publish::Accepted => accepted += 1,
                other => {
                    refused = Some(other);
                    // Whatever the reader takes is acknowledged sooner or later.
                    let until = Instant::now() + Duration::from_secs(1);
                    let took = loop {
                        let again = out.try_send(client, topic, n) == Publish::Accepted;
                        match (again, Instant::now() < until) {
                            (true, _) => break true,
                            (false, true) => out.poll(1_000_000),
                            (false, false) => break false,
                        }
                    };
                    if took { accepted += 1 } else { break }
                }
            }
        }
        // And all that was accepted arrives.
        common::run(&mut out, &mut into, 5 * SECOND, |_, into| {
            into.count() as u32 >= accepted
        });
        assert_eq!(into.count() as u32, accepted);
        (accepted, refused)
    };
    let (few, why) = accepted(json!({"in-flight": 8, "queue-limit": 16}));
    assert_eq!((few, why), (24, Some(Publish::Blocked)));
    let (more, _) = accepted(json!({"in-flight": 30, "queue-limit": 100}));
    assert_eq!(more, 130);
    let (few, why) = accepted(json!({"in-flight": 8, "queue-limit": 16, "on-full": "drop"}));
    assert_eq!((few, why), (24, Some(Publish::Refused(Refusal::Dropped))));
}

#[test]
fn a_rate_limit_is_kept() {
    let seconds = |json: serde_json::Value| {
        let scratch = tempfile::tempdir().expect("a folder");
        let (mut out, mut into, client, topic) = common::pair(&scratch, &settings(json));
        out.len = 1000;
        let start = std::time::Instant::now();
        let mut sent = 0;
        while sent < 500 {
            match out.try_send(client, topic, sent) {
                Publish::Accepted => sent += 1,
                _ => common::step(&mut out, &mut into),
            }
        }
        common::run(&mut out, &mut into, 10 * SECOND, |_, into| {
            into.count() >= 500
        });
        assert_eq!(into.got(), (0..500).collect::<Vec<u32>>());
        start.elapsed().as_secs_f64()
    };
    // 500 kB at 200 kB/s; a period's worth goes at once.
    let limited = seconds(json!({"rate-limit-bytes-per-s": 200_000}));
    let twice = seconds(json!({"rate-limit-bytes-per-s": 400_000}));
    let free = seconds(json!({}));
    println!("500 kB: {limited:.2} s at 200 kB/s, {twice:.2} s at 400 kB/s, {free:.2} s without");
    assert!((2.3..3.2).contains(&limited), "{limited} s");
    assert!((1.1..1.7).contains(&twice), "{twice} s");
    assert!(free < 0.6, "{free} s");
}

#[test]
fn higher_priority_overtakes_a_backlog() {
    let order = |priorities: serde_json::Value| {
        let scratch = tempfile::tempdir().expect("a folder");
        let json = json!({"rate-limit-bytes-per-s": 50_000,
                          "native": {"fastdds": priorities}});
        let settings = settings(json);
        let mut out = Rig::open(&target(&scratch), &settings, 1);
        let (bulk, bulk_topic) = out.publisher("bulk/a");
        let (alarm, alarm_topic) = out.publisher("alarm/a");
        let mut into = Rig::open(&target(&scratch), &settings, 2);
        into.subscriber("#");
        common::prove(&mut out, &mut into, bulk, bulk_topic);
        common::prove(&mut out, &mut into, alarm, alarm_topic);
        out.len = 1000;
        for n in 0..100 {
            out.send(bulk, bulk_topic, n);
        }
        for n in 0..5 {
            out.send(alarm, alarm_topic, 1000 + n);
        }
        common::run(&mut out, &mut into, 10 * SECOND, |_, into| {
            into.count() >= 105
        });
        assert_eq!(into.count(), 105, "{:?}", into.got());
        let last_alarm = into.got().iter().rposition(|n| *n >= 1000);
        last_alarm.expect("alarms came")
    };
    let with = order(json!({"priorities": {"alarm/#": 10, "bulk/#": -10}}));
    let against = order(json!({"priorities": {"alarm/#": -10, "bulk/#": 10}}));
    let fifo = order(json!({}));
    println!(
        "last of 5 alarms behind 100 others came as number: high priority {with}, low \
              {against}, fifo {fifo}"
    );
    assert!(
        with < 40,
        "alarms of the highest priority came as late as number {with}"
    );
    assert!(against >= 100 && fifo >= 100, "{against}, {fifo}");
}

#[test]
fn data_sharing_delivers_without_sending_samples() {
    let sent = |sharing: bool| {
        let scratch = tempfile::tempdir().expect("a folder");
        let json = json!({"native": {"fastdds": {"data-sharing": sharing}}});
        let (mut out, mut into, client, topic) = common::pair(&scratch, &settings(json));
        out.len = 10_000;
        let before = out.fleet().wire_bytes().sent;
        for n in 0..100 {
            out.send(client, topic, n);
            common::step(&mut out, &mut into);
        }
        common::run(&mut out, &mut into, 5 * SECOND, |_, into| {
            into.count() >= 100
        });
        assert_eq!(into.got(), (0..100).collect::<Vec<u32>>());
        out.fleet().wire_bytes().sent - before
    };
    let (on, off) = (sent(true), sent(false));
    assert!(off > 1_000_000, "{off} B were sent without data sharing");
    assert!(on < 500_000, "{on} B were sent with data sharing");
}

#[test]
fn a_second_subscription_of_a_client_adds_to_the_first() {
    let scratch = tempfile::tempdir().expect("a folder");
    let settings = settings(json!({}));
    let mut out = Rig::open(&target(&scratch), &settings, 1);
    let (a, topic_a) = out.publisher("two/a");
    let (b, topic_b) = out.publisher("two/b");
    let mut into = Rig::open(&target(&scratch), &settings, 2);
    let reader = into.subscriber("two/a");
    common::prove(&mut out, &mut into, a, topic_a);
    into.subscribe(reader, "two/b");
    // Overlapping: still one copy of each.
    into.subscribe(reader, "two/#");
    common::prove(&mut out, &mut into, b, topic_b);
    for n in 0..10 {
        out.send(a, topic_a, n);
        out.send(b, topic_b, 100 + n);
    }
    common::run(&mut out, &mut into, 5 * SECOND, |_, into| {
        into.count() >= 20
    });
    common::run(&mut out, &mut into, SECOND / 4, |_, _| false);
    assert_eq!(into.count(), 20);
}

#[test]
fn a_client_that_disconnects_delivers_what_it_had_accepted() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (mut out, mut into, client, topic) = common::pair(&scratch, &settings(json!({})));
    for n in 0..300 {
        out.send(client, topic, n);
    }
    out.fleet().disconnect(client);
    assert_eq!(
        out.try_send(client, topic, 0),
        Publish::Refused(Refusal::NotConnected)
    );
    common::run(&mut out, &mut into, 5 * SECOND, |out, into| {
        into.count() >= 300 && out.checked.seen.has(client, |c| *c == Change::Closed)
    });
    assert_eq!(into.count(), 300);
    assert!(out.checked.seen.has(client, |c| *c == Change::Closed));
}

#[test]
fn domains_keep_apart() {
    let scratch = tempfile::tempdir().expect("a folder");
    let in_domain = |n: u32| Target {
        endpoints: vec![format!("dds://localhost/{n}")],
        ..target(&scratch)
    };
    let settings = settings(json!({}));
    let mut out = Rig::open(&in_domain(211), &settings, 1);
    let (client, topic) = out.publisher("a");
    let mut same = Rig::open(&in_domain(211), &settings, 2);
    same.subscriber("a");
    let mut other = Rig::open(&in_domain(212), &settings, 3);
    other.subscriber("a");
    common::prove(&mut out, &mut same, client, topic);
    common::run(&mut out, &mut other, SECOND / 2, |_, _| false);
    assert_eq!(other.all(), 0);
}

#[test]
fn a_domain_other_than_the_endpoints_is_refused() {
    let open = |endpoints: &[&str], domain: u32| {
        let target = Target {
            endpoints: endpoints.iter().map(ToString::to_string).collect(),
            ..Target::default()
        };
        let settings = settings(json!({"native": {"fastdds": {"domain": domain}}}));
        let fleet = FastddsDriver.open(config(target, settings));
        fleet.err().map(|error| error.to_string())
    };
    let why = open(&["dds://localhost/213"], 214).expect("is refused");
    assert!(
        why.contains("native.fastdds.domain is 214, but the endpoint says 213"),
        "{why}"
    );
    let why = open(&["dds://localhost/213", "dds://localhost/214"], 213).expect("is refused");
    assert!(why.contains("several DDS domains"), "{why}");
    let both = ["dds://localhost/213", "dds://127.0.0.1/213"];
    assert_eq!(open(&both, 213), None);
}

#[test]
fn an_address_to_connect_from_is_refused() {
    let scratch = tempfile::tempdir().expect("a folder");
    let mut rig = Rig::open(&target(&scratch), &settings(json!({})), 1);
    let spec = ClientSpec {
        name: "someone".into(),
        source: Some([127, 0, 0, 2].into()),
        ..ClientSpec::default()
    };
    let why = rig.fleet().connect(&spec).expect_err("is refused");
    assert!(
        why.what.contains("someone") && why.what.contains("share"),
        "{why}"
    );
}

#[test]
fn multicast_sends_once_for_many_subscribers() {
    let sent = |multicast: bool| {
        let scratch = tempfile::tempdir().expect("a folder");
        let settings = settings(json!({"multicast": multicast, "reliability": "best-effort"}));
        let mut out = Rig::open(&target(&scratch), &settings, 1);
        let (client, topic) = out.publisher("m/a");
        let mut subscribers: Vec<Rig> = (2..5)
            .map(|worker| {
                let mut into = Rig::open(&target(&scratch), &settings, worker);
                into.subscriber("m/#");
                into
            })
            .collect();
        for into in &mut subscribers {
            common::prove(&mut out, into, client, topic);
        }
        out.len = 10_000;
        let before = out.fleet().wire_bytes().sent;
        for n in 0..50 {
            out.send(client, topic, n);
            for into in &mut subscribers {
                common::step(&mut out, into);
            }
        }
        for into in &mut subscribers {
            common::run(&mut out, into, 2 * SECOND, |_, into| into.count() >= 50);
            assert_eq!(into.count(), 50, "multicast {multicast}");
        }
        out.fleet().wire_bytes().sent - before
    };
    let (many, one) = (sent(false), sent(true));
    println!("50 messages of 10 kB to 3 subscribers: {many} B by unicast, {one} B by multicast");
    assert!(many > 1_500_000, "{many} B");
    assert!(one < 750_000, "{one} B");
}

#[test]
fn a_multicast_datagram_may_cross_as_many_routers_as_the_setting_says() {
    let hops = |asked: serde_json::Value| {
        let heard = Datagrams::listen();
        let scratch = tempfile::tempdir().expect("a folder");
        let place = target(&scratch);
        let native = json!({"fastdds": asked});
        let settings = settings(json!({"multicast": true, "native": native}));
        let mut out = Rig::open(&place, &settings, 1);
        let (client, topic) = out.publisher("m/a");
        let mut subscribers = [2, 3].map(|worker| {
            let mut into = Rig::open(&place, &settings, worker);
            into.subscriber("m/#");
            into
        });
        for into in &mut subscribers {
            common::prove(&mut out, into, client, topic);
        }
        let group = multicast_group(&place);
        (0..500).find_map(|sequence| {
            out.send(client, topic, sequence);
            for into in &mut subscribers {
                common::step(&mut out, into);
            }
            heard.hops_to(group, Duration::from_millis(20))
        })
    };
    assert_eq!(hops(json!({})), Some(1));
    assert_eq!(hops(json!({"multicast-hops": 7})), Some(7));
}
