//! `pubgauge run`: a study from plan to page.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use pubgauge_driver::Tls;
use pubgauge_results::criterion::evaluate;
use pubgauge_results::model::{Machine, StudyInfo, SystemCapabilities, Trial, UnsupportedCell};
use pubgauge_results::shell::quoted;
use pubgauge_results::store::{NewRun, RunFolder, StoreError};
use pubgauge_runner::{Bench, Client, Job, perform};
use pubgauge_study::{Axis, Plan, PlannedTrial};
use pubgauge_testbed::{Catalog, Kind, Testbed, load_average, machine_facts, raise_nofile};

use crate::args::{ClientArgs, FindArgs, Login, RunArgs};
use crate::calibrate::Calibration;
use crate::endpoint::Endpoint;
use crate::exit::{Ending, NOT_VALID};
use crate::invocation::Invocation;
use crate::prepare::{Prepared, prepare, prepare_again};
use crate::progress::Progress;
use crate::proposer::{Proposer, so_far, specs};
use crate::report::{show, write_page};
use crate::{calibrate, capacity, drivers, gate, matrix, signals};

/// Runs a study.
pub fn run(args: &RunArgs) -> Result<i32, Ending> {
    let begun = begun(args)?;
    let (client, login) = match &begun {
        Some(begun) => (begun.client(&args.client)?, begun.login(&args.login)),
        None => (args.client.clone(), args.login.clone()),
    };
    gate::can_be_written(&args.gate)?;
    let file = login.password_file.as_deref();
    let password = pubgauge_testbed::password(file).map_err(|e| match file {
        Some(file) => Ending::bad_input(format!("--password-file {}: {e}", file.display())),
        None => Ending::bad_input(e),
    })?;
    processors(&client.pin)?;
    let testbed = drivers::testbed()
        .map_err(Ending::not_valid)?
        .password(password);
    let tls = tls(&login)?;
    let prepared = match &begun {
        Some(begun) if args.selection.is_empty() => prepare_again(begun, &testbed)?,
        _ => prepare(&args.selection, &testbed)?,
    }
    .reached_by(&tls);
    raise_nofile()
        .map_err(|e| Ending::not_valid(format!("cannot raise the limit of open files: {e}")))?;
    let processes = capacity::check(&prepared.plan.trials, &prepared.systems, &client)?;
    capacity::check_limits(&prepared.plan, &prepared.systems, &client, processes)?;
    let proposer = Proposer::new(&prepared, &client, processes)?;
    let endpoint = args.listen.as_deref().map(Endpoint::open).transpose()?;
    let stop = signals::install().map_err(Ending::not_valid)?;
    let calibration = calibration(args, &testbed, &stop);
    let mut folder = open_folder(args, &prepared, calibration.as_ref())?;
    if args.resume.is_none() {
        Invocation::new(&prepared, &args.selection, &client, &login)
            .map_err(Ending::not_valid)?
            .write(folder.path())?;
    }
    let mut progress = progress(args, &prepared, &folder, endpoint.as_ref());
    let result = trials(
        &prepared,
        testbed,
        (&client, &proposer),
        tls,
        &mut folder,
        &mut progress,
        &stop,
    );
    pubgauge_testbed::stop_everything();
    result?;

    let trials = &folder.results().trials;
    // In a search they say what is within the limit, and what is beyond is no fault.
    let criteria = match prepared.plan.search {
        Some(_) => Vec::new(),
        None => {
            let specs = proposer.criteria.iter();
            specs.map(|spec| evaluate(trials, spec)).collect()
        }
    };
    let judged = pubgauge_report::claims::judge(folder.results(), &prepared.plan.claims);
    folder.judged(judged);
    folder.finish(criteria).map_err(Ending::not_valid)?;
    let results = folder.results();
    let page = write_page(folder.path(), results)?;
    show(results, &page, args.output.json);
    let checks = gate::of_run(results);
    gate::tell(
        &args.gate,
        &prepared.plan.name,
        args.selection.study.as_deref(),
        &checks,
    )?;
    if stop.load(Relaxed) {
        eprintln!(
            "ended by the user; go on with: pubgauge run --resume {}",
            quoted(folder.path())
        );
        return Ok(NOT_VALID);
    }
    Ok(gate::exit_code(&checks))
}

/// Searches for limits: a run whose study has "find" for one of its values.
pub fn find(args: FindArgs) -> Result<i32, Ending> {
    let mut run = args.run;
    let selection = &mut run.selection;
    let set = |path: &str, value: &Option<String>| value.as_ref().map(|v| format!("{path}={v}"));
    let flags = [
        set("search.width", &args.width),
        set("search.budget", &args.budget),
        set("search.confirm", &args.confirm),
    ];
    if run.resume.is_none() {
        selection.find = Some(args.axis);
        if selection.study.is_none() {
            // Where neither file nor flags say: systems that start at once, and a short warm-up.
            if selection.on.is_empty() {
                selection.set.insert(0, "systems=first-look".into());
            }
            selection.daily.warm_up.get_or_insert("1s".into());
            // A client that wakes up for every message is at its end before most systems are.
            if args.axis == Axis::Rate {
                selection.pacing_within.get_or_insert("1ms".into());
            }
            // Back to back, there is no rate.
            if args.axis == Axis::Burst {
                selection.daily.rate.get_or_insert("max".into());
            }
        }
    }
    selection.set.extend(flags.into_iter().flatten());
    self::run(&run)
}

