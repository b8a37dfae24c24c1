//! Promises of the protocol as each broker keeps them, measured by a client that is not
//! the driver's: no other deviations than its file lists. And what its persistent variant keeps.

use crate::common;

use std::collections::BTreeMap;
use std::time::Duration;

use common::port_of;
use common::raw::{Got, Raw};
use common::systems::{one_at_a_time, start, system};
use pubgauge_testbed::{Running, Stopped};

/// How long nothing must come before it counts as nothing.
const SILENCE: Duration = Duration::from_millis(700);
/// How long something that must come may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A subscriber and a publisher of topics that no other check uses.
struct Setup {
    port: u16,
    topic: String,
    found: BTreeMap<&'static str, Vec<String>>,
}

impl Setup {
    fn deviates(&mut self, capability: &'static str, what: String) {
        self.found.entry(capability).or_default().push(what);
    }

    fn connect(&self, name: &str, clean: bool) -> Raw {
        Raw::connect(self.port, name, clean).0
    }

    /// Messages published at each QoS arrive with the lower of their own and the subscription's.
    fn qos(&mut self, highest: u8) {
        for clean in [true, false] {
            let session = if clean { "clean" } else { "durable" };
            for asked in 0..=highest {
                let topic = format!("{}/q{asked}{session}", self.topic);
                let mut subscriber = self.connect(&format!("s{asked}{session}"), clean);
                let granted = subscriber.subscribe(&topic, asked);
                let name = NAMES[usize::from(asked)];
                if granted != asked {
                    self.deviates(
                        name,
                        format!("{session}: QoS {granted} granted for {asked}"),
                    );
                }
                let mut publisher = self.connect(&format!("p{asked}{session}"), true);
                for qos in 0..=highest {
                    publisher.publish(&topic, "m", qos, false);
                    let got = subscriber.receive(1, PATIENCE);
                    let expected = qos.min(asked);
                    if got.len() != 1 {
                        self.deviates(NAMES[usize::from(qos)], format!("{session}: {got:?}"));
                    } else if got[0].qos != expected {
                        let what = format!(
                            "{session}: published at QoS {qos}, subscribed at {asked}, delivered at {}",
                            got[0].qos
                        );
                        self.deviates(NAMES[usize::from(expected.max(got[0].qos))], what);
                    }
                }
                // A message too many would come now.
                let more = subscriber.receive(1, Duration::from_millis(100));
                if !more.is_empty() {
                    self.deviates(name, format!("{session}: delivered again: {more:?}"));
                }
            }
        }
    }

    /// A late subscriber gets the last message that was marked so, with the mark.
    fn last_value(&mut self) {
        let topic = format!("{}/r/x", self.topic);
        let mut publisher = self.connect("rp", true);
        publisher.publish(&topic, "old", 1, true);
        publisher.publish(&topic, "last", 1, true);
        let expected = Got {
            qos: 1,
            retained: true,
            topic: topic.clone(),
            payload: "last".into(),
        };
        for (number, filter) in [&topic, "R/r/+", "R/#"].into_iter().enumerate() {
            let filter = filter.replace('R', &self.topic);
            let mut late = self.connect(&format!("late{number}"), true);
            late.subscribe(&filter, 1);
            let got = late.receive(2, SILENCE);
            match got.as_slice() {
                [one] if *one == expected => {}
                [one] if one.payload == "last" && !one.retained => {
                    self.deviates("last-value", format!("{filter}: not marked: {got:?}"));
                }
                [one] if one.payload == "last" => {
                    self.deviates("last-value", format!("{filter}: {got:?}"));
                }
                _ => self.deviates("last-value", format!("{filter}: got {got:?}")),
            }
        }
    }

