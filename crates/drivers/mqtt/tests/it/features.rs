//! Features of MQTT that the driver offers, beside those that `pubgauge check` shows, seen working
//! on real mosquitto, and on the reference broker what that has. A test here fails if the server
//! does not do what the setting says.

use crate::common;

use std::io::{self, BufRead, BufReader};
use std::time::Duration;

use common::*;
use pubgauge_driver::*;

#[test]
fn a_late_subscriber_gets_the_last_value_unless_it_asks_for_none() {
    on_both(last_value);
}

fn last_value(port: u16) {
    // `pubgauge check` shows it with MQTT 5.
    let settings = Settings {
        last_value: Some(true),
        ..reliable("3.1.1", Reliability::AtLeastOnce)
    };
    let mut rig = on(port, settings);
    let p = rig.named("p");
    let topic = rig.fleet.advertise(p, "last").unwrap();
    for sequence in 0..3 {
        rig.publish(p, topic, sequence, 16);
    }
    rig.until("acknowledged", |s| s.acknowledged.len() == 3);
    let s = rig.named("s");
    rig.subscribe(s, "last");
    rig.until("the last value", |s| s.delivered > 0);
    rig.poll_for(Duration::from_millis(100));
    assert_eq!(rig.sequences(s), [2]);
    assert!(rig.seen.messages[0].retained);
    // And a live one comes without the mark.
    rig.publish(p, topic, 3, 16);
    rig.until("the next", |s| s.delivered == 2);
    assert!(!rig.seen.messages[1].retained);
    // Retain Handling 2 of MQTT 5: none of the old.
    let mut settings = reliable("5", Reliability::AtMostOnce);
    native(&mut settings, "retain-handling", 2.into());
    let mut rig = on(port, settings);
    let late = rig.named("late");
    rig.subscribe(late, "last");
    rig.poll_for(Duration::from_millis(200));
    assert_eq!(rig.seen.delivered, 0);
}

#[test]
fn a_will_is_published_after_an_abort_and_not_after_an_orderly_end() {
    on_both(will);
}

fn will(port: u16) {
    for version in ["3.1.1", "5"] {
        let mut rig = on(port, common::version(version));
        let s = rig.named("s");
        rig.subscribe(s, "will/#");
        let spec = |name: &str| ClientSpec {
            will: Some(Will {
                topic: format!("will/{name}"),
                payload: head(9).to_vec(),
                retain: false,
                qos: None,
                delay_s: 0,
            }),
            ..Rig::spec(name)
        };
        let orderly = rig.client(&spec("orderly"));
        let crashed = rig.client(&spec("crashed"));
        rig.disconnect(orderly);
        rig.fleet.abort(crashed);
        rig.until("the will", |s| s.delivered > 0);
        rig.poll_for(Duration::from_millis(200));
        assert_eq!(rig.seen.messages.len(), 1);
        assert_eq!(rig.seen.messages[0].topic, "will/crashed");
        assert!(rig.seen.failed.is_empty());
    }
}

/// A subscriber that was away gets what came meanwhile, and a publisher's unacknowledged messages
/// arrive once each, although connections are dropped in the middle.
#[test]
fn a_durable_session_loses_nothing_when_connections_are_dropped() {
    on_both(durable_session);
}

fn durable_session(port: u16) {
    for version in ["3.1.1", "5"] {
        let settings = durable(version, Reliability::ExactlyOnce);
        let mut subscriber = on(port, settings.clone());
        let s = subscriber.named(&format!("s{version}"));
        subscriber.subscribe(s, "durable");
        let mut publisher = on(port, settings);
        let p = publisher.named(&format!("p{version}"));
        let topic = publisher.fleet.advertise(p, "durable").unwrap();
        let mut next = 0;
        for round in 0..20u64 {
            for _ in 0..15 {
                publisher.publish(p, topic, next, 64);
                next += 1;
            }
            // Drops one side or the other at an arbitrary point of the handshakes.
            publisher.poll_for(Duration::from_micros(round * 100));
            subscriber.poll_for(Duration::from_micros(round * 50));
            if round % 2 == 0 {
                publisher.fleet.abort(p);
                publisher.fleet.reconnect(p).unwrap();
                let n = publisher.seen.connected.len();
                publisher.until("connected again", |s| s.connected.len() > n);
                assert_eq!(
                    publisher.seen.connected[n],
                    (0, true),
                    "the session is there"
                );
            } else {
                subscriber.fleet.abort(s);
                subscriber.poll_for(Duration::from_millis(1));
                subscriber.fleet.reconnect(s).unwrap();
            }
        }
        publisher.until("all acknowledged", |s| s.acknowledged.len() as u64 == next);
        assert_eq!(publisher.fleet.unsettled(), 0);
        subscriber.until("all delivered", |s| s.delivered as u64 >= next);
        subscriber.poll_for(Duration::from_millis(100));
        let mut got = subscriber.sequences(s);
        got.sort_unstable();
        assert!(got.into_iter().eq(0..next), "{version}: each once");
    }
}

