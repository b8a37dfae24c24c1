//! An MQTT 3.1.1 client made of bytes: it shows what the seam does not, above all with which QoS
//! and flags a message is delivered.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A message as it was delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Got {
    pub qos: u8,
    pub retained: bool,
    pub topic: String,
    pub payload: String,
}

pub struct Raw {
    stream: TcpStream,
    next_id: u16,
    waiting: Vec<Got>,
}

/// Longest wait for an answer that must come.
const PATIENCE: Duration = Duration::from_secs(60);

impl Raw {
    /// Connects; tells whether the server still had a session.
    pub fn connect(port: u16, name: &str, clean: bool) -> (Raw, bool) {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut raw = Raw {
            stream,
            next_id: 0,
            waiting: Vec::new(),
        };
        let mut body = b"\x00\x04MQTT\x04".to_vec();
        body.extend([u8::from(clean) << 1, 0, 60]);
        put_text(&mut body, name);
        raw.send(0x10, &body);
        let (_, body) = raw.until(2);
        assert_eq!(body[1], 0, "the login was refused");
        (raw, body[0] == 1)
    }

    /// Subscribes and returns the QoS that was granted, or 0x80.
    pub fn subscribe(&mut self, filter: &str, qos: u8) -> u8 {
        let mut body = self.id().to_be_bytes().to_vec();
        put_text(&mut body, filter);
        body.push(qos);
        self.send(0x82, &body);
        self.until(9).1[2]
    }

    /// Publishes and waits for the end of the handshake.
    pub fn publish(&mut self, topic: &str, payload: &str, qos: u8, retain: bool) {
        let mut body = Vec::new();
        put_text(&mut body, topic);
        let id = self.id().to_be_bytes();
        if qos > 0 {
            body.extend(id);
        }
        body.extend(payload.as_bytes());
        self.send(0x30 | qos << 1 | u8::from(retain), &body);
        match qos {
            0 => {}
            1 => _ = self.until(4),
            _ => {
                self.until(5);
                self.send(0x62, &id);
                self.until(7);
            }
        }
    }

    /// Sends a PUBLISH at QoS 2 and nothing more; with `again` it is marked as sent before.
    pub fn publish_2(&mut self, topic: &str, payload: &str, id: u16, again: bool) {
        let mut body = Vec::new();
        put_text(&mut body, topic);
        body.extend(id.to_be_bytes());
        body.extend(payload.as_bytes());
        self.send(0x34 | u8::from(again) << 3, &body);
    }

    /// Sends a packet that holds a packet identifier and nothing else.
    pub fn send_id(&mut self, first: u8, id: u16) {
        self.send(first, &id.to_be_bytes());
    }

    /// The next packet, unanswered: its first byte and its body.
    pub fn next(&mut self, wait: Duration) -> Option<(u8, Vec<u8>)> {
        self.packet(Instant::now() + wait)
    }

    /// Deliveries until there are `count` or `wait` is over.
    pub fn receive(&mut self, count: usize, wait: Duration) -> Vec<Got> {
        let deadline = Instant::now() + wait;
        while self.waiting.len() < count
            && let Some(packet) = self.packet(deadline)
        {
            self.take(packet);
        }
        std::mem::take(&mut self.waiting)
    }

    /// An orderly end.
    pub fn disconnect(mut self) {
        self.send(0xe0, &[]);
        // The server closes; until then it may not have seen the end.
        let _ = self.stream.set_read_timeout(Some(Duration::from_secs(2)));
        let _ = self.stream.read(&mut [0; 64]);
    }

    fn id(&mut self) -> u16 {
        self.next_id += 1;
        self.next_id
    }

    fn send(&mut self, first: u8, body: &[u8]) {
        let mut packet = vec![first];
        let mut rest = body.len();
        loop {
            let more = rest > 127;
            packet.push((rest % 128) as u8 | u8::from(more) << 7);
            rest /= 128;
            if !more {
                break;
            }
        }
        packet.extend(body);
        self.stream.write_all(&packet).unwrap();
    }

    /// Reads packets until one of this type; messages are kept.
    pub fn until(&mut self, kind: u8) -> (u8, Vec<u8>) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let packet = self
                .packet(deadline)
                .unwrap_or_else(|| panic!("no packet of type {kind} came"));
            if packet.0 >> 4 == kind {
                return packet;
            }
            self.take(packet);
        }
    }

    /// Takes in a message and answers it.
    fn take(&mut self, (first, body): (u8, Vec<u8>)) {
        match first >> 4 {
            3 => {
                let qos = first >> 1 & 3;
                let length = usize::from(u16::from_be_bytes([body[0], body[1]]));
                let topic = String::from_utf8(body[2..2 + length].to_vec()).unwrap();
                let mut rest = &body[2 + length..];
                if qos > 0 {
                    let id = [rest[0], rest[1]];
                    rest = &rest[2..];
                    self.send(if qos == 1 { 0x40 } else { 0x50 }, &id);
                }
                self.waiting.push(Got {
                    qos,
                    retained: first & 1 == 1,
                    topic,
                    payload: String::from_utf8_lossy(rest).into_owned(),
                });
            }
            6 => self.send(0x70, &body[..2]),
            other => panic!("a packet of type {other} was not asked for"),
        }
    }

    fn packet(&mut self, deadline: Instant) -> Option<(u8, Vec<u8>)> {
        let first = self.byte(deadline)?;
        let (mut length, mut shift) = (0, 0);
        loop {
            let byte = self.byte(Instant::now() + PATIENCE)?;
            length |= usize::from(byte & 127) << shift;
            shift += 7;
            if byte < 128 {
                break;
            }
        }
        let mut body = vec![0; length];
        self.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        self.stream.read_exact(&mut body).unwrap();
        Some((first, body))
    }

    fn byte(&mut self, deadline: Instant) -> Option<u8> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        self.stream.set_read_timeout(Some(left)).unwrap();
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(1) => Some(byte[0]),
            Ok(_) => panic!("the server closed the connection"),
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => None,
            Err(e) => panic!("{e}"),
        }
    }
}

fn put_text(body: &mut Vec<u8>, text: &str) {
    body.extend((text.len() as u16).to_be_bytes());
    body.extend(text.as_bytes());
}
