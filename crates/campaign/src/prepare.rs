//! From a study to a plan over real systems.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pubgauge_claims::{CellKey, is_about_recording, is_judged_by};
use pubgauge_driver::{Settings, Subscription, Topology, Unsupported};
use pubgauge_hosts::Hosts;
use pubgauge_quantities::lists::unique;
use pubgauge_quantities::shown::so_many;
use pubgauge_quantities::spelling::did_you_mean;
use pubgauge_quantities::text::wrap;
use pubgauge_runner::convert::one_line;
use pubgauge_search::Axis;
use pubgauge_study::{Plan, PlanOptions, PlannedTrial, Study, UnsupportedTrial};
use pubgauge_testbed::shares::foresee;
use pubgauge_testbed::{SystemKind, Testbed};

use crate::{AvailableSystems, Chosen, ClientOptions, Error, Prepared, Proposer, SystemsHere};
use crate::{capacity, contents, hosts, identities, late, networks, pairs, sizes, wills};

/// A study as given.
pub struct Given {
    pub study: Study,
    /// The file's text, or what the flags stand for; empty where that is all in `study`.
    pub text: String,
    /// The folder that its relative paths start from.
    pub folder: PathBuf,
    /// The only claims that are asked about, by their names; if empty, all, and every cell is measured.
    pub claims: Vec<String>,
}

/// Plans a study over the systems here, and asks every driver what each setting becomes; starts nothing. `elsewhere`: the
/// workers are to be on other hosts.
///
/// # Errors
/// The parts of the study that are not possible here.
pub fn prepare(
    given: Given,
    options: PlanOptions,
    here: &SystemsHere<'_>,
    elsewhere: bool,
) -> Result<Prepared, Error> {
    let mut plan = given.study.plan(&options).map_err(Error::bad_input)?;
    keep_claims(&mut plan, &given.claims)?;
    let mut systems = BTreeMap::new();
    for name in unique(plan.trials.iter().map(|trial| &trial.system)) {
        systems.insert(name.clone(), here.choose(name)?);
    }
    take_fitting_variants(&mut plan, &mut systems, here)?;
    plan.tune(|system| Some(systems.get(system)?.driver.name().to_owned()));
    let resolve = |system: &str, settings: &Settings| match systems.get(system) {
        Some(chosen) => chosen.resolve(settings).map(|_| ()),
        None => Ok(()),
    };
    plan.grant_wishes(resolve);
    plan.split_unsupported(resolve);
    split(&mut plan, &systems, brokers_refused);
    split(&mut plan, &systems, refused);
    split(&mut plan, &systems, identities::refused);
    split(&mut plan, &systems, |trial, chosen| {
        if elsewhere {
            hosts::refused(trial, chosen)
        } else {
            networks::refused(trial, chosen).or_else(|| sizes::refused(trial, chosen))
        }
    });
    if plan.trials.is_empty() {
        let mut why = String::from("no system can do what the study asks for");
        for cell in &plan.unsupported {
            for u in &cell.settings {
                why.push_str(&format!(
                    "\n  {}: {} = {}: {}",
                    cell.system, u.setting, u.value, u.reason
                ));
            }
        }
        return Err(Error::bad_input(why));
    }
    let processes = capacity::check(&plan.trials, &systems, &ClientOptions::default())?;
    plan.notes.extend(processes.map(|n| {
        format!(
            "one process may not open enough files for all connections: the publishing devices of each broker run in {}, its others in as many, unless --processes says otherwise",
            so_many(n.into(), "process")
        )
    }));
    plan.notes.extend(limits(&plan));
    plan.notes.extend(searched(&plan));
    plan.notes.extend(contents::remarks(&plan, &systems));
    plan.notes.extend(identities::remarks(&plan, &systems));
    plan.notes.extend(late::remarks(&plan));
    plan.notes.extend(wills::remarks(&plan));
    plan.notes.extend(pairs::compared(&plan)?);
    Ok(Prepared {
        given: given.text,
        plan,
        systems,
        folder: given.folder,
        found: AvailableSystems {
            plain: options.known.found,
            variants: options.known.found_variants,
            first_look: options.known.first_look,
        },
        processes,
    })
}

