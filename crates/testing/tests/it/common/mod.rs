//! Both ends of connections through a proxy, and what must hold of every record.
#![allow(dead_code)] // Each test program uses its share.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use pubgauge_mqtt_codec::{
    Ack, ConnAck, Connect, MAX_PACKET_LEN, Packet, Publish, QoS, Version, decode, packet_len,
};
use pubgauge_testing::proxy::{Direction, Passed, Proxy, Traffic};

/// A server that a test plays itself.
pub struct Server(TcpListener);

impl Server {
    pub fn new() -> Server {
        Server(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    pub fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    /// A connection through the proxy: the client's end and the server's.
    pub fn connect(&self, proxy: &Proxy) -> (TcpStream, TcpStream) {
        let client = TcpStream::connect(proxy.address()).unwrap();
        let (server, _) = self.0.accept().unwrap();
        for end in [&client, &server] {
            end.set_nodelay(true).unwrap();
            // A test that waits in vain fails.
            end.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        }
        (client, server)
    }

    /// The same with an MQTT client that was taken.
    pub fn connect_mqtt(&self, proxy: &Proxy, client_id: &str, version: Version) -> (Mqtt, Mqtt) {
        let (client, server) = self.connect(proxy);
        let (mut client, mut server) = (Mqtt::new(client, version), Mqtt::new(server, version));
        client.send(Packet::Connect(Connect {
            version,
            clean_start: true,
            client_id,
            ..Connect::default()
        }));
        server.receive(|packet| assert!(matches!(packet, Packet::Connect(_)), "{packet:?}"));
        server.send(Packet::ConnAck(ConnAck::default()));
        client.receive(|packet| assert!(matches!(packet, Packet::ConnAck(_)), "{packet:?}"));
        (client, server)
    }
}

/// An MQTT peer that says what it is told.
pub struct Mqtt {
    pub stream: TcpStream,
    version: Version,
    read: Vec<u8>,
}

/// A PUBLISH as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    pub number: u64,
    pub dup: bool,
    pub packet_id: u16,
}

impl Mqtt {
    pub fn new(stream: TcpStream, version: Version) -> Mqtt {
        Mqtt {
            stream,
            version,
            read: Vec::new(),
        }
    }

    pub fn encode(&self, packet: Packet<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        packet.encode(self.version, &mut bytes).unwrap();
        bytes
    }

    pub fn send(&mut self, packet: Packet<'_>) {
        self.stream.write_all(&self.encode(packet)).unwrap();
    }

    pub fn publish(&mut self, number: u64, qos: QoS, packet_id: u16) {
        self.send(Packet::Publish(Publish {
            topic: "a/b",
            qos,
            packet_id,
            payload: &number.to_le_bytes(),
            ..Publish::default()
        }));
    }

    pub fn acknowledge(&mut self, packet_id: u16) {
        self.send(Packet::PubAck(Ack {
            packet_id,
            ..Ack::default()
        }));
    }

    /// Waits for the next packet.
    pub fn receive<R>(&mut self, look: impl FnOnce(Packet<'_>) -> R) -> R {
        loop {
            let len = packet_len(&self.read, MAX_PACKET_LEN).unwrap();
            if let Some(len) = len.filter(|len| *len <= self.read.len()) {
                let packet = decode(&self.read, self.version, MAX_PACKET_LEN);
                let result = look(packet.unwrap().unwrap().0);
                self.read.drain(..len);
                return result;
            }
            let mut chunk = [0; 4096];
            let n = self.stream.read(&mut chunk).unwrap();
            assert!(n > 0, "the connection has ended");
            self.read.extend_from_slice(&chunk[..n]);
        }
    }

    /// Waits for a published number.
    pub fn publication(&mut self) -> Came {
        self.receive(|packet| match packet {
            Packet::Publish(publish) => Came {
                number: u64::from_le_bytes(publish.payload.try_into().unwrap()),
                dup: publish.dup,
                packet_id: publish.packet_id,
            },
            other => panic!("{other:?}"),
        })
    }

    /// Waits for this acknowledgement.
    #[track_caller]
    pub fn acknowledged(&mut self, packet_id: u16) {
        self.receive(|packet| match packet {
            Packet::PubAck(ack) => assert_eq!(ack.packet_id, packet_id),
            other => panic!("{other:?}"),
        });
    }
}

/// What passed one way, in its order.
pub fn way(trace: &[Passed], direction: Direction) -> Vec<Passed> {
    let same = |passed: &&Passed| passed.direction == direction;
    trace.iter().filter(same).copied().collect()
}

/// Nothing passed before it was due, nor before it came.
#[track_caller]
pub fn never_early(trace: &[Passed]) {
    assert!(!trace.is_empty(), "nothing has passed");
    for passed in trace {
        assert!(passed.passed_ns >= passed.due_ns, "{passed:?}");
        assert!(passed.due_ns >= passed.entered_ns, "{passed:?}");
    }
}

/// All that came went somewhere.
#[track_caller]
pub fn adds_up(traffic: &Traffic) {
    let sources = traffic.received.publishes + traffic.duplicated;
    let ends = [traffic.passed, traffic.waiting, traffic.discarded];
    let ends: u64 = ends.iter().map(|amount| amount.publishes).sum();
    assert_eq!(sources, traffic.dropped + ends, "{traffic:?}");
    let slots: u64 = traffic.slots.iter().map(|s| s.passed.bytes).sum();
    assert_eq!(slots, traffic.passed.bytes);
}

/// What was passed is `units` in the order of passing. By the schedule of a busy period, the sum of
/// those before each (and of itself, if `whole`) is due at start + sum/rate to the nanosecond; and at
/// some moment of the last quarter the proxy was within 0.5 % of the schedule, so that it neither
/// falls behind nor runs ahead, whatever else the machine does.
///
/// Where `busy_periods` are more than one, the link may have been idle before what came later than the
/// schedule: a machine that does not run the sender, or the reader, for a while.
#[track_caller]
pub fn on_schedule(
    trace: &[Passed],
    per_s: f64,
    whole: bool,
    busy_periods: usize,
    units: impl Fn(&Passed) -> u64,
) {
    never_early(trace);
    let at = |sum: u64| (sum as f64 * 1e9 / per_s).ceil() as u64;
    let own = |passed: &Passed| if whole { units(passed) } else { 0 };
    let mut start = trace[0].due_ns - at(own(&trace[0]));
    let (mut sum, mut all, mut periods) = (0, 0, 1);
    let mut behind = Vec::new();
    for passed in trace {
        let idle = passed.entered_ns > start + at(sum);
        if idle && passed.due_ns == passed.entered_ns + at(own(passed)) && periods < busy_periods {
            (start, sum) = (passed.entered_ns, 0);
            periods += 1;
        }
        let due = start + at(sum + own(passed));
        sum += units(passed);
        all += units(passed);
        assert_eq!(passed.due_ns, due.max(passed.entered_ns), "{passed:?}");
        behind.push(passed.passed_ns - due);
    }
    let quarter = &behind[behind.len() * 3 / 4..];
    let least = *quarter.iter().min().unwrap();
    let allowed = at(all) / 200;
    assert!(least <= allowed, "{least} ns behind, allowed {allowed} ns");
}

/// Waits for it, 20 s at most.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..4000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("waited in vain for: {what}");
}
