use std::path::Path;

use super::cgroup::Cgroups;
use super::*;

const SHARE: Share = Share {
    cores: Some(0.25),
    memory_bytes: Some(64 << 20),
};

fn put(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A folder that looks like version 2: the own group is `a/b`, and `a` enables `controllers` below
/// it.
fn version_two(root: &Path, controllers: &str) -> Cgroups {
    put(root, "cgroup.controllers", "cpu memory\n");
    put(root, "cgroup.subtree_control", "cpuset\n");
    put(root, "a/cgroup.subtree_control", controllers);
    put(root, "a/cgroup.procs", "");
    put(root, "a/b/cgroup.subtree_control", "\n");
    put(root, "a/b/cgroup.procs", "");
    Cgroups::from_membership(root, "0::/a/b\n")
}

fn read(group: &ControlGroup, name: &str) -> String {
    std::fs::read_to_string(group.path().join(name)).unwrap()
}

/// In the kernel a group's files go with its folder; here they are removed first.
fn empty(group: &ControlGroup) {
    for entry in group.path().read_dir().unwrap().flatten() {
        std::fs::remove_file(entry.path()).unwrap();
    }
}

fn held_by(cgroups: &Cgroups, share: &Share, usable: &[usize]) -> Holding {
    let env = [("GOMAXPROCS", "{cores}"), ("GOMEMLIMIT", "{memory-mib}MiB")]
        .map(|(name, text)| (name.to_owned(), text.to_owned()));
    hold_by(cgroups, share, usable, &[], env)
}

#[test]
fn version_two_holds_both_in_one_group_beside_the_own_one() {
    let root = tempfile::tempdir().unwrap();
    let cgroups = version_two(root.path(), "cpu io memory\n");
    let holding = held_by(&cgroups, &SHARE, &[0, 1]);
    let [group] = &holding.groups[..] else {
        panic!("{holding:?}")
    };
    assert_eq!(group.path().parent(), Some(&*root.path().join("a")));
    assert_eq!(read(group, "cpu.max"), "2500 10000");
    assert_eq!(read(group, "memory.max"), "67108864");
    assert_eq!(read(group, "memory.swap.max"), "0");
    assert_eq!(holding.held.not_held, [""; 0]);
    assert_eq!(cgroups.foresee(&SHARE).cores_by, holding.held.cores_by);
    assert_eq!(cgroups.foresee(&SHARE).memory_by, holding.held.memory_by);
    assert_eq!((holding.cpus.len(), holding.env.len()), (0, 0));
    let path = group.path().to_owned();
    empty(group);
    drop(holding);
    assert!(!path.exists());
}

#[test]
fn what_version_two_does_not_hand_on_is_held_otherwise_and_said() {
    let root = tempfile::tempdir().unwrap();
    let cgroups = version_two(root.path(), "memory\n");
    let holding = held_by(&cgroups, &SHARE, &[0, 1]);
    assert!(holding.groups.is_empty(), "{holding:?}");
    assert_eq!(holding.cpus, [1]);
    let env = [("GOMAXPROCS", "1"), ("GOMEMLIMIT", "64MiB")];
    assert_eq!(holding.env, env.map(|(n, v)| (n.to_owned(), v.to_owned())));
    let [cores, memory] = &holding.held.not_held[..] else {
        panic!("{holding:?}")
    };
    assert!(
        cores.contains("0.25 cores") && cores.contains("hands on `cpu`"),
        "{cores}"
    );
    assert!(
        cores.contains("affinity to processors 1, GOMAXPROCS=1"),
        "{cores}"
    );
    assert!(memory.ends_with("instead GOMEMLIMIT=64MiB"), "{memory}");
    // A system with processors of its own keeps them.
    let holding = hold_by(&cgroups, &SHARE, &[0, 1, 2], &[0], []);
    assert!(holding.cpus.is_empty());
    assert_eq!(
        holding.held.cores_by.as_deref(),
        Some("affinity to processors 0")
    );
    // Only memory is enabled for child groups.
    let share = Share {
        cores: None,
        ..SHARE
    };
    let holding = held_by(&cgroups, &share, &[0, 1]);
    assert_eq!(holding.groups.len(), 1);
    assert_eq!(
        (&holding.held.cores_by, &holding.held.not_held[..]),
        (&None, &[][..])
    );
    holding.groups.iter().for_each(empty);
}

#[test]
fn version_one_has_a_group_for_each_below_the_own_ones() {
    let root = tempfile::tempdir().unwrap();
    for name in [
        "cpu/cgroup.procs",
        "cpu/x/cgroup.procs",
        "memory/cgroup.procs",
    ] {
        put(root.path(), name, "");
    }
    // A container does not see its own group under its full name.
    let membership = "3:cpu,cpuacct:/x\n2:memory:/docker/1234\n0::/\n";
    let cgroups = Cgroups::from_membership(root.path(), membership);
    let holding = held_by(&cgroups, &SHARE, &[0]);
    let [cpu, memory] = &holding.groups[..] else {
        panic!("{holding:?}")
    };
    assert_eq!(cpu.path().parent(), Some(&*root.path().join("cpu/x")));
    assert_eq!(read(cpu, "cpu.cfs_period_us"), "10000");
    assert_eq!(read(cpu, "cpu.cfs_quota_us"), "2500");
    assert_eq!(memory.path().parent(), Some(&*root.path().join("memory")));
    assert_eq!(read(memory, "memory.limit_in_bytes"), "67108864");
    holding.groups.iter().for_each(empty);
}

#[test]
fn without_groups_nothing_is_silent() {
    let root = tempfile::tempdir().unwrap();
    let cgroups = Cgroups::from_membership(root.path(), "");
    // One processor leaves no choice of processors.
    let holding = hold_by(&cgroups, &SHARE, &[0], &[], []);
    assert_eq!(
        (&holding.held.cores_by, &holding.held.memory_by),
        (&None, &None)
    );
    assert_eq!(holding.held.not_held.len(), 2);
    assert!(holding.held.not_held[1].starts_with("64 MiB of memory: no control group"));
    assert_eq!(cgroups.foresee(&SHARE).not_held.len(), 2);
    let nothing = hold_by(&cgroups, &Share::default(), &[0, 1], &[], []);
    assert_eq!(nothing.held, HeldShare::default());
}

#[test]
fn clients_are_kept_apart_where_there_are_processors() {
    let eight: Vec<usize> = (0..8).collect();
    let parted = |cores, workers| divide(&eight, cores, workers);
    assert_eq!(parted(1.5, 2), Some((vec![6, 7], (0..6).collect())));
    assert_eq!(parted(6.0, 2), Some(((2..8).collect(), vec![0, 1])));
    assert_eq!(parted(6.5, 2), None);
    assert_eq!(divide(&[3], 0.1, 1), None);
}

#[test]
fn instances_without_groups_are_on_processors_of_their_own() {
    let root = tempfile::tempdir().unwrap();
    let cgroups = Cgroups::from_membership(root.path(), "");
    let share = Share {
        cores: Some(1.0),
        memory_bytes: None,
    };
    let taken = |number| {
        let usable = in_turn(&share, vec![0, 1, 2, 3], number);
        held_by(&cgroups, &share, &usable).cpus
    };
    assert_eq!([0, 1, 2].map(taken), [[3], [2], [1]]);
}
