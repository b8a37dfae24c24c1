//! Stored trials that stand for trials of an advice: those of the same system, version, settings, machine and kind of load,
//! that carried as much as is asked for.

use std::collections::BTreeMap;

use pubgauge_conclusions::judgement::Judgement;
use pubgauge_conclusions::{Carries, Cell};
use pubgauge_driver::Mapping;
use pubgauge_figures::criterion::CriterionSpec;
use pubgauge_figures::model::Machine;
use pubgauge_figures::search::{Axis, Search};
use pubgauge_figures::{Results, Status, Trial};
use pubgauge_quantities::lists::{grouped, unique};
use pubgauge_quantities::shown;
use pubgauge_results::verdict::spoilt_by_others;
use pubgauge_strict_toml::InvalidInput;
use pubgauge_study::{Plan, PlanOptions, PlannedTrial, Study};

use crate::evidence::{NotCounted, StoredAt};
use crate::fleet::Fleet;
use crate::load::{Load, Relation};
use crate::stage::{Candidate, Stage, StageKind};
use crate::variation::Variation;

/// A stored run, with the plan that it followed.
#[derive(Clone, Debug)]
pub struct StoredRun {
    /// Its folder.
    pub folder: String,
    /// The folder of the advice that it was a step of, or its own: trials of one are compared with each other.
    pub together: String,
    /// Its results.
    pub results: Results,
    /// The plan that it followed.
    pub plan: Plan,
}

impl StoredRun {
    fn stored_at(&self) -> StoredAt {
        StoredAt {
            folder: self.folder.clone(),
            started: self.results.study.started.clone(),
            together: self.together.clone(),
        }
    }
}

/// This machine with its systems as they are now, and the criteria of the fleet.
#[derive(Clone, Debug, Default)]
pub struct Here {
    /// The machine.
    pub machine: Machine,
    /// The systems that are candidates.
    pub systems: Vec<SystemHere>,
    /// The criteria of the fleet.
    pub criteria: Vec<CriterionSpec>,
}

/// A system as it is now.
#[derive(Clone, Debug, Default)]
pub struct SystemHere {
    /// The system, with its variant.
    pub name: String,
    /// Its version, as it says itself; absent if it does not.
    pub version: Option<String>,
    /// The fleet's settings in its own terms.
    pub client: Vec<Mapping>,
    /// Its file came with pubgauge; whether one of the user's own is as it was is not known.
    pub is_shipped: bool,
}

/// A load that the fleet asks of a system.
pub(crate) struct Demand {
    candidate: Candidate,
    change: Variation,
    /// Nobody is away, although some are in the fleet: a repeat.
    is_steady: bool,
    planned: PlannedTrial,
    load: Load,
}

/// Stored trials that count.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    /// Trials of just the loads that are asked for, as if they were of the fleet's own studies.
    pub same: Vec<SameLoad>,
    /// Larger loads that were carried.
    pub larger: Vec<LargerLoad>,
    /// Searches for the limit, the latest of each system.
    pub searches: Vec<(Search, StoredAt)>,
    /// Runs, or trials of them, that do not count, and why.
    pub not_counted: Vec<NotCounted>,
}

/// A trial of just the load that is asked for.
#[derive(Debug)]
pub(crate) struct SameLoad {
    pub change: Variation,
    /// Nobody is away, although some are in the fleet: a repeat.
    is_steady: bool,
    /// As one of the fleet's own studies.
    pub trial: Trial,
    pub at: StoredAt,
}

/// A load larger than one that is asked for, which was carried.
#[derive(Clone, Debug)]
pub(crate) struct LargerLoad {
    pub system: String,
    pub change: Variation,
    /// Repeats of it.
    pub repeats: usize,
    pub at: StoredAt,
}

