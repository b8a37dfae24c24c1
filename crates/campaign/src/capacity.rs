//! Whether the trials of a plan fit into this process and this host, before anything is started.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::sync::Arc;

use pubgauge_driver::{Crowd, Ports, is_on_loopback};
use pubgauge_engine::assignment::{Brief, Workers};
use pubgauge_engine::worker::clients::PER_SOURCE;
use pubgauge_study::{Plan, PlannedTrial};
use pubgauge_testbed::limits::{self, ResourceNeeds, ServerNeeds, Shortage};
use pubgauge_testbed::{SystemKind, Testbed};
use pubgauge_workload::{Census, Workload};

use crate::{Chosen, ClientOptions, Error, MOST_PROCESSES};

/// Least memory of a worker for each pair of party and stream that it must hear before a trial
/// begins, and for each that it has counted messages of, in bytes. Together 133 bytes were measured
/// at one and two million pairs (`pubgauge run --on reference-broker`, resident memory).
const AWAITED_BYTES: u64 = 9;
const COUNTED_BYTES: u64 = 73;

/// Checks each of these trials against the resources of now. Returns the processes on each side that
/// trials without a number of their own need: `None` if this process is enough for them.
///
/// # Errors
/// Bad input: the first trial that cannot fit, what it needs, what there is, what to do.
pub fn check<'a>(
    trials: impl IntoIterator<Item = &'a PlannedTrial>,
    systems: &BTreeMap<String, Chosen>,
    client: &ClientOptions,
) -> Result<Option<u32>, Error> {
    let available = limits::available();
    let mut needed = None;
    let mut counted: HashMap<*const Workload, Option<Counted>> = HashMap::new();
    for trial in trials {
        let Some(system) = systems.get(&trial.system) else {
            continue;
        };
        let counted = counted
            .entry(Arc::as_ptr(&trial.workload))
            .or_insert_with(|| Counted::count(&trial.workload));
        // An impossible workload is reported when the trial is run.
        let Some(counted) = counted else {
            continue;
        };
        let asked = client.processes.or(trial.setup.processes);
        let alone = system.driver.lives_here();
        let refused = |why: &dyn Display| {
            let name = &trial.workload.name;
            Error::bad_input(format!("{name}, {}: {why}", trial.system))
        };
        if asked.is_some() && alone {
            return Err(refused(
                &"the simulated system lives in pubgauge's own process\n  hint: leave `processes` out",
            ));
        }
        // The error names what is short without further processes.
        let mut first = None;
        loop {
            let client = ClientOptions {
                processes: asked.or(needed.filter(|_| !alone)),
                ..client.clone()
            };
            let shortage = match limits::check(&needs(trial, system, counted, &client), &available)
            {
                Ok(()) => break,
                Err(shortage) => shortage,
            };
            let more = needed.map_or(1, |processes| processes + 1);
            let several = matches!(shortage, Shortage::Descriptors(_)) && asked.is_none() && !alone;
            let shortage = first.get_or_insert(shortage);
            if !several || more > MOST_PROCESSES {
                return Err(refused(shortage));
            }
            needed = Some(more);
        }
    }
    Ok(needed)
}

/// Processes on each side for the workers of a trial, where `enough` is what [`check`] returned;
/// `None` if they are threads of this process.
pub fn processes(
    trial: &PlannedTrial,
    system: &Chosen,
    client: &ClientOptions,
    enough: Option<u32>,
) -> Option<u32> {
    let enough = enough.filter(|_| !system.driver.lives_here());
    // A host has processes of its own.
    let on_hosts = trial.setup.worker_hosts().map(|_| 1);
    let asked = client.processes.or(trial.setup.processes);
    asked.or(enough).or(on_hosts)
}

