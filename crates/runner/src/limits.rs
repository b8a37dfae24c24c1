//! Held shares of the machine: for each instance of the system and each worker process, and the
//! processors of the client.

use pubgauge_figures::model::HeldLimits;
use pubgauge_testbed::shares::{HeldShare, Share, divide};
use pubgauge_testbed::{SystemFile, SystemKind, usable_cpus};

use crate::held_limits::{beside_realtime, on_all};
use crate::job::ClientConfig;
use crate::processes::ProcessPlace;

/// How a trial shares the machine between system and client.
pub struct MachineShare {
    share: Share,
    instances: usize,
    /// Processors for the client's workers, in turn; empty: the scheduler chooses.
    pub pin: Vec<usize>,
    clients_apart: bool,
    /// Why the client is not kept off the system's processors.
    together: Option<String>,
}

impl MachineShare {
    /// Writes the share of each instance into the system's file, in place of the file's own. Where
    /// there are enough processors, the instances together and the client's workers get separate
    /// ones.
    pub fn new(
        system: &mut SystemFile,
        share: Share,
        instances: usize,
        client: &ClientConfig,
    ) -> MachineShare {
        let limits = &mut system.limits;
        limits.cores = share.cores.or(limits.cores);
        limits.memory_mib = share.memory_bytes.map(|b| b >> 20).or(limits.memory_mib);
        let mut shared = MachineShare {
            share: limits.share(),
            instances,
            pin: client.pin.clone(),
            clients_apart: false,
            together: None,
        };
        let started = matches!(system.kind, SystemKind::Process | SystemKind::Builtin);
        // Placement by the user or the file is kept; workers on other hosts are separate anyway.
        let placed = !shared.pin.is_empty() || !limits.cpus.is_empty() || client.hosts.is_some();
        let Some(cores) = shared.share.cores.filter(|_| started && !placed) else {
            return shared;
        };
        let workers = (client.workers.publishers + client.workers.subscribers) as usize;
        let usable = usable_cpus();
        let all = cores * instances as f64;
        match divide(&usable, all, workers) {
            Some((own, clients)) => {
                limits.cpus = own;
                shared.pin = clients;
                shared.clients_apart = true;
            }
            None => {
                shared.together = Some(format!(
                    "the client off the system's processors: {} are too few for {all} cores \
                     and {workers} workers",
                    usable.len()
                ));
            }
        }
        shared
    }

    /// How the share was held on each instance, for the trial; `None` if none was asked for.
    pub fn held(&self, held: &[&HeldShare]) -> Option<HeldLimits> {
        let limits = on_all(&self.share, held)?;
        let mut not_held = limits.not_held;
        not_held.extend(self.together.clone());
        Some(HeldLimits {
            instances: self.instances as u32,
            clients_apart: self.clients_apart,
            not_held,
            ..limits
        })
    }
}

/// How the share of each worker process was held, for the trial; `None` if none was asked for.
pub fn of_workers(place: &ProcessPlace, realtime: Option<u8>) -> Option<HeldLimits> {
    let held = place.held();
    let held: Vec<&HeldShare> = held.iter().collect();
    Some(beside_realtime(
        on_all(&place.processes.share, &held)?,
        realtime,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mosquitto() -> SystemFile {
        let catalog = pubgauge_testbed::Catalog::load(&[]).expect("sound");
        catalog.get("mosquitto").expect("known")
    }

    #[test]
    fn a_share_is_asked_for_and_what_became_of_it_is_told() {
        let mut system = mosquitto();
        let nothing = MachineShare::new(&mut system, Share::default(), 1, &ClientConfig::default());
        assert_eq!(
            (nothing.held(&[&HeldShare::default()]), nothing.pin),
            (None, vec![])
        );
        assert!(system.limits.cores.is_none() && system.limits.cpus.is_empty());

        // More processors than any machine has: the client is not kept apart, with a note.
        let share = Share {
            cores: Some(4096.0),
            memory_bytes: Some(64 << 20),
        };
        let shared = MachineShare::new(&mut system, share, 2, &ClientConfig::default());
        assert_eq!(
            (system.limits.cores, system.limits.memory_mib),
            (Some(4096.0), Some(64))
        );
        let held = HeldShare {
            memory_by: Some("cgroup".into()),
            not_held: vec!["4096 cores: why".into()],
            ..HeldShare::default()
        };
        let other = HeldShare {
            memory_by: None,
            ..held.clone()
        };
        let mixed = shared.held(&[&held, &other]).expect("asked for");
        assert_eq!((mixed.memory_by, mixed.not_held.len()), (None, 2));
        let told = shared.held(&[&held, &held]).expect("asked for");
        assert_eq!(told.memory_by.as_deref(), Some("cgroup"));
        assert_eq!((told.not_held.len(), told.clients_apart), (2, false));
        assert!(told.not_held[1].contains("too few for 8192 cores and 2 workers"));
    }

    #[test]
    fn who_has_a_place_keeps_it() {
        let share = Share {
            cores: Some(0.1),
            memory_bytes: None,
        };
        let client = ClientConfig {
            pin: vec![0],
            ..ClientConfig::default()
        };
        let mut system = mosquitto();
        let shared = MachineShare::new(&mut system, share, 1, &client);
        assert_eq!(
            (&shared.pin[..], &system.limits.cpus[..]),
            (&[0][..], &[][..])
        );
        assert_eq!(
            shared
                .held(&[&HeldShare::default()])
                .expect("asked for")
                .not_held,
            [""; 0]
        );
    }
}
