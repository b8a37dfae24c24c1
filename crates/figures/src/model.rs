//! `results.json`: the names that other tools read. Names of measured values contain the unit.

mod acknowledgement;
mod evidence;
mod failure;
mod parts;
mod reason;
mod trial;

use std::collections::BTreeMap;

use pubgauge_driver::{Answer, Capability, Unsupported};
use pubgauge_quantities::shown;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::axis::AxisValue;
use crate::claim::ClaimOutcome;
use crate::comparison::PairComparison;
use crate::criterion::spec::CriterionSpec;
pub use crate::distribution::Distribution;
use crate::processors;
use crate::recording::RecordingInfo;
use crate::search::{NotMeasured, Search};
use crate::traffic::NetworkInfo;
pub use acknowledgement::*;
pub use evidence::Evidence;
pub use failure::{ClientFailure, FailureKind};
pub use parts::*;
pub use pubgauge_setup::ClientSetup;
pub use reason::*;
pub use trial::*;

/// Name and version of the format; raised whenever a reader could misunderstand a newer file.
pub const FORMAT: &str = "pubgauge-results/2";

/// The file `results.json` of a run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Results {
    /// Name and version of the format: `pubgauge-results/2`.
    pub format: String,
    /// Where it ran.
    pub machine: Machine,
    /// The study that was run.
    pub study: StudyInfo,
    /// The trials, in the order in which they ran.
    pub trials: Vec<Trial>,
    /// The searches and their findings, in the order in which they ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub searches: Vec<Search>,
    /// Cells that were planned and could not be measured, because the search for their load found no limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_measured: Vec<NotMeasured>,
    /// Claims about the systems, and whether each holds here; filled in once the run is over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ClaimOutcome>,
    /// Cells that were compared with each other, and the outcomes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comparisons: Vec<PairComparison>,
    /// Emulated networks that trials ran on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub networks: Vec<NetworkInfo>,
}

impl Results {
    /// The trials that count: those of searches, and of each repeat of a cell the last, because a run in rounds repeats
    /// spoilt ones.
    pub fn counted(&self) -> impl Iterator<Item = &Trial> {
        let plain = self.trials.iter().filter(|trial| trial.search.is_none());
        let of = |trial: &Trial| (trial.cell.clone(), trial.repeat);
        let last: BTreeMap<_, u32> = plain.map(|trial| (of(trial), trial.id)).collect();
        let counts =
            move |trial: &&Trial| trial.search.is_some() || last.get(&of(trial)) == Some(&trial.id);
        self.trials.iter().filter(counts)
    }

    /// The trials by which a run is judged: those that count, of no search.
    pub fn standing(&self) -> impl Iterator<Item = &Trial> {
        self.counted().filter(|trial| trial.search.is_none())
    }

    /// Whether a trial is shown with its search, and not among the rows that are compared. A search that is not in the
    /// results (yet) hides no trial.
    pub fn is_of_search(&self, trial: &Trial) -> bool {
        let search = trial.search.map(|step| step.search as usize);
        search.is_some_and(|search| search < self.searches.len())
    }
}

/// An empty run.
impl Default for Results {
    fn default() -> Self {
        Results {
            format: FORMAT.to_owned(),
            machine: Machine::default(),
            study: StudyInfo::default(),
            trials: Vec::new(),
            searches: Vec::new(),
            not_measured: Vec::new(),
            claims: Vec::new(),
            comparisons: Vec::new(),
            networks: Vec::new(),
        }
    }
}

/// The machine a run took place on.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// Kernel name and release.
    pub kernel: String,
    /// Distribution.
    pub os: String,
    /// Processor model.
    pub cpu_model: String,
    /// Processors that this process may run on.
    pub cores: u32,
    /// The tightest quota of processor time of the control groups around this process (a container's), in processors;
    /// absent: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_cores: Option<f64>,
    /// Main memory in bytes.
    pub memory_bytes: u64,
    /// Frequency governor, where the kernel tells.
    pub governor: Option<String>,
    /// The kernel's driver and governor that send idle processors to sleep (cpuidle), where the kernel names them.
    pub idle_driver: Option<String>,
    /// Highest number of open files allowed for this process.
    pub max_open_files: u64,
    /// Load average over the minute before the run.
    pub load_average_1min: f64,
    /// The commit that pubgauge was built from, with `-dirty` where the tree had changes besides; absent where it was not
    /// built from a checkout.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pubgauge_commit: String,
    /// Version of pubgauge.
    pub pubgauge_version: String,
    /// The newest calibration of this machine, as `pubgauge calibrate` stored it.
    pub calibration: Option<serde_json::Value>,
}

impl Machine {
    /// Number and model of its processors, in words.
    pub fn processors(&self) -> String {
        format!("{} ({})", self.number_of_processors(), self.cpu_model)
    }

    /// Number of its processors, and what a quota leaves of them, in words.
    pub fn number_of_processors(&self) -> String {
        let all = shown::so_many(self.cores.into(), "processor");
        match self.quota() {
            Some(quota) => format!(
                "{all}, of which this container may use {}",
                shown::three_decimals(quota)
            ),
            None => all,
        }
    }

    /// The quota that leaves fewer processors than there are; `None` without any.
    pub fn quota(&self) -> Option<f64> {
        processors::quota(self.cores, self.quota_cores)
    }
}

/// The study of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct StudyInfo {
    /// Its name.
    pub name: String,
    /// The question in one sentence.
    pub question: Option<String>,
    /// Start of the run, RFC 3339.
    pub started: String,
    /// Trials planned.
    pub planned_trials: u32,
    /// Criteria and whether they were met, once the run is over.
    pub criteria: Vec<CriterionOutcome>,
    /// Its criteria as they are evaluated trial by trial.
    pub criterion_specs: Vec<CriterionSpec>,
    /// Cells that could not be planned, with the reasons.
    pub unsupported: Vec<UnsupportedCell>,
    /// The capabilities of each system of the run, as its driver and its file say.
    pub capabilities: Vec<SystemCapabilities>,
    /// Recordings that claims are judged by, day by day.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recordings: Vec<RecordingInfo>,
    /// The rule of each claim, in words, as it was when the run began: whoever changes one when trials are known leaves a
    /// trace (`rule_is_later` of the claim's outcome). Empty in runs of versions before 0.3.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub claim_rules: BTreeMap<String, String>,
    /// The size of the study that was chosen by name; absent: the study as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<String>,
    /// Seconds that trials may take beyond the plan, where cells that an undecided claim needs are measured again until
    /// it is decided; absent where they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_decided_s: Option<f64>,
    /// Seed from which order and draws follow.
    pub seed: u64,
    /// Whether the run was cut off before all trials had run.
    pub cut_off: bool,
}

/// A criterion of the study and its outcome.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CriterionOutcome {
    /// The criterion as the study states it.
    pub criterion: String,
    /// Whether it was met; absent if undecided: a trial cannot tell, or no trial applies.
    pub met: Option<bool>,
    /// The figures that decided.
    pub figures: String,
}

/// A cell of the grid that a system cannot honour.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct UnsupportedCell {
    /// The system.
    pub system: String,
    /// The settings that it cannot honour.
    pub settings: Vec<Unsupported>,
}

/// The capabilities of a system.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SystemCapabilities {
    /// The system, with its variant where it has several.
    pub system: String,
    /// An answer for every capability.
    pub answers: Vec<CapabilityAnswer>,
}

/// One answer.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CapabilityAnswer {
    /// `property:value`, or the property alone.
    pub capability: Capability,
    /// Whether the system has it, and what it is there.
    #[serde(flatten)]
    pub answer: Answer,
}
