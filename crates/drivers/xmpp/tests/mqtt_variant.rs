//! The variant `mqtt` of `systems/ejabberd.toml`: the conformance suite over MQTT.

mod common;

use common::Ejabberd;
use pubgauge_driver::conformance::{self, Exception};
use pubgauge_driver::{Reliability, Settings};
use pubgauge_driver_mqtt::MqttDriver;

fn settings(reliability: Reliability, version: &str) -> Settings {
    let mut settings = Settings {
        reliability: Some(reliability),
        ..Settings::default()
    };
    let native = [("version".to_owned(), version.into())];
    settings.native.insert("mqtt".into(), native.into());
    settings
}

fn conforms(settings: &Settings, exceptions: &[Exception]) {
    let server = Ejabberd::start("mqtt");
    let outcomes = conformance::check(&MqttDriver, &server.target(), settings, exceptions);
    let failures = conformance::failures(&outcomes);
    assert!(failures.is_empty(), "{failures:#?}\n{outcomes:#?}");
}

/// Measured: while there is a backlog, one message comes for each PUBACK or PUBCOMP, whatever the
/// Receive Maximum.
const ONE_AT_A_TIME: [Exception; 1] = [Exception {
    check: "delivers-in-order",
    reason: "ejabberd 23.01 sends a subscriber with a backlog one QoS 1 or 2 message per acknowledgement: the 20,000 messages of this check take longer than its 10 s",
}];

#[test]
fn mqtt_5_conforms_at_most_once() {
    conforms(&settings(Reliability::AtMostOnce, "5"), &[]);
}

#[test]
fn mqtt_5_conforms_at_least_once() {
    conforms(&settings(Reliability::AtLeastOnce, "5"), &ONE_AT_A_TIME);
}

#[test]
fn mqtt_5_conforms_exactly_once() {
    conforms(&settings(Reliability::ExactlyOnce, "5"), &ONE_AT_A_TIME);
}

#[test]
fn mqtt_3_1_1_conforms_exactly_once() {
    conforms(&settings(Reliability::ExactlyOnce, "3.1.1"), &ONE_AT_A_TIME);
}

#[test]
fn without_a_backlog_the_order_is_kept_too() {
    // One message under way leaves no backlog.
    let settings = Settings {
        in_flight: Some(1),
        ..settings(Reliability::AtLeastOnce, "5")
    };
    conforms(&settings, &[]);
}
