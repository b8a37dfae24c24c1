//! A run of one study: checked, then carried out from its first trial to its page.

mod run_folder;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pubgauge_campaign::tuning::{Optimizer, Tuner, TuningPlan};
use pubgauge_campaign::{Campaign, ClientOptions, Prepared, Proposer};
use pubgauge_command::exit::{Ending, tell};
use pubgauge_command::options::Login;
use pubgauge_driver::Tls;
use pubgauge_export::check::Check;
use pubgauge_figures::model::Results;
use pubgauge_hosts::Hosts;
use pubgauge_results::store::RunFolder;
use pubgauge_study::Plan;
use pubgauge_testbed::{Catalog, Testbed, raise_nofile};

use crate::args::{RunArgs, Selection};
use crate::calibrate::Calibration;
use crate::ending;
use crate::endpoint::MetricsEndpoint;
use crate::invocation::Invocation;
use crate::page::write_page;
use crate::prepare::{prepare, prepare_again};
use crate::progress::Progress;
use crate::secret::{self, Origin};
use crate::{addresses, calibrate, crowd, drivers, gate, identities, signals};
pub use run_folder::default_folder;
use run_folder::open_folder;

/// A run that can begin or be resumed: everything is checked, nothing is started and nothing is changed on
/// disk.
pub struct Ready {
    /// Plan and systems.
    pub prepared: Prepared,
    /// How it begins, to be stored in its folder.
    pub invocation: Invocation,
    client: ClientOptions,
    testbed: Testbed,
    tls: Option<Tls>,
    processes: Option<u32>,
    /// Seconds that repeats for undecided claims may take.
    budget_s: Option<f64>,
}

/// The result of a run.
pub struct Done {
    /// The checks for a gate.
    pub checks: Vec<Check>,
    pub results: Results,
    pub page: PathBuf,
    pub folder: PathBuf,
}

/// A tuning that leads the trials of a run in place of its plan, and gets them at the end.
pub struct Leading<'l> {
    pub plan: &'l TuningPlan,
    pub optimizer: Option<Box<dyn Optimizer>>,
    pub conclude: &'l mut dyn FnMut(&Prepared, &Tuner<'_>, &Results),
}

impl Ready {
    /// Checks a run with these arguments; `begun` is how it was begun, or would have been, if it is
    /// resumed.
    ///
    /// # Errors
    /// Errors in the arguments, the study, the systems or this host.
    pub fn check_run(
        args: &RunArgs,
        begun: Option<&Invocation>,
        hosts: Option<&Arc<Hosts>>,
    ) -> Result<Ready, Ending> {
        let client = match begun {
            Some(begun) => begun.client(&args.client.options())?,
            None => args.client.options(),
        };
        let (login, on) = (&args.login, &args.selection.on);
        let password = login.password()?;
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
            .password(password.clone());
        let tls = tls(login)?;
        let (prepared, origin) = prepared(args, begun, &testbed, hosts.is_some())?;
        let own = identities::have_secrets(&prepared.plan);
        if password.is_some() || login.key.is_some() || own {
            let named = [&on[..], &args.login_at].concat();
            secret::check(&prepared.plan, &named, origin)?;
        }
        identities::check_certificates(&prepared.plan, tls.as_ref())?;
        let prepared = prepared.reached_by(&tls);
        if hosts.is_none() {
            idle_polling(&prepared.plan)?;
        }
        raise_nofile()
            .map_err(|e| Ending::not_valid(format!("cannot raise the limit of open files: {e}")))?;
        let processes = prepared
            .check(&client, hosts.map(|hosts| &**hosts))
            .map_err(ending)?;
        let count = hosts.map(|hosts| hosts.count() as u32);
        if let Some(begun) = begun {
            begun.on_hosts(count)?;
        }
        if begun.is_none() {
            addresses::confirm_search(&prepared, args.yes)?;
        }
        let mut invocation = match begun {
            Some(begun) => begun.clone(),
            None => Invocation::new(&prepared, &args.selection, &client, login, count)
                .map_err(Ending::not_valid)?,
        };
        let budget_s = args.until.seconds()?.or(invocation.until_decided_s);
        invocation.until_decided_s = budget_s;
        Ok(Ready {
            prepared,
            invocation,
            client,
            testbed,
            tls,
            processes,
            budget_s,
        })
    }

    /// Makes it one of so many studies, which share the budget for undecided claims that the arguments give. A study
    /// that goes on as it was begun has its share already.
    pub fn one_of(mut self, studies: usize, args: &RunArgs) -> Ready {
        if args.until.until_decided {
            self.budget_s = self.budget_s.map(|all| all / studies as f64);
            self.invocation.until_decided_s = self.budget_s;
        }
        self
    }

