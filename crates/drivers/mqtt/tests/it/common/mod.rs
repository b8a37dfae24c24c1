//! A fleet whose events are recorded, and servers of a test's own.
#![allow(dead_code)] // Each test file uses its own part.

pub mod peer;
pub mod raw;
pub mod systems;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use pubgauge_driver::*;
use pubgauge_driver_mqtt::MqttDriver;

pub use pubgauge_testing::mosquitto::Mosquitto;
pub use pubgauge_testing::*;

pub fn target(port: u16) -> Target {
    Target {
        endpoints: vec![format!("mqtt://127.0.0.1:{port}")],
        ..Target::default()
    }
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

pub fn native(settings: &mut Settings, name: &str, value: serde_json::Value) {
    pubgauge_testing::native(settings, "mqtt", name, value);
}

/// The reference broker, on a thread of the test; ends when it is dropped.
pub struct Reference {
    pub port: u16,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<pubgauge_broker::Counters>>,
}

impl Reference {
    pub fn start() -> Reference {
        let (tell, told) = std::sync::mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let ready = |address: std::net::SocketAddr| tell.send(address.port()).unwrap();
            pubgauge_broker::run(pubgauge_broker::Options::default(), ready, &flag).unwrap()
        });
        Reference {
            port: told.recv().unwrap(),
            stop,
            thread: Some(thread),
        }
    }

    /// Ends it and gives what it counted.
    pub fn finish(mut self) -> pubgauge_broker::Counters {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Runs a test on mosquitto and on the reference broker, each time with a fresh one's port.
pub fn on_both(test: impl Fn(u16)) {
    let mosquitto = Mosquitto::start();
    test(mosquitto.port);
    drop(mosquitto);
    let reference = Reference::start();
    test(reference.port);
}
