//! System calls, and what crosses an interface, over a real trial: on the reference broker, in a network
//! namespace of the test's own, whose loopback nobody else uses. Needs root and `ip`.

use crate::common;

use std::fs::File;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use common::*;
use pubgauge_testbed::InterfaceCounter;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;

/// 400 messages a second of 100 B on a topic of 8 B, at QoS 0.
const STUDY: &str = r#"
name = "counted"
systems = ["reference-broker"]

[phases]
warm-up = "500ms"
measure = "5s"
drain-quiet = "250ms"
ready-within = "60s"
drain-within = "60s"

[testbed]
count-system-calls = true
count-interface = "lo"

[[settings]]
reliability = "at-most-once"
native.mqtt.version = "3.1.1"

[[workload]]
name = "paced"
flow = [{ pattern = "1-1", topic = "count/me", payload = "100B", rate = "400/s" }]
"#;

/// A network namespace with nothing but loopback; removed when this is dropped.
struct Loopback(String);

impl Loopback {
    fn make(what: &str) -> Loopback {
        let name = format!("pglo-{}-{what}", std::process::id());
        for line in [
            format!("netns add {name}"),
            format!("-n {name} link set lo up"),
        ] {
            let output = Command::new("ip").args(line.split(' ')).output();
            let output = output.expect("this test needs ip (apt install iproute2)");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success(),
                "ip {line} (needs root): {}",
                said.trim()
            );
        }
        Loopback(name)
    }

    /// pubgauge with these arguments, within.
    fn run(&self, place: &Place, args: &[&str]) -> Done {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0]);
        command.arg(program()).args(args);
        place.run_here(&mut command);
        place.finish(command)
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

/// A trial whose counters were read in time, which a busy machine does not always do: five tries.
fn measured(place: &Place, there: &Loopback, study: &str) -> Value {
    let study = place.write("study.toml", study);
    let args = ["run", study.to_str().unwrap(), "--out", "run"];
    let mut tries = (0..5).map(|_| {
        let _ = std::fs::remove_dir_all(place.path_to("run"));
        there.run(place, &args);
        place.trial("run")
    });
    let in_time = |trial: &Value| {
        let late = |of: &Value| of.to_string().contains("read late");
        !late(&trial["interface"]) && !late(&trial["system_calls"])
    };
    tries
        .find(in_time)
        .expect("this machine is too busy for this test")
}

#[test]
fn bytes_and_calls_are_those_of_the_messages() {
    let (place, there) = (Place::new(), Loopback::make("own"));
    let trial = measured(&place, &there, STUDY);
    place.is_clean();
    adds_up(&trial);
    let (interface, calls) = (&trial["interface"], &trial["system_calls"]);
    assert!(interface["not_told"].is_null(), "{interface}");
    let number = |of: &Value, name: &str| count(of, name) as f64;
    let messages = number(&trial, "published");
    assert_eq!(number(interface, "payload_bytes"), 100.0 * messages);

    // PUBLISH: 2 bytes of fixed header, 2 of the topic's length, 8 of topic, 100 of payload. It crosses loopback to the
    // broker and from there. Each packet, also an acknowledgement without data, has 20 B of IPv4 and 32 of TCP with time
    // stamps. On a busy machine two messages share a packet.
    let (publish, headers) = (2.0 + 2.0 + 8.0 + 100.0, 20.0 + 32.0);
    let (bytes, packets) = (number(interface, "bytes"), number(interface, "packets"));
    let by_hand = 2.0 * publish * messages + headers * packets;
    assert!(
        (bytes / by_hand - 1.0).abs() < 0.01,
        "{bytes} B, by hand {by_hand} B"
    );
    // A packet and at most an acknowledgement to the broker and from there.
    assert!(
        (messages..=4.04 * messages).contains(&packets),
        "{packets} of {messages} messages"
    );

    // The publisher sends each message by itself, the broker too, unless the machine is so busy that several wait.
    for side in ["client", "system"] {
        let side = &calls[side];
        let each = |kind| number(side, kind) / messages;
        assert!((0.5..=1.02).contains(&each("sends")), "{calls}");
        // Another read may tell that there is no more.
        assert!((0.5..=2.02).contains(&each("receives")), "{calls}");
        assert!(each("all") >= each("sends") + each("receives"), "{calls}");
        assert_eq!(number(side, "syncs"), 0.0);
    }
    assert!(calls["not_counted"].as_array().unwrap().is_empty());
}

