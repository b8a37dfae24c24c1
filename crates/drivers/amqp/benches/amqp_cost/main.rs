//! The driver against RabbitMQ PerfTest and against a plain client (`plain.rs`; it waits in `recv`, or in epoll as the
//! driver does), on one private RabbitMQ in one run: messages for each second of client CPU, publishing and consuming.
//!
//! ```text
//! mvn -q -B -f crates/drivers/amqp/benches/perftest/pom.xml \
//!     org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
//!     -DoutputDirectory="$PWD/target/perftest"
//! PUBGAUGE_PERFTEST="$PWD/target/perftest" cargo bench -p pubgauge-driver-amqp --bench amqp_cost
//! ```
//!
//! All sides are processes of their own, send or take the same number of messages of 64 bytes by
//! the same exchange and queue with the same options, and are charged what `wait4` says, start
//! included. Because a JVM takes long to start and to warm up, each is also measured with fewer
//! messages: the difference of the two gives the cost without the start. The driver's consumer
//! does what the engine does: it checks header and sequence of every message. The bar: 10 times
//! PerfTest's messages per CPU-second; where the plain client in `recv` itself does not get there, 95 % of
//! what the one in epoll does.

mod plain;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pubgauge_driver::*;
use pubgauge_driver_amqp::AmqpDriver;
use pubgauge_testbed::{SystemFile, Testbed};
use pubgauge_testing::bench::process::this_program;
use pubgauge_testing::bench::{
    Clients, MARK, PAYLOAD, Rounds, arguments, cpu, header, parse, poll, poll_until,
};
use pubgauge_testing::config;

use plain::Wait;

const VARIABLE: &str = "PUBGAUGE_PERFTEST";
const MANY: u64 = 300_000;
const FEW: u64 = 60_000;
const PAIRS: usize = 3;
const BAR: f64 = 10.0;
const PLAIN_BAR: f64 = 0.95;
/// Unconfirmed messages of a publisher, and unacknowledged ones of a consumer, where the mode has
/// them.
const WINDOW: u16 = 1000;

/// Promises asked of the server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// No confirms, automatic acknowledgement.
    Automatic,
    /// Confirms, and manual acknowledgement with a prefetch.
    Confirmed,
}

impl Mode {
    const ALL: [Mode; 2] = [Mode::Automatic, Mode::Confirmed];

    fn name(self) -> &'static str {
        match self {
            Mode::Automatic => "automatic",
            Mode::Confirmed => "confirmed",
        }
    }

    fn settings(self) -> Settings {
        Settings {
            reliability: (self == Mode::Confirmed).then_some(Reliability::AtLeastOnce),
            // A queue that stays, for consumers to come.
            session: Some(Session::Durable),
            ..Settings::default()
        }
    }
}

fn main() {
    let arguments = arguments();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [side, what, mode, endpoint, topic, count] => {
            let (mode, count) = (parse_mode(mode), parse(count));
            let wait = match side {
                "driver" => None,
                "plain" => Some(Wait::Recv),
                "plain-epoll" => Some(Wait::Epoll),
                _ => panic!("no side {side}"),
            };
            match (what, wait) {
                ("publish", None) => publish(mode, endpoint, topic, count),
                ("consume", None) => consume(mode, endpoint, topic, count),
                ("publish", Some(wait)) => plain::publish(wait, mode, endpoint, topic, count),
                ("consume", Some(wait)) => plain::consume(wait, mode, endpoint, topic, count),
                _ => panic!("no side can {what}"),
            }
        }
        _ => compare(),
    }
}

fn parse_mode(name: &str) -> Mode {
    let found = Mode::ALL.into_iter().find(|m| m.name() == name);
    found.unwrap_or_else(|| panic!("no mode {name}"))
}

fn perftest() -> PathBuf {
    let folder = std::env::var_os(VARIABLE).map(PathBuf::from);
    let has = |folder: &PathBuf| {
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let names = files.map(|f| f.file_name().to_string_lossy().into_owned());
        names.into_iter().any(|n| n.starts_with("perf-test-"))
    };
    folder.filter(has).unwrap_or_else(|| {
        panic!(
            "this bench compares with RabbitMQ PerfTest (Java 17): fetch it with\n  \
             mvn -q -B -f {}/benches/perftest/pom.xml org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies -DoutputDirectory=FOLDER\n\
             and set {VARIABLE}=FOLDER",
            env!("CARGO_MANIFEST_DIR")
        )
    })
}

