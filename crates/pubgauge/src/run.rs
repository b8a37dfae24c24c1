//! `pubgauge run`: a study from plan to page.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pubgauge_driver::Tls;
use pubgauge_results::criterion::evaluate;
use pubgauge_results::model::{
    Machine, Results, Status, StudyInfo, SystemCapabilities, UnsupportedCell,
};
use pubgauge_results::store::{NewRun, RunFolder};
use pubgauge_runner::{Bench, Job, perform};
use pubgauge_study::Plan;
use pubgauge_testbed::{Catalog, Testbed, load_average, machine_facts, raise_nofile};

use crate::args::{Login, RunArgs};
use crate::calibrate::Calibration;
use crate::exit::{CRITERION, Ending, FINE, NOT_VALID};
use crate::prepare::{Prepared, prepare};
use crate::progress::{Progress, so_many_trials};
use crate::report::{show, write_page};
use crate::signals;
use crate::{calibrate, capacity, criteria, drivers, matrix};

/// Runs a study.
pub fn run(args: &RunArgs) -> Result<i32, Ending> {
    let file = args.login.password_file.as_deref();
    let password = pubgauge_testbed::password(file).map_err(|e| match file {
        Some(file) => Ending::bad_input(format!("--password-file {}: {e}", file.display())),
        None => Ending::bad_input(e),
    })?;
    processors(&args.client.pin)?;
    let testbed = drivers::testbed()
        .map_err(Ending::not_valid)?
        .password(password);
    let prepared = prepare(&args.selection, &testbed)?;
    raise_nofile()
        .map_err(|e| Ending::not_valid(format!("cannot raise the limit of open files: {e}")))?;
    let workers = args.client.client().workers;
    capacity::check(&prepared.plan, &prepared.systems, workers)?;
    let tls = tls(&args.login)?;
    let stop = signals::install().map_err(Ending::not_valid)?;
    let calibration = calibration(args, &testbed, &stop);
    let mut folder = open_folder(args, &prepared, calibration.as_ref())?;
    let result = trials(args, &prepared, testbed, tls, &mut folder, &stop);
    pubgauge_testbed::stop_everything();
    result?;

    let trials = &folder.results().trials;
    let criteria = prepared
        .plan
        .criteria
        .iter()
        .map(|c| evaluate(trials, &criteria::spec(c, &prepared.plan)))
        .collect();
    folder.finish(criteria).map_err(Ending::not_valid)?;
    let results = folder.results();
    let page = write_page(folder.path(), results)?;
    show(results, &page, args.json);
    if stop.load(Relaxed) {
        eprintln!(
            "ended by the user; go on with: pubgauge run --resume {}",
            folder.path().display()
        );
        return Ok(NOT_VALID);
    }
    Ok(exit_code(results))
}

/// Runs what is not done yet, storing each trial before the next begins.
fn trials(
    args: &RunArgs,
    prepared: &Prepared,
    testbed: Testbed,
    tls: Option<Tls>,
    folder: &mut RunFolder,
    stop: &Arc<AtomicBool>,
) -> Result<(), Ending> {
    let plan = &prepared.plan;
    let scratch = signals::scratch()
        .map_err(|e| Ending::not_valid(format!("cannot make a private folder: {e}")))?;
    let bench = Bench {
        testbed,
        scratch: scratch.path(),
        client: args.client.client(),
        tls,
        stop: stop.clone(),
        cores: machine_facts().cores,
    };
    let count = plan.trials.len() as u64;
    let mut progress = Progress::new(count, args.quiet);
    progress.say(&format!(
        "{}, about {:.0} s",
        so_many_trials(count),
        plan.duration_estimate() as f64 / 1e9
    ));
    for note in &plan.notes {
        progress.say(&format!("note: {note}"));
    }
    for trial in &plan.trials {
        if stop.load(Relaxed) {
            break;
        }
        if folder.has(trial.order, &trial.cell) {
            continue;
        }
        let Some(chosen) = prepared.systems.get(&trial.system) else {
            continue;
        };
        let repeat = if plan.repeats > 1 {
            format!(" (repeat {})", trial.repeat)
        } else {
            String::new()
        };
        progress.trial(
            u64::from(trial.order) + 1,
            count,
            &format!("{}, {}{repeat}", trial.workload.name, trial.system),
        );
        let job = Job {
            id: trial.order,
            cell: &trial.cell,
            shown_as: &trial.system,
            system: &chosen.file,
            variant: chosen.variant.as_deref(),
            library_version: drivers::library_version(chosen.driver.name()),
            driver: chosen.driver.clone(),
            settings: &trial.settings,
            of_flows: trial
                .of_flows
                .iter()
                .map(|own| (own.clone(), chosen.resolve(own).unwrap_or_default()))
                .collect(),
            settings_name: &trial.settings_name,
            axes: &trial.axes,
            mappings: prepared.mappings(trial),
            workload: &trial.workload,
            repeat: trial.repeat,
        };
        let (done, files) = perform(&job, &bench, &mut progress);
        if done.verdict.status == Status::Broken {
            for reason in &done.verdict.reasons {
                progress.say(&format!("  broken: {reason}"));
            }
        }
        // An interrupted trial is not stored: --resume measures it whole.
        if stop.load(Relaxed) && done.circumstances.not_run.is_some() {
            break;
        }
        folder
            .append_trial(done, &files)
            .map_err(Ending::not_valid)?;
    }
    progress.finish();
    Ok(())
}

