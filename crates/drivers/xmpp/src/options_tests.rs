//! Tests of `options` through the driver.

use pubgauge_driver::capability::{Capability, Filtering, Support};
use pubgauge_driver::{
    Batching, Driver, Durability, Mapping, MessagingPattern, OnFull, Reliability, Session,
    Settings, Subscription, Target, Transport, Unsupported,
};

use crate::XmppDriver;

fn resolve(settings: &Settings) -> Result<Vec<Mapping>, Vec<Unsupported>> {
    XmppDriver.resolve(settings, &Target::default())
}

fn native(name: &str, value: serde_json::Value) -> Settings {
    let mut settings = Settings::default();
    let values = [(name.to_owned(), value)];
    settings.native.insert("xmpp".into(), values.into());
    settings
}

/// The only refusal there is.
fn refusal(settings: &Settings) -> Unsupported {
    let mut refused = resolve(settings).unwrap_err();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(!refused[0].reason.is_empty());
    refused.remove(0)
}

fn row(settings: &Settings, name: &str) -> Mapping {
    let rows = resolve(settings).unwrap_or_else(|refused| panic!("{refused:?}"));
    rows.into_iter().find(|row| row.setting == name).unwrap()
}

#[test]
fn every_setting_has_an_answer_once_and_in_order() {
    for pattern in [None, Some(MessagingPattern::PointToPoint)] {
        let settings = Settings {
            pattern,
            ..Settings::default()
        };
        let rows = resolve(&settings).unwrap();
        let names: Vec<_> = rows.iter().map(|row| row.setting.as_str()).collect();
        assert_eq!(names, Settings::NAMES);
    }
}

#[test]
fn what_xmpp_has_not_is_refused_by_name() {
    let d = Settings::default;
    let cases = [
        (
            "pattern",
            Settings {
                pattern: Some(MessagingPattern::RequestReply),
                ..d()
            },
        ),
        (
            "reliability",
            Settings {
                reliability: Some(Reliability::AtLeastOnce),
                ..d()
            },
        ),
        (
            "reliability",
            Settings {
                reliability: Some(Reliability::ExactlyOnce),
                ..d()
            },
        ),
        (
            "reliability",
            Settings {
                reliability: Some(Reliability::Reliable),
                ..d()
            },
        ),
        (
            "durability",
            Settings {
                durability: Some(Durability::Disk),
                ..d()
            },
        ),
        (
            "durability",
            Settings {
                durability: Some(Durability::DiskSynced),
                ..d()
            },
        ),
        (
            "session",
            Settings {
                session: Some(Session::Durable),
                ..d()
            },
        ),
        (
            "session-expiry-s",
            Settings {
                session_expiry_s: Some(1),
                ..d()
            },
        ),
        (
            "lifespan-ms",
            Settings {
                lifespan_ms: Some(1),
                ..d()
            },
        ),
        (
            "in-flight",
            Settings {
                in_flight: Some(0),
                ..d()
            },
        ),
        (
            "queue-limit",
            Settings {
                queue_limit: Some(1),
                ..d()
            },
        ),
        (
            "batching",
            Settings {
                batching: Some(Batching::Bytes(0)),
                ..d()
            },
        ),
        (
            "batching",
            Settings {
                batching: Some(Batching::Bytes(1 << 20)),
                ..d()
            },
        ),
        (
            "priority",
            Settings {
                priority: Some(0),
                ..d()
            },
        ),
        (
            "multicast",
            Settings {
                multicast: Some(true),
                ..d()
            },
        ),
        (
            "rate-limit-bytes-per-s",
            Settings {
                rate_limit_bytes_per_s: Some(1),
                ..d()
            },
        ),
        (
            "conflate",
            Settings {
                conflate: Some(true),
                ..d()
            },
        ),
        (
            "transport",
            Settings {
                transport: Some(Transport::Udp),
                ..d()
            },
        ),
        (
            "user-properties",
            Settings {
                user_properties: Some([("a".into(), "b".into())].into()),
                ..d()
            },
        ),
        (
            "native.xmpp.mechanism",
            native("mechanism", "gssapi".into()),
        ),
        (
            "native.xmpp.pubsub-service",
            native("pubsub-service", "a'b".into()),
        ),
        (
            "native.xmpp.discovery-interval-ms",
            native("discovery-interval-ms", 9.into()),
        ),
        ("native.xmpp.no-delay", native("no-delay", 1.into())),
        (
            "native.xmpp.send-buffer-bytes",
            native("send-buffer-bytes", 0.into()),
        ),
        (
            "native.xmpp.receive-buffer-bytes",
            native("receive-buffer-bytes", "1".into()),
        ),
    ];
    for (name, settings) in cases {
        assert_eq!(refusal(&settings).setting, name);
    }
}

