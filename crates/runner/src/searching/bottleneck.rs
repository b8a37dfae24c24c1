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
    let say = |what, figure, unit, words| GaveWay {
        what,
        figure,
        unit,
        words,
    };
    let why = why.first().cloned().unwrap_or_default();
    let busy_by = (trial.worker_load.machine_others).zip(trial.verdict.others_busy.as_ref());
    if let Some((others, reason)) = busy_by {
        return say(
            Bottleneck::Machine,
            others,
            Unit::Cores,
            reason.text.clone(),
        );
    }
    let cores = trial
        .system_cpu_s
        .map(|s| s / trial.duration_s.max(f64::MIN_POSITIVE));
    let held = trial.limits.as_ref().and_then(|limits| {
        let cores = limits.cores.filter(|_| limits.cores_by_quota)?;
        Some(cores * f64::from(limits.instances.max(1)))
    });
    let most = held.unwrap_or(trial.circumstances.processors());
    let status = trial.verdict.status;
    let lost = |why: String| {
        let share = trial.shortfall.lost as f64 / trial.messages.expected.max(1) as f64;
        say(Bottleneck::Loss, share, Unit::Share, why)
    };
    let busy = || {
        let cores = cores?;
        if most > 0.0 && cores >= BUSY * most {
            let of = match held {
                Some(held) => format!("the {held} of a core that it is held to"),
                None => format!("{most} cores"),
            };
            return Some(say(
                Bottleneck::Processor,
                cores,
                Unit::Cores,
                format!("the system's processor time: {cores:.2} cores in use of {of}"),
            ));
        }
        let thread = trial
            .system_busiest_thread_cpu
            .filter(|share| *share >= BUSY)?;
        Some(say(
            Bottleneck::Thread,
            thread,
            Unit::Share,
            format!(
                "one thread of the system: it used {thread:.2} of a core, {cores:.2} cores in all"
            ),
        ))
    };
    let full = || {
        let (link, share) = full_link(trial)?;
        let rate = link.rate_bits_per_s.map(bit_rate).unwrap_or_default();
        let words = format!(
            "the link of {}: {:.0} % of its {rate} was in use",
            link.host,
            100.0 * share
        );
        Some(say(Bottleneck::Link, share, Unit::Share, words))
    };
    // A full link causes queues, latency and loss wherever packets cross it.
    let its_own = !matches!(
        status,
        Status::HostBound | Status::SettingBound | Status::ClientBound | Status::Broken
    );
    if let Some(link) = full().filter(|_| its_own) {
        return link;
    }
    match status {
        Status::Valid | Status::TooShort | Status::Unsteady => {
            let measured = as_measured(trial);
            let missed = criteria
                .iter()
                .find(|c| bearing(&measured, c).met == Some(false));
            match missed {
                Some(c)
                    if c.catalogued_figure()
                        .is_some_and(|asked| asked.promised && asked.unit == Unit::Nanoseconds) =>
                {
                    let ns = figure(trial, c.filter.flow.as_deref(), &c.figure).unwrap_or(0.0);
                    say(Bottleneck::Latency, ns, Unit::Nanoseconds, why)
                }
                Some(c) => {
                    let figure = figure(trial, c.filter.flow.as_deref(), &c.figure);
                    let unit = c
                        .catalogued_figure()
                        .map_or(Unit::Count, |asked| asked.unit);
                    say(Bottleneck::Criterion, figure.unwrap_or(0.0), unit, why)
                }
                None if trial.shortfall.lost > 0 => lost(why),
                None => say(Bottleneck::Criterion, 0.0, Unit::Count, why),
            }
        }
        Status::Lossy => lost(why),
        Status::Overloaded => busy().unwrap_or_else(|| {
            let taken = trial.messages.delivered_msgs_per_s;
            let idle = cores.map_or(String::new(), |cores| {
                format!(" while the system used {cores:.2} cores")
            });
            say(
                Bottleneck::Queue,
                taken,
                Unit::PerSecond,
                format!("the queue: {taken:.0} deliveries/s came{idle}; {why}"),
            )
        }),
        Status::HostBound => {
            let used = trial.sized_hosts.iter().filter_map(SizedHost::used);
            say(Bottleneck::Host, used.fold(0.0, f64::max), Unit::Share, why)
        }
        Status::SettingBound => {
            let window = trial.publisher_window.as_ref();
            let granted = window.map_or(0.0, |window| window.granted as f64);
            say(Bottleneck::Window, granted, Unit::Messages, why)
        }
        Status::ClientBound => {
            let load = &trial.worker_load;
            let most = load.publishers_running.max(load.subscribers_running);
            say(Bottleneck::Client, most, Unit::Share, why)
        }
        Status::Broken if trial.connections.made < trial.connections.planned => say(
            Bottleneck::ConnectionsMade,
            trial.connections.made as f64,
            Unit::Count,
            why,
        ),
        Status::Broken => say(
            Bottleneck::ConnectionsLost,
            trial.connections.lost as f64,
            Unit::Count,
            why,
        ),
    }
}
