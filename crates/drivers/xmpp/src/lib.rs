//! XMPP (RFC 6120): publish-subscribe services (XEP-0060) and direct messages.
//!
//! The driver has its own epoll loop, because that is the message path: no allocation, lock or
//! system call for a single message when publishing flat out. Stanzas are put together from a
//! template made when the topic is advertised; they gather in the connection's buffer and go out
//! with one write. All connections are read into one buffer, cut into stanzas there ([`frame`])
//! and read where they lie by a pull parser ([`stanza`]).
//!
//! # Topics
//!
//! A topic is a leaf node of the same name at the service `pubsub.DOMAIN`, made by whoever needs it
//! first. Each item of a notification is a message of its own. Wildcards are not XEP-0060's: the
//! driver looks for nodes that match, again and again, and subscribes to each.
//!
//! Under `point-to-point` the topic is the resource of the receiver's address,
//! `ACCOUNT@DOMAIN/TOPIC`: who subscribes to a topic binds it, and messages go there as
//! `<message type='headline'>`. A client that will subscribe is therefore connected before it is
//! bound to an address, and has one topic.
//!
//! # Payloads
//!
//! Payloads travel in base64, in an element `p` of the namespace `urn:pubgauge:payload:0`. What
//! that costs, a third more, is in [`wire_bytes`](pubgauge_driver::Fleet::wire_bytes).
//!
//! # What acknowledgements mean
//!
//! The service answers each publish request: the item was taken, and notifications of it are on
//! their way. These are answered by nobody. When a connection ends, what was not answered is
//! forgotten and never acknowledged.

mod client;
mod element;
mod endpoint;
mod fleet;
#[doc(hidden)]
pub mod frame;
mod io;
mod native;
mod options;
#[cfg(test)]
mod options_tests;
mod protocol;
mod read;
mod sasl;
mod shared;
mod socket;
mod stanza;
mod tls;
mod wildcard;
mod window;
mod write;

use pubgauge_driver::capability::{self, Answer, Capability, Filtering};
use pubgauge_driver::{
    Driver, DriverError, Fleet, FleetConfig, Mapping, Pattern, Settings, Subscription, Target,
    Traits, Unsupported,
};

/// The XMPP driver.
///
/// Neutral settings become what [`Driver::resolve`] says. Its own settings, under `native.xmpp`:
///
/// | name | values | default |
/// |---|---|---|
/// | `mechanism` | `"auto"`, `"plain"`, `"scram-sha-1"`, `"scram-sha-256"`, `"anonymous"` | `"auto"` |
/// | `pubsub-service` | an address | `pubsub.DOMAIN` |
/// | `discovery-interval-ms` | between two looks for nodes that match a wildcard; 0: one look | 1000 |
/// | `no-delay` | `true`, `false` | `true` |
/// | `send-buffer-bytes`, `receive-buffer-bytes` | socket buffers | the kernel's |
#[derive(Clone, Copy, Debug, Default)]
pub struct XmppDriver;

impl Driver for XmppDriver {
    fn name(&self) -> &'static str {
        options::NAME
    }

    fn resolve(
        &self,
        settings: &Settings,
        _target: &Target,
    ) -> Result<Vec<Mapping>, Vec<Unsupported>> {
        options::Options::resolve(settings).map(|(_, rows)| rows)
    }

    fn traits(&self, settings: &Settings) -> Traits {
        Traits {
            publishers_first: false,
            back_pressure: true,
            acknowledges: settings.pattern != Some(Pattern::PointToPoint),
            lossless: false,
            may_duplicate: false,
        }
    }

    fn check_subscription(
        &self,
        settings: &Settings,
        _: &Target,
        subscription: &Subscription,
    ) -> Result<(), DriverError> {
        match options::Options::resolve(settings) {
            Ok((options, _)) => fleet::check_subscription(&options, subscription),
            Err(_) => Ok(()), // `resolve` says why not.
        }
    }

    fn capability(&self, capability: Capability, target: &Target) -> Answer {
        match capability {
            Capability::Filter(Filtering::Prefix | Filtering::PerLevel) => Answer::emulated(
                "nodes that match are looked for every second (XEP-0030) and subscribed to one by one: items of a node that was not found yet are missed",
            ),
            Capability::BinaryPayload => Answer::emulated("as base64 text, a third longer"),
            _ => capability::derived(self, capability, target),
        }
    }

    fn open(&self, config: FleetConfig) -> Result<Box<dyn Fleet>, DriverError> {
        Ok(Box::new(fleet::XmppFleet::open(config)?))
    }
}
