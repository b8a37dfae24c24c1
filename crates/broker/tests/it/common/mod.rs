//! A broker on a thread, and a client that speaks packet by packet.
#![allow(dead_code)] // Each test file uses its part.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use pubgauge_broker::{Counters, Options, run};
use pubgauge_mqtt_codec::{
    Ack, Connect, FiltersBuf, MAX_PACKET_LEN, Packet, PropertiesBuf, Property, PropertyId, Publish,
    QoS, Subscribe, SubscribeOptions, TopicFiltersBuf, Unsubscribe, Version, decode,
};
use pubgauge_testing::Background;

/// A running broker; dropping it stops it.
pub type Running = Background<SocketAddr, Counters>;

pub fn start(options: Options) -> Running {
    Background::start(move |ready, stop| run(options, ready, stop).unwrap())
}

/// A packet, owned, for looking at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Got {
    pub name: &'static str,
    pub topic: String,
    pub payload: Vec<u8>,
    pub qos: u8,
    pub retain: bool,
    pub dup: bool,
    pub packet_id: u16,
    /// Reason or return code.
    pub reason: u8,
    pub codes: Vec<u8>,
    pub session_present: bool,
    pub user: Vec<(String, String)>,
    pub ids: Vec<u32>,
    pub expiry_s: Option<u32>,
    pub texts: Vec<(PropertyId, String)>,
    pub numbers: Vec<(PropertyId, u32)>,
}

impl Got {
    fn of(packet: &Packet<'_>) -> Got {
        let mut got = Got {
            name: packet.packet_type().name(),
            topic: String::new(),
            payload: Vec::new(),
            qos: 0,
            retain: false,
            dup: false,
            packet_id: 0,
            reason: 0,
            codes: Vec::new(),
            session_present: false,
            user: Vec::new(),
            ids: Vec::new(),
            expiry_s: None,
            texts: Vec::new(),
            numbers: Vec::new(),
        };
        let properties = match packet {
            Packet::ConnAck(p) => {
                got.session_present = p.session_present;
                got.reason = p.code.0;
                p.properties
            }
            Packet::Publish(p) => {
                got.topic = p.topic.to_owned();
                got.payload = p.payload.to_vec();
                (got.qos, got.retain, got.dup) = (p.qos as u8, p.retain, p.dup);
                got.packet_id = p.packet_id;
                p.properties
            }
            Packet::PubAck(p) | Packet::PubRec(p) | Packet::PubRel(p) | Packet::PubComp(p) => {
                (got.packet_id, got.reason) = (p.packet_id, p.reason.0);
                p.properties
            }
            Packet::SubAck(p) => {
                (got.packet_id, got.codes) = (p.packet_id, p.codes.to_vec());
                p.properties
            }
            Packet::UnsubAck(p) => {
                (got.packet_id, got.codes) = (p.packet_id, p.codes.to_vec());
                p.properties
            }
            Packet::Disconnect(p) => {
                got.reason = p.reason.0;
                p.properties
            }
            _ => return got,
        };
        for (k, v) in properties.user_properties() {
            got.user.push((k.to_owned(), v.to_owned()));
        }
        for property in properties {
            match property {
                Property::SubscriptionIdentifier(id) => got.ids.push(id),
                Property::MessageExpiryInterval(s) => got.expiry_s = Some(s),
                other => {
                    let id = other.id();
                    got.texts
                        .extend(properties.text(id).map(|t| (id, t.to_owned())));
                    got.numbers.extend(properties.number(id).map(|n| (id, n)));
                }
            }
        }
        got
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.payload).unwrap()
    }

    pub fn number(&self, id: PropertyId) -> Option<u32> {
        self.numbers.iter().find(|(i, _)| *i == id).map(|(_, n)| *n)
    }
}

/// A client without any cleverness.
pub struct Client {
    pub stream: TcpStream,
    pub version: Version,
    buf: Vec<u8>,
}

/// How long an answer may take, busy machine included.
const PATIENCE: Duration = Duration::from_secs(60);

impl Client {
    /// A TCP connection, nothing sent.
    pub fn raw(broker: &Running, version: Version) -> Client {
        let stream = TcpStream::connect(broker.address).unwrap();
        stream.set_nodelay(true).unwrap();
        Client {
            stream,
            version,
            buf: Vec::new(),
        }
    }

    /// Connected with a clean session.
    pub fn new(broker: &Running, version: Version, id: &str) -> Client {
        let (client, connack) = Client::connect(broker, version, id, |_| {});
        assert_eq!((connack.name, connack.reason), ("CONNACK", 0));
        client
    }

