//! Workers in processes of their own: they count as threads do, and what happens to one of them
//! breaks its trial and nothing else.

mod common;

use std::process::Command;
use std::time::Duration;

use common::servers::Reference;
use common::*;
use serde_json::Value;

/// A worker that hangs is noticed after ten seconds.
const NOTICED: Duration = Duration::from_secs(60);

fn args<'a>(on: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["run", "--on", on, "--out", "run"];
    args.extend(["--publishers", "6", "--subscribers", "4"]);
    args.extend(more);
    args
}

/// The ids of the worker processes.
fn workers(place: &Place) -> Vec<i32> {
    let all = place.processes().into_iter();
    all.filter(|(_, line)| line.trim_end().ends_with(" worker"))
        .map(|(pid, _)| pid)
        .collect()
}

/// Valid, everything arrived, and the system counted the same.
#[track_caller]
fn agrees(trial: &Value) {
    adds_up(trial);
    let checks = trial["checks"].as_array().unwrap();
    assert!(!checks.is_empty(), "{}", brief(trial));
    for check in checks {
        assert_eq!(check["outcome"], "passed", "{check}");
    }
}

#[test]
fn processes_count_as_the_system_does() {
    for (on, more) in [
        ("reference-broker", ["--rate", "100/s-each", "--qos", "1"]),
        ("mosquitto", ["--rate", "max", "--qos", "0"]),
        ("nats", ["--rate", "100/s-each", "--qos", "0"]),
    ] {
        let place = Place::new();
        let mut args = args(on, &more);
        args.extend(["--processes", "2", "--duration", "2s", "--warm-up", "500ms"]);
        let mut run = place.start(&args);
        run.measures();
        assert_eq!(workers(&place).len(), 4, "two on each side");
        let done = run.ends();
        assert!([0, 2].contains(&done.code), "{done:?}");
        place.is_clean();
        let trial = place.trial("run");
        agrees(&trial);
        let cost = &trial["resources"];
        assert!(cost["client_cpu_s"].as_f64().unwrap() > 0.0, "{cost}");
    }
}
