use pubgauge_driver::*;
use pubgauge_mqtt_codec::{QoS, Version};
use pubgauge_testing::{every_setting_is_answered, refused_by_name};
use serde_json::{Value, json};

use crate::MqttDriver;
use crate::options::MqttOptions;

fn native(own: Value) -> Settings {
    pubgauge_testing::settings(json!({ "native": { "mqtt": own } }))
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
    let settings = Settings {
        reliability: Some(Reliability::ExactlyOnce),
        session: Some(Session::Durable),
        session_expiry_s: Some(90),
        last_value: Some(true),
        lifespan_ms: Some(1),
        in_flight: Some(7),
        on_full: Some(OnFull::Drop),
        batching: Some(Batching::Bytes(4096)),
        multicast: Some(false),
        conflate: Some(false),
        transport: Some(Transport::Tcp),
        keep_alive_s: Some(0),
        user_properties: Some([("k".to_owned(), "v".to_owned())].into()),
        ..native(json!({ "topic-alias": 3, "subscribe-qos": 1 }))
    };
    let (options, rows) = MqttOptions::resolve(&settings, &Target::default()).unwrap();
    let row = |name: &str| {
        let row = rows
            .iter()
            .find(|r| r.setting == name)
            .unwrap_or_else(|| panic!("{name}"));
        (row.value.as_str(), row.native.as_str())
    };
    assert_eq!(
        row("reliability"),
        ("exactly-once", "QoS 2 published, QoS 1 subscribed")
    );
    assert_eq!(
        row("session-expiry-s"),
        ("90", "Session Expiry Interval 90 s")
    );
    assert!(row("lifespan-ms").1.contains("Message Expiry Interval 1 s"));
    assert!(row("in-flight").1.starts_with("7 unacknowledged"));
    assert!(row("batching").1.contains("4096 bytes"));
    assert_eq!(row("keep-alive-s"), ("0", "Keep Alive 0 (off)"));
    assert!(
        row("native.mqtt.topic-alias")
            .1
            .starts_with("Topic aliases")
    );
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