/// The loads that a fleet asks of its candidates, and that of their searches.
///
/// # Errors
/// When its study is none.
pub(crate) fn demands(
    fleet: &Fleet,
    candidates: &[Candidate],
    changes: Vec<Variation>,
) -> Result<Vec<Demand>, InvalidInput> {
    let mut all: Vec<Demand> = Vec::new();
    for (kind, changes) in [
        (StageKind::Fleet, changes.clone()),
        (StageKind::Confirm, changes),
        (StageKind::Limit, vec![Variation::Limit]),
    ] {
        let step = Stage {
            kind,
            changes,
            candidates: candidates.to_vec(),
            repeats: 1,
            search_s: 60,
            known: Vec::new(),
            brokers: Vec::new(),
        };
        let study = fleet.study(&step);
        let study = Study::parse("the study of this fleet", &study, std::path::Path::new(""))?;
        let names = candidates.iter().map(|of| of.system.clone());
        let plan = study.plan(&PlanOptions::with_systems(names))?;
        for planned in plan.trials {
            let of = |one: &&Candidate| one.system == planned.system;
            let Some(candidate) = candidates.iter().find(of) else {
                continue;
            };
            let is_of = |change: &&Variation| {
                fleet.workload_name(**change, candidate.reliability) == planned.workload.name
            };
            let change = step.changes.iter().find(is_of);
            let (Some(&change), Some(load)) = (change, Load::new(&planned.workload)) else {
                continue;
            };
            let is_it = |of: &&Demand| of.candidate == *candidate && of.change == change;
            let once = all.iter().find(is_it);
            let is_steady = once.is_some();
            if once.is_none_or(|once| once.load != load) {
                all.push(Demand {
                    candidate: candidate.clone(),
                    change,
                    is_steady,
                    planned,
                    load,
                });
            }
        }
    }
    Ok(all)
}

/// Of stored runs what counts for these demands.
pub(crate) fn select(demands: &[Demand], here: &Here, runs: &[StoredRun]) -> Selection {
    let mut selection = Selection::default();
    // Of a system and a load that a stored trial did not carry none counts: it is measured.
    let mut against: Vec<(String, Variation)> = Vec::new();
    for run in runs {
        if let Err(because) = same_machine(&run.results.machine, &here.machine) {
            let none = |_: &Trial| NotCounted::new(&run.folder, None, because.clone());
            selection
                .not_counted
                .extend(run.results.trials.first().map(none));
            continue;
        }
        let trials = run.results.standing();
        for (cell, trials) in grouped(trials.map(|trial| (&trial.cell, trial))) {
            let of = |demand: &&Demand| demand.candidate.system == trials[0].system.name;
            let demands: Vec<&Demand> = demands.iter().filter(of).collect();
            if demands.is_empty() {
                continue;
            }
            let stored = StoredCell {
                run,
                planned: run.plan.trials.iter().find(|planned| planned.cell == *cell),
                trials,
            };
            stored.count(&demands, here, &mut selection, &mut against);
        }
        selection.add_searches(run, demands, here);
    }
    selection.drop_contradicted(&against);
    selection.drop_repeats_of_nothing();
    selection
}

/// The repeats of a cell of a stored run.
struct StoredCell<'a> {
    run: &'a StoredRun,
    /// The plan of it; `None` if the run's plan has none.
    planned: Option<&'a PlannedTrial>,
    trials: Vec<&'a Trial>,
}

