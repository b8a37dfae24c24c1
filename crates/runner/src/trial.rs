//! One trial from beginning to end: system up, engine, figures, verdict, system down.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;
use pubgauge_driver::{Clock, DriverError, Mark};
use pubgauge_engine::assignment::{Assignment, Brief};
use pubgauge_engine::conductor::{TrialEnd, TrialRecord, TrialSpec, run};
use pubgauge_engine::link::Place;
use pubgauge_engine::parts::bounds;
use pubgauge_engine::timetable::interval_of;
use pubgauge_figures::model::{Circumstances, HeldLimits, Trial};
use pubgauge_results::store::TrialFiles;
use pubgauge_testbed::{IdlePolling, OwnMemory, Stopped, SystemFile, SystemKind};
use pubgauge_workload::{Arrivals, Workload};

use crate::convert::{self, Beside};
use crate::hosts::{Clocks, HostsPlace};
use crate::instances::Instances;
use crate::job::{Environment, Job, Watch};
use crate::limits;
use crate::logs::logs;
use crate::observe::{Observed, SampleTimes, Watcher};
use crate::on_request::CountersOnRequest;
use crate::processes::ProcessPlace;
use crate::running_system::{How, Kept};
use crate::sizes::{HostShares, SizeMeter};

/// The time of day; of a clock beyond the year 9999, which is as far as it can be written, the end of that.
pub fn now() -> Timestamp {
    written(SystemTime::now())
}

fn written(time: SystemTime) -> Timestamp {
    Timestamp::try_from(time).unwrap_or(Timestamp::MAX)
}

/// Runs a trial, on the system in `kept` if the trial would start that in the same way, and leaves its own there if it may stay
/// up. A trial that cannot begin is a broken one, with the reason; what was measured is in the result.
pub fn perform(
    job: &Job<'_>,
    environment: &Environment<'_>,
    kept: &Kept,
    watch: &mut dyn Watch,
) -> (Trial, TrialFiles) {
    let started = now().to_string();
    let (record, beside, files) = match measure(job, environment, kept, watch) {
        Ok(measured) => measured,
        Err(why) => not_begun(job, &why),
    };
    let beside = Beside {
        started,
        took_s: job.begun.elapsed().as_secs_f64(),
        ..beside
    };
    let trial = convert::trial(job.asked.clone(), job.workload, &record, beside);
    (trial, files)
}

/// What the engine recorded of a trial, what was seen beside it, and its files.
type Measured = (TrialRecord, Beside, TrialFiles);

/// A trial that did not begin.
fn not_begun(job: &Job<'_>, why: &str) -> Measured {
    let record = TrialRecord::nothing(TrialEnd::NotReady(why.into()), job.workload.flows.len());
    let beside = Beside {
        errors: vec![convert::one_line(why)],
        ..Beside::nothing(Circumstances {
            not_run: convert::not_run(&record.outcome),
            ..Circumstances::default()
        })
    };
    (record, beside, TrialFiles::default())
}

