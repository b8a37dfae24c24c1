use crate::codec::Value;
use proptest::prelude::*;
use pubgauge_driver::*;
use serde_json::json;

use crate::AmqpDriver;
use crate::options::{Answers, Exchange, Options};

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

fn resolved(settings: &Settings) -> (Options, Vec<Mapping>) {
    Options::resolve(settings).unwrap()
}

fn refused(settings: &Settings) -> Vec<(String, String)> {
    let refused = AmqpDriver
        .resolve(settings, &Target::default())
        .expect_err("something is refused");
    refused.into_iter().map(|u| (u.setting, u.reason)).collect()
}

#[test]
fn every_neutral_setting_is_answered_for_in_order() {
    let (options, rows) = resolved(&Settings::default());
    let names: Vec<_> = rows.iter().map(|r| r.setting.as_str()).collect();
    assert_eq!(names, Settings::NAMES);
    let answered = |r: &Mapping| r.value == "default" && !r.native.is_empty();
    assert!(rows.iter().all(answered));
    assert_eq!(options.answers, Answers::Nothing);
    assert_eq!(options.exchange_name(), "amq.topic");
    assert_eq!(options.properties().delivery_mode, Some(1));
}

#[test]
fn what_is_asked_for_stands_in_the_table() {
    let settings = Settings {
        durability: Some(Durability::DiskSynced),
        session: Some(Session::Durable),
        session_expiry_s: Some(90),
        lifespan_ms: Some(1500),
        in_flight: Some(7),
        queue_limit: Some(100),
        on_full: Some(OnFull::Drop),
        batching: Some(Batching::Bytes(4096)),
        priority: Some(3),
        keep_alive_s: Some(0),
        user_properties: Some([("k".to_owned(), "v".to_owned())].into()),
        ..native(&[("prefetch", json!(9)), ("mandatory", json!(true))])
    };
    let settings = Settings {
        reliability: Some(Reliability::AtLeastOnce),
        ..settings
    };
    let (options, rows) = resolved(&settings);
    let row = |name: &str| {
        let row = rows.iter().find(|r| r.setting == name);
        row.unwrap_or_else(|| panic!("{name}")).native.as_str()
    };
    assert_eq!(
        row("reliability"),
        "publisher confirms, manual acknowledgement, prefetch 9"
    );
    assert!(row("durability").contains("after fsync"));
    assert_eq!(row("session-expiry-s"), "x-expires 90000 ms");
    assert!(row("lifespan-ms").starts_with("expiration 1500 ms"));
    assert!(row("priority").starts_with("priority 13 of 0 to 20"));
    assert!(row("queue-limit").starts_with("x-max-length 100, x-overflow drop-head"));
    assert_eq!(
        row("native.amqp.prefetch"),
        "basic.qos per consumer, 0 for no limit: 9"
    );
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
    let s = Settings::default;
    for (settings, name, words) in [
        (
            Settings {
                reliability: Some(Reliability::ExactlyOnce),
                ..s()
            },
            "reliability",
            "at-least-once",
        ),
        (
            Settings {
                pattern: Some(MessagingPattern::RequestReply),
                ..s()
            },
            "pattern",
            "ping-pong",
        ),
        (
            Settings {
                last_value: Some(true),
                ..s()
            },
            "last-value",
            "keep no messages",
        ),
        (
            Settings {
                multicast: Some(true),
                ..s()
            },
            "multicast",
            "TCP",
        ),
        (
            Settings {
                rate_limit_bytes_per_s: Some(1),
                ..s()
            },
            "rate-limit-bytes-per-s",
            "testbed",
        ),
        (
            Settings {
                transport: Some(Transport::Udp),
                ..s()
            },
            "transport",
            "amqps://",
        ),
        (
            Settings {
                durability: Some(Durability::DiskSynced),
                ..s()
            },
            "durability",
            "confirms",
        ),
        (
            Settings {
                session_expiry_s: Some(1),
                ..s()
            },
            "session-expiry-s",
            "durable",
        ),
        (
            Settings {
                session: Some(Session::Durable),
                session_expiry_s: Some(0),
                ..s()
            },
            "session-expiry-s",
            "clean",
        ),
        (
            Settings {
                session: Some(Session::Durable),
                reliability: Some(Reliability::Reliable),
                ..s()
            },
            "session",
            "at-least-once",
        ),
        (
            Settings {
                lifespan_ms: Some(0),
                ..s()
            },
            "lifespan-ms",
            "1 to",
        ),
        (
            Settings {
                in_flight: Some(5),
                ..s()
            },
            "in-flight",
            "at-least-once",
        ),
        (
            Settings {
                in_flight: Some(0),
                ..reliable()
            },
            "in-flight",
            "1 to",
        ),
        (
            Settings {
                queue_limit: Some(5),
                on_full: Some(OnFull::Block),
                ..s()
            },
            "queue-limit",
            "on-full",
        ),
        (
            Settings {
                queue_limit: Some(5),
                conflate: Some(true),
                ..s()
            },
            "queue-limit",
            "conflate",
        ),
        (
            Settings {
                priority: Some(11),
                ..s()
            },
            "priority",
            "-10 to 10",
        ),
        (
            Settings {
                batching: Some(Batching::Bytes(1 << 20)),
                ..s()
            },
            "batching",
            "65536",
        ),
        (
            Settings {
                user_properties: Some([("x".repeat(256), String::new())].into()),
                ..s()
            },
            "user-properties",
            "255",
        ),
        (
            Settings {
                user_properties: Some([("x".into(), "y".repeat(4000))].into()),
                ..s()
            },
            "user-properties",
            "3 KiB",
        ),
        (
            native(&[("prefetc", json!(1))]),
            "native.amqp.prefetc",
            "`prefetch`",
        ),
        (
            native(&[("prefetch", json!(-1))]),
            "native.amqp.prefetch",
            "0 to 65535",
        ),
        (
            native(&[("prefetch", json!(5))]),
            "native.amqp.prefetch",
            "manual",
        ),
        (
            native(&[("mandatory", json!(true))]),
            "native.amqp.mandatory",
            "at-least-once",
        ),
        (
            native(&[("transactions", json!(1))]),
            "native.amqp.transactions",
            "at-least-once",
        ),
        (
            native(&[("exchange", json!("headers"))]),
            "native.amqp.exchange",
            "fanout",
        ),
        (
            native(&[("exchange-name", json!("amq.x"))]),
            "native.amqp.exchange-name",
            "amq.",
        ),
        (
            native(&[("queue-type", json!("quorum"))]),
            "native.amqp.queue-type",
            "durable",
        ),
        (
            native(&[("overflow", json!("drop-head"))]),
            "native.amqp.overflow",
            "queue-limit",
        ),
        (
            native(&[("max-priority", json!(9))]),
            "native.amqp.max-priority",
            "only with priority",
        ),
        (
            native(&[("frame-max-bytes", json!(100))]),
            "native.amqp.frame-max-bytes",
            "4096",
        ),
        (
            Settings {
                pattern: Some(MessagingPattern::PointToPoint),
                ..native(&[("exchange", json!("topic"))])
            },
            "native.amqp.exchange",
            "leave this out",
        ),
    ] {
        let refused = refused(&settings);
        let found = refused.iter().find(|(setting, _)| setting == name);
        let Some((_, reason)) = found else {
            panic!("{name} is not among {refused:?}");
        };
        assert!(reason.contains(words), "{name}: {reason}");
    }
}

