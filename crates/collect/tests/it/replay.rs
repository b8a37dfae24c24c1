//! Stored messages reach another broker as they reached the first one.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pubgauge_collect::config::Mqtt;
use pubgauge_collect::files::partition_files;
use pubgauge_collect::replay::{ReplayOptions, ReplayTarget, Replayed, replay};
use pubgauge_driver::Tls;
use pubgauge_driver::{Reliability, Secret};
use pubgauge_mqtt_codec::{
    Ack, ConnAck, Packet, PropertiesBuf, Property, ReasonCode, Version, decode,
};
use serde_json::Value;

use crate::common::*;
use crate::delivery::mosquitto_pub;

/// Stored messages without what differs each time they are collected, by their numbers.
fn lines(data: &Path) -> Vec<Value> {
    let mut all = Vec::new();
    for path in partition_files(data).unwrap() {
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let mut line: Value = serde_json::from_str(line).unwrap();
            let fields = line.as_object_mut().unwrap();
            let seq = fields["seq"].as_u64().unwrap();
            for own in ["received", "received_ns", "seq", "broker", "dup"] {
                fields.remove(own);
            }
            all.push((seq, line));
        }
    }
    all.sort_by_key(|(seq, _)| *seq);
    all.into_iter().map(|(_, line)| line).collect()
}

fn replayed(data: &Path, broker: &Broker, mqtt: Mqtt, options: &ReplayOptions) -> Replayed {
    let target = ReplayTarget::parse(&broker.url(), Tls::default(), None, mqtt).unwrap();
    let stop = AtomicBool::new(false);
    replay(data, &target, options, &stop, &mut |_, _| {}).unwrap()
}

const RETAINED: [&str; 26] = [
    "-V",
    "5",
    "-D",
    "publish",
    "content-type",
    "text/plain",
    "-D",
    "publish",
    "user-property",
    "k",
    "v",
    "-D",
    "publish",
    "response-topic",
    "answers",
    "-D",
    "publish",
    "correlation-data",
    "c",
    "-t",
    "t/properties",
    "-m",
    "words",
    "-r",
    "-q",
    "1",
];

fn settings(form: &str, topics: &str, name: &str) -> String {
    format!(
        "topics = [{topics:?}]\nform = {form:?}\nname = {name:?}\nlog.segment = \"1MiB\"\n[files]\npartition = [\"kind={{topic level 2}}\", \"date\"]"
    )
}

/// Collects 900 messages of four topics and a retained one from a broker, as Parquet and as NDJSON.
fn collected(place: &Path) -> [std::path::PathBuf; 2] {
    let broker = Broker::start();
    mosquitto_pub(&broker, &RETAINED);
    let both = ["parquet", "ndjson"].map(|form| {
        let data = place.join(form);
        let config = config(&data, &[broker.url()], &settings(form, "t/#", form));
        let collecting = Collecting::begin(config);
        collecting.connected(1);
        (data, collecting)
    });
    let mut publisher = Publisher::on(&broker, Reliability::AtLeastOnce);
    for nth in 0..12 {
        publisher.publish(&format!("t/{}", nth % 4), 75, 4000);
    }
    both.map(|(data, collecting)| {
        collecting.stored(901);
        assert!(collecting.end().complete);
        data
    })
}

#[test]
fn messages_reach_another_broker_as_they_reached_the_first() {
    let place = tempfile::tempdir().unwrap();
    let [parquet, ndjson] = collected(place.path());
    let sent = lines(&ndjson);
    assert_eq!(sent.len(), 901);
    let second = Broker::start();
    let rounds = [
        (&parquet, Mqtt::V5),
        (&ndjson, Mqtt::V5),
        (&ndjson, Mqtt::V311),
    ];
    for (nth, (data, mqtt)) in rounds.into_iter().enumerate() {
        let copy = place.path().join("copy");
        // The retained one of the round before is none of this one.
        mosquitto_pub(&second, &["-t", "copy/t/properties", "-n", "-r", "-q", "1"]);
        let begin = |name: &str| {
            let rest = settings("ndjson", "copy/t/#", name);
            let collecting = Collecting::begin(config(&copy, &[second.url()], &rest));
            collecting.connected(1);
            collecting
        };
        let collecting = begin(&format!("copy-{nth}"));
        let options = ReplayOptions {
            topic_prefix: "copy/".into(),
            ..ReplayOptions::default()
        };
        let done = replayed(data, &second, mqtt, &options);
        let expected = Replayed {
            read: 901,
            published: 901,
            acknowledged: 901,
            ..Replayed::default()
        };
        assert_eq!(done, expected);
        collecting.stored(901);
        collecting.end();
        let mut expected = sent.clone();
        for line in &mut expected {
            let fields = line.as_object_mut().unwrap();
            fields["topic"] = format!("copy/{}", fields["topic"].as_str().unwrap()).into();
            if mqtt == Mqtt::V311 {
                fields.remove("properties");
                fields.remove("content_type");
            }
        }
        assert!(lines(&copy) == expected, "{} {mqtt:?}", data.display());
        std::fs::remove_dir_all(&copy).unwrap();
        // It is retained there, too.
        let collecting = begin(&format!("after-{nth}"));
        collecting.stored(1);
        collecting.end();
        assert_eq!(lines(&copy)[0]["retain"], true);
        std::fs::remove_dir_all(&copy).unwrap();
    }
}

