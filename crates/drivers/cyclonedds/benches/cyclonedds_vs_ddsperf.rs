//! This driver against `ddsperf`, Cyclone's own benchmark, in turns in one run.
//!
//! What is the same: reliable, keep-all, a keyed type with one instance, one writer and one reader
//! in two processes over UDP on the loopback interface, and the configuration of the library, made
//! from the same settings (watermarks, socket buffers, datagrams).
//!
//! What differs: `ddsperf` counts its type's 12 bytes into the size that it is told, so each of our
//! messages is 8 bytes longer on the wire. Its writer sleeps within the write until nearly
//! everything is acknowledged; ours returns and goes on once there is room. Its reader works on
//! Cyclone's receive thread (mode `listener`, its default), or on a thread that is woken (mode
//! `waitset`); ours always hands over to the worker's thread, as pubgauge's seam demands: that is
//! part of what is measured here. With `busy-poll-us` 0 it sleeps as `waitset` does.
//!
//! `ddsperf`'s median as `listener` is one of two: about 5 us where both processes share a core,
//! twice that where each has its own. The kernel chooses, and stays with it; so ping-pong is
//! measured as it comes, and with either choice made for both.
//! On one core, of a machine with two, half a round trip took 12.5 us on both sides where both hand over, and 6.9 us
//! on `ddsperf`'s where it does not.
//!
//! `ddsperf` always batches when it is not told a rate. Without batching, both get a
//! General/MaxMessageSize that holds one message.
//!
//! `cargo bench -p pubgauge-driver-cyclonedds --features native` (needs `ddsperf`; Debian:
//! cyclonedds-tools). `ROUNDS=5 SECONDS=4` change how long it takes, `ONLY="1024 B"` picks cases by
//! what their names contain (`ONLY=ping-pong` the last). The bar: 0.95 of its throughput, and its
//! median within 10 %.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hdrhistogram::Histogram;
use pubgauge_driver::{
    Acknowledgement, Change, ClientId, ClientSpec, Clock, Delivery, Driver, Events, Filler, Fleet,
    FleetConfig, Header, Payload, Publish, Settings, Subscription, Target, TopicId,
};
use pubgauge_driver_cyclonedds::CycloneddsDriver;
use pubgauge_testing::bench::cpu::of_ended;
use pubgauge_testing::bench::process::this_program;
use pubgauge_testing::bench::{MARK, Rounds, arguments, header, median, parse};
use pubgauge_testing::{SECOND, config};
use serde_json::json;

fn main() {
    let args = arguments();
    if let [role, domain, payload, settings, seconds] = &args[..]
        && role.starts_with("role-")
    {
        let settings: Settings = serde_json::from_str(settings).expect("settings");
        let [domain, payload, seconds]: [u64; 3] = [domain, payload, seconds].map(|n| parse(n));
        let client = Client::open(domain, payload as usize, settings, role);
        return match role.as_str() {
            "role-pub" => client.publish(seconds),
            "role-sub" => client.subscribe(),
            "role-ping" => client.ping(seconds),
            _ => client.pong(),
        };
    }
    let number = |name: &str, default| std::env::var(name).map_or(default, |n| parse(&n));
    let (rounds, seconds) = (number("ROUNDS", 5), number("SECONDS", 4));
    let scratch = tempfile::tempdir().expect("a folder");
    let bench = Bench {
        folder: scratch.path(),
        seconds,
    };

    println!("messages that arrive, median of {rounds} turns of {seconds} s");
    let only = std::env::var("ONLY").unwrap_or_default();
    for (payload, name, settings) in cases() {
        if !format!("{payload} B, {name}").contains(&only) {
            continue;
        }
        let flows = Rounds::run(rounds as usize, |round| {
            let domain = 2 * round as u64;
            [
                bench.ddsperf_throughput(domain, payload, &settings),
                bench.our_throughput(domain + 1, payload, &settings),
            ]
        });
        println!("{payload} B, {name}");
        for (unit, figure) in [
            ("/s", Flow::per_second as fn(&Flow) -> f64),
            ("/publisher's CPU-s", |f| f.messages / f.publisher_cpu_s),
            ("/subscriber's CPU-s", |f| f.messages / f.subscriber_cpu_s),
        ] {
            report(&flows, figure, unit);
        }
    }
    if !"ping-pong".contains(&only) {
        return;
    }
    println!("ping-pong of 64 B, half of the round trip, median of medians; CPU of both processes");
    let (apart, together) = (Some([0, 1]), Some([0, 0]));
    for (mode, busy, cores, name) in [
        ("waitset", Some(0), None, "cores as they come"),
        ("listener", None, None, "cores as they come"),
        ("listener", None, apart, "a core for each process"),
        ("listener", None, together, "both on one core"),
        ("waitset", Some(0), apart, "a core for each process"),
        ("waitset", Some(0), together, "both on one core"),
        ("waitset", None, together, "both on one core"),
    ] {
        let settings = match busy {
            Some(us) => json!({"native": {"cyclonedds": {"busy-poll-us": us}}}),
            None => json!({}),
        };
        let ping_pongs = Rounds::run(rounds as usize, |round| {
            let domain = 2 * round as u64;
            [
                bench.ddsperf_ping(domain, mode, cores),
                bench.our_ping(domain + 1, &settings, cores),
            ]
        });
        let busy = busy.map_or("default".to_owned(), |us| us.to_string());
        println!("busy-poll-us {busy} against ddsperf's {mode}, {name}");
        for (unit, figure) in [
            (" us", (|p| p.median_us) as fn(&PingPong) -> f64),
            (" us of CPU/round trip", |p| p.cpu_us),
        ] {
            report(&ping_pongs, figure, unit);
        }
    }
}

