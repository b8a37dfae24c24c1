//! Messages that a broker has acknowledged to their publishers and loses: a canary and the publishers' own numbers tell it.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::*;

/// Publishes numbered payloads, and returns once the broker has acknowledged all of them.
fn publish_numbers(broker: &Mosquitto, numbers: std::ops::Range<u32>) {
    let port = broker.port.to_string();
    let mut command = Command::new("mosquitto_pub");
    command.args(["-p", &port, "-q", "1", "-t", "m/1", "-l"]);
    let mut publisher = command
        .stdin(Stdio::piped())
        .spawn()
        .expect("these tests need mosquitto_pub (apt install mosquitto-clients)");
    let lines: String = numbers.map(|n| format!("{{\"n\":{n}}}\n")).collect();
    let mut input = publisher.stdin.take().unwrap();
    input.write_all(lines.as_bytes()).unwrap();
    drop(input);
    assert!(publisher.wait().unwrap().success());
}

/// A figure of the only broker.
fn figure(address: &str, name: &str) -> u64 {
    let metrics = get(address, "/metrics");
    let line = metrics
        .lines()
        .find(|line| line.starts_with(&format!("{name}{{")));
    let value = line.and_then(|line| line.rsplit(' ').next());
    value.map_or(0, |value| value.parse().unwrap())
}

/// The alert rules of the documentation ask for figures that are there.
fn every_alert_has_its_figure(metrics: &str) {
    let rules = std::fs::read_to_string(repository("docs/collect-alerts.yaml")).unwrap();
    let is_part = |c: char| c.is_ascii_lowercase() || c == '_';
    let words = rules.split(|c| !is_part(c));
    let names: Vec<&str> = words
        .filter(|word| word.starts_with("pubgauge_collect_"))
        .collect();
    assert!(names.len() >= 10, "{names:?}");
    for name in names {
        let is_it = |line: &str| line.split(['{', ' ']).next() == Some(name);
        assert!(metrics.lines().any(is_it), "no figure {name}");
    }
}

const ACKNOWLEDGED: &str = "pubgauge_collect_canary_acknowledged_messages_total";
const DELIVERED: &str = "pubgauge_collect_canary_delivered_messages_total";
const LOST: &str = "pubgauge_collect_canary_lost_messages_total";

/// mosquitto keeps what it has acknowledged in memory, and writes it to its disk from time to time. Killed in between, it
/// still has the session, and what was in it is gone.
#[test]
fn what_a_killed_broker_had_acknowledged_and_lost_is_told() {
    let mut broker = Mosquitto::start_with(
        "allow_anonymous true\npersistence true\npersistence_location {dir}/\nmax_inflight_messages 1",
    );
    let place = new_place();
    // One message in each commit: what is published quickly waits at the broker.
    let config = format!(
        "brokers = [{:?}]\ntopics = [\"m/#\"]\nto = \"data\"\nname = \"c\"\nlisten = \"0\"\n[log]\ncommit-every = \"20ms\"\n[canary]\nevery = \"100ms\"\n",
        url(&broker)
    );
    place.write("collect.toml", config);
    let mut collector = place.start(&["--config", "collect.toml"]);
    collector.until_said("connected, with a new session");
    let address = listens_at(&collector.said_so_far()).unwrap();
    collector.until("a canary", || figure(&address, DELIVERED) > 0);
    assert!(get(&address, "/health").starts_with("HTTP/1.1 200"));
    // It writes the session to its disk.
    broker.restart();
    collector.until_said("connected, with the session from before");
    publish_numbers(&broker, 1..3001);
    collector.until("canaries behind the messages", || {
        figure(&address, ACKNOWLEDGED) >= figure(&address, DELIVERED) + 2
    });
    broker.kill();
    let before = figure(&address, DELIVERED);
    broker.restart();
    publish_numbers(&broker, 3001..3011);
    collector.until("canaries again", || figure(&address, DELIVERED) > before);
    // Those that a later one has overtaken are waited for, which takes ten seconds.
    collector.until("lost canaries", || figure(&address, LOST) >= 2);
    every_alert_has_its_figure(&get(&address, "/metrics"));
    let health = get(&address, "/health");
    assert!(health.starts_with("HTTP/1.1 503"), "{health}");
    assert!(health.contains("has acknowledged and lost"), "{health}");
    collector.until("the last message", || {
        get(&address, "/metrics").contains("lag_seconds 0\n")
    });
    collector.signal(libc::SIGTERM);
    let done = collector.ends_within(Duration::from_secs(60)).exits(2);
    assert!(
        done.out
            .contains("of the collector's own acknowledged and lost"),
        "{done:?}"
    );
    assert!(
        done.err.contains("the broker has acknowledged and lost"),
        "{done:?}"
    );
    assert!(
        !done.err.contains("the broker has lost the session"),
        "{done:?}"
    );

    // All that the collector has acknowledged is there.
    let found = place.run(&["verify", "data"]).exits(0);
    assert!(found.out.ends_with("everything is as it was written\n"));
    // Messages that the publisher had acknowledged are not.
    let verify = ["verify", "data", "--sequence", "/n"];
    let found = place.run(&verify).exits(1);
    assert!(found.out.contains("\n  m/1: "), "{found:?}");
    let json = place.run(&[&verify[..], &["--json"]].concat()).exits(1);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    let sequence = &json["sequence"];
    let of = |name: &str| sequence[name].as_u64().unwrap();
    assert_eq!(of("numbers") + of("missing"), 3010, "{sequence}");
    assert!(of("missing") > 0 && of("unnumbered") == 0, "{sequence}");
    let lost = &sequence["gaps"][0]["ranges"][0];
    assert_eq!(lost[1], 3000, "{sequence}");
}

/// Where nobody publishes what is asked for, and where nothing is missing.
#[test]
fn numbers_without_gaps_are_told_and_numbers_that_are_none_too() {
    let broker = Mosquitto::start();
    let place = new_place();
    for data in ["one", "two"] {
        let collector = start_collecting(&place, &broker, data, 10, &[]);
        let first = if data == "one" { 0 } else { 10 };
        publish_numbers(&broker, first..first + 10);
        collector.ends_within(Duration::from_secs(60)).exits(0);
    }
    let verify = |rest: &[&str]| place.run(&[&["verify"][..], rest].concat());
    let both = verify(&["one", "two", "--sequence", "/n"]).exits(0);
    let says = "20 numbers in payloads, of 1 count: 0 missing, 0 more than once; 0 messages without a number\n";
    assert!(both.out.contains(says), "{both:?}");
    let none = verify(&["one", "--sequence", "/m"]).exits(2);
    assert!(
        none.out.contains("10 messages without a number"),
        "{none:?}"
    );
    let wrong = verify(&["one", "--sequence", "m"]).exits(3);
    assert!(wrong.err.contains("`m` is no JSON Pointer"), "{wrong:?}");
    let unclear = verify(&["one", "--by", "/n"]).exits(3);
    assert!(unclear.err.contains("--sequence"), "{unclear:?}");
}