#[test]
fn topics_and_times_are_chosen_and_files_that_are_damaged_or_gone_are_told() {
    let place = tempfile::tempdir().unwrap();
    let [data, _] = collected(place.path());
    let broker = Broker::start();
    let acknowledged =
        |options: &ReplayOptions| replayed(&data, &broker, Mqtt::V5, options).acknowledged;
    let of = |filters: &[&str]| ReplayOptions {
        filters: filters.iter().map(|filter| (*filter).to_owned()).collect(),
        ..ReplayOptions::default()
    };
    assert_eq!(acknowledged(&of(&["t/2"])), 225);
    assert_eq!(acknowledged(&of(&["t/2", "t/properties", "x"])), 226);
    let until = |until_ns| ReplayOptions {
        until_ns: Some(until_ns),
        ..ReplayOptions::default()
    };
    let from = |from_ns| ReplayOptions {
        from_ns: Some(from_ns),
        ..ReplayOptions::default()
    };
    let mut times: Vec<i64> = Vec::new();
    for path in partition_files(&place.path().join("ndjson")).unwrap() {
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            times.push(line["received_ns"].as_i64().unwrap());
        }
    }
    times.sort_unstable();
    let ndjson = place.path().join("ndjson");
    let of_time =
        |options: &ReplayOptions| replayed(&ndjson, &broker, Mqtt::V5, options).acknowledged;
    let before = times.iter().filter(|time| **time < times[450]).count() as u64;
    assert_eq!(of_time(&until(times[450])), before);
    assert_eq!(of_time(&from(times[450])), 901 - before);
    assert_eq!(of_time(&until(times[0])), 0);
    let files = finished(&data);
    let numbers = |path: &Path| numbers_of(path);
    let lost = numbers(&files[0]) + numbers(&files[1]);
    let mut bytes = std::fs::read(&files[0]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&files[0], bytes).unwrap();
    std::fs::remove_file(&files[1]).unwrap();
    let done = replayed(&data, &broker, Mqtt::V5, &ReplayOptions::default());
    assert_eq!(done.acknowledged, 901 - lost);
    let mut told: Vec<_> = done
        .faults
        .iter()
        .map(|fault| fault.what.as_str())
        .collect();
    told.sort_unstable();
    assert!(
        told.len() == 2 && told[0].contains("checksum") && told[1].contains("is not here"),
        "{told:?}"
    );
}

/// How many messages a finished file has.
fn numbers_of(path: &Path) -> u64 {
    let mut count = 0;
    pubgauge_collect::files::read_columns(path, |rows| count += rows.len() as u64).unwrap();
    count
}

#[test]
fn payloads_that_were_not_kept_are_told_and_nothing_stands_for_them() {
    let broker = Broker::start();
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let rest = "topics = [\"t/#\"]\nname = \"c\"\n[payload]\nform = \"json\"\nkeep = false\ncolumns = [{ name = \"v\", path = \"/v\", type = \"int64\" }]";
    for form in ["parquet", "ndjson"] {
        let config = config(&data, &[broker.url()], &format!("form = {form:?}\n{rest}"));
        let collecting = Collecting::begin(config);
        collecting.connected(1);
        for payload in ["{\"v\": 1}", "no number", "{\"v\": 2}"] {
            mosquitto_pub(&broker, &["-t", "t/a", "-m", payload, "-q", "1"]);
        }
        collecting.stored(3);
        collecting.end();
    }
    let done = replayed(&data, &broker, Mqtt::V5, &ReplayOptions::default());
    let counts = (done.read, done.published, done.acknowledged, done.not_kept);
    assert_eq!(counts, (6, 2, 2, 4));
}

