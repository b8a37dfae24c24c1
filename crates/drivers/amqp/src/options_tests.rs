use crate::codec::Value;
use proptest::prelude::*;
use pubgauge_driver::*;
use pubgauge_testing::{
    answers_contain, contradictions_are_refused, every_setting_is_answered, refused_by_name,
    settings,
};
use serde_json::json;

use crate::AmqpDriver;
use crate::options::{AmqpOptions, Answers, Exchange};

fn native(pairs: &[(&str, serde_json::Value)]) -> Settings {
    let own = pairs.iter().map(|(k, v)| ((*k).to_owned(), v.clone()));
    Settings {
        native: [("amqp".to_owned(), own.collect())].into(),
        ..Settings::default()
    }
}

fn reliable() -> Settings {
    Settings {
        reliability: Some(Reliability::AtLeastOnce),
        ..Settings::default()
    }
}

fn resolved(settings: &Settings) -> (AmqpOptions, Vec<Mapping>) {
    AmqpOptions::resolve(settings).unwrap()
}

#[test]
fn every_neutral_setting_is_answered_for_in_order() {
    let none = Settings::default();
    every_setting_is_answered(&AmqpDriver, &none, &Target::default(), &[]);
    let (options, _) = resolved(&none);
    assert_eq!(options.answers, Answers::Nothing);
    assert_eq!(options.exchange_name(), "amq.topic");
    assert_eq!(options.properties().delivery_mode, Some(1));
}

#[test]
fn what_is_asked_for_stands_in_the_table() {
    let asked = json!({
        "reliability": "at-least-once", "durability": "disk-synced", "session": "durable", "session-expiry-s": 90,
        "lifespan-ms": 1500, "in-flight": 7, "queue-limit": 100, "on-full": "drop", "batching": {"bytes": 4096},
        "priority": 3, "keep-alive-s": 0, "user-properties": {"k": "v"},
        "native": {"amqp": {"prefetch": 9, "mandatory": true}},
    });
    let answers = [
        (
            "reliability",
            "publisher confirms, manual acknowledgement, prefetch 9",
        ),
        ("durability", "after fsync"),
        ("session-expiry-s", "x-expires 90000 ms"),
        ("lifespan-ms", "expiration 1500 ms"),
        ("priority", "priority 13 of 0 to 20"),
        ("queue-limit", "x-max-length 100, x-overflow drop-head"),
        (
            "native.amqp.prefetch",
            "basic.qos per consumer, 0 for no limit: 9",
        ),
    ];
    answers_contain(&AmqpDriver, asked.clone(), answers);
    let (options, _) = resolved(&settings(asked));
    assert_eq!(options.heartbeat_s, Some(0));
    let properties = options.properties();
    assert_eq!(properties.delivery_mode, Some(2));
    assert_eq!(properties.priority, Some(13));
    assert_eq!(properties.expiration, Some(&b"1500"[..]));
    assert_eq!(
        properties.headers.unwrap().find("k"),
        Some(Value::Long(b"v"))
    );
    let arguments = options.staying.as_table();
    for (name, value) in [
        ("x-expires", 90_000),
        ("x-max-length", 100),
        ("x-max-priority", 20),
    ] {
        assert_eq!(arguments.find(name), Some(Value::Int(value)), "{name}");
    }
}

#[test]
fn patterns_choose_the_exchange() {
    let of = |settings: &Settings| {
        let (options, _) = resolved(settings);
        (options.exchange, options.exchange_name().to_owned())
    };
    let point = Settings {
        pattern: Some(MessagingPattern::PointToPoint),
        ..Settings::default()
    };
    assert_eq!(of(&point), (Exchange::Queue, String::new()));
    for (name, exchange) in [("direct", Exchange::Direct), ("fanout", Exchange::Fanout)] {
        let settings = native(&[("exchange", json!(name))]);
        assert_eq!(of(&settings), (exchange, format!("amq.{name}")));
    }
    let own = native(&[("exchange-name", json!("mine"))]);
    assert_eq!(of(&own), (Exchange::Topic, "mine".into()));
    let (commits, _) = resolved(&Settings {
        reliability: Some(Reliability::Reliable),
        ..native(&[("transactions", json!(20))])
    });
    assert_eq!(commits.answers, Answers::Commits(20));
}