    /// Runs what is not done yet, on other hosts if there are any, and writes results and page. Systems
    /// that it has started are stopped at the end.
    ///
    /// # Errors
    /// If it cannot be completed; trials measured before are stored.
    pub fn carry_out(
        self,
        args: &RunArgs,
        endpoint: Option<&MetricsEndpoint>,
        hosts: Option<&Arc<Hosts>>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Done, Ending> {
        self.lead(args, endpoint, hosts, stop, None)
    }

    /// As [`Ready::carry_out`]; a tuning, if there is one, leads the trials.
    ///
    /// # Errors
    /// As [`Ready::carry_out`].
    pub fn lead(
        self,
        args: &RunArgs,
        endpoint: Option<&MetricsEndpoint>,
        hosts: Option<&Arc<Hosts>>,
        stop: &Arc<AtomicBool>,
        leading: Option<Leading<'_>>,
    ) -> Result<Done, Ending> {
        let prepared = self.prepared;
        // Other hosts may reach what this one does not.
        if hosts.is_none() {
            addresses::check_answers(&prepared, &self.testbed, self.tls.as_ref(), &|words| {
                args.output.remark(words)
            })?;
        }
        let proposer = Proposer::new(&prepared, &self.client, self.processes).map_err(ending)?;
        let needed = args.selection.is_first_look()
            || (prepared.plan.trials.iter()).any(|trial| {
                trial
                    .setup
                    .hosts
                    .as_ref()
                    .is_some_and(|hosts| !hosts.are_free())
            });
        let calibration = calibration(args, &self.testbed, needed, stop);
        let mut folder = open_folder(args, &prepared, &self.invocation, calibration.as_ref())?;
        // A run that once repeated what was undecided is judged as one that did.
        let budget_s = self.budget_s.or(folder.results().study.until_decided_s);
        folder.until_decided(budget_s);
        let mut proposer = proposer.until_decided(budget_s);
        let (tuner, conclude) = match leading {
            Some(leading) => {
                let tuner = Tuner::new(&prepared, leading.plan, leading.optimizer);
                (Some(tuner.map_err(ending)?), Some(leading.conclude))
            }
            None => (None, None),
        };
        if let Some(tuner) = &tuner {
            proposer = proposer.led_by(tuner);
        }
        for words in crowd::quota().into_iter().chain(crowd::warn_before()) {
            args.output.remark(&words);
        }
        let mut progress = progress(args, &proposer, &folder, endpoint);
        let scratch = signals::scratch()
            .map_err(|e| Ending::not_valid(format!("cannot make a private folder: {e}")))?;
        let campaign = Campaign {
            prepared: &prepared,
            proposer: &proposer,
            client: &self.client,
            testbed: self.testbed,
            tls: self.tls,
            hosts: hosts.cloned(),
            own_cost: calibration.as_ref().map(Calibration::own_cost),
            scratch: scratch.path(),
            stop,
        };
        campaign.run(&mut folder, &mut progress).map_err(ending)?;
        progress.finish();
        pubgauge_campaign::judge(&proposer, &mut folder).map_err(ending)?;
        let results = folder.results();
        if let (Some(tuner), Some(conclude)) = (&tuner, conclude) {
            conclude(&prepared, tuner, results);
        }
        Ok(Done {
            page: write_page(folder.path(), results)?,
            checks: gate::of_run(results),
            results: results.clone(),
            folder: folder.path().to_owned(),
        })
    }
}

/// The plan of a run, and where the addresses come from that its command line does not name. `elsewhere`: the workers are
/// to be on other hosts.
fn prepared(
    args: &RunArgs,
    begun: Option<&Invocation>,
    testbed: &Testbed,
    elsewhere: bool,
) -> Result<(Prepared, Origin), Ending> {
    let on = &args.selection.on;
    let as_begun = args.selection.is_empty_but_for_systems();
    let goes_on = |begun: &&Invocation| {
        args.resume.is_none() || as_begun && (on.is_empty() || *on == begun.on)
    };
    if let Some(begun) = begun.filter(goes_on) {
        let prepared = prepare_again(begun, &args.selection.systems, testbed)?;
        return Ok((prepared, Origin::Resumed));
    }
    let selection = Selection {
        elsewhere,
        ..args.selection.clone()
    };
    Ok((prepare(&selection, testbed)?, Origin::Study))
}

/// Progress over the trials that are not done yet.
fn progress(
    args: &RunArgs,
    proposer: &Proposer<'_>,
    folder: &RunFolder,
    endpoint: Option<&MetricsEndpoint>,
) -> Progress {
    let mut left = proposer.remaining(&folder.results().trials);
    if proposer.is_led() {
        // Their number is not known.
        left.clear();
    }
    let shown = endpoint.map(MetricsEndpoint::shared_figures);
    let progress = Progress::new(
        proposer.plan(),
        &left,
        proposer.is_led(),
        args.output.quiet,
        shown,
    );
    if let Some(endpoint) = endpoint {
        let (address, dir) = (endpoint.address(), folder.path().display());
        progress.print_line(&format!("live figures of {dir}: http://{address}/metrics"));
    }
    progress
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

/// Checks that idle processors can be had to poll, where a trial asks for it.
fn idle_polling(plan: &Plan) -> Result<(), Ending> {
    if plan
        .trials
        .iter()
        .any(|trial| trial.setup.client.poll_when_idle)
    {
        let tried = pubgauge_testbed::poll_when_idle();
        tried.map_err(|error| Ending::bad_input(format!("client.poll-when-idle: {error}")))?;
    }
    Ok(())
}

/// The stored calibration of this machine. One is made if there is none and it is `needed`: by the first look, so that
/// new users need not know of it, and on hosts of given sizes, where pubgauge's own part is told. If that fails, the
/// run goes on without.
fn calibration(
    args: &RunArgs,
    testbed: &Testbed,
    needed: bool,
    stop: &Arc<AtomicBool>,
) -> Option<Calibration> {
    if let Some(known) = calibrate::stored() {
        return Some(known);
    }
    if args.resume.is_some() || !needed {
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
    let passphrase = login.key_passphrase()?;
    let given = login.ca.is_some()
        || login.cert.is_some()
        || login.insecure
        || !login.alpn.is_empty()
        || passphrase.is_some();
    if !given {
        return Ok(None);
    }
    let tls = Tls {
        ca_file: login.ca.clone(),
        ca_pem: None,
        cert_file: login.cert.clone(),
        key_file: login.key.clone(),
        passphrase,
        alpn: login.alpn.clone(),
        server_name: None,
        insecure: login.insecure,
    };
    if login.ca.is_some() || login.cert.is_some() {
        // A file that cannot be read is told before anything starts.
        pubgauge_net::tls::configure(&tls).map_err(Ending::bad_input)?;
    }
    Ok(Some(tls))
}
