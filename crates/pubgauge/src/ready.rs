//! A run of one study: checked, then carried out from its first trial to its page.

mod begin;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use pubgauge_driver::Tls;
use pubgauge_export::check::Check;
use pubgauge_hosts::Hosts;
use pubgauge_results::counted;
use pubgauge_results::criterion::evaluate;
use pubgauge_results::model::{Results, System, Trial};
use pubgauge_results::search::Search;
use pubgauge_results::store::RunFolder;
use pubgauge_runner::searching::settling_s;
use pubgauge_runner::{Bench, Client, Counts, Job, Kept, perform};
use pubgauge_testbed::{Catalog, Kind, Testbed, machine_facts, raise_nofile};

use crate::args::{ClientArgs, Login, RunArgs};
use crate::calibrate::Calibration;
use crate::endpoint::Endpoint;
use crate::exit::{Ending, tell};
use crate::invocation::Invocation;
use crate::networks::{self, Networks};
use crate::page::write_page;
use crate::prepare::{prepare, prepare_again, share};
use crate::prepared::Prepared;
use crate::progress::{Progress, so_far};
use crate::proposer::{Proposer, axes, evaluated};
use crate::{calibrate, capacity, drivers, gate, hosts, signals};
pub use begin::default_folder;
use begin::open_folder;

/// A run that can begin or be resumed: everything is checked, nothing is started and nothing is changed on
/// disk.
pub struct Ready {
    /// Plan and systems.
    pub prepared: Prepared,
    /// How it begins, to be stored in its folder.
    pub invocation: Invocation,
    client: ClientArgs,
    testbed: Testbed,
    tls: Option<Tls>,
    processes: Option<u32>,
}

/// The result of a run.
pub struct Done {
    /// The checks for a gate.
    pub checks: Vec<Check>,
    /// Its results.
    pub results: Results,
    /// Its page.
    pub page: PathBuf,
    /// Its folder.
    pub folder: PathBuf,
}

impl Ready {
    /// Checks a run with these arguments; `begun` is how it was begun, or would have been, if it is
    /// resumed.
    ///
    /// # Errors
    /// Errors in the arguments, the study, the systems or this host.
    pub fn of(
        args: &RunArgs,
        begun: Option<&Invocation>,
        hosts: Option<&Arc<Hosts>>,
    ) -> Result<Ready, Ending> {
        let client = match begun {
            Some(begun) => begun.client(&args.client)?,
            None => args.client.clone(),
        };
        let (login, on) = (&args.login, &args.selection.on);
        let file = login.password_file.as_deref();
        let password = pubgauge_testbed::password(file).map_err(|e| match file {
            Some(file) => Ending::bad_input(format!("--password-file {}: {e}", file.display())),
            None => Ending::bad_input(e),
        })?;
        let has_secret = password.is_some() || login.key.is_some();
        if let Some(begun) = begun {
            let systems = &args.selection.systems;
            for difference in begun.said_here(systems, login, password.is_some())? {
                args.output.remark(&difference);
            }
        }
        processors(&client.pin)?;
        if hosts.is_none() {
            realtime(client.realtime)?;
        }
        let testbed = drivers::testbed()
            .map_err(Ending::not_valid)?
            .password(password);
        let tls = tls(login)?;
        let as_begun = args.selection.is_empty_but_for_systems();
        let prepared = match begun {
            Some(begun)
                if args.resume.is_none() || as_begun && (on.is_empty() || *on == begun.on) =>
            {
                let prepared = prepare_again(begun, &args.selection.systems, &testbed)?;
                if has_secret {
                    Invocation::sends_no_secret(&prepared.plan, on)?;
                }
                prepared
            }
            _ => {
                let mut selection = args.selection.clone();
                selection.elsewhere = hosts.is_some();
                prepare(&selection, &testbed)?
            }
        }
        .reached_by(&tls);
        raise_nofile()
            .map_err(|e| Ending::not_valid(format!("cannot raise the limit of open files: {e}")))?;
        let processes = capacity::check(&prepared.plan.trials, &prepared.systems, &client)?;
        capacity::check_limits(&prepared.plan, &prepared.systems, &client, processes)?;
        Proposer::new(&prepared, &client, processes)?;
        let count = hosts.map(|hosts| hosts.count() as u32);
        if let Some(begun) = begun {
            begun.on_hosts(count)?;
        }
        match hosts {
            Some(hosts) => hosts::check(hosts, &client, &prepared.plan.trials)?,
            None => networks::check(&prepared.plan.trials)?,
        }
        let invocation = match begun {
            Some(begun) => begun.clone(),
            None => Invocation::new(&prepared, &args.selection, &client, login, count)
                .map_err(Ending::not_valid)?,
        };
        Ok(Ready {
            prepared,
            invocation,
            client,
            testbed,
            tls,
            processes,
        })
    }