/// A broker with narrow limits, which refuses the message "2"; the password and the payloads that it was sent.
fn narrow_broker(listener: &TcpListener) -> (String, Vec<Vec<u8>>) {
    let (mut stream, _) = listener.accept().unwrap();
    let (mut password, mut payloads, mut input) = (String::new(), Vec::new(), Vec::new());
    let mut unanswered = Vec::new();
    loop {
        let mut bytes = [0; 4096];
        // Two are allowed: a third one must not come before an answer.
        let wait = (unanswered.len() == 2).then_some(Duration::from_millis(50));
        stream.set_read_timeout(wait).unwrap();
        let got = stream.read(&mut bytes).unwrap_or(0);
        input.extend(&bytes[..got]);
        let mut out = Vec::new();
        let mut is_over = false;
        while let Some((packet, len)) = decode(&input, Version::V5, 1 << 20).unwrap() {
            match packet {
                Packet::Connect(connect) => {
                    password = String::from_utf8(connect.password.unwrap().to_vec()).unwrap();
                    let mut limits = PropertiesBuf::default();
                    for limit in [
                        Property::ReceiveMaximum(2),
                        Property::MaximumPacketSize(2000),
                        Property::RetainAvailable(false),
                    ] {
                        limits.push(limit).unwrap();
                    }
                    let answer = Packet::ConnAck(ConnAck {
                        properties: limits.as_properties(),
                        ..ConnAck::default()
                    });
                    answer.encode(Version::V5, &mut out).unwrap();
                }
                Packet::Publish(publish) => {
                    payloads.push(publish.payload.to_vec());
                    unanswered.push((publish.packet_id, publish.payload == b"2"));
                    assert!(unanswered.len() <= 2, "{payloads:?}");
                }
                Packet::Disconnect(_) => is_over = true,
                other => panic!("{other:?}"),
            }
            input.drain(..len);
        }
        if is_over {
            return (password, payloads);
        }
        if got == 0 || payloads.len() == 3 {
            for (packet_id, is_refused) in unanswered.drain(..) {
                // "Quota exceeded".
                let reason = ReasonCode(if is_refused { 0x97 } else { 0 });
                let ack = Packet::PubAck(Ack {
                    packet_id,
                    reason,
                    ..Ack::default()
                });
                ack.encode(Version::V5, &mut out).unwrap();
            }
        }
        stream.write_all(&out).unwrap();
    }
}

#[test]
fn limits_of_a_broker_are_kept_and_messages_that_it_refuses_are_counted() {
    let broker = Broker::start();
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let rest = "topics = [\"t/#\"]\nname = \"c\"";
    let collecting = Collecting::begin(config(&data, &[broker.url()], rest));
    collecting.connected(1);
    let large = "x".repeat(5000);
    for (payload, is_retained) in [
        ("1", false),
        (&*large, false),
        ("2", false),
        ("r", true),
        ("3", false),
    ] {
        let mut args = vec!["-V", "5", "-t", "t/a", "-m", payload, "-q", "1"];
        args.extend(is_retained.then_some("-r"));
        mosquitto_pub(&broker, &args);
    }
    collecting.stored(5);
    collecting.end();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("mqtt://me@{}", listener.local_addr().unwrap());
    let password = Some(Secret::new("hush".to_owned()));
    let target = ReplayTarget::parse(&url, Tls::default(), password, Mqtt::V5).unwrap();
    let peer = std::thread::spawn(move || narrow_broker(&listener));
    let (options, stop) = (ReplayOptions::default(), AtomicBool::new(false));
    let done = replay(&data, &target, &options, &stop, &mut |_, _| {}).unwrap();
    let expected = Replayed {
        read: 5,
        published: 3,
        acknowledged: 2,
        refused: 1,
        not_taken: 2,
        ..Replayed::default()
    };
    assert_eq!(done, expected);
    let (password, payloads) = peer.join().unwrap();
    assert_eq!(password, "hush");
    assert_eq!(payloads, [b"1", b"2", b"3"].map(|payload| payload.to_vec()));
    assert!(!format!("{done:?}{target:?}").contains("hush"));
}