/// Leaves out the other claims, the cells that these are not judged by, and the criteria of none but those. Searches
/// stay where a cell is measured at a share of a limit.
fn keep_claims(plan: &mut Plan, names: &[String]) -> Result<(), Error> {
    if names.is_empty() {
        return Ok(());
    }
    let known: Vec<String> = plan.claims.iter().map(|claim| claim.id.clone()).collect();
    if let Some(name) = names.iter().find(|name| !known.contains(name)) {
        let near = did_you_mean(name, known.iter().map(String::as_str));
        let hint = match &known[..] {
            [] => "the study has no claims".to_owned(),
            known => format!("it has {}", wrap(&known.join(", "), 4).trim()),
        };
        return Err(Error::bad_input(format!(
            "--claim {name}: the study has no such claim{near}\n  hint: {hint}"
        )));
    }
    plan.claims.retain(|claim| names.contains(&claim.id));
    let claims = &plan.claims;
    let is_needed = |trial: &PlannedTrial| {
        let cell = CellKey {
            system: trial.system.clone(),
            settings: trial.settings_name.clone(),
            workload: trial.workload.name.clone(),
            axes: trial.axes.clone(),
        };
        claims.iter().any(|claim| is_judged_by(claim, &cell))
    };
    let (mut kept, others): (Vec<PlannedTrial>, Vec<PlannedTrial>) =
        std::mem::take(&mut plan.trials)
            .into_iter()
            .partition(is_needed);
    let mut searches = others;
    searches
        .retain(|trial| trial.seeks().is_some() && kept.iter().any(|kept| kept.is_share_of(trial)));
    kept.append(&mut searches);
    kept.sort_by_key(|trial| trial.order);
    plan.trials = kept;
    for (order, trial) in (0..).zip(&mut plan.trials) {
        trial.order = order;
    }
    if plan.trials.is_empty() {
        let hint = if claims.iter().any(is_about_recording) {
            "a recording is read in each run of its study: name a claim that has trials beside it"
        } else {
            "look at what it needs: pubgauge plan, without --on"
        };
        return Err(Error::bad_input(format!(
            "--claim {}: no cell of this plan could judge it\n  hint: {hint}",
            names.join(",")
        )));
    }
    let trials = &plan.trials;
    plan.criteria.retain(|criterion| {
        let is_of = |trial: &PlannedTrial| {
            let (system, workload) = (&trial.system, &trial.workload.name);
            (criterion.filter).names_cell(system, workload, &trial.settings_name)
        };
        trials.iter().any(is_of)
    });
    Ok(())
}

impl Prepared {
    /// Checks that this machine, its networks or the other hosts can carry the plan with such a client. Returns how many
    /// processes each side needs, where one is not enough.
    ///
    /// # Errors
    /// The loads that they cannot carry.
    pub fn check(
        &self,
        client: &ClientOptions,
        others: Option<&Hosts>,
    ) -> Result<Option<u32>, Error> {
        let trials = &self.plan.trials;
        let processes = capacity::check(trials, &self.systems, client)?;
        capacity::check_limits(&self.plan, &self.systems, client, processes)?;
        sizes::check(&self.plan)?;
        Proposer::new(self, client, processes)?;
        match others {
            Some(others) => hosts::check(others, client, trials)?,
            None => networks::check(trials)?,
        }
        Ok(processes)
    }
}

/// The searches in words, and when a search ends.
fn searched(plan: &Plan) -> Option<String> {
    let search = plan.search.as_ref()?;
    let names = unique(plan.searches().map(|trial| {
        let axis = trial.seeks().map_or("load", Axis::name);
        match plan.plain().next() {
            Some(_) => format!("{axis} of {}", trial.workload.name),
            None => axis.to_owned(),
        }
    }));
    let first = match plan.plain().next() {
        Some(_) => ", before all else",
        None => "",
    };
    Some(format!(
        "the highest {} that stays within what is asked for is searched for{first}: each search takes {} trials or {:.0} s at most",
        names.join(", "),
        search.trials,
        search.budget as f64 / 1e9,
    ))
}

