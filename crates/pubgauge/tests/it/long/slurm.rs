//! Three nodes of Slurm's, which are network namespaces with names of their own: `srun` starts workers on them within an
//! allocation, with a system between them and without; a node that is gone breaks its trial and is told by name. Needs root,
//! `ip`, and Slurm with munge.

use crate::common;

use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use pubgauge_testing::free_port;

use common::hosts::{Hosts, counts, flags, named, paced, paced_on};
use common::*;

/// Longest time that a part of Slurm takes to start on a busy machine, or to end.
const PATIENCE: Duration = Duration::from_secs(60);
/// Until a lost host is given up, and some time more.
const GIVEN_UP: Duration = Duration::from_secs(150);

/// Slurm: munge, a controller on this host and a node on each of the others. All ends when this is dropped, and
/// what is below `folder` is left to whoever owns that.
struct Slurm<'a> {
    place: &'a Place,
    hosts: &'a Hosts,
    processes: Vec<Child>,
}

impl<'a> Slurm<'a> {
    fn start(place: &'a Place, hosts: &'a Hosts) -> Slurm<'a> {
        std::fs::create_dir(place.path_to("slurm")).unwrap();
        let mut slurm = Slurm {
            place,
            hosts,
            processes: Vec::new(),
        };
        slurm.munge();
        let [controller, node] = [free_port(), free_port()];
        slurm.configure(controller, node);
        let conf = place.path_to("slurm/slurm.conf").display().to_string();
        slurm.spawn(named(
            "ctl",
            Path::new("slurmctld"),
            &format!("-D -f {conf}"),
        ));
        for rank in 0..hosts.names.len() {
            let line = format!("-D -f {conf}");
            slurm.spawn(hosts.start(rank, Path::new("slurmd"), &line));
        }
        slurm.until("idle nodes", |slurm| {
            let idle = format!("{} idle", hosts.names.len());
            slurm.asked("sinfo", &["--noheader", "--format=%D %t"]) == idle
        });
        slurm
    }

    /// A daemon of munge's of its own, whose key nobody else has.
    fn munge(&mut self) {
        let at = |name: &str| self.place.path_to("slurm").join(name);
        let mut key = std::fs::OpenOptions::new();
        let key = key.write(true).create_new(true).mode(0o600);
        let mut random = std::fs::File::open("/dev/urandom").unwrap();
        let mut random = std::io::Read::take(&mut random, 128);
        std::io::copy(&mut random, &mut key.open(at("key")).unwrap()).unwrap();
        let mut command = Command::new("munged");
        command.args(["--foreground", "--force"]);
        for (flag, name) in [
            ("key-file", "key"),
            ("socket", "munge"),
            ("pid-file", "munge.pid"),
            ("log-file", "munge.log"),
            ("seed-file", "munge.seed"),
        ] {
            command.arg(format!("--{flag}={}", at(name).display()));
        }
        self.spawn(command);
        self.until("munge", |slurm| slurm.place.path_to("slurm/munge").exists());
    }

    fn configure(&self, controller: u16, node: u16) {
        let dir = self.place.path_to("slurm").display().to_string();
        let own = self.hosts.own;
        let mut text = format!(
            "ClusterName=pubgauge
SlurmctldHost=ctl({own})
SlurmctldPort={controller}
SlurmdPort={node}
AuthType=auth/munge
AuthInfo=socket={dir}/munge
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool-%n
SlurmctldPidFile={dir}/ctld.pid
SlurmdPidFile={dir}/slurmd-%n.pid
SlurmctldLogFile={dir}/ctld.log
SlurmdLogFile={dir}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
KillWait=5
PartitionName=main Nodes=ALL Default=YES State=UP MaxTime=10
"
        );
        for rank in 0..self.hosts.names.len() {
            let address = self.hosts.address(rank);
            text += &format!(
                "NodeName=node-{rank} NodeAddr={address} NodeHostname=node-{rank} CPUs=1\n"
            );
            std::fs::create_dir(self.place.path_to(&format!("slurm/spool-node-{rank}"))).unwrap();
        }
        std::fs::create_dir(self.place.path_to("slurm/state")).unwrap();
        self.place.write("slurm/slurm.conf", text);
        let cgroup =
            "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\nConstrainCores=no\nConstrainRAMSpace=no\n";
        self.place.write("slurm/cgroup.conf", cgroup);
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(self.place.path_to("slurm"), open).unwrap();
    }

    /// Needs of Slurm's own programs.
    fn here(&self, command: &mut Command) {
        self.place.run_here(command);
        command.env("SLURM_CONF", self.place.path_to("slurm/slurm.conf"));
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    }

    fn spawn(&mut self, mut command: Command) {
        self.here(&mut command);
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.place.path_to("slurm/said"))
            .unwrap();
        command.stdout(log.try_clone().unwrap()).stderr(log);
        let started = command.spawn();
        self.processes.push(started.unwrap_or_else(|error| {
            panic!("{command:?}: {error}; this test needs apt install munge slurmctld slurmd slurm-client")
        }));
    }

    /// The answer of a program of Slurm's.
    fn asked(&self, name: &str, arguments: &[&str]) -> String {
        let mut command = Command::new(name);
        self.here(&mut command);
        let output = command.args(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    #[track_caller]
    fn until(&mut self, what: &str, holds: impl Fn(&Slurm<'_>) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !holds(self) {
            let over = self
                .processes
                .iter_mut()
                .any(|one| one.try_wait().unwrap().is_some());
            let said = || {
                let logs = ["said", "ctld.log", "munge.log", "slurmd-node-0.log"];
                let read = |log| std::fs::read_to_string(self.place.path_to("slurm").join(log));
                logs.map(|log| read(log).unwrap_or_default()).join("\n")
            };
            assert!(!over, "Slurm has ended: {}", said());
            assert!(
                Instant::now() < end,
                "waited in vain for {what}: {}",
                said()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The flags of a run on all nodes.
    fn flags(&self) -> Vec<String> {
        let node = |rank| format!("srun --overlap --unbuffered --ntasks=1 --nodelist=node-{rank}");
        let all: Vec<String> = (0..self.hosts.names.len()).map(node).collect();
        flags(&self.hosts.own.to_string(), &all)
    }

    /// A run within an allocation of all nodes.
    fn run(&self, args: &[String]) -> Started<'a> {
        let mut command = Command::new("salloc");
        command.arg(format!("--nodes={}", self.hosts.names.len()));
        command.arg("--quiet").arg(program()).args(args);
        self.here(&mut command);
        self.place.spawn(command)
    }

    /// Waits until Slurm knows of no job.
    fn until_no_job(&mut self) {
        self.until("the end of the job", |slurm| {
            slurm.asked("squeue", &["--noheader"]).is_empty()
        });
    }

    /// Ends all of it, as its users do: the nodes first.
    fn ends(mut self) {
        while let Some(mut process) = self.processes.pop() {
            if process.try_wait().unwrap().is_none() {
                kill(process.id() as i32, libc::SIGTERM);
            }
            let end = Instant::now() + PATIENCE;
            while process.try_wait().unwrap().is_none() {
                assert!(Instant::now() < end, "Slurm does not end");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

impl Drop for Slurm<'_> {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // A job that has ended by itself cannot be killed.
            let _ = process.kill();
            let _ = process.wait();
        }
        for rank in 0..self.hosts.names.len() {
            for left in self.hosts.processes(rank) {
                // SAFETY: kill takes no pointers; the process is in a namespace of this test's.
                unsafe { libc::kill(left, libc::SIGKILL) };
            }
        }
    }
}

/// Three nodes, each with publishers and subscribers, count as one process does.
#[track_caller]
fn counts_on_nodes_are_those_of_one_process(system: &str, of: u32, more: &[&str]) {
    let place = Place::new();
    let length = [&["--duration", "2s", "--warm-up", "500ms"], more].concat();
    place
        .run(&paced_on(system, "alone", &length))
        .ran_to_its_end();

    let hosts = Hosts::make(3, of);
    let mut slurm = Slurm::start(&place, &hosts);
    let both = [
        "--set",
        "testbed.network.publisher.hosts=3",
        "--set",
        "testbed.network.subscriber.hosts=3",
    ];
    let mut flags = slurm.flags();
    flags.extend([&length[..], &both].concat().into_iter().map(str::to_owned));
    let done = slurm.run(&paced_on(system, "nodes", &flags)).wait_for_end();
    done.ran_to_its_end();
    done.assert_says("host node-1 (srun ")
        .assert_says("is there: 3 of 3");
    slurm.until_no_job();
    slurm.ends();
    place.has_no_process_soon();
    place.is_clean();

    let nodes = place.trial("nodes");
    adds_up(&nodes);
    let alone = counts(&place.trial("alone"));
    assert_eq!(counts(&nodes), alone, "{}", brief(&nodes));
    let names = nodes["hosts"].as_array().unwrap().iter();
    let names = names.map(|host| &host["name"]).collect::<Vec<_>>();
    assert_eq!(names, ["node-0", "node-1", "node-2"]);
}

#[test]
fn three_nodes_count_as_one_process_does() {
    counts_on_nodes_are_those_of_one_process("mosquitto", 8, &["--qos", "1"]);
}

#[test]
fn three_nodes_without_a_broker_count_as_one_process_does() {
    // Domain participants find each other by unicast at the addresses by which the nodes reach this host.
    let reliable = ["--set", "settings.reliability=reliable"];
    counts_on_nodes_are_those_of_one_process("cyclonedds", 9, &reliable);
}

#[test]
fn a_node_that_is_gone_breaks_its_trial() {
    let place = Place::new();
    let hosts = Hosts::make(3, 10);
    let slurm = Slurm::start(&place, &hosts);
    let mut flags = slurm.flags();
    let more = ["--duration", "3s", "--warm-up", "200ms", "--repeats", "2"];
    flags.extend(more.map(str::to_owned));
    let mut run = slurm.run(&paced("run", &flags));
    let measures = || place.processes().iter().any(|(pid, _)| is_measuring(*pid));
    run.until("a measurement", measures);
    // Its daemon, what that has started, and the workers: the node has lost its power.
    for process in hosts.processes(1) {
        // SAFETY: kill takes no pointers; the process is in a namespace of this test's.
        unsafe { libc::kill(process, libc::SIGKILL) };
    }
    let done = run.ends_within(GIVEN_UP).exits(2);
    done.assert_says("lost, and not back within 30 s: host node-1 (srun ");
    drop(slurm);
    place.has_no_process_soon();
    place.is_clean();
    is_broken(&place.trial("run"), &["host node-1 (srun "]);
}

#[test]
fn an_srun_that_ends_early_is_told() {
    let place = Place::new();
    let hosts = Hosts::make(1, 11);
    let slurm = Slurm::start(&place, &hosts);
    let nowhere = "srun --partition=nowhere --ntasks=1";
    let mut run = place.command(&paced("run", &flags("127.0.0.1", &[nowhere])));
    slurm.here(&mut run);
    let done = place.spawn(run).wait_for_end().exits(2);
    done.assert_says("host 0 (srun --partition=nowhere --ntasks=1)")
        .assert_says("Invalid partition name");
    slurm.ends();
    place.is_clean();
    assert!(!place.path_to("run").exists());
}
