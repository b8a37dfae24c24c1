//! What the proxy costs, and how exactly it keeps to its rules: MQTT 3.1.1, QoS 0, 64 bytes of
//! payload, over the loopback, beside the same without a proxy.
//!
//! `cargo bench -p pubgauge-testing --bench proxy_cost`. Everything runs in one process on whatever
//! processors there are; real-time priority must be allowed. Give a number of seconds for each figure to change it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use pubgauge_mqtt_codec::{Connect, Packet, Publish, Version};
use pubgauge_testing::bench::{PAYLOAD, cpu, mqtt_bytes, quantile, time};
use pubgauge_testing::proxy::{Direction::*, Duplicate, Passed, Proxy, ProxyBuilder, Rate};

/// Sets rules.
type Build = fn(ProxyBuilder) -> ProxyBuilder;

fn main() {
    let time = time(2.0);
    println!("flat out, one way        messages/s    proxy's processor time per message");
    let direct = flat_out(None, time);
    let cases: [(&str, Build); 4] = [
        ("no rules", |b| b),
        // As much as the buffer of 1 MiB holds in that time, at most.
        ("delay 5 ms", |b| {
            b.delay(ToServer, Duration::from_millis(5))
        }),
        ("rate 1e9 messages/s", |b| {
            b.rate(ToServer, Rate::MessagesPerS(1e9))
        }),
        ("every message twice", |b| {
            let share = 1.0;
            let late = Duration::ZERO;
            b.duplicate(ToServer, Duplicate { share, late })
        }),
    ];
    println!("{:<22} {:>9.2} M", "without a proxy", direct.0 / 1e6);
    for (name, rules) in cases {
        let (per_s, cpu_ns) = flat_out(Some(rules), time);
        println!("{name:<22} {:>9.2} M {cpu_ns:>12.0} ns", per_s / 1e6);
    }

    println!("\nround trip of one message, 1000/s    median        p99");
    let trips: [(&str, Option<Build>); 3] = [
        ("without a proxy", None),
        ("through it, both ways", Some(|b| b)),
        ("through it, real-time priority", Some(|b| b.realtime(10))),
    ];
    for (name, build) in trips {
        let [median, p99] = round_trips(build, time);
        println!("{name:<32} {median:>8.1} us {p99:>8.1} us");
    }

    let rate = |b: ProxyBuilder, per_s| b.rate(ToServer, Rate::MessagesPerS(per_s));
    let delay = |b: ProxyBuilder| b.delay(ToServer, Duration::from_millis(5));
    for (priority, build) in [
        ("ordinary priority", (|b| b) as Build),
        ("real-time priority", |b| b.realtime(10)),
    ] {
        println!("\nlater than due, {priority:<19} median      p99       max    processor time");
        for per_s in [1_000.0, 10_000.0, 50_000.0] {
            let name = format!("a queue, {per_s:.0} messages/s");
            lateness(&name, |b| rate(build(b), per_s), 1e9, per_s, time);
        }
        for per_s in [1_000.0, 10_000.0, 50_000.0] {
            let name = format!("delay 5 ms, {per_s:.0} messages/s");
            lateness(&name, |b| delay(build(b)), per_s, per_s, time);
        }
    }
}

/// A client and what plays the server, through a proxy if there are rules for one.
struct Pair {
    proxy: Option<Proxy>,
    client: TcpStream,
    server: TcpStream,
}

impl Pair {
    fn new(build: Option<&dyn Fn(ProxyBuilder) -> ProxyBuilder>) -> Pair {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address: SocketAddr = listener.local_addr().expect("it is bound");
        let proxy = build.map(|b| b(Proxy::to(address)).start().expect("the proxy starts"));
        let to = proxy.as_ref().map_or(address, Proxy::address);
        let mut client = TcpStream::connect(to).expect("it listens");
        let (mut server, _) = listener.accept().expect("a connection");
        for end in [&client, &server] {
            end.set_nodelay(true).expect("TCP_NODELAY");
        }
        let connect = wire(Packet::Connect(Connect {
            version: Version::V311,
            clean_start: true,
            client_id: "bench",
            ..Connect::default()
        }));
        client.write_all(&connect).expect("the CONNECT passes");
        server
            .read_exact(&mut vec![0; connect.len()])
            .expect("the CONNECT passes");
        Pair {
            proxy,
            client,
            server,
        }
    }
}

fn wire(packet: Packet<'_>) -> Vec<u8> {
    mqtt_bytes(Version::V311, packet)
}

