//! Cost and duration of collecting, with the bars that they have to reach:
//!
//! - `latency`: a collector on one processor gets 50,000 messages a second at QoS 1 from a server that paces them; time from when
//!   each was due until its acknowledgement came;
//! - `cost`: messages for each second of processor time at given rates, and time from due to acknowledged, beside peers that get the same from the same server,
//!   with everything up to finished files. `PUBGAUGE_COLLECT_PEERS=NAME=PROGRAM,...` names them: a program gets
//!   the port, the QoS and a folder, and stays in the foreground (`peers/` has some);
//! - `restart`: a log of 1 GB in one segment, left by a collector that was killed: time until it collects again;
//! - `drain`: time and memory while 1,000, 100,000 and 1,000,000 queued messages are drained from mosquitto into one segment;
//! - `soak`, only where it is named: memory over an hour, or so many seconds (`soak 600`), of 20,000 messages a second at QoS 1.
//!
//! Payloads are 600 B that LZ4 does not compress. Figures of a busy machine scatter: trust the ratios.

#[path = "../../tests/common/mod.rs"]
mod common;
mod feed;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use common::{Broker, Publisher, finished, text};
use feed::{Fed, Feed, PAYLOAD};
use pubgauge_collect::config::{Given, read};
use pubgauge_collect::{Collector, EndsAfter, Notice, names};
use pubgauge_driver::Reliability;
use pubgauge_testing::bench::process::{Process, report};
use pubgauge_testing::bench::{arguments, cpu, median, parse, quantile, run_parts, time};

/// Makes this program a collector: its collect file, and the processor that it is to keep to or `any`.
const COLLECT: &str = "--collect";

/// How long each rate is fed.
const FED: Duration = Duration::from_secs(8);

/// How long finished files are waited for after that: segments of a second, flushes of a second.
const SETTLES: Duration = Duration::from_secs(3);

/// Rates of the cost, msg/s, and their QoS.
const RATES: [(u8, u32); 4] = [(1, 10_000), (1, 20_000), (1, 50_000), (0, 20_000)];

fn main() {
    let arguments = arguments();
    if let [role, file, processor] = &arguments[..]
        && role == COLLECT
    {
        return collect(Path::new(file), processor);
    }
    if arguments.iter().any(|part| part == "soak") {
        return soak(time(3600.0));
    }
    run_parts(&[
        ("latency", latency),
        ("cost", cost),
        ("restart", restart),
        ("drain", drain),
    ]);
}

/// The collector of a file; says each time that it is connected.
fn collect(file: &Path, processor: &str) {
    if processor != "any" {
        keep_to(parse(processor));
    }
    let config = read(file, &Given::default()).expect("a collect file");
    let watch = |notice: &Notice| match notice {
        Notice::Connected { .. } => report("connected"),
        Notice::Failed { why, .. } => eprintln!("{why}"),
        _ => {}
    };
    let collector = Collector::new(config, names::system(), Arc::new(watch)).expect("a collector");
    let ended = collector.run(EndsAfter::default(), &AtomicBool::new(false));
    ended.expect("it collects");
}

/// Keeps this thread, and those that it starts, to one processor.
fn keep_to(processor: usize) {
    // SAFETY: all zeros are a valid, empty set, which the call reads.
    let kept = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    assert_eq!(kept, 0, "there is a processor {processor}");
}

/// A collector in a process of its own, once it is connected.
fn begin(data: &Path, url: String, processor: &str, rest: &str) -> Process {
    let file = data.with_extension("toml");
    std::fs::write(&file, text(data, &[url], rest)).expect("writable");
    let file = file.to_str().expect("a path of text");
    let mut collector = Process::start(&[COLLECT, file, processor]);
    assert_eq!(collector.line(), "connected");
    collector
}

const REST: &str = "topics = [\"#\"]\n[log]\nsegment-age = \"1s\"";

