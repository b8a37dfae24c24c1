//! From a study to the list of trials.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pubgauge_claims::Claim;
use pubgauge_driver::{Settings, Unsupported};
use pubgauge_network::Network;
use pubgauge_workload::{SECOND, Trace, Until, Workload};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use crate::cells::{Crossed, add_trials, crossed};
use crate::compare::ComparePlan;
use crate::criterion::Criterion;
use crate::file::{LimitsFile, Order, StudyFile, Systems, WorkloadFile};
use crate::load::{OpenLoad, restored};
use crate::placing;
use crate::problem::{Problem, StudyError};
use crate::resolve::{self, Clash, Clashes, Traces};
use crate::search::{self, SearchPlan};
use crate::study::Study;
use crate::tree::{Node, Value};
use crate::units::{did_you_mean, nearest};
use crate::window;

/// Most trials of a study.
pub(crate) const MAX_TRIALS: usize = 100_000;

/// The systems there are, and the caller's choices.
#[derive(Clone, Debug, Default)]
pub struct PlanOptions {
    /// The systems there are.
    pub known: Known,
    /// Run on these instead of the study's systems (`--on`); a name, or an address with `://`.
    pub on: Vec<String>,
    /// Repeats instead of the study's (`--repeats`).
    pub repeats: Option<u32>,
}

/// The systems there are.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Names of all systems that pubgauge has a file for.
    pub all: Vec<String>,
    /// Those that are found on this machine, in the order in which they are to be run.
    pub found: Vec<String>,
    /// The systems found in every variant, as `NAME:VARIANT` where there are several.
    pub found_variants: Vec<String>,
    /// Those found that are part of the first look: they start at once and need little.
    pub first_look: Vec<String>,
    /// Number of brokers of systems that run already; 1 if absent. An address tells its own number.
    pub brokers: BTreeMap<String, u32>,
}

/// A study, ready to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Name of the study.
    pub name: String,
    /// Its question.
    pub question: Option<String>,
    /// Seed of the order and of all draws.
    pub seed: u64,
    /// The size of the study that was chosen by name; absent: the study as written.
    pub scale: Option<String>,
    /// Repeats of each cell; the largest number, where workloads differ.
    pub repeats: u32,
    /// Every trial, in the order in which they are to run.
    pub trials: Vec<PlannedTrial>,
    /// The criteria of the study.
    pub criteria: Vec<Criterion>,
    /// The claims, judged by what was measured.
    pub claims: Vec<Claim>,
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
    /// settings.
    pub wish: Settings,
    /// Wishes that the system cannot honour.
    pub not_granted: Vec<Unsupported>,
    /// What the application asks for.
    pub settings: Settings,
    /// Settings of flows that have their own, the variant's included: index n here is number n + 1
    /// in [`pubgauge_workload::Flow::settings`].
    pub of_flows: Vec<Settings>,
    /// Values of the grid's axes in this cell, in the order of the file.
    pub axes: Vec<(String, String)>,
    /// Scheduled messages that fall due within this span leave in one wake-up, ns; 0: each at its own
    /// time.
    pub pacing_within: u64,
    /// Processes on each side for the workers; threads of one process if absent.
    pub processes: Option<u32>,
    /// What each instance of the system gets of the machine at most.
    pub limits: LimitsFile,
    /// Whether system calls are counted.
    pub count_system_calls: bool,
    /// The interface whose traffic is counted: `lo`, or `NAMESPACE/INTERFACE`.
    pub count_interface: Option<String>,
    /// The network that brokers and devices are on; all on this host if absent.
    pub network: Option<Arc<Network>>,
    /// What each worker process gets of the machine at most.
    pub client_limits: LimitsFile,
    /// The workload, over `brokers` brokers; shared by all its trials.
    pub workload: Arc<Workload>,
    /// Number of brokers.
    pub brokers: u32,
    /// Repeat number, from 1.
    pub repeat: u32,
    /// Its load, where that is known only once the run has found it.
    pub(crate) load: Option<Arc<OpenLoad>>,
}

/// A cell that a system cannot honour.
#[derive(Clone, Debug, PartialEq)]
pub struct UnsupportedTrial {
    /// The cell.
    pub cell: String,
    /// The system.
    pub system: String,
    /// The settings it cannot honour, with the reasons.
    pub settings: Vec<Unsupported>,
}