    /// Filters match what they should.
    fn filters(&mut self) {
        let base = self.topic.clone();
        let topics = ["a", "a/b", "a/b/c", "a/x/c", "ab"].map(|t| format!("{base}/{t}"));
        let cases: [(&'static str, &str, &[usize]); 4] = [
            ("filter:exact", "a/b", &[1]),
            ("filter:prefix", "a/#", &[0, 1, 2, 3]),
            ("filter:per-level", "a/+/c", &[2, 3]),
            ("filter:per-level", "+/b", &[1]),
        ];
        for (number, (capability, filter, expected)) in cases.into_iter().enumerate() {
            let mut subscriber = self.connect(&format!("f{number}"), true);
            subscriber.subscribe(&format!("{base}/{filter}"), 1);
            let mut publisher = self.connect(&format!("g{number}"), true);
            for topic in &topics {
                publisher.publish(topic, "m", 1, false);
            }
            let got = subscriber.receive(5, SILENCE);
            let mut got: Vec<String> = got.into_iter().map(|g| g.topic).collect();
            got.sort();
            let mut expected: Vec<String> = expected.iter().map(|n| topics[*n].clone()).collect();
            expected.sort();
            if got != expected {
                self.deviates(capability, format!("{filter}: got {got:?}"));
            }
        }
    }

    /// A subscriber that loses its connection before it has answered gets the message again, and at
    /// QoS 2 not once it has said that it has it.
    fn redelivery(&mut self, highest: u8) {
        for (number, recorded) in [(1, false), (2, false), (2, true)] {
            if number > highest {
                continue;
            }
            let (name, topic) = (
                format!("re{number}{recorded}"),
                format!("{}/re", self.topic),
            );
            let mut subscriber = self.connect(&name, false);
            subscriber.subscribe(&topic, number);
            self.connect("rep", true)
                .publish(&topic, "once", number, false);
            let (_, body) = subscriber.until(3);
            let at = 2 + topic.len();
            let id = u16::from_be_bytes([body[at], body[at + 1]]);
            if recorded {
                subscriber.send_id(0x50, id);
                // The server has it once it goes on.
                subscriber.until(6);
            }
            drop(subscriber);
            let (mut subscriber, present) = Raw::connect(self.port, &name, false);
            if !present {
                self.deviates("durable-session", "the session is not announced".into());
            }
            let capability = NAMES[usize::from(number)];
            let next = subscriber.next(Duration::from_secs(5));
            let kind = next.as_ref().map(|(first, _)| first >> 4);
            let expected = if recorded { 6 } else { 3 };
            if kind != Some(expected) {
                let what = format!("after a lost connection: {kind:?} instead of {expected}");
                self.deviates(capability, what);
            }
            // In order, so that nothing of it meets the next check.
            let mut clean = self.connect(&name, true);
            clean.receive(1, Duration::from_millis(50));
        }
    }

    /// A message at QoS 2 whose handshake was cut off and is taken up again is delivered once.
    fn resent(&mut self) {
        let topic = format!("{}/resent", self.topic);
        for recorded in [false, true] {
            let name = format!("resent{recorded}");
            let mut subscriber = self.connect(&format!("s{name}"), true);
            subscriber.subscribe(&topic, 2);
            let mut publisher = self.connect(&name, false);
            publisher.publish_2(&topic, "once", 7, false);
            publisher.until(5);
            drop(publisher);
            let mut publisher = self.connect(&name, false);
            if !recorded {
                // As if the answer had not come.
                publisher.publish_2(&topic, "once", 7, true);
                let answer = publisher.next(Duration::from_secs(5));
                if !matches!(answer, Some((0x50, _))) {
                    let what = format!("a PUBLISH that was sent again was answered by {answer:?}");
                    self.deviates("reliability:exactly-once", what);
                }
            }
            publisher.send_id(0x62, 7);
            publisher.until(7);
            let got = subscriber.receive(2, SILENCE);
            if got.len() != 1 {
                let what = format!("handshake taken up again: delivered {} times", got.len());
                self.deviates("reliability:exactly-once", what);
            }
        }
    }

    /// A durable session keeps its subscription and what it missed.
    fn durable(&mut self) {
        let topic = format!("{}/d", self.topic);
        let mut subscriber = self.connect("durable", false);
        subscriber.subscribe(&topic, 1);
        subscriber.disconnect();
        self.connect("dp", true).publish(&topic, "missed", 1, false);
        let mut subscriber = self.connect("durable", false);
        let got = subscriber.receive(1, PATIENCE);
        if !matches!(got.as_slice(), [one] if one.payload == "missed") {
            self.deviates("durable-session", format!("got {got:?}"));
        }
    }
}

const NAMES: [&str; 3] = [
    "reliability:at-most-once",
    "reliability:at-least-once",
    "reliability:exactly-once",
];

/// Compares what is measured with what the file says.
fn keeps_its_promises(name: &str) {
    let _one = one_at_a_time();
    let scratch = tempfile::tempdir().unwrap();
    let running = start(name, None, scratch.path());
    let file = system(name);
    let mut setup = Setup {
        port: port_of(&running),
        topic: "promise".into(),
        found: BTreeMap::new(),
    };
    let no_qos_2 = file.features.iter().any(|f| f == "no-qos-2");
    let highest = if no_qos_2 { 1 } else { 2 };
    setup.qos(highest);
    setup.redelivery(highest);
    if !no_qos_2 {
        setup.resent();
    }
    setup.last_value();
    setup.filters();
    setup.durable();
    // That what is listed as a deviation really shows is tested with the conformance suite.
    let told =
        |name: &&str| file.deviations.contains_key(*name) || file.remarks.contains_key(*name);
    let untold: Vec<&str> = setup.found.keys().copied().filter(|n| !told(n)).collect();
    assert!(untold.is_empty(), "{name}, measured: {:#?}", setup.found);
    let gone = file
        .remarks
        .keys()
        .find(|r| !setup.found.contains_key(r.as_str()));
    assert_eq!(gone, None, "{name} no longer does so: remove the remark");
}

/// Whether the session of an absent subscriber and its message are there after `down`, which comes
/// `later` than the acknowledgement, and a new start.
fn survives(
    name: &str,
    variant: Option<&str>,
    later: Duration,
    down: fn(&mut Running) -> Stopped,
) -> bool {
    let scratch = tempfile::tempdir().unwrap();
    let mut running = start(name, variant, scratch.path());
    let port = port_of(&running);
    let (mut subscriber, _) = Raw::connect(port, "absent", false);
    subscriber.subscribe("kept/t", 1);
    subscriber.disconnect();
    Raw::connect(port, "p", true)
        .0
        .publish("kept/t", "kept", 1, false);
    std::thread::sleep(later);
    down(&mut running);
    running.restart().unwrap();
    let (mut subscriber, present) = Raw::connect(port, "absent", false);
    let got = subscriber.receive(1, SILENCE);
    let kept = matches!(got.as_slice(), [one] if one.payload == "kept");
    assert_eq!(kept, !got.is_empty(), "{name}: {got:?}");
    // Some servers never announce a session.
    let silent = ["activemq", "apollo"].contains(&name);
    assert_eq!(present, kept && !silent, "{name}: half a session");
    kept
}

fn persists(name: &str, variant: Option<&str>) {
    let _one = one_at_a_time();
    assert!(survives(name, variant, SOON, Running::halt), "after a stop");
    // Acknowledged messages were written by then, so a crash does not lose them either.
    assert!(
        survives(name, variant, SOON, Running::kill),
        "after a crash"
    );
}

const SOON: Duration = Duration::ZERO;

#[test]
fn activemq_keeps_its_promises() {
    keeps_its_promises("activemq");
}

#[test]
fn artemis_keeps_its_promises() {
    keeps_its_promises("artemis");
}

#[test]
fn apollo_keeps_its_promises() {
    keeps_its_promises("apollo");
}

#[test]
fn hivemq_keeps_its_promises() {
    keeps_its_promises("hivemq");
}

#[test]
fn nats_keeps_its_promises() {
    keeps_its_promises("nats:mqtt");
}

#[test]
fn mosquitto_keeps_its_promises() {
    keeps_its_promises("mosquitto");
}

#[test]
fn activemq_persists() {
    persists("activemq", Some("persistent"));
}

#[test]
fn artemis_persists() {
    persists("artemis", Some("persistent"));
}

#[test]
fn apollo_persists_a_little_later() {
    let _one = one_at_a_time();
    let variant = Some("persistent");
    assert!(survives("apollo", variant, SOON, Running::halt));
    // It acknowledges first and writes within a second or so.
    let later = Duration::from_secs(3);
    assert!(survives("apollo", variant, later, Running::kill));
}

#[test]
fn hivemq_persists() {
    persists("hivemq", Some("persistent"));
}

#[test]
fn nats_persists() {
    persists("nats:mqtt", None);
}

#[test]
fn what_is_in_memory_does_not_survive() {
    let _one = one_at_a_time();
    for name in ["mosquitto", "activemq", "artemis", "apollo", "hivemq"] {
        assert!(
            !survives(name, Some("memory"), SOON, Running::kill),
            "{name}"
        );
    }
}
