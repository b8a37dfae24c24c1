//! Settings, the options that they become, and those that are refused.

use pubgauge_driver::*;
use pubgauge_testing::{answers_contain, every_setting_is_answered, refused_by_name, settings};
use serde_json::json;

use crate::NatsDriver;
use crate::options::NatsOptions;

#[test]
fn every_neutral_setting_is_answered_for_in_order() {
    every_setting_is_answered(&NatsDriver, &Settings::default(), &Target::default(), &[]);
}

#[test]
fn what_is_asked_for_stands_in_the_table() {
    let asked = json!({
        "reliability": "at-most-once", "batching": {"bytes": 4096}, "on-full": "drop", "keep-alive-s": 7,
        "user-properties": {"site": "north", "unit": "7"},
        "native": {"nats": {"no-delay": false, "send-buffer-bytes": 65536}},
    });
    let answers = [
        ("batching", "4096 bytes"),
        ("on-full", "dropped"),
        ("user-properties", "2 headers"),
        ("native.nats.no-delay", "TCP_NODELAY: false"),
        ("native.nats.send-buffer-bytes", "SO_SNDBUF, bytes: 65536"),
    ];
    answers_contain(&NatsDriver, asked.clone(), answers);
    let (options, _) = NatsOptions::resolve(&settings(asked)).unwrap();
    assert_eq!((options.tuning.batch, options.keep_alive_s), (4096, 7));
    assert!(options.tuning.drop_when_full && !options.tuning.socket.no_delay);
    assert_eq!(
        options.header,
        b"NATS/1.0\r\nsite: north\r\nunit: 7\r\n\r\n"
    );
}

#[test]
fn what_core_nats_cannot_do_is_refused_by_name() {
    let cases = [
        ("pattern", json!("point-to-point")),
        ("pattern", json!("request-reply")),
        ("reliability", json!("at-least-once")),
        ("durability", json!("disk")),
        ("session", json!("durable")),
        ("session-expiry-s", json!(5)),
        ("last-value", json!(true)),
        ("lifespan-ms", json!(5)),
        ("in-flight", json!(5)),
        ("queue-limit", json!(5)),
        ("batching", json!({"bytes": 1 << 20})),
        ("priority", json!(1)),
        ("multicast", json!(true)),
        ("rate-limit-bytes-per-s", json!(5)),
        ("conflate", json!(true)),
        ("transport", json!("udp")),
        ("user-properties", json!({"a:b": "c"})),
        ("user-properties", json!({"a": "c\r\nd"})),
        ("native.nats.no-delay", json!(1)),
        ("native.nats.send-buffer-bytes", json!(0)),
        ("native.nats.no-dely", json!(true)),
    ];
    refused_by_name(&NatsDriver, cases);
}
