//! The drivers this program was built with.

use std::sync::Arc;
use std::time::Instant;

use pubgauge_driver::{Driver, Target};
use pubgauge_driver_amqp::AmqpDriver;
use pubgauge_driver_cyclonedds::CycloneddsDriver;
use pubgauge_driver_dds_mixed::Mixed;
use pubgauge_driver_fastdds::FastddsDriver;
use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_driver_xmpp::XmppDriver;
use pubgauge_driver_zeromq::ZeromqDriver;
use pubgauge_simulator::SimulatedDriver;
use pubgauge_testbed::{Catalog, Listing, Probe, Testbed};

/// Their names.
pub const NAMES: [&str; 8] = [
    "amqp",
    "cyclonedds",
    pubgauge_driver_dds_mixed::NAME,
    "fastdds",
    "mqtt",
    "xmpp",
    "zeromq",
    SimulatedDriver::NAME,
];

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
        "cyclonedds" => Some(Arc::new(CycloneddsDriver)),
        "xmpp" => Some(Arc::new(XmppDriver)),
        "mqtt" => Some(Arc::new(MqttDriver)),
        "zeromq" => Some(Arc::new(ZeromqDriver)),
        "fastdds" => Some(Arc::new(FastddsDriver)),
        pubgauge_driver_dds_mixed::NAME => Some(Arc::new(Mixed::FAST_TO_CYCLONE)),
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
    match driver {
        "zeromq" => Some(format!("libzmq {}", ZeromqDriver::libzmq_version())),
        "cyclonedds" => {
            pubgauge_driver_cyclonedds::library_version().map(|v| format!("Cyclone DDS {v}"))
        }
        "fastdds" => pubgauge_driver_fastdds::library_version().map(|v| format!("Fast DDS {v}")),
        pubgauge_driver_dds_mixed::NAME => pubgauge_driver_dds_mixed::library_version(),
        _ => None,
    }
}

/// What to do to have a driver that this program was built without; `None` if it is there.
pub fn missing(driver: &str) -> Option<&'static str> {
    match driver {
        "cyclonedds" if !pubgauge_driver_cyclonedds::LINKED => {
            Some(pubgauge_driver_cyclonedds::HOW_TO_LINK)
        }
        "fastdds" if !pubgauge_driver_fastdds::LINKED => Some(pubgauge_driver_fastdds::HOW_TO_LINK),
        pubgauge_driver_dds_mixed::NAME if !pubgauge_driver_dds_mixed::LINKED => {
            Some(pubgauge_driver_dds_mixed::HOW_TO_LINK)
        }
        _ => None,
    }
}

/// What is known and found here; a system whose driver lacks its library counts as not found.
pub fn listings(catalog: &Catalog, testbed: &Testbed) -> Vec<Listing> {
    let mut listings = catalog.list(testbed.program());
    for listing in &mut listings {
        if let Some(how) = missing(&listing.driver) {
            listing.found = false;
            listing.reason = Some(format!("this pubgauge was built without it: {how}"));
        } else if listing.found && listing.version.is_none() {
            listing.version = library_version(&listing.driver);
        }
    }
    listings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_driver_is_tuned() {
        let mut tuned: Vec<&str> = pubgauge_study::tuned().keys().map(String::as_str).collect();
        let mut names = NAMES.to_vec();
        tuned.sort_unstable();
        names.sort_unstable();
        assert_eq!(tuned, names);
    }
}
