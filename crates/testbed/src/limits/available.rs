//! Reads the limits and what of them is used.

use std::ops::RangeInclusive;
use std::path::Path;

use rustix::process::{self, getrlimit};

use super::groups::groups_here;
use crate::procfs::number_in;

/// The resources that the client's process and host have left. `u64::MAX` where there is no limit, or none that
/// can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Available {
    /// Open files allowed once the soft limit is raised to the hard one
    /// ([`super::raise_nofile`]).
    pub files_limit: u64,
    /// Files open now.
    pub files_open: u64,
    /// Ports that the kernel gives to connections from one source address to one port of a server.
    pub ports: u64,
    /// Threads that may still be started.
    pub threads: u64,
    /// The limit that bounds them.
    pub threads_bound: &'static str,
    /// Memory that can be allocated without swapping, in bytes.
    pub memory_bytes: u64,
    pub memory_bound: &'static str,
}

/// Reads what there is at this moment.
pub fn available() -> Available {
    let (memory_bytes, memory_bound) = memory();
    let (threads, threads_bound) = threads();
    Available {
        files_limit: getrlimit(process::Resource::Nofile)
            .maximum
            .unwrap_or(u64::MAX),
        files_open: open_files(),
        ports: ports(),
        threads,
        threads_bound,
        memory_bytes,
        memory_bound,
    }
}

/// Number of open files of this process; 0 if that cannot be read.
pub(super) fn open_files() -> u64 {
    std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64)
}

pub(super) fn read(path: impl AsRef<Path>) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

fn ports() -> u64 {
    let reserved = read("/proc/sys/net/ipv4/ip_local_reserved_ports").unwrap_or_default();
    ephemeral_ports().map_or(u64::MAX, |range| usable_ports(range, &reserved))
}

/// The ports that the kernel gives to connections.
pub(crate) fn ephemeral_ports() -> Option<RangeInclusive<u64>> {
    port_range(&read("/proc/sys/net/ipv4/ip_local_port_range")?)
}

/// The first and the last port, separated by white space.
fn port_range(text: &str) -> Option<RangeInclusive<u64>> {
    let mut ends = text.split_whitespace().map(str::parse::<u64>);
    Some(ends.next()?.ok()?..=ends.next()?.ok()?)
}

/// How many ports of `range` are not among the `reserved` ones, for example `8080,9148-9200`. Linux
/// takes ports in pairs, and leaves out the last of an odd number (`__inet_hash_connect`).
fn usable_ports(range: RangeInclusive<u64>, reserved: &str) -> u64 {
    let (first, last) = range.into_inner();
    let pairs = (last + 1).saturating_sub(first) & !1;
    let range = first..first + pairs;
    let is_reserved = |port: u64| {
        reserved.trim().split(',').any(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            matches!(
                (first.parse::<u64>(), last.parse::<u64>()),
                (Ok(first), Ok(last)) if (first..=last).contains(&port)
            )
        })
    };
    range.filter(|port| !is_reserved(*port)).count() as u64
}

fn memory() -> (u64, &'static str) {
    let host = read("/proc/meminfo").and_then(|text| mem_available(&text));
    let host = (host.unwrap_or(u64::MAX), "MemAvailable of /proc/meminfo");
    let group = groups_here("memory")
        .into_iter()
        .filter_map(|folder| memory_left(&folder))
        .min();
    let group = (
        group.unwrap_or(u64::MAX),
        "what is left of the cgroup's memory limit",
    );
    host.min(group)
}

fn mem_available(meminfo: &str) -> Option<u64> {
    Some(number_in(meminfo, "MemAvailable:")? << 10)
}

/// The memory that a cgroup may still allocate, its inactive page cache counted as free.
fn memory_left(folder: &Path) -> Option<u64> {
    let limit = limit_of(folder)?;
    let used = number_of(folder, ["memory.current", "memory.usage_in_bytes"])?;
    let stat = read(folder.join("memory.stat")).unwrap_or_default();
    let mut names = ["total_inactive_file ", "inactive_file "].iter();
    let cache = names.find_map(|name| number_in(&stat, name)).unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(cache)))
}

/// Memory that the control groups around this process leave it, by their limits, in bytes; `None` without any.
pub(crate) fn limit_bytes() -> Option<u64> {
    let groups = groups_here("memory");
    groups.iter().filter_map(|folder| limit_of(folder)).min()
}

/// The memory limit of one group, in bytes.
fn limit_of(folder: &Path) -> Option<u64> {
    number_of(folder, ["memory.max", "memory.limit_in_bytes"])
}

/// The number in the first of these files that there is; `max` is none.
fn number_of(folder: &Path, names: [&str; 2]) -> Option<u64> {
    let text = names.iter().find_map(|name| read(folder.join(name)))?;
    text.trim().parse().ok()
}

