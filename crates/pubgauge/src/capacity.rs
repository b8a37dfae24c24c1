//! Whether the trials of a plan fit into this process and this host, before anything is started.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::sync::Arc;

use pubgauge_driver::{Crowd, Ports};
use pubgauge_engine::assignment::{Brief, Workers};
use pubgauge_engine::worker::clients::PER_SOURCE;
use pubgauge_simulator::SimulatedDriver;
use pubgauge_study::{Plan, PlannedTrial};
use pubgauge_testbed::limits::{self, Needs, ServerNeeds, Shortage};
use pubgauge_testbed::{Kind, Testbed};
use pubgauge_workload::{Census, Workload};

use crate::args::{ClientArgs, MOST_PROCESSES};
use crate::exit::Ending;
use crate::prepare::Chosen;

/// What a worker knows of each party and stream that it must hear before a trial begins, and of
/// each that it has counted messages of, in bytes at the least. Together 133 bytes were measured at
/// one and two million pairs (`pubgauge run --on reference-broker`, resident memory).
const AWAITED_BYTES: u64 = 9;
const COUNTED_BYTES: u64 = 73;

/// Checks every trial of a plan against what there is now. Gives the processes on each side in which
/// all of them fit: those that are asked for; else none (all workers are threads of this process), or
/// as many as it takes for every process to be allowed its open files.
///
/// # Errors
/// Bad input: the first trial that cannot fit, what it needs, what there is, what to do.
pub fn check(
    plan: &Plan,
    systems: &BTreeMap<String, Chosen>,
    client: &ClientArgs,
) -> Result<Option<u32>, Ending> {
    let available = limits::available();
    let mut client = client.clone();
    let given = client.processes.is_some();
    let mut counted: HashMap<*const Workload, Option<Counted>> = HashMap::new();
    for trial in &plan.trials {
        let Some(system) = systems.get(&trial.system) else {
            continue;
        };
        let counted = counted
            .entry(Arc::as_ptr(&trial.workload))
            .or_insert_with(|| Counted::of(&trial.workload));
        // What makes a workload impossible is said when the trial is run.
        let Some(counted) = counted else {
            continue;
        };
        let alone = system.driver.name() == SimulatedDriver::NAME;
        let refused = |why: &dyn Display| {
            let name = &trial.workload.name;
            Ending::bad_input(format!("{name}, {}: {why}", trial.system))
        };
        if given && alone {
            return Err(refused(
                &"the simulated system lives in pubgauge's own process\n  hint: leave --processes out",
            ));
        }
        loop {
            let shortage = match limits::check(&needs(trial, system, counted, &client), &available)
            {
                Ok(()) => break,
                Err(shortage) => shortage,
            };
            let more = client.processes.map_or(1, |processes| processes + 1);
            let apart = matches!(shortage, Shortage::Descriptors(_)) && !given && !alone;
            if !apart || more > MOST_PROCESSES {
                return Err(refused(&shortage));
            }
            client.processes = Some(more);
        }
    }
    Ok(client.processes)
}

/// A workload in numbers.
struct Counted {
    census: Census,
    max_payload: u64,
}

impl Counted {
    fn of(workload: &Arc<Workload>) -> Option<Counted> {
        let brief = Brief::new(workload.clone()).ok()?;
        Some(Counted {
            census: Census::of(&brief.workload, &brief.audience),
            max_payload: brief.max_payload as u64,
        })
    }
}

fn needs(trial: &PlannedTrial, system: &Chosen, counted: &Counted, client: &ClientArgs) -> Needs {
    let census = &counted.census;
    let fleets = fleets(census, client.workers());
    // Of what clients take, the part in the fullest process.
    let fullest = client.processes.map_or(census.devices, |processes| {
        let others = census.devices.saturating_sub(census.publishers);
        census.publishers.max(others).div_ceil(u64::from(processes))
    });
    let share = |all: u64| match fullest < census.devices {
        true => (u128::from(all) * u128::from(fullest)).div_ceil(u128::from(census.devices)) as u64,
        false => all,
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
    let started = matches!(system.file.kind, Kind::Process | Kind::Builtin);
    let server = started.then(|| ServerNeeds {
        name: trial.system.clone(),
        connections: footprint.server_connections,
        files: system.file.limits.files_for(footprint.server_connections),
        limit: system.file.limits.open_files,
    });
    let one_file_each = footprint.ports == Ports::OneForEachClient;
    Needs {
        clients: share(census.devices),
        files: share(footprint.descriptors),
        one_file_each,
        workers: fleets,
        library_threads: footprint.threads,
        server,
        ports: match footprint.ports {
            Ports::Unknown => 0,
            Ports::OfOneAddress(ports) => ports,
            Ports::OneForEachClient => most_from_one_source(&trial.workload, &target.endpoints),
        },
        memory: memory(counted, footprint.memory_bytes, fleets),
    }
}

/// Workers that have clients: publishing devices are apart from the others.
fn fleets(census: &Census, workers: Workers) -> u64 {
    let others = census.devices.saturating_sub(census.publishers);
    let side = |devices: u64, workers: u32| devices.min(u64::from(workers.max(1)));
    side(census.publishers, workers.publishers) + side(others, workers.subscribers)
}

/// Most clients of one endpoint that have the same source address.
fn most_from_one_source(workload: &Workload, endpoints: &[String]) -> u64 {
    let mut clients = vec![0; endpoints.len()];
    for device in &workload.devices {
        if let Some(count) = clients.get_mut(device.endpoint) {
            *count += 1;
        }
    }
    let each = clients.into_iter().zip(endpoints);
    let most = each.map(|(clients, endpoint)| match endpoint.contains("127.0.0.1") {
        true => u64::from(PER_SOURCE).min(clients),
        false => clients,
    });
    most.max().unwrap_or(0)
}

/// What clients, accounts and payloads take before any message waits anywhere.
fn memory(counted: &Counted, clients_bytes: u64, fleets: u64) -> Vec<(String, u64)> {
    let census = &counted.census;
    let pairs = census.entitlements;
    // Of streams that send nothing nothing is counted.
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
        // The pool that bodies are cut from, and a copy in each fleet.
        (
            "payloads".into(),
            counted.max_payload.saturating_mul(1 + fleets),
        ),
    ]
}
