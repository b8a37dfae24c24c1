//! Fleet files: what is wrong is said with its place, and what is right becomes a study.

use pubgauge_advice::{Adviser, Candidate, Fleet};
use pubgauge_driver::Reliability;

const METERS: &str = r#"
name = "meters"
[[devices]]
name = "readings"
count = 5000
every = "30s"
payload = "120B"
fresh-within = "1s"
offline = { for = "8h", back-within = "5min" }
commands = { every = "300ms" }
[[applications]]
name = "billing"
count = 3
[[applications]]
name = "archive"
count = 4
share = true
[must]
survive = ["kill"]
"#;

fn refused(text: &str) -> String {
    let refused = Fleet::parse("fleet.toml", text);
    refused.expect_err("it is wrong").to_string()
}

#[test]
fn a_fleet_asks_for_what_its_keys_say() {
    let fleet = Fleet::parse("meters.toml", METERS).expect("a fleet");
    let promises = fleet.promises(Reliability::AtLeastOnce);
    let asked: Vec<String> = promises
        .iter()
        .map(|of| of.capability.to_string())
        .collect();
    let expected = [
        "pattern:publish-subscribe",
        "reliability:at-least-once",
        "filter:prefix",
        "group",
        "durable-session",
        "durability:disk-synced",
    ];
    assert_eq!(asked, expected);
}

#[test]
fn what_differs_from_the_fleet_is_said() {
    let fleet = Fleet::parse("meters.toml", METERS).expect("a fleet");
    let remarks = fleet.remarks().join("\n");
    assert!(
        remarks.contains("an absence of 8h is measured as one of 5 s"),
        "{remarks}"
    );
    assert!(
        remarks.contains("within 10 s, which is harder"),
        "{remarks}"
    );
    let few = Fleet::parse(
        "few.toml",
        "[[devices]]\ncount = 10\nevery = \"15min\"\npayload = \"64B\"",
    );
    let remarks = few.expect("a fleet").remarks().join("\n");
    assert!(
        remarks.contains("too few to tell a percentile"),
        "{remarks}"
    );
}

#[test]
fn a_fleet_becomes_a_study() {
    let fleet = Fleet::parse("meters.toml", METERS).expect("a fleet");
    let candidate = Candidate {
        system: "mosquitto:persistent".into(),
        reliability: Reliability::AtLeastOnce,
    };
    let adviser = Adviser::new(fleet, vec![candidate], Vec::new(), Vec::new());
    let step = adviser.next_step(600.0).expect("a step");
    insta::assert_snapshot!(adviser.fleet().study(&step));
}

#[test]
fn every_kind_of_devices_has_its_own_time() {
    let text = "[[devices]]\nname = \"a\"\ncount = 5\nevery = \"1s\"\npayload = \"64B\"\n\
                [[devices]]\nname = \"b\"\ncount = 5\nevery = \"1s\"\npayload = \"64B\"\nfresh-within = \"2s\"\n";
    let fleet = Fleet::parse("two.toml", text).expect("a fleet");
    let candidate = Candidate {
        system: "mosquitto".into(),
        reliability: Reliability::AtLeastOnce,
    };
    let adviser = Adviser::new(fleet, vec![candidate], Vec::new(), Vec::new());
    let study = adviser
        .fleet()
        .study(&adviser.next_step(600.0).expect("a step"));
    for demand in [
        "at-most = \"100ms\"\nflow = \"a\"",
        "at-most = \"2s\"\nflow = \"b\"",
    ] {
        assert!(study.contains(demand), "{demand}: {study}");
    }
}

#[test]
fn mistakes_are_told_with_their_place() {
    for (text, told) in [
        ("", "is empty"),
        ("devices = []", "at least one kind of devices"),
        (
            "[[devices]]\ncount = 0\nevery = \"1s\"\npayload = \"64B\"",
            "fleet.toml:2:9: 0 devices",
        ),
        (
            "[[devices]]\ncount = 5\nevery = \"0s\"\npayload = \"64B\"",
            "fleet.toml:3:9",
        ),
        (
            "[[devices]]\ncount = 5\nevery = \"1s\"\npayload = \"8B\"",
            "no message has 8 bytes",
        ),
        (
            "[[devices]]\ncount = 5\nevery = \"1s\"\npayload = \"64B\"\ndelivery = \"qos1\"",
            "at-least-once",
        ),
        (
            "[[devices]]\ncount = 5\nevery = \"1s\"\npayload = \"64B\"\nintervall = 3",
            "intervall",
        ),
        (
            "[[devices]]\nname = \"a\"\ncount = 5\nevery = \"1s\"\npayload = \"64B\"\n[[applications]]\ndevices = [\"b\"]",
            "there are no devices `b`",
        ),
        (
            "[[devices]]\ncount = 5\nevery = \"1s\"\npayload = \"64B\"\n[must]\nheadroom = 0.5",
            "fleet.toml:6:12: 0.5 times the fleet",
        ),
        (
            "[[devices]]\ncount = 5\nevery = \"1s\"\npayload = \"64B\"\n[must]\nboxes = true",
            "fleet.toml:6:9: a box has a size",
        ),
    ] {
        let message = refused(text);
        assert!(message.contains(told), "{text}: {message}");
    }
}
