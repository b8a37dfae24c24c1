//! ZeroMQ, on libzmq 4.3.4 (built from its bundled source), and its forwarder.
//!
//! Two topologies: *direct*, where each publisher binds an address of its own and
//! the subscribers connect to it, and through a *forwarder*, the XSUB/XPUB proxy of the ZeroMQ
//! guide ([`forwarder`]).
//!
//! Point-to-point is PUSH/PULL, direct only: a queue for each topic of a publisher
//! (src/fleet/queues.rs).
//!
//! This driver refuses what ZeroMQ does not have rather than imitating it: acknowledgements,
//! sessions, last values, expiry, shared subscriptions, `+` in filters (unless asked to filter at
//! the receiver). Topics become prefixes, each level ended by `/` and the whole by a zero byte, in
//! the same frame as the payload: with a frame of its own for the topic (`native.zeromq.framing =
//! "multipart"`) 60 to 80 % of the messages per second are left (benches/zeromq_vs_c.rs).
//!
//! libzmq moves bytes in a thread of its own for each fleet; its CPU time counts as the fleet's.
//! All of a fleet's sockets are watched through one epoll.

mod address;
mod fleet;
mod footprint;
pub mod forwarder;
mod inbox;
mod native;
mod options;
mod port;
mod topic;
mod zmq;

use pubgauge_driver::{
    Crowd, Driver, DriverError, Fleet, FleetConfig, Footprint, Mapping, Scheme, Settings,
    Subscription, Target, Traits, Unsupported, accepted,
};

use options::Topology;

pub use address::ForwarderAddress;
pub use forwarder::{ForwarderCounts, ForwarderOptions};

/// The driver. Without [`Target::endpoints`], publishers bind and subscribers connect to them;
/// otherwise all connect to the forwarders named there, each a [`ForwarderAddress`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ZeromqDriver;

impl Driver for ZeromqDriver {
    fn name(&self) -> &'static str {
        native::NAME
    }

    fn schemes(&self) -> &'static [Scheme] {
        address::SCHEMES
    }

    fn library(&self) -> Option<String> {
        let (major, minor, patch) = zmq::version();
        Some(format!("libzmq {major}.{minor}.{patch}"))
    }

    fn resolve(
        &self,
        settings: &Settings,
        target: &Target,
    ) -> Result<Vec<Mapping>, Vec<Unsupported>> {
        options::resolve(settings, Topology::for_target(target)).map(|(_, mappings)| mappings)
    }

    /// Publishers come first in both topologies: a publisher behind a forwarder names the
    /// forwarder's other side as its address. Settings that [`Driver::resolve`] refuses have the
    /// traits of the default settings.
    fn native_schema(&self) -> Option<serde_json::Value> {
        Some(native::NATIVE.schema())
    }

    fn traits(&self, settings: &Settings) -> Traits {
        options::resolve(settings, Topology::Direct)
            .or_else(|_| options::resolve(&Settings::default(), Topology::Direct))
            .map(|(options, _)| options.traits())
            .expect("the default settings ask for nothing that could be refused")
    }

    fn topology(&self, target: &Target) -> pubgauge_driver::Topology {
        match Topology::for_target(target) {
            Topology::Direct => pubgauge_driver::Topology::Brokerless,
            Topology::Forwarder => pubgauge_driver::Topology::Brokered,
        }
    }

    fn check_subscription(
        &self,
        settings: &Settings,
        _: &Target,
        subscription: &Subscription,
    ) -> Result<(), DriverError> {
        let options = accepted("ZeroMQ", options::resolve(settings, Topology::Direct))?;
        topic::accept(subscription, &options).map(drop)
    }

    fn footprint(&self, settings: &Settings, target: &Target, crowd: &Crowd) -> Footprint {
        let topology = Topology::for_target(target);
        options::resolve(settings, topology).map_or_else(
            |_| Footprint::default(),
            |(options, _)| footprint::estimate(&options, topology, crowd),
        )
    }

    fn bounds_reading(&self, _: &Settings) -> Result<(), String> {
        Ok(())
    }

    fn open(&self, config: FleetConfig) -> Result<Box<dyn Fleet>, DriverError> {
        let topology = Topology::for_target(&config.target);
        let options = accepted("ZeroMQ", options::resolve(&config.settings, topology))?;
        let fleet = fleet::ZeromqFleet::open(&config, options)?;
        Ok(Box::new(fleet))
    }
}
