//! Advice on fleets: what is asked of systems, and what is wrong with a file.

use serde_json::Value;

use crate::common;

use common::*;

pub const FLEET: &str = r#"
name = "meters"
[[devices]]
count = 50
every = "1s"
payload = "120B"
[must]
headroom = 1
"#;

#[test]
fn what_is_asked_is_explained_and_nothing_is_started() {
    let place = Place::new();
    place.write("meters.toml", FLEET);
    let systems = "mosquitto,zeromq-direct";
    let done = place.run(&["advise", "meters.toml", "--on", systems, "--explain"]);
    let told = done.exits(0).out;
    for words in [
        "delivery = \"at-least-once\": reliability:at-least-once",
        "zeromq-direct: delivery = \"at-least-once\": ZeroMQ PUB/SUB has no acknowledgements",
        "systems = [\"mosquitto\"]",
        "publishers = 50",
        "rate = \"50/s\"",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    // The study that is explained can be planned.
    let study = told
        .split("# the study of the first step\n")
        .nth(1)
        .expect("a study");
    place.write("study.toml", study);
    place.run(&["plan", "study.toml"]).exits(0);
    assert!(!place.path_to("results").exists());
    place.is_clean();
}

#[test]
fn flags_are_a_small_fleet() {
    let place = Place::new();
    let flags = [
        "advise",
        "--devices",
        "5000",
        "--every",
        "30s",
        "--payload",
        "120B",
        "--survive",
        "kill",
        "--on",
        "mosquitto",
        "--explain",
    ];
    let told = place.run(&flags).exits(0).out;
    // mosquitto writes to disk now and then, and not before it acknowledges.
    assert!(told.contains("mosquitto: survive = [\"kill\"]: "), "{told}");
    assert!(told.contains("# no system is left"), "{told}");
}

#[test]
fn a_fleet_that_cannot_be_is_refused_with_its_place() {
    let place = Place::new();
    place.write(
        "wrong.toml",
        "[[devices]]\ncount = 0\nevery = \"1s\"\npayload = \"64B\"\n",
    );
    let told = place.run(&["advise", "wrong.toml"]).exits(3).err;
    assert!(told.contains("wrong.toml:2:9: 0 devices"), "{told}");
    let told = place.run(&["advise"]).exits(3).err;
    assert!(told.contains("pubgauge advise --devices 5000"), "{told}");
    let told = place.run(&["advise", "none.toml"]).exits(3).err;
    assert!(told.contains("docs/advise.md"), "{told}");
    place.write("meters.toml", FLEET);
    let told = place
        .run(&["advise", "meters.toml", "--on", "mqtt://localhost"])
        .exits(3)
        .err;
    assert!(
        told.contains("pubgauge find --on mqtt://localhost"),
        "{told}"
    );
    let told = place
        .run(&["advise", "meters.toml", "--budget", "soon"])
        .exits(3)
        .err;
    assert!(told.contains("--budget soon"), "{told}");
    let told = place
        .run(&["advise", "meters.toml", "--devices", "5"])
        .exits(3)
        .err;
    assert!(told.contains("cannot be used with"), "{told}");
    std::fs::create_dir(place.path_to("notes")).expect("a folder");
    let told = place
        .run(&[
            "advise",
            "meters.toml",
            "--on",
            "mosquitto",
            "--stored",
            "notes",
        ])
        .exits(3)
        .err;
    assert!(
        told.contains("--stored notes: no run is in this folder"),
        "{told}"
    );
    // More than this machine can have is said before anything starts.
    place.write("big.toml", FLEET.replace("count = 50", "count = 1000000"));
    let flags = ["advise", "big.toml", "--on", "mosquitto", "--out", "big"];
    let told = place.run(&flags).exits(3).err;
    assert!(told.contains("open files"), "{told}");
    assert!(
        told.contains("--explain prints the study of this fleet"),
        "{told}"
    );
    assert!(!place.path_to("big").exists());
    assert!(!place.path_to("results").exists());
}

#[test]
fn a_system_that_lacks_a_promise_is_left_out_and_that_is_an_answer() {
    let place = Place::new();
    place.write("meters.toml", format!("{FLEET}content-filter = true\n"));
    let flags = [
        "advise",
        "meters.toml",
        "--on",
        "mosquitto",
        "--json",
        "--out",
        "advice",
    ];
    let done = place.run(&flags).exits(1);
    let advice: Value = serde_json::from_str(&done.out).expect("JSON");
    let schema = place.run(&["schema", "advice"]).exits(0);
    let schema: Value = serde_json::from_str(&schema.out).expect("a schema");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    assert!(validator.is_valid(&advice), "{advice:#}");
    assert_eq!(advice["left_out"][0]["asked"], "content-filter = true");
    assert_eq!(advice["left_out"][0]["why"], "lacks");
    let stored = std::fs::read_to_string(place.path_to("advice/advice.json")).expect("stored");
    assert_eq!(
        serde_json::from_str::<Value>(&stored).expect("JSON"),
        advice
    );
    // The folder is there.
    place.run(&flags).exits(3);
    place.is_clean();
}
