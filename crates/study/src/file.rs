//! The study file as it is written: every key, with its meaning. The JSON Schema is made from
//! these types. A resolved study is stored as TOML, which leaves out a value that is absent.

mod absent;
mod claim;
mod client;
mod compare;
mod criterion;
mod flow;
mod identities;
mod late;
mod network;
mod payload;
mod phases;
mod presence;
mod rate;
mod recording;
mod search;
mod settings;
mod slow;
mod systems;
mod testbed;
mod topology;
mod trace;
mod workload;
mod written;
mod written_as;

use std::collections::BTreeMap;
use std::sync::Arc;

use pubgauge_setup::{CountRequests, Setup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::absent::is_default;
pub use self::claim::{Cells, ClaimFile, PointsFile, RuleFile, RuleList, SlopeFile, Values};
pub use self::client::ClientFile;
pub use self::compare::CompareFile;
pub use self::criterion::{CriterionFile, CriterionValue};
pub use self::flow::{
    AnsweredByFile, ArrivalsFile, Bursts, ContentsFile, Dimension, ExchangeFile, Filters, FlowFile,
    FlowPattern, ReplayFile, ReplayModeFile,
};
pub use self::identities::{IdentitiesFile, IdentityFile};
pub use self::late::LateFile;
pub use self::network::{CoresFile, HostsFile, LocalFile, LocalHostsFile, NetworkFile};
pub use self::payload::{Drawn, LogNormalSizes, NormalSizes, OneSize, PayloadFile, UniformSizes};
pub use self::phases::{PhasesFile, UntilCount, UntilFile, WindowFile};
pub use self::presence::{FirstLeave, LeaveFile, PresenceFile, PresenceOf, SpanRange, WillFile};
pub use self::rate::{DailyFile, Level, RampFile, RateFile, StepFile, VaryingRate};
pub use self::recording::{DaysFile, RecordingFile};
pub use self::search::SearchFile;
pub use self::settings::NamedSettings;
pub use self::slow::{SlowFile, SomeSubscribers, TakesFile};
pub use self::systems::Systems;
pub use self::testbed::{LimitsFile, TestbedFile};
pub use self::topology::TopologyFile;
pub use self::trace::TraceFile;
pub use self::workload::WorkloadFile;

/// Keys below which other files than the study's, or variables of the environment, are named.
pub(crate) const READING_KEYS: [&str; 2] = ["trace", "identities"];

/// One question, put to several systems.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct StudyFile {
    /// Name of the study; names the folder of its runs.
    pub name: String,
    /// The question that it answers, in one sentence.
    pub question: Option<String>,
    /// Systems to run on, by name; `"available"` (the default) stands for all that are found,
    /// `"available-variants"` for the same in every variant, `"first-look"` for those found that
    /// start at once.
    pub systems: Option<Systems>,
    /// Seed of every random draw and of the order of trials; 1 if absent.
    pub seed: Option<u32>,
    /// How often each cell of the grid is run; 1 if absent.
    pub repeats: Option<u32>,
    /// Order of trials; random if absent.
    pub order: Option<TrialOrder>,
    /// How each trial proceeds; a workload may say otherwise for itself.
    #[serde(default, skip_serializing_if = "is_default")]
    pub phases: PhasesFile,
    /// How the system is laid out.
    #[serde(default, skip_serializing_if = "is_default")]
    pub topology: TopologyFile,
    /// How the client works.
    #[serde(default, skip_serializing_if = "is_default")]
    pub client: ClientFile,
    /// Where systems run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub testbed: TestbedFile,
    /// How a limit is searched for, where a value of a flow is "find".
    #[serde(default, skip_serializing_if = "is_default")]
    pub search: SearchFile,
    /// How cells are compared with each other.
    #[serde(default, skip_serializing_if = "is_default")]
    pub compare: CompareFile,
    /// Axes of the grid: PATH = list of values. Every combination is run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub grid: BTreeMap<String, Vec<serde_json::Value>>,
    /// The application's demands on the system; several variants are all run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<NamedSettings>,
    /// Changes to the settings, tried one at a time against the base, which is the settings as they are.
    /// Each has a name, and the settings that it changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ablation: Vec<NamedSettings>,
    /// Recorded traces, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub trace: BTreeMap<String, TraceFile>,
    /// Recordings that claims are judged by, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub recording: BTreeMap<String, RecordingFile>,
    /// The work of devices and applications; several workloads are all run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workload: Vec<WorkloadFile>,
    /// Conditions that must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criterion: Vec<CriterionFile>,
    /// The sides that claims compare, by name: cells, or implementations of the same, which must agree.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub side: BTreeMap<String, Cells>,
    /// Statements about the systems, such as a paper's, judged by what was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claim: Vec<ClaimFile>,
    /// Other sizes of the study, by name: what is written there replaces what the study says.
    /// `--scale NAME` chooses one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scale: BTreeMap<String, BTreeMap<String, serde_json::Value>>,
}

impl StudyFile {
    /// How trials of one of its workloads are to be run, on one broker.
    pub(crate) fn setup_of(&self, workload: &WorkloadFile) -> Setup {
        let client = workload.client(&self.client);
        let testbed = workload.testbed(&self.testbed);
        Setup {
            client: client.setup(),
            processes: client.processes,
            client_limits: client.limits.share(),
            brokers: 1,
            limits: testbed.limits.share(),
            keep_running: testbed.keep_running.unwrap_or(false),
            counts: CountRequests {
                system_calls: testbed.count_system_calls.unwrap_or(false),
                interface: testbed.count_interface.clone(),
            },
            network: testbed.network.as_ref().map(|file| file.network().into()),
            hosts: testbed.sizes().map(Arc::new),
        }
    }
}

/// Order of trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrialOrder {
    /// Shuffled within each repeat, by the study's seed: what drifts over time then does not
    /// look like a difference between systems.
    Random,
    /// As listed in the file.
    Listed,
}
