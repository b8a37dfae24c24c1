//! The hosts that the workers of a trial ran on, where these are not the host of the run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A host with workers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WorkerHost {
    /// Its number among the hosts of the run, from 0.
    pub rank: u32,
    /// Its name, as the host itself reports it.
    pub name: String,
    /// Its clock, compared with that of the conductor.
    pub clock: HostClock,
}

/// A host's clock, compared with the one in which all times of a trial are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HostClock {
    /// It is the same clock: the same kernel since its start, the same time namespace.
    pub shared: bool,
    /// The offset that was added to its readings when the trial began, ns.
    pub offset_ns: i64,
    /// The largest error of a converted reading, at the worst moment of the trial, ns; absent: not known.
    pub bound_ns: Option<u64>,
}

/// The error of one-way times between hosts with different clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OneWay {
    /// The largest error of each of them, ns: for the worst pair of hosts, the sum of both clocks. Values of
    /// which that is more than a tenth are absent. Absent: not known; then all values are absent too.
    pub bound_ns: Option<u64>,
}