fn cases() -> Vec<(u64, &'static str, serde_json::Value)> {
    let single = |bytes: u64| json!({"native": {"cyclonedds": {"max-message-bytes": bytes}}});
    vec![
        (64, "each by itself", single(200)),
        (1024, "each by itself", single(2000)),
        (64, "batches, adaptive", json!({"batching": "adaptive"})),
        (
            64,
            "batches of 14000 B",
            json!({"batching": {"bytes": 14_000}}),
        ),
        (1024, "batches, adaptive", json!({"batching": "adaptive"})),
        (
            1024,
            "batches of 14000 B",
            json!({"batching": {"bytes": 14_000}}),
        ),
    ]
}

/// The figures of a turn.
struct Flow {
    /// In each whole second.
    deltas: Vec<f64>,
    messages: f64,
    publisher_cpu_s: f64,
    subscriber_cpu_s: f64,
}

impl Flow {
    fn new(mut deltas: Vec<f64>, publisher_cpu_s: f64, subscriber_cpu_s: f64) -> Self {
        deltas.retain(|d| *d > 0.0);
        Flow {
            messages: deltas.iter().sum(),
            deltas,
            publisher_cpu_s,
            subscriber_cpu_s,
        }
    }

    /// The rest of a second in which the publisher began or ended is no rate.
    fn per_second(&self) -> f64 {
        let end = self.deltas.len() - 1;
        median(&self.deltas[1..end])
    }
}

/// The figures of a turn of ping-pong.
struct PingPong {
    median_us: f64,
    /// For each round trip.
    cpu_us: f64,
}

impl PingPong {
    fn of(mut ping: Child, mut pong: Child) -> Self {
        // A line for each second of ddsperf's, one for all of ours.
        let lines = seconds_of(&mut ping, |line| {
            Some((number_after(line, " 50% ")?, number_after(line, " cnt ")?))
        });
        let round_trips: f64 = lines.iter().map(|(_, count)| count).sum();
        let cpu_s = of_ended(&mut ping) + of_ended(&mut pong);
        let medians: Vec<f64> = lines.iter().map(|(median, _)| *median).collect();
        PingPong {
            median_us: median(&medians),
            cpu_us: cpu_s * 1e6 / round_trips,
        }
    }
}

fn report<T>(rounds: &Rounds<T>, figure: impl Fn(&T) -> f64, unit: &str) {
    let ([theirs, ours], ratio) = (rounds.medians(&figure), rounds.ratio(&figure).median);
    println!("   ours {ours:.1}{unit}, ddsperf {theirs:.1}{unit}, ratio {ratio:.3}");
}

/// Starts processes in pairs.
struct Bench<'a> {
    folder: &'a Path,
    seconds: u64,
}