#[test]
fn what_cannot_be_honoured_is_refused_by_name() {
    let cases = [
        ("reliability", json!("exactly-once")),
        ("pattern", json!("request-reply")),
        ("last-value", json!(true)),
        ("multicast", json!(true)),
        ("rate-limit-bytes-per-s", json!(1)),
        ("transport", json!("udp")),
        ("durability", json!("disk-synced")),
        ("session-expiry-s", json!(1)),
        ("lifespan-ms", json!(0)),
        ("in-flight", json!(5)),
        ("priority", json!(11)),
        ("batching", json!({"bytes": 1 << 20})),
        ("user-properties", json!({"x".repeat(256): ""})),
        ("user-properties", json!({"x": "y".repeat(4000)})),
        ("native.amqp.prefetc", json!(1)),
        ("native.amqp.prefetch", json!(-1)),
        ("native.amqp.prefetch", json!(5)),
        ("native.amqp.mandatory", json!(true)),
        ("native.amqp.transactions", json!(1)),
        ("native.amqp.exchange", json!("headers")),
        ("native.amqp.exchange-name", json!("amq.x")),
        ("native.amqp.queue-type", json!("quorum")),
        ("native.amqp.overflow", json!("drop-head")),
        ("native.amqp.max-priority", json!(9)),
        ("native.amqp.frame-max-bytes", json!(100)),
    ];
    refused_by_name(&AmqpDriver, cases);
}

#[test]
fn what_does_not_go_together_is_refused_with_advice() {
    let cases = [
        (
            json!({"session": "durable", "session-expiry-s": 0}),
            "session-expiry-s",
            "clean",
        ),
        (
            json!({"session": "durable", "reliability": "reliable"}),
            "session",
            "at-least-once",
        ),
        (
            json!({"in-flight": 0, "reliability": "at-least-once"}),
            "in-flight",
            "1 to",
        ),
        (
            json!({"queue-limit": 5, "on-full": "block"}),
            "queue-limit",
            "on-full",
        ),
        (
            json!({"queue-limit": 5, "conflate": true}),
            "queue-limit",
            "conflate",
        ),
        (
            json!({"pattern": "point-to-point", "native": {"amqp": {"exchange": "topic"}}}),
            "native.amqp.exchange",
            "leave this out",
        ),
    ];
    contradictions_are_refused(&AmqpDriver, cases);
}

#[test]
fn promises_follow_the_settings() {
    let traits = |settings: &Settings| AmqpDriver.traits(settings);
    assert!(!traits(&Settings::default()).acknowledges);
    assert!(traits(&reliable()).acknowledges);
}

#[test]
fn subscriptions_that_cannot_be_had_are_refused_beforehand() {
    let check = |settings: &Settings, subscription: Subscription| {
        AmqpDriver.check_subscription(settings, &Target::default(), &subscription)
    };
    let none = Settings::default();
    let direct = native(&[("exchange", json!("direct"))]);
    let shared = Subscription::matching("a/+/#").of_group("g");
    assert!(check(&none, shared).is_ok());
    assert!(check(&direct, Subscription::matching("a/b")).is_ok());
    let error = check(&direct, Subscription::matching("a/+")).unwrap_err();
    assert!(error.hint.is_some(), "{error}");
    let long = Subscription::matching("a").of_group("g".repeat(250));
    assert!(check(&none, long).is_err());
}

proptest! {
    /// Priorities keep their order, and the ends of the scale are the ends of the queue's.
    #[test]
    fn priorities_keep_their_order(max in 20u8.., a in -10i32..=10, b in -10i32..=10) {
        let level = |n: i32| {
            let settings = Settings {
                priority: Some(n),
                ..native(&[("max-priority", json!(max))])
            };
            resolved(&settings).0.priority.unwrap()
        };
        prop_assert_eq!(a.cmp(&b), level(a).cmp(&level(b)));
        prop_assert_eq!((level(-10), level(10)), (0, max));
    }
}
