use super::*;
use crate::FastddsDriver;
use pubgauge_testing::{
    answers_contain, contradictions_are_refused, every_setting_is_answered, refused_by_name,
    settings,
};
use serde_json::json;

fn resolved(json: serde_json::Value) -> FastOptions {
    resolve(&settings(json), &Target::default()).unwrap().0
}

#[test]
fn every_neutral_setting_is_answered_in_order() {
    let own = ["native.fastdds.preset"];
    every_setting_is_answered(
        &FastddsDriver,
        &Settings::default(),
        &Target::default(),
        &own,
    );
}

#[test]
fn what_fast_dds_cannot_do_is_refused_by_name() {
    let cases = [
        ("pattern", json!("point-to-point")),
        ("pattern", json!("request-reply")),
        ("durability", json!("disk")),
        ("durability", json!("disk-synced")),
        ("session", json!("durable")),
        ("session-expiry-s", json!(1)),
        ("lifespan-ms", json!(0)),
        ("in-flight", json!(0)),
        ("queue-limit", json!(0)),
        ("batching", json!({"bytes": 1000})),
        ("batching", json!("adaptive")),
        ("priority", json!(5)),
        ("rate-limit-bytes-per-s", json!(1000)),
        ("transport", json!("tcp")),
        ("transport", json!("ipc")),
        ("keep-alive-s", json!(5)),
        ("user-properties", json!({"a": "b"})),
    ];
    refused_by_name(&FastddsDriver, cases);
}

#[test]
fn what_does_not_go_together_is_refused() {
    let native = |json: serde_json::Value| json!({ "fastdds": json });
    let cases = [
        (
            json!({"reliability": "best-effort", "on-full": "block"}),
            "on-full",
            "",
        ),
        (
            json!({"last-value": true, "reliability": "best-effort"}),
            "last-value",
            "",
        ),
        (
            json!({"conflate": true, "queue-limit": 5}),
            "queue-limit",
            "",
        ),
        (json!({"last-value": true, "in-flight": 5}), "in-flight", ""),
        (
            json!({"in-flight": 5, "native": native(json!({"max-samples": 5}))}),
            "in-flight",
            "",
        ),
        (
            json!({"multicast": true, "transport": "shared-memory"}),
            "multicast",
            "",
        ),
        (
            json!({"rate-limit-bytes-per-s": 1_000_000, "native": native(json!({"publish-mode": "sync"}))}),
            "native.fastdds.publish-mode",
            "",
        ),
        (
            json!({"native": native(json!({"priorities": {"a": 1}, "flow-controller": "fifo"}))}),
            "native.fastdds.priorities",
            "",
        ),
        (
            json!({"multicast": true, "native": native(json!({"data-sharing": true}))}),
            "native.fastdds.data-sharing",
            "",
        ),
        (
            json!({"last-value": true, "native": native(json!({"writer-durability": "volatile"}))}),
            "native.fastdds.writer-durability",
            "",
        ),
        (
            json!({"reliability": "best-effort", "native": native(json!({"writer-durability": "volatile"}))}),
            "native.fastdds.writer-durability",
            "",
        ),
    ];
    contradictions_are_refused(&FastddsDriver, cases);
}

#[test]
fn writers_are_as_durable_as_the_preset_and_the_last_value_say() {
    let native = |json: serde_json::Value| json!({"native": { "fastdds": json }});
    let writers = |json| resolved(json).writer_transient_local();
    assert!(!writers(json!({})));
    assert!(writers(json!({"last-value": true})));
    assert!(writers(native(json!({"preset": "default"}))));
    assert!(writers(native(
        json!({"writer-durability": "transient-local"})
    )));
    let both = json!({"preset": "default", "writer-durability": "volatile"});
    assert!(!writers(native(both)));
    let mut best_effort = native(json!({"preset": "default"}));
    best_effort["reliability"] = json!("best-effort");
    assert!(!writers(best_effort));
    let preset = native(json!({"preset": "default"}));
    answers_contain(
        &FastddsDriver,
        preset,
        [("durability", "writers TRANSIENT")],
    );
}

#[test]
fn reliability_and_histories_decide_back_pressure() {
    let traits = |json| resolved(json).traits();
    for word in ["reliable", "at-least-once", "exactly-once"] {
        let t = traits(json!({"reliability": word}));
        assert!(
            t.back_pressure && !t.may_duplicate && !t.acknowledges,
            "{word}"
        );
    }
    for word in ["best-effort", "at-most-once"] {
        let t = traits(json!({"reliability": word}));
        assert!(!t.back_pressure, "{word}");
    }
    for json in [
        json!({"last-value": true}),
        json!({"conflate": true}),
        json!({"on-full": "drop"}),
    ] {
        assert!(!traits(json.clone()).back_pressure, "{json}");
    }
}

#[test]
fn limits_reach_the_histories() {
    let options = resolved(json!({"in-flight": 7, "queue-limit": 9}));
    assert_eq!(options.writer_samples(1 << 21), 7);
    assert_eq!(options.reader_samples(1 << 21), 9);
    let options = resolved(json!({}));
    assert_eq!(
        (options.writer_samples(64), options.writer_samples(1 << 21)),
        (400, 32)
    );
    assert_eq!(
        (options.reader_samples(64), options.reader_samples(1 << 21)),
        (1000, 128)
    );
}

#[test]
fn the_default_preset_keeps_the_librarys_limit_per_publisher() {
    let samples = |json| resolved(json).reader_samples(64);
    let native = json!({"fastdds": {"preset": "default"}});
    assert_eq!(samples(json!({"native": native})), 400);
    assert_eq!(samples(json!({"native": native, "queue-limit": 900})), 900);
    assert_eq!(samples(json!({})), 1000);
}

#[test]
fn a_rate_becomes_bytes_per_period() {
    let options = resolved(json!({"rate-limit-bytes-per-s": 200_000}));
    assert_eq!(options.flow_bytes, 20_000);
    assert!(options.asynchronous());
    assert_eq!(options.scheduler(), Some(Scheduler::Fifo));
    let json = json!({"rate-limit-bytes-per-s": 1000,
                      "native": {"fastdds": {"flow-period-ms": 1000}}});
    assert_eq!(resolved(json).flow_bytes, 1000);
}

#[test]
fn priorities_need_the_flow_controller_that_knows_them() {
    let json = json!({"native": {"fastdds": {"priorities": {"a": 7}}}});
    let options = resolved(json);
    assert_eq!(options.scheduler(), Some(Scheduler::HighPriority));
    assert!(options.asynchronous());
}

#[test]
fn heartbeats_are_rarer_behind_a_flow_controller_and_over_shared_memory() {
    let memory = json!({"transport": "shared-memory"});
    assert_eq!(resolved(memory).heartbeat_ns(), Some(20_000_000));
    assert_eq!(resolved(json!({})).heartbeat_ns(), Some(1_000_000));
    let limited = json!({"rate-limit-bytes-per-s": 200_000});
    assert_eq!(resolved(limited).heartbeat_ns(), Some(20_000_000));
    let native = json!({"native": {"fastdds": {"preset": "default"}}});
    assert_eq!(resolved(native).heartbeat_ns(), None);
}
