//! Was the client, or the machine it shares with the system, the limit?

use super::{Circumstances, Findings, thresholds};
use crate::model::{Status, Trial};

/// What the workers' load says.
pub(super) struct Load {
    /// The busiest publishing worker had no time left.
    pub publishers_full: bool,
    /// The busiest subscribing worker had no time left.
    pub subscribers_full: bool,
    running_limit: f64,
    /// The system had a thread that never rested, in a flat-out trial.
    system_full: bool,
}

impl Load {
    pub fn of(trial: &Trial, circumstances: &Circumstances) -> Load {
        let running_limit = if trial.workload.flat_out {
            thresholds::FLAT_OUT_RUNNING
        } else {
            thresholds::PACED_RUNNING
        };
        let load = &trial.worker_load;
        let (client_cores, system_cores) = cores_in_use(trial);
        let system_full = trial.workload.flat_out
            && system_cores.is_some_and(|system_cores| {
                system_is_the_limit(system_cores, client_cores, circumstances.cores)
            });
        // Time spent waiting for a processor is time the worker wanted to run; it does not count
        // where the system itself never rested.
        let full = |running: f64, waiting: f64| {
            !circumstances.system_in_client
                && (running >= running_limit
                    || !system_full && running + waiting >= thresholds::FLAT_OUT_RUNNING)
        };
        Load {
            publishers_full: full(load.publishers_running, load.publishers_waiting),
            subscribers_full: full(load.subscribers_running, load.subscribers_waiting),
            running_limit,
            system_full,
        }
    }

    pub fn judge(&self, trial: &Trial, circumstances: &Circumstances, findings: &mut Findings) {
        self.running(trial, circumstances, findings);
        if !self.system_full {
            waiting(trial, circumstances, findings);
        }
        if !trial.workload.flat_out {
            lag(trial, findings);
        }
    }

    fn running(&self, trial: &Trial, circumstances: &Circumstances, findings: &mut Findings) {
        let load = &trial.worker_load;
        let limit = self.running_limit;
        if circumstances.system_in_client {
            // A library's work and the worker's own cannot be told apart by load; a full worker
            // is the library's limit flat out, but a paced trial must leave it air.
            let busiest = load.publishers_running.max(load.subscribers_running);
            if !trial.workload.flat_out && busiest >= limit {
                findings.add(
                    Status::ClientBound,
                    format!(
                        "the busiest worker, which the system's library runs in, was busy {:.0} % \
                         of the time (limit {:.0} %)",
                        busiest * 100.0,
                        limit * 100.0
                    ),
                );
            }
            return;
        }
        // Flat out, a publisher that outruns the system is what a flat-out trial is for: it is
        // the limit only if the system kept up with everything it got.
        let system_kept_up = !findings.has(Status::Overloaded) && !findings.has(Status::Lossy);
        if load.publishers_running >= limit && (!trial.workload.flat_out || system_kept_up) {
            findings.add(
                Status::ClientBound,
                format!(
                    "the busiest publishing worker ran {:.0} % of the time (limit {:.0} %): the \
                     system could have taken more",
                    load.publishers_running * 100.0,
                    limit * 100.0
                ),
            );
        }
        if self.subscribers_full {
            findings.add(
                Status::ClientBound,
                format!(
                    "the busiest subscribing worker ran {:.0} % of the time and waited {:.0} % \
                     for a processor (limit {:.0} % running, {:.0} % both): what it did not take \
                     in time is not the system's doing{}",
                    load.subscribers_running * 100.0,
                    load.subscribers_waiting * 100.0,
                    limit * 100.0,
                    thresholds::FLAT_OUT_RUNNING * 100.0,
                    super::series::backlog_growth(trial)
                        .map(|growth| format!("; {growth}"))
                        .unwrap_or_default()
                ),
            );
        }
    }
}

/// Cores in use by the client and, where it can be seen, by the system.
fn cores_in_use(trial: &Trial) -> (f64, Option<f64>) {
    let duration = trial.duration_s.max(f64::MIN_POSITIVE);
    let client = trial.client_cpu_s.publishers + trial.client_cpu_s.subscribers;
    (
        client / duration,
        trial.system_cpu_s.map(|seconds| seconds / duration),
    )
}

/// Workers that are ready but wait for a processor: the machine is crowded.
fn waiting(trial: &Trial, circumstances: &Circumstances, findings: &mut Findings) {
    let load = &trial.worker_load;
    let worst = load.publishers_waiting.max(load.subscribers_waiting);
    if worst <= thresholds::WAITING {
        return;
    }
    let (client_cores, system_cores) = cores_in_use(trial);
    let machine = match circumstances.cores {
        0 => "the machine".to_owned(),
        cores => format!("the machine with its {cores} processors"),
    };
    findings.add(
        Status::ClientBound,
        format!(
            "{machine} was the limit: the busiest workers waited for a processor {:.0} % \
             (publishing) and {:.0} % (subscribing) of the time (limit {:.0} %); in use were {:.2} \
             cores by the client and {} by the system",
            load.publishers_waiting * 100.0,
            load.subscribers_waiting * 100.0,
            thresholds::WAITING * 100.0,
            client_cores,
            system_cores.map_or("an unknown number".to_owned(), |cores| format!(
                "{cores:.2}"
            )),
        ),
    );
}

/// A system with a thread that never rests is its own limit, unless it has several threads and
/// the machine had no more processors to give.
fn system_is_the_limit(system_cores: f64, client_cores: f64, cores: u32) -> bool {
    system_cores >= thresholds::SYSTEM_BUSY_CORES
        && (system_cores <= thresholds::SINGLE_THREAD_CORES
            || cores > 0
                && system_cores + client_cores < thresholds::MACHINE_BUSY * f64::from(cores))
}

/// Lateness of the client itself in a paced trial.
fn lag(trial: &Trial, findings: &mut Findings) {
    let lag = &trial.send_lag_ns;
    let load = &trial.worker_load;
    // A publisher that neither ran nor waited for a processor was held back by the system, and
    // latency from the intended time rightly contains that; unless the machine's own timers
    // were as late.
    let at_fault = load.publishers_running + load.publishers_waiting >= thresholds::LAG_AT_FAULT
        || load.publishers_waiting > thresholds::WAITING;
    let by_noise = |lag: u64, noise: u64| noise >= lag / 2;
    if lag.p50 > thresholds::LAG_FLOOR_NS
        && lag.p50 as f64 > thresholds::LAG_SHARE * trial.latency_ns.p50 as f64
        && (at_fault || by_noise(lag.p50, trial.noise_ns.p50))
    {
        findings.add(
            Status::ClientBound,
            format!(
                "half of all messages left more than {} late, against a median latency of {} \
                 (limit {:.0} %)",
                time(lag.p50),
                time(trial.latency_ns.p50),
                thresholds::LAG_SHARE * 100.0
            ),
        );
    } else if lag.count >= 100
        && lag.p99 > thresholds::LAG_TAIL_FLOOR_NS
        && lag.p99 > trial.latency_from_send_ns.p99
        && (at_fault || by_noise(lag.p99, trial.noise_ns.p99))
    {
        findings.add(
            Status::ClientBound,
            format!(
                "the tail is the client's own: 1 % of messages left more than {} late, and the \
                 system's part of the latency is {} at the 99th percentile",
                time(lag.p99),
                time(trial.latency_from_send_ns.p99)
            ),
        );
    }
}

fn time(ns: u64) -> String {
    match ns {
        0..=999 => format!("{ns} ns"),
        1_000..=999_999 => format!("{:.1} µs", ns as f64 / 1e3),
        1_000_000..=999_999_999 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}
