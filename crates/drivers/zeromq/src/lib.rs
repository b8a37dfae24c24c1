//! ZeroMQ, on libzmq 4.3.4 (built from its bundled source), and its forwarder.
//!
//! Two topologies ([`Topology`]): *direct*, where each publisher binds an address of its own and
//! the subscribers connect to it, and through a *forwarder*, the XSUB/XPUB proxy of the ZeroMQ
//! guide ([`forwarder`]).
//!
//! What ZeroMQ has no notion of, this driver refuses rather than imitates: acknowledgements,
//! sessions, last values, expiry, shared subscriptions, `+` in filters (unless asked to filter
//! at the receiver). Topics become prefixes, each level ended by `/` and the whole by a zero
//! byte, in the same frame as the payload: one frame costs about half of what two do.
//!
//! libzmq moves bytes in a thread of its own for each fleet; its CPU time is the fleet's. All of
//! a fleet's sockets are watched through one epoll.

mod address;
mod fleet;
pub mod forwarder;
mod inbox;
mod native;
mod options;
mod port;
mod topic;
mod zmq;

use pubgauge_driver::{
    Driver, DriverError, Fleet, FleetConfig, Mapping, Settings, Target, Traits, Unsupported,
};

pub use address::ForwarderAddress;
pub use forwarder::{ForwarderCounts, ForwarderOptions};
pub use options::Topology;

/// The driver for one topology. Both go by the name `zeromq`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ZeromqDriver {
    topology: Topology,
}

impl ZeromqDriver {
    /// Publishers bind, subscribers connect to them. [`Target::endpoints`] is empty.
    pub fn direct() -> Self {
        ZeromqDriver {
            topology: Topology::Direct,
        }
    }

    /// All connect to forwarders; [`Target::endpoints`] holds one [`ForwarderAddress`] for each.
    pub fn through_forwarder() -> Self {
        ZeromqDriver {
            topology: Topology::Forwarder,
        }
    }

    /// The topology it was made for.
    pub fn topology(&self) -> Topology {
        self.topology
    }

    /// The version of the libzmq that is linked in, for example `4.3.4`.
    pub fn libzmq_version() -> String {
        let (major, minor, patch) = zmq::version();
        format!("{major}.{minor}.{patch}")
    }
}

impl Driver for ZeromqDriver {
    fn name(&self) -> &'static str {
        options::NAME
    }

    fn resolve(
        &self,
        settings: &Settings,
        _target: &Target,
    ) -> Result<Vec<Mapping>, Vec<Unsupported>> {
        options::resolve(settings, self.topology).map(|(_, mappings)| mappings)
    }

    /// Settings that [`Driver::resolve`] refuses have the traits of the default settings.
    fn traits(&self, settings: &Settings) -> Traits {
        options::resolve(settings, self.topology)
            .or_else(|_| options::resolve(&Settings::default(), self.topology))
            .map(|(options, _)| options.traits(self.topology))
            .expect("the default settings ask for nothing that could be refused")
    }

    fn open(&self, config: FleetConfig) -> Result<Box<dyn Fleet>, DriverError> {
        let (options, _) =
            options::resolve(&config.settings, self.topology).map_err(options::refusal)?;
        let fleet = fleet::ZeromqFleet::open(&config, options, self.topology)?;
        Ok(Box::new(fleet))
    }
}
