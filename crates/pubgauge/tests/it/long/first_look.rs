//! The first command of a newcomer: `pubgauge run`, and nothing else.

use crate::common;

use common::*;

#[test]
fn the_first_look() {
    let place = Place::new();
    let done = place
        .run(&["run", "--out", "run"])
        .assert_says("calibrating this machine, once");
    place.is_clean();
    // A busy machine must not matter here: trials may be called client-bound.
    done.ran_to_its_end();
    for line in done.out.lines() {
        assert!(line.chars().count() <= 80, "longer than 80: {line}");
    }
    assert!(done.out.lines().count() <= 24, "{}", done.out);
    let results = place.results("run");
    assert!(results["machine"]["calibration"].is_object());
    assert_eq!(results["study"]["name"], "first-look");
    assert_eq!(results["study"]["cut_off"], false);
    let trials = results["trials"].as_array().unwrap();
    for system in [
        "reference-broker",
        "mosquitto",
        "zeromq-direct",
        "zeromq-forwarder",
    ] {
        let of = trials.iter().filter(|t| t["system"]["name"] == system);
        let mut workloads: Vec<&str> = of
            .map(|t| t["workload"]["name"].as_str().unwrap())
            .collect();
        workloads.sort_unstable();
        assert_eq!(workloads, ["flat-out", "fleet", "periodic"], "{system}");
    }
    for trial in trials {
        // Messages may be missing at the end on a busy machine (seen once: mosquitto, flat out); such a trial
        // is not valid.
        if crowded(trial) && verdict(trial) != "valid" {
            accounted(trial);
        } else {
            adds_up(trial);
        }
        // A library's processor time is the client's, and is compared with that of the others.
        let in_client = trial["system"]["name"] == "zeromq-direct";
        assert_eq!(
            trial["circumstances"]["system_in_client"] == true,
            in_client
        );
        assert_eq!(trial["system_cpu_s"].is_null(), in_client);
        let publishers = if trial["workload"]["name"] == "fleet" {
            100
        } else {
            1
        };
        assert_eq!(count(trial, "workload.publishers"), publishers);
    }
    // The calibration is there the next time.
    assert!(
        place
            .files()
            .iter()
            .any(|f| f.ends_with("state/pubgauge/calibration.json"))
    );
}
