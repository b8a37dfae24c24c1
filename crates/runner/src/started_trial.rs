//! A trial whose system is up: it is measured, and then its system is stopped or left for the next one.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pubgauge_driver::{Clock, Mark};
use pubgauge_engine::assignment::Brief;
use pubgauge_engine::conductor::{TrialEnd, TrialRecord, TrialSpec, run};
use pubgauge_engine::parts::bounds;
use pubgauge_figures::model::{Circumstances, CountCheck};
use pubgauge_results::store::TrialFiles;
use pubgauge_testbed::{OwnMemory, Stopped, SystemFile, SystemKind};

use crate::circumstances::{circumstances, exhausted, is_steady};
use crate::convert::{self, Beside};
use crate::failures;
use crate::hosts::Clocks;
use crate::instances::Instances;
use crate::job::{Environment, Job, Watch};
use crate::limits::MachineShare;
use crate::logs::logs;
use crate::observe::{Observed, SampleTimes, Watcher};
use crate::on_request::{CountedOnRequest, CountersOnRequest};
use crate::running_system::{How, Kept};
use crate::sizes::SizeMeter;
use crate::worker_thread::prepare_thread;
use crate::workers_place::WorkersPlace;

/// A trial's record, the observations beside it, and its files.
pub type Measured = (TrialRecord, Beside, TrialFiles);

/// A trial whose system is up.
pub struct StartedTrial<'a> {
    job: &'a Job<'a>,
    environment: &'a Environment<'a>,
    spec: TrialSpec,
    running: Instances,
    /// How the system was started, if it may stay up.
    how: Option<How>,
    machine: MachineShare,
    workers: WorkersPlace,
    /// Systems that did not end in order, each with how.
    not_in_order: Vec<String>,
}

/// The record and observations of a trial until its clients had closed.
struct Observations {
    record: TrialRecord,
    observed: Observed,
    counted: CountedOnRequest,
    clocks: Option<Clocks>,
    checks: Vec<CountCheck>,
    own_memory: OwnMemory,
    errors: Vec<String>,
}

impl<'a> StartedTrial<'a> {
    /// Starts the system, or takes the one in `kept` if the trial would start that in the same way.
    ///
    /// # Errors
    /// Why the trial cannot begin.
    pub fn start(
        job: &'a Job<'a>,
        environment: &'a Environment<'a>,
        kept: &Kept,
    ) -> Result<Self, String> {
        // The mark distinguishes this run from others on the same system, and its clients from theirs.
        let mark = Mark::random();
        let brief = Brief::new(job.workload.marked(&mark.hex_digits()));
        let brief = brief.map_err(|error| error.to_string())?;
        free_memory();
        let mut system = SystemFile {
            settings: serde_json::to_string(&job.asked.settings.settings).ok(),
            options: options_of(job),
            ..job.system.clone()
        };
        if job.setup.has_sized_broker_hosts() {
            (system.limits.cores, system.limits.memory_mib) = (None, None);
        }
        let instances = job.setup.brokers.max(1) as usize;
        let machine = MachineShare::new(
            &mut system,
            job.setup.limits,
            instances,
            &environment.client,
        );
        let how = How::for_job(job, &system);
        let mut not_in_order = Vec::new();
        let running = match kept.take(how.as_ref(), &mut not_in_order)? {
            Some(kept) => kept.for_trial(job, mark),
            None => Instances::start(job, &system, environment, mark)?,
        };
        let workers = WorkersPlace::for_job(job, environment);
        let here = TrialSpec::local(
            brief,
            job.driver.clone(),
            running.targets(),
            Clock::Monotonic,
            prepare_thread,
        );
        let spec = TrialSpec {
            settings: job.asked.all_settings().cloned().collect(),
            workers: environment.client.workers,
            mark,
            client: job.setup.client,
            pin_to: machine.pin.clone(),
            place: workers.engine_place().unwrap_or_else(|| here.place.clone()),
            ..here
        };
        Ok(StartedTrial {
            job,
            environment,
            spec,
            running,
            how,
            machine,
            workers,
            not_in_order,
        })
    }

    /// Runs the trial to its end, and stops the system, or leaves it in `kept` if it may stay up.
    pub fn measure(self, kept: &Kept, watch: &mut dyn Watch) -> Measured {
        let seen = self.observe(watch);
        self.conclude(seen, kept)
    }

    /// Whether the system works inside the client's own threads or processes.
    fn is_brokerless(&self) -> bool {
        self.job.system.kind == SystemKind::Library
    }

    /// Has the engine run the trial, while system, client and machine are observed.
    fn observe(&self, watch: &mut dyn Watch) -> Observations {
        let (job, running) = (self.job, &self.running);
        let mut counter = self.counter();
        counter.quiet();
        let measure = job.workload.phases.measure.latest();
        let times = SampleTimes {
            interval: job.workload.phases.record_length(),
            bounds: bounds(&job.workload.phases),
            length: measure,
        };
        let stop = &self.environment.stop;
        let brokers = running.brokers(&self.spec.brief);
        let mut watcher = Watcher::new(running, brokers, watch, stop.clone(), times, &mut counter);
        if job.ends_once_hopeless && is_steady(job.workload) {
            watcher.end_once_hopeless();
        }
        let counting = running.begin_counting(&self.spec.settings);
        let record = run(&self.spec, &mut watcher, stop);
        let clocks = self.workers.clocks();
        let mut observed = watcher.finish();
        observed.elsewhere = self.workers.are_elsewhere();
        counter.quiet();
        if pubgauge_testbed::lies_in_memory(self.environment.scratch) {
            observed.processes.system_written_bytes = None;
        }
        if observed.died.is_empty() {
            observed.died.extend(death(running, &record));
        }
        let own = (self.environment.own_cost, job.setup.client.realtime);
        let counted = counter.finish(job.workload, &record, own);
        let ours = (&*self.spec.brief, &record);
        let brokers = &mut observed.processes.brokers;
        let checks = running.finish_counting(&counting, job, ours, brokers);
        let (own_memory, errors) = match running.own_memory(&counting) {
            Ok(memory) => (memory, Vec::new()),
            Err(why) => {
                let error = format!("the system's memory was not read: {why}");
                (OwnMemory::default(), vec![error])
            }
        };
        Observations {
            record,
            observed,
            counted,
            clocks,
            checks,
            own_memory,
            errors,
        }
    }

