//! Fast DDS and Cyclone DDS on one wire: the conformance suite in both directions, and large
//! numbers of reliable messages, all of which must arrive.

use pubgauge_driver::conformance::{Exception, check, failures};
use pubgauge_driver::{Driver, Settings, Target};
use pubgauge_driver_dds_mixed::Mixed;
use serde_json::json;

fn conforms(driver: &dyn Driver, settings: serde_json::Value, exceptions: &[Exception<'_>]) {
    let settings: Settings = serde_json::from_value(settings).expect("settings");
    let scratch = tempfile::tempdir().expect("a folder");
    let target = Target {
        scratch: scratch.path().to_owned(),
        ..Target::default()
    };
    let outcomes = check(driver, &target, &settings, exceptions);
    let failures = failures(&outcomes);
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn fast_dds_to_cyclone_dds_reliable() {
    conforms(
        &Mixed::FAST_TO_CYCLONE,
        json!({"reliability": "reliable"}),
        &[],
    );
}

#[test]
fn cyclone_dds_to_fast_dds_reliable() {
    conforms(&Mixed::SWAPPED, json!({"reliability": "reliable"}), &[]);
}
