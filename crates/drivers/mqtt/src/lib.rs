//! MQTT 3.1.1 and MQTT 5, over TCP and TLS.
//!
//! The driver has its own codec, over the fleet of [`pubgauge_net::fleet`], because that is the
//! message path: no allocation, lock or system call for a single message when publishing flat out.
//! PUBLISH packets are put together from a template made when the topic is advertised; they gather in
//! the connection's buffer and go out with one write. All connections are read into one buffer and
//! decoded there. An idle connection has no buffer.
//!
//! # What happens to messages when a connection ends
//!
//! QoS 0 messages that were accepted but not written are lost. QoS 1 and 2 messages without an
//! acknowledgement are kept if the session is durable, and sent again (with DUP, in order, within
//! the window) when the client reconnects and the server still has the session. If it has not, or
//! the session is a clean one, the protocol demands that they be forgotten (5.0 §4.1 and
//! §3.2.2.1.1, 3.1.1 §3.1.2.4): they are never acknowledged, and no longer
//! [unsettled](pubgauge_driver::Fleet::unsettled). Publishing them anew would make new messages,
//! which only the engine may do. Packet identifiers of QoS 2 messages received and not released are
//! kept as long as the session, so that nothing is delivered twice.

mod client;
mod fleet;
mod leave;
mod native;
mod options;
#[cfg(test)]
mod options_tests;
mod protocol;
#[cfg(test)]
mod protocol_tests;
mod session;
mod topics;

use pubgauge_driver::{
    Carries, Crowd, Driver, DriverError, Fleet, FleetConfig, Footprint, Identification, Mapping,
    Reliability, Scheme, Settings, Subscription, Target, Traits, Unsupported, Will,
};
use pubgauge_mqtt_codec::{ReasonCode, Version};

pub use native::{MqttNative, NAME, Protocol};
pub use options::SubscriberTerms;

/// The MQTT driver.
///
/// Neutral settings become what [`Driver::resolve`] says. Its own settings, under `native.mqtt`, are in
/// `docs/settings.md`.
#[derive(Clone, Copy, Debug, Default)]
pub struct MqttDriver;

impl Driver for MqttDriver {
    fn name(&self) -> &'static str {
        native::NAME
    }

    fn schemes(&self) -> &'static [Scheme] {
        fleet::ADDRESSING.schemes
    }

    fn resolve(
        &self,
        settings: &Settings,
        target: &Target,
    ) -> Result<Vec<Mapping>, Vec<Unsupported>> {
        options::MqttOptions::resolve(settings, target).map(|(_, rows)| rows)
    }

    fn native_schema(&self) -> Option<serde_json::Value> {
        Some(native::NATIVE.schema())
    }

    fn traits(&self, settings: &Settings) -> Traits {
        Traits {
            publishers_first: false,
            back_pressure: true,
            acknowledges: !settings.may_lose(),
            // 3.1.1 leaves it to the server when it sends a QoS 1 message again (§4.4); MQTT 5
            // allows it only on a new connection.
            may_duplicate: settings.reliability == Some(Reliability::AtLeastOnce),
            publish_sleeps: false,
        }
    }

    fn identification(&self, _: &Settings, _: &Target) -> Identification {
        Identification {
            id: Ok("MQTT client identifier"),
            user: Ok("MQTT user name and password"),
            certificate: Ok("client certificate of TLS"),
        }
    }

    fn carries(&self, settings: &Settings, target: &Target) -> Carries {
        let Ok((options, _)) = options::MqttOptions::resolve(settings, target) else {
            return Carries::default();
        };
        // Without properties nobody tells a subscriber which quality of service to expect.
        let v5 = options.version == Version::V5;
        Carries {
            header_in: v5.then_some("a user property"),
            highest_qos: v5.then_some(options.qos as u8),
            retain: true,
        }
    }

    fn rejection(&self, code: u16) -> String {
        u8::try_from(code).map_or_else(
            |_| format!("code {code}"),
            |code| ReasonCode(code).to_string(),
        )
    }

    fn check_subscription(
        &self,
        settings: &Settings,
        target: &Target,
        subscription: &Subscription,
    ) -> Result<(), DriverError> {
        options::check_group(settings, target, subscription)
    }

    fn footprint(&self, _: &Settings, _: &Target, crowd: &Crowd) -> Footprint {
        // 280 to 480 bytes of resident memory were measured for an idle client (mosquitto, NATS).
        Footprint::over_tcp(crowd, 280)
    }

    fn check_will(&self, settings: &Settings, target: &Target, will: &Will) -> Result<(), String> {
        let Ok((options, _)) = options::MqttOptions::resolve(settings, target) else {
            return Ok(());
        };
        options.check_will(will)
    }

    fn bounds_reading(&self, _: &Settings) -> Result<(), String> {
        Ok(())
    }

    fn open(&self, config: FleetConfig) -> Result<Box<dyn Fleet>, DriverError> {
        Ok(Box::new(fleet::open(config)?))
    }
}
