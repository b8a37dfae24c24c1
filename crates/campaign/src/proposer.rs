//! Chooses the next trial of a run: the next step of its searches, then the trials of its plan one by one, or the next
//! of the rounds in which cells are compared. Pure except for this host's limits: an interrupted run is resumed
//! from the stored results.

mod limits;
mod undecided;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use pubgauge_figures::criterion::{CriterionSpec, by_default};
use pubgauge_figures::model::Trial;
use pubgauge_figures::search::{LimitShare, Search, SearchStep};
use pubgauge_search::Axis;
use pubgauge_study::{Plan, PlannedTrial};
use pubgauge_testbed::SystemKind;
use pubgauge_workload::Workload;

use crate::ClientOptions;
use crate::Error;
use crate::pairs::Pairs;
use crate::repeats::Round;
use crate::tuning::Tuner;
use crate::{Chosen, Prepared, capacity};

/// A trial to run.
pub struct Proposal {
    pub trial: PlannedTrial,
    pub search: Option<SearchStep>,
    /// The limit that its load is a share of.
    pub limit_share: Option<LimitShare>,
    /// The round of repeats for undecided claims; 0 in a trial of the plan.
    pub round: u32,
    /// Processes on each side, if one process is not enough for it.
    pub processes: Option<u32>,
    /// Its measurement ends as soon as the load is beyond hope.
    pub ends_once_hopeless: bool,
}

/// A workload and the processes on each side that it needs, or why it is not possible.
type Loaded = Result<(Arc<Workload>, Option<u32>), String>;

/// Decides what is measured next.
pub struct Proposer<'a> {
    prepared: &'a Prepared,
    client: ClientOptions,
    /// Criteria in the form that trials are evaluated by.
    pub criteria: Vec<CriterionSpec>,
    /// For each trial of the plan whose value is searched for: the largest load that fits this host.
    fits: BTreeMap<u32, (f64, Option<String>)>,
    processes: Option<u32>,
    /// The comparisons of the plan.
    pub pairs: Option<Pairs>,
    /// A cache of searches that are over, by number, with their number of trials.
    over: RefCell<BTreeMap<u32, (usize, Search)>>,
    /// A cache of workloads at the loads that searches found, and the processes that they need, by
    /// cell and load.
    loaded: RefCell<BTreeMap<(String, u64), Loaded>>,
    /// Seconds that repeats for undecided claims may take.
    budget_s: Option<f64>,
    /// A cache of the last round of these, with its number.
    round: RefCell<Option<(u32, Round)>>,
    /// Leads the trials in place of all else.
    tuner: Option<&'a Tuner<'a>>,
}

