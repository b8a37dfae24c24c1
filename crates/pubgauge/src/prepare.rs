//! From the command line to a plan over real systems, starting nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pubgauge_campaign::{Chosen, ClientOptions, Found, Prepared};
use pubgauge_campaign::{capacity, hosts, networks, pairs, share, sizes};
use pubgauge_driver::{Settings, Subscription, Topology, Unsupported};
use pubgauge_report::units::so_many;
use pubgauge_runner::convert::one_line;
use pubgauge_runner::limits::each_once;
use pubgauge_study::{
    Axis, DailyFlags, Known, Plan, PlanOptions, PlannedTrial, Study, UnsupportedTrial,
};
use pubgauge_testbed::shares::foresee;
use pubgauge_testbed::{Catalog, Kind, SystemFile, Testbed};
use serde::de::DeserializeOwned;

use crate::args::{Daily, Selection};
use crate::exit::Ending;
use crate::invocation::{Invocation, repeat};
use crate::{drivers, matrix};

/// Reads the study, plans it, and asks every driver what each setting becomes.
pub fn prepare(selection: &Selection, testbed: &Testbed) -> Result<Prepared, Ending> {
    let catalog = Catalog::load(&selection.systems).map_err(Ending::bad_input)?;
    let (mut study, given, folder) = study(selection)?;
    if let Some(scale) = &selection.scale {
        study.apply_scale(scale).map_err(Ending::bad_input)?;
    }
    study
        .apply_profiles(&selection.profile)
        .map_err(Ending::bad_input)?;
    for set in &selection.set {
        study.apply_set(set).map_err(Ending::bad_input)?;
    }
    let brokers = selection.brokers.map(|brokers| brokers.to_string());
    let calls = selection.count_system_calls.then(|| "true".to_owned());
    for (flag, path, value) in [
        ("--brokers", "topology.brokers", &brokers),
        (
            "--pacing-within",
            "client.pacing-within",
            &selection.pacing_within,
        ),
        ("--count-system-calls", "testbed.count-system-calls", &calls),
        (
            "--count-interface",
            "testbed.count-interface",
            &selection.count_interface,
        ),
        ("--precision", "compare.precision", &selection.precision),
    ] {
        if let Some(value) = value {
            let applied = study.apply_flag(flag, path, value);
            applied.map_err(Ending::bad_input)?;
        }
    }
    if let Some(axis) = selection.find {
        study.search_for(axis).map_err(Ending::bad_input)?;
    }
    let options = PlanOptions {
        known: known(&catalog, testbed),
        on: pubgauge_testbed::join_addresses(&selection.on),
        repeats: selection.repeats,
    };
    let on = (&catalog, testbed, selection.elsewhere);
    planned(study, given, folder, options, on)
}

/// The same for a resumed run: its study, and the systems that were found when it began. Their files come from the
/// folders `systems` of this command line.
pub fn prepare_again(
    begun: &Invocation,
    systems: &[PathBuf],
    testbed: &Testbed,
) -> Result<Prepared, Ending> {
    let catalog = Catalog::load(systems).map_err(Ending::bad_input)?;
    let mut study = Study::parse("the study of the run", &begun.study, &begun.folder)
        .map_err(Ending::bad_input)?;
    if let Some(scale) = &begun.scale {
        study.apply_scale(scale).map_err(Ending::bad_input)?;
    }
    if study.reads_traces() {
        return Err(repeat(
            "the study in the folder of the run reads recorded traces, and what is read on this machine is said on this command line alone",
        ));
    }
    let options = PlanOptions {
        known: Known {
            found: begun.found.plain.clone(),
            found_variants: begun.found.variants.clone(),
            first_look: begun.found.first_look.clone(),
            ..known(&catalog, testbed)
        },
        on: pubgauge_testbed::join_addresses(&begun.on),
        repeats: begun.repeats,
    };
    let (given, folder) = (begun.study.clone(), begun.folder.clone());
    let on = (&catalog, testbed, begun.hosts.is_some());
    planned(study, given, folder, options, on)
}

