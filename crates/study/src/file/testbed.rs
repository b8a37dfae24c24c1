//! Where systems run, what each gets of the machine, and what is counted beside them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use pubgauge_quantities::{Share, Size};

use super::is_default;
use super::network::{LocalHostsFile, NetworkFile};
use pubgauge_network::HostSizes;

/// Where systems run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TestbedFile {
    /// The largest share of the machine for each instance of a system.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: LimitsFile,
    /// System calls of client and system are counted, which slows every system call of the machine a
    /// little: rates and times of such a trial are not compared with those of others. It takes root, or
    /// CAP_PERFMON and CAP_SYS_ADMIN. false if absent.
    pub count_system_calls: Option<bool>,
    /// Counts the traffic of this network interface: "lo", or "NAMESPACE/INTERFACE" with a network
    /// namespace as `ip netns` names it. A trial takes 1 s longer, in which nothing of it crosses the
    /// interface. None if absent.
    pub count_interface: Option<String>,
    /// A system stays up after a trial and serves the next one, if that trial would start it in the same way; false if
    /// absent: each trial starts its own.
    pub keep_running: Option<bool>,
    /// Brokers, publishing devices and the others run on hosts of an emulated network; all on this host if
    /// absent.
    pub network: Option<NetworkFile>,
    /// Brokers, publishing devices and the others run on hosts of given sizes on this machine, without links between
    /// them.
    pub hosts: Option<LocalHostsFile>,
}

impl TestbedFile {
    /// The hosts that it asks for on this machine, or those of a network where some have a size.
    pub(crate) fn sizes(&self) -> Option<HostSizes> {
        let on_network = self.network.as_ref().map(NetworkFile::sizes);
        let on_network = on_network.filter(|sizes| !sizes.are_free());
        on_network.or_else(|| Some(self.hosts.as_ref()?.sizes()))
    }
}

/// The largest share of the machine for each instance of a system, or for each worker process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LimitsFile {
    /// Processors' worth of time, such as 0.5 or 2; 0.1 and more. All there is if absent.
    pub cores: Option<f64>,
    /// Memory, such as "512MiB": whole MiB, 4 and more. All there is if absent.
    pub memory: Option<Size>,
}

impl LimitsFile {
    /// The share that it describes, not checked.
    pub fn share(&self) -> Share {
        Share {
            cores: self.cores,
            memory_bytes: self.memory.map(|memory| memory.0),
        }
    }
}
