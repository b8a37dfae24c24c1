//! Held shares of this machine's own kernel: in force while a system runs, and gone with it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pubgauge_testbed::limits::Quota;
use pubgauge_testbed::shares::{HostShare, Share};
use pubgauge_testbed::{Running, Site, SystemFile, Testbed, procfs};

/// Two processes that never rest, one of them out of the other's sight.
const BURNING: &str = r#"
name = "burning"
driver = "mqtt"
[find]
executables = ["/bin/sh"]
[run]
command = ["{exe}", "-c", "(setsid sh -c 'while :; do :; done' &); echo ready; while :; do :; done"]
[ready]
stdout-line = "ready"
[stop]
grace-s = 0.2
[limits]
cores = 0.2
memory-mib = 64
"#;

fn start(scratch: &Path) -> Running {
    let system = SystemFile::parse(BURNING, "burning.toml").expect("right");
    let testbed = Testbed::new().expect("own program");
    testbed.start(&system, None, scratch).expect("starts")
}

/// The groups of a running system; where this machine lets none be made, that must have been said.
fn groups(running: &Running) -> Vec<PathBuf> {
    let share = &running.record.share;
    let told = share
        .not_held
        .iter()
        .filter(|w| w.contains("cgroup") || w.contains("control group"));
    assert_eq!(share.groups.is_empty(), told.count() == 2, "{share:?}");
    share.groups.clone()
}

/// Processor time of all its processes.
fn used(running: &Running) -> Duration {
    let pids = running.pids();
    assert_eq!(pids.len(), 2, "{pids:?}");
    let of = |pid: &i32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).expect("alive");
        let ns = text.split(' ').next().and_then(|ns| ns.parse().ok());
        Duration::from_nanos(ns.expect("a number"))
    };
    pids.iter().map(of).sum()
}

fn gone(groups: &[PathBuf]) {
    for group in groups {
        assert!(!group.exists(), "{} is left", group.display());
    }
}