#[test]
fn what_point_to_point_has_not_is_refused_with_it() {
    let direct = Settings {
        pattern: Some(MessagingPattern::PointToPoint),
        ..Settings::default()
    };
    let last = Settings {
        last_value: Some(true),
        ..direct.clone()
    };
    assert_eq!(refusal(&last).setting, "last-value");
    let window = Settings {
        in_flight: Some(5),
        ..direct.clone()
    };
    assert_eq!(refusal(&window).setting, "in-flight");
    let anonymous = Settings {
        native: native("mechanism", "anonymous".into()).native,
        ..direct.clone()
    };
    assert_eq!(refusal(&anonymous).setting, "pattern");
    // A system whose file lists no other feature.
    let target = Target {
        features: vec!["anonymous".into()],
        ..Target::default()
    };
    let refused = XmppDriver.resolve(&direct, &target).unwrap_err();
    assert_eq!(refused[0].setting, "pattern");
    assert!(XmppDriver.resolve(&Settings::default(), &target).is_ok());
    let scram = native("mechanism", "scram-sha-1".into());
    let refused = XmppDriver.resolve(&scram, &target).unwrap_err();
    assert_eq!(refused[0].setting, "native.xmpp.mechanism");
    assert!(!XmppDriver.traits(&direct).acknowledges);
    assert!(XmppDriver.traits(&Settings::default()).acknowledges);
}

#[test]
fn unknown_native_settings_are_refused_with_the_nearest() {
    let refused = refusal(&native("mecanism", "plain".into()));
    assert_eq!(refused.setting, "native.xmpp.mecanism");
    assert!(
        refused.reason.contains("did you mean `mechanism`"),
        "{}",
        refused.reason
    );
}

#[test]
fn values_show_what_they_became() {
    let settings = Settings {
        last_value: Some(true),
        in_flight: Some(7),
        batching: Some(Batching::Bytes(1000)),
        on_full: Some(OnFull::Drop),
        multicast: Some(false),
        keep_alive_s: Some(0),
        ..native("mechanism", "scram-sha-256".into())
    };
    for (name, value, words) in [
        ("last-value", "true", "max_items 1"),
        ("in-flight", "7", "7 unanswered publish requests"),
        ("batching", "{\"bytes\":1000}", "1000 bytes"),
        ("on-full", "drop", "refused as dropped"),
        ("multicast", "false", "TCP copy"),
        ("keep-alive-s", "0", "none"),
        ("native.xmpp.mechanism", "scram-sha-256", "SASL mechanism"),
    ] {
        let row = row(&settings, name);
        assert_eq!(row.value, value, "{row:?}");
        assert!(row.native.contains(words), "{row:?}");
    }
}

#[test]
fn subscriptions_that_cannot_be_are_refused_beforehand() {
    let check = |pattern, filter: &str, group: Option<&str>| {
        let settings = Settings {
            pattern,
            ..Settings::default()
        };
        let subscription = Subscription {
            filter: filter.into(),
            group: group.map(str::to_owned),
        };
        XmppDriver.check_subscription(&settings, &Target::default(), &subscription)
    };
    for filter in ["a", "a/#", "a/+/b", "#"] {
        assert!(check(None, filter, None).is_ok(), "{filter}");
    }
    assert!(check(None, "a", Some("g")).is_err());
    for filter in ["", "a#", "#/a", "a\u{0}b"] {
        assert!(check(None, filter, None).is_err(), "{filter}");
    }
    let direct = Some(MessagingPattern::PointToPoint);
    assert!(check(direct, "a/b", None).is_ok());
    assert!(check(direct, "a/#", None).is_err());
    assert!(check(direct, &"a".repeat(1024), None).is_err());
    assert!(check(direct, "a\tb", None).is_err());
}

#[test]
fn the_matrix_says_what_is_emulated() {
    let support = |capability| {
        XmppDriver
            .capability(capability, &Target::default())
            .support
    };
    assert_eq!(
        support(Capability::Filter(Filtering::Exact)),
        Support::Native
    );
    assert_eq!(
        support(Capability::Filter(Filtering::Prefix)),
        Support::Emulated
    );
    assert_eq!(
        support(Capability::Filter(Filtering::PerLevel)),
        Support::Emulated
    );
    assert_eq!(
        support(Capability::Filter(Filtering::Content)),
        Support::Unsupported
    );
    assert_eq!(support(Capability::BinaryPayload), Support::Emulated);
    assert_eq!(
        support(Capability::Pattern(MessagingPattern::PointToPoint)),
        Support::Native
    );
    assert_eq!(support(Capability::LastValue), Support::Native);
    assert_eq!(support(Capability::InFlight), Support::Native);
    assert_eq!(support(Capability::Group), Support::Unsupported);
    assert_eq!(
        support(Capability::Reliability(Reliability::AtLeastOnce)),
        Support::Unsupported
    );
    assert_eq!(support(Capability::Lifespan), Support::Unsupported);
    for capability in Capability::ALL {
        let answer = XmppDriver.capability(capability, &Target::default());
        assert!(!answer.words.is_empty(), "{capability}");
    }
}
