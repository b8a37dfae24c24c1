//! A plan and its trials.

use std::sync::Arc;

use pubgauge_driver::{Settings, Unsupported};
use pubgauge_figures::criterion::CriterionSpec;
use pubgauge_figures::recording::RecordingInfo;
use pubgauge_figures::rule::Claim;
use pubgauge_search::Axis;
use pubgauge_setup::Setup;
use pubgauge_strict_toml::InvalidInput;
use pubgauge_workload::{SECOND, Trace, Until, Workload};

use crate::compare::ComparePlan;
use crate::load::{OpenLoad, ShareOfLimit};
use crate::search::SearchPlan;

/// Most trials of a study.
pub(crate) const MAX_TRIALS: usize = 100_000;

/// A study, ready to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Name of the study.
    pub name: String,
    pub question: Option<String>,
    /// Seed of the order and of all draws.
    pub seed: u64,
    /// The size of the study that was chosen by name; absent: the study as written.
    pub scale: Option<String>,
    /// The order within each repeat is drawn.
    pub shuffled: bool,
    /// Repeats of each cell; the largest number, where workloads differ.
    pub repeats: u32,
    /// Every trial, in the order in which they are to run.
    pub trials: Vec<PlannedTrial>,
    /// The criteria of the study.
    pub criteria: Vec<CriterionSpec>,
    /// The claims, judged by what was measured.
    pub claims: Vec<Claim>,
    /// Recordings that claims are judged by, counted day by day.
    pub recordings: Vec<RecordingInfo>,
    /// Cells that a system cannot honour; filled by [`Plan::split_unsupported`].
    pub unsupported: Vec<UnsupportedTrial>,
    /// Where the plan differs from the letter of the study, in words.
    pub notes: Vec<String>,
    /// The study with all flags applied, as TOML: what a run stores as its question.
    pub resolved: String,
    /// How searches proceed, if any of the trials stands for one.
    pub search: Option<SearchPlan>,
    /// How cells are compared with each other, if they are.
    pub compare: Option<ComparePlan>,
    /// The traces that its workloads replay, held so that workers need not read them again.
    pub traces: Vec<Arc<Trace>>,
}

/// One trial of a plan.
#[derive(Clone, Debug)]
pub struct PlannedTrial {
    /// Position in the plan, from 0.
    pub order: u32,
    /// Index of its cell in the study's list, from 0.
    pub listed: u32,
    /// Identifies the cell: the same for all repeats of it, and for no other cell.
    pub cell: String,
    /// Name of the system, or the address of an external one.
    pub system: String,
    /// Name of the variant of the settings.
    pub settings_name: String,
    /// The profile that its settings begin with.
    pub profile: Option<String>,
    /// Settings that the profile wishes for, until [`Plan::grant_wishes`] has put them into the
    /// settings; none without a profile.
    pub wish: Option<Arc<Settings>>,
    /// Wishes that the system cannot honour.
    pub not_granted: Vec<Unsupported>,
    /// The application's demands; shared by the trials that have the same.
    pub settings: Arc<Settings>,
    /// Settings of flows that have their own, the variant's included: index n here is number n + 1
    /// in [`pubgauge_workload::Flow::settings`].
    pub of_flows: Vec<Settings>,
    /// Values of the grid's axes in this cell, in the order of the file.
    pub axes: Vec<(String, String)>,
    /// How it is to be run.
    pub setup: Setup,
    /// The workload, over the brokers of the setup; shared by all its trials.
    pub workload: Arc<Workload>,
    /// Repeat number, from 1.
    pub repeat: u32,
    /// Its load, where that is known only once the run has found it.
    pub(crate) load: Option<Arc<OpenLoad>>,
}

/// A cell that a system cannot honour.
#[derive(Clone, Debug, PartialEq)]
pub struct UnsupportedTrial {
    pub cell: String,
    pub system: String,
    /// The settings it cannot honour, with the reasons.
    pub settings: Vec<Unsupported>,
}

impl PlannedTrial {
    /// All settings: the trial's own, and those of flows that have their own.
    pub fn all_settings(&self) -> impl Iterator<Item = &Settings> {
        std::iter::once(&*self.settings).chain(&self.of_flows)
    }

    /// About how long it takes, in nanoseconds: phases as planned, connections at 20,000 a second
    /// or the rate asked for, half a second to start and stop a system, and a second to measure the
    /// other traffic of an interface that is counted.
    pub fn duration_estimate(&self) -> u64 {
        const START_AND_STOP: u64 = SECOND / 2;
        let phases = &self.workload.phases;
        let connections = self.workload.devices.len() as f64;
        let connect = connections / phases.connect_per_s.unwrap_or(20_000.0) * SECOND as f64;
        let per_s: Option<f64> = self
            .workload
            .flows
            .iter()
            .filter(|flow| flow.publishes())
            .map(|flow| flow.arrivals.mean_per_s())
            .sum();
        let length = |until: &Until| match (*until, per_s) {
            (Until::Count(messages, within), Some(per_s)) if per_s > 0.0 => {
                within.min((messages as f64 / per_s * SECOND as f64) as u64)
            }
            (until, _) => until.latest(),
        };
        START_AND_STOP
            + self.setup.counts.interface.as_ref().map_or(0, |_| SECOND)
            + connect as u64
            + length(&phases.warm_up)
            + length(&phases.measure)
            + phases.drain_quiet.min(phases.drain_within)
    }

