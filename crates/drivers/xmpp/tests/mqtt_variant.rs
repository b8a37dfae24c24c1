//! The variant `mqtt` of `systems/ejabberd.toml`: the conformance suite over MQTT.

mod common;

use common::{Ejabberd, system};
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

fn conforms(settings: &Settings, exceptions: &[Exception<'_>]) {
    let mut server = Ejabberd::start("mqtt");
    let target = server.target();
    let outcomes =
        conformance::check_with_kill(&MqttDriver, &target, settings, exceptions, &mut server);
    let failures = conformance::failures(&outcomes);
    assert!(failures.is_empty(), "{failures:#?}\n{outcomes:#?}");
}

/// What the system's file says of QoS 1 and 2. Measured: while there is a backlog, one message comes
/// for each PUBACK or PUBCOMP.
fn one_at_a_time(reliability: Reliability, version: &str) {
    let file = system().variant(Some("mqtt")).unwrap();
    let reason = &file.deviations["delivers-in-order:exactly-once"];
    let exception = Exception {
        check: "delivers-in-order",
        reason,
    };
    conforms(&settings(reliability, version), &[exception]);
}

#[test]
fn mqtt_5_conforms_at_most_once() {
    conforms(&settings(Reliability::AtMostOnce, "5"), &[]);
}

#[test]
fn mqtt_5_conforms_at_least_once() {
    one_at_a_time(Reliability::AtLeastOnce, "5");
}

#[test]
fn mqtt_5_conforms_exactly_once() {
    one_at_a_time(Reliability::ExactlyOnce, "5");
}

#[test]
fn mqtt_3_1_1_conforms_exactly_once() {
    one_at_a_time(Reliability::ExactlyOnce, "3.1.1");
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