impl<'a> Proposer<'a> {
    /// A proposer for a plan whose trials fit into `processes` on each side.
    ///
    /// # Errors
    /// If not even the smallest load of a search fits this host, or the comparisons that the study asks for
    /// are not possible.
    pub fn new(
        prepared: &'a Prepared,
        client: &ClientOptions,
        processes: Option<u32>,
    ) -> Result<Proposer<'a>, Error> {
        let mut proposer = Proposer {
            criteria: specs(prepared),
            prepared,
            client: client.clone(),
            fits: BTreeMap::new(),
            processes,
            pairs: Pairs::from_plan(&prepared.plan)?,
            over: RefCell::default(),
            loaded: RefCell::default(),
            budget_s: None,
            round: RefCell::default(),
            tuner: None,
        };
        for trial in prepared.plan.searches() {
            let fits = proposer.largest(trial)?;
            proposer.fits.insert(trial.order, fits);
        }
        Ok(proposer)
    }

    /// The trial to measure after those stored; `None` at the end. Searches come first: the loads of others are
    /// shares of what they find.
    ///
    /// # Errors
    /// If a load is not possible.
    pub fn next(&self, done: &[Trial]) -> Result<Option<Proposal>, Error> {
        if let Some(tuner) = self.tuner {
            return self.next_of(tuner, done);
        }
        let plan = &self.prepared.plan;
        if let (Some(_), Some(pairs)) = (plan.rounds(), &self.pairs) {
            return Ok(pairs.next(done).map(|(at, round)| {
                let mut trial = plan.trials[at].clone();
                (trial.repeat, trial.order) = (round, next_number(done));
                self.plain(trial, None)
            }));
        }
        for (number, template) in (0..).zip(plan.searches()) {
            if let Some(proposal) = self.step(number, template, done)? {
                return Ok(Some(proposal));
            }
        }
        for trial in plan.plain().filter(|trial| !self.is_done(trial, done)) {
            // A trial without a load is not measured, and is listed as not measured.
            let Ok(mut proposal) = self.at_its_load(trial, done) else {
                continue;
            };
            if plan.search.is_some() {
                proposal.trial.order = next_number(done);
            }
            return Ok(Some(proposal));
        }
        Ok(None)
    }

    /// Lets a tuning lead all trials: the plan is the cell that it begins with.
    pub fn led_by(mut self, tuner: &'a Tuner<'a>) -> Self {
        self.tuner = Some(tuner);
        self
    }

    /// Whether a tuning leads all trials.
    pub fn is_led(&self) -> bool {
        self.tuner.is_some()
    }

    /// The next trial of a tuning.
    fn next_of(&self, tuner: &Tuner<'_>, done: &[Trial]) -> Result<Option<Proposal>, Error> {
        let Some(tuned) = tuner.next(done)? else {
            return Ok(None);
        };
        Ok(Some(Proposal {
            processes: self.processes_for(&tuned.trial)?,
            search: tuned.search,
            limit_share: None,
            round: 0,
            ends_once_hopeless: true,
            trial: tuned.trial,
        }))
    }

    /// The plan that is carried out.
    pub fn plan(&self) -> &'a Plan {
        &self.prepared.plan
    }

    /// The trials of the plan that are not done; a trial that stands for a search is not done until
    /// the search is over.
    pub fn remaining(&self, done: &[Trial]) -> Vec<&'a PlannedTrial> {
        let searches = (0..).zip(self.prepared.plan.searches());
        let searches = searches.filter(|(number, t)| !self.is_over(*number, t, done));
        let plain = self.prepared.plan.plain();
        let plain = plain.filter(|trial| !self.is_done(trial, done));
        searches.map(|(_, trial)| trial).chain(plain).collect()
    }

    /// Number of trials of a run that has done these: while a search is not over, one more than are known.
    pub fn planned(&self, done: &[Trial]) -> u32 {
        if let Some(tuner) = self.tuner {
            return done.len() as u32 + u32::from(!tuner.is_over());
        }
        let left = self.remaining(done);
        let seeks = left.iter().any(|trial| trial.seeks().is_some());
        let plain = left.iter().filter(|trial| trial.seeks().is_none());
        let measured = plain.filter(|trial| seeks || self.at_its_load(trial, done).is_ok());
        (done.len() + measured.count() + usize::from(seeks)) as u32
    }

    /// Whether a trial that is no search is stored. Numbers are those of the plan where nothing is searched for.
    fn is_done(&self, trial: &PlannedTrial, done: &[Trial]) -> bool {
        let numbered = self.prepared.plan.search.is_none();
        let same = |other: &Trial| {
            if numbered {
                other.id == trial.order
            } else {
                other.search.is_none() && other.repeat == trial.repeat
            }
        };
        done.iter()
            .any(|other| same(other) && other.cell == trial.cell)
    }

    /// A trial that is no part of a search.
    fn plain(&self, trial: PlannedTrial, limit_share: Option<LimitShare>) -> Proposal {
        Proposal {
            trial,
            search: None,
            limit_share,
            round: 0,
            processes: self.processes,
            ends_once_hopeless: false,
        }
    }

    fn processes_for(&self, trial: &PlannedTrial) -> Result<Option<u32>, Error> {
        capacity::check([trial], &self.prepared.systems, &self.client)
    }
}

