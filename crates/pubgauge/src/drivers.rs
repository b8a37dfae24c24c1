//! The drivers this program was built with.

use std::sync::Arc;

use pubgauge_driver::Driver;
use pubgauge_driver::sim::SimulatedDriver;
use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_driver_zeromq::ZeromqDriver;

/// Their names.
pub const NAMES: [&str; 3] = ["mqtt", "zeromq", SimulatedDriver::NAME];

/// The driver of this name.
pub fn by_name(name: &str) -> Option<Arc<dyn Driver>> {
    match name {
        "mqtt" => Some(Arc::new(MqttDriver)),
        "zeromq" => Some(Arc::new(ZeromqDriver)),
        SimulatedDriver::NAME => Some(Arc::new(SimulatedDriver)),
        _ => None,
    }
}

/// The version of the client library, where it is the system itself.
pub fn library_version(driver: &str) -> Option<String> {
    (driver == "zeromq").then(|| format!("libzmq {}", ZeromqDriver::libzmq_version()))
}
