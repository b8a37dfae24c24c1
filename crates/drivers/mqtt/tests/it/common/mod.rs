//! A fleet whose events are recorded, and servers of a test's own.
#![allow(dead_code)] // Each test file uses its own part.

pub mod peer;
pub mod raw;
pub mod systems;

use std::net::SocketAddr;

use pubgauge_broker::{Counters, Options, run};
use pubgauge_driver::*;
use pubgauge_driver_mqtt::MqttDriver;

pub use pubgauge_testing::mosquitto::Mosquitto;
pub use pubgauge_testing::*;

pub fn target(port: u16) -> Target {
    Target::single(format!("mqtt://127.0.0.1:{port}"))
}

pub fn open(target: Target, settings: Settings) -> Rig {
    Rig::open(&MqttDriver, target, settings)
}

pub fn on(port: u16, settings: Settings) -> Rig {
    open(target(port), settings)
}

pub fn version(v: &str) -> Settings {
    let mut settings = Settings::default();
    native(&mut settings, "version", v.into());
    settings
}

pub fn reliable(version: &str, reliability: Reliability) -> Settings {
    Settings {
        reliability: Some(reliability),
        ..self::version(version)
    }
}

pub fn durable(version: &str, reliability: Reliability) -> Settings {
    Settings {
        session: Some(Session::Durable),
        ..reliable(version, reliability)
    }
}

pub fn native(settings: &mut Settings, name: &str, value: serde_json::Value) {
    pubgauge_testing::native(settings, "mqtt", name, value);
}

/// The reference broker.
pub fn reference() -> Background<SocketAddr, Counters> {
    Background::start(|ready, stop| run(Options::default(), ready, stop).unwrap())
}

/// Runs a test on mosquitto and on the reference broker, each time with a fresh one's port.
pub fn on_both(test: impl Fn(u16)) {
    let mosquitto = Mosquitto::start();
    test(mosquitto.port);
    drop(mosquitto);
    let reference = reference();
    test(reference.address.port());
}
