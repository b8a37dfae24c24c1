//! Workloads over as many brokers as their systems have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pubgauge_driver::addresses;
use pubgauge_workload::{PlacementError, Workload};

use crate::file::StudyFile;
use crate::plan::Known;
use crate::resolve::Clash;

/// How many brokers a system has: as many as the study asks for, else as many as run already.
pub(crate) fn brokers_of(system: &str, file: &StudyFile, known: &Known) -> u32 {
    let running = || match system.contains("://") {
        true => addresses(system).len() as u32,
        false => known.brokers.get(system).copied().unwrap_or(1),
    };
    file.topology.brokers.unwrap_or_else(running)
}

/// The workloads over each of these numbers of brokers.
///
/// # Errors
/// The first that cannot be placed.
pub(crate) fn over(
    workloads: &[Arc<Workload>],
    counts: impl Iterator<Item = u32>,
) -> Result<BTreeMap<u32, Vec<Arc<Workload>>>, Clash> {
    let place = |brokers: u32| {
        let place = |workload: &Arc<Workload>| match brokers {
            1 => Ok(workload.clone()),
            _ => workload.over(brokers).map(Arc::new),
        };
        let placed = workloads.iter().map(place).collect::<Result<_, _>>();
        placed.map(|workloads| (brokers, workloads))
    };
    let distinct: BTreeSet<u32> = counts.collect();
    let placed: Result<_, PlacementError> = distinct.into_iter().map(place).collect();
    placed.map_err(|error| Clash {
        path: vec!["topology".into(), "brokers".into()],
        message: error.to_string(),
        hint: Some(error.hint()),
    })
}