#[test]
fn a_durable_session_outlives_the_broker_if_it_has_persistence() {
    let mut broker = Mosquitto::start_with(
        "allow_anonymous true\npersistence true\npersistence_location {dir}/",
    );
    let mut rig = on(broker.port, durable("5", Reliability::AtLeastOnce));
    let s = rig.named("s");
    rig.subscribe(s, "kept");
    rig.disconnect(s);
    let p = rig.named("p");
    let topic = rig.fleet.advertise(p, "kept").unwrap();
    for n in 0..10 {
        rig.publish(p, topic, n, 16);
    }
    rig.until("acknowledged", |s| s.acknowledged.len() == 10);
    broker.restart();
    rig.until("the publisher notices", |s| s.failed.len() == 1);
    rig.fleet.reconnect(s).unwrap();
    rig.until("connected again", |s| s.connected.len() == 3);
    assert_eq!(rig.seen.connected[2], (0, true));
    rig.until("all delivered", |s| s.delivered == 10);
    assert!(rig.sequences(s).into_iter().eq(0..10));
}

#[test]
fn without_persistence_the_session_is_gone_and_said_to_be() {
    let mut broker = Mosquitto::start();
    let mut rig = on(broker.port, durable("3.1.1", Reliability::AtLeastOnce));
    let s = rig.named("s");
    rig.subscribe(s, "lost");
    broker.kill();
    rig.until("failed", |s| s.failed.len() == 1);
    assert!(
        rig.seen.failed[0].1.contains("hint:"),
        "{:?}",
        rig.seen.failed
    );
    rig.fleet.reconnect(s).unwrap();
    rig.until("failed again", |s| s.failed.len() == 2);
    assert!(
        rig.seen.failed[1].1.contains("connection refused"),
        "{:?}",
        rig.seen.failed
    );
}

/// An independent subscriber sees the user properties and the whole topic behind an alias.
#[test]
fn user_properties_and_aliases_reach_another_client() {
    on_both(properties_and_aliases);
}

