//! The client's own resources end: what the library does not tell, or would crash of, the driver
//! says.

use pubgauge_driver::Settings;
use pubgauge_driver_fastdds::FastddsDriver;
use pubgauge_testing::{exhaustion, settings};
use serde_json::json;

fn all_settings() -> Vec<Settings> {
    let all = [
        json!({}),
        json!({"multicast": true}),
        json!({"transport": "shared-memory"}),
        json!({"native": {"fastdds": {"preset": "default"}}}),
        json!({"native": {"fastdds": {"data-sharing": true}}}),
        json!({"rate-limit-bytes-per-s": 1_000_000}),
    ];
    all.map(settings).into()
}

#[test]
fn descriptors_end() {
    exhaustion::a_library_wants_descriptors(&FastddsDriver, &all_settings());
}

#[test]
fn threads_end() {
    exhaustion::a_library_wants_threads(&FastddsDriver, &all_settings());
}
