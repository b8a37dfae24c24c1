//! Settings and the library's options that they become, in tables.

use super::*;
use crate::CycloneddsDriver;
use pubgauge_driver::Target;
use pubgauge_testing::{
    answers_contain, contradictions_are_refused, every_setting_is_answered, refused_by_name,
    settings,
};
use serde_json::{Value, json};

fn options(json: Value) -> CycloneOptions {
    resolve(&settings(json)).unwrap().0
}

#[test]
fn every_neutral_setting_is_answered_in_order() {
    every_setting_is_answered(
        &CycloneddsDriver,
        &Settings::default(),
        &Target::default(),
        &[],
    );
}

#[test]
fn what_cyclone_cannot_do_is_refused_by_name() {
    let cases = [
        ("pattern", json!("point-to-point")),
        ("pattern", json!("request-reply")),
        ("durability", json!("disk")),
        ("durability", json!("disk-synced")),
        ("session", json!("durable")),
        ("session-expiry-s", json!(1)),
        ("lifespan-ms", json!(0)),
        ("in-flight", json!(1)),
        ("queue-limit", json!(0)),
        ("batching", json!({"bytes": 65_001})),
        ("priority", json!(5)),
        ("rate-limit-bytes-per-s", json!(1)),
        ("transport", json!("tcp")),
        ("transport", json!("ipc")),
        ("transport", json!("shared-memory")),
        ("keep-alive-s", json!(0)),
        ("user-properties", json!({"a": "b"})),
    ];
    refused_by_name(&CycloneddsDriver, cases);
}

#[test]
fn what_does_not_go_together_is_refused_all_at_once() {
    let cases = [
        (
            json!({"reliability": "best-effort", "on-full": "block"}),
            "on-full",
            "",
        ),
        (
            json!({"reliability": "best-effort", "last-value": true}),
            "last-value",
            "",
        ),
        (json!({"conflate": true, "on-full": "block"}), "on-full", ""),
        (
            json!({"conflate": true, "queue-limit": 5}),
            "queue-limit",
            "",
        ),
        (
            json!({"queue-limit": 5, "native": {"cyclonedds": {"history-depth": 3}}}),
            "queue-limit",
            "",
        ),
        (
            json!({"multicast": true, "native": {"cyclonedds": {"multicast-mode": "spdp"}}}),
            "multicast",
            "",
        ),
        (
            json!({"native": {"cyclonedds": {"multicast-mode": "asm"}}}),
            "multicast",
            "",
        ),
        (
            json!({"batching": {"bytes": 9000}, "native": {"cyclonedds": {"max-message-bytes": 8000}}}),
            "batching",
            "",
        ),
        (
            json!({"priority": 1, "in-flight": 3}),
            "in-flight, priority",
            "",
        ),
    ];
    contradictions_are_refused(&CycloneddsDriver, cases);
}

#[test]
fn reliability_decides_history_and_traits() {
    for reliable in ["at-least-once", "exactly-once", "reliable"] {
        let o = options(json!({ "reliability": reliable }));
        assert_eq!((o.reliable, o.writer_depth, o.reader_depth), (true, 0, 0));
        assert!(o.traits().back_pressure);
    }
    for best_effort in ["at-most-once", "best-effort"] {
        let o = options(json!({ "reliability": best_effort }));
        assert_eq!(
            (o.reliable, o.writer_depth, o.reader_depth),
            (false, 1, DEFAULT_DEPTH)
        );
        assert!(!o.traits().back_pressure);
    }
}

#[test]
fn a_reliable_writer_that_may_drop_does_not_block() {
    for json in [
        json!({"on-full": "drop", "queue-limit": 7}),
        json!({"native": {"cyclonedds": {"history-depth": 7}}}),
    ] {
        let o = options(json);
        assert_eq!((o.reliable, o.writer_depth, o.reader_depth), (true, 7, 7));
        assert!(!o.traits().back_pressure);
    }
    let o = options(json!({"conflate": true}));
    assert_eq!((o.writer_depth, o.reader_depth), (1, 1));
}

#[test]
fn the_cache_of_a_reader_is_bounded() {
    let o = options(json!({}));
    assert_eq!(o.cache_limit(64), DEFAULT_CACHE);
    assert_eq!(o.cache_limit(100_000), 1342);
    assert_eq!(o.cache_limit(1 << 30), 64);
    assert_eq!(options(json!({"queue-limit": 9})).cache_limit(64), 9);
    assert_eq!(options(json!({"conflate": true})).cache_limit(64), 0);
}

#[test]
fn resource_limits_may_duplicate() {
    let o = options(json!({"native": {"cyclonedds": {"max-samples": 5}}}));
    assert!(o.traits().may_duplicate);
    assert!(!options(json!({})).traits().may_duplicate);
}

#[test]
fn batches_are_datagrams() {
    assert_eq!(options(json!({})).max_message_bytes, DEFAULT_MESSAGE);
    assert_eq!(
        options(json!({"batching": {"bytes": 8192}})).max_message_bytes,
        DEFAULT_MESSAGE
    );
    let large = json!({"batching": {"bytes": 40_000}});
    assert_eq!(options(large.clone()).max_message_bytes, 40_000);
    let held = json!({"batching": "adaptive", "native": {"cyclonedds": {"hold-us": 250}}});
    for (asked, words) in [(large, "40000 bytes"), (held, "250 us")] {
        answers_contain(&CycloneddsDriver, asked, [("batching", words)]);
    }
}

#[test]
fn words_name_the_policy() {
    let asked =
        json!({"lifespan-ms": 250, "last-value": true, "keep-alive-s": 2, "multicast": true});
    let answers = [
        ("lifespan-ms", "LIFESPAN 250 ms"),
        ("durability", "TRANSIENT_LOCAL"),
        ("keep-alive-s", "LeaseDuration 6 s"),
        ("multicast", "AllowMulticast asm"),
    ];
    answers_contain(&CycloneddsDriver, asked, answers);
}