    /// Counts what the setup asks for, and what is used of hosts of given sizes.
    fn counter(&self) -> CountersOnRequest {
        let of_workers = self.workers.shares().into_iter().flatten();
        CountersOnRequest::new(
            &self.job.setup.counts,
            self.job.network.as_ref(),
            SizeMeter::new(self.running.shares.iter().chain(of_workers)),
            self.is_brokerless(),
        )
    }

    /// Gathers what the result stores; the system is stopped, or left in `kept`.
    fn conclude(self, seen: Observations, kept: &Kept) -> Measured {
        let job = self.job;
        let circumstances = self.circumstances(&seen.record, &seen.observed);
        let cell = format!("trial {}, cell {}", job.asked.id, job.asked.cell);
        let (logs, mut errors) = match logs(job.workload, &seen.record, &cell) {
            Ok(logs) => (logs, Vec::new()),
            Err(why) => (Vec::new(), vec![why]),
        };
        errors.extend(seen.errors);
        let files = TrialFiles {
            logs,
            configs: self.running.configs(),
        };
        let limits = self.machine.held(&self.running.held());
        let mut beside = Beside {
            driver: Some(job.driver.clone()),
            version: self.running.version().or_else(|| job.driver.library()),
            limits: limits.or_else(|| self.running.host_limits()),
            client_limits: self.workers.limits(job.setup.client.realtime),
            counted: seen.counted,
            clocks: seen.clocks,
            checks: seen.checks,
            own_memory: seen.own_memory,
            errors,
            observed: seen.observed,
            ..Beside::nothing(circumstances)
        };
        self.put_away(&mut beside, kept);
        (seen.record, beside, files)
    }

    /// The circumstances, as long as the system is up.
    fn circumstances(&self, record: &TrialRecord, observed: &Observed) -> Circumstances {
        Circumstances {
            not_run: not_run(record, observed),
            exhausted: exhausted(record),
            system_died: observed.died.clone(),
            system_in_client: self.is_brokerless(),
            order_promised: keeps_order(self.job),
            cores: self.environment.cores,
            quota_cores: self.environment.quota_cores,
            client: self.job.setup.client,
            earlier_trials: self.running.earlier_trials,
            ..circumstances(self.job.workload)
        }
    }

    /// Leaves the system in `kept` if it may stay up and nothing went wrong, and stops it otherwise.
    fn put_away(mut self, beside: &mut Beside, kept: &Kept) {
        let circumstances = &mut beside.circumstances;
        let is_undisturbed = circumstances.not_run.is_none() && beside.observed.died.is_empty();
        match self.how.filter(|_| is_undisturbed) {
            Some(how) => kept.keep(self.job, self.running, how),
            None => {
                let (ends, words) = self.running.stop(&self.job.asked.system);
                self.not_in_order.extend(words);
                // One that is still running would disturb all later trials.
                if ends.contains(&Stopped::Stuck) {
                    circumstances.not_run = self.not_in_order.last().cloned();
                }
            }
        }
        beside.not_in_order = self.not_in_order;
    }
}

/// Gives free pages back to the kernel: memory that an earlier trial has freed must not count for this one.
fn free_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: gives free pages back to the kernel; no pointer is affected.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Whether the system promises order with all settings of the trial.
fn keeps_order(job: &Job<'_>) -> bool {
    let mut settings = job.asked.all_settings();
    settings.all(|settings| job.driver.keeps_order(settings))
}

/// How the system ended, if it has. Connections end with a process, a moment before its parent is
/// notified: where some were lost, this waits for that moment.
fn death(running: &Instances, record: &TrialRecord) -> Option<String> {
    let lost = record.recordings.iter().any(|r| r.lost > 0);
    let patience = Instant::now() + Duration::from_millis(if lost { 500 } else { 0 });
    loop {
        let death = running.check().err();
        if death.is_some() || Instant::now() >= patience {
            return death;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Why the trial did not run as planned: the first error of a client if the system did not end, and
/// without errors that follow from the system's end.
fn not_run(record: &TrialRecord, observed: &Observed) -> Option<String> {
    match &record.outcome {
        TrialEnd::Aborted(_) if observed.ended_by_system => {
            Some("it was ended early, with the system".into())
        }
        TrialEnd::Aborted(why) if observed.died.is_empty() => {
            let each = failures::of_clients(record, None);
            let first = each.iter().find(|failure| !why.contains(&failure.why));
            let first = first.map_or(String::new(), |failure| format!("; first of all {failure}"));
            Some(format!("it was ended early: {why}{first}"))
        }
        outcome => convert::not_run(outcome),
    }
}

/// The options of the system's own configuration that the settings give.
fn options_of(job: &Job<'_>) -> BTreeMap<String, serde_json::Value> {
    let options = &job.asked.settings.settings.options;
    options.get(&job.system.name).cloned().unwrap_or_default()
}
