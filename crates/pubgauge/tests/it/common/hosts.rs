//! Hosts that are network namespaces of this machine, and what runs on one side and on them alike. Needs root
//! and `ip`.

use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Place, Started, count, program};

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
    /// With names and addresses that `of`, a number below 8, of this process alone uses.
    pub fn make(count: u32, of: u32) -> Hosts {
        let pid = std::process::id();
        // 198.18.0.0/15 is set apart for measurements of networks (RFC 2544, appendix C.2.2).
        let net = u32::from(Ipv4Addr::new(198, 19, 0, 0)) + (pid % (1 << 8) * 8 + of) * 32;
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

    /// What is started as `PROGRAM ARGUMENTS` on a host, which calls itself `node-RANK`. No other process
    /// stands between: its id is that of the program.
    pub fn start(&self, rank: usize, of: &Path, arguments: &str) -> Command {
        let named = named(&format!("node-{rank}"), of, arguments);
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.names[rank]));
        command.arg(named.get_program()).args(named.get_args());
        command
    }

    /// The same of pubgauge.
    pub fn command(&self, rank: usize, arguments: &str) -> Command {
        self.start(rank, program(), arguments)
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

/// What is started as `PROGRAM ARGUMENTS` on this machine under another name.
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
pub fn paced<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    paced_on("mosquitto", out, &[&["--qos", "1"], more].concat())
}

/// A paced run on this system, with these flags more.
pub fn paced_on<'a>(system: &'a str, out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["run", "--on", system, "--out", out];
    args.extend(WORKLOAD);
    args.extend(["--set", "phases.ready-within=60s"]);
    args.extend(["--set", "phases.drain-quiet=1s"]);
    args.extend(["--set", "phases.drain-within=60s"]);
    args.extend(more);
    args
}

/// What does not depend on time: how many messages there were, flow by flow.
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

/// An agent; killed if the test gives up.
pub struct Agent(std::process::Child);

impl Agent {
    pub fn start(place: &Place, mut command: Command, credentials: &str) -> Agent {
        place.here(&mut command);
        command.env("PUBGAUGE_JOIN_FILE", place.at(credentials));
        Agent(command.spawn().unwrap())
    }

    pub fn on(place: &Place, hosts: &Hosts, rank: usize, port: u16) -> Agent {
        let line = format!("worker --join {}:{port} --rank {rank} --quiet", hosts.own);
        Agent::start(place, hosts.command(rank, &line), "pubgauge-join")
    }

    pub fn pid(&self) -> i32 {
        self.0.id() as i32
    }

    /// Its end by itself, which must come; the exit code.
    #[track_caller]
    pub fn ends(mut self) -> Option<i32> {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < end, "an agent goes on");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until agents can join.
pub fn listens(run: &mut Started<'_>, place: &Place) {
    let whole = |text: String| text.contains("token 0") && text.ends_with('\n');
    run.until("somebody to join", || {
        std::fs::read_to_string(place.at("pubgauge-join")).is_ok_and(whole)
    });
}

/// Nothing is left: no process, no credentials, and a token nowhere.
#[track_caller]
pub fn nothing_is_left(place: &Place, token: &str) {
    place.has_no_process_soon();
    place.is_clean();
    assert!(!place.at("pubgauge-join").exists());
    assert_eq!(place.mentions(token), None);
}

/// The token of rank 0.
pub fn token(place: &Place) -> String {
    let text = std::fs::read_to_string(place.at("pubgauge-join")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("token 0 "));
    line.unwrap().to_owned()
}
