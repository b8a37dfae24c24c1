//! Tests of `options` through the driver.

use pubgauge_driver::capability::{Capability, Filtering, Support};
use pubgauge_driver::{Driver, MessagingPattern, Reliability, Settings, Subscription, Target};
use pubgauge_testing::{
    answers_contain, contradictions_are_refused, every_setting_is_answered, refused_by_name,
    settings,
};
use serde_json::json;

use crate::XmppDriver;

#[test]
fn every_setting_has_an_answer_once_and_in_order() {
    for asked in [json!({}), json!({"pattern": "point-to-point"})] {
        every_setting_is_answered(&XmppDriver, &settings(asked), &Target::default(), &[]);
    }
}

#[test]
fn what_xmpp_has_not_is_refused_by_name() {
    let cases = [
        ("pattern", json!("request-reply")),
        ("reliability", json!("at-least-once")),
        ("reliability", json!("exactly-once")),
        ("reliability", json!("reliable")),
        ("durability", json!("disk")),
        ("durability", json!("disk-synced")),
        ("session", json!("durable")),
        ("session-expiry-s", json!(1)),
        ("lifespan-ms", json!(1)),
        ("in-flight", json!(0)),
        ("queue-limit", json!(1)),
        ("batching", json!({"bytes": 0})),
        ("batching", json!({"bytes": 1 << 20})),
        ("priority", json!(0)),
        ("multicast", json!(true)),
        ("rate-limit-bytes-per-s", json!(1)),
        ("conflate", json!(true)),
        ("transport", json!("udp")),
        ("user-properties", json!({"a": "b"})),
        ("native.xmpp.mechanism", json!("gssapi")),
        ("native.xmpp.pubsub-service", json!("a'b")),
        ("native.xmpp.discovery-interval-ms", json!(9)),
        ("native.xmpp.no-delay", json!(1)),
        ("native.xmpp.send-buffer-bytes", json!(0)),
        ("native.xmpp.receive-buffer-bytes", json!("1")),
    ];
    refused_by_name(&XmppDriver, cases);
}

#[test]
fn what_point_to_point_has_not_is_refused_with_it() {
    let cases = [
        ("last-value", json!(true), "last-value"),
        ("in-flight", json!(5), "in-flight"),
        (
            "native",
            json!({"xmpp": {"mechanism": "anonymous"}}),
            "pattern",
        ),
    ]
    .map(|(key, value, name)| (json!({"pattern": "point-to-point", key: value}), name, ""));
    contradictions_are_refused(&XmppDriver, cases);
    let direct = settings(json!({"pattern": "point-to-point"}));
    // A system whose file lists no other feature.
    let target = Target {
        features: vec!["anonymous".into()],
        ..Target::default()
    };
    let refused = XmppDriver.resolve(&direct, &target).unwrap_err();
    assert_eq!(refused[0].setting, "pattern");
    assert!(XmppDriver.resolve(&Settings::default(), &target).is_ok());
    let scram = settings(json!({"native": {"xmpp": {"mechanism": "scram-sha-1"}}}));
    let refused = XmppDriver.resolve(&scram, &target).unwrap_err();
    assert_eq!(refused[0].setting, "native.xmpp.mechanism");
    assert!(!XmppDriver.traits(&direct).acknowledges);
    assert!(XmppDriver.traits(&Settings::default()).acknowledges);
}

#[test]
fn values_show_what_they_became() {
    let asked = json!({
        "last-value": true, "in-flight": 7, "batching": {"bytes": 1000}, "on-full": "drop", "multicast": false,
        "keep-alive-s": 0, "native": {"xmpp": {"mechanism": "scram-sha-256"}},
    });
    let answers = [
        ("last-value", "max_items 1"),
        ("in-flight", "7 unanswered publish requests"),
        ("batching", "1000 bytes"),
        ("on-full", "refused as dropped"),
        ("multicast", "TCP copy"),
        ("keep-alive-s", "none"),
        ("native.xmpp.mechanism", "SASL mechanism"),
    ];
    answers_contain(&XmppDriver, asked, answers);
}

#[test]
fn subscriptions_that_cannot_be_are_refused_beforehand() {
    let refused = |asked: &Settings, subscription: Subscription| {
        let checked = XmppDriver.check_subscription(asked, &Target::default(), &subscription);
        checked.is_err()
    };
    let plain = Settings::default();
    for filter in ["a", "a/#", "a/+/b", "#"] {
        assert!(!refused(&plain, Subscription::matching(filter)), "{filter}");
    }
    assert!(refused(&plain, Subscription::matching("a").of_group("g")));
    for filter in ["", "a#", "#/a", "a\u{0}b"] {
        assert!(refused(&plain, Subscription::matching(filter)), "{filter}");
    }
    let direct = settings(json!({"pattern": "point-to-point"}));
    assert!(!refused(&direct, Subscription::matching("a/b")));
    for filter in ["a/#", &"a".repeat(1024), "a\tb"] {
        assert!(refused(&direct, Subscription::matching(filter)), "{filter}");
    }
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