impl StoredCell<'_> {
    /// Counts its repeats for each demand that they stand for.
    fn count(
        &self,
        demands: &[&Demand],
        here: &Here,
        selection: &mut Selection,
        against: &mut Vec<(String, Variation)>,
    ) {
        let first = self.trials[0];
        let mut refused: Vec<(bool, String)> = Vec::new();
        let mut counts = false;
        for demand in demands.iter().filter(|of| of.change != Variation::Limit) {
            let relation = self.relation(demand, here);
            let relation = match relation {
                Ok(relation) => relation,
                Err(because) => {
                    let is_meant = demand.planned.workload.name == first.workload.name;
                    refused.push((is_meant, because));
                    continue;
                }
            };
            match self.carrying(demand, here) {
                Err(because) => {
                    let key = (first.system.name.clone(), demand.change);
                    against.extend((relation == Relation::Same).then_some(key));
                    refused.push((true, because));
                }
                Ok(trials) => {
                    counts = true;
                    self.add(demand, relation, trials, selection);
                }
            }
        }
        // One reason is told: that of the load that it was meant for.
        refused.sort_by_key(|(is_meant, _)| !is_meant);
        if let Some((_, because)) = refused.into_iter().next().filter(|_| !counts) {
            let of = Some(format!("{}, {}", first.system.name, first.workload.name));
            let told = NotCounted::new(&self.run.folder, of, because);
            selection.not_counted.push(told);
        }
    }

    /// How its load stands to one that is asked for, all else being the same.
    fn relation(&self, demand: &Demand, here: &Here) -> Result<Relation, String> {
        let planned = self.planned.ok_or("its plan does not say what it was")?;
        let same_system = |of: &&SystemHere| of.name == demand.candidate.system;
        let system = here.systems.iter().find(same_system);
        let system = system.ok_or("the system is not known here")?;
        same_system_and_settings(self.trials[0], demand, system)?;
        same_setup(self.trials[0], planned, demand)?;
        let load = Load::new(&planned.workload).ok_or("its deliveries cannot be told apart")?;
        let relation = load.relation(&demand.load)?;
        let asked_s = demand.planned.workload.phases.measure.latest() as f64 / 1e9;
        let shortest = self.trials.iter().map(|trial| trial.duration_s);
        let shortest_s = shortest.fold(f64::INFINITY, f64::min);
        // A measurement ends with the message that is under way.
        if shortest_s < asked_s * 0.95 {
            return Err(format!(
                "it was measured for {} s, and {} s are asked for",
                shown::brief(shortest_s),
                shown::brief(asked_s)
            ));
        }
        Ok(relation)
    }

    /// Its repeats that no other programs spoilt, as trials of the fleet, if all of them carried the load.
    fn carrying(&self, demand: &Demand, here: &Here) -> Result<Vec<Trial>, String> {
        let all = self.trials.iter().copied();
        let undisturbed: Vec<&Trial> = all.filter(|trial| !spoilt_by_others(trial)).collect();
        if undisturbed.is_empty() {
            return Err("other programs spoilt it".to_owned());
        }
        let of_no_use = |trial: &&&Trial| trial.verdict.status != Status::Valid;
        if let Some(trial) = undisturbed.iter().find(of_no_use) {
            let status = trial.verdict.status.as_str();
            let reasons = trial.verdict.sentences();
            let because = reasons
                .first()
                .map_or(String::new(), |one| format!(": {one}"));
            return Err(format!("it was {status}{because}"));
        }
        let trials: Vec<Trial> = (1..)
            .zip(undisturbed)
            .map(|(repeat, trial)| as_of_fleet(trial, demand, repeat))
            .collect();
        let carries = {
            let cell = Cell::from_repeats(trials.iter().collect());
            Judgement::new(&cell, &here.criteria).carries
        };
        match carries {
            Some(Carries::Yes) => Ok(trials),
            _ => Err("it does not show that what is asked of the fleet was met".to_owned()),
        }
    }

    fn add(
        &self,
        demand: &Demand,
        relation: Relation,
        trials: Vec<Trial>,
        selection: &mut Selection,
    ) {
        let at = self.run.stored_at();
        match relation {
            Relation::Same => {
                for trial in trials {
                    // A folder that was copied is there twice.
                    let is_known = selection.same.iter().any(|known| {
                        known.change == demand.change
                            && known.trial.system == trial.system
                            && !trial.started.is_empty()
                            && known.trial.started == trial.started
                    });
                    if !is_known {
                        selection.same.push(SameLoad {
                            change: demand.change,
                            is_steady: demand.is_steady,
                            trial,
                            at: at.clone(),
                        });
                    }
                }
            }
            // Without the absence it does not show what the first trial is for.
            Relation::Larger if demand.is_steady => {}
            Relation::Larger => selection.larger.push(LargerLoad {
                system: demand.candidate.system.clone(),
                change: demand.change,
                repeats: trials.len(),
                at,
            }),
        }
    }
}