/// Runs a trial to its end.
///
/// # Errors
/// Why it cannot begin.
fn measure(
    job: &Job<'_>,
    environment: &Environment<'_>,
    kept: &Kept,
    watch: &mut dyn Watch,
) -> Result<Measured, String> {
    // The mark distinguishes this run from others on the same system, and its clients from theirs.
    let mark = Mark::random();
    let brief = Brief::new(job.workload.marked(&mark.word()));
    let brief = brief.map_err(|error| error.to_string())?;
    // Memory that an earlier trial has freed must not count for this one.
    #[cfg(target_env = "gnu")]
    // SAFETY: gives free pages back to the kernel; no pointer is affected.
    unsafe {
        libc::malloc_trim(0);
    }
    let mut system = SystemFile {
        settings: serde_json::to_string(&job.asked.settings.settings).ok(),
        ..job.system.clone()
    };
    let instances = job.setup.brokers.max(1) as usize;
    if job.setup.has_sized_broker_hosts() {
        (system.limits.cores, system.limits.memory_mib) = (None, None);
    }
    let shared = limits::MachineShare::new(
        &mut system,
        job.setup.limits,
        instances,
        &environment.client,
    );
    let how = How::of(job, &system);
    let mut not_in_order = Vec::new();
    let running = match kept.take(how.as_ref(), &mut not_in_order)? {
        Some(kept) => kept.again(job, mark),
        None => Instances::start(job, &system, environment, mark)?,
    };
    let brokerless = job.system.kind == SystemKind::Library;
    let workers = WorkersPlace::of(job, environment, brokerless);
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
        pin_to: shared.pin.clone(),
        place: workers.place().unwrap_or_else(|| here.place.clone()),
        ..here
    };
    let of_workers = workers.shares().into_iter().flatten();
    let sized = SizeMeter::new(running.shares.iter().chain(of_workers));
    let mut counter =
        CountersOnRequest::new(&job.setup.counts, job.network.as_ref(), sized, brokerless);
    counter.quiet();
    let mut watcher = Watcher::new(
        &running,
        running.brokers(&spec.brief),
        watch,
        environment.stop.clone(),
        SampleTimes {
            interval: interval_of(job.workload.phases.measure.latest()),
            bounds: bounds(&job.workload.phases),
            length: job.workload.phases.measure.latest(),
        },
        &mut counter,
    );
    let counting = running.begin_counting(&spec.settings);
    let record = run(&spec, &mut watcher, &environment.stop);
    let clocks = workers.clocks();
    let mut observed = watcher.finish();
    observed.elsewhere = workers.are_elsewhere();
    counter.quiet();
    if pubgauge_testbed::lies_in_memory(environment.scratch) {
        observed.processes.system_written_bytes = None;
    }
    if observed.died.is_empty() {
        observed.died.extend(death(&running, &record));
    }
    let version = running.version().or_else(|| job.driver.library());
    let realtime = job.setup.client.realtime;
    let own = (environment.own_cost, realtime);
    let counted = counter.finish(job.workload, &record, own);
    let limits = shared.held(&running.held());
    let limits = limits.or_else(|| running.host_limits());
    let ours = (&*spec.brief, &record);
    let brokers = &mut observed.processes.brokers;
    let checks = running.finish_counting(&counting, job, ours, brokers);
    let (own_memory, unread) = match running.own_memory(&counting) {
        Ok(told) => (told, None),
        Err(why) => (OwnMemory::default(), Some(why)),
    };
    let of = format!("trial {}, cell {}", job.asked.id, job.asked.cell);
    let (logs, mut errors) = match logs(job.workload, &record, &of) {
        Ok(logs) => (logs, Vec::new()),
        Err(why) => (Vec::new(), vec![why]),
    };
    errors.extend(unread.map(|why| format!("the system's memory was not read: {why}")));
    let files = TrialFiles {
        logs,
        configs: running.configs(),
    };
    let mut circumstances = Circumstances {
        not_run: not_run(&record, &observed),
        exhausted: exhausted(&record),
        system_died: observed.died.clone(),
        system_in_client: brokerless,
        order_promised: keeps_order(job),
        cores: environment.cores,
        quota_cores: environment.quota_cores,
        client: job.setup.client,
        earlier_trials: running.earlier_trials,
        ..circumstances(job.workload)
    };
    let undisturbed = circumstances.not_run.is_none() && observed.died.is_empty();
    match how.filter(|_| undisturbed) {
        Some(how) => kept.put(job, running, how),
        None => {
            let (ends, words) = running.stop(&job.asked.system);
            not_in_order.extend(words);
            // One that is still running would disturb all later trials.
            if ends.contains(&Stopped::Stuck) {
                circumstances.not_run = not_in_order.last().cloned();
            }
        }
    }
    let beside = Beside {
        driver: Some(job.driver.clone()),
        version,
        observed,
        counted,
        limits,
        client_limits: workers.limits(job.setup.client.realtime),
        clocks,
        checks,
        own_memory,
        errors,
        not_in_order,
        ..Beside::nothing(circumstances)
    };
    Ok((record, beside, files))
}

/// Where the workers of a trial are.
enum WorkersPlace {
    /// Threads of this program.
    Here,
    /// Processes on this host.
    Processes(Arc<ProcessPlace>),
    /// Processes on other hosts.
    Hosts(Arc<HostsPlace>),
}

