//! A host of a given size on this machine.

use std::collections::BTreeSet;
use std::path::Path;

use super::Share;
use super::share::HeldShare;
use super::{ControlGroup, Holding, hold};
use crate::limits::Throttling;
use crate::realtime::usable_cpus;

/// The share of all processes of a host together, held while this lives: whatever is started on the host
/// enters the same control groups.
#[derive(Debug)]
pub struct HostShare {
    share: Share,
    holding: Holding,
}

impl HostShare {
    /// Holds a share as well as possible here. `taken`: whole processors of the hosts before this one; where processor
    /// time is limited by affinity, hosts take processors in turn.
    pub fn hold(share: Share, taken: usize) -> HostShare {
        let usable = super::next_processors(usable_cpus(), taken);
        HostShare {
            share,
            holding: hold(&share, &usable, &[], []),
        }
    }

    /// The share that is held.
    pub fn share(&self) -> Share {
        self.share
    }

    /// Which limits hold.
    pub fn held(&self) -> &HeldShare {
        &self.holding.held
    }

    /// Time for which the kernel has kept its processes waiting since the share was used up for that period, ns,
    /// added up over processors; `None` where no quota is held.
    pub fn throttled_ns(&self) -> Option<u64> {
        let mut groups = self.held().groups.iter();
        groups.find_map(|group| Some(Throttling::read_group(group)?.throttled_ns))
    }

    /// Its processes; none where no group holds them.
    pub fn pids(&self) -> Vec<i32> {
        let listed = |group: &Path| std::fs::read_to_string(group.join("cgroup.procs"));
        let texts = self
            .held()
            .groups
            .iter()
            .filter_map(|group| listed(group).ok());
        let pids: BTreeSet<i32> = texts
            .flat_map(|text| text.lines().flat_map(str::parse).collect::<Vec<i32>>())
            .collect();
        pids.into_iter().collect()
    }

    /// Gives its processes all processor time that there is for as long as `what` takes: the start of a server that
    /// is slow on a small host is not what is measured.
    pub(crate) fn free_while<T>(&self, what: impl FnOnce() -> T) -> T {
        struct Again<'a>(&'a Share, &'a [ControlGroup]);
        impl Drop for Again<'_> {
            fn drop(&mut self) {
                self.1.iter().for_each(|group| group.limit(self.0.cores));
            }
        }
        let groups = &self.holding.groups[..];
        let _again = Again(&self.share, groups);
        groups.iter().for_each(|group| group.limit(None));
        what()
    }

    pub(crate) fn holding(&self) -> &Holding {
        &self.holding
    }
}