impl Selection {
    /// The searches of a run, each in place of an older one.
    fn add_searches(&mut self, run: &StoredRun, demands: &[Demand], here: &Here) {
        for (nth, search) in (0..).zip(&run.results.searches) {
            let is_of = |demand: &&Demand| {
                demand.change == Variation::Limit && demand.candidate.system == search.system
            };
            let Some(demand) = demands.iter().find(is_of) else {
                continue;
            };
            let at = run.stored_at();
            match same_search(nth, search, run, demand, here) {
                Err(because) => {
                    let of = Some(format!("{}, the limit", search.system));
                    self.not_counted
                        .push(NotCounted::new(&run.folder, of, because));
                }
                Ok(()) => {
                    let mut known = self.searches.iter_mut();
                    match known.find(|(known, _)| known.system == search.system) {
                        Some((_, known)) if known.started >= at.started => {}
                        Some(known) => *known = (search.clone(), at),
                        None => self.searches.push((search.clone(), at)),
                    }
                }
            }
        }
    }

    /// Leaves out what other stored trials of the same load contradict.
    fn drop_contradicted(&mut self, against: &[(String, Variation)]) {
        let mut contradicted: Vec<(String, StoredAt)> = Vec::new();
        let is_against = |system: &str, change: Variation| {
            let mut all = against.iter();
            all.any(|(other, of)| other == system && *of == change)
        };
        self.same.retain(|same| {
            let system = &same.trial.system.name;
            let is_against = is_against(system, same.change);
            contradicted.extend(is_against.then(|| (system.clone(), same.at.clone())));
            !is_against
        });
        self.larger.retain(|larger| {
            let is_against = is_against(&larger.system, larger.change);
            contradicted.extend(is_against.then(|| (larger.system.clone(), larger.at.clone())));
            !is_against
        });
        let told = unique(contradicted).into_iter().map(|(system, at)| {
            let because = "another stored trial of this load was not carried: it is measured";
            NotCounted::new(&at.folder, Some(system), because)
        });
        self.not_counted.extend(told);
    }
}

impl Selection {
    /// Leaves out repeats with nobody away where no trial had the absence.
    fn drop_repeats_of_nothing(&mut self) {
        let whole = self.same.iter().filter(|same| !same.is_steady);
        let whole: Vec<(String, Variation)> = whole
            .map(|same| (same.trial.system.name.clone(), same.change))
            .collect();
        self.same.retain(|same| {
            !same.is_steady || whole.contains(&(same.trial.system.name.clone(), same.change))
        });
    }
}

/// A stored trial as one of the fleet's own studies, with their names.
fn as_of_fleet(trial: &Trial, demand: &Demand, repeat: u32) -> Trial {
    let mut trial = trial.clone();
    trial
        .workload
        .name
        .clone_from(&demand.planned.workload.name);
    trial
        .settings_name
        .clone_from(&demand.planned.settings_name);
    trial.cell.clone_from(&demand.planned.cell);
    trial.repeat = repeat;
    if let [flow] = &mut trial.flows[..] {
        flow.name = demand.load.flow_names().collect();
    }
    trial
}

/// Whether a run was on this machine, with this pubgauge, whose own work is a part of what a message costs.
fn same_machine(then: &Machine, now: &Machine) -> Result<(), String> {
    let facts = |of: &Machine| {
        [
            ("processor", of.cpu_model.clone()),
            ("number of processors", of.number_of_processors()),
            // Kernels of one machine differ a little in what they leave.
            ("memory", shown::bytes(of.memory_bytes.next_power_of_two())),
            ("kernel", of.kernel.clone()),
            ("distribution", of.os.clone()),
            (
                "frequency governor",
                of.governor.clone().unwrap_or_default(),
            ),
            ("idle governor", of.idle_driver.clone().unwrap_or_default()),
            ("version of pubgauge", of.pubgauge_version.clone()),
            ("commit of pubgauge", of.pubgauge_commit.clone()),
        ]
    };
    for ((what, then), (_, now)) in facts(then).into_iter().zip(facts(now)) {
        if then != now {
            let named = |value: String| {
                if value.is_empty() {
                    "none told".to_owned()
                } else {
                    value
                }
            };
            let (then, now) = (named(then), named(now));
            return Err(format!("another {what}: {then}, and here {now}"));
        }
    }
    Ok(())
}

