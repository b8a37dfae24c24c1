//! What a message costs the broker, beside mosquitto in the same run: QoS 0,
//! 64 bytes, one publisher, one subscriber, with a window of messages under way.
//!
//! `cargo bench -p pubgauge-broker` prints millions of messages per CPU-second of
//! the broker process; it requires mosquitto. The ratio is what can be trusted on
//! a busy machine. Give a number of seconds for each figure to change it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pubgauge_broker::{Options, run};
use pubgauge_mqtt_codec::{
    Connect, FiltersBuf, Packet, PropertiesBuf, Property, Publish, QoS, Subscribe,
    SubscribeOptions, Version,
};

/// Makes this program the broker under measurement.
const SERVE: &str = "--serve-as-broker";

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.get(1).is_some_and(|a| a == SERVE) {
        let ready = |address: SocketAddr| println!("{}", address.port());
        run(Options::default(), ready, &AtomicBool::new(false)).expect("the broker runs");
        return;
    }
    let seconds = args
        .iter()
        .find_map(|a| a.parse::<f64>().ok())
        .unwrap_or(1.0);
    let time = Duration::from_secs_f64(seconds);
    println!("messages per CPU-second of the broker, QoS 0, 64 B, 1-1");
    println!(
        "{:<34} {:>12} {:>12} {:>8}",
        "", "reference", "mosquitto", "ratio"
    );
    let (ours, theirs) = (Broker::ours(), Broker::mosquitto());
    for window in [1, 100, 1000] {
        for case in [Case::plain(Version::V311), Case::plain(Version::V5)] {
            compare(&ours, &theirs, &case, window, time);
        }
    }
    for case in Case::features() {
        compare(&ours, &theirs, &case, 1000, time);
    }
}

fn compare(ours: &Broker, theirs: &Broker, case: &Case, window: usize, time: Duration) {
    let (a, b) = (
        ours.measure(case, window, time),
        theirs.measure(case, window, time),
    );
    let name = format!("{}, window {window}", case.name);
    println!(
        "{name:<34} {:>10.3} M {:>10.3} M {:>8.1}",
        a / 1e6,
        b / 1e6,
        a / b
    );
}

/// What is sent, and how it is subscribed to.
struct Case {
    name: &'static str,
    publisher: Version,
    subscriber: Version,
    filter: &'static str,
    topics: usize,
    user_property: bool,
}

impl Case {
    fn plain(version: Version) -> Case {
        let name = if version == Version::V5 {
            "MQTT 5"
        } else {
            "MQTT 3.1.1"
        };
        let (publisher, subscriber) = (version, version);
        Case {
            name,
            publisher,
            subscriber,
            filter: "bench/+",
            topics: 1,
            user_property: false,
        }
    }

    fn features() -> [Case; 5] {
        let v5 = || Case::plain(Version::V5);
        [
            Case {
                name: "8 topics in turn",
                topics: 8,
                ..v5()
            },
            Case {
                name: "user property",
                user_property: true,
                ..v5()
            },
            Case {
                name: "5 to 3.1.1",
                subscriber: Version::V311,
                ..v5()
            },
            Case {
                name: "shared subscription",
                filter: "$share/g/bench/+",
                ..v5()
            },
            Case {
                name: "wildcard #",
                filter: "bench/#",
                ..v5()
            },
        ]
    }

    fn packet(&self, topic: usize, version: Version) -> Vec<u8> {
        let mut properties = PropertiesBuf::default();
        if self.user_property && version == Version::V5 {
            properties
                .push(Property::UserProperty(("key", "value")))
                .expect("short enough");
        }
        let topic = format!("bench/{topic}");
        let publish = Publish {
            topic: &topic,
            payload: &[b'x'; 64],
            properties: properties.as_properties(),
            ..Publish::default()
        };
        let mut out = Vec::new();
        Packet::Publish(publish)
            .encode(version, &mut out)
            .expect("a valid packet");
        out
    }
}