/// Checks that trials with limits of worker processes have such processes, where `enough` is what
/// [`check`] returned.
///
/// # Errors
/// Bad input: the first trial whose workers are threads of this process, and what to do.
pub fn check_limits(
    plan: &Plan,
    systems: &BTreeMap<String, Chosen>,
    client: &ClientOptions,
    enough: Option<u32>,
) -> Result<(), Error> {
    for trial in plan
        .trials
        .iter()
        .filter(|t| !t.setup.client_limits.is_none())
    {
        let Some(system) = systems.get(&trial.system) else {
            continue;
        };
        if processes(trial, system, client, enough).is_none() {
            let hint = if system.driver.lives_here() {
                "the simulated system lives there too: leave [client.limits] out"
            } else {
                "add `processes = 1` to [client], or --processes 1 to a run"
            };
            return Err(Error::bad_input(format!(
                "{}, {}: [client.limits] are for worker processes, and its workers are threads of \
                 pubgauge's own process\n  hint: {hint}",
                trial.workload.name, trial.system
            )));
        }
    }
    Ok(())
}

/// A workload in numbers.
struct Counted {
    census: Census,
    max_payload: u64,
}

impl Counted {
    fn count(workload: &Arc<Workload>) -> Option<Counted> {
        let brief = Brief::new(workload.clone()).ok()?;
        Some(Counted {
            census: Census::take(&brief.workload, &brief.audience),
            max_payload: brief.max_payload as u64,
        })
    }
}

fn needs(
    trial: &PlannedTrial,
    system: &Chosen,
    counted: &Counted,
    client: &ClientOptions,
) -> ResourceNeeds {
    let census = &counted.census;
    let brokers = brokers(&trial.workload, trial.setup.brokers);
    let fleets = fleets(&brokers, client.workers());
    // The share of the clients' resources in the fullest process.
    let fullest = client.processes.map_or(census.devices, |processes| {
        let sides = brokers.iter().flat_map(|c| [c.publishers, c.others]);
        let most = sides.max().unwrap_or(0);
        most.div_ceil(u64::from(processes))
    });
    let share = |all: u64| {
        if fullest < census.devices {
            (u128::from(all) * u128::from(fullest)).div_ceil(u128::from(census.devices)) as u64
        } else {
            all
        }
    };
    let crowd = Crowd {
        fleets,
        clients: census.devices,
        publishers: census.publishers,
        subscribers: census.subscribers,
        streams: census.streams,
        links: census.links,
        stream_links: census.stream_links,
    };
    let target = Testbed::planned_target(&system.file, system.variant.as_deref());
    let target = target.unwrap_or_default();
    let footprint = system.driver.footprint(&trial.settings, &target, &crowd);
    let started = matches!(system.file.kind, SystemKind::Process | SystemKind::Builtin);
    // Each broker has only its own clients.
    let most = brokers.iter().map(ClientCounts::total).max().unwrap_or(0);
    let connections = footprint.server_connections * most;
    let connections = connections.div_ceil(census.devices.max(1));
    let server = started.then(|| ServerNeeds {
        name: trial.system.clone(),
        connections,
        files: system.file.limits.files_for(connections),
        limit: system.file.limits.open_files,
    });
    let one_file_each = footprint.ports == Ports::OneForEachClient;
    ResourceNeeds {
        clients: share(census.devices),
        files: share(footprint.descriptors),
        one_file_each,
        workers: fleets,
        library_threads: footprint.threads,
        server,
        ports: match footprint.ports {
            Ports::Unknown => 0,
            Ports::OfOneAddress(ports) => ports,
            Ports::OneForEachClient => most_from_one_source(&brokers, &target.endpoints),
        },
        memory: memory(counted, footprint.memory_bytes, fleets),
    }
}

/// The clients of one broker.
#[derive(Clone, Copy, Default)]
pub struct ClientCounts {
    /// Publishing devices.
    pub publishers: u64,
    pub others: u64,
}

impl ClientCounts {
    pub fn total(&self) -> u64 {
        self.publishers + self.others
    }
}

/// The clients of each broker.
pub fn brokers(workload: &Workload, brokers: u32) -> Vec<ClientCounts> {
    let mut publishes = vec![false; workload.devices.len()];
    for publisher in workload.flows.iter().flat_map(|flow| &flow.publishers) {
        publishes[publisher.device as usize] = true;
    }
    let mut clients = vec![ClientCounts::default(); brokers.max(1) as usize];
    for (device, publishes) in workload.devices.iter().zip(publishes) {
        if let Some(broker) = clients.get_mut(device.broker as usize) {
            if publishes {
                broker.publishers += 1
            } else {
                broker.others += 1
            }
        }
    }
    clients
}