/// Where a profile requires what only a server's configuration can give, takes a variant of the
/// system that gives it, unless the user named a variant.
fn take_fitting_variants(
    plan: &mut Plan,
    systems: &mut BTreeMap<String, Chosen>,
    here: &SystemsHere<'_>,
) -> Result<(), Error> {
    let mut notes = Vec::new();
    // A variant that is measured anyway is not measured twice: the plain system is refused then.
    let named: Vec<String> = systems.keys().cloned().collect();
    for trial in plan.trials.iter_mut().filter(|t| t.profile.is_some()) {
        let asked: Vec<Settings> = trial.all_settings().cloned().collect();
        let fits = |chosen: &Chosen| asked.iter().all(|s| chosen.resolve(s).is_ok());
        let Some(chosen) = systems.get(&trial.system) else {
            continue;
        };
        if chosen.variant.is_some() || trial.system.contains("://") || fits(chosen) {
            continue;
        }
        let variants = chosen.file.variants.keys();
        let names: Vec<String> = variants.map(|v| format!("{}:{v}", trial.system)).collect();
        let driver = chosen.driver.name().to_owned();
        for name in names {
            let other = here.choose(&name)?;
            if other.driver.name() != driver || !fits(&other) {
                continue;
            }
            if named.contains(&name) {
                break;
            }
            notes.push(format!(
                "{} is run as {name}, which keeps what the profile `{}` asks for",
                trial.system,
                trial.profile.as_deref().unwrap_or_default()
            ));
            trial.cell = trial.cell.replacen(&trial.system, &name, 1);
            trial.system.clone_from(&name);
            systems.entry(name).or_insert(other);
            break;
        }
    }
    notes.sort();
    notes.dedup();
    plan.notes.extend(notes);
    Ok(())
}

/// How this machine enforces the limits of a plan, in words.
fn limits(plan: &Plan) -> Vec<String> {
    let all = plan.trials.iter().flat_map(|t| {
        let hosts = t.setup.hosts.iter().flat_map(|hosts| sizes::shares(hosts));
        let own = [
            ("each instance of a system", t.setup.limits),
            ("each worker process", t.setup.client_limits),
        ];
        own.into_iter().chain(hosts)
    });
    let notes = all.flat_map(|(who, share)| {
        let held = foresee(&share);
        let by = |how: &Option<String>| how.clone().unwrap_or("not by the kernel".into());
        let cores = share
            .cores
            .map(|cores| format!("{cores} cores ({})", by(&held.cores_by)));
        let memory = share
            .memory_bytes
            .map(|b| format!("{} MiB of memory ({})", b >> 20, by(&held.memory_by)));
        let all: Vec<String> = cores.into_iter().chain(memory).collect();
        let mut notes = Vec::new();
        if !all.is_empty() {
            notes.push(format!("{who} gets {}", all.join(" and ")));
            let not = held.not_held.iter();
            notes.extend(not.map(|what| format!("cannot be held here: {what}")));
        }
        notes
    });
    unique(notes)
}

/// Moves the trials that a system cannot run to the unsupported ones.
fn split(
    plan: &mut Plan,
    systems: &BTreeMap<String, Chosen>,
    refused: impl Fn(&PlannedTrial, &Chosen) -> Option<Unsupported>,
) {
    let unsupported = &mut plan.unsupported;
    // In place: there may be 100,000.
    plan.trials.retain(|trial| {
        let chosen = systems.get(&trial.system);
        let Some(setting) = chosen.and_then(|chosen| refused(trial, chosen)) else {
            return true;
        };
        if !unsupported.iter().any(|u| u.cell == trial.cell) {
            unsupported.push(UnsupportedTrial {
                cell: trial.cell.clone(),
                system: trial.system.clone(),
                settings: vec![setting],
            });
        }
        false
    });
    for (order, trial) in (0..).zip(&mut plan.trials) {
        trial.order = order;
    }
}

