//! The seam's conformance suite, on mosquitto and on the reference broker, in both versions and at
//! every QoS.

use crate::common;

use common::*;
use pubgauge_driver::{Batching, Reliability, Settings};
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
                batching,
                ..reliable(version, reliability)
            };
            pubgauge_testing::conforms(&MqttDriver, &target(port), &settings, &[]);
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
