//! The conditions that a study's cells are measured under.

use std::collections::BTreeMap;
use std::path::Path;

use pubgauge_study::Study;
use serde_json::{Value, json};

const STUDY: &str = r#"
name = "cameras"
systems = ["mosquitto"]
repeats = 3

[phases]
measure = "5s"
warm-up = "1s"

[[settings]]
name = "qos1"
reliability = "at-least-once"

[[workload]]
name = "flood"
phases = { warm-up = "2s" }

[[workload.flow]]
publishers = 2
payload = "36B"
rate = "max"
window = 40
"#;

fn conditions(text: &str) -> BTreeMap<String, Value> {
    let study = Study::parse("s.toml", text, Path::new("")).unwrap();
    study.file().unwrap_or_else(|e| panic!("{e}")).conditions()
}

fn changed(from: &str, to: &str) -> BTreeMap<String, Value> {
    assert!(STUDY.contains(from), "{from}");
    conditions(&STUDY.replace(from, to))
}

#[test]
fn load_phases_and_settings_are_conditions() {
    let now = conditions(STUDY);
    assert_eq!(
        Vec::from_iter(now.keys()),
        ["settings qos1", "workload flood"]
    );
    let flood = &now["workload flood"];
    assert_eq!(flood["phases"], json!({ "measure": "5s", "warm-up": "2s" }));
    assert_eq!(flood["flow"][0]["window"], 40);
    for (from, to) in [
        ("window = 40", "window = 160"),
        ("36B", "37B"),
        ("measure = \"5s\"", "measure = \"6s\""),
        ("warm-up = \"2s\"", "warm-up = \"3s\""),
        ("publishers = 2", "publishers = 3"),
        (
            "\"flood\"\n",
            "\"flood\"\ntestbed = { hosts = { broker = { cores = 0.5 } } }\n",
        ),
        (
            "\"flood\"\n",
            "\"flood\"\nclient = { pacing-within = \"1ms\" }\n",
        ),
        ("\"flood\"\n", "\"flood\"\ntopology = { brokers = 2 }\n"),
    ] {
        let other = changed(from, to);
        assert_ne!(other["workload flood"], *flood, "{to}");
        assert_eq!(other["settings qos1"], now["settings qos1"], "{to}");
    }
    let other = changed("at-least-once", "exactly-once");
    assert_ne!(other["settings qos1"], now["settings qos1"]);
    assert_eq!(other["workload flood"], *flood);
}

/// Which cells there are, how often they are run and how they are judged changes nothing about one of them; nor does the spelling.
#[test]
fn systems_repeats_grid_and_claims_are_no_conditions() {
    let now = conditions(STUDY);
    for (from, to) in [
        ("\"mosquitto\"", "\"mosquitto\", \"rabbitmq\""),
        ("repeats = 3", "repeats = 8"),
        ("repeats = 3", "repeats = 3\ngrid = { publishers = [2, 4] }"),
        (
            "\"flood\"\n",
            "\"flood\"\nrepeats = 1\nsystems = [\"mosquitto\"]\n",
        ),
        ("warm-up = \"1s\"", "warm-up = \"3s\""),
        ("\"5s\"", "\"5000ms\""),
    ] {
        assert_eq!(changed(from, to), now, "{to}");
    }
}