    /// Runs what is not done yet, on other hosts if there are any, and writes results and page. Systems
    /// that it has started are stopped at the end.
    ///
    /// # Errors
    /// If it cannot be completed; trials measured before are stored.
    pub fn carry_out(
        self,
        args: &RunArgs,
        endpoint: Option<&Endpoint>,
        hosts: Option<&Arc<Hosts>>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Done, Ending> {
        let prepared = self.prepared;
        let proposer = Proposer::new(&prepared, &self.client, self.processes)?;
        let calibration = calibration(args, &self.testbed, stop);
        let mut folder = open_folder(args, &prepared, &self.invocation, calibration.as_ref())?;
        let mut progress = progress(args, &proposer, &folder, endpoint);
        trials(
            &prepared,
            (self.testbed, hosts),
            (&self.client, &proposer),
            self.tls,
            &mut folder,
            &mut progress,
            stop,
        )?;
        let trials = &folder.results().trials;
        let measured: Cow<'_, [Trial]> = match prepared.plan.search {
            Some(_) => trials
                .iter()
                .filter(|t| t.search.is_none())
                .cloned()
                .collect(),
            None => Cow::Borrowed(trials),
        };
        let criteria = evaluated(&prepared.plan, &proposer.criteria);
        let criteria = criteria.map(|spec| evaluate(&measured, spec)).collect();
        let judged = pubgauge_report::claims::judge(folder.results(), &prepared.plan.claims);
        folder.judged(judged);
        folder.finish(criteria).map_err(Ending::not_valid)?;
        let results = folder.results();
        Ok(Done {
            page: write_page(folder.path(), results)?,
            checks: gate::of_run(results),
            results: results.clone(),
            folder: folder.path().to_owned(),
        })
    }
}

/// Progress over the trials that are not done yet.
fn progress(
    args: &RunArgs,
    proposer: &Proposer<'_>,
    folder: &RunFolder,
    endpoint: Option<&Endpoint>,
) -> Progress {
    let left = proposer.left(&folder.results().trials);
    let shown = endpoint.map(Endpoint::shown);
    let progress = Progress::new(proposer.plan(), &left, args.output.quiet, shown);
    if let Some(endpoint) = endpoint {
        let (address, dir) = (endpoint.address(), folder.path().display());
        progress.say(&format!("live figures of {dir}: http://{address}/metrics"));
    }
    progress
}