impl Bench<'_> {
    fn ddsperf(
        &self,
        domain: u64,
        settings: &serde_json::Value,
        args: &str,
        core: Option<u32>,
    ) -> Child {
        let mut settings = pubgauge_testing::settings(settings.clone());
        // Its own way of batching is the same switch, thrown later.
        settings.batching = None;
        let xml = CycloneddsDriver
            .configuration(&settings, domain as u32)
            .expect("a configuration");
        let path = self.folder.join("cyclonedds.xml");
        std::fs::write(&path, xml).expect("writes");
        program("ddsperf".as_ref(), core)
            .args(["-i", &domain.to_string(), "-1", "-T", "KS"])
            .args(args.split(' '))
            .env("CYCLONEDDS_URI", format!("file://{}", path.display()))
            .stdout(Stdio::piped())
            .spawn()
            .expect("ddsperf starts (Debian: cyclonedds-tools)")
    }

    fn us(
        &self,
        role: &str,
        domain: u64,
        payload: u64,
        settings: &serde_json::Value,
        core: Option<u32>,
    ) -> Child {
        program(&this_program(), core)
            .args([role, &domain.to_string(), &payload.to_string()])
            .args([&settings.to_string(), &self.seconds.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts")
    }

    fn ddsperf_throughput(&self, domain: u64, payload: u64, settings: &serde_json::Value) -> Flow {
        let all = self.seconds + 3;
        let mut sub = self.ddsperf(domain, settings, &format!("-D {all} sub"), None);
        std::thread::sleep(Duration::from_millis(500));
        let args = format!("-D {} pub size {payload}", self.seconds);
        let mut publisher = self.ddsperf(domain, settings, &args, None);
        let publisher_cpu_s = of_ended(&mut publisher);
        let deltas = seconds_of(&mut sub, |line| {
            number_after(line, "delta ").filter(|_| line.contains(" rate "))
        });
        Flow::new(deltas, publisher_cpu_s, of_ended(&mut sub))
    }

    fn our_throughput(&self, domain: u64, payload: u64, settings: &serde_json::Value) -> Flow {
        let mut sub = self.us("role-sub", domain, payload, settings, None);
        std::thread::sleep(Duration::from_millis(500));
        let mut publisher = self.us("role-pub", domain, payload, settings, None);
        let publisher_cpu_s = of_ended(&mut publisher);
        std::thread::sleep(Duration::from_secs(1));
        drop(sub.stdin.take());
        let deltas = seconds_of(&mut sub, |line| number_after(line, "delta "));
        Flow::new(deltas, publisher_cpu_s, of_ended(&mut sub))
    }

    /// `cores` are the answering process's and the asking one's.
    fn ddsperf_ping(&self, domain: u64, mode: &str, cores: Option<[u32; 2]>) -> PingPong {
        let start = |role: &str, seconds: u64, at: usize| {
            let args = format!("-D {seconds} {role} {mode}");
            self.ddsperf(domain, &json!({}), &args, cores.map(|c| c[at]))
        };
        let pong = start("pong", self.seconds + 2, 0);
        std::thread::sleep(Duration::from_millis(500));
        PingPong::of(start("ping size 64", self.seconds, 1), pong)
    }

    fn our_ping(
        &self,
        domain: u64,
        settings: &serde_json::Value,
        cores: Option<[u32; 2]>,
    ) -> PingPong {
        let pong = self.us("role-pong", domain, 64, settings, cores.map(|c| c[0]));
        std::thread::sleep(Duration::from_millis(500));
        let ping = self.us("role-ping", domain, 64, settings, cores.map(|c| c[1]));
        PingPong::of(ping, pong)
    }
}

/// A program, kept on a core if one is given.
fn program(path: &Path, core: Option<u32>) -> Command {
    let Some(core) = core else {
        return Command::new(path);
    };
    // Becomes the program: its process id and CPU time are the program's.
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", &core.to_string()]).arg(path);
    command
}

fn seconds_of<T>(child: &mut Child, mut figure: impl FnMut(&str) -> Option<T>) -> Vec<T> {
    let out = child.stdout.take().expect("piped");
    let lines = BufReader::new(out).lines().map_while(Result::ok);
    lines.filter_map(|line| figure(&line)).collect()
}

fn number_after(line: &str, mark: &str) -> Option<f64> {
    let rest = line.split_once(mark)?.1;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
    rest[..end.unwrap_or(rest.len())].parse().ok()
}

/// One client of this driver.
struct Client {
    fleet: Box<dyn Fleet>,
    id: ClientId,
    filler: Filler,
    payload: usize,
    seen: Seen,
}

#[derive(Default)]
struct Seen {
    count: u64,
}

impl Events for Seen {
    fn arrived(&mut self) {}

    fn delivered(&mut self, _: ClientId, delivery: Delivery<'_>) {
        if Header::decode(delivery.payload, MARK).is_some() {
            self.count += 1;
        }
    }

    fn acknowledged(&mut self, _: ClientId, _: u64, _: Acknowledgement) {}

    fn changed(&mut self, _: ClientId, _: Change) {}
}

impl Client {
    fn open(domain: u64, payload: usize, settings: Settings, role: &str) -> Self {
        let config = FleetConfig {
            max_payload: payload,
            clients: 1,
            worker: u32::from(role.ends_with('g')),
            ..config(
                Target::single(format!("dds://localhost/{domain}")),
                settings,
            )
        };
        let mut fleet = CycloneddsDriver.open(config).expect("opens");
        let spec = ClientSpec {
            name: role.to_owned(),
            publishes: true,
            subscribes: true,
            ..ClientSpec::default()
        };
        let id = fleet.connect(&spec).expect("connects");
        Client {
            fleet,
            id,
            filler: Filler::new(payload),
            payload,
            seen: Seen::default(),
        }
    }

    fn listen(&mut self, filter: &str) {
        let done = self
            .fleet
            .subscribe(self.id, &Subscription::matching(filter));
        done.expect("subscribes");
    }

    fn poll(&mut self, until: u64) {
        self.fleet.poll(until, &mut self.seen).expect("polls");
    }

    fn send(&mut self, topic: TopicId, sequence: u32) -> Publish {
        let head = header(1, sequence);
        let body = self.filler.body(0, sequence, self.payload);
        let payload = Payload { head: &head, body };
        self.fleet.publish(self.id, topic, payload, 0)
    }

    fn publish(mut self, seconds: u64) {
        let topic = self.fleet.advertise(self.id, "t").expect("advertises");
        let end = Clock::Monotonic.now() + seconds * SECOND;
        let mut sequence = 0u32;
        loop {
            for _ in 0..256 {
                match self.send(topic, sequence) {
                    Publish::Accepted => sequence = sequence.wrapping_add(1),
                    Publish::Blocked => {
                        let now = Clock::Monotonic.now();
                        self.poll(now + 1_000_000);
                    }
                    Publish::Refused(why) => panic!("refused: {why:?}"),
                }
            }
            let now = Clock::Monotonic.now();
            if now >= end {
                break;
            }
            self.poll(now);
        }
        self.fleet.close(Clock::Monotonic.now() + SECOND);
    }

    fn subscribe(mut self) {
        self.listen("t");
        let parent_gone = watch_stdin();
        let (mut last, mut at) = (0, Clock::Monotonic.now() + SECOND);
        let mut out = std::io::stdout();
        while !parent_gone.load(std::sync::atomic::Ordering::Relaxed) {
            self.poll(at);
            let now = Clock::Monotonic.now();
            if now >= at {
                let _ = writeln!(out, "delta {} in a second", self.seen.count - last);
                last = self.seen.count;
                at += SECOND;
            }
        }
        self.fleet.close(Clock::Monotonic.now());
    }

    fn ping(mut self, seconds: u64) {
        self.listen("pong");
        let topic = self.fleet.advertise(self.id, "ping").expect("advertises");
        let mut rtt = Histogram::<u64>::new_with_bounds(1, SECOND, 3).expect("bounds");
        let end = Clock::Monotonic.now() + seconds * SECOND;
        let mut sequence = 0;
        while Clock::Monotonic.now() < end {
            let before = self.seen.count;
            let start = Clock::Monotonic.now();
            self.send(topic, sequence);
            sequence += 1;
            let patience = start + SECOND / 10;
            while self.seen.count == before && Clock::Monotonic.now() < patience {
                self.poll(patience);
            }
            if self.seen.count != before {
                rtt.saturating_record((Clock::Monotonic.now() - start) / 2);
            }
        }
        let median = rtt.value_at_quantile(0.5) as f64 / 1e3;
        println!("size 64 50% {median:.3} us cnt {}", rtt.len());
        self.fleet.close(Clock::Monotonic.now());
    }

    fn pong(mut self) {
        self.listen("ping");
        let topic = self.fleet.advertise(self.id, "pong").expect("advertises");
        let parent_gone = watch_stdin();
        let mut answered = 0;
        while !parent_gone.load(std::sync::atomic::Ordering::Relaxed) {
            let now = Clock::Monotonic.now();
            self.poll(now + SECOND / 10);
            while answered < self.seen.count {
                self.send(topic, answered as u32);
                answered += 1;
            }
            // The answer is on its way with the write itself: nothing is gathered here.
        }
        self.fleet.close(Clock::Monotonic.now());
    }
}

/// Set once our parent has closed our standard input.
fn watch_stdin() -> std::sync::Arc<std::sync::atomic::AtomicBool> {
    let gone = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let told = gone.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        told.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    gone
}
