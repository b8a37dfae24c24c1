//! The tables of all trials, and of their flows where there are several, with all their figures:
//! everything else is computed from these.

use maud::{Markup, html};
use pubgauge_figures::bursts::BurstFigures;
use pubgauge_figures::model::Broker;
use pubgauge_figures::{FlowFigures, SizedHost};
use pubgauge_network::HostRole;
use pubgauge_quantities::Share;
use pubgauge_quantities::lists::unique;
use pubgauge_quantities::shown;

use super::content::Page;
use super::per_trial::{Part, TextColumn, figures, or_none, per_trial, time, trials};
use super::windows;
use crate::summary::WorkloadCells;

const OF_BURSTS: [TextColumn<BurstFigures>; 10] = [
    ("messages each", |b| b.messages.to_string()),
    ("begins", |b| {
        b.every_ns
            .map_or("when the last one is there".into(), |ns| {
                format!("every {}", shown::time(ns as f64))
            })
    }),
    ("sent", |b| b.sent.to_string()),
    ("whole", |b| b.whole.to_string()),
    ("before the next", |b| b.in_time.to_string()),
    ("cut off by the end", |b| b.cut_off.to_string()),
    ("handed over within", |b| time(b.hand_over_ns)),
    ("msgs/s in it", |b| or_none(b.msgs_per_s, shown::rate)),
    ("bytes/s in it", |b| {
        or_none(b.bytes_per_s, |n| shown::bytes(n as u64))
    }),
    ("arrived after", |b| time(b.arrival_ns)),
];

const OF_BROKERS: [TextColumn<Broker>; 7] = [
    ("address", |b| b.address.clone()),
    ("clients", |b| b.connections.to_string()),
    ("CPU", |b| or_none(b.cpu_s, shown::seconds)),
    ("busiest thread", |b| {
        or_none(b.busiest_thread_cpu, shown::share)
    }),
    ("memory", |b| or_none(b.rss_bytes, shown::bytes)),
    ("its count: published", |b| {
        or_none(b.published, |n| n.to_string())
    }),
    ("its count: delivered", |b| {
        or_none(b.delivered, |n| n.to_string())
    }),
];

/// The section of all trials.
pub(super) fn section(page: &Page<'_>) -> Markup {
    html! {
        section id="trials" {
            h2 { "Every trial" }
            @for workload in page.measured() {
                details {
                    summary { "Trials of " (workload.name) }
                    @for words in limits(workload).into_iter().chain(sized_hosts(workload)) { p { (words) } }
                    (figures(workload, "Trials", [], |_| vec![Part { names: [], flow: None, window: None }]))
                    (flows(workload))
                    (windows::section(workload))
                    (per_trial(workload, "Brokers", ["broker"], &OF_BROKERS, |trial| {
                        let brokers = (1..).zip(&trial.brokers);
                        brokers.map(|(number, broker)| ([number.to_string()], broker)).collect()
                    }))
                }
            }
        }
    }
}

/// The tables of flows, where there are several, and of their bursts.
fn flows<'a>(workload: &'a WorkloadCells<'a>) -> Markup {
    let named = |flow: &FlowFigures| [flow.name.clone()];
    let several = trials(workload).any(|(_, trial)| trial.flows.len() > 1);
    html! {
        @if several {
            (figures(workload, "Flows", ["flow"], |trial| {
                let flows = trial.flows.iter();
                flows.map(|flow| Part { names: named(flow), flow: Some(&flow.name), window: None }).collect()
            }))
        }
        (per_trial(workload, "Bursts", ["flow"], &OF_BURSTS, |trial| {
            let flows = trial.flows.iter();
            flows.filter_map(|flow| Some((named(flow), flow.bursts.as_ref()?))).collect()
        }))
    }
}

/// Hosts of given sizes, the fullest of each role, and what was used of them.
fn sized_hosts(workload: &WorkloadCells<'_>) -> Vec<String> {
    let all = trials(workload).flat_map(|(label, trial)| {
        let fullest = HostRole::ALL.into_iter().filter_map(move |role| {
            let hosts = trial.sized_hosts.iter();
            let used = |host: &SizedHost| host.used().unwrap_or(0.0);
            let hosts = hosts.filter(|host| host.is_of(role.name()));
            hosts.max_by(|a, b| used(a).total_cmp(&used(b)))
        });
        fullest.map(move |host| (label, trial.repeat, host))
    });
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    all.map(|(label, repeat, host)| {
        let limits = &host.limits;
        let size = Share {
            cores: limits.cores,
            memory_bytes: limits.memory_bytes,
        };
        let mut words = format!(
            "{label}, repeat {repeat}: {} had {}",
            host.host,
            size.describe().unwrap_or_default()
        );
        if let Some(used) = host.used() {
            words.push_str(&format!(
                ", used {} of its processor time and was kept waiting at its end for {} of the measurement",
                percent(used),
                percent(host.throttled.unwrap_or(0.0))
            ));
        }
        if let Some(own) = host.own {
            words.push_str(&format!("; pubgauge itself took {} of that", percent(own)));
        }
        match &limits.not_held[..] {
            [] => {}
            not => words.push_str(&format!("; not held as asked: {}", not.join("; "))),
        }
        words.push('.');
        words
    })
    .collect()
}

/// The limits of systems and worker processes that the study sets, and those not held.
fn limits(workload: &WorkloadCells<'_>) -> Vec<String> {
    let all = trials(workload).flat_map(|(label, trial)| {
        let of_system = trial.limits.as_ref().map(|l| (label, "instance", l));
        let of_client = trial.client_limits.as_ref();
        let of_client = of_client.map(|l| (label, "worker process", l));
        of_system.into_iter().chain(of_client)
    });
    unique(all.map(|(label, who, limits)| {
        let by = |how: &Option<String>| how.clone().unwrap_or("not held".into());
        let cores = limits
            .cores
            .map(|cores| format!("{cores} cores ({})", by(&limits.cores_by)));
        let memory = limits
            .memory_bytes
            .map(|b| format!("{} of memory ({})", shown::bytes(b), by(&limits.memory_by)));
        let parts: Vec<String> = cores.into_iter().chain(memory).collect();
        let mut words = format!("{label}: each {who} had {} at most", parts.join(" and "));
        match &limits.not_held[..] {
            [] => {}
            not => words.push_str(&format!("; not held as asked: {}", not.join("; "))),
        }
        words.push('.');
        words
    }))
}
