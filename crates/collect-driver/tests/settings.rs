//! Settings with and without the one that makes subscribers collectors.

use pubgauge_collect_driver::CollectDriver;
use pubgauge_driver::*;
use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_testing::{every_setting_is_answered, refused};
use serde_json::{Value, json};

fn native(own: Value) -> Settings {
    pubgauge_testing::settings(json!({ "native": { "mqtt": own } }))
}

fn names(settings: &Settings) -> Vec<String> {
    let refused = refused(&CollectDriver, settings, &Target::default());
    refused.into_iter().map(|(name, _)| name).collect()
}

#[test]
fn without_collectors_each_answer_is_that_of_the_driver_for_mqtt() {
    every_setting_is_answered(
        &CollectDriver,
        &Settings::default(),
        &Target::default(),
        &[],
    );
    let targets = [&[][..], &["mqtt-3.1.1"], &["mqtt-5", "persistent"]].map(|features| Target {
        features: features.iter().map(|f| (*f).to_owned()).collect(),
        ..Target::default()
    });
    let crowd = Crowd {
        subscribers: 100,
        ..Crowd::default()
    };
    let group = Subscription {
        filter: "a/b".into(),
        group: Some("g".into()),
    };
    for target in &targets {
        for capability in Capability::ALL {
            let (ours, theirs) = (
                CollectDriver.capability(capability, target),
                MqttDriver.capability(capability, target),
            );
            assert_eq!(ours, theirs, "{capability:?} {:?}", target.features);
        }
        for own in [
            json!({}),
            json!({ "version": "3.1.1", "no-local": true }),
            json!({ "topic-alias": 3, "subscribe-qos": 1, "receive-buffer-bytes": 65536 }),
            json!({ "collect": false }),
            json!({ "collect": false, "receive-maximum": 20 }),
        ] {
            let ours = native(own.clone());
            let mut theirs = ours.clone();
            theirs.native.get_mut("mqtt").unwrap().remove("collect");
            let without_collect = |mut rows: Vec<Mapping>| {
                rows.retain(|row| row.setting != "native.mqtt.collect");
                rows
            };
            assert_eq!(
                CollectDriver.resolve(&ours, target).map(without_collect),
                MqttDriver.resolve(&theirs, target),
                "{own} {:?}",
                target.features
            );
            assert_eq!(CollectDriver.traits(&ours), MqttDriver.traits(&theirs));
            assert_eq!(
                CollectDriver.footprint(&ours, target, &crowd),
                MqttDriver.footprint(&theirs, target, &crowd)
            );
            assert_eq!(
                CollectDriver
                    .check_subscription(&ours, target, &group)
                    .err(),
                MqttDriver.check_subscription(&theirs, target, &group).err()
            );
        }
    }
    assert_eq!(CollectDriver.rejection(0x97), MqttDriver.rejection(0x97));
}

#[test]
fn collectors_have_their_own_sessions() {
    let target = Target::default();
    let rows = CollectDriver.resolve(&native(json!({ "collect": true })), &target);
    let row = rows.unwrap().pop().unwrap();
    assert_eq!(
        (&*row.setting, &*row.value),
        ("native.mqtt.collect", "true")
    );
    assert!(row.native.contains("once it is on disk"), "{}", row.native);
    let own = json!({
        "collect": true, "receive-maximum": 20, "no-local": true, "retain-handling": 1,
    });
    let asks = Settings {
        last_value: Some(true),
        ..native(own)
    };
    assert_eq!(
        names(&asks),
        [
            "last-value",
            "native.mqtt.receive-maximum",
            "native.mqtt.retain-handling",
            "native.mqtt.no-local",
        ]
    );
    let old = native(json!({ "collect": true, "version": "3.1.1" }));
    assert_eq!(names(&old), ["native.mqtt.collect"]);
    // Durable sessions are given up at the end, in either version.
    for version in ["3.1.1", "5"] {
        let durable = Settings {
            session: Some(Session::Durable),
            ..native(json!({ "collect": true, "version": version }))
        };
        assert!(
            CollectDriver.resolve(&durable, &target).is_ok(),
            "{version}"
        );
    }
}

#[test]
fn a_setting_that_there_is_not_is_refused_once_and_told_what_there_is() {
    let wrong = native(json!({ "colect": true, "version": 5, "no-local": true }));
    let refused = refused(&CollectDriver, &wrong, &Target::default());
    let names: Vec<&str> = refused.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["native.mqtt.colect", "native.mqtt.version"]);
    assert!(refused[0].1.contains("`collect`"), "{refused:?}");
}

#[test]
fn collectors_take_threads_files_and_memory() {
    let crowd = Crowd {
        subscribers: 10,
        ..Crowd::default()
    };
    let footprint = |own: Value| CollectDriver.footprint(&native(own), &Target::default(), &crowd);
    let (with, without) = (footprint(json!({ "collect": true })), footprint(json!({})));
    assert_eq!(with.threads, without.threads + 40);
    assert!(with.descriptors > without.descriptors && with.memory_bytes > without.memory_bytes);
}