/// Processor time of the proxy's thread so far; 0 if there is none.
fn proxys_cpu() -> Duration {
    cpu::of_thread_named("proxy")
}

fn publish() -> Vec<u8> {
    wire(Packet::Publish(Publish {
        topic: "bench/0",
        payload: &[b'x'; PAYLOAD],
        ..Publish::default()
    }))
}

/// Messages per second that come out at the server, and the proxy's nanoseconds for each.
fn flat_out(rules: Option<Build>, time: Duration) -> (f64, f64) {
    // A buffer, so that the sender gets no further ahead than on a socket.
    let built = rules.map(|rules| move |b: ProxyBuilder| rules(b.buffer(ToServer, 1 << 20)));
    let mut pair = Pair::new(built.as_ref().map(|b| b as &dyn Fn(_) -> _));
    let message = publish();
    let batch = message.repeat(500);
    let mut client = pair.client.try_clone().expect("a descriptor");
    let sender = std::thread::spawn(move || while client.write_all(&batch).is_ok() {});
    let mut chunk = vec![0; 256 << 10];
    let read_for = |server: &mut TcpStream, chunk: &mut [u8], time: Duration| {
        let (start, mut bytes) = (Instant::now(), 0);
        while start.elapsed() < time {
            bytes += server.read(chunk).expect("bytes");
        }
        (bytes as f64 / message.len() as f64, start.elapsed())
    };
    read_for(&mut pair.server, &mut chunk, time / 4);
    let cpu = proxys_cpu();
    let (messages, took) = read_for(&mut pair.server, &mut chunk, time);
    let cpu = proxys_cpu() - cpu;
    drop(pair);
    sender.join().expect("the sender ends");
    let cpu_ns = cpu.as_nanos() as f64;
    (messages / took.as_secs_f64(), cpu_ns / messages)
}

/// Median and 99th percentile in microseconds.
fn round_trips(build: Option<Build>, time: Duration) -> [f64; 2] {
    let mut pair = Pair::new(build.as_ref().map(|b| b as &dyn Fn(_) -> _));
    let message = publish();
    let len = message.len();
    let mut server = pair.server.try_clone().expect("a descriptor");
    let echo = std::thread::spawn(move || {
        let mut back = vec![0; len];
        while server.read_exact(&mut back).is_ok() {
            server.write_all(&back).expect("it goes back");
        }
    });
    let mut trips = Vec::new();
    let end = Instant::now() + 2 * time;
    while Instant::now() < end {
        let start = Instant::now();
        pair.client.write_all(&message).expect("it goes");
        pair.client
            .read_exact(&mut vec![0; len])
            .expect("it comes back");
        trips.push(start.elapsed().as_nanos() as f64);
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(pair);
    echo.join().expect("the echo ends");
    [0.5, 0.99].map(|q| quantile(&trips, q) / 1e3)
}

/// Prints how much later than due messages pass that are offered at one rate and pass at another.
fn lateness(
    name: &str,
    rules: impl Fn(ProxyBuilder) -> ProxyBuilder,
    offered_per_s: f64,
    passes_per_s: f64,
    time: Duration,
) {
    let build = |b| rules(b).traced();
    let mut pair = Pair::new(Some(&build));
    let proxy = pair.proxy.take().expect("there are rules");
    proxy.trace();
    let message = publish();
    let messages = (passes_per_s * time.as_secs_f64()) as usize;
    let mut client = pair.client.try_clone().expect("a descriptor");
    let cpu = proxys_cpu();
    let start = Instant::now();
    let sent = message.clone();
    let sender = std::thread::spawn(move || {
        for n in 0..messages {
            let due = Duration::from_secs_f64(n as f64 / offered_per_s);
            std::thread::sleep(due.saturating_sub(start.elapsed()));
            client.write_all(&sent).expect("it goes");
        }
    });
    pair.server
        .read_exact(&mut vec![0; message.len() * messages])
        .expect("all come");
    let took = start.elapsed();
    let cpu = proxys_cpu() - cpu;
    sender.join().expect("the sender ends");
    let late = |p: &Passed| (p.passed_ns - p.due_ns) as f64 / 1e3;
    let late: Vec<f64> = proxy.trace().iter().map(late).collect();
    let [median, p99, max] = [0.5, 0.99, 1.0].map(|q| quantile(&late, q));
    println!(
        "{name:<33} {median:>7.1} us {p99:>5.0} us {max:>6.0} us {:>8.1} % of one",
        cpu.as_nanos() as f64 / took.as_nanos() as f64 * 100.0
    );
}
