//! The driver against a plain C++ program (`plain.cpp`) on the same Fast DDS with the same QoS, in
//! one run.
//!
//! ```text
//! cargo bench -p pubgauge-driver-fastdds --features bench-plain --bench fastdds_vs_plain [-- PAIRS [COUNT [ROW]]]
//! ```
//!
//! Publisher and subscriber are processes of their own. Both sides send `COUNT` reliable messages
//! with 64 bytes of payload over UDP on the loopback interface. The driver's subscriber does what
//! the engine does: checks header and sequence, stamps, and adds to a histogram. What counts is
//! the median of the ratios of pairs. The bar: 95 % of the plain program's messages per second.
//!
//! Measured on a quiet machine of two cores, in turn, 5 pairs of 150 000 messages, medians of b/a:
//! `tuned` 1.12 messages per second (1.10 per publisher CPU-second, 1.28 per subscriber's); `default`
//! 0.88 (0.66, 0.58): below the bar.
//!
//! With the preset `default` they also differ in what they lose: 400 datagrams at once do not fit
//! into the kernel's default receive buffer when its reader is late, and what is lost is sent again
//! after two delays of 5 ms. Per 100 000 messages on a quiet machine of two cores, UDP's RcvbufErrors
//! were 2000 to 6500 with the driver's subscriber, which hands over to another thread, and 0 to 2700
//! with the plain one, which does everything in the listener.

use std::ffi::{c_double, c_int, c_long};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use hdrhistogram::Histogram;
use pubgauge_driver::{
    Acknowledgement, Change, ClientId, ClientSpec, Clock, Delivery, Driver, Events, Filler, Fleet,
    FleetConfig, Header, Kind, Mark, Nanos, Payload, Publish, Settings, Subscription, Target,
};
use pubgauge_driver_fastdds::FastddsDriver;

const PAYLOAD: usize = 64;
const MARK: Mark = Mark::from_seed(9);
const TOPIC: &str = "bench/0";
/// Time for the endpoints to find each other.
const SETTLE: std::time::Duration = std::time::Duration::from_millis(700);
/// Messages published between two looks at the fleet.
const BURST: usize = 64;

unsafe extern "C" {
    fn plain_publish(
        count: c_long,
        size: c_int,
        domain: u32,
        tuned: c_int,
        keyed: c_int,
        go: extern "C" fn(),
    ) -> c_int;
    fn plain_subscribe(
        count: c_long,
        size: c_int,
        domain: u32,
        tuned: c_int,
        keyed: c_int,
        ready: extern "C" fn(),
    ) -> c_double;
}

/// What one repeat gave.
#[derive(Clone, Copy, Debug)]
struct Figures {
    per_second: f64,
    per_publisher_cpu_second: f64,
    per_subscriber_cpu_second: f64,
}

impl Figures {
    fn shown(self) -> String {
        format!(
            "{:>7.0}/s ({:>6.0} per publisher CPU-s, {:>6.0} per subscriber CPU-s)",
            self.per_second, self.per_publisher_cpu_second, self.per_subscriber_cpu_second
        )
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["publish", kind, preset, count, domain] => {
            publish(kind, preset, parse(count), parse(domain));
        }
        ["subscribe", kind, preset, count, domain] => {
            subscribe(kind, preset, parse(count), parse(domain));
        }
        _ => compare(
            words.first().map_or(7, |n| parse(n)),
            words.get(1).map_or(200_000, |n| parse(n)),
            words.get(2).copied().unwrap_or(""),
        ),
    }
}

fn parse<T: std::str::FromStr>(text: &str) -> T {
    text.parse()
        .unwrap_or_else(|_| panic!("not a number: {text}"))
}