/// Number of workers that have clients: each worker has clients of one side and one broker.
fn fleets(brokers: &[ClientCounts], workers: Workers) -> u64 {
    let side = |devices: u64, workers: u32| devices.min(u64::from(workers.max(1)));
    let of = |clients: &ClientCounts| {
        side(clients.publishers, workers.publishers) + side(clients.others, workers.subscribers)
    };
    brokers.iter().map(of).sum()
}

/// Most clients of one broker that have the same source address.
fn most_from_one_source(brokers: &[ClientCounts], endpoints: &[String]) -> u64 {
    let endpoint = |nth: usize| endpoints.get(nth).or(endpoints.first());
    let most = brokers.iter().enumerate().filter_map(|(nth, clients)| {
        let endpoint = endpoint(nth)?;
        let of_side = |count: u64, only_subscribe| {
            if is_on_loopback(endpoint, only_subscribe) {
                count.min(PER_SOURCE.into())
            } else {
                count
            }
        };
        let places = endpoint.rsplit('@').next().unwrap_or_default();
        Some(if places.contains(',') {
            // Each of two places has connections from all ports of a source.
            of_side(clients.publishers, false).max(of_side(clients.others, true))
        } else {
            of_side(clients.total(), false)
        })
    });
    most.max().unwrap_or(0)
}

/// Memory of clients, counts and payloads before any message is queued.
fn memory(counted: &Counted, clients_bytes: u64, fleets: u64) -> Vec<(String, u64)> {
    let census = &counted.census;
    let pairs = census.entitlements;
    // Streams that send nothing take no counts.
    let share = census.messages.map_or(1.0, |messages| {
        (messages as f64 / census.streams.max(1) as f64).min(1.0)
    });
    let counted_bytes = (pairs as f64 * share) as u64 * COUNTED_BYTES;
    let accounts = (pairs * AWAITED_BYTES).saturating_add(counted_bytes);
    vec![
        (format!("{} clients", census.devices), clients_bytes),
        (
            format!("accounts of {pairs} pairs of subscriber and stream"),
            accounts,
        ),
        // The pool that bodies are taken from, and a copy in each fleet.
        (
            "payloads".into(),
            counted.max_payload.saturating_mul(1 + fleets),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubgauge_workload::Arrivals;

    #[test]
    fn clients_and_ports_divide_over_brokers() {
        let one = Workload::fan(12_000, 2, Arrivals::FlatOut);
        let ports = |clients: &[ClientCounts], endpoint: &str| {
            most_from_one_source(clients, &[endpoint.to_owned()])
        };
        let of = |count: u32| brokers(&one.spread_over(count).expect("flat out"), count);
        let (alone, several) = (of(1), of(6));
        assert_eq!(
            alone.iter().map(ClientCounts::total).collect::<Vec<_>>(),
            [12_002]
        );
        // Both subscribers subscribe to all topics, and are connected to each broker.
        assert!(
            several
                .iter()
                .all(|c| (c.publishers, c.others) == (2_000, 2))
        );
        assert_eq!(ports(&alone, "mqtt://host:1"), 12_002);
        assert_eq!(ports(&several, "mqtt://host:1"), 2_002);
        assert_eq!(ports(&alone, "mqtt://127.0.0.1:1"), u64::from(PER_SOURCE));
        assert_eq!(
            ports(&alone, "mqtt://127.0.0.1:1,[::1]:1"),
            u64::from(PER_SOURCE)
        );
        assert_eq!(ports(&alone, "mqtt://[::1]:1,127.0.0.1:1"), 12_000);
        let workers = Workers {
            publishers: 3,
            subscribers: 4,
            ..Workers::default()
        };
        assert_eq!(
            (fleets(&alone, workers), fleets(&several, workers)),
            (5, 30)
        );
    }
}
