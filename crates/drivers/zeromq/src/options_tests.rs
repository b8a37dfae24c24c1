//! Tests of the settings.

use super::*;
use crate::ZeromqDriver;
use proptest::prelude::*;
use pubgauge_driver::Target;
use pubgauge_testing::{every_setting_is_answered, refused_by_name, settings};
use serde_json::{Value, json};

fn refused(json: Value) -> Vec<String> {
    resolve(&settings(json), Topology::Direct)
        .unwrap_err()
        .into_iter()
        .map(|u| u.setting)
        .collect()
}

#[test]
fn every_neutral_setting_is_answered_in_order() {
    let forwarder = Target::single("zmq-forwarder+tcp://127.0.0.1:1,2");
    for target in [Target::default(), forwarder] {
        every_setting_is_answered(&ZeromqDriver, &Settings::default(), &target, &[]);
    }
}

#[test]
fn what_zeromq_cannot_do_is_refused_by_name() {
    let cases = [
        ("reliability", json!("at-least-once")),
        ("reliability", json!("exactly-once")),
        ("durability", json!("disk")),
        ("session", json!("durable")),
        ("session-expiry-s", json!(1)),
        ("last-value", json!(true)),
        ("lifespan-ms", json!(1)),
        ("in-flight", json!(1)),
        ("queue-limit", json!(4_000_000_000u32)),
        ("batching", json!("off")),
        ("batching", json!({"bytes": 1})),
        ("priority", json!(11)),
        ("multicast", json!(true)),
        ("rate-limit-bytes-per-s", json!(1)),
        ("transport", json!("udp")),
        ("transport", json!("shared-memory")),
        ("user-properties", json!({"a": "b"})),
        ("native.zeromq.io-threads", json!(0)),
        ("native.zeromq.tos", json!(256)),
        ("native.zeromq.linger-ms", json!(-1)),
        ("native.zeromq.send-hwm", json!("many")),
        ("native.zeromq.immediate", json!(1)),
        ("native.zeromq.framing", json!("two")),
    ];
    refused_by_name(&ZeromqDriver, cases);
}

#[test]
fn contradictions_are_refused() {
    let both = json!({"conflate": true, "on-full": "block"});
    assert_eq!(refused(both), ["on-full"]);
    let limit = json!({"conflate": true, "queue-limit": 5});
    assert_eq!(refused(limit), ["queue-limit"]);
    let ipc = json!({"transport": "ipc", "priority": 5});
    assert_eq!(refused(ipc), ["priority"]);
    let frames = json!(
        {"conflate": true, "native": {"zeromq": {"framing": "multipart"}}});
    assert_eq!(refused(frames), ["conflate"]);
}

#[test]
fn point_to_point_has_no_drops_no_conflation_and_no_wildcards() {
    let with = |key: &str, value: Value| refused(json!({"pattern": "point-to-point", key: value}));
    assert_eq!(with("on-full", "drop".into()), ["on-full"]);
    assert_eq!(with("conflate", true.into()), ["conflate"]);
    let plus = json!({"zeromq": {"plus-wildcard": "filter-at-receiver"}});
    assert_eq!(with("native", plus), ["native.zeromq.plus-wildcard"]);
    let plain = settings(json!({"pattern": "point-to-point"}));
    let (options, mappings) = resolve(&plain, Topology::Direct).unwrap();
    assert!(options.point_to_point && options.traits().back_pressure);
    assert!(mappings[0].native.contains("PUSH"));
    let refused = resolve(&plain, Topology::Forwarder).unwrap_err();
    assert_eq!(refused[0].setting, "pattern");
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let two = json!({"last-value": true, "in-flight": 3});
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
    let block = traits(json!({}));
    assert!(block.back_pressure && block.publishers_first);
    for lossy in [json!({"on-full": "drop"}), json!({"conflate": true})] {
        assert!(!traits(lossy).back_pressure);
    }
    let unlimited = traits(json!({"queue-limit": 0}));
    assert!(!unlimited.back_pressure);
}

#[test]
fn queue_limit_sets_both_marks_and_native_sets_them_apart() {
    let json = json!(
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
