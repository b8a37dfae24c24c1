//! Core NATS: the text protocol over TCP and TLS, at most once, without JetStream.
//!
//! A worked example of `docs/add-a-driver.md`: the fleet is [`pubgauge_net::fleet`]'s, and what is
//! here is the protocol alone. PUB lines gather in the connection's buffer and go out with one
//! write; all connections are read into one buffer and decoded there.
//!
//! The protocol acknowledges nothing (`verbose` is off): a SUB is followed by a PING, whose PONG says
//! that the server has taken the subscription. Section names are those of "NATS Client Protocol"
//! (docs.nats.io/reference/reference-protocols/nats-protocol).

mod fleet;
mod options;
#[cfg(test)]
mod options_tests;
mod protocol;
#[cfg(test)]
mod protocol_tests;
mod subject;
mod wire;

use pubgauge_driver::{
    Carries, Crowd, Driver, DriverError, Fleet, FleetConfig, Footprint, Identification, Mapping,
    Scheme, Settings, Subscription, Target, Traits, Unsupported,
};

/// The driver for core NATS.
///
/// Neutral settings become what [`Driver::resolve`] says. Its own settings, under `native.nats`, are in
/// `docs/settings.md`.
#[derive(Clone, Copy, Debug, Default)]
pub struct NatsDriver;

impl Driver for NatsDriver {
    fn name(&self) -> &'static str {
        options::NAME
    }

    fn schemes(&self) -> &'static [Scheme] {
        fleet::ADDRESSING.schemes
    }

    fn resolve(&self, settings: &Settings, _: &Target) -> Result<Vec<Mapping>, Vec<Unsupported>> {
        options::NatsOptions::resolve(settings).map(|(_, rows)| rows)
    }

    fn native_schema(&self) -> Option<serde_json::Value> {
        Some(options::NATIVE.schema())
    }

    fn identification(&self, _: &Settings, _: &Target) -> Identification {
        Identification {
            id: Ok("name in CONNECT"),
            user: Ok("user and pass in CONNECT; a password alone is a token"),
            certificate: Ok("client certificate of TLS"),
        }
    }

    fn carries(&self, _: &Settings, _: &Target) -> Carries {
        Carries {
            header_in: Some("a header field"),
            ..Carries::default()
        }
    }

    fn traits(&self, _: &Settings) -> Traits {
        Traits {
            publishers_first: false,
            // The server stops reading from a publisher that is too fast. It still disconnects
            // subscribers that do not keep up (max_pending).
            back_pressure: true,
            acknowledges: false,
            may_duplicate: false,
            publish_sleeps: false,
        }
    }

    fn check_subscription(
        &self,
        _: &Settings,
        _: &Target,
        subscription: &Subscription,
    ) -> Result<(), DriverError> {
        subject::of_subscription(subscription).map(drop)
    }

    fn footprint(&self, _: &Settings, _: &Target, crowd: &Crowd) -> Footprint {
        // As of an idle client of the MQTT driver: the fleet is the same.
        Footprint::over_tcp(crowd, 280)
    }

    fn bounds_reading(&self, _: &Settings) -> Result<(), String> {
        Ok(())
    }

    fn open(&self, config: FleetConfig) -> Result<Box<dyn Fleet>, DriverError> {
        Ok(Box::new(fleet::open(config)?))
    }
}

/// Length in bytes of the first operation of a server's stream, for fuzzing; `None` if it is not whole.
///
/// # Errors
/// When it is not NATS.
#[doc(hidden)]
pub fn operation_len(bytes: &[u8], max_payload: usize) -> Result<Option<usize>, DriverError> {
    let operation = wire::decode(bytes, max_payload).map_err(DriverError::new)?;
    Ok(operation.map(|(_, len)| len))
}
