//! A server that sends one subscriber messages at a given rate, and knows when each was acknowledged.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use pubgauge_mqtt_codec::{
    ConnAck, MAX_PACKET_LEN, Packet, Properties, PublishTemplate, QoS, ReasonCode, SubAck, Version,
    decode,
};
use pubgauge_testing::bench::{mqtt_bytes, quantile};

/// Bytes of a payload.
pub const PAYLOAD: usize = 600;

/// Messages that are not acknowledged, at the most.
const IN_FLIGHT: usize = 60_000;

/// Longest sleep.
const TICK: Duration = Duration::from_micros(500);

/// The server, before somebody connects.
#[derive(Clone)]
pub struct Feed {
    listener: Arc<TcpListener>,
    subscribed: Arc<AtomicBool>,
}

/// Messages sent and acknowledged.
pub struct Fed {
    pub messages: u64,
    time: Duration,
    /// From when each was due until its acknowledgement came, ms; at QoS 1.
    latencies_ms: Vec<f64>,
}

impl Fed {
    pub fn per_s(&self) -> u64 {
        (self.messages as f64 / self.time.as_secs_f64()).round() as u64
    }

    pub fn quantile_ms(&self, q: f64) -> f64 {
        quantile(&self.latencies_ms, q)
    }
}

/// Text that LZ4 does not compress, in which payloads are slices.
fn pool() -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        LETTERS[(state >> 40) as usize % 64]
    };
    std::iter::repeat_with(next).take(8 << 20).collect()
}

impl Feed {
    pub fn listen() -> Feed {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        Feed {
            listener: Arc::new(listener),
            subscribed: Arc::default(),
        }
    }

    pub fn port(&self) -> u16 {
        self.listener.local_addr().expect("an address").port()
    }

    pub fn url(&self) -> String {
        format!("mqtt://127.0.0.1:{}", self.port())
    }

    pub fn until_subscribed(&self) {
        while !self.subscribed.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Serves the first that subscribes: so many messages a second for so long, and waits for their acknowledgements.
    pub fn serve(&self, qos: u8, rate: u32, time: Duration) -> Fed {
        loop {
            let (stream, _) = self.listener.accept().expect("somebody connects");
            // One that only looks whether the port is open says nothing.
            if let Some(mut client) = Client::greet(stream, qos) {
                self.subscribed.store(true, Relaxed);
                return client.feed(rate, time);
            }
        }
    }
}

struct Client {
    stream: TcpStream,
    version: Version,
    qos: QoS,
    input: Vec<u8>,
    out: Vec<u8>,
    /// When the message of each packet identifier was due, while it is not acknowledged.
    due: Vec<Option<Instant>>,
    in_flight: usize,
    latencies_ms: Vec<f64>,
    gone: bool,
}

impl Client {
    fn greet(mut stream: TcpStream, qos: u8) -> Option<Client> {
        stream.set_nodelay(true).expect("an option");
        let mut input = vec![0; 4096];
        let read = stream.read(&mut input).ok().filter(|read| *read > 0)?;
        input.truncate(read);
        // The protocol level stands behind the name "MQTT" (5.0 §3.1.2.2).
        let at = input.windows(4).position(|part| part == b"MQTT")?;
        let version = if input.get(at + 4) == Some(&5) {
            Version::V5
        } else {
            Version::V311
        };
        let mut client = Client {
            stream,
            version,
            qos: QoS::from_bits(qos)?,
            input,
            out: Vec::new(),
            due: vec![None; 1 << 16],
            in_flight: 0,
            latencies_ms: Vec::new(),
            gone: false,
        };
        while !client.take() {
            client.flush();
            let mut bytes = [0; 4096];
            let read = client.stream.read(&mut bytes).expect("readable");
            assert!(read > 0, "it ended before it subscribed");
            client.input.extend_from_slice(&bytes[..read]);
        }
        client.stream.set_nonblocking(true).expect("an option");
        Some(client)
    }