    /// The search, if the trial stands for one.
    pub fn seeks(&self) -> Option<Axis> {
        let load = self.load.as_ref().filter(|load| load.share.is_none());
        load.map(|load| load.place.axis)
    }

    /// The limit and the value of it that its load is a share of.
    pub fn share(&self) -> Option<(&ShareOfLimit, Axis)> {
        let load = self.load.as_ref()?;
        Some((load.share.as_ref()?, load.place.axis))
    }

    /// Index in its workload of the flow whose load is not known before the run.
    pub fn open_flow(&self) -> Option<usize> {
        self.load.as_ref()?.place.path.get(3)?.parse().ok()
    }

    /// A trial of the search that it stands for, at a load or flat out; `measure` is the length of the
    /// measurement, ns.
    ///
    /// # Errors
    /// The study has a value that is not possible.
    pub fn seeking(&self, load: Option<f64>, measure: u64) -> Result<PlannedTrial, InvalidInput> {
        let mut trial = match load {
            None => self.clone(),
            Some(load) => self.at_load(load)?,
        };
        if let Some(axis) = self.seeks() {
            let written = load.map_or("max".to_owned(), |load| axis.written(load));
            trial.cell = format!("{} / {}={written}", trial.cell, axis.name());
            trial.axes.push((axis.name().to_owned(), written));
        }
        measures(&mut trial, measure);
        Ok(trial)
    }

    /// The trial at a load; as it is, if its load is known.
    ///
    /// # Errors
    /// The study has a value that is not possible.
    pub fn at_load(&self, load: f64) -> Result<PlannedTrial, InvalidInput> {
        // Profiles and systems change the settings independently of the load.
        let workload = match &self.load {
            Some(open) => open.workload(load, self.setup.brokers)?,
            None => self.workload.clone(),
        };
        Ok(PlannedTrial {
            workload,
            ..self.clone()
        })
    }

    /// Whether the limit that `search` finds is that of this trial's system, settings and values of
    /// the grid. An axis that the search does not have is ignored.
    pub fn is_share_of(&self, search: &PlannedTrial) -> bool {
        let last = |name: &str| name.rsplit('.').next().map(str::to_owned);
        let own = |name: &String| {
            let axes = || self.axes.iter();
            let found = axes().find(|(own, _)| own == name);
            found.or_else(|| axes().find(|(own, _)| last(own) == last(name)))
        };
        let axes = || search.axes.iter();
        self.share()
            .is_some_and(|(share, _)| share.of == search.workload.name)
            && (&self.system, &self.settings_name) == (&search.system, &search.settings_name)
            && axes().all(|(name, value)| own(name).is_some_and(|(_, own)| own == value))
    }
}

impl Plan {
    /// The trials that stand for a search, in their order.
    pub fn searches(&self) -> impl Iterator<Item = &PlannedTrial> {
        self.trials.iter().filter(|trial| trial.seeks().is_some())
    }

    /// The trials that are run as they are, in their order.
    pub fn plain(&self) -> impl Iterator<Item = &PlannedTrial> {
        self.trials.iter().filter(|trial| trial.seeks().is_none())
    }

    /// About how long one of its trials takes, in nanoseconds; of a search its budget, without the
    /// trial that is running when the budget ends.
    pub fn estimate(&self, trial: &PlannedTrial) -> u64 {
        match (self.search, trial.seeks()) {
            (Some(search), Some(_)) => search.budget,
            _ => trial.duration_estimate(),
        }
    }

    /// About how long all trials take, in nanoseconds; searches and rounds with their whole
    /// budgets.
    pub fn duration_estimate(&self) -> u64 {
        let all = self.trials.iter().map(|trial| self.estimate(trial));
        let all = all.fold(0, u64::saturating_add);
        match self.rounds() {
            // A round that has begun is not cut off.
            Some(rounds) => {
                (rounds.budget.saturating_add(all)).min(all.saturating_mul(u64::from(rounds.pairs)))
            }
            None => all,
        }
    }

    /// How rounds are repeated until comparisons are precise; `None` where each trial of the plan
    /// is run once.
    pub fn rounds(&self) -> Option<&ComparePlan> {
        let compare = self.compare.as_ref();
        compare.filter(|compare| compare.precision.is_some())
    }

    /// Moves the trials that a system cannot honour to [`Plan::unsupported`]. `resolve` asks the
    /// system's driver ([`pubgauge_driver::Driver::resolve`]).
    pub fn split_unsupported(
        &mut self,
        mut resolve: impl FnMut(&str, &Settings) -> Result<(), Vec<Unsupported>>,
    ) {
        let unsupported = &mut self.unsupported;
        // In place: there may be 100,000.
        self.trials.retain(|trial| {
            let mut all = trial.all_settings();
            let Err(settings) = all.try_for_each(|s| resolve(&trial.system, s)) else {
                return true;
            };
            if !unsupported.iter().any(|u| u.cell == trial.cell) {
                unsupported.push(UnsupportedTrial {
                    cell: trial.cell.clone(),
                    system: trial.system.clone(),
                    settings,
                });
            }
            false
        });
        for (order, trial) in (0..).zip(&mut self.trials) {
            trial.order = order;
        }
    }
}

/// Sets the length of a trial's measurement, ns.
fn measures(trial: &mut PlannedTrial, ns: u64) {
    let mut workload = (*trial.workload).clone();
    workload.phases.measure = Until::Time(ns);
    workload.stretch_curves();
    trial.workload = workload.into();
}
