//! The seam's conformance suite, on mosquitto and on the reference broker, in both versions and at
//! every QoS.

use crate::common;

use common::*;
use pubgauge_conformance as conformance;
use pubgauge_driver::{Batching, Driver, Reliability, Settings};
use pubgauge_driver_mqtt::MqttDriver;

fn conforms(version: &str) {
    on_both(|port| {
        for (reliability, batching) in [
            (Reliability::AtMostOnce, None),
            (Reliability::AtMostOnce, Some(Batching::Off)),
            (Reliability::AtLeastOnce, None),
            (Reliability::ExactlyOnce, None),
        ] {
            let settings = Settings {
                reliability: Some(reliability),
                batching,
                ..common::version(version)
            };
            assert_eq!(MqttDriver.name(), "mqtt");
            let outcomes = conformance::check(&MqttDriver, &target(port), &settings, &[]);
            let failures = conformance::failures(&outcomes);
            assert!(
                failures.is_empty(),
                "MQTT {version}, {reliability:?}, {batching:?}:\n{}",
                failures.join("\n")
            );
        }
    });
}

#[test]
fn mqtt_3_1_1_conforms() {
    conforms("3.1.1");
}

#[test]
fn mqtt_5_conforms() {
    conforms("5");
}
