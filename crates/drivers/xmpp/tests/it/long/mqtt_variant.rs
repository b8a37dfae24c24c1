//! The variant `mqtt` of `systems/ejabberd.toml`: the conformance suite over MQTT.

use crate::common;

use common::Ejabberd;
use pubgauge_driver::{Reliability, Settings};
use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_testing::conforms_with_kill;

fn conforms(reliability: Reliability, version: &str) {
    let mut settings = Settings {
        reliability: Some(reliability),
        ..Settings::default()
    };
    let native = [("version".to_owned(), version.into())];
    settings.native.insert("mqtt".into(), native.into());
    let mut server = Ejabberd::start("mqtt").server;
    let target = server.target.clone();
    conforms_with_kill(&MqttDriver, &target, &settings, &[], &mut *server);
}

#[test]
fn mqtt_5_conforms_at_most_once() {
    conforms(Reliability::AtMostOnce, "5");
}

#[test]
fn mqtt_5_conforms_at_least_once() {
    conforms(Reliability::AtLeastOnce, "5");
}

#[test]
fn mqtt_5_conforms_exactly_once() {
    conforms(Reliability::ExactlyOnce, "5");
}

#[test]
fn mqtt_3_1_1_conforms_exactly_once() {
    conforms(Reliability::ExactlyOnce, "3.1.1");
}