/// Why a system cannot run as many brokers as a trial asks for.
fn brokers_refused(trial: &PlannedTrial, chosen: &Chosen) -> Option<Unsupported> {
    let target = Testbed::planned_target(&chosen.file, chosen.variant.as_deref()).ok()?;
    let there = target.endpoints.len() as u32;
    if trial.workload.cluster && chosen.file.kind != SystemKind::External {
        return Some(Unsupported {
            setting: "topology.cluster".into(),
            value: "true".into(),
            reason: "pubgauge starts brokers side by side that know nothing of each other; a cluster is measured at the addresses of its nodes".into(),
        });
    }
    let reason = match chosen.file.kind {
        SystemKind::External if trial.setup.brokers != there => format!(
            "it runs already and has addresses of {there} of them; those of several are joined by `+`"
        ),
        _ if trial.setup.brokers > 1 && chosen.driver.topology(&target) == Topology::Brokerless => {
            "its clients reach each other directly: there is no broker to have several of".into()
        }
        _ => return None,
    };
    Some(Unsupported {
        setting: "topology.brokers".into(),
        value: trial.setup.brokers.to_string(),
        reason,
    })
}

/// The first of a trial's flows whose devices cannot come and go over its system, and why.
fn refused_presence(trial: &PlannedTrial, chosen: &Chosen) -> Option<Unsupported> {
    let target = Testbed::planned_target(&chosen.file, chosen.variant.as_deref()).ok()?;
    let brokered = chosen.driver.topology(&target) == Topology::Brokered;
    let mut flows = trial.workload.flows.iter();
    let flow = flows.find(|flow| flow.presence.is_some() && !brokered)?;
    Some(Unsupported {
        setting: "presence".into(),
        value: flow.name.clone(),
        reason: "clients of a system without a broker find each other when the trial begins; devices that come and go need \
                 a broker"
            .into(),
    })
}

/// The first of a trial's flows with subscribers that take their time whose driver cannot have such, and why.
fn refused_slow(trial: &PlannedTrial, chosen: &Chosen) -> Option<Unsupported> {
    let all: Vec<&Settings> = trial.all_settings().collect();
    trial.workload.flows.iter().find_map(|flow| {
        let slow = flow.subscribers.iter().any(|s| s.takes.is_some());
        let setting = match flow.subscribers_take {
            Some(_) => "subscribers-take",
            None if slow => "slow",
            None => return None,
        };
        let bounds = chosen.driver.bounds_reading(all[flow.settings as usize]);
        let reason = bounds.err()?;
        Some(Unsupported {
            setting: setting.into(),
            value: flow.name.clone(),
            reason,
        })
    })
}

/// The first subscription of a trial that its system does not support, and why.
fn refused(trial: &PlannedTrial, chosen: &Chosen) -> Option<Unsupported> {
    let of_devices = refused_presence(trial, chosen)
        .or_else(|| refused_slow(trial, chosen))
        .or_else(|| late::refused(trial, chosen))
        .or_else(|| wills::refused(trial, chosen));
    if of_devices.is_some() {
        return of_devices;
    }
    let target = Testbed::planned_target(&chosen.file, chosen.variant.as_deref()).ok()?;
    let all: Vec<&Settings> = trial.all_settings().collect();
    let flows = trial.workload.flows.iter();
    let subscribers =
        flows.flat_map(|f| f.subscribers.iter().map(|s| (all[f.settings as usize], s)));
    for (settings, subscriber) in subscribers {
        for filter in &subscriber.filters {
            let subscription = Subscription {
                filter: filter.clone(),
                group: subscriber.group.clone(),
            };
            let Err(error) = chosen
                .driver
                .check_subscription(settings, &target, &subscription)
            else {
                continue;
            };
            return Some(Unsupported {
                setting: "subscription".into(),
                value: match &subscription.group {
                    Some(group) => format!("{filter} in group {group}"),
                    None => filter.clone(),
                },
                reason: one_line(&error.to_string()),
            });
        }
    }
    None
}
