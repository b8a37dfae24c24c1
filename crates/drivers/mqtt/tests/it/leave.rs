//! A fleet leaves nothing on a real mosquitto when it has been closed.

use crate::common;

use std::process::Command;
use std::time::{Duration, Instant};

use common::*;
use pubgauge_driver::*;

/// Topics with a retained message.
fn retained(broker: &Mosquitto) -> Vec<String> {
    let port = broker.port.to_string();
    let done = Command::new("mosquitto_sub")
        .args(["-p", &port, "-t", "#", "--retained-only", "-W", "1"])
        .args(["-F", "%t"])
        .output()
        .expect("these tests need mosquitto_sub (apt install mosquitto-clients)");
    let mut topics: Vec<_> = String::from_utf8(done.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    topics.sort();
    topics
}

/// Waits until the broker counts `wanted` sessions without a connection: its count lags behind, and
/// a connection that has not named itself yet is subtracted from it.
fn until_sessions(broker: &Mosquitto, what: &str, wanted: impl Fn(i64) -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let [sessions] = broker.counters(["clients/disconnected"]);
        if wanted(sessions) {
            return;
        }
        assert!(Instant::now() < end, "{what}: {sessions} sessions");
    }
}

fn lasting(version: &str) -> Settings {
    Settings {
        last_value: Some(true),
        ..durable(version, Reliability::AtLeastOnce)
    }
}

/// Two durable subscribers, one of which is gone; a publisher with last values; the will of one that
/// vanished.
fn fill(rig: &mut Rig) {
    let stays = rig.named("stays");
    rig.subscribe(stays, "trial/#");
    let gone = rig.named("gone");
    rig.subscribe(gone, "trial/#");
    rig.disconnect(gone);
    let will = Will {
        topic: "trial/will".into(),
        payload: b"gone".to_vec(),
        retain: true,
        qos: None,
        delay_s: 0,
    };
    let mortal = rig.client(&ClientSpec {
        will: Some(will),
        ..Rig::spec("mortal")
    });
    let publisher = rig.named("p");
    for n in 0..3 {
        let topic = rig.fleet.advertise(publisher, &format!("trial/{n}"));
        rig.publish(publisher, topic.unwrap(), n, 16);
    }
    // Advertised, and never published to: whoever's it is, it stays.
    rig.fleet.advertise(publisher, "site/theirs").unwrap();
    rig.until("acknowledged", |s| s.acknowledged.len() == 3);
    rig.fleet.abort(mortal);
    rig.until("the will", |s| {
        s.messages.iter().any(|m| m.topic == "trial/will")
    });
}

#[test]
fn nothing_is_left_after_the_end() {
    for version in ["3.1.1", "5"] {
        let broker = Mosquitto::start();
        let port = broker.port.to_string();
        let theirs = Command::new("mosquitto_pub")
            .args(["-p", &port, "-t", "site/theirs", "-m", "x", "-r"])
            .status()
            .unwrap();
        assert!(theirs.success());
        assert_eq!(retained(&broker), ["site/theirs"]);
        until_sessions(&broker, "before", |n| n == 0);
        let mut rig = on(broker.port, lasting(version));
        fill(&mut rig);
        let during = ["site/theirs", "trial/0", "trial/1", "trial/2", "trial/will"];
        assert_eq!(retained(&broker), during);
        until_sessions(&broker, "the subscriber that went", |n| n >= 1);
        rig.fleet.close(clock::monotonic_now() + 10 * SECOND);
        assert_eq!(rig.fleet.left_behind(), None);
        assert_eq!(retained(&broker), ["site/theirs"], "{version}");
        until_sessions(&broker, version, |n| n == 0);
    }
}

#[test]
fn what_could_not_be_removed_is_told() {
    let broker = Mosquitto::start();
    let mut rig = on(broker.port, lasting("5"));
    fill(&mut rig);
    broker.signal(libc::SIGSTOP);
    rig.fleet.close(clock::monotonic_now() + SECOND / 4);
    let left = rig.fleet.left_behind().expect("something is left");
    broker.signal(libc::SIGCONT);
    assert!(
        left.contains("retained messages (4) and durable sessions (4)"),
        "{left}"
    );
}