    /// Connected as `change` says; with the CONNACK.
    pub fn connect(
        broker: &Running,
        version: Version,
        id: &str,
        change: impl FnOnce(&mut Connect<'_>),
    ) -> (Client, Got) {
        let mut client = Client::raw(broker, version);
        let mut connect = Connect {
            version,
            clean_start: true,
            client_id: id,
            ..Connect::default()
        };
        change(&mut connect);
        client.send(&Packet::Connect(connect));
        let connack = client.next();
        assert_eq!(connack.name, "CONNACK");
        (client, connack)
    }

    pub fn send(&mut self, packet: &Packet<'_>) {
        let mut wire = Vec::new();
        packet.encode(self.version, &mut wire).unwrap();
        self.send_bytes(&wire);
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub fn publish(&mut self, topic: &str, payload: &str, qos: QoS, packet_id: u16, retain: bool) {
        let payload = payload.as_bytes();
        let publish = Publish {
            topic,
            payload,
            qos,
            packet_id,
            retain,
            ..Publish::default()
        };
        self.send(&Packet::Publish(publish));
    }

    /// Publishes at QoS 0 with properties.
    pub fn publish_with(&mut self, topic: &str, payload: &str, properties: &[Property<'_>]) {
        let mut buf = PropertiesBuf::default();
        for property in properties {
            buf.push(*property).unwrap();
        }
        let (payload, properties) = (payload.as_bytes(), buf.as_properties());
        let publish = Publish {
            topic,
            payload,
            properties,
            ..Publish::default()
        };
        self.send(&Packet::Publish(publish));
    }

    pub fn subscribe(&mut self, filter: &str, qos: QoS) -> Got {
        self.subscribe_with(
            filter,
            SubscribeOptions {
                qos,
                ..Default::default()
            },
            None,
        )
    }

    pub fn subscribe_with(
        &mut self,
        filter: &str,
        options: SubscribeOptions,
        id: Option<u32>,
    ) -> Got {
        let mut filters = FiltersBuf::default();
        filters.push(filter, options).unwrap();
        let mut properties = PropertiesBuf::default();
        if let Some(id) = id {
            properties
                .push(Property::SubscriptionIdentifier(id))
                .unwrap();
        }
        self.send(&Packet::Subscribe(Subscribe {
            packet_id: 7,
            filters: filters.as_filters(),
            properties: properties.as_properties(),
        }));
        let suback = self.next();
        assert_eq!((suback.name, suback.packet_id), ("SUBACK", 7));
        suback
    }

    pub fn unsubscribe(&mut self, filter: &str) -> Got {
        let mut filters = TopicFiltersBuf::default();
        filters.push(filter).unwrap();
        let filters = filters.as_filters();
        self.send(&Packet::Unsubscribe(Unsubscribe {
            packet_id: 8,
            filters,
            ..Unsubscribe::default()
        }));
        let unsuback = self.next();
        assert_eq!((unsuback.name, unsuback.packet_id), ("UNSUBACK", 8));
        unsuback
    }

    /// The next packet; fails if the connection ends first or it takes too long.
    pub fn next(&mut self) -> Got {
        self.read(PATIENCE)
            .expect("a packet, not the connection's end")
    }

    /// The next packet, which must be a PUBLISH; acknowledged in full.
    pub fn message(&mut self) -> Got {
        let got = self.next();
        assert_eq!(got.name, "PUBLISH", "{got:?}");
        let ack = Ack {
            packet_id: got.packet_id,
            ..Ack::default()
        };
        match got.qos {
            1 => self.send(&Packet::PubAck(ack)),
            2 => {
                self.send(&Packet::PubRec(ack));
                let pubrel = self.next();
                assert_eq!((pubrel.name, pubrel.packet_id), ("PUBREL", got.packet_id));
                self.send(&Packet::PubComp(ack));
            }
            _ => {}
        }
        got
    }

    pub fn ack(&mut self, packet_id: u16, of: impl FnOnce(Ack<'static>) -> Packet<'static>) {
        self.send(&of(Ack {
            packet_id,
            ..Ack::default()
        }));
    }

    /// Waits until the broker has dealt with all that was sent, and asserts that
    /// nothing else was on its way here.
    pub fn quiet(&mut self) {
        self.send(&Packet::PingReq);
        let got = self.next();
        assert_eq!(got.name, "PINGRESP", "{got:?}");
    }

    /// Asserts that the connection ends, after one last packet if there is one.
    pub fn ends(&mut self) -> Option<Got> {
        let last = self.read(PATIENCE)?;
        assert_eq!(self.read(PATIENCE), None);
        Some(last)
    }

    /// The next packet, or `None` when the connection has ended.
    pub fn read(&mut self, patience: Duration) -> Option<Got> {
        let until = Instant::now() + patience;
        loop {
            if let Some((packet, len)) =
                decode(&self.buf, self.version, MAX_PACKET_LEN).expect("valid packets")
            {
                let got = Got::of(&packet);
                self.buf.drain(..len);
                return Some(got);
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "nothing came; {} bytes in hand",
                self.buf.len()
            );
            self.stream.set_read_timeout(Some(left)).unwrap();
            let mut chunk = [0; 65_536];
            match self.stream.read(&mut chunk) {
                Ok(0) => return None,
                Ok(n) => self.buf.extend_from_slice(&chunk[..n]),
                Err(e) if e.kind() == ErrorKind::ConnectionReset => return None,
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(e) => panic!("{e}"),
            }
        }
    }
}

/// Properties, to be borrowed.
pub fn properties(list: &[Property<'_>]) -> PropertiesBuf {
    let mut buf = PropertiesBuf::default();
    for property in list {
        buf.push(*property).unwrap();
    }
    buf
}

/// Publishes and goes through the acknowledgements; the reason code of the
/// first.
pub fn publish_fully(
    client: &mut Client,
    topic: &str,
    payload: &str,
    qos: QoS,
    retain: bool,
) -> u8 {
    let id = if qos == QoS::AtMostOnce { 0 } else { 99 };
    client.publish(topic, payload, qos, id, retain);
    match qos {
        QoS::AtMostOnce => 0,
        QoS::AtLeastOnce => {
            let ack = client.next();
            assert_eq!((ack.name, ack.packet_id), ("PUBACK", 99));
            ack.reason
        }
        QoS::ExactlyOnce => {
            let ack = client.next();
            assert_eq!((ack.name, ack.packet_id), ("PUBREC", 99));
            client.ack(99, Packet::PubRel);
            let comp = client.next();
            assert_eq!((comp.name, comp.packet_id, comp.reason), ("PUBCOMP", 99, 0));
            ack.reason
        }
    }
}
