//! A release guarded against the old one: two brokers whose cost of a message is planted.

use std::time::Duration;

use crate::common::*;

/// A guard over two reference brokers whose messages cost so many microseconds of processor time.
fn guarded(old_us: u32, new_us: u32, required: &str) -> (Done, serde_json::Value) {
    let place = Place::new();
    let listen = r#""--listen", "{host}:{port}""#;
    for (name, cost_us) in [("released", old_us), ("candidate", new_us)] {
        let planted = format!(r#"{listen}, "--cpu-per-message", "{cost_us}us""#);
        place.system("reference-broker", name, &[(listen, &planted)]);
    }
    let mut args = vec!["guard", "--old", "released", "--new", "candidate"];
    args.extend(["--systems", "mine", "--rate", "1k/s", "--margin", "20%"]);
    args.extend(["--duration", "1s", "--warm-up", "300ms", "--out", "run"]);
    args.extend(["--junit", "guard.xml", "--require", required]);
    let done = place.start(&args).ends_within(Duration::from_secs(300));
    let results = place.results("run");
    let junit = std::fs::read_to_string(place.path_to("guard.xml")).unwrap();
    assert!(
        junit.contains("system-cpu-per-message of candidate (default) against released (default)")
    );
    (done, results)
}

#[test]
fn an_equal_release_passes_and_one_at_twice_the_cost_fails() {
    let outcome = |results: &serde_json::Value| {
        let comparison = &results["comparisons"][0];
        assert_eq!(comparison["precision"], 0.1);
        let mut figures = comparison["figures"].as_array().unwrap().iter();
        let cost = figures.find(|figure| figure["figure"] == "system-cpu-per-message");
        cost.unwrap()["guard"].clone()
    };
    let (done, results) = guarded(100, 100, "lost = 0");
    assert_eq!(outcome(&results), "within-margin", "{}", done.out);
    done.exits(0);
    let (done, results) = guarded(100, 200, "lost = 0");
    assert_eq!(outcome(&results), "worse", "{}", done.out);
    assert!(done.out.contains("worse than the margin"), "{}", done.out);
    done.exits(1);
}