#[test]
fn a_share_is_in_force_for_all_processes_of_a_system() {
    let scratch = tempfile::tempdir().unwrap();
    let running = start(scratch.path());
    let groups = groups(&running);
    let mut told = Vec::new();
    for group in &groups {
        let inside = std::fs::read_to_string(group.join("cgroup.procs")).unwrap();
        let mut inside: Vec<i32> = inside.lines().map(|pid| pid.parse().unwrap()).collect();
        let mut all = running.pids();
        inside.sort_unstable();
        all.sort_unstable();
        assert_eq!(inside, all, "{}", group.display());
        for name in [
            "memory.max",
            "memory.limit_in_bytes",
            "cpu.max",
            "cpu.cfs_quota_us",
        ] {
            let text = std::fs::read_to_string(group.join(name));
            told.extend(text.map(|text| text.trim().to_owned()));
        }
    }
    told.sort_unstable();
    match &groups[..] {
        [] => {}
        [_] => assert_eq!(told, ["2000 10000", "67108864"]),
        _ => assert_eq!(told, ["2000", "67108864"]),
    }
    if groups.is_empty() {
        return;
    }
    // The time between is read wider than the processor time: the bound holds on a busy machine.
    let (from, before) = (Instant::now(), used(&running));
    loop {
        let used = used(&running) - before;
        let most = from.elapsed().mul_f64(0.2) + Duration::from_millis(20);
        assert!(used <= most, "{used:?} in {:?}", from.elapsed());
        if used > Duration::from_millis(200) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    running.stop();
    gone(&groups);
}

#[test]
fn a_share_lasts_over_a_restart_and_goes_with_the_system() {
    let scratch = tempfile::tempdir().unwrap();
    let mut running = start(scratch.path());
    let first = groups(&running);
    running.kill();
    gone(&first);
    running.restart().expect("again");
    let own = |pid: i32| std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let within = |text: String| text.lines().filter(|l| l.contains("/pubgauge-")).count();
    assert_eq!(within(own(running.pid().unwrap())), first.len());
    let second: Vec<PathBuf> = groups(&running);
    drop(running);
    gone(&second);
}

#[test]
fn what_a_killed_run_left_is_removed_and_nothing_else() {
    let scratch = tempfile::tempdir().unwrap();
    let running = start(scratch.path());
    let own = groups(&running);
    let beside = |name: &'static str| own.iter().map(move |g| g.with_file_name(name));
    let left: Vec<PathBuf> = beside("pubgauge-0123456789abcdef").collect();
    let others: Vec<PathBuf> = beside("somebody-else-of-pubgauge-tests").collect();
    for group in left.iter().chain(&others) {
        std::fs::create_dir(group).unwrap();
    }
    let another = start(scratch.path());
    let still: Vec<_> = others.iter().map(|group| group.is_dir()).collect();
    others
        .iter()
        .for_each(|group| std::fs::remove_dir(group).unwrap());
    assert!(still.iter().all(|there| *there));
    gone(&left);
    assert!(
        own.iter().all(|group| group.is_dir()),
        "one in use is not removed"
    );
    assert!(procfs::descendants(running.root_pid().unwrap()).len() == 2);
    another.stop();
    running.stop();
    gone(&own);
}

#[test]
fn a_system_that_outgrows_its_memory_is_said_to_have_had_a_limit() {
    // `tail` keeps a line that never ends; address space bounds it where no group can be made.
    let file = BURNING
        .replace(
            "(setsid sh -c 'while :; do :; done' &); echo ready; while :; do :; done",
            "echo ready; exec tail /dev/zero",
        )
        .replace("cores = 0.2", "address-space-mib = 1024")
        .replace("burning", "growing");
    let system = SystemFile::parse(&file, "growing.toml").expect("right");
    let scratch = tempfile::tempdir().unwrap();
    let testbed = Testbed::new().expect("own program");
    let running = testbed
        .start(&system, None, scratch.path())
        .expect("starts");
    let deadline = Instant::now() + Duration::from_secs(60);
    let end = loop {
        if let Some(end) = running.exit_reason() {
            break end;
        }
        assert!(Instant::now() < deadline, "it still grows");
        std::thread::sleep(Duration::from_millis(20));
    };
    let limited = running.record.share.memory_by.is_some();
    assert_eq!(
        end.contains("its memory is limited to 64 MiB"),
        limited,
        "{end}"
    );
    let groups = running.record.share.groups.clone();
    assert_eq!(groups.len(), usize::from(limited));
    drop(running);
    gone(&groups);
}

/// A host of a given size has one group for all that is started on it, which stays until the last of them is gone.
#[test]
fn processes_of_a_host_share_what_it_has() {
    let scratch = tempfile::tempdir().unwrap();
    let share = Share {
        cores: Some(0.2),
        memory_bytes: Some(64 << 20),
    };
    let host = Arc::new(HostShare::hold(share, 0));
    let groups = host.held().groups.clone();
    let system = SystemFile::parse(BURNING, "burning.toml").expect("right");
    let testbed = Testbed::new().expect("own program");
    let site = Site {
        share: Some(host.clone()),
        ..Site::default()
    };
    let start = || {
        let started = testbed.start_on(&site, &system, None, scratch.path());
        started.expect("starts")
    };
    let (one, other) = (start(), start());
    assert_eq!(one.record.share, *host.held());
    if groups.is_empty() {
        return;
    }
    let mut all = [one.pids(), other.pids()].concat();
    all.sort_unstable();
    assert_eq!(host.pids(), all);
    let throttled = || host.throttled_ns().expect("a quota");
    let (from, before) = (Instant::now(), (used(&one) + used(&other), throttled()));
    loop {
        let used = used(&one) + used(&other) - before.0;
        let most = from.elapsed().mul_f64(0.2) + Duration::from_millis(20);
        assert!(used <= most, "{used:?} in {:?}", from.elapsed());
        if used > Duration::from_millis(200) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(throttled() > before.1, "four processes for 0.2 of one");
    let quotas: Vec<Quota> = groups
        .iter()
        .filter_map(|group| Quota::read_group(group))
        .collect();
    let [quota] = &quotas[..] else {
        panic!("{quotas:?}");
    };
    assert_eq!((quota.cores, quota.period_ns), (0.2, 10_000_000));
    let told = quota.throttling().expect("a quota");
    assert!(
        told.throttled_periods > 0 && told.throttled_periods <= told.periods,
        "{told:?}"
    );
    one.stop();
    assert_eq!(host.pids(), other.pids());
    other.stop();
    assert!(groups.iter().all(|group| group.exists()));
    drop((site, host));
    gone(&groups);
}
