//! Where systems run, what each gets of the machine, and what is counted beside them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use pubgauge_quantities::{Share, Size};

use super::absent::is_default;
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
    /// Its values, and those of `study` where it has none.
    pub(crate) fn merge_over(&self, study: &TestbedFile) -> TestbedFile {
        let interface = self.count_interface.as_ref();
        TestbedFile {
            limits: self.limits.merge_over(&study.limits),
            count_system_calls: self.count_system_calls.or(study.count_system_calls),
            count_interface: interface.or(study.count_interface.as_ref()).cloned(),
            keep_running: self.keep_running.or(study.keep_running),
            // Hosts of one's own are in place of a network of the study, and the reverse.
            network: match &self.hosts {
                Some(_) => self.network.clone(),
                None => self.network.as_ref().or(study.network.as_ref()).cloned(),
            },
            hosts: match &self.network {
                Some(_) => self.hosts.clone(),
                None => self.hosts.as_ref().or(study.hosts.as_ref()).cloned(),
            },
        }
    }

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
    /// These limits, and those of `study` where nothing is said here.
    pub(crate) fn merge_over(&self, study: &LimitsFile) -> LimitsFile {
        LimitsFile {
            cores: self.cores.or(study.cores),
            memory: self.memory.or(study.memory),
        }
    }

    /// The share that it describes, not checked.
    pub fn share(&self) -> Share {
        Share {
            cores: self.cores,
            memory_bytes: self.memory.map(|memory| memory.0),
        }
    }
}
