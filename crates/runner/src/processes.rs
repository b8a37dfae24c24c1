//! Workers in processes of their own.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pubgauge_driver::{Attempt, DriverError, Nanos};
use pubgauge_engine::link::stream::{Peer, link};
use pubgauge_engine::link::{Order, Outbox, Secrets, WorkerLink, WorkerSite};
use pubgauge_network::{HostRole, HostSizes};
use pubgauge_testbed::shares::{HeldShare, Share};
use pubgauge_testbed::{Confinement, Piped};

use crate::lock;
use crate::network::TrialNetwork;
use crate::sizes::{self, HostShares};

/// A process for each worker: `PROGRAM worker`, which calls
/// [`pubgauge_engine::link::stream::serve`]. It ends with its link, and with this program.
#[derive(Clone, Debug, Default)]
pub struct Processes {
    pub program: PathBuf,
    /// The network namespace that they run in, as `ip netns` names it; the caller's if absent.
    pub namespace: Option<String>,
    /// The share of the machine that each of them gets.
    pub share: Share,
}

/// Worker processes as a place for a trial's workers, which knows how their shares were held.
#[derive(Debug)]
pub struct ProcessPlace {
    pub(crate) processes: Processes,
    /// Each worker runs on its host of this network.
    pub(crate) network: Option<TrialNetwork>,
    /// Hosts of given sizes that they run on.
    hosts: Option<Arc<HostSizes>>,
    /// The shares of these hosts.
    pub(crate) shares: HostShares,
    held: Mutex<Vec<HeldShare>>,
}

impl ProcessPlace {
    /// The place of one trial; with a `network` each worker runs on its host there, and with `hosts` of given sizes
    /// on one of these.
    pub fn new(
        processes: Processes,
        network: Option<TrialNetwork>,
        hosts: Option<Arc<HostSizes>>,
    ) -> Self {
        let roles = [HostRole::Publisher, HostRole::Subscriber].into_iter();
        let shares = roles.flat_map(|role| sizes::hold(hosts.as_deref(), role));
        ProcessPlace {
            processes,
            network,
            shares: shares.collect(),
            hosts,
            held: Mutex::default(),
        }
    }

    /// How the share of each worker that was started is held.
    pub fn held(&self) -> Vec<HeldShare> {
        lock(&self.held).clone()
    }
}

impl WorkerSite for ProcessPlace {
    fn start(
        &self,
        mut order: Order,
        secrets: Secrets,
        outbox: Outbox,
    ) -> Result<Box<dyn WorkerLink>, DriverError> {
        let program = &self.processes.program;
        let on = self.network.as_ref().map(|network| {
            let none = || DriverError::new("the network has no host for a worker".to_owned());
            network.worker(&order.assignment).ok_or_else(none)
        });
        let (host, on) = on.transpose()?.unzip();
        order.target.network = on;
        let namespace = host.as_ref().and_then(|host| host.namespace.as_ref());
        let namespace = namespace.map(|namespace| namespace.path());
        let (role, number) = (
            sizes::host_role(order.assignment.role),
            order.assignment.host,
        );
        let hosts = self.hosts.as_deref();
        let own = hosts.and_then(|hosts| sizes::host(hosts, role, number));
        let confinement = Confinement {
            namespace: namespace.or(self.processes.namespace.as_deref()),
            share: self.processes.share,
            host: own
                .and_then(|own| self.shares.get(&own))
                .map(|share| &**share),
            bound: order.assignment.pin_to,
            number: lock(&self.held).len(),
        };
        let started = Piped::start(program, &["worker"], &confinement);
        let (process, streams) = started.map_err(|error| {
            let what = format!("cannot start a worker, {} worker", program.display());
            DriverError::of_io(what, Attempt::Start, &error)
        })?;
        lock(&self.held).push(process.held().clone());
        let peer = Arc::new(Process(process));
        link(streams.output, streams.input, order, secrets, outbox, peer)
    }

    fn lead(&self) -> Nanos {
        100_000_000
    }
}

struct Process(Piped);

impl Peer for Process {
    fn kill(&self) {
        self.0.kill();
    }

    fn ending(&self) -> String {
        self.0.ending()
    }
}
