//! How many boxes a fleet needs, on brokers that the kernel holds to a tenth of a processor. Needs root.

use std::time::Duration;

use serde_json::Value;

use crate::common;

use common::*;

const FLEET_PER_S: f64 = 60.0 / 0.04;

/// More than one such broker carries, and less than four do.
const FLEET: &str = r#"
name = "site"
[[devices]]
name = "meters"
count = 60
every = "40ms"
payload = "64B"
[must]
headroom = 4
machine = { cores = 0.1 }
boxes = true
"#;

fn ends(value: &Value, low: &str, high: &str) -> Option<(f64, f64)> {
    value[low].as_f64().zip(value[high].as_f64())
}

/// The limit of a third box that was held out, in times the fleet.
fn limit_of_third(place: &Place) -> (f64, f64) {
    let study = std::fs::read_to_string(place.path_to("advice/6-boxes.toml")).expect("a study");
    place.write(
        "third.toml",
        study.replace("brokers = [1, 2, 4]", "brokers = [3]"),
    );
    let find = ["find", "third.toml", "--out", "third"];
    let done = place.start(&find).ends_within(Duration::from_secs(300));
    done.ran_to_its_end();
    let search = place.results("third")["searches"][0].clone();
    let (low, high) = ends(&search, "low", "high").unwrap_or_else(|| panic!("no limit: {search}"));
    (low / FLEET_PER_S, high / FLEET_PER_S)
}

#[test]
fn a_third_box_carries_what_follows_from_one_two_and_four() {
    let place = Place::new();
    place.write("site.toml", FLEET);
    let flags = [
        "advise",
        "site.toml",
        "--on",
        "mosquitto",
        "--budget",
        "8min",
        "--json",
        "--out",
        "advice",
    ];
    let done = place.start(&flags).ends_within(Duration::from_secs(600));
    let advice: Value = serde_json::from_str(&done.out).expect("JSON");
    let plan = &advice["boxes"];
    println!("{plan:#}");
    assert_eq!(plan["system"], "mosquitto");
    let counts = plan["counts"].as_array().expect("counts");
    let known: Vec<(u64, &str)> = counts
        .iter()
        .filter_map(|count| Some((count["boxes"].as_u64()?, count["known_by"].as_str()?)))
        .collect();
    let expected = [
        (1, "measured"),
        (2, "measured"),
        (3, "independence"),
        (4, "measured"),
    ];
    assert_eq!(known.get(..4), Some(&expected[..]), "{plan:#}");
    for trial in place.results("advice/6-boxes")["trials"]
        .as_array()
        .expect("trials")
    {
        assert_eq!(trial["limits"]["cores_by_quota"], true, "{trial}");
        let brokers = trial["axes"][0]["value"].as_str().expect("an axis");
        assert_eq!(trial["limits"]["instances"].to_string(), brokers);
    }
    let (low, high) = ends(&counts[2], "at_least", "at_most").expect("an interval");
    let third = limit_of_third(&place);
    println!("three follow: {low:.2} to {high:.2} times the fleet; measured: {third:.2?}");
    let middle = (third.0 + third.1) / 2.0;
    assert!(
        (low..=high).contains(&middle),
        "{low} to {high}, measured {third:?}"
    );
    place.is_clean();
}
