//! Servers that follow a script.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use pubgauge_mqtt_codec::{
    Ack, ConnAck, MAX_PACKET_LEN, Packet, PropertiesBuf, Property, Version, decode,
};

use super::sequence;

/// The server's side of one connection.
pub struct Peer {
    pub stream: TcpStream,
    pub version: Version,
    pub buf: Vec<u8>,
}

impl Peer {
    pub fn accept(listener: &TcpListener, version: Version) -> Peer {
        let (stream, _) = listener.accept().unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        Peer {
            stream,
            version,
            buf: Vec::new(),
        }
    }

    /// Hands the next packet to `look`; panics at the end of the stream.
    #[track_caller]
    pub fn next<T>(&mut self, look: impl FnOnce(Packet<'_>) -> T) -> T {
        self.try_next(look)
            .expect("the client closed the connection")
    }

    pub fn try_next<T>(&mut self, look: impl FnOnce(Packet<'_>) -> T) -> Option<T> {
        loop {
            let decoded =
                decode(&self.buf, self.version, MAX_PACKET_LEN).expect("the client sends packets");
            if let Some((packet, len)) = decoded {
                let result = look(packet);
                self.buf.drain(..len);
                return Some(result);
            }
            let mut chunk = [0; 65_536];
            match self
                .stream
                .read(&mut chunk)
                .expect("the client sends something")
            {
                0 => return None,
                n => self.buf.extend_from_slice(&chunk[..n]),
            }
        }
    }

    pub fn send(&mut self, packet: Packet<'_>) {
        let mut bytes = Vec::new();
        packet.encode(self.version, &mut bytes).unwrap();
        self.raw(&bytes);
    }

    pub fn raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Reads the CONNECT and accepts it.
    pub fn welcome(&mut self, session_present: bool, properties: &[Property<'_>]) {
        self.next(|p| assert!(matches!(p, Packet::Connect(_)), "{p:?}"));
        let mut buf = PropertiesBuf::default();
        for p in properties {
            buf.push(*p).unwrap();
        }
        let properties = buf.as_properties();
        self.send(Packet::ConnAck(ConnAck {
            session_present,
            properties,
            ..ConnAck::default()
        }));
    }

    #[track_caller]
    pub fn publish(&mut self) -> (u16, u64, bool) {
        self.next(|p| match p {
            Packet::Publish(p) => (p.packet_id, sequence(p.payload), p.dup),
            other => panic!("not a PUBLISH: {other:?}"),
        })
    }

    /// Waits until the client has closed its side.
    pub fn until_closed(mut self) {
        while self.try_next(|_| ()).is_some() {}
    }
}

pub fn ack(packet_id: u16) -> Ack<'static> {
    Ack {
        packet_id,
        ..Ack::default()
    }
}
