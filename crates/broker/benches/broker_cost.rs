//! Cost of a message for the broker, beside mosquitto in the same run: QoS 0,
//! 64 bytes, one publisher, one subscriber, with a window of messages under way.
//!
//! `cargo bench -p pubgauge-broker` prints millions of messages per CPU-second of
//! the broker process; it requires mosquitto. The ratio is what can be trusted on
//! a busy machine. Give a number of seconds for each figure to change it.

use std::any::Any;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pubgauge_broker::{Options, run};
use pubgauge_mqtt_codec::{
    Connect, FiltersBuf, Packet, PropertiesBuf, Property, Publish, QoS, Subscribe,
    SubscribeOptions, Version,
};
use pubgauge_testing::bench::process::Process;
use pubgauge_testing::bench::{PAYLOAD, arguments, cpu, mqtt_bytes, parse, time};
use pubgauge_testing::mosquitto::Mosquitto;

/// Makes this program the broker under measurement.
const SERVE: &str = "--serve-as-broker";

fn main() {
    if arguments().first().is_some_and(|a| a == SERVE) {
        let ready = |address: SocketAddr| println!("{}", address.port());
        run(Options::default(), ready, &AtomicBool::new(false)).expect("the broker runs");
        return;
    }
    let time = time(1.0);
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

/// Messages, and how they are subscribed to.
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
            payload: &[b'x'; PAYLOAD],
            properties: properties.as_properties(),
            ..Publish::default()
        };
        mqtt_bytes(version, Packet::Publish(publish))
    }
}

/// A broker in a process of its own.
struct Broker {
    pid: u32,
    address: SocketAddr,
    /// Ends it when it is dropped.
    _process: Box<dyn Any>,
}

impl Broker {
    fn ours() -> Broker {
        let mut process = Process::start(&[SERVE]);
        let port = parse(&process.line());
        Broker::at(process.id(), port, Box::new(process))
    }

    fn mosquitto() -> Broker {
        let mosquitto = Mosquitto::start_with("allow_anonymous true\nlog_type none");
        Broker::at(mosquitto.pid() as u32, mosquitto.port, Box::new(mosquitto))
    }

    fn at(pid: u32, port: u16, process: Box<dyn Any>) -> Broker {
        Broker {
            pid,
            address: (Ipv4Addr::LOCALHOST, port).into(),
            _process: process,
        }
    }

    /// CPU time of the process so far; both brokers have one thread that counts.
    fn cpu(&self) -> Duration {
        cpu::of_first_thread(self.pid)
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
        let connect = mqtt_bytes(version, Packet::Connect(connect));
        stream.write_all(&connect).expect("written");
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
        let subscribe = mqtt_bytes(case.subscriber, Packet::Subscribe(subscribe));
        to.write_all(&subscribe).expect("written");
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

/// Reads one short packet.
fn read_packet(stream: &mut TcpStream) {
    let mut head = [0; 2];
    stream.read_exact(&mut head).expect("an answer");
    stream
        .read_exact(&mut vec![0; usize::from(head[1])])
        .expect("an answer");
}
