//! Tests of the settings.

use super::*;
use proptest::prelude::*;

fn settings(json: serde_json::Value) -> Settings {
    serde_json::from_value(json).unwrap()
}

fn refused(json: serde_json::Value) -> Vec<String> {
    resolve(&settings(json), Topology::Direct)
        .unwrap_err()
        .into_iter()
        .map(|u| u.setting)
        .collect()
}

#[test]
fn every_neutral_setting_is_answered_in_order() {
    for topology in [Topology::Direct, Topology::Forwarder] {
        let (_, mappings) = resolve(&Settings::default(), topology).unwrap();
        let names: Vec<_> = mappings.iter().map(|m| m.setting.as_str()).collect();
        assert_eq!(names, Settings::NAMES);
        assert!(
            mappings
                .iter()
                .all(|m| m.value == "default" && !m.native.is_empty())
        );
    }
}

#[test]
fn what_zeromq_cannot_do_is_refused_by_name() {
    for (key, value) in [
        ("reliability", serde_json::json!("at-least-once")),
        ("reliability", serde_json::json!("exactly-once")),
        ("durability", serde_json::json!("disk")),
        ("session", serde_json::json!("durable")),
        ("session-expiry-s", serde_json::json!(1)),
        ("last-value", serde_json::json!(true)),
        ("lifespan-ms", serde_json::json!(1)),
        ("in-flight", serde_json::json!(1)),
        ("queue-limit", serde_json::json!(4_000_000_000u32)),
        ("batching", serde_json::json!("off")),
        ("batching", serde_json::json!({"bytes": 1})),
        ("priority", serde_json::json!(11)),
        ("multicast", serde_json::json!(true)),
        ("rate-limit-bytes-per-s", serde_json::json!(1)),
        ("transport", serde_json::json!("udp")),
        ("transport", serde_json::json!("shared-memory")),
        ("user-properties", serde_json::json!({"a": "b"})),
    ] {
        assert_eq!(refused(serde_json::json!({ key: value })), [key]);
    }
}

#[test]
fn contradictions_are_refused() {
    let both = serde_json::json!({"conflate": true, "on-full": "block"});
    assert_eq!(refused(both), ["on-full"]);
    let limit = serde_json::json!({"conflate": true, "queue-limit": 5});
    assert_eq!(refused(limit), ["queue-limit"]);
    let ipc = serde_json::json!({"transport": "ipc", "priority": 5});
    assert_eq!(refused(ipc), ["priority"]);
    let frames = serde_json::json!(
        {"conflate": true, "native": {"zeromq": {"framing": "multipart"}}});
    assert_eq!(refused(frames), ["conflate"]);
}

#[test]
fn point_to_point_has_no_drops_no_conflation_and_no_wildcards() {
    let with = |key: &str, value: serde_json::Value| {
        refused(serde_json::json!({"pattern": "point-to-point", key: value}))
    };
    assert_eq!(with("on-full", "drop".into()), ["on-full"]);
    assert_eq!(with("conflate", true.into()), ["conflate"]);
    let plus = serde_json::json!({"zeromq": {"plus-wildcard": "filter-at-receiver"}});
    assert_eq!(with("native", plus), ["native.zeromq.plus-wildcard"]);
    let plain = settings(serde_json::json!({"pattern": "point-to-point"}));
    let (options, mappings) = resolve(&plain, Topology::Direct).unwrap();
    assert!(options.point_to_point && options.traits().back_pressure);
    assert!(mappings[0].native.contains("PUSH"));
    let refused = resolve(&plain, Topology::Forwarder).unwrap_err();
    assert_eq!(refused[0].setting, "pattern");
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let two = serde_json::json!({"last-value": true, "in-flight": 3});
    assert_eq!(refused(two), ["last-value", "in-flight"]);
}

#[test]
fn dropping_shows_in_the_traits() {
    let traits = |json| {
        resolve(&settings(json), Topology::Direct)
            .unwrap()
            .0
            .traits()
    };
    let block = traits(serde_json::json!({}));
    assert!(block.lossless && block.back_pressure && block.publishers_first);
    for lossy in [
        serde_json::json!({"on-full": "drop"}),
        serde_json::json!({"conflate": true}),
    ] {
        let traits = traits(lossy);
        assert!(!traits.lossless && !traits.back_pressure);
    }
    let unlimited = traits(serde_json::json!({"queue-limit": 0}));
    assert!(unlimited.lossless && !unlimited.back_pressure);
}

#[test]
fn queue_limit_sets_both_marks_and_native_sets_them_apart() {
    let json = serde_json::json!(
        {"queue-limit": 5, "native": {"zeromq": {"receive-hwm": 7}}});
    let (options, mappings) = resolve(&settings(json), Topology::Direct).unwrap();
    assert_eq!((options.send_hwm, options.receive_hwm), (5, 7));
    let row = mappings
        .iter()
        .find(|m| m.setting == "queue-limit")
        .unwrap();
    assert_eq!(
        row.native,
        "ZMQ_SNDHWM 5, ZMQ_RCVHWM 7 messages per connection"
    );
}

proptest! {
    #[test]
    fn the_mark_never_falls_as_priority_rises(a in -10i32..=10, b in -10i32..=10) {
        let (low, high) = (a.min(b), a.max(b));
        // CS1 stands below no mark at all in spite of its larger number (RFC 3662).
        let rank = |p| match type_of_service(p) { 0x20 => -1, tos => tos };
        prop_assert!(rank(low) <= rank(high));
        prop_assert!(type_of_service(a) <= 0xa0 && type_of_service(a) & 0x1f == 0);
    }
}