impl PlannedTrial {
    /// All settings: the trial's own, and those of flows that have their own.
    pub fn all_settings(&self) -> impl Iterator<Item = &Settings> {
        std::iter::once(&self.settings).chain(&self.of_flows)
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
            .filter(|flow| !flow.publishers.is_empty())
            .map(|flow| flow.arrivals.mean_per_s())
            .sum();
        let length = |until: &Until| match (*until, per_s) {
            (Until::Count(messages, within), Some(per_s)) if per_s > 0.0 => {
                within.min((messages as f64 / per_s * SECOND as f64) as u64)
            }
            (until, _) => until.latest(),
        };
        START_AND_STOP
            + self.count_interface.as_ref().map_or(0, |_| SECOND)
            + connect as u64
            + length(&phases.warm_up)
            + length(&phases.measure)
            + phases.drain_quiet.min(phases.drain_within)
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
        let mut kept = Vec::with_capacity(self.trials.len());
        for trial in self.trials.drain(..) {
            let all = trial
                .all_settings()
                .try_for_each(|s| resolve(&trial.system, s));
            match all {
                Ok(()) => kept.push(trial),
                Err(settings) => {
                    let known = self.unsupported.iter().any(|u| u.cell == trial.cell);
                    if !known {
                        self.unsupported.push(UnsupportedTrial {
                            cell: trial.cell,
                            system: trial.system,
                            settings,
                        });
                    }
                }
            }
        }
        for (order, trial) in (0..).zip(&mut kept) {
            trial.order = order;
        }
        self.trials = kept;
    }
}