fn compare() {
    let jars = perftest();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../systems/rabbitmq.toml");
    let system = SystemFile::read(&path).expect("systems/rabbitmq.toml");
    let scratch = tempfile::tempdir().expect("a folder");
    let running = Testbed::new()
        .expect("a testbed")
        .drivers(AmqpDriver)
        .start(&system, None, scratch.path())
        .expect("RabbitMQ starts (apt install rabbitmq-server)");
    let endpoint = running.target.endpoints[0].clone();
    println!(
        "RabbitMQ {}, PerfTest from {}, {PAYLOAD} B",
        running.version.as_deref().unwrap_or("?"),
        jars.display()
    );
    let bench = Bench { endpoint, jars };
    let mut missed = Vec::new();
    for mode in Mode::ALL {
        for consuming in [false, true] {
            let what = if consuming { "consume" } else { "publish" };
            println!("\n{what}, {}", mode.name());
            println!(
                "  messages per CPU-second, with the start | without: {}",
                Side::ALL.map(Side::name).join(", ")
            );
            let measured: Vec<_> = (0..PAIRS)
                .map(|_| {
                    let all = Side::ALL.map(|side| bench.measure(side, mode, consuming));
                    let [whole, net] = [all.map(|(whole, _)| whole), all.map(|(_, net)| net)];
                    println!("  {whole:>9.0?} | {net:>9.0?}");
                    all
                })
                .collect();
            let over = |side: Side, peer: Side| {
                let [ours, peer] = [side as usize, peer as usize];
                Rounds::run(PAIRS, |nth| [measured[nth][peer], measured[nth][ours]])
            };
            let perftest = over(Side::Driver, Side::PerfTest);
            let [whole, net] =
                [perftest.ratio(|r| r.0), perftest.ratio(|r| r.1)].map(|ratio| ratio.median);
            let [plain, in_epoll] = [Side::Plain, Side::PlainEpoll]
                .map(|peer| over(Side::Driver, peer).ratio(|r| r.1).median);
            let plain_misses = over(Side::Plain, Side::PerfTest).ratio(|r| r.1).median < BAR;
            let reached = whole.min(net) >= BAR || plain_misses && in_epoll >= PLAIN_BAR;
            println!(
                "  driver/PerfTest {whole:.1}, without start {net:.1} (bar {BAR}); driver/plain without start {plain:.2}, \
                 driver/plain in epoll {in_epoll:.2} (bar {PLAIN_BAR} where the plain one does not reach {BAR} either): {}",
                if reached { "reached" } else { "MISSED" }
            );
            if !reached {
                missed.push(format!("{what} {}", mode.name()));
            }
        }
    }
    running.stop();
    assert!(missed.is_empty(), "missed: {}", missed.join(", "));
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Driver,
    PerfTest,
    /// The plain client, which waits in `recv`.
    Plain,
    /// The same, which waits in `epoll_wait`.
    PlainEpoll,
}

impl Side {
    const ALL: [Side; 4] = [Side::Driver, Side::PerfTest, Side::Plain, Side::PlainEpoll];

    fn name(self) -> &'static str {
        match self {
            Side::Driver => "driver",
            Side::PerfTest => "PerfTest",
            Side::Plain => "plain",
            Side::PlainEpoll => "plain-epoll",
        }
    }
}

struct Bench {
    endpoint: String,
    jars: PathBuf,
}

impl Bench {
    /// Messages per CPU-second, with the start and without.
    fn measure(&self, side: Side, mode: Mode, consuming: bool) -> (f64, f64) {
        let few = self.cpu(side, mode, consuming, FEW);
        let many = self.cpu(side, mode, consuming, MANY);
        (MANY as f64 / many, (MANY - FEW) as f64 / (many - few))
    }

    fn cpu(&self, side: Side, mode: Mode, consuming: bool, count: u64) -> f64 {
        let topic = format!(
            "bench/{}/{}",
            mode.name(),
            if consuming { "c" } else { "p" }
        );
        // The queue as the driver makes it, empty, or filled for whoever consumes.
        let target = Target::single(&self.endpoint);
        let mut prepared = pubgauge_testing::Rig::open(&AmqpDriver, target, mode.settings());
        prepared.seen.count_only = true;
        let client = prepared.client(&spec("prepare"));
        prepared.subscribe_shared(client, &topic, Some("g"));
        // Messages that a former round left are taken away.
        let mut before = usize::MAX;
        while before != prepared.seen.delivered {
            before = prepared.seen.delivered;
            prepared.poll_for(Duration::from_millis(300));
        }
        // A fleet that is closed takes its queues along, and PerfTest would make one of its own.
        drop(prepared);
        if consuming {
            // With confirms, so that all are in the queue when this returns.
            publish(Mode::Confirmed, &self.endpoint, &topic, count);
        }
        let mut command = match side {
            Side::PerfTest => self.perftest(mode, consuming, &topic, count),
            _ => self.own(side, mode, consuming, &topic, count),
        };
        let begin = Instant::now();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let cpu = cpu::of_ended(&mut child);
        let wall = begin.elapsed().as_secs_f64();
        if std::env::var_os("PUBGAUGE_BENCH_VERBOSE").is_some() {
            eprintln!("    {count} messages: {cpu:.3} CPU-s in {wall:.1} s");
        }
        cpu
    }

