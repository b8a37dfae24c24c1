//! The seam's conformance suite, on mosquitto and on the reference broker, in both versions and at
//! every QoS.

mod common;

use common::*;
use pubgauge_conformance::{self as conformance, Exception};
use pubgauge_driver::{Batching, Driver, Reliability, Settings};
use pubgauge_driver_mqtt::MqttDriver;

/// A server may keep a QoS 2 message back until its PUBREL (5.0 §4.3.3), which the sender owes a PUBREC.
fn unreleased() -> [Exception<'static>; 2] {
    ["disconnect-takes-nothing-back", "close-takes-nothing-back"].map(|check| {
        Exception::sometimes(
            check,
            "DISCONNECT goes out at once: QoS 2 messages whose PUBREC had not come are not released (mosquitto: 0 of 20 came)",
        )
    })
}

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
            let cut_off: &[Exception<'_>] = match reliability {
                Reliability::ExactlyOnce => &unreleased(),
                _ => &[],
            };
            let outcomes = conformance::check(&MqttDriver, &target(port), &settings, cut_off);
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
