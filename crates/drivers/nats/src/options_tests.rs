//! What settings become, and what is refused.

use pubgauge_driver::*;
use serde_json::json;

use crate::NatsDriver;
use crate::options::Options;

fn settings(json: serde_json::Value) -> Settings {
    serde_json::from_value(json).unwrap()
}

#[test]
fn every_neutral_setting_is_answered_for_in_order() {
    let rows = NatsDriver.resolve(&Settings::default(), &Target::default());
    let rows = rows.unwrap();
    let names: Vec<_> = rows.iter().map(|r| r.setting.as_str()).collect();
    assert_eq!(names, Settings::NAMES);
    assert!(
        rows.iter()
            .all(|r| r.value == "default" && !r.native.is_empty())
    );
}

#[test]
fn what_is_asked_for_stands_in_the_table() {
    let settings = settings(json!({
        "reliability": "at-most-once", "batching": {"bytes": 4096}, "on-full": "drop", "keep-alive-s": 7,
        "user-properties": {"site": "north", "unit": "7"},
        "native": {"nats": {"no-delay": false, "send-buffer-bytes": 65536}},
    }));
    let (options, rows) = Options::resolve(&settings).unwrap();
    assert_eq!((options.tuning.batch, options.keep_alive_s), (4096, 7));
    assert!(options.tuning.drop_when_full && !options.tuning.socket.no_delay);
    assert_eq!(
        options.header,
        b"NATS/1.0\r\nsite: north\r\nunit: 7\r\n\r\n"
    );
    let row = |name: &str| &rows.iter().find(|r| r.setting == name).unwrap().native;
    assert!(row("batching").contains("4096 bytes"));
    assert!(row("on-full").contains("dropped"));
    assert!(row("user-properties").contains("2 headers"));
    assert_eq!(row("native.nats.no-delay"), "TCP_NODELAY: false");
    assert_eq!(
        row("native.nats.send-buffer-bytes"),
        "SO_SNDBUF, bytes: 65536"
    );
}

#[test]
fn what_core_nats_cannot_do_is_refused_by_name() {
    for (name, value) in [
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
    ] {
        let asked = match name.strip_prefix("native.nats.") {
            Some(own) => json!({"native": {"nats": {own: value}}}),
            None => json!({name: value}),
        };
        let refused = Options::resolve(&settings(asked)).expect_err(name);
        let names: Vec<_> = refused.iter().map(|r| r.setting.as_str()).collect();
        assert_eq!(names, [name]);
    }
}