/// Runs what is not done yet, storing each trial before the next begins.
fn trials(
    prepared: &Prepared,
    (testbed, hosts): (Testbed, Option<&Arc<Hosts>>),
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
        kept: Kept::default(),
    };
    // When a system that keeps running has nothing left of its last trial, by system.
    let mut settled = BTreeMap::<String, Instant>::new();
    let mut not_counted = BTreeSet::new();
    let mut networks = Networks::new(&folder.results().networks);
    while !stop.load(Relaxed) {
        let begun = Instant::now();
        let Some(proposal) = proposer.next(&folder.results().trials)? else {
            break;
        };
        let trial = &proposal.trial;
        let Some(chosen) = prepared.systems.get(&trial.system) else {
            return Err(Ending::not_valid(format!(
                "there is no system {}",
                trial.system
            )));
        };
        if let Some(until) = settled.remove(&trial.system) {
            settle(until, progress, stop);
        }
        if let Some(hosts) = hosts
            && !hosts::gather_again(hosts, stop, &mut |words| progress.say(words))?
        {
            break;
        }
        let network = match hosts {
            Some(_) => None,
            None => networks.of(trial, |what| progress.say(what))?,
        };
        folder.on_networks(networks.infos().to_vec());
        progress.trial(trial);
        bench.client = ClientArgs {
            processes: capacity::processes(trial, chosen, client, proposal.processes),
            ..client.clone()
        }
        .client(&program, share(&trial.client_limits));
        if let Some(hosts) = hosts {
            let sides = hosts::sides(hosts, trial)?;
            bench.client.workers = hosts::placed(bench.client.workers, &sides);
            bench.client.hosts = Some((hosts.clone(), sides));
        } else if let Some(network) = &trial.network {
            let workers = &mut bench.client.workers;
            workers.publisher_hosts = network.publisher.hosts;
            workers.subscriber_hosts = network.subscriber.hosts;
        }
        let job = Job {
            asked: Trial {
                id: trial.order,
                cell: trial.cell.clone(),
                system: System {
                    name: trial.system.clone(),
                    ..System::default()
                },
                settings: (*trial.settings).clone(),
                settings_name: trial.settings_name.clone(),
                axes: axes(trial),
                mappings: prepared.mappings(trial),
                repeat: trial.repeat,
                search: proposal.search,
                limit_share: proposal.limit_share,
                ..Trial::default()
            },
            system: &chosen.file,
            variant: chosen.variant.as_deref(),
            driver: chosen.driver.clone(),
            of_flows: trial
                .of_flows
                .iter()
                .map(|own| (own.clone(), chosen.resolve(own).unwrap_or_default()))
                .collect(),
            pacing_within: trial.pacing_within,
            share: share(&trial.limits),
            counts: Counts {
                system_calls: trial.count_system_calls,
                interface: trial.count_interface.clone(),
            },
            keep_running: trial.keep_running,
            workload: &trial.workload,
            brokers: trial.brokers,
            network,
        };
        let (mut done, files) = perform(&job, &bench, progress);
        done.took_s = begun.elapsed().as_secs_f64();
        // An interrupted trial is not stored: --resume measures it whole.
        if stop.load(Relaxed) && done.circumstances.not_run.is_some() {
            break;
        }
        progress.done(&done);
        for why in counted::not_counted(&done) {
            if not_counted.insert(why.clone()) {
                progress.say(&why);
            }
        }
        if chosen.file.kind == Kind::External || trial.keep_running {
            let left = Duration::from_secs_f64(settling_s(&done));
            settled.insert(trial.system.clone(), Instant::now() + left);
        }
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
        }
        if prepared.plan.search.is_some() {
            let searches = tell(proposer, folder)?;
            if let Some(search) = proposal
                .search
                .and_then(|s| searches.get(s.search as usize))
            {
                progress.say(&format!("  {}", so_far(search)));
            }
        }
    }
    if let Some(pairs) = &proposer.pairs {
        let (trials, study) = (&folder.results().trials, &folder.results().study);
        let planned = match prepared.plan.rounds() {
            // One more than there are, until the comparisons end.
            Some(_) => trials.len() as u32 + u32::from(pairs.next(trials).is_some()),
            None => study.planned_trials,
        };
        let comparisons = pairs.so_far(trials);
        folder
            .compared(comparisons, planned)
            .map_err(Ending::not_valid)?;
    }
    if prepared.plan.search.is_some() && !stop.load(Relaxed) {
        tell(proposer, folder)?;
        for cell in &folder.results().not_measured {
            progress.say(&format!("not measured: {}: {}", cell.cell, cell.reason));
        }
    }
    for words in bench.kept.stop() {
        progress.say(&words);
    }
    progress.finish();
    Ok(())
}

/// Stores the results of searches so far, with the number of planned trials and the cells not
/// measured.
fn tell(proposer: &Proposer<'_>, folder: &mut RunFolder) -> Result<Vec<Search>, Ending> {
    let trials = &folder.results().trials;
    let searches = proposer.searches(trials);
    let (planned, not_measured) = (proposer.planned(trials), proposer.not_measured(trials));
    let told = folder.tell(searches.clone(), not_measured, planned);
    told.map_err(Ending::not_valid)?;
    Ok(searches)
}

/// Waits until a system that keeps running has, as far as can be known, nothing left of a trial.
fn settle(until: Instant, progress: &Progress, stop: &Arc<AtomicBool>) {
    let seconds = until.duration_since(Instant::now()).as_secs_f64();
    if seconds >= 1.0 {
        progress.say(&format!(
            "  waiting {seconds:.0} s for what the last trial left in the system"
        ));
    }
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

/// Checks that threads may have this priority, on one of its own.
fn realtime(priority: Option<u8>) -> Result<(), Ending> {
    let Some(priority) = priority else {
        return Ok(());
    };
    let tried = std::thread::spawn(move || pubgauge_testbed::set_realtime(priority)).join();
    match tried {
        Ok(Err(error)) => Err(Ending::bad_input(format!("--realtime {priority}: {error}"))),
        _ => Ok(()),
    }
}

/// The stored calibration of this machine. The first look makes one if there is none, so that new
/// users need not know of it. If that fails, the run goes on without.
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
                tell!("the calibration is not kept for later runs: {error:#}");
            }
            Some(calibration)
        }
        Err(error) => {
            if !stop.load(Relaxed) {
                tell!("not calibrated: {error:#}");
            }
            None
        }
    }
}

/// How systems are reached by TLS, if the arguments say so.
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