fn threads() -> (u64, &'static str) {
    let group = groups_here("pids")
        .into_iter()
        .filter_map(|folder| {
            let number = |name: &str| read(folder.join(name))?.trim().parse::<u64>().ok();
            Some(number("pids.max")?.saturating_sub(number("pids.current")?))
        })
        .min();
    let host = read("/proc/sys/kernel/threads-max").and_then(|max| {
        let most: u64 = max.trim().parse().ok()?;
        Some(most.saturating_sub(all_threads(&read("/proc/loadavg")?)?))
    });
    [
        (group.unwrap_or(u64::MAX), "the cgroup's pids.max"),
        (host.unwrap_or(u64::MAX), "kernel.threads-max"),
        (user_threads_left().unwrap_or(u64::MAX), "ulimit -u"),
    ]
    .into_iter()
    .min_by_key(|(left, _)| *left)
    .unwrap_or((u64::MAX, ""))
}

/// Threads of the host, from a text like `0.20 0.18 0.12 1/80 11206`.
fn all_threads(loadavg: &str) -> Option<u64> {
    let (_, all) = loadavg.split_whitespace().nth(3)?.split_once('/')?;
    all.parse().ok()
}

/// Threads that this user may still start; `None` for root, who has no such limit.
fn user_threads_left() -> Option<u64> {
    // SAFETY: no arguments; cannot fail.
    let user = unsafe { libc::getuid() };
    if user == 0 {
        return None;
    }
    let limit = getrlimit(process::Resource::Nproc).current?;
    let running: u64 = std::fs::read_dir("/proc")
        .ok()?
        .flatten()
        .filter_map(|entry| threads_of(&read(entry.path().join("status"))?, user))
        .sum();
    Some(limit.saturating_sub(running))
}

/// The threads of a process, if it is of this user.
fn threads_of(status: &str, user: u32) -> Option<u64> {
    let is_own = number_in(status, "Uid:")? == u64::from(user);
    number_in(status, "Threads:").filter(|_| is_own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_memory_is_that_of_either_version() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
        assert_eq!(limit_of(folder.path()), None);
        write("memory.limit_in_bytes", "2147483648\n").unwrap();
        assert_eq!(limit_of(folder.path()), Some(2 << 30));
        write("memory.max", "max\n").unwrap();
        assert_eq!(limit_of(folder.path()), None, "no limit");
        write("memory.max", "1000\n").unwrap();
        assert_eq!(limit_of(folder.path()), Some(1000));
    }

    #[test]
    fn ports_are_those_of_the_range_that_are_not_reserved() {
        assert_eq!(port_range("32768\t60999\n"), Some(32_768..=60_999));
        assert_eq!(port_range("nonsense"), None);
        assert_eq!(usable_ports(32_768..=60_999, "\n"), 28_232);
        assert_eq!(usable_ports(40_000..=40_009, "8080,40003,40008-50000"), 7);
        assert_eq!(usable_ports(40_000..=40_009, "40000-40009"), 0);
        assert_eq!(usable_ports(40_000..=40_008, ""), 8);
    }

    #[test]
    fn what_a_cgroup_has_left_is_without_its_page_cache() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
        assert_eq!(memory_left(folder.path()), None);
        write("memory.max", "max\n").unwrap();
        write("memory.current", "600\n").unwrap();
        write(
            "memory.stat",
            "anon 100\ninactive_file 500\nactive_file 7\n",
        )
        .unwrap();
        assert_eq!(memory_left(folder.path()), None, "no limit");
        write("memory.max", "1000\n").unwrap();
        assert_eq!(memory_left(folder.path()), Some(900));
        write("memory.max", "50\n").unwrap();
        assert_eq!(memory_left(folder.path()), Some(0));
        // Version 1 has other names.
        let old = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(old.path().join(name), text);
        write("memory.limit_in_bytes", "1000").unwrap();
        write("memory.usage_in_bytes", "600").unwrap();
        write("memory.stat", "inactive_file 1\ntotal_inactive_file 100\n").unwrap();
        assert_eq!(memory_left(old.path()), Some(500));
    }

    #[test]
    fn numbers_out_of_proc() {
        assert_eq!(
            mem_available("MemTotal: 9 kB\nMemAvailable:   7 kB\n"),
            Some(7168)
        );
        assert_eq!(all_threads("0.20 0.18 0.12 1/80 11206"), Some(80));
        let status = "Name:\tx\nUid:\t1000\t0\t0\t0\nThreads:\t5\n";
        assert_eq!(threads_of(status, 1000), Some(5));
        assert_eq!(threads_of(status, 0), None);
    }

    #[test]
    fn this_host_has_something_left_of_everything() {
        let here = available();
        assert!(
            here.files_open >= 3 && here.files_limit > here.files_open,
            "{here:?}"
        );
        assert!(here.ports > 0 && here.threads > 0, "{here:?}");
        assert!((1 << 20..1 << 60).contains(&here.memory_bytes), "{here:?}");
    }
}
