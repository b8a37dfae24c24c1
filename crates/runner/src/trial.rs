//! One trial from beginning to end: system up, engine, figures, verdict, system down.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;
use pubgauge_driver::{Clock, Mark};
use pubgauge_engine::assignment::{Assignment, Brief};
use pubgauge_engine::conductor::{TrialEnd, TrialRecord, TrialSpec, run};
use pubgauge_engine::link::Place;
use pubgauge_engine::parts::bounds;
use pubgauge_engine::timetable::interval_of;
use pubgauge_results::model::{Circumstances, System, Trial, Verdict};
use pubgauge_results::store::TrialFiles;
use pubgauge_results::verdict::judge;
use pubgauge_testbed::{Kind, Stopped, SystemFile};
use pubgauge_workload::{Arrivals, Workload};

use crate::convert;
use crate::hosts::HostsPlace;
use crate::instances::Instances;
use crate::job::{Bench, Job, Watch};
use crate::limits;
use crate::observe::{Observed, Steps, Watcher};
use crate::on_request::Counter;
use crate::processes::ProcessPlace;
use crate::running_system::{How, Kept};
use crate::sizes::SizeMeter;

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
    bench: &Bench<'_>,
    kept: &Kept,
    watch: &mut dyn Watch,
) -> (Trial, TrialFiles) {
    let asked = Trial {
        system: System {
            version: "unknown".into(),
            ..job.asked.system.clone()
        },
        started: now().to_string(),
        ..job.asked.clone()
    };
    let broken = |why| (broken(job, asked.clone(), why), TrialFiles::default());
    // The mark distinguishes this run from others on the same system, and its clients from theirs.
    let mark = Mark::random();
    let brief = match Brief::new(job.workload.marked(&mark.word())) {
        Ok(brief) => brief,
        Err(why) => return broken(why),
    };
    // Memory that an earlier trial has freed must not count for this one.
    #[cfg(target_env = "gnu")]
    // SAFETY: gives free pages back to the kernel; no pointer is affected.
    unsafe {
        libc::malloc_trim(0);
    }
    let mut system = SystemFile {
        settings: serde_json::to_string(&job.asked.settings).ok(),
        ..job.system.clone()
    };
    let instances = job.brokers.max(1) as usize;
    if job.has_sized_broker_hosts() {
        (system.limits.cores, system.limits.memory_mib) = (None, None);
    }
    let shared = limits::Shared::new(&mut system, job.share, instances, &bench.client);
    let how = How::of(job, &system);
    let mut not_in_order = Vec::new();
    let running = kept.take(how.as_ref(), &mut not_in_order);
    let running = running.and_then(|kept| match kept {
        Some(kept) => Ok(kept.again(job, mark)),
        None => Instances::start(job, &system, bench, mark),
    });
    let running = match running {
        Ok(running) => running,
        Err(why) => return broken(why),
    };
    let targets = running.targets();
    let clock = Clock::Monotonic;
    let here = TrialSpec::local(brief, job.driver.clone(), targets, clock, prepare_thread);
    let processes = bench.client.processes.clone();
    let processes = processes.map(|processes| {
        let network = job.network.clone();
        Arc::new(ProcessPlace::new(processes, network, job.hosts.clone()))
    });
    let brokerless = job.system.kind == Kind::Library;
    let hosts = bench.client.hosts.clone();
    let hosts = hosts.map(|(all, sides)| Arc::new(HostsPlace::new(all, sides, brokerless)));
    let place: Arc<dyn Place> = match (&hosts, &processes) {
        (Some(hosts), _) => hosts.clone(),
        (None, Some(processes)) => processes.clone(),
        (None, None) => here.place.clone(),
    };
    let spec = TrialSpec {
        settings: std::iter::once(&job.asked.settings)
            .chain(job.of_flows.iter().map(|(settings, _)| settings))
            .cloned()
            .collect(),
        workers: bench.client.workers,
        mark,
        pacing_within: job.pacing_within,
        realtime: bench.client.realtime,
        pin_to: shared.pin.clone(),
        place,
        ..here
    };
    let workers = processes.iter().flat_map(|place| &place.shares);
    let sized = SizeMeter::new(running.shares.iter().chain(workers));
    let mut counter = Counter::new(&job.counts, job.network.as_ref(), sized, brokerless);
    counter.quiet();
    let mut watcher = Watcher::new(
        &running,
        Trial {
            brokers: running.brokers(&spec.brief),
            ..asked
        },
        watch,
        bench.stop.clone(),
        Steps {
            interval: interval_of(job.workload.phases.measure.latest()),
            bounds: bounds(&job.workload.phases),
            length: job.workload.phases.measure.latest(),
        },
        brokerless,
        &mut counter,
    );
    let counting = running.begin_counting(&spec.settings);
    let record = run(&spec, &mut watcher, &bench.stop);
    let clocks = hosts.as_ref().map(|hosts| hosts.clocks());
    let (mut asked, mut observed) = watcher.finish();
    observed.elsewhere = hosts.is_some();
    counter.quiet();
    if pubgauge_testbed::lies_in_memory(bench.scratch) {
        asked.system_written_bytes = None;
    }
    if observed.died.is_empty() {
        observed.died.extend(death(&running, &record));
    }
    if let Some(version) = running.version().or_else(|| job.driver.library()) {
        asked.system.version = version;
    }
    let mut trial = convert::trial(asked, &job.of_flows, job.workload, &record, &observed);
    let realtime = bench.client.realtime;
    counter.finish(
        job.workload,
        &record,
        (bench.own_cost, realtime),
        &mut trial,
    );
    let held = shared.held(&running.held());
    trial.limits = held.or_else(|| running.host_limits());
    if let Some(clocks) = clocks {
        trial.hosts = clocks.hosts;
        trial.errors.extend(clocks.errors);
        if let Some(bound) = clocks.one_way {
            trial.one_way_within(bound);
        }
    }
    let held_here = processes.filter(|_| hosts.is_none());
    trial.client_limits = held_here.and_then(|place| limits::of_workers(&place, realtime));
    convert::tell_pacing(&mut trial.workload, job.workload, job.pacing_within);
    trial.circumstances = Circumstances {
        not_run: not_run(&record, &observed),
        exhausted: exhausted(&record),
        system_died: observed.died,
        system_in_client: brokerless,
        cores: bench.cores,
        pacing_within_ns: job.pacing_within,
        earlier_trials: running.earlier_trials,
        ..circumstances(job.workload)
    };
    let ours = (&*spec.brief, &record);
    let checks = running.finish_counting(&counting, job, ours, &mut trial.brokers);
    trial.checks.extend(checks);
    trial.verdict = verdict(&trial);
    let of = format!("trial {}, cell {}", trial.id, trial.cell);
    let logs = convert::logs(job.workload, &record, &of);
    let files = TrialFiles {
        logs: logs.unwrap_or_else(|why| {
            trial.errors.push(why);
            Vec::new()
        }),
        configs: running.configs(),
    };
    trial.not_in_order = not_in_order;
    let as_planned = trial.circumstances.not_run.is_none();
    let undisturbed = as_planned && trial.circumstances.system_died.is_empty();
    match how.filter(|_| undisturbed) {
        Some(how) => kept.put(job, running, how),
        None => {
            let (ends, words) = running.stop(&trial.system.name);
            trial.not_in_order.extend(words);
            // One that is still running would disturb all later trials.
            if ends.contains(&Stopped::Stuck) {
                trial.circumstances.not_run = trial.not_in_order.last().cloned();
                trial.verdict = verdict(&trial);
            }
        }
    }
    (trial, files)
}

