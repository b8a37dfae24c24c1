//! The client's own resources end: what the library does not tell, or would crash of, the driver
//! says.

use pubgauge_driver::Settings;
use pubgauge_driver_cyclonedds::CycloneddsDriver;
use pubgauge_testing::{exhaustion, settings};
use serde_json::json;

fn all_settings() -> Vec<Settings> {
    let all = [json!({}), json!({"multicast": true})];
    all.map(settings).into()
}

#[test]
fn descriptors_end() {
    exhaustion::a_library_wants_descriptors(&CycloneddsDriver, &all_settings());
}

#[test]
fn threads_end() {
    exhaustion::a_library_wants_threads(&CycloneddsDriver, &all_settings());
}
