//! The driver against a plain C program (`plain.c`) on the same libzmq, in one run.
//!
//! ```text
//! cargo bench -p pubgauge-driver-zeromq --features bench-c --bench zeromq_vs_c [-- PAIRS [COUNT]]
//! ```
//!
//! Publisher and subscriber are processes of their own. Both sides send `COUNT` messages with 64
//! bytes of payload over TCP; the driver's also carry a topic, and its subscriber does what the
//! engine does: checks header and sequence, stamps, and adds to a histogram. What counts is the
//! median of the ratios of pairs. The bar: 95 % of the C program's messages per second. Pairs run
//! in turn, and also side by side: on a machine with other work only the latter compares like
//! with like.

use std::ffi::{CStr, CString, c_char, c_double, c_int, c_long};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use hdrhistogram::Histogram;
use pubgauge_driver::{
    Acknowledgement, Change, ClientId, ClientSpec, Clock, Delivery, Driver, Events, Filler, Fleet,
    FleetConfig, Header, Kind, Mark, Nanos, Payload, Publish, Settings, Subscription, Target,
};
use pubgauge_driver_zeromq::ZeromqDriver;

const PAYLOAD: usize = 64;
const MARK: Mark = Mark::from_seed(9);
const TOPIC: &str = "bench/0";
/// Time for the subscription to reach the publisher.
const SETTLE: std::time::Duration = std::time::Duration::from_millis(150);
/// Messages published between two looks at the fleet.
const BURST: usize = 64;

unsafe extern "C" {
    fn plain_publish(
        count: c_long,
        size: c_int,
        hwm: c_int,
        address_known: extern "C" fn(*const c_char),
        go: extern "C" fn(),
    ) -> c_int;
    fn plain_subscribe(
        address: *const c_char,
        count: c_long,
        hwm: c_int,
        started: extern "C" fn(),
    ) -> c_double;
}

/// What one repeat gave.
#[derive(Clone, Copy, Debug)]
struct Figures {
    per_second: f64,
    per_publisher_cpu_second: f64,
    per_subscriber_cpu_second: f64,
}

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["publish", kind, count, hwm] => publish(kind, parse(count), parse(hwm)),
        ["subscribe", kind, count, hwm, address] => {
            subscribe(kind, parse(count), parse(hwm), address);
        }
        _ => compare(
            words.first().map_or(9, |n| parse(n)),
            words.get(1).map_or(2_000_000, |n| parse(n)),
        ),
    }
}

fn parse<T: std::str::FromStr>(text: &str) -> T {
    text.parse()
        .unwrap_or_else(|_| panic!("not a number: {text}"))
}