/// The resource that the client ran out of, in words.
pub fn exhausted(record: &TrialRecord) -> Option<String> {
    let names: Vec<&str> = record.exhausted.iter().map(|r| r.name()).collect();
    (!names.is_empty()).then(|| names.join(" and "))
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

/// The verdict, with each reason on one line.
fn verdict(trial: &Trial) -> Verdict {
    let mut verdict = judge(trial);
    for reason in &mut verdict.reasons {
        reason.text = convert::one_line(&reason.text);
    }
    verdict
}

/// A trial that did not begin.
fn broken(job: &Job<'_>, asked: Trial, why: String) -> Trial {
    let record = TrialRecord::nothing(TrialEnd::NotReady(why.clone()), job.workload.flows.len());
    let nothing = Observed::nothing();
    let mut trial = convert::trial(asked, &job.of_flows, job.workload, &record, &nothing);
    trial.circumstances.not_run = convert::not_run(&record.outcome);
    trial.errors.push(convert::one_line(&why));
    trial.verdict = verdict(&trial);
    trial
}

/// Sets timer slack, processor and priority of a worker's thread.
pub fn prepare_thread(assignment: &Assignment) -> Result<(), String> {
    pubgauge_testbed::set_timer_slack(1).map_err(|e| format!("cannot set the timer slack: {e}"))?;
    if let Some(cpu) = assignment.pin_to {
        pubgauge_testbed::pin_to(cpu).map_err(|e| e.to_string())?;
    }
    if let Some(priority) = assignment.realtime {
        pubgauge_testbed::set_realtime(priority).map_err(|e| e.to_string())?;
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
