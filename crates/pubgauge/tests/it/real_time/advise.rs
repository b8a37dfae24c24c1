//! Advice on a small fleet, from the promises to the answer.

use serde_json::Value;

use crate::advise::FLEET;
use crate::common;

use common::*;

/// Advice on the fleet in `file` from the systems that `on` begins with, as JSON.
fn advise(place: &Place, file: &str, on: &[&str]) -> Value {
    let done = place.run(&[&["advise", file, "--json", "--on"], on].concat());
    serde_json::from_str(&done.exits(0).out).expect("JSON")
}

#[test]
fn a_small_fleet_is_carried_by_both_and_the_rest_is_left_out_for_time() {
    let place = Place::new();
    place.write("meters.toml", FLEET);
    let on = ["mosquitto,nats:mqtt,zeromq-direct", "--budget", "150s"];
    let advice = advise(
        &place,
        "meters.toml",
        &[&on[..], &["--out", "advice"]].concat(),
    );
    let named: Vec<&str> = (advice["choices"].as_array().expect("choices").iter())
        .filter_map(|choice| choice["system"].as_str())
        .collect();
    assert!(named.contains(&"mosquitto"), "{advice:#}");
    let out: Vec<&str> = (advice["left_out"].as_array().expect("left out").iter())
        .filter_map(|out| out["system"].as_str())
        .collect();
    assert!(out.contains(&"zeromq-direct"), "{advice:#}");
    let choice = &advice["choices"][0];
    assert!(choice["repeats"].as_u64() >= Some(1));
    assert!(choice["p99_ms"].as_f64().expect("a time") < 100.0);
    assert!(
        choice["settings"]
            .as_str()
            .expect("TOML")
            .contains("reliability = \"at-least-once\"")
    );
    assert!(choice["evidence"][0]["source"] == "measured", "{choice:#}");
    // Each step is a run whose page can be opened.
    assert!(place.path_to("advice/1-fleet/report.html").exists());
    place.is_clean();
}

#[test]
fn what_an_earlier_advice_measured_is_not_measured_again() {
    let place = Place::new();
    place.write("meters.toml", FLEET);
    let into = |file: &str, more: &[&str]| {
        let on = ["mosquitto", "--budget", "45s", "--out"];
        advise(&place, file, &[&on[..], more].concat())
    };
    std::fs::create_dir_all(place.path_to("results/broken")).expect("folders");
    into("meters.toml", &["results/first"]);
    // A damaged run among them is told, and no more.
    place.write("results/broken/results.json", "{ \"format\": ");
    let advice = into("meters.toml", &["second", "--stored", "results"]);
    let evidence = advice["choices"][0]["evidence"]
        .as_array()
        .expect("evidence");
    assert_eq!(evidence[0]["figure"], "fleet");
    let source = evidence[0]["source"].as_str().expect("a source");
    assert!(
        ["stored", "measured-and-stored"].contains(&source),
        "{advice:#}"
    );
    let folder = evidence[0]["stored"][0]["folder"]
        .as_str()
        .expect("a folder");
    assert!(folder.starts_with("results/first/"), "{advice:#}");
    assert!(!place.path_to("second/1-fleet").exists());
    let told = advice["not_counted"]
        .as_array()
        .expect("what does not count");
    assert!(
        told.iter().any(|one| one["folder"] == "results/broken"),
        "{advice:#}"
    );
    // Another fleet is measured.
    place.write("other.toml", FLEET.replace("count = 50", "count = 120"));
    let advice = into("other.toml", &["third", "--stored", "results/first"]);
    assert!(place.path_to("third/1-fleet").exists());
    let because = advice["not_counted"].to_string();
    assert!(
        because.contains("less than half") || because.contains("a smaller load"),
        "{advice:#}"
    );
    place.is_clean();
}