    /// Takes the packets that came; whether a SUBSCRIBE was among them.
    fn take(&mut self) -> bool {
        let mut subscribed = false;
        let mut at = 0;
        let now = Instant::now();
        while let Some((packet, len)) =
            decode(&self.input[at..], self.version, MAX_PACKET_LEN).expect("packets")
        {
            at += len;
            let answer = match packet {
                Packet::Connect(_) => Packet::ConnAck(ConnAck {
                    code: ReasonCode::SUCCESS,
                    ..ConnAck::default()
                }),
                Packet::Subscribe(subscribe) => {
                    subscribed = true;
                    let codes = [self.qos as u8; 8];
                    let count = subscribe.filters.iter().count();
                    self.out.extend(mqtt_bytes(
                        self.version,
                        Packet::SubAck(SubAck {
                            packet_id: subscribe.packet_id,
                            codes: &codes[..count],
                            ..SubAck::default()
                        }),
                    ));
                    continue;
                }
                Packet::PingReq => Packet::PingResp,
                Packet::PubAck(ack) => {
                    if let Some(due) = self.due[usize::from(ack.packet_id)].take() {
                        self.in_flight -= 1;
                        let waited = now.saturating_duration_since(due);
                        self.latencies_ms.push(waited.as_secs_f64() * 1e3);
                    }
                    continue;
                }
                _ => continue,
            };
            self.out.extend(mqtt_bytes(self.version, answer));
        }
        self.input.drain(..at);
        subscribed
    }

    /// Writes what the socket takes.
    fn flush(&mut self) {
        while !self.out.is_empty() {
            match self.stream.write(&self.out) {
                Ok(written) => drop(self.out.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.gone = true;
                    return;
                }
            }
        }
    }

    fn read(&mut self) {
        let mut bytes = [0; 64 << 10];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(read) if read > 0 => self.input.extend_from_slice(&bytes[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Ok(_) | Err(_) => {
                    self.gone = true;
                    break;
                }
            }
        }
        self.take();
    }

    fn feed(&mut self, rate: u32, time: Duration) -> Fed {
        let pool = pool();
        let none = Properties::default();
        let template = PublishTemplate::new(self.version, "meters/7/power", self.qos, false, none);
        let template = template.expect("a topic");
        let total = (f64::from(rate) * time.as_secs_f64()) as u64;
        let begun = Instant::now();
        let due_at = |number: u64| begun + Duration::from_secs_f64(number as f64 / f64::from(rate));
        let mut sent = 0;
        let mut sent_all = begun;
        let is_over = |client: &Client, sent| {
            client.gone || sent == total && client.in_flight == 0 && client.out.is_empty()
        };
        while !is_over(self, sent) {
            let now = Instant::now();
            while sent < total && due_at(sent) <= now && self.has_room() {
                self.publish(&template, &pool, sent, due_at(sent));
                sent += 1;
                sent_all = now;
            }
            self.flush();
            self.read();
            std::thread::sleep(TICK);
        }
        Fed {
            messages: sent,
            time: sent_all.duration_since(begun).max(time),
            latencies_ms: std::mem::take(&mut self.latencies_ms),
        }
    }

    fn has_room(&self) -> bool {
        self.out.len() < 4 << 20 && self.in_flight < IN_FLIGHT
    }

    fn publish(&mut self, template: &PublishTemplate, pool: &[u8], number: u64, due: Instant) {
        let at = (number as usize * 7919) % (pool.len() - PAYLOAD);
        let (head, body) = pool[at..at + PAYLOAD].split_at(16);
        let id = if self.qos == QoS::AtMostOnce {
            0
        } else {
            self.in_flight += 1;
            (number % 65_000) as u16 + 1
        };
        if id > 0 {
            assert!(self.due[usize::from(id)].is_none(), "an identifier is free");
            self.due[usize::from(id)] = Some(due);
        }
        template.append(&mut self.out, id, head, body);
    }
}