/// Criteria of a plan, with the default ones for searches that need them.
pub fn specs(prepared: &Prepared) -> Vec<CriterionSpec> {
    let plan = &prepared.plan;
    let mut specs = plan.criteria.clone();
    let of_time = |spec: &CriterionSpec| {
        spec.catalogued_figure()
            .is_some_and(|figure| figure.of_delivery)
    };
    let any_path = (plan.searches()).any(|search| path_ns(search, &prepared.systems) > 0);
    // One for all searches over a path that gather messages, and one for the others over it.
    let mut defaults: Vec<CriterionSpec> = Vec::new();
    for search in plan.searches() {
        let name = &search.workload.name;
        let mut own = specs
            .iter()
            .filter(|spec| of_time(spec) && passes(&spec.filter.workloads, name));
        let has = own.clone().any(|spec| bears(spec, search));
        // A search for the burst size has no limit of latency by default.
        if has || search.seeks() == Some(Axis::Burst) {
            continue;
        }
        let path_ns = any_path.then(|| path_ns(search, &prepared.systems));
        let mut default = default_criterion(search.setup.client.pacing_within, path_ns);
        // Criteria of other systems or settings of the workload do not apply to this one.
        if own.next().is_some() {
            default.filter.systems = vec![search.system.clone()];
            default.filter.settings = vec![search.settings_name.clone()];
        }
        let alike = |d: &CriterionSpec| {
            d.figure == default.figure
                && d.value == default.value
                && d.filter.systems == default.filter.systems
                && d.filter.settings == default.filter.settings
        };
        let same = defaults.iter().position(alike);
        let at = same.unwrap_or_else(|| {
            defaults.push(default);
            defaults.len() - 1
        });
        let workloads = &mut defaults[at].filter.workloads;
        if !workloads.contains(name) {
            workloads.push(name.clone());
        }
    }
    if let [alone] = &mut defaults[..] {
        let its = |search: &PlannedTrial| alone.filter.workloads.contains(&search.workload.name);
        // It applies to no other workload.
        if plan.plain().next().is_none() && plan.searches().all(its) {
            alone.filter.workloads.clear();
        }
    }
    specs.extend(defaults);
    specs
}

/// The number of a trial after these. Some may be gone: who deletes a trial's folder has it measured again.
fn next_number(done: &[Trial]) -> u32 {
    done.iter().map(|trial| trial.id + 1).max().unwrap_or(0)
}

/// Criteria that are evaluated at the end: those about trials that are no part of a search. In a search criteria
/// decide what is within the limit, and trials beyond it are no failure.
pub fn evaluated<'s>(
    plan: &'s Plan,
    specs: &'s [CriterionSpec],
) -> impl Iterator<Item = &'s CriterionSpec> {
    // One that bears on no trial at all is told as such.
    let of_searches = move |spec: &CriterionSpec| plan.searches().any(|trial| bears(spec, trial));
    specs
        .iter()
        .filter(move |spec| plan.plain().any(|trial| bears(spec, trial)) || !of_searches(spec))
}

/// Whether a list of names, of all where it is empty, has this one.
fn passes(names: &[String], name: &String) -> bool {
    names.is_empty() || names.contains(name)
}

/// Whether a criterion is about a trial.
fn bears(spec: &CriterionSpec, trial: &PlannedTrial) -> bool {
    let flows = &trial.workload.flows;
    passes(&spec.filter.systems, &trial.system)
        && passes(&spec.filter.workloads, &trial.workload.name)
        && passes(&spec.filter.settings, &trial.settings_name)
        && (spec.filter.flow.as_ref()).is_none_or(|flow| flows.iter().any(|own| own.name == *flow))
}

/// The constant delay of the path that messages of a trial take, ns.
fn path_ns(trial: &PlannedTrial, systems: &BTreeMap<String, Chosen>) -> u64 {
    let brokerless =
        (systems.get(&trial.system)).is_some_and(|chosen| chosen.file.kind == SystemKind::Library);
    (trial.setup.network.as_ref()).map_or(0, |network| network.path_ns(!brokerless))
}

/// The criterion of searches whose study has none of latency, with messages gathered for this span, over this path.
pub fn default_criterion(pacing_within_ns: u64, path_ns: Option<u64>) -> CriterionSpec {
    let spec = by_default(pacing_within_ns, path_ns);
    CriterionSpec {
        text: format!(
            "{} (every search without a criterion on latency)",
            spec.text
        ),
        ..spec
    }
}

#[cfg(test)]
pub(crate) mod tests;
