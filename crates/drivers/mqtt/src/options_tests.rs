use pubgauge_driver::*;
use pubgauge_mqtt_codec::{QoS, Version};
use pubgauge_testing::{answers_contain, every_setting_is_answered, refused_by_name, settings};
use serde_json::{Value, json};

use crate::MqttDriver;
use crate::options::MqttOptions;

fn native(own: Value) -> Settings {
    settings(json!({ "native": { "mqtt": own } }))
}

fn with_features(features: &[&str]) -> Target {
    Target {
        features: features.iter().map(|f| (*f).to_owned()).collect(),
        ..Target::default()
    }
}

fn refused(settings: &Settings, target: &Target) -> Vec<(String, String)> {
    pubgauge_testing::refused(&MqttDriver, settings, target)
}

#[test]
fn every_neutral_setting_is_answered_for_in_order() {
    every_setting_is_answered(&MqttDriver, &Settings::default(), &Target::default(), &[]);
}

#[test]
fn what_is_asked_for_stands_in_the_table() {
    let asked = json!({
        "reliability": "exactly-once", "session": "durable", "session-expiry-s": 90, "last-value": true,
        "lifespan-ms": 1, "in-flight": 7, "on-full": "drop", "batching": {"bytes": 4096}, "multicast": false,
        "conflate": false, "transport": "tcp", "keep-alive-s": 0, "user-properties": {"k": "v"},
        "native": {"mqtt": {"topic-alias": 3, "subscribe-qos": 1}},
    });
    let answers = [
        ("reliability", "QoS 2 published, QoS 1 subscribed"),
        ("session-expiry-s", "Session Expiry Interval 90 s"),
        ("lifespan-ms", "Message Expiry Interval 1 s"),
        ("in-flight", "7 unacknowledged"),
        ("batching", "4096 bytes"),
        ("keep-alive-s", "Keep Alive 0 (off)"),
        ("native.mqtt.topic-alias", "Topic aliases"),
    ];
    answers_contain(&MqttDriver, asked.clone(), answers);
    let (options, _) = MqttOptions::resolve(&settings(asked), &Target::default()).unwrap();
    assert_eq!(
        (options.qos, options.subscribe_qos),
        (QoS::ExactlyOnce, QoS::AtLeastOnce)
    );
    assert_eq!(
        (options.tuning.batch, options.in_flight, options.topic_alias),
        (4096, 7, 3)
    );
    assert!(options.durable && options.retain && options.tuning.drop_when_full);
}

#[test]
fn what_mqtt_cannot_do_is_refused_by_name_and_reason() {
    let cases = [
        ("priority", json!(1)),
        ("multicast", json!(true)),
        ("rate-limit-bytes-per-s", json!(1)),
        ("conflate", json!(true)),
        ("transport", json!("udp")),
        ("queue-limit", json!(5)),
        ("in-flight", json!(0)),
        ("session-expiry-s", json!(5)),
        ("lifespan-ms", json!(0)),
        ("batching", json!({"bytes": 1 << 20})),
        ("durability", json!("disk-synced")),
    ];
    refused_by_name(&MqttDriver, cases);
}

#[test]
fn what_only_mqtt_5_can_do_is_refused_under_3_1_1() {
    let settings = Settings {
        session: Some(Session::Durable),
        session_expiry_s: Some(5),
        lifespan_ms: Some(5),
        user_properties: Some([("k".to_owned(), "v".to_owned())].into()),
        ..native(json!({
            "version": "3.1.1", "topic-alias": 3, "receive-maximum": 3, "no-local": true,
        }))
    };
    let list = refused(&settings, &Target::default());
    assert_eq!(list.len(), 6, "{list:?}");
    for (name, reason) in list {
        assert!(
            reason.contains("native.mqtt.version = \"5\""),
            "{name}: {reason}"
        );
    }
}

#[test]
fn the_systems_features_are_consulted() {
    let version = |features: &[&str]| {
        MqttOptions::resolve(&Settings::default(), &with_features(features))
            .unwrap()
            .0
            .version
    };
    assert_eq!(version(&[]), Version::V5);
    assert_eq!(version(&["mqtt-3.1.1"]), Version::V311);
    assert_eq!(version(&["mqtt-3.1.1", "mqtt-5"]), Version::V5);
    let five = native(json!({ "version": "5" }));
    assert_eq!(
        refused(&five, &with_features(&["mqtt-3.1.1"]))[0].0,
        "native.mqtt.version"
    );
    let durability = |d, features: &[&str]| {
        let settings = Settings {
            durability: Some(d),
            ..Settings::default()
        };
        MqttDriver
            .resolve(&settings, &with_features(features))
            .is_ok()
    };
    assert!(durability(Durability::Disk, &[]), "not known: try");
    assert!(durability(Durability::Disk, &["persistent"]));
    assert!(!durability(Durability::Disk, &["tls"]));
    assert!(durability(Durability::Memory, &["tls"]));
    assert!(!durability(Durability::Memory, &["persistent"]));
    assert!(!durability(Durability::DiskSynced, &["persistent"]));
    assert!(durability(Durability::DiskSynced, &["persistent-synced"]));
}

#[test]
fn what_a_server_lacks_is_refused_by_name() {
    let lacking = with_features(&["mqtt-3.1.1", "no-qos-2", "no-retained"]);
    let ask = |reliability, last_value| Settings {
        reliability: Some(reliability),
        last_value: Some(last_value),
        ..Settings::default()
    };
    let both = refused(&ask(Reliability::ExactlyOnce, true), &lacking);
    let names: Vec<&str> = both.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["reliability", "last-value"]);
    assert!(both[0].1.contains("use at-least-once"), "{both:?}");
    let subscribe = refused(&native(json!({ "subscribe-qos": 2 })), &lacking);
    assert_eq!(subscribe[0].0, "native.mqtt.subscribe-qos");
    MqttDriver
        .resolve(&ask(Reliability::AtLeastOnce, false), &lacking)
        .unwrap();
    let whole = with_features(&["mqtt-3.1.1"]);
    MqttDriver
        .resolve(&ask(Reliability::ExactlyOnce, true), &whole)
        .unwrap();
}