/// A broker in a process of its own, killed when dropped.
struct Broker {
    child: Child,
    address: SocketAddr,
}

impl Broker {
    fn ours() -> Broker {
        let program = std::env::current_exe().expect("this program has a path");
        let mut child = Command::new(program)
            .arg(SERVE)
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program runs");
        let mut line = String::new();
        let mut stdout = std::io::BufReader::new(child.stdout.take().expect("it is piped"));
        std::io::BufRead::read_line(&mut stdout, &mut line).expect("it says its port");
        let port: u16 = line.trim().parse().expect("a port");
        Broker {
            child,
            address: ([127, 0, 0, 1], port).into(),
        }
    }

    fn mosquitto() -> Broker {
        // Free now; the time until mosquitto takes it is short.
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = free.local_addr().expect("it is bound");
        drop(free);
        let child = Command::new("mosquitto")
            .args(["-p", &address.port().to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("mosquitto runs; install the package mosquitto");
        let broker = Broker { child, address };
        let until = Instant::now() + Duration::from_secs(5);
        while TcpStream::connect(address).is_err() {
            assert!(
                Instant::now() < until,
                "mosquitto does not listen on {address}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        broker
    }

    /// CPU time of the process so far; both brokers have one thread that counts.
    fn cpu(&self) -> Duration {
        let path = format!("/proc/{}/schedstat", self.child.id());
        let text = std::fs::read_to_string(path).expect("the process runs");
        let ns = text
            .split(' ')
            .next()
            .and_then(|n| n.parse().ok())
            .expect("nanoseconds");
        Duration::from_nanos(ns)
    }

    fn connect(&self, version: Version, id: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).expect("the broker listens");
        stream.set_nodelay(true).expect("a TCP socket");
        let connect = Connect {
            version,
            clean_start: true,
            client_id: id,
            ..Connect::default()
        };
        let mut out = Vec::new();
        Packet::Connect(connect)
            .encode(version, &mut out)
            .expect("a valid packet");
        stream.write_all(&out).expect("written");
        read_packet(&mut stream);
        stream
    }

    /// Messages per CPU-second of the broker.
    fn measure(&self, case: &Case, window: usize, time: Duration) -> f64 {
        let mut to = self.connect(case.subscriber, "to");
        let mut filters = FiltersBuf::default();
        let options = SubscribeOptions {
            qos: QoS::AtMostOnce,
            ..SubscribeOptions::default()
        };
        filters.push(case.filter, options).expect("short enough");
        let subscribe = Subscribe {
            packet_id: 1,
            filters: filters.as_filters(),
            ..Subscribe::default()
        };
        let mut out = Vec::new();
        Packet::Subscribe(subscribe)
            .encode(case.subscriber, &mut out)
            .expect("a valid packet");
        to.write_all(&out).expect("written");
        read_packet(&mut to);

        let mut from = self.connect(case.publisher, "from");
        let (mut batch, mut expected) = (Vec::new(), 0);
        for i in 0..window {
            batch.extend(case.packet(i % case.topics, case.publisher));
            expected += case.packet(i % case.topics, case.subscriber).len();
        }
        let mut buf = vec![0; expected];
        let mut round = || {
            from.write_all(&batch).expect("written");
            to.read_exact(&mut buf).expect("delivered");
        };
        for _ in 0..20 {
            round();
        }
        let (before, started) = (self.cpu(), Instant::now());
        let mut messages = 0;
        while started.elapsed() < time {
            round();
            messages += window;
        }
        messages as f64 / (self.cpu() - before).as_secs_f64()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads one short packet.
fn read_packet(stream: &mut TcpStream) {
    let mut head = [0; 2];
    stream.read_exact(&mut head).expect("an answer");
    stream
        .read_exact(&mut vec![0; usize::from(head[1])])
        .expect("an answer");
}