/// `elsewhere`: the workers are on other hosts.
fn planned(
    study: Study,
    given: String,
    folder: PathBuf,
    options: PlanOptions,
    (catalog, testbed, elsewhere): (&Catalog, &Testbed, bool),
) -> Result<Prepared, Ending> {
    let mut plan = study.plan(&options).map_err(Ending::bad_input)?;
    let mut systems = BTreeMap::new();
    for name in each_once(plan.trials.iter().map(|trial| &trial.system)) {
        systems.insert(name.clone(), choose(catalog, name, testbed)?);
    }
    take_fitting_variants(&mut plan, &mut systems, catalog, testbed)?;
    plan.tune(|system| Some(systems.get(system)?.driver.name().to_owned()));
    let resolve = |system: &str, settings: &Settings| match systems.get(system) {
        Some(chosen) => chosen.resolve(settings).map(|_| ()),
        None => Ok(()),
    };
    plan.grant_wishes(resolve);
    plan.split_unsupported(resolve);
    split(&mut plan, &systems, brokers_refused);
    split(&mut plan, &systems, refused);
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
        return Err(Ending::bad_input(why));
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
    plan.notes.extend(pairs::compared(&plan)?);
    Ok(Prepared {
        given,
        plan,
        systems,
        folder,
        found: Found {
            plain: options.known.found,
            variants: options.known.found_variants,
            first_look: options.known.first_look,
        },
        processes,
    })
}

