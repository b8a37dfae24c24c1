//! Where the workers of a trial are: threads of this program, processes on this host, or processes on others.

use std::sync::Arc;

use pubgauge_engine::link::WorkerSite;
use pubgauge_figures::model::HeldLimits;
use pubgauge_testbed::SystemKind;

use crate::hosts::{Clocks, HostsPlace};
use crate::job::{Environment, Job};
use crate::limits;
use crate::processes::ProcessPlace;
use crate::sizes::HostShares;

/// Where the workers of a trial are.
pub enum WorkersPlace {
    /// Threads of this program.
    Here,
    /// Processes on this host.
    Processes(Arc<ProcessPlace>),
    /// Processes on other hosts.
    Hosts(Arc<HostsPlace>),
}

impl WorkersPlace {
    /// Where the workers of a trial are to be.
    pub fn for_job(job: &Job<'_>, environment: &Environment<'_>) -> WorkersPlace {
        let client = &environment.client;
        if let Some((all, sides)) = client.hosts.clone() {
            let is_brokerless = job.system.kind == SystemKind::Library;
            WorkersPlace::Hosts(Arc::new(HostsPlace::new(all, sides, is_brokerless)))
        } else if let Some(processes) = client.processes.clone() {
            let network = job.network.clone();
            WorkersPlace::Processes(Arc::new(ProcessPlace::new(
                processes,
                network,
                job.setup.hosts.clone(),
            )))
        } else {
            WorkersPlace::Here
        }
    }

    /// The engine's place for them; absent: its own, threads of this program.
    pub fn engine_place(&self) -> Option<Arc<dyn WorkerSite>> {
        match self {
            WorkersPlace::Here => None,
            WorkersPlace::Processes(place) => Some(place.clone()),
            WorkersPlace::Hosts(place) => Some(place.clone()),
        }
    }

    /// Whether they are on other hosts.
    pub fn are_elsewhere(&self) -> bool {
        matches!(self, WorkersPlace::Hosts(_))
    }

    /// The clocks of other hosts until now.
    pub fn clocks(&self) -> Option<Clocks> {
        match self {
            WorkersPlace::Hosts(place) => Some(place.clocks()),
            _ => None,
        }
    }

    /// Shares of the hosts of given sizes that they run on.
    pub fn shares(&self) -> Option<&HostShares> {
        match self {
            WorkersPlace::Processes(place) => Some(&place.shares),
            _ => None,
        }
    }

    /// How the limits of processes on this host were held.
    pub fn limits(&self, realtime: Option<u8>) -> Option<HeldLimits> {
        match self {
            WorkersPlace::Processes(place) => limits::of_workers(place, realtime),
            _ => None,
        }
    }
}