/// Compares in all rows whose title holds `row`.
fn compare(pairs: usize, count: u32, row: &str) {
    println!(
        "{}, {PAYLOAD} B, {count} messages, reliable, UDP",
        FastddsDriver.library().unwrap_or("Fast DDS".into())
    );
    for (preset, kinds, together) in [
        ("tuned", ["plain", "driver"], false),
        ("tuned", ["plain-keyless", "driver"], false),
        ("tuned", ["plain", "driver"], true),
        ("tuned", ["plain-keyless", "driver"], true),
        ("default", ["plain", "driver"], false),
        ("default", ["plain", "driver"], true),
    ] {
        let way = if together { "side by side" } else { "in turn" };
        let title = format!("{preset}, {way}:  a = {}, b = {}", kinds[0], kinds[1]);
        if !title.contains(row) {
            continue;
        }
        println!("\n{title}");
        let mut ratios: [Vec<f64>; 3] = Default::default();
        let mut all: [Vec<f64>; 2] = Default::default();
        for pair in 0..pairs {
            // Who goes first changes, so that drift of the machine favours neither.
            let swapped = pair % 2 == 1;
            let [a, b] = if together {
                side_by_side(kinds, preset, count, swapped)
            } else {
                in_turn(kinds, preset, count, swapped)
            };
            println!(
                "  a {}   b {}   b/a {:.3}",
                a.shown(),
                b.shown(),
                b.per_second / a.per_second
            );
            all[0].push(a.per_second);
            all[1].push(b.per_second);
            ratios[0].push(b.per_second / a.per_second);
            ratios[1].push(b.per_publisher_cpu_second / a.per_publisher_cpu_second);
            ratios[2].push(b.per_subscriber_cpu_second / a.per_subscriber_cpu_second);
        }
        println!(
            "  median   a {:.0}/s, b {:.0}/s",
            median(&mut all[0]),
            median(&mut all[1])
        );
        println!(
            "  median b/a:  msgs/s {:.3}   msgs per publisher CPU-s {:.3}   per subscriber CPU-s {:.3}",
            median(&mut ratios[0]),
            median(&mut ratios[1]),
            median(&mut ratios[2])
        );
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// One repeat: a publisher and a subscriber process.
struct Repeat {
    publisher: Process,
    subscriber: Process,
    count: u32,
}

impl Repeat {
    fn start(kind: &str, preset: &str, count: u32, domain: u32) -> Self {
        let (count_text, domain) = (count.to_string(), domain.to_string());
        let mut subscriber = Process::start(&["subscribe", kind, preset, &count_text, &domain]);
        assert_eq!(subscriber.line(), "ready");
        let publisher = Process::start(&["publish", kind, preset, &count_text, &domain]);
        Repeat {
            publisher,
            subscriber,
            count,
        }
    }

    fn finish(mut self) -> Figures {
        let received: Vec<f64> = self.subscriber.line().split(' ').map(parse).collect();
        let sent: Vec<f64> = self.publisher.line().split(' ').map(parse).collect();
        self.publisher.end();
        self.subscriber.end();
        let count = f64::from(self.count);
        Figures {
            per_second: (count - 1.0) / received[0],
            per_publisher_cpu_second: count / sent[0],
            per_subscriber_cpu_second: count / received[1],
        }
    }
}

/// Runs one kind after the other, the second of `kinds` first if `swapped`.
fn in_turn(kinds: [&str; 2], preset: &str, count: u32, swapped: bool) -> [Figures; 2] {
    let one = |kind| {
        let mut repeat = Repeat::start(kind, preset, count, 220);
        std::thread::sleep(SETTLE);
        repeat.publisher.say("go");
        repeat.finish()
    };
    if swapped {
        let second = one(kinds[1]);
        [one(kinds[0]), second]
    } else {
        [one(kinds[0]), one(kinds[1])]
    }
}

/// Runs both kinds at the same time, so that they share whatever the machine has to give.
fn side_by_side(kinds: [&str; 2], preset: &str, count: u32, swapped: bool) -> [Figures; 2] {
    let [a, b] = kinds;
    let mut repeats = [
        Repeat::start(a, preset, count, 221),
        Repeat::start(b, preset, count, 222),
    ];
    std::thread::sleep(SETTLE);
    for which in if swapped { [1, 0] } else { [0, 1] } {
        repeats[which].publisher.say("go");
    }
    repeats.map(Repeat::finish)
}

/// This program again, in another role, spoken to by lines.
struct Process {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Process {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("a path"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let lines = BufReader::new(child.stdout.take().expect("piped"));
        Process { child, lines }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let len = self.lines.read_line(&mut line).expect("readable");
        assert!(len > 0, "a child ended early");
        line.trim_end().to_owned()
    }

    fn say(&mut self, word: &str) {
        writeln!(self.child.stdin.as_mut().expect("piped"), "{word}").expect("writable");
    }

    fn end(&mut self) {
        assert!(self.child.wait().expect("a child").success());
    }
}

fn tell(line: &str) {
    println!("{line}");
    std::io::stdout().flush().expect("writable");
}

/// CPU time of this process, the library's threads included, in seconds.
fn cpu_seconds() -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: getrusage fills the whole structure for RUSAGE_SELF.
    let usage = unsafe {
        assert_eq!(libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()), 0);
        usage.assume_init()
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

thread_local! {
    static CPU_AT_START: std::cell::Cell<f64> = const { std::cell::Cell::new(0.0) };
}

extern "C" fn ready() {
    CPU_AT_START.set(cpu_seconds());
    tell("ready");
}

extern "C" fn go() {
    std::io::stdin()
        .read_line(&mut String::new())
        .expect("readable");
    CPU_AT_START.set(cpu_seconds());
}

fn publish(kind: &str, preset: &str, count: u32, domain: u32) {
    let tuned = c_int::from(preset == "tuned");
    match kind {
        "driver" => publish_with_driver(preset, count, domain),
        plain => {
            let keyed = c_int::from(plain == "plain");
            // SAFETY: plain numbers and a function that lives as long as the program.
            let code =
                unsafe { plain_publish(count.into(), PAYLOAD as c_int, domain, tuned, keyed, go) };
            assert_eq!(code, 0, "the plain program failed");
        }
    }
    tell(&format!("{}", cpu_seconds() - CPU_AT_START.get()));
}

fn subscribe(kind: &str, preset: &str, count: u32, domain: u32) {
    let tuned = c_int::from(preset == "tuned");
    let seconds = match kind {
        "driver" => subscribe_with_driver(preset, count, domain),
        plain => {
            let keyed = c_int::from(plain == "plain");
            // SAFETY: plain numbers and a function that lives as long as the program.
            unsafe { plain_subscribe(count.into(), PAYLOAD as c_int, domain, tuned, keyed, ready) }
        }
    };
    assert!(seconds > 0.0, "the subscriber failed");
    tell(&format!("{seconds} {}", cpu_seconds() - CPU_AT_START.get()));
}

fn open(preset: &str, domain: u32, worker: u32) -> Box<dyn Fleet> {
    let settings: Settings = serde_json::from_value(serde_json::json!(
        {"reliability": "reliable", "native": {"fastdds": {"preset": preset}}}))
    .expect("settings");
    let config = FleetConfig {
        target: Target {
            endpoints: vec![format!("dds://localhost/{domain}")],
            ..Target::default()
        },
        settings,
        clock: Clock::Monotonic,
        max_payload: PAYLOAD,
        clients: 1,
        worker,
    };
    FastddsDriver.open(config).expect("opens")
}

fn publish_with_driver(preset: &str, count: u32, domain: u32) {
    let clock = Clock::Monotonic;
    let mut fleet = open(preset, domain, 1);
    let mut sink = Sink::new();
    let spec = ClientSpec {
        publishes: true,
        ..ClientSpec::default()
    };
    let client = fleet.connect(&spec).expect("connects");
    fleet.poll(0, &mut sink).expect("polls");
    let topic = fleet.advertise(client, TOPIC).expect("advertises");
    let filler = Filler::new(PAYLOAD);
    go();
    let epoch = clock.now();
    let mut sequence = 0;
    while sequence < count {
        let now = clock.now() - epoch;
        let mut blocked = false;
        for _ in 0..BURST.min((count - sequence) as usize) {
            let header = Header {
                kind: Kind::Measured,
                intended: now,
                lag: 0,
                stream: 0,
                sequence,
            };
            let payload = Payload {
                head: &header.encode(MARK),
                body: filler.body(0, sequence, PAYLOAD),
            };
            match fleet.publish(client, topic, payload, 0) {
                Publish::Accepted => sequence += 1,
                Publish::Blocked => {
                    blocked = true;
                    break;
                }
                Publish::Refused(why) => panic!("{why:?}"),
            }
        }
        sink.writable = false;
        let until = if blocked {
            clock.now() + 1_000_000_000
        } else {
            0
        };
        fleet.poll(until, &mut sink).expect("polls");
        assert!(!blocked || sink.writable, "blocked for good");
    }
    fleet.close(clock.now() + 20_000_000_000);
}

fn subscribe_with_driver(preset: &str, count: u32, domain: u32) -> f64 {
    let clock = Clock::Monotonic;
    let mut fleet = open(preset, domain, 2);
    let mut sink = Sink::new();
    let spec = ClientSpec {
        subscribes: true,
        ..ClientSpec::default()
    };
    let client = fleet.connect(&spec).expect("connects");
    let everything = Subscription {
        filter: TOPIC.to_owned(),
        group: None,
    };
    fleet.subscribe(client, &everything).expect("subscribes");
    fleet.poll(0, &mut sink).expect("polls");
    ready();
    while sink.received < count {
        let before = sink.received;
        fleet
            .poll(clock.now() + 30_000_000_000, &mut sink)
            .expect("polls");
        assert!(
            sink.received > before,
            "nothing came for 30 s after {before} messages"
        );
    }
    let seconds = (sink.now - sink.first) as f64 * 1e-9;
    assert_eq!(sink.delays.len(), u64::from(count));
    std::thread::sleep(std::time::Duration::from_millis(200));
    fleet.close(clock.now() + 1_000_000_000);
    seconds
}

/// Does with each message what the engine does.
struct Sink {
    clock: Clock,
    now: Nanos,
    first: Nanos,
    received: u32,
    delays: Histogram<u64>,
    filler: Filler,
    writable: bool,
}

impl Sink {
    fn new() -> Self {
        Sink {
            clock: Clock::Monotonic,
            now: 0,
            first: 0,
            received: 0,
            delays: Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("bounds"),
            filler: Filler::new(PAYLOAD),
            writable: false,
        }
    }
}

impl Events for Sink {
    fn arrived(&mut self) {
        self.now = self.clock.now();
    }

    fn delivered(&mut self, _: ClientId, delivery: Delivery<'_>) {
        let header = Header::decode(delivery.payload, MARK).expect("a header of ours");
        assert_eq!(header.sequence, self.received, "lost or out of order");
        debug_assert_eq!(
            &delivery.payload[16..],
            self.filler.body(0, header.sequence, PAYLOAD)
        );
        if self.received == 0 {
            self.first = self.now;
        }
        self.received += 1;
        // Not a latency: publisher and subscriber count from different epochs. The cost of
        // recording one is the same.
        let delay = self.now.wrapping_sub(header.intended) % 3_600_000_000_000;
        self.delays.record(delay.max(1)).expect("within bounds");
    }

    fn acknowledged(&mut self, _: ClientId, _: u64, _: Acknowledgement) {}

    fn changed(&mut self, _: ClientId, change: Change) {
        self.writable |= change == Change::Writable;
    }
}
