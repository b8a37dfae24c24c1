//! Whether other programs than client and system had the processors that the system waited for.

use pubgauge_figures::model::{Evidence, Reason, Rule, Status, Trial};
use pubgauge_quantities::shown::{self, time};

use super::cores::cores_in_use;
use super::findings::Findings;
use super::{quota, thresholds};

/// The reason by which other programs had processors that the system needed. `None` if they had not, or if it is not known
/// what the system used.
pub(super) fn crowded(trial: &Trial) -> Option<Reason> {
    let others = others_cores(trial)?;
    match waited_for_others(trial, others) {
        Some(waited) => kept_waiting(trial, others, waited),
        None => nearly_full(trial, others),
    }
}

/// Other programs had what client and system needed: where the system is blamed for what it did not carry, or waited
/// long enough to be slow for that reason alone, the trial says nothing of it.
pub(super) fn judge(trial: &Trial, findings: &mut Findings) {
    let Some(reason) = crowded(trial) else {
        return;
    };
    let blamed = findings.have_any(&[Status::Overloaded, Status::Unsteady, Status::TooShort]);
    if blamed || waits_are_known(trial) {
        findings.excuse_system();
        findings.blame_client(reason);
    }
}

/// Processors that others kept busy; `None` where the system may be among them.
fn others_cores(trial: &Trial) -> Option<f64> {
    let apart = trial.system_cpu_s.is_some() || trial.circumstances.system_in_client;
    let known = apart && trial.circumstances.processors() > 0.0;
    trial.worker_load.machine_others.filter(|_| known)
}

/// Whether the time is known for which the system waited for processors. What it waits at the end of a quota of its own
/// is in it, and is not told apart.
fn waits_are_known(trial: &Trial) -> bool {
    let held = trial.limits.as_ref().is_some_and(|l| l.cores_by_quota);
    trial.worker_load.system_waiting.is_some() && !held
}

/// Share of the measurement for which the system's thread that waited most waited for a processor that others had: they
/// had as much of that time as of what ran beside the thread.
fn waited_for_others(trial: &Trial, others: f64) -> Option<f64> {
    let waited = trial
        .worker_load
        .system_waiting
        .filter(|_| waits_are_known(trial))?;
    // Nobody else had what a quota around the system kept it waiting for.
    let waited = (waited - quota::share(trial)).max(0.0);
    let (client, system) = cores_in_use(trial);
    let thread = trial.system_busiest_thread_cpu.unwrap_or(0.0);
    let rest = (system.unwrap_or(0.0) - thread).max(0.0);
    let beside = others + client + rest;
    Some(if beside > 0.0 {
        waited * others / beside
    } else {
        0.0
    })
}

/// Share of the measurement for which the busiest workers waited for processors that others had, likewise.
fn workers_waited_for_others(trial: &Trial, others: f64) -> f64 {
    let (client, system) = cores_in_use(trial);
    let all = others + client + system.unwrap_or(0.0);
    let waited = (trial.worker_load.workers_kept_waiting - quota::share(trial)).max(0.0);
    if all > 0.0 {
        waited * others / all
    } else {
        0.0
    }
}

/// Waits for processors that others had.
struct Wait {
    who: &'static str,
    /// Share of the measurement.
    share: f64,
    /// No single wait was longer.
    longest_ns: u64,
}

impl Wait {
    /// Whether so many messages were so late for it that it may make up a 99th percentile of latency, ns.
    fn fills(&self, tail: u64) -> bool {
        self.share >= thresholds::STALLED_TAIL && self.longest_ns >= tail / 2
    }
}

/// The system waited for so long that all it did may be slow for that reason; or system and workers, through which a message
/// passes one after the other, did so for as many messages as make up the 99th percentile of latency.
fn kept_waiting(trial: &Trial, others: f64, waited: f64) -> Option<Reason> {
    let load = &trial.worker_load;
    let tail = trial.messages.latency_ns.p99.unwrap_or(u64::MAX);
    let system = Wait {
        who: "the system",
        share: waited,
        longest_ns: load.system_longest_waiting_ns.unwrap_or(0),
    };
    let all = Wait {
        who: "the system and the busiest workers",
        share: waited + workers_waited_for_others(trial, others),
        longest_ns: system.longest_ns.max(load.workers_longest_wait_ns),
    };
    let enough = others >= thresholds::OTHERS_TAIL * trial.circumstances.processors();
    let fills_tail = |wait: &Wait| enough && wait.fills(tail) && !trial.workload.flat_out;
    let (wait, limit) = if waited >= thresholds::STALLED {
        (system, thresholds::STALLED)
    } else {
        let wait = [system, all].into_iter().find(fills_tail)?;
        (wait, thresholds::STALLED_TAIL)
    };
    let allowed = if limit == thresholds::STALLED_TAIL {
        let tail = time(tail as f64);
        format!(
            "{} where that may make up the 99th percentile of latency, {tail}",
            shown::percent(limit, 0)
        )
    } else {
        shown::percent(limit, 0)
    };
    let all = trial.circumstances.all_processors();
    let text = format!(
        "other programs kept {others:.1} of {all} busy, and {} waited for them {:.1} % of \
         the time (limit {allowed}), at most {} at a time: what was slow may be their doing",
        wait.who,
        100.0 * wait.share,
        time(wait.longest_ns as f64),
    );
    let reason = Reason::new(Rule::OthersBusy, text)
        .limited(Evidence::WaitedForOthers, wait.share, limit)
        .figure(Evidence::LongestWaiting, wait.longest_ns as f64);
    Some(reason.figure(Evidence::OthersCores, others))
}

/// Where it is not known for how long the system waited: whether others kept a good part of a machine busy that was almost
/// full.
fn nearly_full(trial: &Trial, others: f64) -> Option<Reason> {
    let cores = trial.circumstances.processors();
    let (client, system) = cores_in_use(trial);
    let all = others + client + system.unwrap_or(0.0);
    let full =
        others >= thresholds::OTHERS_BUSY * cores && all >= thresholds::MACHINE_CROWDED * cores;
    full.then(|| {
        let text = format!(
            "other programs kept {others:.1} of {} busy, client and system {:.1}: what was slow may be their doing",
            trial.circumstances.all_processors(),
            all - others
        );
        let limit = thresholds::OTHERS_BUSY * cores;
        Reason::new(Rule::OthersBusy, text).limited(Evidence::OthersCores, others, limit)
    })
}
