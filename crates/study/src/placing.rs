//! Workloads over as many brokers as their systems have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pubgauge_driver::addresses;
use pubgauge_workload::{Audience, PlacementError, Workload};

use crate::clash::Clash;
use crate::file::TopologyFile;
use crate::known::KnownSystems;

/// The number of brokers of a system: as many as the study asks for (`asked`), else as many as run
/// already.
pub(crate) fn brokers_of(system: &str, asked: Option<u32>, known: &KnownSystems) -> u32 {
    let running = || {
        if system.contains("://") {
            addresses(system).len() as u32
        } else {
            known.brokers.get(system).copied().unwrap_or(1)
        }
    };
    asked.unwrap_or_else(running)
}

/// A workload over each of these numbers of brokers.
///
/// # Errors
/// The first number over which it cannot be placed.
pub(crate) fn first_unplaceable(
    workload: &Arc<Workload>,
    counts: impl Iterator<Item = u32>,
    topology: &TopologyFile,
) -> Result<BTreeMap<u32, Arc<Workload>>, Clash> {
    let cluster = topology.is_cluster();
    let place = |brokers: u32| {
        let placed = match brokers {
            _ if cluster => workload.dealt_over(brokers).map(Arc::new),
            1 => Ok(workload.clone()),
            _ => workload.spread_over(brokers).map(Arc::new),
        };
        placed.map(|workload| (brokers, workload))
    };
    let distinct: BTreeSet<u32> = counts.collect();
    let placed: Result<_, PlacementError> = distinct.into_iter().map(place).collect();
    placed.map_err(|error| Clash {
        path: vec![
            "topology".into(),
            if cluster { "cluster" } else { "brokers" }.into(),
        ],
        message: error.to_string(),
        hint: Some(error.hint()),
    })
}

/// Of workloads over the nodes of a cluster: how much crosses between nodes, in words.
pub(crate) fn crossings<'a>(
    workloads: impl Iterator<Item = &'a Arc<Workload>>,
) -> impl Iterator<Item = String> {
    workloads.filter(|workload| workload.cluster).filter_map(|workload| {
        // A workload whose audience cannot be told was refused before.
        let audience = Audience::new(workload).ok()?;
        let (all, crossing) = workload.crossings(&audience);
        Some(format!(
            "{}: its clients are dealt out to the nodes of a cluster; {crossing} of {all} paths from a publisher's topic to a \
             subscriber cross from one node to another",
            workload.name
        ))
    })
}
