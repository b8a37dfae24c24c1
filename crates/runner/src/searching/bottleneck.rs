//! The bottleneck of a trial beyond a limit.

use pubgauge_figures::SizedHost;
use pubgauge_figures::criterion::CriterionSpec;
use pubgauge_figures::figure::{Unit, figure};
use pubgauge_figures::model::{Status, Trial, Verdict};
use pubgauge_figures::network::full_link;
use pubgauge_figures::search::{Bottleneck, GaveWay};
use pubgauge_quantities::shown::bit_rate;
use pubgauge_results::criterion::bearing;

/// Share of its processors from which a system, or its thread, is at its limit.
const BUSY: f64 = 0.90;

/// A trial as if its verdict were valid, and nobody else had used the machine: its figures count, steady or not.
pub(super) fn as_measured(trial: &Trial) -> Trial {
    Trial {
        verdict: Verdict {
            status: Status::Valid,
            ..Verdict::default()
        },
        ..trial.clone()
    }
}

/// The limit of the load in a trial, which stands first in `why` it was not within what was asked for.
pub(super) fn gave_way(trial: &Trial, why: &[String], criteria: &[CriterionSpec]) -> GaveWay {
    let why = why.first().cloned().unwrap_or_default();
    let busy_by = (trial.worker_load.machine_others).zip(trial.verdict.others_busy.as_ref());
    if let Some((others, reason)) = busy_by {
        let words = reason.text.clone();
        return bottleneck(Bottleneck::Machine, others, Unit::Cores, words);
    }
    let status = trial.verdict.status;
    // A full link causes queues, latency and loss wherever packets cross it.
    let its_own = !matches!(
        status,
        Status::HostBound | Status::SettingBound | Status::ClientBound | Status::Broken
    );
    if let Some(link) = link_in_use(trial).filter(|_| its_own) {
        return link;
    }
    match status {
        Status::Valid | Status::TooShort | Status::Unsteady => missed(trial, why, criteria),
        Status::Lossy => loss(trial, why),
        Status::Overloaded => busy_system(trial).unwrap_or_else(|| queue(trial, &why)),
        Status::HostBound => {
            let used = trial.sized_hosts.iter().filter_map(SizedHost::used);
            bottleneck(Bottleneck::Host, used.fold(0.0, f64::max), Unit::Share, why)
        }
        Status::SettingBound => {
            let window = trial.publisher_window.as_ref();
            let granted = window.map_or(0.0, |window| window.granted as f64);
            bottleneck(Bottleneck::Window, granted, Unit::Messages, why)
        }
        Status::ClientBound => {
            let load = &trial.worker_load;
            let busy = load.applications_busy.unwrap_or(0.0);
            let most = (load.publishers_running.max(load.subscribers_running)).max(busy);
            bottleneck(Bottleneck::Client, most, Unit::Share, why)
        }
        Status::Broken if trial.connections.made < trial.connections.planned => {
            let made = trial.connections.made as f64;
            bottleneck(Bottleneck::ConnectionsMade, made, Unit::Count, why)
        }
        Status::Broken => {
            let lost = trial.connections.lost as f64;
            bottleneck(Bottleneck::ConnectionsLost, lost, Unit::Count, why)
        }
    }
}

fn bottleneck(what: Bottleneck, figure: f64, unit: Unit, words: String) -> GaveWay {
    GaveWay {
        what,
        figure,
        unit,
        words,
    }
}

/// Cores that the system used, where it is in sight.
fn cores_in_use(trial: &Trial) -> Option<f64> {
    let seconds = trial.duration_s.max(f64::MIN_POSITIVE);
    trial.system_cpu_s.map(|s| s / seconds)
}

/// The system's processors, or one of its threads, where it is at its limit.
fn busy_system(trial: &Trial) -> Option<GaveWay> {
    let cores = cores_in_use(trial)?;
    let held = trial.limits.as_ref().and_then(|limits| {
        let cores = limits.cores.filter(|_| limits.cores_by_quota)?;
        Some(cores * f64::from(limits.instances.max(1)))
    });
    let most = held.unwrap_or(trial.circumstances.processors());
    if most > 0.0 && cores >= BUSY * most {
        let of = match held {
            Some(held) => format!("the {held} of a core that it is held to"),
            None => format!("{most} cores"),
        };
        let words = format!("the system's processor time: {cores:.2} cores in use of {of}");
        return Some(bottleneck(Bottleneck::Processor, cores, Unit::Cores, words));
    }
    let thread = trial.system_busiest_thread_cpu;
    let thread = thread.filter(|share| *share >= BUSY)?;
    let words =
        format!("one thread of the system: it used {thread:.2} of a core, {cores:.2} cores in all");
    Some(bottleneck(Bottleneck::Thread, thread, Unit::Share, words))
}

/// The fullest link, where it was full.
fn link_in_use(trial: &Trial) -> Option<GaveWay> {
    let (link, share) = full_link(trial)?;
    let rate = link.rate_bits_per_s.map(bit_rate).unwrap_or_default();
    let words = format!(
        "the link of {}: {:.0} % of its {rate} was in use",
        link.host,
        100.0 * share
    );
    Some(bottleneck(Bottleneck::Link, share, Unit::Share, words))
}

/// The criterion that was not met, or what was lost.
fn missed(trial: &Trial, why: String, criteria: &[CriterionSpec]) -> GaveWay {
    let measured = as_measured(trial);
    let is_missed = |criterion: &&CriterionSpec| bearing(&measured, criterion).met == Some(false);
    let Some(criterion) = criteria.iter().find(is_missed) else {
        return if trial.shortfall.lost > 0 {
            loss(trial, why)
        } else {
            bottleneck(Bottleneck::Criterion, 0.0, Unit::Count, why)
        };
    };
    let value = figure(trial, criterion.filter.flow.as_deref(), &criterion.figure);
    let value = value.unwrap_or(0.0);
    let asked = criterion.catalogued_figure();
    let unit = asked.map_or(Unit::Count, |asked| asked.unit);
    let is_latency = asked.is_some_and(|asked| asked.promised && unit == Unit::Nanoseconds);
    let what = if is_latency {
        Bottleneck::Latency
    } else {
        Bottleneck::Criterion
    };
    bottleneck(what, value, unit, why)
}

fn loss(trial: &Trial, why: String) -> GaveWay {
    let share = trial.shortfall.lost as f64 / trial.messages.expected.max(1) as f64;
    bottleneck(Bottleneck::Loss, share, Unit::Share, why)
}

/// Messages that waited, although nothing in sight was at its limit.
fn queue(trial: &Trial, why: &str) -> GaveWay {
    let taken = trial.messages.delivered_msgs_per_s;
    let idle = cores_in_use(trial).map_or(String::new(), |cores| {
        format!(" while the system used {cores:.2} cores")
    });
    let words = format!("the queue: {taken:.0} deliveries/s came{idle}; {why}");
    bottleneck(Bottleneck::Queue, taken, Unit::PerSecond, words)
}
