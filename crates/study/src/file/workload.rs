//! A workload as it is written: its flows, and where it differs from the rest of the study.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::absent::is_default;
use super::client::ClientFile;
use super::flow::FlowFile;
use super::phases::PhasesFile;
use super::testbed::TestbedFile;
use super::topology::TopologyFile;

/// The work of devices and applications.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WorkloadFile {
    /// Shown in tables; unique in the study.
    pub name: String,
    /// The systems of the study that it is run on; all if absent.
    pub systems: Option<Vec<String>>,
    /// Names of the variants of the settings (and of ablations) that it is run with; all if absent.
    pub settings: Option<Vec<String>>,
    /// How often each of its cells is run; the study's `repeats` if absent. 0 leaves it out.
    pub repeats: Option<u32>,
    /// Its grid: these axes, and none of the study's. Paths may begin below the workload: `flow.NAME.rate`,
    /// `phases.measure`.
    pub grid: Option<BTreeMap<String, Vec<serde_json::Value>>>,
    /// How trials of this workload proceed, where it differs from the study's `phases`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub phases: PhasesFile,
    /// How the system is laid out, where it differs from the study's `topology`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub topology: TopologyFile,
    /// How the client works, where it differs from the study's `client`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub client: ClientFile,
    /// Where systems run, where it differs from the study's `testbed`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub testbed: TestbedFile,
    /// Traffic relations, side by side; at least one.
    #[serde(default)]
    pub flow: Vec<FlowFile>,
}

impl WorkloadFile {
    /// How the client works, the study's where the workload says nothing.
    pub(crate) fn client(&self, study: &ClientFile) -> ClientFile {
        self.client.merge_over(study)
    }

    /// Where systems run, the study's where the workload says nothing.
    pub(crate) fn testbed(&self, study: &TestbedFile) -> TestbedFile {
        self.testbed.merge_over(study)
    }
}
