//! Hosts of a given size, and what was used of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::HeldLimits;

/// A host of a given size, whose processes get a share of the machine together, and what was used of that during the
/// measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizedHost {
    /// `broker-1`, `publisher-1`, `subscriber-7`.
    pub host: String,
    /// Its size, and how that was held; `instances` are its processes.
    pub limits: HeldLimits,
    /// Processor time that its processes used, in processors; absent where it was not seen.
    pub used_cores: Option<f64>,
    /// Time for which the kernel kept its processes waiting at the end of their share, as a share of the measurement,
    /// added up over processors; absent where no quota is held.
    pub throttled: Option<f64>,
    /// Processors that its processes may run on at once: those of the machine, or their threads if these are fewer.
    pub processors: u32,
    /// Share of the measurement for which its worker that waited most was ready and waited for a processor, at the end
    /// of the host's share or because others had the processors.
    pub waited: f64,
    /// Share of the processor time used there that is pubgauge's own, by the calibration of the machine: what a
    /// message costs beyond the same bytes through a bare socket, times its messages. Absent where it is not known,
    /// and for hosts of brokers.
    pub own: Option<f64>,
}

impl SizedHost {
    /// The share of its processor time that it used, 1 = all of it; `None` where no quota holds it.
    pub fn used(&self) -> Option<f64> {
        let cores = self.limits.cores.filter(|_| self.limits.cores_by_quota)?;
        Some(self.used_cores? / cores)
    }

    /// Whether it is a host of this role: `publisher`, `subscriber`, `broker`.
    pub fn is_of(&self, role: &str) -> bool {
        let own = self.host.rsplit_once('-');
        own.is_some_and(|(own, _)| own == role)
    }
}
