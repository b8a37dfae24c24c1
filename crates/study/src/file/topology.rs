//! How a system is laid out, as it is written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a system is laid out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TopologyFile {
    /// Brokers side by side, 1 to 64, each with its own process, ports and folder; 1 if absent, or
    /// as many as the system has addresses. Each topic is on one of them: its number, in the order
    /// in which the workload first names it, modulo `brokers`.
    #[schemars(range(min = 1, max = 64))]
    pub brokers: Option<u32>,
    /// The addresses of a system, joined by `+`, are the nodes of one cluster: publishers and subscribers are dealt out to
    /// them, and what is published at one is expected at all; false if absent.
    pub cluster: Option<bool>,
}

impl TopologyFile {
    /// Whether anything is said.
    pub(crate) fn is_given(&self) -> bool {
        *self != TopologyFile::default()
    }

    /// A workload's own, the study's where it says nothing.
    pub(crate) fn merge_over(&self, study: &TopologyFile) -> TopologyFile {
        TopologyFile {
            brokers: self.brokers.or(study.brokers),
            cluster: self.cluster.or(study.cluster),
        }
    }

    /// Whether the brokers are nodes of one cluster.
    pub(crate) fn is_cluster(&self) -> bool {
        self.cluster.unwrap_or(false)
    }
}