/// What is searched for, and when a search ends.
fn searched(plan: &Plan) -> Option<String> {
    let search = plan.search.as_ref()?;
    let names = each_once(plan.searches().map(|trial| {
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
    catalog: &Catalog,
    testbed: &Testbed,
) -> Result<(), Ending> {
    let mut notes = Vec::new();
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
            let other = choose(catalog, &name, testbed)?;
            if other.driver.name() != driver || !fits(&other) {
                continue;
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

/// The study, its text, and the folder that its relative paths start from.
fn study(selection: &Selection) -> Result<(Study, String, PathBuf), Ending> {
    let flags = daily(&selection.daily)?;
    if let Some(path) = &selection.study {
        if !flags.is_empty() {
            return Err(Ending::bad_input(format!(
                "{} is given together with flags that describe a workload\n  hint: change values of a study with --set, for example --set phases.measure=30s",
                path.display()
            )));
        }
        let study = Study::open(path).map_err(Ending::bad_input)?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        return Ok((
            study,
            std::fs::read_to_string(path).unwrap_or_default(),
            folder,
        ));
    }
    if flags.is_empty() && selection.find.is_none() {
        let study = Study::first_look();
        let text = include_str!("../../../studies/first-look.toml");
        return Ok((study, text.to_owned(), PathBuf::new()));
    }
    let study = flags.study().map_err(Ending::bad_input)?;
    Ok((study, String::new(), PathBuf::new()))
}

/// How this machine enforces the limits of a plan, in words.
fn limits(plan: &Plan) -> Vec<String> {
    let all = plan.trials.iter().flat_map(|t| {
        let hosts = t.hosts.iter().flat_map(|hosts| sizes::shares(hosts));
        let own = [
            ("each instance of a system", share(&t.limits)),
            ("each worker process", share(&t.client_limits)),
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
    each_once(notes)
}

fn daily(flags: &Daily) -> Result<DailyFlags, Ending> {
    Ok(DailyFlags {
        publishers: flags.publishers,
        subscribers: flags.subscribers,
        topics: flags.topics,
        payload: quantity("--payload", &flags.payload)?,
        rate: quantity("--rate", &flags.rate)?,
        duration: quantity("--duration", &flags.duration)?,
        warm_up: quantity("--warm-up", &flags.warm_up)?,
        qos: flags.qos,
        mqtt: flags.mqtt.clone(),
    })
}

/// A quantity with its unit, in the words of study files.
pub fn quantity<T: DeserializeOwned>(
    flag: &str,
    text: &Option<String>,
) -> Result<Option<T>, Ending> {
    let Some(text) = text else { return Ok(None) };
    serde_json::from_value(serde_json::Value::String(text.clone()))
        .map(Some)
        .map_err(|e| Ending::bad_input(format!("{flag} {text}: {e}")))
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
    let reason = match chosen.file.kind {
        Kind::External if trial.brokers != there => format!(
            "it runs already and has addresses of {there} of them; those of several are joined by `+`"
        ),
        _ if trial.brokers > 1 && chosen.driver.topology(&target) == Topology::Brokerless => {
            "its clients reach each other directly: there is no broker to have several of".into()
        }
        _ => return None,
    };
    Some(Unsupported {
        setting: "topology.brokers".into(),
        value: trial.brokers.to_string(),
        reason,
    })
}

/// The first subscription of a trial that its system does not support, and why.
fn refused(trial: &PlannedTrial, chosen: &Chosen) -> Option<Unsupported> {
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

/// The systems of a list of names, checked; all that are found, in every variant, if it is empty.
///
/// # Errors
/// With the nearest name if there is no such system.
pub fn names(catalog: &Catalog, on: &[String], testbed: &Testbed) -> Result<Vec<String>, Ending> {
    if on.is_empty() {
        return Ok(known(catalog, testbed).found_variants);
    }
    for name in on {
        catalog
            .get(matrix::split(name).0)
            .map_err(Ending::bad_input)?;
    }
    Ok(on.to_vec())
}

/// All systems in the catalog, and those found here, variants included.
fn known(catalog: &Catalog, testbed: &Testbed) -> Known {
    let mut known = Known::default();
    for listing in catalog.list(testbed) {
        let variants = listing.variants.iter();
        let variants: Vec<String> = variants.map(|v| format!("{}:{v}", listing.name)).collect();
        if listing.found && listing.kind != Kind::External {
            known.found.push(listing.name.clone());
            if listing.first_look {
                known.first_look.push(listing.name.clone());
            }
            known.found_variants.extend(variants.iter().cloned());
            if variants.is_empty() {
                known.found_variants.push(listing.name.clone());
            }
        }
        if listing.kind == Kind::External
            && let Ok(file) = catalog.get(&listing.name)
        {
            let brokers = file.endpoints.len().max(1) as u32;
            known.brokers.insert(listing.name.clone(), brokers);
        }
        known.all.extend(variants);
        known.all.push(listing.name);
    }
    // The reference broker first: the others are compared with it.
    for list in [
        &mut known.found,
        &mut known.found_variants,
        &mut known.first_look,
    ] {
        list.sort_by_key(|name| name != "reference-broker");
    }
    known.all.push("simulated".into());
    known
}

/// The system of this name (with its variant after a colon) or address.
pub fn choose(catalog: &Catalog, name: &str, testbed: &Testbed) -> Result<Chosen, Ending> {
    if name.contains("://") {
        let file =
            pubgauge_testbed::from_address(name, drivers::all()).map_err(Ending::bad_input)?;
        return with_driver(file, None);
    }
    if name == "simulated" {
        let file = SystemFile::parse(SIMULATED, "simulated").map_err(Ending::not_valid)?;
        return with_driver(file, None);
    }
    let (plain, variant) = matrix::split(name);
    let file = catalog.get(plain).map_err(Ending::bad_input)?;
    testbed.find(&file).map_err(Ending::bad_input)?;
    with_driver(file, variant.map(str::to_owned))
}

/// The simulated system has no process and no address.
const SIMULATED: &str = r#"
name = "simulated"
driver = "simulated"
description = "a simulated system whose delays, loss, duplication and order are set by native.simulated"
kind = "library"
"#;

fn with_driver(file: SystemFile, variant: Option<String>) -> Result<Chosen, Ending> {
    let name = file
        .variant(variant.as_deref())
        .map_err(Ending::bad_input)?
        .driver;
    let driver = drivers::all().by_name(&name).ok_or_else(|| {
        Ending::bad_input(format!(
            "system {} needs the driver `{name}`, which this pubgauge was built without\n  hint: drivers here: {}",
            file.name,
            drivers::all().names().collect::<Vec<_>>().join(", ")
        ))
    })?;
    if let Some(how) = driver.missing() {
        return Err(Ending::bad_input(format!(
            "system {}: this pubgauge was built without {name}\n  hint: {how}",
            file.name
        )));
    }
    Ok(Chosen {
        file,
        variant,
        driver,
        tls: None,
    })
}
