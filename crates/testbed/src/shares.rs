//! Held shares of the machine: limits of processor time and memory for each instance of a system,
//! so that a second instance on a machine is like one on a second host. Worker processes have some
//! too.
//!
//! A share is held by a control group of the kernel, version 2 or 1, where one may be made in
//! pubgauge's own group or in one around it: processor time as a quota for each period of 10 ms,
//! memory as a limit without swap. Where that is not possible, processor time is held by affinity
//! to a number of processors, rounded up, and both by the system's own settings where its file
//! names them. [`HeldShare::not_held`] says what was not possible.
//!
//! A host of a given size ([`HostShare`]) is a group that several processes enter. pubgauge removes it; where pubgauge
//! was killed, the guard of the last of them does.
//!
//! The group is made before the system starts; the system enters it before `execve`, and its
//! descendants inherit it. The guard removes it when the last of them is gone, however pubgauge
//! ended. If the guard was killed too, the group stays, locked by no process, and the next pubgauge
//! removes it ([`crate::OwnedFolder`]); a group with processes in it cannot be removed.

mod cgroup;
mod host;
mod share;

use std::ffi::CString;

use cgroup::Cgroups;
pub(crate) use cgroup::ControlGroup;
pub use host::HostShare;
pub use pubgauge_driver::share::{MAX_CORES, MIN_CORES, MIN_MEMORY_MIB};
pub use pubgauge_quantities::Share;
pub use share::{HeldShare, PERIOD_US};
pub(crate) use share::{in_turn, next_processors};

/// A share that is held until this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Holding {
    pub held: HeldShare,
    /// The processors to stay on, instead of a quota; empty: no restriction.
    pub cpus: Vec<usize>,
    /// The system's own settings, for what the kernel does not hold.
    pub env: Vec<(String, String)>,
    pub groups: Vec<ControlGroup>,
}

impl Holding {
    /// Its groups, as a guard takes them.
    pub(crate) fn names(&self) -> Vec<[CString; 2]> {
        self.groups.iter().map(ControlGroup::names).collect()
    }
}

/// Holds a share as well as possible here. `usable` are the processors that may be used, `bound`
/// those to which the system is bound already (empty: none), `env` its own settings as templates.
pub(crate) fn hold(
    share: &Share,
    usable: &[usize],
    bound: &[usize],
    env: impl IntoIterator<Item = (String, String)>,
) -> Holding {
    hold_by(&Cgroups::of_this_process(), share, usable, bound, env)
}

fn hold_by(
    cgroups: &Cgroups,
    share: &Share,
    usable: &[usize],
    bound: &[usize],
    env: impl IntoIterator<Item = (String, String)>,
) -> Holding {
    let mut holding = Holding::default();
    if share.is_none() {
        return holding;
    }
    let tries = cgroups.hold(share, &mut holding.groups);
    let held = &mut holding.held;
    held.groups = holding.groups.iter().map(|g| g.path().to_owned()).collect();
    let whole = share.cores.map(|cores| cores.ceil() as usize);
    let own: Vec<(String, String)> = env.into_iter().collect();
    let mut by_itself = |marker: &str, value: String| {
        let of_it = own.iter().filter(|(_, text)| text.contains(marker));
        let filled = of_it.map(|(name, text)| (name.clone(), text.replace(marker, &value)));
        let filled: Vec<(String, String)> = filled.collect();
        let words: Vec<String> = filled.iter().map(|(n, v)| format!("{n}={v}")).collect();
        holding.env.extend(filled);
        words
    };
    if let (Some(asked), Some(whole)) = (share.cores, whole) {
        match tries.cores {
            Ok(how) => {
                held.cores_by = Some(how);
                held.cores_by_quota = true;
            }
            Err(why) => {
                let mut ways = by_itself("{cores}", whole.to_string());
                if bound.is_empty() && whole < usable.len() {
                    holding.cpus = usable[usable.len() - whole..].to_vec();
                }
                let cpus = if bound.is_empty() {
                    &holding.cpus
                } else {
                    bound
                };
                if !cpus.is_empty() {
                    let cpus = crate::realtime::list(cpus);
                    ways.insert(0, format!("affinity to processors {cpus}"));
                }
                held.cores_by = held.instead(format!("{asked} cores as a quota: {why}"), &ways);
            }
        }
    }
    if let Some(bytes) = share.memory_bytes {
        match tries.memory {
            Ok(how) => held.memory_by = Some(how),
            Err(why) => {
                let mib = bytes >> 20;
                let ways = by_itself("{memory-mib}", mib.to_string());
                held.memory_by = held.instead(format!("{mib} MiB of memory: {why}"), &ways);
            }
        }
    }
    holding
}

/// How a share would be held here, as far as can be told without making control groups.
pub fn foresee(share: &Share) -> HeldShare {
    Cgroups::of_this_process().foresee(share)
}

/// Divides `usable` processors into those of a system with a share of `cores` and those of the
/// client, at least one for each of its `workers`; `None` if there are not enough.
pub fn divide(usable: &[usize], cores: f64, workers: usize) -> Option<(Vec<usize>, Vec<usize>)> {
    let whole = cores.ceil() as usize;
    if usable.len() < whole.saturating_add(workers.max(1)) {
        return None;
    }
    let (clients, system) = usable.split_at(usable.len() - whole);
    Some((system.to_vec(), clients.to_vec()))
}

#[cfg(test)]
mod tests;
