//! Quotas of processor time around this process (a container's), and how often and for how long the kernel held
//! processes back at the end of one: `Documentation/scheduler/sched-bwc.rst`.

use std::path::{Path, PathBuf};

use super::available::read;
use super::groups::groups_here;
use crate::procfs::number_in;

/// A quota of processor time of a control group, for all its processes together.
#[derive(Clone, Debug, PartialEq)]
pub struct Quota {
    /// Processor time of a period, in processors, above 0.
    pub cores: f64,
    /// Length of a period, in nanoseconds.
    pub period_ns: u64,
    /// Its group.
    folder: PathBuf,
}

impl Quota {
    /// The quota of one group, of either version; `None` without any.
    pub fn read_group(folder: &Path) -> Option<Quota> {
        let (quota_us, period_us) = match read(folder.join("cpu.max")) {
            // `max` is no limit.
            Some(text) => {
                let (quota, period) = text.trim().split_once(' ')?;
                (number(quota)?, number(period)?)
            }
            None => (
                // -1 is no limit.
                number(&read(folder.join("cpu.cfs_quota_us"))?)?,
                number(&read(folder.join("cpu.cfs_period_us"))?)?,
            ),
        };
        (quota_us > 0 && period_us > 0).then(|| Quota {
            cores: quota_us as f64 / period_us as f64,
            period_ns: period_us.saturating_mul(1_000),
            folder: folder.to_owned(),
        })
    }

    /// Its effect so far; `None` where the kernel does not report it.
    pub fn throttling(&self) -> Option<Throttling> {
        Throttling::read_group(&self.folder)
    }
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// The effect of a quota since its group was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttling {
    /// Periods in which processes of the group ran.
    pub periods: u64,
    /// Those at the end of which processes were held back because the quota was used up.
    pub throttled_periods: u64,
    /// For how long they were, ns, added up over processors.
    pub throttled_ns: u64,
}

impl Throttling {
    /// Reads `cpu.stat` of a group.
    pub(crate) fn read_group(folder: &Path) -> Option<Throttling> {
        Throttling::parse(&read(folder.join("cpu.stat"))?)
    }

    /// Of `cpu.stat`: the time is `throttled_time` in ns (version 1), or `throttled_usec` (version 2).
    fn parse(text: &str) -> Option<Throttling> {
        let us = || number_in(text, "throttled_usec ");
        Some(Throttling {
            periods: number_in(text, "nr_periods ")?,
            throttled_periods: number_in(text, "nr_throttled ")?,
            throttled_ns: number_in(text, "throttled_time ")
                .or_else(|| Some(us()?.saturating_mul(1_000)))?,
        })
    }

    /// Its effect since an earlier reading.
    pub fn since(&self, earlier: &Throttling) -> Throttling {
        Throttling {
            periods: self.periods.saturating_sub(earlier.periods),
            throttled_periods: (self.throttled_periods).saturating_sub(earlier.throttled_periods),
            throttled_ns: self.throttled_ns.saturating_sub(earlier.throttled_ns),
        }
    }
}

/// The quotas of the control groups around this process, tightest first: each of them may hold it back.
pub fn quotas() -> Vec<Quota> {
    tightest_first(&groups_here("cpu"))
}

fn tightest_first(groups: &[PathBuf]) -> Vec<Quota> {
    let mut quotas: Vec<Quota> = groups
        .iter()
        .filter_map(|group| Quota::read_group(group))
        .collect();
    quotas.sort_by(|a, b| a.cores.total_cmp(&b.cores));
    quotas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_of_processor_time_is_that_of_either_version() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
        let told = || Quota::read_group(folder.path()).map(|quota| (quota.cores, quota.period_ns));
        assert_eq!(told(), None);
        write("cpu.cfs_quota_us", "-1\n").unwrap();
        assert_eq!(told(), None, "no period");
        write("cpu.cfs_period_us", "100000\n").unwrap();
        assert_eq!(told(), None, "no limit");
        write("cpu.cfs_quota_us", "150000\n").unwrap();
        assert_eq!(told(), Some((1.5, 100_000_000)));
        write("cpu.max", "max 100000\n").unwrap();
        assert_eq!(told(), None);
        write("cpu.max", "2000 10000\n").unwrap();
        assert_eq!(told(), Some((0.2, 10_000_000)));
        for odd in ["", "0 100000\n", "5 0\n", "100000\n", "x y\n", "\n\n"] {
            write("cpu.max", odd).unwrap();
            assert_eq!(told(), None, "{odd:?}");
        }
    }

    #[test]
    fn both_versions_tell_how_often_and_how_long_processes_were_held_back() {
        let told = |text: &str| {
            let told = Throttling::parse(text)?;
            Some((told.periods, told.throttled_periods, told.throttled_ns))
        };
        let one = "nr_periods 303\nnr_throttled 299\nthrottled_time 2355266616\n";
        let two =
            "usage_usec 7\nnr_periods 3\nnr_throttled 2\nthrottled_usec 2355266\nnr_bursts 0\n";
        assert_eq!(told(one), Some((303, 299, 2_355_266_616)));
        assert_eq!(told(two), Some((3, 2, 2_355_266_000)));
        for odd in [
            "",
            "usage_usec 7\n",
            "nr_periods 3\nnr_throttled x\nthrottled_time 1\n",
        ] {
            assert_eq!(told(odd), None, "{odd:?}");
        }
        let (from, to) = (Throttling::parse(one), Throttling::parse(two));
        let nothing = Throttling::default();
        assert_eq!(from.unwrap().since(&from.unwrap()), nothing);
        // The group was made again meanwhile.
        assert_eq!(to.unwrap().since(&from.unwrap()), nothing);
    }

    #[test]
    fn every_quota_around_counts_the_tightest_first() {
        let root = tempfile::tempdir().unwrap();
        let [outer, inner] = [root.path().join("a"), root.path().join("a/b")];
        std::fs::create_dir_all(&inner).unwrap();
        let groups = [inner.clone(), outer.clone(), root.path().to_owned()];
        assert_eq!(tightest_first(&groups), []);
        std::fs::write(inner.join("cpu.max"), "100000 100000\n").unwrap();
        std::fs::write(outer.join("cpu.max"), "50000 100000\n").unwrap();
        let cores: Vec<f64> = tightest_first(&groups).iter().map(|q| q.cores).collect();
        assert_eq!(cores, [0.5, 1.0]);
    }
}
