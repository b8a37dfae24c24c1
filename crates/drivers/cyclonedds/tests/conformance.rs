//! The conformance suite that every driver must pass, in each way this one can be set up.

use pubgauge_driver::conformance::{check, failures};
use pubgauge_driver::{Settings, Target};
use pubgauge_driver_cyclonedds::CycloneddsDriver;
use serde_json::json;

fn conforms(settings: serde_json::Value) {
    let scratch = tempfile::tempdir().expect("a folder");
    let target = Target {
        scratch: scratch.path().to_owned(),
        ..Target::default()
    };
    let settings: Settings = serde_json::from_value(settings).expect("settings");
    let outcomes = check(&CycloneddsDriver, &target, &settings, &[]);
    assert_eq!(failures(&outcomes), Vec::<String>::new());
}

#[test]
fn with_no_setting_changed() {
    conforms(json!({}));
}

#[test]
fn best_effort() {
    conforms(json!({"reliability": "best-effort"}));
}

#[test]
fn reliable_in_batches() {
    conforms(json!({"reliability": "reliable", "batching": "adaptive"}));
}

#[test]
fn exactly_once_with_last_values() {
    conforms(json!({"reliability": "exactly-once", "last-value": true}));
}

#[test]
fn over_multicast() {
    conforms(json!({"multicast": true, "batching": {"bytes": 8192}}));
}
