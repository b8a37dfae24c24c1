//! Hosts that are network namespaces of this machine, and what runs on one side and on them alike. Needs root
//! and `ip`.

use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{count, program};

/// `ip` with these arguments.
fn ip(line: &str) {
    let output = Command::new("ip").args(line.split(' ')).output();
    let output = output.expect("this test needs ip (apt install iproute2)");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {line} (needs root): {said}");
}

/// Hosts that are network namespaces, joined by a bridge of this host's; all are removed when this is dropped.
pub struct Hosts {
    pub names: Vec<String>,
    bridge: String,
    /// This host's address, which all of them reach.
    pub own: Ipv4Addr,
}

impl Hosts {
    /// With names and addresses that `of`, a number below 16, of this process alone uses.
    pub fn make(count: u32, of: u32) -> Hosts {
        let pid = std::process::id();
        // 198.18.0.0/15 is set apart for measurements of networks (RFC 2544, appendix C.2.2).
        let net = u32::from(Ipv4Addr::new(198, 19, 0, 0)) + (pid % (1 << 7) * 16 + of) * 32;
        let mut hosts = Hosts {
            names: Vec::new(),
            bridge: format!("b{of}-{pid}"),
            own: Ipv4Addr::from(net + 1),
        };
        let (bridge, own) = (&hosts.bridge, hosts.own);
        ip(&format!("link add {bridge} type bridge"));
        ip(&format!("addr add {own}/27 dev {bridge}"));
        ip(&format!("link set {bridge} up"));
        for number in 0..count {
            let name = format!("pgj{of}{number}-{pid}");
            hosts.names.push(name.clone());
            let outer = format!("o{of}{number}-{pid}");
            let theirs = hosts.address(number as usize);
            for line in [
                format!("netns add {name}"),
                format!("link add {outer} type veth peer name eth0 netns {name}"),
                format!("link set {outer} master {} up", hosts.bridge),
                format!("-n {name} link set lo up"),
                format!("-n {name} addr add {theirs}/27 dev eth0"),
                format!("-n {name} link set eth0 up"),
            ] {
                ip(&line);
            }
        }
        hosts
    }

    /// A host's own address.
    pub fn address(&self, rank: usize) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.own) + 1 + rank as u32)
    }

    /// A program that is started as `PROGRAM ARGUMENTS` on a host, which calls itself `node-RANK`. No other process
    /// stands between: its id is that of the program.
    pub fn start(&self, rank: usize, of: &Path, arguments: &str) -> Command {
        let named = named(&format!("node-{rank}"), of, arguments);
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.names[rank]));
        command.arg(named.get_program()).args(named.get_args());
        command
    }

    /// The command prefix that starts a program there.
    pub fn prefix(&self, rank: usize) -> String {
        let namespace = &self.names[rank];
        format!(
            "nsenter --net=/run/netns/{namespace} unshare --uts sh -c 'hostname node-{rank} && exec \"$0\" \"$@\"'"
        )
    }

    /// The flags of a run on all of them.
    pub fn flags(&self) -> Vec<String> {
        let all: Vec<String> = (0..self.names.len())
            .map(|rank| self.prefix(rank))
            .collect();
        flags(&self.own.to_string(), &all)
    }

    /// The processes on a host.
    pub fn processes(&self, rank: usize) -> Vec<i32> {
        let of = |path: &Path| std::fs::metadata(path).map(|file| file.ino()).ok();
        let own = of(&Path::new("/run/netns").join(&self.names[rank]));
        assert!(own.is_some(), "no namespace {}", self.names[rank]);
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let inside = all.filter(|entry| of(&entry.path().join("ns/net")) == own);
        let ids = inside.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        ids.collect()
    }
}

/// A program that is started as `PROGRAM ARGUMENTS` on this machine under another name.
pub fn named(name: &str, of: &Path, arguments: &str) -> Command {
    let mut command = Command::new("unshare");
    let line = format!("hostname {name} && exec \"$0\" {arguments}");
    command.args(["--uts", "sh", "-c", &line]).arg(of);
    command
}

impl Drop for Hosts {
    fn drop(&mut self) {
        // Interfaces first: a namespace lives on for a moment, and would keep its own.
        let outer = self.names.iter().map(|name| name.replacen("pgj", "o", 1));
        for link in outer.chain([self.bridge.clone()]) {
            let _ = Command::new("ip").args(["link", "del", &link]).output();
        }
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).output();
        }
    }
}

const WORKLOAD: [&str; 10] = [
    "--publishers",
    "12",
    "--subscribers",
    "6",
    "--topics",
    "4",
    "--rate",
    "20/s-each",
    "--set",
    "seed=7",
];

/// A paced run on mosquitto that is acknowledged, with these flags more.
pub fn paced<S: AsRef<str>>(out: &str, more: &[S]) -> Vec<String> {
    let mut args = paced_on("mosquitto", out, more);
    args.extend(["--qos", "1"].map(str::to_owned));
    args
}

/// A paced run on this system, with these flags more.
pub fn paced_on<S: AsRef<str>>(system: &str, out: &str, more: &[S]) -> Vec<String> {
    let mut args = vec!["run", "--on", system, "--out", out];
    args.extend(WORKLOAD);
    args.extend(["--set", "phases.ready-within=60s"]);
    args.extend(["--set", "phases.drain-quiet=1s"]);
    args.extend(["--set", "phases.drain-within=60s"]);
    args.extend(more.iter().map(AsRef::as_ref));
    args.into_iter().map(str::to_owned).collect()
}

/// The flags of a run on hosts that these prefixes reach, and which reach this one at `at`.
pub fn flags<S: AsRef<str>>(at: &str, prefixes: &[S]) -> Vec<String> {
    let mut flags = ["--at", at, "--host-program"].map(str::to_owned).to_vec();
    flags.push(program().display().to_string());
    for prefix in prefixes {
        flags.extend(["--load-host".to_owned(), prefix.as_ref().to_owned()]);
    }
    flags
}

/// Figures that do not depend on time: how many messages there were, flow by flow.
pub fn counts(trial: &Value) -> Vec<u64> {
    let names = [
        "offered",
        "published",
        "expected",
        "delivered",
        "lost",
        "duplicated",
        "reordered",
    ];
    let flows = trial["flows"].as_array().unwrap();
    let all = std::iter::once(trial).chain(flows);
    let counts = all.flat_map(|of| names.map(|name| count(of, name)));
    counts.chain([count(trial, "latency_ns.count")]).collect()
}