fn latency() {
    let place = tempfile::tempdir().expect("a folder");
    let feed = Feed::listen();
    let data = place.path().join("data");
    let fed = std::thread::spawn({
        let feed = feed.clone();
        move || {
            keep_to(0);
            feed.serve(1, 50_000, Duration::from_secs(10))
        }
    });
    let collector = begin(&data, feed.url(), "1", REST);
    let before = cpu::of_process(collector.id() as i32);
    let fed = fed.join().expect("it was fed");
    let took = cpu::of_process(collector.id() as i32) - before;
    println!(
        "latency: {} msg/s at QoS 1 on one processor: due to acknowledged p50 {:.1} ms, p99 {:.1} ms (bar 20), max {:.1} ms; {:.0} k msg per processor second",
        fed.per_s(),
        fed.quantile_ms(0.5),
        fed.quantile_ms(0.99),
        fed.quantile_ms(1.0),
        fed.messages as f64 / took / 1e3,
    );
}

/// Finished files are removed, as if they were uploaded: an hour has 43 GB.
fn soak(lasts: Duration) {
    let place = tempfile::tempdir().expect("a folder");
    let feed = Feed::listen();
    let data = place.path().join("data");
    let serving = std::thread::spawn({
        let feed = feed.clone();
        move || feed.serve(1, 20_000, lasts)
    });
    let collector = begin(&data, feed.url(), "any", "topics = [\"#\"]");
    let mut resident_mb = Vec::new();
    let mut removed = 0;
    while !serving.is_finished() {
        std::thread::sleep(Duration::from_secs(1));
        resident_mb.push(status_kb(collector.id(), "VmRSS:") as f64 / 1e3);
        let all = finished(&data).into_iter();
        // One that is being written ends in `.tmp`.
        for file in all.filter(|file| file.extension().is_some_and(|of| of == "parquet")) {
            std::fs::remove_file(file).expect("removable");
            removed += 1;
        }
    }
    let fed = serving.join().expect("it was fed");
    let of_quarter =
        |values: &[f64]| format!("{:.1} to {:.1}", median(values), quantile(values, 1.0));
    let quarters = resident_mb.chunks(resident_mb.len().div_ceil(4));
    let quarters: Vec<String> = quarters.map(of_quarter).collect();
    println!(
        "soak: {} messages at {} msg/s, {removed} finished files; resident memory of each quarter, median to largest seen, {} MB, most ever {:.1} MB; p99 {:.1} ms, max {:.0} ms",
        fed.messages,
        fed.per_s(),
        quarters.join(", "),
        status_kb(collector.id(), "VmHWM:") as f64 / 1e3,
        fed.quantile_ms(0.99),
        fed.quantile_ms(1.0),
    );
}

/// A process that is killed when it is dropped.
struct Peer(Child);

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The cost of taking a rate.
struct Cost {
    /// Messages for each second of processor time, k.
    per_cpu_s: f64,
    fed: Fed,
}

impl Cost {
    /// As a line has it; at QoS 0 nothing is acknowledged.
    fn text(&self, qos: u8) -> String {
        let latency = format!(
            ", due to acknowledged p50 {:.1} ms, p99 {:.1} ms",
            self.fed.quantile_ms(0.5),
            self.fed.quantile_ms(0.99)
        );
        let latency = if qos == 0 { String::new() } else { latency };
        format!("{:.0} k{latency}", self.per_cpu_s)
    }
}

/// The cost of a peer, or of ours. `Err`: it did not take the rate, but so many messages a second.
fn cost_of(peer: Option<&str>, qos: u8, rate: u32) -> Result<Cost, u64> {
    let place = tempfile::tempdir().expect("a folder");
    let feed = Feed::listen();
    let serving = {
        let feed = feed.clone();
        std::thread::spawn(move || feed.serve(qos, rate, FED))
    };
    let data = place.path().join("data");
    let mut kept: (Option<Process>, Option<Peer>) = (None, None);
    let pid = match peer {
        None => {
            let rest = format!("qos = {qos}\n{REST}");
            let ours = begin(&data, feed.url(), "any", &rest);
            kept.0.insert(ours).id()
        }
        Some(program) => {
            std::fs::create_dir(&data).expect("a folder");
            let mut command = Command::new(program);
            command.arg(feed.port().to_string()).arg(qos.to_string());
            command.arg(&data).stdin(Stdio::null());
            let child = command.spawn().expect("the peer starts");
            kept.1.insert(Peer(child)).0.id()
        }
    };
    feed.until_subscribed();
    let before = cpu::of_process(pid as i32);
    let fed = serving.join().expect("it was fed");
    std::thread::sleep(SETTLES);
    let took = cpu::of_process(pid as i32) - before;
    drop(kept);
    match fed.per_s() {
        took_per_s if took_per_s * 10 < u64::from(rate) * 9 => Err(took_per_s),
        _ => Ok(Cost {
            per_cpu_s: fed.messages as f64 / took / 1e3,
            fed,
        }),
    }
}