/// How the run that goes on was begun; `None` for a new run, and for one that is named with all its
/// flags once more.
fn begun(args: &RunArgs) -> Result<Option<Invocation>, Ending> {
    let Some(dir) = &args.resume else {
        return Ok(None);
    };
    let begun = Invocation::read(dir)?;
    match begun.is_none() && args.selection.is_empty() {
        true => Err(Invocation::missing(dir)),
        false => Ok(begun),
    }
}

/// Progress over the trials that are not done yet.
fn progress(
    args: &RunArgs,
    prepared: &Prepared,
    folder: &RunFolder,
    endpoint: Option<&Endpoint>,
) -> Progress {
    let plan = &prepared.plan;
    let left: Vec<&PlannedTrial> = plan
        .trials
        .iter()
        .filter(|t| !folder.has(t.order, &t.cell))
        .collect();
    let shown = endpoint.map(Endpoint::shown);
    let progress = Progress::new(plan, &left, args.output.quiet, shown);
    if let Some(endpoint) = endpoint {
        let (address, dir) = (endpoint.address(), folder.path().display());
        progress.say(&format!("live figures of {dir}: http://{address}/metrics"));
    }
    progress
}

/// Runs what is not done yet, storing each trial before the next begins.
fn trials(
    prepared: &Prepared,
    testbed: Testbed,
    (client, proposer): (&ClientArgs, &Proposer<'_>),
    tls: Option<Tls>,
    folder: &mut RunFolder,
    progress: &mut Progress,
    stop: &Arc<AtomicBool>,
) -> Result<(), Ending> {
    let scratch = signals::scratch()
        .map_err(|e| Ending::not_valid(format!("cannot make a private folder: {e}")))?;
    let program = testbed.program().to_owned();
    let mut bench = Bench {
        testbed,
        scratch: scratch.path(),
        client: Client::default(),
        tls,
        stop: stop.clone(),
        cores: machine_facts().cores,
    };
    while !stop.load(Relaxed) {
        let Some(proposal) = proposer.next(folder)? else {
            break;
        };
        let trial = &proposal.trial;
        let Some(chosen) = prepared.systems.get(&trial.system) else {
            return Err(Ending::not_valid(format!(
                "there is no system {}",
                trial.system
            )));
        };
        progress.trial(trial);
        bench.client = ClientArgs {
            processes: capacity::processes(trial, chosen, client, proposal.processes),
            ..client.clone()
        }
        .client(&program, crate::prepare::share(&trial.client_limits));
        let job = Job {
            id: trial.order,
            cell: &trial.cell,
            shown_as: &trial.system,
            system: &chosen.file,
            variant: chosen.variant.as_deref(),
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
            pacing_within: trial.pacing_within,
            share: crate::prepare::share(&trial.limits),
            workload: &trial.workload,
            brokers: trial.brokers,
            repeat: trial.repeat,
        };
        let (mut done, files) = perform(&job, &bench, progress);
        done.search = proposal.search;
        // An interrupted trial is not stored: --resume measures it whole.
        if stop.load(Relaxed) && done.circumstances.not_run.is_some() {
            break;
        }
        progress.done(&done);
        folder
            .append_trial(done, &files)
            .map_err(Ending::not_valid)?;
        if let (Some(_), Some(pairs)) = (prepared.plan.rounds(), &proposer.pairs) {
            let trials = &folder.results().trials;
            let (round, next) = (proposal.trial.repeat, pairs.next(trials));
            let (comparisons, planned) = (pairs.so_far(trials), trials.len() as u32);
            if next.is_none_or(|(_, next)| next > round) {
                progress.say(&format!("  {}", crate::pairs::words(&comparisons, round)));
            }
            folder
                .compared(comparisons, planned + 1)
                .map_err(Ending::not_valid)?;
            if chosen.file.kind == Kind::External {
                settle(folder.results().trials.last(), progress, stop);
            }
        }
        if let Some(step) = proposal.search {
            let searches = proposer.searches(&folder.results().trials);
            if let Some(search) = searches.get(step.search as usize) {
                progress.say(&format!("  {}", so_far(search)));
            }
            // One more than there are, until it is known that there is none.
            let planned = folder.results().trials.len() as u32 + 1;
            folder.tell(searches, planned).map_err(Ending::not_valid)?;
            if chosen.file.kind == Kind::External {
                settle(folder.results().trials.last(), progress, stop);
            }
        }
    }
    if let Some(pairs) = &proposer.pairs {
        let (trials, study) = (&folder.results().trials, &folder.results().study);
        let planned = match prepared.plan.rounds() {
            // One more than there are, until it is known that there is none.
            Some(_) => trials.len() as u32 + u32::from(pairs.next(trials).is_some()),
            None => study.planned_trials,
        };
        let comparisons = pairs.so_far(trials);
        folder
            .compared(comparisons, planned)
            .map_err(Ending::not_valid)?;
    }
    if prepared.plan.search.is_some() && !stop.load(Relaxed) {
        let trials = &folder.results().trials;
        let (searches, planned) = (proposer.searches(trials), trials.len() as u32);
        folder.tell(searches, planned).map_err(Ending::not_valid)?;
    }
    progress.finish();
    Ok(())
}

/// Waits until a system that runs on has nothing left of a trial, as far as that can be known.
fn settle(trial: Option<&Trial>, progress: &Progress, stop: &Arc<AtomicBool>) {
    let seconds = trial.map_or(0.0, pubgauge_runner::searching::settling_s);
    if seconds >= 1.0 {
        progress.say(&format!(
            "  waiting {seconds:.0} s for what is left of it in the system"
        ));
    }
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    while Instant::now() < until && !stop.load(Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
    }
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
        let alone = args.selection.is_empty();
        return RunFolder::open_for_resume(dir, &resolved).map_err(|error| match error {
            StoreError::OtherStudy { difference, .. } if alone => Ending::bad_input(format!(
                "this pubgauge plans the study of {} otherwise than the one that began it: {difference}\n  hint: go on with that version of pubgauge, or start a new run",
                dir.display()
            )),
            error => Ending::bad_input(error),
        });
    }
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
            criterion_specs: specs(plan),
            unsupported: plan
                .unsupported
                .iter()
                .map(|u| UnsupportedCell {
                    system: u.system.clone(),
                    settings: u.settings.clone(),
                })
                .collect(),
            capabilities: capabilities(prepared),
            scale: plan.scale.clone(),
            seed: plan.seed,
            cut_off: true,
        },
    };
    let Some(dir) = &args.out else {
        let dir = default_folder(&plan.name)?;
        return RunFolder::create(&dir, run).map_err(|error| {
            let _ = std::fs::remove_dir(&dir);
            Ending::bad_input(error)
        });
    };
    RunFolder::create(dir, run).map_err(Ending::bad_input)
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
    args.output
        .remark("calibrating this machine, once (some ten seconds)");
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