impl WorkersPlace {
    fn of(job: &Job<'_>, environment: &Environment<'_>, brokerless: bool) -> WorkersPlace {
        let client = &environment.client;
        if let Some((all, sides)) = client.hosts.clone() {
            WorkersPlace::Hosts(Arc::new(HostsPlace::new(all, sides, brokerless)))
        } else if let Some(processes) = client.processes.clone() {
            let network = job.network.clone();
            WorkersPlace::Processes(Arc::new(ProcessPlace::new(
                processes,
                network,
                job.setup.hosts.clone(),
            )))
        } else {
            WorkersPlace::Here
        }
    }

    fn place(&self) -> Option<Arc<dyn Place>> {
        match self {
            WorkersPlace::Here => None,
            WorkersPlace::Processes(place) => Some(place.clone()),
            WorkersPlace::Hosts(place) => Some(place.clone()),
        }
    }

    fn are_elsewhere(&self) -> bool {
        matches!(self, WorkersPlace::Hosts(_))
    }

    /// The clocks of other hosts until now.
    fn clocks(&self) -> Option<Clocks> {
        match self {
            WorkersPlace::Hosts(place) => Some(place.clocks()),
            _ => None,
        }
    }

    /// Shares of the hosts of given sizes that they run on.
    fn shares(&self) -> Option<&HostShares> {
        match self {
            WorkersPlace::Processes(place) => Some(&place.shares),
            _ => None,
        }
    }

    /// How the limits of processes on this host were held.
    fn limits(&self, realtime: Option<u8>) -> Option<HeldLimits> {
        match self {
            WorkersPlace::Processes(place) => limits::of_workers(place, realtime),
            _ => None,
        }
    }
}

/// The resource that the client ran out of, in words.
pub fn exhausted(record: &TrialRecord) -> Option<String> {
    let names: Vec<&str> = record.exhausted.iter().map(|r| r.name()).collect();
    (!names.is_empty()).then(|| names.join(" and "))
}

/// Whether the system promises order with all settings of the trial.
fn keeps_order(job: &Job<'_>) -> bool {
    let mut settings = job.asked.all_settings();
    settings.all(|settings| job.driver.keeps_order(settings))
}

/// The circumstances of trials that follow from their workload.
pub fn circumstances(workload: &Workload) -> Circumstances {
    let varies = |arrivals: &Arrivals| {
        matches!(
            arrivals,
            Arrivals::OnOff { .. } | Arrivals::Bursts { .. } | Arrivals::Replay(_)
        )
    };
    let flows = &workload.flows;
    Circumstances {
        disconnects_allowed: workload.phases.disconnects_allowed,
        losses_allowed: workload.phases.losses_allowed,
        rate_varies_by_design: flows.iter().any(|f| {
            varies(&f.arrivals) || f.active_for.is_some() || f.start_offset.is_some_and(|ns| ns > 0)
        }),
        ..Circumstances::default()
    }
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
            let mut errors = record.recordings.iter().flat_map(|r| &r.errors);
            let first = errors.find(|error| *error != why);
            let first = first.map_or(String::new(), |error| format!("; first of all {error}"));
            Some(format!("it was ended early: {why}{first}"))
        }
        outcome => convert::not_run(outcome),
    }
}

thread_local! {
    /// Held until the worker's thread ends.
    static IDLE_POLLING: RefCell<Option<IdlePolling>> = const { RefCell::new(None) };
}

/// Sets timer slack, processor and priority of a worker's thread, and what idle processors do while it lives.
pub fn prepare_thread(assignment: &Assignment) -> Result<(), DriverError> {
    let slack = pubgauge_testbed::set_timer_slack(1);
    slack.map_err(|e| DriverError::new(format!("cannot set the timer slack: {e}")))?;
    if let Some(cpu) = assignment.pin_to {
        pubgauge_testbed::pin_to(cpu).map_err(|e| DriverError::new(e.to_string()))?;
    }
    if let Some(priority) = assignment.client.realtime {
        let set = pubgauge_testbed::set_realtime(priority);
        set.map_err(|e| DriverError::new(e.to_string()))?;
    }
    if assignment.client.poll_when_idle {
        let polling = pubgauge_testbed::poll_when_idle();
        let polling = polling.map_err(|e| DriverError::new(e.to_string()))?;
        IDLE_POLLING.set(Some(polling));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_beyond_what_can_be_written_is_no_panic() {
        let years = |n: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(n * 31_557_600);
        assert!(written(years(56)).to_string().starts_with("2026-"));
        assert!(written(years(100_000)).to_string().starts_with("9999-"));
    }
}