/// Checks that threads may run on these processors.
fn processors(pin: &[usize]) -> Result<(), Ending> {
    let usable = pubgauge_testbed::usable_cpus();
    match pin.iter().find(|cpu| !usable.contains(cpu)) {
        None => Ok(()),
        Some(cpu) => Err(Ending::bad_input(format!(
            "--pin {cpu}: there is no such processor for this process\n  hint: usable are {}",
            usable
                .iter()
                .map(usize::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        ))),
    }
}

fn open_folder(
    args: &RunArgs,
    prepared: &Prepared,
    calibration: Option<&Calibration>,
) -> Result<RunFolder, Ending> {
    let plan = &prepared.plan;
    let resolved = resolved(plan);
    if let Some(dir) = &args.resume {
        return RunFolder::open_for_resume(dir, &resolved).map_err(Ending::bad_input);
    }
    let dir = args
        .out
        .clone()
        .unwrap_or_else(|| default_folder(&plan.name));
    let run = NewRun {
        study_toml: if prepared.given.is_empty() {
            plan.resolved.clone()
        } else {
            prepared.given.clone()
        },
        study_resolved: resolved,
        machine: machine(calibration),
        study: StudyInfo {
            name: plan.name.clone(),
            question: plan.question.clone(),
            started: jiff::Timestamp::now().to_string(),
            planned_trials: plan.trials.len() as u32,
            criteria: Vec::new(),
            unsupported: plan
                .unsupported
                .iter()
                .map(|u| UnsupportedCell {
                    system: u.system.clone(),
                    settings: u.settings.clone(),
                })
                .collect(),
            capabilities: capabilities(prepared),
            seed: plan.seed,
            cut_off: true,
        },
    };
    RunFolder::create(&dir, run).map_err(Ending::bad_input)
}

/// What each system of the plan can do.
fn capabilities(prepared: &Prepared) -> Vec<SystemCapabilities> {
    let chosen = prepared.systems.iter();
    chosen
        .map(|(name, chosen)| matrix::for_results(matrix::of(name, chosen)))
        .collect()
}

/// Everything that tells one run from another.
fn resolved(plan: &Plan) -> serde_json::Value {
    let trials: Vec<serde_json::Value> = plan
        .trials
        .iter()
        .map(|t| {
            serde_json::json!({
                "id": t.order, "cell": t.cell, "system": t.system, "settings": t.settings,
                "of_flows": t.of_flows, "repeat": t.repeat,
            })
        })
        .collect();
    serde_json::json!({ "study": plan.resolved, "seed": plan.seed, "repeats": plan.repeats, "trials": trials })
}

/// The stored calibration of this machine. The first look makes one if there is none: a newcomer
/// should not have to know that it is wanted. Its failure is no reason not to measure.
fn calibration(args: &RunArgs, testbed: &Testbed, stop: &Arc<AtomicBool>) -> Option<Calibration> {
    if let Some(known) = calibrate::stored() {
        return Some(known);
    }
    if args.resume.is_some() || !args.selection.is_first_look() {
        return None;
    }
    if !args.quiet {
        eprintln!("calibrating this machine, once (some ten seconds)");
    }
    let catalog = Catalog::load(&[]).ok()?;
    let scratch = signals::scratch().ok()?;
    let made = calibrate::measure(testbed, &catalog, scratch.path(), stop, |_| {});
    match made {
        Ok(calibration) => {
            if let Err(error) = calibrate::store(&calibration) {
                eprintln!("the calibration is not kept for later runs: {error:#}");
            }
            Some(calibration)
        }
        Err(error) => {
            if !stop.load(Relaxed) {
                eprintln!("not calibrated: {error:#}");
            }
            None
        }
    }
}

fn default_folder(study: &str) -> PathBuf {
    let name: String = study
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "-_.".contains(c) {
                c
            } else {
                '-'
            }
        })
        .collect();
    let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S");
    Path::new("results").join(format!("{name}-{now}"))
}

fn machine(calibration: Option<&Calibration>) -> Machine {
    let facts = machine_facts();
    Machine {
        kernel: facts.kernel,
        os: facts.os,
        cpu_model: facts.cpu_model,
        cores: facts.cores,
        memory_bytes: facts.memory_bytes,
        governor: facts.governor,
        max_open_files: facts.max_open_files,
        load_average_1min: load_average(),
        pubgauge_version: env!("CARGO_PKG_VERSION").into(),
        calibration: calibration.and_then(|c| serde_json::to_value(c).ok()),
    }
}

fn tls(login: &Login) -> Result<Option<Tls>, Ending> {
    for (flag, file) in [
        ("--ca", &login.ca),
        ("--cert", &login.cert),
        ("--key", &login.key),
    ] {
        let Some(file) = file else { continue };
        std::fs::File::open(file)
            .map_err(|e| Ending::bad_input(format!("{flag} {}: {e}", file.display())))?;
    }
    let given = login.ca.is_some() || login.cert.is_some();
    Ok(given.then(|| Tls {
        ca_file: login.ca.clone(),
        cert_file: login.cert.clone(),
        key_file: login.key.clone(),
        server_name: None,
    }))
}

/// 1 if a criterion was not met; 2 if a trial is broken, no trial can be trusted, or a criterion
/// has no valid trial to bear on it.
fn exit_code(results: &Results) -> i32 {
    let broken = results
        .trials
        .iter()
        .any(|t| t.verdict.status == Status::Broken);
    let trusted = results
        .trials
        .iter()
        .any(|t| t.verdict.status == Status::Valid);
    let undecided = results.study.criteria.iter().any(|c| c.met.is_none());
    if results.study.criteria.iter().any(|c| c.met == Some(false)) {
        CRITERION
    } else if broken || !trusted || undecided {
        NOT_VALID
    } else {
        FINE
    }
}
