//! AMQP 0-9-1, over TCP and TLS; its server is RabbitMQ.
//!
//! The driver has its own [`codec`], over the fleet of [`pubgauge_net::fleet`], because that is the
//! message path: no allocation, lock or system call for a single message when publishing flat out. `basic.publish`
//! with its header is put together from a template made when the topic is advertised; messages
//! gather in the connection's buffer and go out with one write. All connections are read into one
//! buffer and decoded there; deliveries are acknowledged with one `basic.ack` for all that came
//! with one read.
//!
//! A client has one connection and up to two channels, one to publish and one to consume.
//!
//! # What happens to messages when a connection ends
//!
//! Messages that were accepted and not confirmed are forgotten: they are never acknowledged, and no
//! longer [unsettled](pubgauge_driver::Fleet::unsettled). Whether the server has them is not known,
//! and the protocol does not say that they be sent again; publishing them anew would make new
//! messages, which only the engine may do. Deliveries that were not acknowledged stay in a durable
//! session's queue and are delivered again, marked as such.
//!
//! # Sessions
//!
//! A clean session is an exclusive queue with a name of its own for each connection. A durable one
//! is the queue `pubgauge.session.CLIENT`, which the server deletes when nobody used it for the
//! session's expiry. A subscriber that connects asks for it (`queue.declare`, passive): if it is
//! there, its subscriptions are too, and consuming begins at once.

mod client;
pub mod codec;
mod fleet;
mod login;
mod native;
mod options;
#[cfg(test)]
mod options_tests;
mod protocol;
mod resolve;
mod shared;
mod subscribe;
mod topics;
mod window;

use pubgauge_driver::capability::{Answer, Capability, Filtering};
use pubgauge_driver::{
    Carries, Crowd, Driver, DriverError, Fleet, FleetConfig, Footprint, Identification, Mapping,
    Scheme, Settings, Subscription, Target, Traits, Unsupported,
};

/// The AMQP 0-9-1 driver.
///
/// Neutral settings become what [`Driver::resolve`] says. Its own settings, under `native.amqp`, are in
/// `docs/settings.md`.
#[derive(Clone, Copy, Debug, Default)]
pub struct AmqpDriver;

impl Driver for AmqpDriver {
    fn name(&self) -> &'static str {
        options::NAME
    }

    fn schemes(&self) -> &'static [Scheme] {
        fleet::ADDRESSING.schemes
    }

    fn resolve(&self, settings: &Settings, _: &Target) -> Result<Vec<Mapping>, Vec<Unsupported>> {
        options::AmqpOptions::resolve(settings).map(|(_, rows)| rows)
    }

    fn native_schema(&self) -> Option<serde_json::Value> {
        Some(native::NATIVE.schema())
    }

    /// The protocol's nack carries no code.
    fn rejection(&self, _: u16) -> String {
        "basic.nack".into()
    }

    fn identification(&self, _: &Settings, _: &Target) -> Identification {
        Identification {
            id: Ok("connection_name, after which queues that stay are named"),
            user: Ok("user of SASL PLAIN"),
            certificate: Ok(
                "client certificate of TLS, with SASL EXTERNAL where there is no user name",
            ),
        }
    }

    fn carries(&self, _: &Settings, _: &Target) -> Carries {
        Carries {
            header_in: Some("a header"),
            ..Carries::default()
        }
    }

    fn traits(&self, settings: &Settings) -> Traits {
        Traits {
            publishers_first: false,
            back_pressure: true,
            acknowledges: !settings.may_lose(),
            // A message is delivered again only on another connection.
            may_duplicate: false,
            publish_sleeps: false,
        }
    }

    fn check_subscription(
        &self,
        settings: &Settings,
        _: &Target,
        subscription: &Subscription,
    ) -> Result<(), DriverError> {
        let Ok((options, _)) = options::AmqpOptions::resolve(settings) else {
            return Ok(()); // The settings are refused by name elsewhere.
        };
        let key = topics::binding_key(&subscription.filter, &options)?;
        match &subscription.group {
            Some(group) => topics::group_queue(group, &key).map(drop),
            None => Ok(()),
        }
    }

    fn capability(&self, capability: Capability, target: &Target) -> Answer {
        match capability {
            Capability::Filter(Filtering::Content) => Answer::unsupported(
                "exchanges choose by routing key; a headers exchange chooses by a message's headers, and pubgauge's messages have none",
            ),
            _ => capability.derived(self, target),
        }
    }

    fn footprint(&self, _: &Settings, _: &Target, crowd: &Crowd) -> Footprint {
        // 740 to 870 bytes of resident memory were measured for an idle client (RabbitMQ).
        Footprint::over_tcp(crowd, 740)
    }

    fn bounds_reading(&self, _: &Settings) -> Result<(), String> {
        Ok(())
    }

    fn open(&self, config: FleetConfig) -> Result<Box<dyn Fleet>, DriverError> {
        Ok(Box::new(fleet::open(config)?))
    }
}
