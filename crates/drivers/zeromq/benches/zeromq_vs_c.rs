//! The driver against a plain C program (`plain.c`) on the same libzmq, in one run.
//!
//! ```text
//! cargo bench -p pubgauge-driver-zeromq --features bench-c --bench zeromq_vs_c [-- PAIRS [COUNT]]
//! ```
//!
//! Publisher and subscriber are processes of their own. Both sides send `COUNT` messages with 64
//! bytes of payload over TCP; the driver's also carry a topic, and its subscriber does what the
//! engine does: checks header and sequence, stamps, and adds to a histogram. `c-checked` is the C
//! program with the driver's messages and the same checks on them: what the driver adds to libzmq
//! and to the checks shows beside it. What counts is the median of the ratios of pairs. The bar:
//! 95 % of its messages per second. Pairs run in turn, and also side by side: on a machine with
//! other work only the latter compares like with like.

use std::ffi::{CStr, CString, c_char, c_double, c_int, c_long, c_void};
use std::time::Duration;

use pubgauge_driver::{
    ClientSpec, Driver, Filler, Fleet, FleetConfig, Header, Subscription, Target,
};
use pubgauge_driver_zeromq::ZeromqDriver;
use pubgauge_testing::bench::in_c::{Check, Checked, Fill};
use pubgauge_testing::bench::pair::{self, Pairs, Repeat, Sink};
use pubgauge_testing::bench::process::{Process, report};
use pubgauge_testing::bench::{PAYLOAD, arguments, parse, poll};
use pubgauge_testing::{config, settings};

const TOPIC: &str = "bench/0";
/// Bytes of the driver's messages before their payload: the topic, and where it ends.
const BEFORE: &[u8] = b"bench/0\0";
/// Time for the subscription to reach the publisher.
const SETTLE: Duration = Duration::from_millis(150);

unsafe extern "C" {
    fn plain_publish(
        count: c_long,
        size: c_int,
        hwm: c_int,
        address_known: extern "C" fn(*const c_char),
        go: extern "C" fn(),
        fill: Option<Fill>,
        user: *mut c_void,
    ) -> c_int;
    fn plain_subscribe(
        address: *const c_char,
        count: c_long,
        hwm: c_int,
        started: extern "C" fn(),
        check: Option<Check>,
        user: *mut c_void,
    ) -> c_double;
}

