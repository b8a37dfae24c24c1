//! The driver against a plain C++ program (`plain.cpp`) on the same Fast DDS with the same QoS, in
//! one run.
//!
//! ```text
//! cargo bench -p pubgauge-driver-fastdds --features bench-plain --bench fastdds_vs_plain [-- PAIRS [COUNT [ROW]]]
//! ```
//!
//! Publisher and subscriber are processes of their own. Both sides send `COUNT` reliable messages
//! with 64 bytes of payload over UDP on the loopback interface. The driver's subscriber does what
//! the engine does: checks header and sequence, stamps, and adds to a histogram; `plain-checked` is the
//! plain program with the same messages and checks, on a thread that the library wakes. What counts is
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

use std::ffi::{c_double, c_int, c_long, c_void};
use std::time::Duration;

use pubgauge_driver::{
    ClientSpec, Clock, Driver, Filler, Fleet, FleetConfig, Header, Subscription, Target,
};
use pubgauge_driver_fastdds::FastddsDriver;
use pubgauge_testing::bench::in_c::{Check, Checked, Fill};
use pubgauge_testing::bench::pair::{self, Pairs, Repeat, Sink};
use pubgauge_testing::bench::process::{Process, report};
use pubgauge_testing::bench::{PAYLOAD, arguments, parse, poll};
use pubgauge_testing::{config, settings};

const TOPIC: &str = "bench/0";
/// Time for the endpoints to find each other.
const SETTLE: Duration = Duration::from_millis(700);

unsafe extern "C" {
    fn plain_publish(
        count: c_long,
        size: c_int,
        domain: u32,
        tuned: c_int,
        keyed: c_int,
        go: extern "C" fn(),
        fill: Option<Fill>,
        user: *mut c_void,
    ) -> c_int;
    fn plain_subscribe(
        count: c_long,
        size: c_int,
        domain: u32,
        tuned: c_int,
        keyed: c_int,
        ready: extern "C" fn(),
        check: Option<Check>,
        user: *mut c_void,
    ) -> c_double;
}

fn main() {
    let arguments = arguments();
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

/// Compares in all rows whose title holds `row`.
fn compare(pairs: usize, count: u32, row: &str) {
    println!(
        "{}, {PAYLOAD} B, {count} messages, reliable, UDP",
        FastddsDriver.library().unwrap_or("Fast DDS".into())
    );
    for (preset, kinds, side_by_side) in [
        ("tuned", ["plain", "driver"], false),
        ("tuned", ["plain-keyless", "driver"], false),
        ("tuned", ["plain", "driver"], true),
        ("tuned", ["plain-keyless", "driver"], true),
        ("default", ["plain", "driver"], false),
        ("default", ["plain", "driver"], true),
        ("default", ["plain-checked", "driver"], false),
        ("default", ["plain-checked", "driver"], true),
    ] {
        let way = if side_by_side {
            "side by side"
        } else {
            "in turn"
        };
        let title = format!("{preset}, {way}:  a = {}, b = {}", kinds[0], kinds[1]);
        if !title.contains(row) {
            continue;
        }
        println!("\n{title}");
        let pairs = Pairs {
            kinds,
            side_by_side,
            settle: SETTLE,
            count: pairs,
        };
        pairs.compare(
            |kind, number| start(kind, preset, count, 220 + number),
            |f| {
                format!(
                    "{:>7.0}/s ({:>6.0} per publisher CPU-s, {:>6.0} per subscriber CPU-s)",
                    f.per_second, f.per_publisher_cpu_second, f.per_subscriber_cpu_second
                )
            },
        );
    }
}

fn start(kind: &str, preset: &str, count: u32, domain: u32) -> Repeat {
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

extern "C" fn ready() {
    pair::mark_start();
    report("ready");
}

fn publish(kind: &str, preset: &str, count: u32, domain: u32) {
    let tuned = c_int::from(preset == "tuned");
    match kind {
        "driver" => publish_with_driver(preset, count, domain),
        plain => {
            let keyed = c_int::from(plain != "plain-keyless");
            let mut checked = Checked::new(b"", sink());
            let fill = (plain == "plain-checked").then_some(Checked::fill as Fill);
            // SAFETY: plain numbers, functions that live as long as the program, and what `fill` asks for.
            let code = unsafe {
                let (count, size, user) = (count.into(), PAYLOAD as c_int, checked.user());
                plain_publish(count, size, domain, tuned, keyed, pair::go, fill, user)
            };
            assert_eq!(code, 0, "the plain program failed");
        }
    }
    pair::tell_cpu();
}

fn subscribe(kind: &str, preset: &str, count: u32, domain: u32) {
    let tuned = c_int::from(preset == "tuned");
    let seconds = match kind {
        "driver" => subscribe_with_driver(preset, count, domain),
        plain => {
            let keyed = c_int::from(plain != "plain-keyless");
            let mut checked = Checked::new(b"", sink());
            let check = (plain == "plain-checked").then_some(Checked::check as Check);
            // SAFETY: plain numbers, functions that live as long as the program, and what `check` asks for.
            unsafe {
                let (count, size, user) = (count.into(), PAYLOAD as c_int, checked.user());
                plain_subscribe(count, size, domain, tuned, keyed, ready, check, user)
            }
        }
    };
    pair::tell_time(seconds);
}

fn open(preset: &str, domain: u32, worker: u32) -> Box<dyn Fleet> {
    let settings = settings(serde_json::json!(
        {"reliability": "reliable", "native": {"fastdds": {"preset": preset}}}));
    let config = FleetConfig {
        max_payload: PAYLOAD,
        clients: 1,
        worker,
        ..config(
            Target::single(format!("dds://localhost/{domain}")),
            settings,
        )
    };
    FastddsDriver.open(config).expect("opens")
}

fn publish_with_driver(preset: &str, count: u32, domain: u32) {
    let mut fleet = open(preset, domain, 1);
    let spec = ClientSpec {
        publishes: true,
        ..ClientSpec::default()
    };
    let client = fleet.connect(&spec).expect("connects");
    poll(&mut *fleet, &mut sink(), 0);
    let topic = fleet.advertise(client, TOPIC).expect("advertises");
    let filler = Filler::new(PAYLOAD);
    pair::go();
    pair::publish(&mut *fleet, client, topic, &filler, count);
}

fn subscribe_with_driver(preset: &str, count: u32, domain: u32) -> f64 {
    let mut fleet = open(preset, domain, 2);
    let mut sink = sink();
    let spec = ClientSpec {
        subscribes: true,
        ..ClientSpec::default()
    };
    let client = fleet.connect(&spec).expect("connects");
    let everything = Subscription::matching(TOPIC);
    fleet.subscribe(client, &everything).expect("subscribes");
    poll(&mut *fleet, &mut sink, 0);
    ready();
    let seconds = sink.receive(&mut *fleet, count);
    std::thread::sleep(Duration::from_millis(200));
    fleet.close(Clock::Monotonic.now() + 1_000_000_000);
    seconds
}

fn sink() -> Sink<impl Fn(&Header, &[u8])> {
    let filler = Filler::new(PAYLOAD);
    Sink::new(false, move |header, payload| {
        debug_assert_eq!(&payload[16..], filler.body(0, header.sequence, PAYLOAD));
    })
}