fn compare(pairs: usize, count: u32) {
    println!(
        "{}, {PAYLOAD} B, {count} messages, TCP",
        ZeromqDriver.library().unwrap()
    );
    type Way = fn([&str; 2], u32, i32, bool) -> [Figures; 2];
    let comparisons: [(&str, i32, [&str; 2], Way); 5] = [
        (
            "in turn, no high-water mark, as in the plain program",
            0,
            ["c", "driver"],
            in_turn,
        ),
        (
            "in turn, high-water mark 1000 (default), no drop",
            1000,
            ["c", "driver"],
            in_turn,
        ),
        (
            "side by side, no high-water mark",
            0,
            ["c", "driver"],
            together,
        ),
        (
            "side by side, high-water mark 1000, no drop",
            1000,
            ["c", "driver"],
            together,
        ),
        (
            "side by side, mark 1000",
            1000,
            ["driver", "driver-multipart"],
            together,
        ),
    ];
    for (label, hwm, kinds, way) in comparisons {
        println!("\n{label}:  a = {}, b = {}", kinds[0], kinds[1]);
        let mut ratios: [Vec<f64>; 3] = Default::default();
        let mut all: [Vec<f64>; 2] = Default::default();
        for pair in 0..pairs {
            // Who goes first changes, so that drift of the machine favours neither.
            let [a, b] = way(kinds, count, hwm, pair % 2 == 1);
            println!(
                "  a {:>9.0}/s   b {:>9.0}/s   b/a {:.3}",
                a.per_second,
                b.per_second,
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
    /// Starts both and waits until they are connected.
    fn start(kind: &str, count: u32, hwm: i32) -> Self {
        let (count_text, hwm_text) = (count.to_string(), hwm.to_string());
        let mut publisher = Process::start(&["publish", kind, &count_text, &hwm_text]);
        let address = publisher.line();
        let words = ["subscribe", kind, &count_text, &hwm_text, &address];
        let mut subscriber = Process::start(&words);
        assert_eq!(subscriber.line(), "ready");
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
fn in_turn(kinds: [&str; 2], count: u32, hwm: i32, swapped: bool) -> [Figures; 2] {
    let one = |kind| {
        let mut repeat = Repeat::start(kind, count, hwm);
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
fn together(kinds: [&str; 2], count: u32, hwm: i32, swapped: bool) -> [Figures; 2] {
    let mut repeats = kinds.map(|kind| Repeat::start(kind, count, hwm));
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

fn wait_for_go() {
    std::io::stdin()
        .read_line(&mut String::new())
        .expect("readable");
}

/// CPU time of this process, libzmq's threads included, in seconds.
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

extern "C" fn mark_start() {
    CPU_AT_START.set(cpu_seconds());
}

extern "C" fn go() {
    wait_for_go();
    mark_start();
}

extern "C" fn tell_address(address: *const c_char) {
    // SAFETY: libzmq's endpoint, NUL-terminated.
    tell(&unsafe { CStr::from_ptr(address) }.to_string_lossy());
}

fn publish(kind: &str, count: u32, hwm: i32) {
    if kind == "c" {
        // SAFETY: plain numbers and two functions that live as long as the program.
        let code = unsafe { plain_publish(count.into(), PAYLOAD as c_int, hwm, tell_address, go) };
        assert_eq!(code, 0, "the plain program failed");
    } else {
        publish_with_driver(kind, count, hwm);
    }
    // Until here, so that what libzmq still had to send is counted.
    tell(&format!("{}", cpu_seconds() - CPU_AT_START.get()));
}

fn subscribe(kind: &str, count: u32, hwm: i32, address: &str) {
    let seconds = if kind == "c" {
        tell("ready");
        let address = CString::new(address).expect("no zero bytes");
        // SAFETY: a NUL-terminated string, numbers, a function.
        unsafe { plain_subscribe(address.as_ptr(), count.into(), hwm, mark_start) }
    } else {
        subscribe_with_driver(kind, count, hwm, address)
    };
    assert!(seconds > 0.0, "the subscriber failed");
    tell(&format!("{seconds} {}", cpu_seconds() - CPU_AT_START.get()));
}

fn open(kind: &str, hwm: i32) -> Box<dyn Fleet> {
    let framing = if kind == "driver-multipart" {
        "multipart"
    } else {
        "single-frame"
    };
    let settings: Settings = serde_json::from_value(serde_json::json!(
        {"queue-limit": hwm, "native": {"zeromq": {"framing": framing}}}))
    .expect("settings");
    let config = FleetConfig {
        target: Target::default(),
        settings,
        clock: Clock::Monotonic,
        max_payload: PAYLOAD,
        clients: 1,
        worker: 0,
    };
    ZeromqDriver.open(config).expect("opens")
}

fn publish_with_driver(kind: &str, count: u32, hwm: i32) {
    let clock = Clock::Monotonic;
    let mut fleet = open(kind, hwm);
    let mut sink = Sink::new();
    let spec = ClientSpec {
        publishes: true,
        ..ClientSpec::default()
    };
    let client = fleet.connect(&spec).expect("connects");
    while sink.address.is_none() {
        fleet
            .poll(clock.now() + 1_000_000, &mut sink)
            .expect("polls");
    }
    tell(sink.address.as_deref().expect("just seen"));
    let topic = fleet.advertise(client, TOPIC).expect("advertises");
    let filler = Filler::new(PAYLOAD);
    wait_for_go();
    fleet.poll(0, &mut sink).expect("polls"); // Takes the subscription.
    mark_start();
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

fn subscribe_with_driver(kind: &str, count: u32, hwm: i32, address: &str) -> f64 {
    let clock = Clock::Monotonic;
    let mut fleet = open(kind, hwm);
    let mut sink = Sink::new();
    let spec = ClientSpec {
        subscribes: true,
        peers: vec![address.to_owned()],
        ..ClientSpec::default()
    };
    let client = fleet.connect(&spec).expect("connects");
    while !sink.connected {
        fleet
            .poll(clock.now() + 1_000_000, &mut sink)
            .expect("polls");
    }
    let everything = Subscription {
        filter: "#".to_owned(),
        group: None,
    };
    fleet.subscribe(client, &everything).expect("subscribes");
    fleet.poll(0, &mut sink).expect("polls");
    tell("ready");
    while sink.received < count {
        let before = sink.received;
        fleet
            .poll(clock.now() + 15_000_000_000, &mut sink)
            .expect("polls");
        assert!(
            sink.received > before,
            "nothing came for 15 s after {before} messages"
        );
    }
    let seconds = (sink.now - sink.first) as f64 * 1e-9;
    assert_eq!(sink.delays.len(), u64::from(count));
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
    address: Option<String>,
    connected: bool,
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
            address: None,
            connected: false,
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
        assert_eq!(header.sequence, self.received, "lost, or out of order");
        assert!(
            self.filler
                .matches(header.stream, header.sequence, &delivery.payload[16..])
        );
        if self.received == 0 {
            mark_start();
            self.now = self.clock.now();
            self.first = self.now;
        }
        self.received += 1;
        // Any figure will do for the cost; the epochs of the two processes differ.
        let delay = self.now.wrapping_sub(header.intended) % 3_600_000_000_000;
        self.delays.record(delay.max(1)).expect("in bounds");
    }

    fn acknowledged(&mut self, _: ClientId, _: u64, _: Acknowledgement) {}

    fn changed(&mut self, _: ClientId, change: Change) {
        match change {
            Change::Connected { address, .. } => {
                self.connected = true;
                self.address = address;
            }
            Change::Writable => self.writable = true,
            // The publisher ends when it has sent everything; whether all came is checked.
            Change::Failed(_) => {}
            _ => {}
        }
    }
}