fn properties_and_aliases(port: u16) {
    let mut settings = common::version("5");
    settings.user_properties = Some([("place".to_owned(), "hall 7".to_owned())].into());
    native(&mut settings, "topic-alias", 5.into());
    // Line by line, although into a pipe.
    let mut other = std::process::Command::new("stdbuf")
        .args([
            "-oL",
            "mosquitto_sub",
            "-p",
            &port.to_string(),
            "-V",
            "5",
            "-t",
            "site/#",
            "-C",
            "4",
            "-W",
            "10",
        ])
        .args(["-d", "-F", "%t|%P|%l"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("these tests need mosquitto_sub (apt install mosquitto-clients)");
    // It tells what it does (-d): from its subscription on it hears everything.
    let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
    let subscribed = |line: io::Result<String>| line.unwrap().starts_with("Subscribed (mid: ");
    assert!(lines.any(subscribed), "it is not subscribed");
    let mut rig = on(port, settings);
    let p = rig.named("p");
    let a = rig.fleet.advertise(p, "site/a").unwrap();
    let b = rig.fleet.advertise(p, "site/b").unwrap();
    for topic in [a, b, a, b] {
        rig.publish(p, topic, 0, 40);
    }
    rig.poll_for(Duration::from_millis(50));
    let told = lines.map(Result::unwrap).filter(|l| l.starts_with("site/"));
    let told: Vec<String> = told.collect();
    other.wait().unwrap();
    let line = |topic: &str| format!("{topic}|place:hall 7|40");
    let expected = ["site/a", "site/b", "site/a", "site/b"].map(line);
    assert_eq!(told, expected);
}

/// Each message comes with the identifier of its subscription: the driver ends a connection on which one does not.
#[test]
fn subscription_identifiers_come_with_each_message() {
    on_both(|port| {
        for reliability in [Reliability::AtMostOnce, Reliability::ExactlyOnce] {
            let mut settings = reliable("5", reliability);
            native(&mut settings, "subscription-identifier", 300.into());
            let mut rig = on(port, settings);
            let s = rig.named("s");
            rig.subscribe(s, "identified/#");
            rig.subscribe_shared(s, "shared/+", Some("g"));
            let p = rig.named("p");
            for name in ["identified/a", "shared/a"] {
                let topic = rig.fleet.advertise(p, name).unwrap();
                rig.publish(p, topic, 0, 40);
            }
            rig.until("both", |seen| seen.delivered == 2);
            assert!(rig.seen.failed.is_empty(), "{:?}", rig.seen.failed);
        }
    });
}

/// 3.1.1 has no groups, but both brokers have; with MQTT 5 `pubgauge check` shows it.
#[test]
fn a_group_shares_the_messages_under_3_1_1_too() {
    on_both(group);
}

fn group(port: u16) {
    let mut rig = on(port, reliable("3.1.1", Reliability::AtLeastOnce));
    let members = ["a", "b"].map(|name| rig.named(name));
    for member in members {
        rig.subscribe_shared(member, "work/+", Some("g"));
    }
    let p = rig.named("p");
    let topic = rig.fleet.advertise(p, "work/1").unwrap();
    for n in 0..200 {
        rig.publish(p, topic, n, 16);
    }
    rig.until("all delivered", |s| s.delivered == 200);
    let [a, b] = members.map(|member| rig.sequences(member));
    assert!(!a.is_empty() && !b.is_empty(), "both get some");
    let mut both = [a, b].concat();
    both.sort_unstable();
    assert!(both.into_iter().eq(0..200), "each to exactly one");
}

#[test]
fn two_thousand_connections_from_several_addresses() {
    on_both(many_connections);
}

fn many_connections(port: u16) {
    let mut rig = on(port, reliable("5", Reliability::AtLeastOnce));
    let count = 2000;
    let mut ids = Vec::new();
    for n in 0..count {
        let spec = ClientSpec {
            source: Some(format!("127.0.0.{}", 2 + n % 3).parse().unwrap()),
            ..Rig::spec(&format!("c{n}"))
        };
        ids.push(rig.fleet.connect(&spec).unwrap());
        if n % 100 == 99 {
            rig.until("connected", |s| s.connected.len() == n + 1);
        }
    }
    for id in &ids {
        let subscription = Subscription::matching(format!("to/{}", id.0));
        rig.fleet.subscribe(*id, &subscription).unwrap();
    }
    rig.until("subscribed", |s| s.subscribed.len() == count);
    for id in &ids {
        let to = (id.0 + 1) % count as u32;
        let topic = rig.fleet.advertise(*id, &format!("to/{to}")).unwrap();
        rig.publish(*id, topic, u64::from(to), 16);
    }
    rig.until("all delivered", |s| s.delivered == count);
    rig.until("all acknowledged", |s| s.acknowledged.len() == count);
    for m in &rig.seen.messages {
        assert_eq!(u64::from(m.client), sequence(&m.payload));
    }
    assert!(rig.seen.failed.is_empty());
    rig.fleet.close(clock::monotonic_now() + 5 * SECOND);
}

#[test]
fn a_limit_on_connections_is_told() {
    let broker = Mosquitto::start_with("allow_anonymous true\nmax_connections 2");
    let mut rig = on(broker.port, common::version("5"));
    for n in 0..4 {
        rig.fleet.connect(&Rig::spec(&format!("c{n}"))).unwrap();
    }
    // mosquitto lets one too many in when the test's own first look at its port has just ended.
    rig.until("some are in, some are not", |s| {
        s.connected.len() >= 2 && !s.failed.is_empty() && s.connected.len() + s.failed.len() == 4
    });
    assert!(
        rig.seen.failed[0].1.contains("hint:"),
        "{:?}",
        rig.seen.failed
    );
}
