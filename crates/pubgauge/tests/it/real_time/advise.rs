//! Advice on a small fleet, from the promises to the answer.

use serde_json::Value;

use crate::advise::FLEET;
use crate::common;

use common::*;

#[test]
fn a_small_fleet_is_carried_by_both_and_the_rest_is_left_out_for_time() {
    let place = Place::new();
    place.write("meters.toml", FLEET);
    let flags = [
        "advise",
        "meters.toml",
        "--on",
        "mosquitto,nats:mqtt,zeromq-direct",
        "--budget",
        "150s",
        "--json",
        "--out",
        "advice",
    ];
    let done = place.run(&flags).exits(0);
    let advice: Value = serde_json::from_str(&done.out).expect("JSON");
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
    // Each step is a run whose page can be opened.
    assert!(place.path_to("advice/1-fleet/report.html").exists());
    place.is_clean();
}