#[test]
fn promises_follow_the_settings() {
    let traits = |settings: &Settings| AmqpDriver.traits(settings);
    assert!(!traits(&Settings::default()).acknowledges);
    assert!(!traits(&Settings::default()).lossless);
    assert!(traits(&reliable()).acknowledges && traits(&reliable()).lossless);
    let lossy = Settings {
        reliability: Some(Reliability::AtLeastOnce),
        ..native(&[("acknowledge", json!("automatic"))])
    };
    assert!(!traits(&lossy).lossless);
    let limited = Settings {
        queue_limit: Some(1),
        ..reliable()
    };
    assert!(!traits(&limited).lossless);
}

#[test]
fn subscriptions_that_cannot_be_had_are_refused_beforehand() {
    let check = |settings: &Settings, filter: &str, group: Option<&str>| {
        AmqpDriver.check_subscription(
            settings,
            &Target::default(),
            &Subscription {
                filter: filter.into(),
                group: group.map(Into::into),
            },
        )
    };
    let direct = native(&[("exchange", json!("direct"))]);
    assert!(check(&Settings::default(), "a/+/#", Some("g")).is_ok());
    assert!(check(&direct, "a/b", None).is_ok());
    let error = check(&direct, "a/+", None).unwrap_err();
    assert!(error.hint.is_some(), "{error}");
    let long = "g".repeat(250);
    assert!(check(&Settings::default(), "a", Some(&long)).is_err());
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

    #[test]
    fn no_native_value_panics(name in "[a-z-]{0,20}", number: i64, text in ".{0,20}") {
        for value in [json!(number), json!(text), json!(null), json!([number])] {
            let _ = AmqpDriver.resolve(&native(&[(&name, value.clone())]), &Target::default());
            let _ = AmqpDriver.resolve(&native(&[("prefetch", value)]), &Target::default());
        }
    }
}
