//! Stored messages that are published again.

use std::path::Path;

use super::*;

/// One collector, whose files are lines that can be read here.
const NAMED: [&str; 4] = ["--name", "c", "--form", "ndjson"];

/// Topics and payloads in their order.
fn stored(data: &Path) -> Vec<[String; 2]> {
    let mut rows = Vec::new();
    for date in data.read_dir().unwrap().map(|entry| entry.unwrap().path()) {
        if !date
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("date=")
        {
            continue;
        }
        let hours = date.read_dir().unwrap().map(|entry| entry.unwrap().path());
        let files = hours.flat_map(|hour| hour.read_dir().unwrap());
        for file in files.map(|entry| entry.unwrap().path()) {
            for line in std::fs::read_to_string(file).unwrap().lines() {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                let text = |key: &str| line[key].as_str().unwrap().to_owned();
                rows.push((line["seq"].as_u64(), [text("topic"), text("payload")]));
            }
        }
    }
    rows.sort();
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Publishes messages of two topics, each of which says its number.
fn publish_numbered(broker: &Mosquitto, count: u32) {
    for nth in 0..count {
        let port = broker.port.to_string();
        let (topic, payload) = (format!("m/{}", nth % 2), format!("{{\"n\": {nth}}}"));
        let mut publisher = Command::new("mosquitto_pub");
        publisher.args(["-p", &port, "-q", "1", "-t", &topic, "-m", &payload]);
        assert!(publisher.status().unwrap().success());
    }
}

#[test]
fn what_one_broker_had_another_one_gets() {
    let (place, first, second) = (new_place(), Mosquitto::start(), Mosquitto::start());
    let collector = start_collecting(&place, &first, "data", 40, &NAMED);
    publish_numbered(&first, 40);
    collector.ends_within(Duration::from_secs(60)).exits(0);
    let sent = stored(&place.path_to("data"));
    assert_eq!(sent.len(), 40);
    let collector = start_collecting(&place, &second, "copy", 40, &NAMED);
    let to = url(&second);
    let line = ["replay", "data", "--to-broker", &to, "--speed", "max"];
    let done = place.run(&line).exits(0);
    assert!(
        done.out
            .starts_with("40 messages published, 40 acknowledged,"),
        "{done:?}"
    );
    collector.ends_within(Duration::from_secs(60)).exits(0);
    assert_eq!(stored(&place.path_to("copy")), sent);
    let one = [&line[..], &["--topic", "m/1", "--json"]].concat();
    let done: serde_json::Value = serde_json::from_str(&place.run(&one).exits(0).out).unwrap();
    assert_eq!(
        (&done["read"], &done["acknowledged"]),
        (&20.into(), &20.into())
    );
    place.is_clean();
}

#[test]
fn ctrl_c_ends_it_in_order_and_says_where_to_go_on() {
    let (place, broker) = (new_place(), Mosquitto::start());
    for _ in 0..3 {
        // Each of a time of its own.
        let collector = start_collecting(&place, &broker, "data", 1, &NAMED);
        publish_numbered(&broker, 1);
        collector.ends_within(Duration::from_secs(60)).exits(0);
    }
    let to = url(&broker);
    // The second message is due in some days.
    let line = [
        "replay",
        "data",
        "--to-broker",
        &to,
        "--speed",
        "0.00000001",
    ];
    let mut replaying = place.start(&line);
    replaying.until_said("1 message published, 1 acknowledged; received at 20");
    replaying.signal(libc::SIGINT);
    let done = replaying.ends_within(Duration::from_secs(60)).exits(2);
    assert!(
        done.out.starts_with("1 message published, 1 acknowledged,")
            && done
                .out
                .contains("ended before its end: it was stopped\n  hint: go on with --from 20"),
        "{done:?}"
    );
    let from = done.out.rsplit("--from ").next().unwrap().trim();
    let line = ["replay", "data", "--to-broker", &to, "--from", from];
    let done = place.run(&line).exits(0);
    assert!(
        done.out
            .starts_with("2 messages published, 2 acknowledged,"),
        "{done:?}"
    );
}

#[test]
fn a_broker_that_is_not_there_and_wrong_input_are_told() {
    let (place, broker) = (new_place(), Mosquitto::start());
    start_collecting(&place, &broker, "data", 1, &NAMED).signal(libc::SIGTERM);
    let nobody = ["replay", "data", "--to-broker", "mqtt://127.0.0.1:1"];
    place.run(&nobody).exits(2).assert_says("127.0.0.1:1");
    for (line, told) in [
        (
            "replay . --to-broker mqtt://127.0.0.1:1",
            "is no data folder of a collector",
        ),
        ("replay data --to-broker http://127.0.0.1", "http"),
        (
            "replay data --to-broker mqtt://127.0.0.1:1 --topic a#",
            "the topic filter \"a#\"",
        ),
        (
            "replay data --to-broker mqtt://127.0.0.1:1 --topic-prefix #/",
            "no topic begins with",
        ),
        (
            "replay data --to-broker mqtt://127.0.0.1:1 --speed 0",
            "--speed 0: is no factor",
        ),
        (
            "replay data --to-broker mqtt://127.0.0.1:1 --from today",
            "--from today: is no time",
        ),
    ] {
        let args = argv(line);
        place.run(&args).exits(3).assert_says(told);
    }
}
