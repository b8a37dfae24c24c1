//! Workers in processes within a network namespace of their own, on a broker of the host's.

use crate::common;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use common::program;
use pubgauge_driver::{Nanos, Reliability, Settings};
use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_engine::assignment::Workers;
use pubgauge_engine::conductor::Phase;
use pubgauge_engine::live::Live;
use pubgauge_figures::model::{Status, Trial};
use pubgauge_runner::{
    ClientConfig, Environment, Job, Kept, Processes, TrialRequest, Watch, perform,
};
use pubgauge_testbed::{Testbed, from_address, procfs};
use pubgauge_testing::mosquitto::Mosquitto;
use pubgauge_workload::{Arrivals, SECOND, Until, Workload};

/// `ip` with these arguments; the error is what it said.
fn ip(line: &str) -> Result<(), String> {
    let output = Command::new("ip").args(line.split(' ')).output();
    let output = output.map_err(|e| format!("this test needs ip (apt install iproute2): {e}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("ip {line} (needs root): {}", said.trim()))
    }
}

/// A network namespace, joined to the host by a pair of interfaces; both are removed when this is
/// dropped.
struct Namespace {
    name: String,
    interface: String,
    /// The end of the pair on the host.
    host: Ipv4Addr,
    /// The end within.
    inside: Ipv4Addr,
}

impl Namespace {
    /// With names and addresses that this process alone uses.
    fn make() -> Namespace {
        let pid = std::process::id();
        // 198.18.0.0/15 is set apart for measurements of networks (RFC 2544, appendix C.2.2).
        let net = u32::from(Ipv4Addr::new(198, 18, 0, 0)) + pid % (1 << 15) * 4;
        let made = Namespace {
            name: format!("pubgauge-{pid}"),
            interface: format!("pgh{pid}"),
            host: Ipv4Addr::from(net + 1),
            inside: Ipv4Addr::from(net + 2),
        };
        let (name, outer, inner) = (&made.name, &made.interface, format!("pgn{pid}"));
        for line in [
            format!("netns add {name}"),
            format!("link add {outer} type veth peer name {inner} netns {name}"),
            format!("addr add {}/30 dev {outer}", made.host),
            format!("link set {outer} up"),
            format!("-n {name} addr add {}/30 dev {inner}", made.inside),
            format!("-n {name} link set {inner} up"),
        ] {
            ip(&line).unwrap_or_else(|why| panic!("{why}"));
        }
        made
    }

    fn path(&self) -> PathBuf {
        Path::new("/run/netns").join(&self.name)
    }

    /// As the kernel numbers it.
    fn inode(&self) -> u64 {
        std::fs::metadata(self.path()).unwrap().ino()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The interface first: a namespace lives on for a moment, and would keep it.
        let _ = ip(&format!("link del {}", self.interface));
        let _ = ip(&format!("netns del {}", self.name));
    }
}

/// Looks during a trial in which network namespaces its workers are.
#[derive(Debug, Default)]
struct Seen {
    /// (worker's process, inode of its namespace).
    workers: BTreeSet<(i32, u64)>,
}

impl Watch for Seen {
    fn phase(&mut self, _: Phase) {}

    fn tick(&mut self, _: &Live, _: Nanos) {
        for pid in procfs::descendants(std::process::id() as i32) {
            let of = |file: &str| format!("/proc/{pid}/{file}");
            let line = std::fs::read(of("cmdline")).unwrap_or_default();
            if line.ends_with(b"\0worker\0")
                && let Ok(namespace) = std::fs::metadata(of("ns/net"))
            {
                self.workers.insert((pid, namespace.ino()));
            }
        }
    }
}

/// A trial on `broker` with two processes on each side in this namespace.
fn trial(broker: &Mosquitto, namespace: &str, seen: &mut Seen) -> Trial {
    let mut workload = Workload::fan(5, 3, Arrivals::Periodic { per_s: 200.0 });
    workload.phases.warm_up = Until::Time(SECOND / 5);
    workload.phases.measure = Until::Time(SECOND);
    workload.phases.drain_within = 60 * SECOND;
    let system = from_address(&broker.address(), &MqttDriver.into()).unwrap();
    let settings = Settings {
        reliability: Some(Reliability::AtLeastOnce),
        ..Settings::default()
    };
    let job = Job {
        asked: TrialRequest {
            id: 1,
            cell: "cell".into(),
            settings: settings.into(),
            repeat: 1,
            ..TrialRequest::default()
        },
        begun: Instant::now(),
        system: &system,
        variant: None,
        driver: Arc::new(MqttDriver),
        setup: Default::default(),
        workload: &Arc::new(workload),
        ends_once_hopeless: false,
        network: None,
    };
    let scratch = tempfile::tempdir().unwrap();
    let environment = Environment {
        testbed: Testbed::with_program(program()),
        scratch: scratch.path(),
        client: ClientConfig {
            workers: Workers {
                publishers: 2,
                subscribers: 2,
                ..Workers::default()
            },
            processes: Some(Processes {
                program: program().to_owned(),
                namespace: Some(namespace.to_owned()),
                ..Processes::default()
            }),
            ..ClientConfig::default()
        },
        tls: None,
        stop: Arc::new(AtomicBool::new(false)),
        cores: 1,
        quota_cores: None,
        own_cost: None,
    };
    perform(&job, &environment, &Kept::default(), seen).0
}

#[test]
fn workers_reach_a_broker_of_the_host_from_within_their_namespace() {
    let namespace = Namespace::make();
    let broker = Mosquitto::start_at(namespace.host);
    let mut seen = Seen::default();
    let done = trial(&broker, &namespace.name, &mut seen);
    assert_ne!(done.verdict.status, Status::Broken, "{:?}", done.verdict);
    assert!(done.messages.published > 0, "{done:?}");
    assert_eq!(done.messages.delivered, 3 * done.messages.published);
    assert_eq!(
        (
            done.shortfall.lost,
            done.shortfall.under_way,
            done.messages.duplicated
        ),
        (0, 0, 0)
    );
    assert!(done.checks.iter().all(|check| !check.disagrees()));

    // The kernel says where the workers were.
    let own = std::fs::metadata("/proc/self/ns/net").unwrap().ino();
    assert_ne!(namespace.inode(), own);
    let where_they_were: Vec<u64> = seen.workers.iter().map(|(_, inode)| *inode).collect();
    assert_eq!(where_they_were, [namespace.inode(); 4], "{seen:?}");
    // The broker says where its clients were.
    let from = format!("New client connected from {}:", namespace.inside);
    let log = broker.log();
    let clients = log.lines().filter(|line| line.contains(&from)).count();
    assert_eq!(clients, 5 + 3, "{log}");

    // A namespace that is deleted is none: the trial says so and starts nobody.
    let (path, interface) = (namespace.path(), namespace.interface.clone());
    let name = namespace.name.clone();
    drop(namespace);
    let mut seen = Seen::default();
    let done = trial(&broker, &name, &mut seen);
    assert_eq!(done.verdict.status, Status::Broken);
    let why = done.verdict.sentences().join("\n");
    assert!(
        why.contains(&format!("no network namespace `{name}`")),
        "{why}"
    );
    assert!(why.contains(&format!("ip netns add {name}")), "{why}");
    assert!(seen.workers.is_empty(), "{seen:?}");
    assert!(!path.exists(), "{}", path.display());
    let interface = Path::new("/sys/class/net").join(interface);
    assert!(!interface.exists(), "{}", interface.display());
}