/// Makes a folder of its own for a run, `results/STUDY-TIME`; with a number after it if another run
/// has begun in the same second.
fn default_folder(study: &str) -> Result<PathBuf, Ending> {
    let name: String = study
        .chars()
        .map(|c| match c.is_ascii_alphanumeric() || "-_.".contains(c) {
            true => c,
            false => '-',
        })
        .collect();
    let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S");
    let (parent, name) = (Path::new("results"), format!("{name}-{now}"));
    new_folder(parent, &name).map_err(|e| {
        let path = parent.join(name);
        let hint = "name another folder with --out";
        Ending::bad_input(format!(
            "cannot make {}: {e}\n  hint: {hint}",
            path.display()
        ))
    })
}

/// Makes a folder of that name, or with a number after it if there is one.
fn new_folder(parent: &Path, name: &str) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(parent)?;
    let mut dir = parent.join(name);
    let mut number = 1;
    loop {
        // Of two runs that begin at once, one gets it.
        match std::fs::create_dir(&dir) {
            Ok(()) => return Ok(dir),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                number += 1;
                dir = parent.join(format!("{name}-{number}"));
            }
            Err(e) => return Err(e),
        }
    }
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

/// How systems are reached by TLS, if anything was said of it.
pub fn tls(login: &Login) -> Result<Option<Tls>, Ending> {
    for (flag, file) in [
        ("--ca", &login.ca),
        ("--cert", &login.cert),
        ("--key", &login.key),
    ] {
        let Some(file) = file else { continue };
        std::fs::File::open(file)
            .map_err(|e| Ending::bad_input(format!("{flag} {}: {e}", file.display())))?;
    }
    let given = login.ca.is_some() || login.cert.is_some() || login.insecure;
    Ok(given.then(|| Tls {
        ca_file: login.ca.clone(),
        cert_file: login.cert.clone(),
        key_file: login.key.clone(),
        server_name: None,
        insecure: login.insecure,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_begin_in_one_second_have_a_folder_each() {
        let place = tempfile::tempdir().unwrap();
        let parent = place.path().join("results");
        let made: Vec<PathBuf> = std::thread::scope(|scope| {
            let begin = || new_folder(&parent, "first-look-20261121T025917").unwrap();
            let runs: Vec<_> = (0..8).map(|_| scope.spawn(begin)).collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        });
        let mut distinct = made.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), 8, "{made:?}");
        assert!(made.contains(&parent.join("first-look-20261121T025917")));
    }
}
