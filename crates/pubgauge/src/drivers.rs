//! The drivers this program was built with.

use std::sync::{Arc, LazyLock};

use pubgauge_driver::Drivers;
use pubgauge_driver_amqp::AmqpDriver;
use pubgauge_driver_cyclonedds::CycloneddsDriver;
use pubgauge_driver_dds_mixed::Mixed;
use pubgauge_driver_fastdds::FastddsDriver;
use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_driver_nats::NatsDriver;
use pubgauge_driver_xmpp::XmppDriver;
use pubgauge_driver_zeromq::ZeromqDriver;
use pubgauge_simulator::SimulatedDriver;
use pubgauge_testbed::Testbed;

static ALL: LazyLock<Drivers> = LazyLock::new(|| {
    Drivers::new(vec![
        Arc::new(AmqpDriver),
        Arc::new(CycloneddsDriver),
        Arc::new(Mixed::FAST_TO_CYCLONE),
        Arc::new(FastddsDriver),
        Arc::new(MqttDriver),
        Arc::new(NatsDriver),
        Arc::new(XmppDriver),
        Arc::new(ZeromqDriver),
        Arc::new(SimulatedDriver),
    ])
    .expect("no two of them have a name or a scheme in common")
});

/// All drivers. This is the only list of them; facts of a driver are asked of the driver.
pub fn all() -> &'static Drivers {
    &ALL
}

/// A testbed that speaks to its systems through these drivers.
///
/// # Errors
/// If the path of this program cannot be read.
pub fn testbed() -> std::io::Result<Testbed> {
    Ok(Testbed::new()?.drivers(all().clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_driver_is_tuned() {
        let mut tuned: Vec<&str> = pubgauge_study::tuned().keys().map(String::as_str).collect();
        let mut names: Vec<&str> = all().names().collect();
        tuned.sort_unstable();
        names.sort_unstable();
        assert_eq!(tuned, names);
    }

    #[test]
    fn no_two_drivers_claim_one_scheme() {
        let mut schemes: Vec<&str> = all().schemes().map(|(_, scheme)| scheme.name).collect();
        let all = schemes.len();
        schemes.sort_unstable();
        schemes.dedup();
        assert_eq!(schemes.len(), all);
        assert!(schemes.contains(&"mqtts") && schemes.contains(&"zmq-forwarder+ipc"));
    }
}
