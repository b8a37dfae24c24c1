//! The drivers' conformance suite over this broker, at every QoS in both
//! versions.

use crate::common;

use common::start;
use pubgauge_broker::Options;
use pubgauge_conformance::{Conformity, check};
use pubgauge_driver::{Reliability, Settings, Target};
use pubgauge_driver_mqtt::MqttDriver;

fn conforms(version: &str, reliability: Reliability) {
    let broker = start(Options::default());
    let target = Target::single(format!("mqtt://{}", broker.address));
    let mut settings = Settings {
        reliability: Some(reliability),
        ..Settings::default()
    };
    let native = [("version".to_owned(), serde_json::Value::from(version))];
    settings.native.insert("mqtt".to_owned(), native.into());
    let outcomes = check(&MqttDriver, &target, &settings, &[]);
    assert!(!outcomes.is_empty());
    for (name, outcome) in outcomes {
        assert_eq!(
            outcome,
            Conformity::Passed,
            "{name} at {reliability:?} in {version}"
        );
    }
}

#[test]
fn version_3_1_1_at_most_once() {
    conforms("3.1.1", Reliability::AtMostOnce);
}

#[test]
fn version_3_1_1_at_least_once() {
    conforms("3.1.1", Reliability::AtLeastOnce);
}

#[test]
fn version_3_1_1_exactly_once() {
    conforms("3.1.1", Reliability::ExactlyOnce);
}

#[test]
fn version_5_at_most_once() {
    conforms("5", Reliability::AtMostOnce);
}

#[test]
fn version_5_at_least_once() {
    conforms("5", Reliability::AtLeastOnce);
}

#[test]
fn version_5_exactly_once() {
    conforms("5", Reliability::ExactlyOnce);
}
