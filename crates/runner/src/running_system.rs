//! A system that stays up from one trial to the next.

use std::sync::Mutex;

use pubgauge_network::SizedHosts;
use pubgauge_testbed::{Stopped, SystemFile, SystemKind};

use crate::instances::Instances;
use crate::job::Job;
use crate::lock;
use crate::network::TrialNetwork;

/// The system that the last trial has left running, if any. There is one at a time, so that no other takes from the
/// machine what a trial measures. It is stopped when this is dropped.
#[derive(Default)]
pub struct Kept {
    up: Mutex<Option<Up>>,
}

struct Up {
    name: String,
    instances: Instances,
    how: How,
    /// Outlives the system that runs on it.
    _network: Option<TrialNetwork>,
}

/// How a system was started: it serves another trial only if that trial would have started it in the same way.
#[derive(PartialEq)]
pub(crate) struct How {
    system: SystemFile,
    variant: Option<String>,
    brokers: u32,
    network: Option<u32>,
    /// The hosts of brokers.
    hosts: Option<SizedHosts>,
}

impl How {
    /// How the trial of a job starts its system, if it may stay up after it; `None` also where there is no process.
    pub(crate) fn for_job(job: &Job<'_>, system: &SystemFile) -> Option<How> {
        let started = matches!(system.kind, SystemKind::Process | SystemKind::Builtin);
        (job.setup.keep_running && started).then(|| How {
            system: system.clone(),
            variant: job.variant.map(str::to_owned),
            brokers: job.setup.brokers,
            network: job.network.as_ref().map(|network| network.number),
            hosts: job.setup.hosts.as_ref().map(|hosts| hosts.broker.clone()),
        })
    }
}

impl Kept {
    /// The system that is up, if it was started in this way and still runs; any other one is stopped. `not_in_order`
    /// gets what is to be said of its end.
    ///
    /// # Errors
    /// If one could not be ended: it would disturb the trial.
    pub(crate) fn take(
        &self,
        how: Option<&How>,
        not_in_order: &mut Vec<String>,
    ) -> Result<Option<Instances>, String> {
        let Some(up) = lock(&self.up).take() else {
            return Ok(None);
        };
        if how == Some(&up.how) && up.instances.check().is_ok() {
            return Ok(Some(up.instances));
        }
        let (ends, words) = up.instances.stop(&up.name);
        let stuck = ends.contains(&Stopped::Stuck);
        let why = words.first().filter(|_| stuck).cloned();
        not_in_order.extend(words);
        why.map_or(Ok(None), Err)
    }

    /// Leaves a system running for the next trial.
    pub(crate) fn keep(&self, job: &Job<'_>, instances: Instances, how: How) {
        *lock(&self.up) = Some(Up {
            name: job.asked.system.clone(),
            instances,
            how,
            _network: job.network.clone(),
        });
    }

    /// Stops the system that is up, if any; what is to be said of its end.
    pub fn stop(&self) -> Vec<String> {
        let up = lock(&self.up).take();
        up.map_or_else(Vec::new, |up| up.instances.stop(&up.name).1)
    }
}