/// One of 40 messages more or less shows: each is counted although the counters are read a moment after the measurement
/// has begun.
#[test]
fn no_message_of_a_seldom_sending_flow_is_left_out() {
    let (place, there) = (Place::new(), Loopback::make("seldom"));
    let study = STUDY.replace("100B", "1000B").replace("400/s", "20/s");
    let trial = measured(&place, &there, &study.replace("= \"5s\"", "= \"2s\""));
    adds_up(&trial);
    let interface = &trial["interface"];
    assert!(interface["not_told"].is_null(), "{interface}");
    assert_eq!(interface["payload_bytes"], 40_000);
    // As above: 12 B of PUBLISH, 52 B for each packet.
    let (bytes, packets) = (count(interface, "bytes"), count(interface, "packets"));
    let by_hand = 2 * 1012 * 40 + 52 * packets;
    assert!(
        bytes.abs_diff(by_hand) < 1000,
        "{bytes} B, by hand {by_hand} B"
    );
}

/// Counts while somebody else sends 100 kB a second over the interface: always, or only while the trial's
/// messages cross it.
fn beside_others(always: bool) -> Value {
    let (place, there) = (Place::new(), Loopback::make("others"));
    let over = Arc::new(AtomicBool::new(false));
    let (until, name) = (over.clone(), there.0.clone());
    let others = std::thread::spawn(move || {
        let lo = InterfaceCounter::open("lo", Some(&name)).unwrap();
        let namespace = File::open(Path::new("/run/netns").join(name)).unwrap();
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap();
        let mut last = lo.read().unwrap();
        while !until.load(Relaxed) {
            // Some 40 kB are the trial's in this time.
            std::thread::sleep(Duration::from_millis(300));
            let now = lo.read().unwrap();
            if always || (now - last).bytes > 20_000 {
                for _ in 0..30 {
                    socket.send_to(&[0; 10_000], to).unwrap();
                    socket.recv(&mut [0; 10_000]).unwrap();
                }
            }
            last = lo.read().unwrap();
        }
    });
    let trial = measured(&place, &there, STUDY);
    over.store(true, Relaxed);
    others.join().unwrap();
    trial["interface"].clone()
}

#[test]
fn what_others_send_over_the_interface_is_not_laid_on_the_trial() {
    for always in [true, false] {
        let interface = beside_others(always);
        let why = interface["not_told"].as_str().unwrap_or_default();
        assert!(why.contains("others sent over lo as well"), "{interface}");
        // In 5 s, less the margins.
        assert!(
            count(&interface, "foreign_bytes") > 1_000_000,
            "{interface}"
        );
    }
}

#[test]
fn where_counting_is_not_allowed_the_run_says_why_and_goes_on() {
    let place = Place::new();
    let study = place.write("study.toml", STUDY);
    let mut command = Command::new("setpriv");
    let without = "-sys_admin,-perfmon";
    command.args(["--bounding-set", without, "--inh-caps", without]);
    command.arg(program()).arg("run").arg(study);
    command.args(["--out", "run", "--set", "testbed.count-interface=none7"]);
    command.args(["--set", "phases.measure=1s"]);
    place.run_here(&mut command);
    let done = place.finish(command);
    let trial = place.trial("run");
    adds_up(&trial);
    for side in ["client", "system"] {
        assert!(
            trial["system_calls"][side].is_null(),
            "{}",
            trial["system_calls"]
        );
    }
    let done = done
        .assert_says("system calls: the client: ")
        .assert_says("root");
    done.assert_says("interface none7: ")
        .assert_says("no such interface");
    place.is_clean();
}
