//! A trial to run, and what all trials of a run have in common.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use pubgauge_driver::{Driver, Mapping, Nanos, Settings, Tls};
use pubgauge_engine::assignment::Workers;
use pubgauge_engine::conductor::Phase;
use pubgauge_engine::live::Live;
use pubgauge_figures::model::AxisValue;
use pubgauge_figures::search::{LimitShare, SearchStep};
use pubgauge_hosts::Hosts;
use pubgauge_setup::Setup;
use pubgauge_testbed::{SystemFile, Testbed};
use pubgauge_workload::Workload;

use crate::hosts::Sides;
use crate::network::TrialNetwork;
use crate::processes::Processes;
use crate::sizes::OwnCost;

/// Receives the progress of a trial.
pub trait Watch {
    /// A phase has begun.
    fn phase(&mut self, phase: Phase);
    /// Called about twenty times a second.
    fn tick(&mut self, live: &Live, now: Nanos);
}

/// Settings, and what the driver makes of each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResolvedSettings {
    pub settings: Settings,
    pub mappings: Vec<Mapping>,
}

impl From<Settings> for ResolvedSettings {
    /// Settings of which nobody asked what they become.
    fn from(settings: Settings) -> ResolvedSettings {
        ResolvedSettings {
            settings,
            mappings: Vec::new(),
        }
    }
}

/// The specification of a trial, as its result stores it.
#[derive(Clone, Debug, Default)]
pub struct TrialRequest {
    /// Position in the plan.
    pub id: u32,
    /// Identifies the cell.
    pub cell: String,
    /// The name under which the system is shown: its own, with the variant if one was chosen.
    pub system: String,
    /// Of flows without their own.
    pub settings: ResolvedSettings,
    /// Of flows with their own; index n has the number n + 1 in [`pubgauge_workload::Flow::settings`].
    pub of_flows: Vec<ResolvedSettings>,
    pub settings_name: String,
    pub axes: Vec<AxisValue>,
    /// From 1.
    pub repeat: u32,
    /// The round of repeats for undecided claims; 0 in a trial of the plan.
    pub round: u32,
    pub search: Option<SearchStep>,
    pub limit_share: Option<LimitShare>,
}

impl TrialRequest {
    /// Those of the trial, then those of flows with their own, in the order of their numbers.
    pub fn all_settings(&self) -> impl Iterator<Item = &Settings> {
        let of_flows = self.of_flows.iter();
        std::iter::once(&self.settings)
            .chain(of_flows)
            .map(|resolved| &resolved.settings)
    }
}

/// A trial to run.
pub struct Job<'a> {
    pub asked: TrialRequest,
    /// The end of the trial before: this one has taken the time since then.
    pub begun: Instant,
    pub system: &'a SystemFile,
    pub variant: Option<&'a str>,
    pub driver: Arc<dyn Driver>,
    /// How it is to be run.
    pub setup: Setup,
    /// Over the brokers of the setup.
    pub workload: &'a Arc<Workload>,
    /// Its measurement ends as soon as the load is beyond hope, where that is the same throughout: of a load that changes, a
    /// shorter measurement would be another one.
    pub ends_once_hopeless: bool,
    /// The network of the setup, where it is up; the workers on it are processes ([`ClientConfig::processes`]).
    pub network: Option<TrialNetwork>,
}

/// How the client works.
#[derive(Clone, Debug, Default)]
pub struct ClientConfig {
    /// Threads on each side.
    pub workers: Workers,
    /// Processors for the workers, in turn; empty: the scheduler chooses.
    pub pin: Vec<usize>,
    /// A process for each worker; threads of this program if absent.
    pub processes: Option<Processes>,
    /// Other hosts that have the workers, each in a process, and which has those of which side: as many as `workers` gives
    /// for that. This host if absent.
    pub hosts: Option<(Arc<Hosts>, Sides)>,
}

/// The parts that all trials of a run have in common.
pub struct Environment<'a> {
    /// Starts systems.
    pub testbed: Testbed,
    /// Folder of the systems' folders.
    pub scratch: &'a Path,
    /// How the client works.
    pub client: ClientConfig,
    /// Certificates given on the command line.
    pub tls: Option<Tls>,
    /// Set when the user wants to end.
    pub stop: Arc<AtomicBool>,
    /// Processors that this process may run on.
    pub cores: u32,
    /// The tightest quota of processor time around this process, in processors; `None` without any.
    pub quota_cores: Option<f64>,
    /// The cost of a message for pubgauge itself, where the machine was calibrated.
    pub own_cost: Option<OwnCost>,
}
