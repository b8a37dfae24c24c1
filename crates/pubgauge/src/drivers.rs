//! The drivers this program was built with.

use std::sync::Arc;
use std::time::Instant;

use pubgauge_driver::sim::SimulatedDriver;
use pubgauge_driver::{Driver, Target};
use pubgauge_driver_amqp::AmqpDriver;
use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_driver_zeromq::ZeromqDriver;
use pubgauge_testbed::{Probe, Testbed};

/// Their names.
pub const NAMES: [&str; 4] = ["amqp", "mqtt", "zeromq", SimulatedDriver::NAME];

/// A testbed whose systems are asked through these drivers whether they serve.
///
/// # Errors
/// If the system does not tell which program this is.
pub fn testbed() -> std::io::Result<Testbed> {
    Ok(Testbed::new()?.probe(Box::new(probe)))
}

/// The driver of this name.
pub fn by_name(name: &str) -> Option<Arc<dyn Driver>> {
    match name {
        "amqp" => Some(Arc::new(AmqpDriver)),
        "mqtt" => Some(Arc::new(MqttDriver)),
        "zeromq" => Some(Arc::new(ZeromqDriver)),
        SimulatedDriver::NAME => Some(Arc::new(SimulatedDriver)),
        _ => None,
    }
}

/// Asks a driver whether a system serves, for systems whose file says so.
fn probe(driver: &str, what: Probe, target: &Target, deadline: Instant) -> Result<(), String> {
    let driver = by_name(driver).ok_or("this pubgauge was built without it")?;
    pubgauge_testbed::probe(&*driver, what, target, deadline)
}

/// The version of the client library, where it is the system itself.
pub fn library_version(driver: &str) -> Option<String> {
    (driver == "zeromq").then(|| format!("libzmq {}", ZeromqDriver::libzmq_version()))
}