impl Study {
    /// Plans the study: every combination of system, settings, workload and grid values, repeated
    /// and put in order. Reads the traces that it replays; starts nothing.
    ///
    /// # Errors
    /// Everything that is wrong with the study, at once as far as possible.
    pub fn plan(&self, options: &PlanOptions) -> Result<Plan, StudyError> {
        self.check_scales()?;
        let base = self.file()?;
        let mut problems = Vec::new();
        let systems = self.systems(&base, options, &mut problems);
        let criteria = self.criteria(&base, &mut problems);
        let claims = self.claims(&base, &mut problems);
        self.check_names(&base, &systems, &mut problems);
        let compare = self.compare(&base, options.repeats, &mut problems);
        self.check_crossing(&base, options, &mut problems);
        let search = self.search(&base.search, &mut problems);
        let cells = self.cells(&mut problems);
        let seed = u64::from(base.seed.unwrap_or(1));
        let (loads, sought) = self.open_loads(&cells, seed, &mut problems);
        if !problems.is_empty() {
            return Err(StudyError { problems });
        }
        let rounds = compare.as_ref().is_some_and(|c| c.precision.is_some());
        // A template for each cell: the run decides how often it is measured.
        let repeats = |own: Option<u32>| match rounds {
            true => 1,
            false => options.repeats.or(own).or(base.repeats).unwrap_or(1),
        };
        // Beside other workloads a search is made once by default: its interval shows what repeats
        // would.
        let once = |own: Option<u32>| own.unwrap_or(1);
        let beside = sought.len() < base.workload.len();
        let mut trials: Vec<PlannedTrial> = Vec::new();
        let mut held = Vec::new();
        let mut all_notes = BTreeSet::new();
        for (cell, loads) in cells.iter().zip(&loads) {
            let file = self.decode(&cell.tree)?;
            let mut found = Vec::new();
            let mut notes = Vec::new();
            let mut traces = Traces::new(&file.trace, &self.folder);
            resolve::check_phases(&file.phases, &mut Clashes::new(&["phases"], &mut found));
            resolve::check_client(&file.client, &mut Clashes::new(&["client"], &mut found));
            for (of, limits) in [
                ("testbed", &file.testbed.limits),
                ("client", &file.client.limits),
            ] {
                resolve::check_limits(limits, &mut Clashes::new(&[of, "limits"], &mut found));
            }
            resolve::check_counts(&file.testbed, &mut Clashes::new(&["testbed"], &mut found));
            resolve::check_network(&file.testbed, &mut Clashes::new(&["testbed"], &mut found));
            let variants = file.variants();
            let mut workloads: Vec<(usize, Crossed, Arc<Workload>)> = Vec::new();
            for index in cell.workloads.iter().copied() {
                let workload = &file.workload[index];
                let seeks = sought.contains(&index);
                let crossed = match seeks && beside {
                    true => crossed(workload, &systems, &variants, once),
                    false => crossed(workload, &systems, &variants, repeats),
                };
                let crossed = match crossed {
                    Ok(crossed) => crossed,
                    Err(why) => {
                        notes.push(why);
                        continue;
                    }
                };
                resolve::check_own(workload, index, &mut found);
                window::check_of(&file.phases, workload, index, &mut found);
                let pacing = workload.client(&file.client).pacing_within;
                notes.extend(pacing.map(|span| {
                    format!(
                        "scheduled messages leave up to {span} after they are due (pacing-within): latency \
                         from the intended time contains that; latency from the actual send stands beside it"
                    )
                }));
                let seed = seed.wrapping_add(index as u64);
                let said = (&mut found, &mut notes);
                let mut resolved =
                    resolve::workload(workload, index, &file.phases, seed, &mut traces, said);
                let measure = workload
                    .phases
                    .measure
                    .as_ref()
                    .or(file.phases.measure.as_ref());
                if seeks && measure.is_none() {
                    resolved.phases.measure = Until::Time(search::SHORT);
                }
                workloads.push((index, crossed, resolved.into()));
            }
            // Several workloads may have the same windows.
            let mut told = BTreeSet::new();
            found.retain(|clash| told.insert((clash.path.clone(), clash.message.clone())));
            found.splice(0..0, traces.found.drain(..));
            held.append(&mut traces.open);
            if !found.is_empty() {
                return Err(self.clashed(&cell.tree, &found));
            }
            all_notes.extend(notes);
            for (nth, crossed, workload) in &workloads {
                let more = crossed.trials().saturating_add(trials.len() as u64);
                if more > MAX_TRIALS as u64 {
                    return Err(self.too_many(*nth, &file.workload[*nth], &base, options));
                }
                let asked = file.workload[*nth].brokers(&file.topology);
                let brokers = |system: &str| placing::brokers_of(system, asked, &options.known);
                let counts = crossed.systems.iter().map(|system| brokers(system));
                let over = placing::over(workload, counts)
                    .map_err(|clash| self.clashed(&cell.tree, &[clash.of_workload(&file, *nth)]))?;
                let placed = |system: &str| {
                    let count = brokers(system);
                    (count, &over[&count])
                };
                let load = loads.get(nth);
                add_trials(&file, (*nth, load), cell, crossed, placed, &mut trials);
            }
        }
        self.check_shares(&trials)?;
        if trials.is_empty() {
            let left_out: Vec<String> = all_notes.into_iter().collect();
            let message = format!("nothing is left to run: {}", left_out.join("; "));
            return Err(StudyError::one(self.problem(
                &self.tree,
                &["workload"],
                message,
                None,
            )));
        }
        let order = match rounds {
            true => Order::Listed,
            false => base.order.unwrap_or(Order::Random),
        };
        if let (true, Some(repeats)) = (rounds, base.repeats) {
            all_notes.insert(format!(
                "repeats = {repeats} counts for nothing: with a precision the run decides how often each cell is measured"
            ));
        }
        in_order(&mut trials, order, seed);
        held.dedup_by(|a, b| Arc::ptr_eq(a, b));
        let resolved = toml::to_string(&base).map_err(|error| {
            let message = format!("cannot be stored as TOML: {error}");
            StudyError::plain(&base.name, message, None)
        })?;
        Ok(Plan {
            name: base.name,
            question: base.question,
            seed,
            repeats: trials.iter().map(|t| t.repeat).max().unwrap_or(1),
            scale: self.scale.clone(),
            criteria,
            claims,
            unsupported: Vec::new(),
            notes: all_notes.into_iter().collect(),
            resolved: restored(&resolved, &self.tree),
            search: search.filter(|_| trials.iter().any(|trial| trial.seeks().is_some())),
            trials,
            compare,
            traces: held,
        })
    }

    pub(crate) fn problem(
        &self,
        tree: &Node,
        path: &[&str],
        message: String,
        hint: Option<String>,
    ) -> Problem {
        self.sources.problem(Some(tree.locate(path)), message, hint)
    }

    /// More trials than a run may have, at the place of the repeats that make them, else of the grid.
    fn too_many(
        &self,
        nth: usize,
        workload: &WorkloadFile,
        base: &StudyFile,
        options: &PlanOptions,
    ) -> StudyError {
        let message =
            format!("there would be more than {MAX_TRIALS} trials, the most that a run may have");
        let nth = nth.to_string();
        let path: &[&str] = match (options.repeats, workload.repeats, base.repeats) {
            (Some(repeats), ..) if repeats > 1 => {
                return StudyError::plain(&format!("--repeats {repeats}"), message, None);
            }
            (None, Some(_), _) => &["workload", &nth, "repeats"],
            (None, None, Some(_)) => &["repeats"],
            _ => &["grid"],
        };
        StudyError::one(self.problem(&self.tree, path, message, None))
    }