fn same_system_and_settings(
    trial: &Trial,
    demand: &Demand,
    system: &SystemHere,
) -> Result<(), String> {
    if !system.is_shipped {
        let because =
            "its system file is not one of pubgauge's: whether it is as it was is not known";
        return Err(because.to_owned());
    }
    let then = &trial.system.version;
    match &system.version {
        Some(now) if now == then => {}
        Some(now) => return Err(format!("another version: {then}, and here {now}")),
        None => return Err("which version is here is not known".to_owned()),
    }
    if trial.settings != *demand.planned.settings {
        return Err("other settings".to_owned());
    }
    if trial.mappings != system.client {
        return Err("its settings became something else in the system's own terms".to_owned());
    }
    Ok(())
}

/// Whether a trial was run as the fleet's trials are: with the same client, limits, hosts and network.
fn same_setup(trial: &Trial, planned: &PlannedTrial, demand: &Demand) -> Result<(), String> {
    let (then, now) = (&planned.setup, &demand.planned.setup);
    if !planned.of_flows.is_empty() {
        return Err("some of its flows have settings of their own".to_owned());
    }
    if then.limits != now.limits {
        return Err("the server had another share of the machine".to_owned());
    }
    if then != now || trial.circumstances.client != now.client {
        return Err("it was run otherwise (client, hosts, network, what is counted)".to_owned());
    }
    let mut held = [&trial.limits, &trial.client_limits].into_iter().flatten();
    if held.any(|limits| !limits.not_held.is_empty()) {
        return Err("the limits were not held as asked for".to_owned());
    }
    if !trial.hosts.is_empty() || trial.client_processes.is_some_and(|n| n > 1) {
        return Err("its clients were in several processes, or on other hosts".to_owned());
    }
    if trial.circumstances.earlier_trials > 0 {
        return Err("the server had served other trials before".to_owned());
    }
    if trial.limit_share.is_some() {
        return Err("its load is a share of a limit".to_owned());
    }
    Ok(())
}

/// Whether a search was for the limit of this fleet.
fn same_search(
    nth: u32,
    search: &Search,
    run: &StoredRun,
    demand: &Demand,
    here: &Here,
) -> Result<(), String> {
    if search.axis != Axis::Rate || search.low.is_none() {
        return Err("it is for something else, or found no load that was carried".to_owned());
    }
    let mut trials = run.results.trials.iter();
    let is_step = |trial: &&Trial| trial.search.is_some_and(|step| step.search == nth);
    let step = trials.find(is_step).ok_or("none of its trials is there")?;
    let mut planned = run.plan.searches();
    let planned = planned.find(|planned| {
        planned.system == search.system
            && planned.workload.name == search.workload
            && planned.settings_name == search.settings
            && planned.axes.len() == search.axes.len()
            && search.axes.is_empty()
    });
    let planned = planned.ok_or("its plan does not say what it was")?;
    let mut systems = here.systems.iter();
    let system = systems.find(|of| of.name == search.system);
    let system = system.ok_or("the system is not known here")?;
    same_system_and_settings(step, demand, system)?;
    same_setup(step, planned, demand)?;
    let load = Load::new(&planned.workload).ok_or("its deliveries cannot be told apart")?;
    if planned.open_flow() != demand.planned.open_flow() {
        return Err("the rate of another flow was varied".to_owned());
    }
    if load.relation(&demand.load)? != Relation::Same {
        return Err("the load beside what was varied is larger".to_owned());
    }
    let is_single = load.flow_names().count() == 1;
    let asked = |criteria: &[CriterionSpec]| {
        let each = criteria.iter().map(|spec| {
            let flow = spec.filter.flow.clone().filter(|_| !is_single);
            let value = spec.value.to_bits();
            (
                (spec.figure.clone(), flow),
                (spec.comparison.to_string(), value),
            )
        });
        each.collect::<BTreeMap<_, _>>()
    };
    if asked(&run.results.study.criterion_specs) != asked(&here.criteria) {
        return Err("something else was asked of the load".to_owned());
    }
    Ok(())
}