fn main() {
    let arguments = arguments();
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

fn compare(pairs: usize, count: u32) {
    println!(
        "{}, {PAYLOAD} B, {count} messages, TCP",
        ZeromqDriver.library().unwrap()
    );
    for (label, hwm, kinds, side_by_side) in [
        (
            "in turn, no high-water mark, as in the plain program",
            0,
            ["c", "driver"],
            false,
        ),
        (
            "in turn, high-water mark 1000 (default), no drop",
            1000,
            ["c", "driver"],
            false,
        ),
        (
            "in turn, no high-water mark, with the same checks",
            0,
            ["c-checked", "driver"],
            false,
        ),
        (
            "in turn, high-water mark 1000, with the same checks",
            1000,
            ["c-checked", "driver"],
            false,
        ),
        ("side by side, no high-water mark", 0, ["c", "driver"], true),
        (
            "side by side, no high-water mark, with the same checks",
            0,
            ["c-checked", "driver"],
            true,
        ),
        (
            "side by side, high-water mark 1000, with the same checks",
            1000,
            ["c-checked", "driver"],
            true,
        ),
        (
            "side by side, high-water mark 1000, no drop",
            1000,
            ["c", "driver"],
            true,
        ),
        (
            "side by side, mark 1000",
            1000,
            ["driver", "driver-multipart"],
            true,
        ),
    ] {
        println!("\n{label}:  a = {}, b = {}", kinds[0], kinds[1]);
        let pairs = Pairs {
            kinds,
            side_by_side,
            settle: SETTLE,
            count: pairs,
        };
        pairs.compare(
            |kind, _| start(kind, count, hwm),
            |f| format!("{:>9.0}/s", f.per_second),
        );
    }
}

/// Starts both and waits until they are connected.
fn start(kind: &str, count: u32, hwm: i32) -> Repeat {
    let (count_text, hwm) = (count.to_string(), hwm.to_string());
    let mut publisher = Process::start(&["publish", kind, &count_text, &hwm]);
    let address = publisher.line();
    let mut subscriber = Process::start(&["subscribe", kind, &count_text, &hwm, &address]);
    assert_eq!(subscriber.line(), "ready");
    Repeat {
        publisher,
        subscriber,
        count,
    }
}

extern "C" fn tell_address(address: *const c_char) {
    // SAFETY: libzmq's endpoint, NUL-terminated.
    report(&unsafe { CStr::from_ptr(address) }.to_string_lossy());
}

fn publish(kind: &str, count: u32, hwm: i32) {
    if kind == "driver" || kind == "driver-multipart" {
        publish_with_driver(kind, count, hwm);
    } else {
        let mut checked = Checked::new(BEFORE, sink());
        let (size, fill) = match kind {
            "c-checked" => (checked.size(), Some(Checked::fill as Fill)),
            _ => (PAYLOAD, None),
        };
        // SAFETY: plain numbers, functions that live as long as the program, and what `fill` asks for.
        let code = unsafe {
            let (count, size, user) = (count.into(), size as c_int, checked.user());
            plain_publish(count, size, hwm, tell_address, pair::go, fill, user)
        };
        assert_eq!(code, 0, "the plain program failed");
    }
    pair::tell_cpu();
}

fn subscribe(kind: &str, count: u32, hwm: i32, address: &str) {
    let seconds = if kind == "driver" || kind == "driver-multipart" {
        subscribe_with_driver(kind, count, hwm, address)
    } else {
        report("ready");
        let address = CString::new(address).expect("no zero bytes");
        let mut checked = Checked::new(BEFORE, sink());
        let check = (kind == "c-checked").then_some(Checked::check as Check);
        // SAFETY: a NUL-terminated string, numbers, functions, and what `check` asks for.
        unsafe {
            let (count, user) = (count.into(), checked.user());
            plain_subscribe(address.as_ptr(), count, hwm, pair::mark_start, check, user)
        }
    };
    pair::tell_time(seconds);
}

fn open(kind: &str, hwm: i32) -> Box<dyn Fleet> {
    let framing = if kind == "driver-multipart" {
        "multipart"
    } else {
        "single-frame"
    };
    let settings = settings(serde_json::json!(
        {"queue-limit": hwm, "native": {"zeromq": {"framing": framing}}}));
    let config = FleetConfig {
        max_payload: PAYLOAD,
        clients: 1,
        ..config(Target::default(), settings)
    };
    ZeromqDriver.open(config).expect("opens")
}

fn publish_with_driver(kind: &str, count: u32, hwm: i32) {
    let mut fleet = open(kind, hwm);
    let mut sink = sink();
    let spec = ClientSpec {
        publishes: true,
        ..ClientSpec::default()
    };
    let client = fleet.connect(&spec).expect("connects");
    while sink.address.is_none() {
        poll(&mut *fleet, &mut sink, 1_000_000);
    }
    report(sink.address.as_deref().expect("just seen"));
    let topic = fleet.advertise(client, TOPIC).expect("advertises");
    let filler = Filler::new(PAYLOAD);
    pair::wait_for_go();
    poll(&mut *fleet, &mut sink, 0); // Takes the subscription.
    pair::mark_start();
    pair::publish(&mut *fleet, client, topic, &filler, count);
}

fn subscribe_with_driver(kind: &str, count: u32, hwm: i32, address: &str) -> f64 {
    let mut fleet = open(kind, hwm);
    let mut sink = sink();
    let spec = ClientSpec {
        subscribes: true,
        peers: vec![address.to_owned()],
        ..ClientSpec::default()
    };
    let client = fleet.connect(&spec).expect("connects");
    while !sink.connected {
        poll(&mut *fleet, &mut sink, 1_000_000);
    }
    let everything = Subscription::matching("#");
    fleet.subscribe(client, &everything).expect("subscribes");
    poll(&mut *fleet, &mut sink, 0);
    report("ready");
    sink.receive(&mut *fleet, count)
}

fn sink() -> Sink<impl Fn(&Header, &[u8])> {
    let filler = Filler::new(PAYLOAD);
    Sink::new(true, move |header, payload| {
        let body = &payload[16..];
        assert!(filler.matches(header.stream, header.sequence, body));
    })
}