    pub(crate) fn clashed(&self, tree: &Node, found: &[Clash]) -> StudyError {
        let mut problems: Vec<Problem> = found
            .iter()
            .map(|clash| {
                let path: Vec<&str> = clash.path.iter().map(String::as_str).collect();
                self.problem(tree, &path, clash.message.clone(), clash.hint.clone())
            })
            .collect();
        problems.dedup();
        StudyError { problems }
    }

    /// The systems to run on.
    fn systems(
        &self,
        base: &StudyFile,
        options: &PlanOptions,
        problems: &mut Vec<Problem>,
    ) -> Vec<String> {
        let (names, from_flag) = match (&options.on[..], &base.systems) {
            ([], None) => (options.known.found.clone(), false),
            ([], Some(Systems::One(name))) if name == "available" => {
                (options.known.found.clone(), false)
            }
            ([], Some(Systems::One(name))) if name == "available-variants" => {
                (options.known.found_variants.clone(), false)
            }
            ([], Some(Systems::One(name))) if name == "first-look" => {
                (options.known.first_look.clone(), false)
            }
            ([], Some(Systems::One(name))) => (vec![name.clone()], false),
            ([], Some(Systems::Many(names))) => (names.clone(), false),
            (on, _) => (on.to_vec(), true),
        };
        let mut unique: Vec<String> = Vec::new();
        for (nth, name) in names.iter().enumerate() {
            let known = &options.known.all;
            let number = nth.to_string();
            let mut wrong = |message: String, hint: Option<String>| {
                if from_flag {
                    let flag = format!("--on {name}");
                    problems.extend(StudyError::plain(&flag, message, hint.as_deref()).problems);
                } else {
                    problems.push(self.problem(&self.tree, &["systems", &number], message, hint));
                }
            };
            if unique.contains(name) {
                wrong(format!("system `{name}` is listed twice"), None);
            } else if !name.contains("://") && !known.is_empty() && !known.contains(name) {
                let (message, hint) = no_such_system(name, known);
                wrong(message, Some(hint));
            }
            unique.push(name.clone());
        }
        if names.is_empty() {
            let message = "there is no system to run on".to_string();
            let hint = "`pubgauge systems` lists what is known and how to install it".to_string();
            problems.push(self.problem(&self.tree, &["systems"], message, Some(hint)));
        }
        unique
    }
}

/// Puts trials in order: all first repeats, then all second ones, and so on; shuffled within each.
/// Drift over time then affects all systems alike, and an interrupted run has complete repeats.
fn in_order(trials: &mut [PlannedTrial], order: Order, seed: u64) {
    trials.sort_by_key(|trial| trial.repeat);
    for repeat in trials.chunk_by_mut(|a, b| a.repeat == b.repeat) {
        for (listed, trial) in (0..).zip(repeat) {
            trial.listed = listed;
        }
    }
    if order == Order::Random {
        let mut draws = StdRng::seed_from_u64(seed);
        for repeat in trials.chunk_by_mut(|a, b| a.repeat == b.repeat) {
            repeat.shuffle(&mut draws);
        }
    }
    for (order, trial) in (0..).zip(trials) {
        trial.order = order;
    }
}

/// A value of an axis for names and tables.
pub(crate) fn shown(node: &Node) -> String {
    match &node.value {
        Value::Text(text) => text.clone(),
        _ => node.to_json().to_string(),
    }
}

/// Message and hint for a name that no system has.
pub(crate) fn no_such_system(name: &str, known: &[String]) -> (String, String) {
    let lists = "`pubgauge systems` lists them".to_owned();
    if let Some((system, variant)) = name.split_once(':')
        && known.iter().any(|k| k == system)
    {
        let own = known.iter().filter_map(|k| k.strip_prefix(system));
        let own: Vec<_> = own.filter_map(|k| k.strip_prefix(':')).collect();
        let message = format!("`{system}` has no variant `{variant}`");
        return match own.is_empty() {
            true => (format!("{message}: it has none"), lists),
            false => (message, format!("its variants are `{}`", own.join("`, `"))),
        };
    }
    let near = nearest(name, known.iter().map(String::as_str));
    let message = format!("there is no system `{name}`{}", did_you_mean(near));
    (message, lists)
}