    /// This program again, as the driver or as the plain client.
    fn own(&self, side: Side, mode: Mode, consuming: bool, topic: &str, count: u64) -> Command {
        let what = if consuming { "consume" } else { "publish" };
        let count = count.to_string();
        let mut command = Command::new(this_program());
        command.args([
            side.name(),
            what,
            mode.name(),
            &self.endpoint,
            topic,
            &count,
        ]);
        command
    }

    fn perftest(&self, mode: Mode, consuming: bool, topic: &str, count: u64) -> Command {
        let key = topic.replace('/', ".");
        let queue = format!("pubgauge.group.g.{key}");
        let uri = self.endpoint.replace("amqp://", "amqp://guest:guest@");
        let mut command = Command::new("java");
        command
            .args(["-cp", &format!("{}/*", self.jars.display())])
            .arg("com.rabbitmq.perf.PerfTest")
            .args(["--uri", &uri, "--predeclared", "--queue", &queue])
            .args(["--exchange", "amq.topic", "--type", "topic"])
            .args(["--routing-key", &key, "--size", &PAYLOAD.to_string()]);
        let window = WINDOW.to_string();
        if !consuming {
            command.args(["-x", "1", "-y", "0", "--pmessages", &count.to_string()]);
            if mode == Mode::Confirmed {
                command.args(["--confirm", &window]);
            }
        } else {
            command.args(["-x", "0", "-y", "1", "--cmessages", &count.to_string()]);
            match mode {
                Mode::Automatic => command.arg("--autoack"),
                // One acknowledgement for a hundred, as far as it can gather them.
                Mode::Confirmed => command.args(["--qos", &window, "--multi-ack-every", "100"]),
            };
        }
        command
    }
}

/// Counts, and decodes headers as the engine does.
#[derive(Default)]
struct Sink {
    clients: Clients,
    delivered: u64,
    acknowledged: u64,
    next: u32,
    foreign: u64,
}

impl Events for Sink {
    fn arrived(&mut self) {}
    fn delivered(&mut self, _: ClientId, delivery: Delivery<'_>) {
        self.delivered += 1;
        match Header::decode(delivery.payload, MARK) {
            Some(header) if header.sequence == self.next => self.next += 1,
            _ => self.foreign += 1,
        }
    }
    fn acknowledged(&mut self, _: ClientId, _: u64, _: Acknowledgement) {
        self.acknowledged += 1;
    }
    fn changed(&mut self, _: ClientId, change: Change) {
        self.clients.note(change);
    }
}

fn open(endpoint: &str, settings: Settings) -> Box<dyn Fleet> {
    let config = FleetConfig {
        max_payload: PAYLOAD,
        clients: 1,
        ..config(Target::single(endpoint), settings)
    };
    AmqpDriver.open(config).expect("the fleet opens")
}

fn spec(name: &str) -> ClientSpec {
    ClientSpec {
        name: name.into(),
        ..ClientSpec::default()
    }
}

fn publish(mode: Mode, endpoint: &str, topic: &str, count: u64) {
    let mut fleet = open(endpoint, mode.settings());
    let mut sink = Sink::default();
    let client = fleet.connect(&spec("publisher")).expect("connects");
    poll_until(&mut *fleet, &mut sink, |s| s.clients.connected == 1);
    let topic = fleet.advertise(client, topic).expect("a topic");
    let filler = Filler::new(PAYLOAD);
    let mut sent = 0;
    while sent < count {
        // Nobody reads intended times here.
        let head = header(0, sent as u32);
        let payload = Payload {
            head: &head,
            body: filler.body(0, sent as u32, PAYLOAD),
        };
        match fleet.publish(client, topic, payload, sent) {
            Publish::Accepted => sent += 1,
            Publish::Blocked => {
                poll(&mut *fleet, &mut sink, 50_000_000);
            }
            Publish::Refused(why) => panic!("refused: {why:?}"),
        }
    }
    while fleet.unsettled() > 0 {
        poll(&mut *fleet, &mut sink, 50_000_000);
    }
    if mode == Mode::Confirmed {
        assert_eq!(sink.acknowledged, count);
    }
    fleet.close(Clock::Monotonic.now() + 5_000_000_000);
}

fn consume(mode: Mode, endpoint: &str, topic: &str, count: u64) {
    let mut fleet = open(endpoint, mode.settings());
    let mut sink = Sink::default();
    let client = fleet.connect(&spec("consumer")).expect("connects");
    poll_until(&mut *fleet, &mut sink, |s| s.clients.connected == 1);
    let group = Subscription::matching(topic).of_group("g");
    fleet.subscribe(client, &group).expect("subscribes");
    poll_until(&mut *fleet, &mut sink, |s| s.delivered >= count);
    assert_eq!((sink.delivered, sink.foreign), (count, 0));
    fleet.close(Clock::Monotonic.now() + 5_000_000_000);
}