fn cost() {
    let named = std::env::var("PUBGAUGE_COLLECT_PEERS").unwrap_or_default();
    let named = named.split(',').filter_map(|one| one.split_once('='));
    let peers: Vec<(&str, &str)> = named.collect();
    for (qos, rate) in RATES {
        let ours = match cost_of(None, qos, rate) {
            Ok(ours) => ours,
            Err(took) => {
                println!("cost: QoS {qos}, {rate} msg/s: no more than {took} msg/s are taken here");
                continue;
            }
        };
        let mut line = format!(
            "cost: QoS {qos}, {rate} msg/s: messages per processor second {}",
            ours.text(qos)
        );
        for (name, program) in &peers {
            line += &match cost_of(Some(program), qos, rate) {
                Ok(theirs) => format!(
                    "; {name} {}, ratio {:.1}",
                    theirs.text(qos),
                    ours.per_cpu_s / theirs.per_cpu_s
                ),
                Err(took) => format!("; {name} takes no more than {took} msg/s, no ratio"),
            };
        }
        println!("{line}");
    }
}

/// Bytes of all files below a folder.
fn bytes_in(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let of = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(about) if about.is_dir() => bytes_in(&entry.path()),
        Ok(about) => about.len(),
        Err(_) => 0,
    };
    entries.map(of).sum()
}

fn restart() {
    let place = tempfile::tempdir().expect("a folder");
    let data = place.path().join("data");
    let rest = "topics = [\"#\"]\nname = \"c\"\n[log]\nsegment = \"1GiB\"\nsegment-age = \"1h\"\nreserve = \"0B\"";
    let feed = Feed::listen();
    std::thread::spawn({
        let feed = feed.clone();
        move || feed.serve(0, 60_000, Duration::from_secs(120))
    });
    let collector = begin(&data, feed.url(), "any", rest);
    let log = data.join("collectors/c/log");
    let end = Instant::now() + Duration::from_secs(110);
    while bytes_in(&log) < 1_000_000_000 {
        assert!(Instant::now() < end, "it does not take 1 GB in that time");
        std::thread::sleep(Duration::from_millis(50));
    }
    // SIGKILL.
    drop(collector);
    let held = bytes_in(&log);
    let broker = Broker::start();
    let begun = Instant::now();
    let _collector = begin(&data, broker.url(), "any", rest);
    println!(
        "restart: {:.2} GB of log in one segment, {:.2} s until it collects again (bar 2)",
        held as f64 / 1e9,
        begun.elapsed().as_secs_f64()
    );
}

/// A line of /proc/PID/status, kB.
fn status_kb(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find(|line| line.starts_with(name));
    let words = line.and_then(|line| line.split_whitespace().nth(1));
    parse(words.expect("a figure"))
}

fn drain() {
    for count in [1_000, 100_000, 1_000_000] {
        let place = tempfile::tempdir().expect("a folder");
        let data = place.path().join("data");
        let broker = Broker::start();
        let rest = "topics = [\"t/#\"]\nname = \"c\"\n[log]\nsegment = \"1GiB\"";
        drop(begin(&data, broker.url(), "any", rest));
        let mut publisher = Publisher::on(&broker, Reliability::AtLeastOnce);
        publisher.publish("t/a", count, PAYLOAD);
        let begun = Instant::now();
        let collector = begin(&data, broker.url(), "any", rest);
        let log = data.join("collectors/c/log");
        let all = count * PAYLOAD as u64;
        let end = begun + Duration::from_secs(120);
        while bytes_in(&log) < all {
            assert!(Instant::now() < end, "it drains the queue in that time");
            std::thread::sleep(Duration::from_millis(1));
        }
        println!(
            "drain: {count} queued messages in {:.2} s; most memory {:.1} MB",
            begun.elapsed().as_secs_f64(),
            status_kb(collector.id(), "VmHWM:") as f64 / 1e3,
        );
    }
}
