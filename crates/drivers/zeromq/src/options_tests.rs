//! Tests of the settings.

use super::*;
use crate::ZeromqDriver;
use proptest::prelude::*;
use pubgauge_driver::Target;
use pubgauge_testing::{
    answers_contain, contradictions_are_refused, every_setting_is_answered, refused_by_name,
    settings,
};
use serde_json::json;

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
fn what_does_not_go_together_is_refused_all_at_once() {
    let cases = [
        (json!({"conflate": true, "on-full": "block"}), "on-full", ""),
        (
            json!({"conflate": true, "queue-limit": 5}),
            "queue-limit",
            "",
        ),
        (json!({"transport": "ipc", "priority": 5}), "priority", ""),
        (
            json!({"conflate": true, "native": {"zeromq": {"framing": "multipart"}}}),
            "conflate",
            "",
        ),
        (
            json!({"last-value": true, "in-flight": 3}),
            "last-value, in-flight",
            "",
        ),
    ];
    contradictions_are_refused(&ZeromqDriver, cases);
}

#[test]
fn point_to_point_has_no_drops_no_conflation_and_no_wildcards() {
    let plus = json!({"zeromq": {"plus-wildcard": "filter-at-receiver"}});
    let cases = [
        ("on-full", json!("drop"), "on-full"),
        ("conflate", json!(true), "conflate"),
        ("native", plus, "native.zeromq.plus-wildcard"),
    ]
    .map(|(key, value, name)| (json!({"pattern": "point-to-point", key: value}), name, ""));
    contradictions_are_refused(&ZeromqDriver, cases);
    let plain = settings(json!({"pattern": "point-to-point"}));
    let (options, mappings) = resolve(&plain, Topology::Direct).unwrap();
    assert!(options.point_to_point && options.traits().back_pressure);
    assert!(mappings[0].native.contains("PUSH"));
    let refused = resolve(&plain, Topology::Forwarder).unwrap_err();
    assert_eq!(refused[0].setting, "pattern");
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
    let marks = "ZMQ_SNDHWM 5, ZMQ_RCVHWM 7 messages per connection";
    answers_contain(&ZeromqDriver, json.clone(), [("queue-limit", marks)]);
    let (options, _) = resolve(&settings(json), Topology::Direct).unwrap();
    assert_eq!((options.send_hwm, options.receive_hwm), (5, 7));
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
