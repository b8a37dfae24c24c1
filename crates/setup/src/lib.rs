//! How a trial is to be run, as plain data. A study makes a [`Setup`], and plan and job carry it whole; its
//! [`ClientSetup`] goes on to every worker and into the result. A key of a study is a field here, and one of the file's
//! form of it.

use std::sync::Arc;

use pubgauge_network::{HostSizes, Network};
use pubgauge_quantities::Share;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a trial is to be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// How each worker works.
    pub client: ClientSetup,
    /// Processes on each side for the workers; threads of one process if absent.
    pub processes: Option<u32>,
    /// The most that each worker process gets of the machine.
    pub client_limits: Share,
    /// Brokers side by side, over which the workload is placed; at least 1.
    pub brokers: u32,
    /// The most that each instance of the system gets of the machine; absent parts are those of the system's file.
    pub limits: Share,
    /// The system stays up after the trial, and serves the next one if that would start it in the same way.
    pub keep_running: bool,
    /// Counts that are asked for beside the trial.
    pub counts: CountRequests,
    /// The network that brokers and devices are on; all are on this host if absent.
    pub network: Option<Arc<Network>>,
    /// Hosts of given sizes: those of the network, if it has some, else hosts on this machine without links. No host
    /// has a size if absent.
    pub hosts: Option<Arc<HostSizes>>,
}

impl Default for Setup {
    /// One broker and the client on this host, with all there is, and nothing is counted.
    fn default() -> Self {
        Setup {
            client: ClientSetup::default(),
            processes: None,
            client_limits: Share::default(),
            brokers: 1,
            limits: Share::default(),
            keep_running: false,
            counts: CountRequests::default(),
            network: None,
            hosts: None,
        }
    }
}

impl Setup {
    /// Hosts of publishing devices and hosts of the others, on a network or of given sizes; `None` where all run on
    /// this host.
    pub fn worker_hosts(&self) -> Option<(u32, u32)> {
        let on_network = self.network.as_ref();
        let on_network = on_network.map(|of| (of.publisher.hosts, of.subscriber.hosts));
        let of_size = || {
            let hosts = self.hosts.as_ref()?;
            Some((hosts.publisher.count(), hosts.subscriber.count()))
        };
        on_network.or_else(of_size)
    }

    /// Whether the hosts that brokers run on have a size.
    pub fn has_sized_broker_hosts(&self) -> bool {
        let hosts = self.hosts.as_ref();
        hosts.is_some_and(|hosts| hosts.broker.are_limited())
    }
}

/// How each worker works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ClientSetup {
    /// How much later than due the study lets scheduled messages leave, ns, so that several leave
    /// in one wake-up (`pacing-within`). 0: each leaves at its own time.
    #[serde(rename = "pacing_within_ns")]
    pub pacing_within: u64,
    /// Idle processors of the hosts that had the workers polled for work (`poll-when-idle`); else they slept, as the
    /// kernel has it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub poll_when_idle: bool,
    /// Real-time priority of the workers' threads (`--realtime`), 1 to 99; absent: the usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub realtime: Option<u8>,
}

/// Counts that are asked for beside a trial; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountRequests {
    /// System calls of client and system.
    pub system_calls: bool,
    /// The interface whose traffic is counted: `lo`, or `NAMESPACE/INTERFACE` with a network namespace as `ip netns`
    /// names it.
    pub interface: Option<String>,
}
