//! An exact MQTT server, in front of which tools can be compared: what it does to messages is planted, and it
//! says what really happened. `scripts/peers.sh` starts it; by hand:
//! `cargo run --release -p pubgauge-broker --example planted -- --port 1883 --delay-ms 5`.
//!
//! | option | meaning | default |
//! |---|---|---|
//! | `--port PORT` | the port of 127.0.0.1 to listen on; 0 takes a free one | 1883 |
//! | `--delay-ms MS` | each message is delivered so much after it is served | 0 |
//! | `--takes RATE` | it serves so many messages a second, in the order of coming; the others wait | no limit |
//! | `--pause-from-s S` | it stands still so long after the first message came | 0 |
//! | `--pause-s S` | for so long; it reads, but serves and writes nothing, acknowledgements included | 0 |
//! | `--lose-every N` | each Nth delivery is dropped | 0: none |
//! | `--repeat-every N` | each Nth delivery is written twice | 0: none |
//!
//! A message is acknowledged when it is served. Whenever all clients have gone it prints the truth about their messages
//! as a line of JSON, and forgets it: one tool after the other can connect.
//! - `in`: messages that came; `owed`: one for each message and subscriber that was there.
//! - `delivered`: of those, how many were written, each counted once; `lost`, `doubled`: planted ones.
//! - `served_per_s`: deliveries a second, from the first to the last.
//! - `latency_ms`: from when a message was read to when it was written.
//! - `late_ms`: how much later than due messages were written, where this machine was busy.
//!
//! A PUBLISH of 16 bytes or less is delivered in its turn, and counted, lost and doubled nowhere: pubgauge proves with such that
//! its paths are up.
//!
//! It does what it says here by MQTT 3.1.1 and 5 at QoS 0 and 1, and nothing else: no sessions, wills, retained
//! messages, shared subscriptions, keep-alive, topic aliases or limits of a client.
//!
//! Everything is one thread with one clock, and its truth has no switch of threads in it. The throttle of
//! `pubgauge-testing`, whose threads stand between clients and a server, knows when packets pass it, and not whose they are.

use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use pubgauge_driver::clock::monotonic_now;
use pubgauge_driver::topic::TopicMatch;
use pubgauge_driver::{Nanos, header::HEADER_LEN};
use pubgauge_mqtt_codec::{
    ConnAck, MAX_PACKET_LEN, Packet, PacketType, Properties, PropertiesBuf, Property, Publish, QoS,
    SubAck, Subscribe, SubscribeOptions, Version, decode, encode_ack, encode_pingresp,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The faults that are planted. Times are in nanoseconds.
#[derive(Default)]
struct Plants {
    delay: Nanos,
    /// From one message served to the next.
    interval: Nanos,
    pause_from: Nanos,
    pause: Nanos,
    lose_every: u64,
    repeat_every: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let (mut port, mut plants) = (1883, Plants::default());
    let mut words = std::env::args().skip(1);
    while let Some(option) = words.next() {
        let word = words.next().ok_or(format!("{option} needs a value"))?;
        let nanos = |per: f64| word.parse().map(|number: f64| (number * per) as Nanos);
        match option.as_str() {
            "--port" => port = word.parse()?,
            "--delay-ms" => plants.delay = nanos(1e6)?,
            "--takes" => plants.interval = (1e9 / word.parse::<f64>()?) as Nanos,
            "--pause-from-s" => plants.pause_from = nanos(1e9)?,
            "--pause-s" => plants.pause = nanos(1e9)?,
            "--lose-every" => plants.lose_every = word.parse()?,
            "--repeat-every" => plants.repeat_every = word.parse()?,
            _ => return Err(format!("no such option: {option}").into()),
        }
    }
    // Both keep it on time while clients have the processors; the second is not allowed everywhere.
    pubgauge_testbed::set_timer_slack(1)?;
    let _ = pubgauge_testbed::set_realtime(10);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    listener.set_nonblocking(true)?;
    println!("listening: {}", listener.local_addr()?);
    let mut server = Server {
        plants,
        ..Server::default()
    };
    loop {
        server.turn(&listener)?;
    }
}

#[derive(Default)]
struct Server {
    plants: Plants,
    /// In the order of connecting.
    clients: BTreeMap<usize, Client>,
    connected: usize,
    /// Those that were served or will be, in the order in which they are due.
    messages: VecDeque<Message>,
    /// Acknowledgements: when each is due, whose it is, and its packet identifier.
    acks: VecDeque<(Nanos, usize, u16)>,
    /// When the last message was served, or will be.
    served: Nanos,
    truth: Truth,
}

struct Client {
    stream: TcpStream,
    /// `None` until its CONNECT has come.
    version: Option<Version>,
    subscriptions: Vec<(String, QoS)>,
    packet_id: u16,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Of each delivery in `output`: when its message was read, and when it was due.
    unwritten: Vec<(Nanos, Nanos)>,
    is_gone: bool,
}

struct Message {
    read: Nanos,
    due: Nanos,
    topic: String,
    payload: Vec<u8>,
    qos: QoS,
    /// As they came; empty under 3.1.1.
    properties: Vec<u8>,
    /// Whether it has no body, and only proves that a path is up.
    is_proof: bool,
}

/// The fate of the messages of the clients that are here.
#[derive(Default)]
struct Truth {
    first_came: Option<Nanos>,
    messages: u64,
    owed: u64,
    lost: u64,
    doubled: u64,
    /// When the first and the last delivery were written.
    written: Option<(Nanos, Nanos)>,
    latencies: Vec<Nanos>,
    lateness: Vec<Nanos>,
}

impl Server {
    /// Waits until something comes or is due, and does it.
    fn turn(&mut self, listener: &TcpListener) -> Result<(), Box<dyn Error>> {
        let stands_still = self.stands_still(monotonic_now());
        let message = self.messages.front().map(|message| message.due);
        let ack = self.acks.front().map(|ack| ack.0);
        let goes_on = stands_still.then_some(self.pause().1);
        let next = [message, ack, goes_on].into_iter().flatten().min();
        let wait = next.map(|at| {
            let ns = at.saturating_sub(monotonic_now());
            Timespec {
                tv_sec: (ns / 1_000_000_000) as i64,
                tv_nsec: (ns % 1_000_000_000) as i64,
            }
        });
        let mut fds = vec![PollFd::new(listener, PollFlags::IN)];
        fds.extend(self.clients.values().map(|client| {
            let mut flags = PollFlags::IN;
            flags.set(PollFlags::OUT, !client.output.is_empty() && !stands_still);
            PollFd::new(&client.stream, flags)
        }));
        poll(&mut fds, wait.as_ref())?;
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let whose: Vec<usize> = self.clients.keys().copied().collect();
        for (who, _) in whose.iter().zip(&ready[1..]).filter(|(_, ready)| **ready) {
            self.read(*who);
        }
        if ready[0] {
            self.accept(listener)?;
        }
        if !self.stands_still(monotonic_now()) {
            self.serve();
        }
        self.clients.retain(|_, client| !client.is_gone);
        if self.clients.is_empty() {
            self.messages.clear();
            self.acks.clear();
            std::mem::take(&mut self.truth).print();
        }
        Ok(())
    }

    fn accept(&mut self, listener: &TcpListener) -> Result<(), Box<dyn Error>> {
        let (stream, _) = listener.accept()?;
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let client = Client {
            stream,
            version: None,
            subscriptions: Vec::new(),
            packet_id: 0,
            input: Vec::new(),
            output: Vec::new(),
            unwritten: Vec::new(),
            is_gone: false,
        };
        self.clients.insert(self.connected, client);
        self.connected += 1;
        Ok(())
    }

    /// Takes in what a client has sent, whose connection ends with what is no MQTT that is understood here.
    fn read(&mut self, who: usize) {
        let client = self.clients.get_mut(&who).expect("it is polled");
        let mut chunk = [0; 64 << 10];
        match client.stream.read(&mut chunk) {
            Ok(0) => client.is_gone = true,
            Ok(n) => client.input.extend_from_slice(&chunk[..n]),
            Err(error) => client.is_gone = error.kind() != ErrorKind::WouldBlock,
        }
        let now = monotonic_now();
        let input = std::mem::take(&mut client.input);
        let mut at = 0;
        loop {
            let version = self.clients[&who].version.unwrap_or_default();
            let taken = match decode(&input[at..], version, MAX_PACKET_LEN) {
                Ok(None) => break,
                Ok(Some((packet, len))) => self.take(who, packet, now).map(|()| len),
                Err(error) => Err(error.into()),
            };
            match taken {
                Ok(len) => at += len,
                Err(error) => {
                    eprintln!("client {who} is disconnected: {error}");
                    self.client(who).is_gone = true;
                    break;
                }
            }
        }
        self.client(who).input = input[at..].to_vec();
    }

    fn client(&mut self, who: usize) -> &mut Client {
        self.clients.get_mut(&who).expect("it is here")
    }

    fn take(&mut self, who: usize, packet: Packet<'_>, now: Nanos) -> Result<(), Box<dyn Error>> {
        if let Packet::Publish(publish) = packet {
            return self.publish(who, &publish, now);
        }
        let client = self.client(who);
        let (version, out) = (client.version.unwrap_or_default(), &mut client.output);
        match packet {
            Packet::Connect(connect) => {
                client.version = Some(connect.version);
                let mut properties = PropertiesBuf::default();
                if connect.version == Version::V5 {
                    let name = format!("planted-{who}");
                    if connect.client_id.is_empty() {
                        properties.push(Property::AssignedClientIdentifier(&name))?;
                    }
                    properties.push(Property::MaximumQoS(true))?;
                    properties.push(Property::RetainAvailable(false))?;
                    properties.push(Property::SubscriptionIdentifierAvailable(false))?;
                    properties.push(Property::SharedSubscriptionAvailable(false))?;
                }
                let properties = properties.as_properties();
                let answer = ConnAck {
                    properties,
                    ..ConnAck::default()
                };
                Packet::ConnAck(answer).encode(connect.version, out)?;
            }
            Packet::Subscribe(Subscribe {
                packet_id, filters, ..
            }) => {
                let granted = |(filter, options): (&str, SubscribeOptions)| {
                    (filter.to_owned(), options.qos.min(QoS::AtLeastOnce))
                };
                let granted: Vec<_> = filters.iter().map(granted).collect();
                let codes: Vec<u8> = granted.iter().map(|(_, qos)| *qos as u8).collect();
                client.subscriptions.extend(granted);
                let answer = SubAck {
                    packet_id,
                    codes: &codes,
                    ..SubAck::default()
                };
                Packet::SubAck(answer).encode(version, out)?;
            }
            Packet::PingReq => encode_pingresp(out),
            Packet::PubAck(_) => {}
            Packet::Disconnect(_) => client.is_gone = true,
            other => return Err(format!("it does not know {:?}", other.packet_type()).into()),
        }
        Ok(())
    }

    /// Decides when a message is served and delivered.
    fn publish(
        &mut self,
        who: usize,
        publish: &Publish<'_>,
        now: Nanos,
    ) -> Result<(), Box<dyn Error>> {
        if publish.qos > QoS::AtLeastOnce || publish.topic.is_empty() {
            return Err("it knows no QoS 2 and no topic aliases".into());
        }
        // A proof takes no time of its own, and overtakes nothing.
        let is_proof = publish.payload.len() <= HEADER_LEN;
        let mut takes = 0;
        if !is_proof {
            self.truth.messages += 1;
            self.truth.first_came.get_or_insert(now);
            takes = self.plants.interval;
        }
        self.served = self.after_pause(now.max(self.served + takes));
        if publish.qos > QoS::AtMostOnce {
            self.acks.push_back((self.served, who, publish.packet_id));
        }
        self.messages.push_back(Message {
            read: now,
            due: self.after_pause(self.served + self.plants.delay),
            topic: publish.topic.to_owned(),
            payload: publish.payload.to_vec(),
            qos: publish.qos,
            properties: publish.properties.as_bytes().to_vec(),
            is_proof,
        });
        Ok(())
    }

    /// The pause: its beginning and its end.
    fn pause(&self) -> (Nanos, Nanos) {
        let came = self.truth.first_came.unwrap_or(Nanos::MAX / 2);
        let from = came + self.plants.pause_from;
        (from, from + self.plants.pause)
    }

    fn stands_still(&self, now: Nanos) -> bool {
        let (from, until) = self.pause();
        from <= now && now < until
    }

    /// This moment, or the end of the pause if it lies within.
    fn after_pause(&self, at: Nanos) -> Nanos {
        if self.stands_still(at) {
            self.pause().1
        } else {
            at
        }
    }

    /// Acknowledges and delivers what is due, and writes it.
    fn serve(&mut self) {
        let now = monotonic_now();
        let due = self.acks.partition_point(|ack| ack.0 <= now);
        for (_, who, packet_id) in self.acks.drain(..due) {
            // A client may have gone before its acknowledgement.
            if let Some(client) = self.clients.get_mut(&who) {
                encode_ack(PacketType::PubAck, packet_id, &mut client.output);
            }
        }
        let due = self.messages.partition_point(|message| message.due <= now);
        let due: Vec<Message> = self.messages.drain(..due).collect();
        for message in &due {
            self.deliver(message);
        }
        for client in self.clients.values_mut() {
            client.write(&mut self.truth);
        }
    }

    fn deliver(&mut self, message: &Message) {
        let (plants, truth) = (&self.plants, &mut self.truth);
        let is_each = |number: u64, so_many: u64| so_many > 0 && number.is_multiple_of(so_many);
        for client in self.clients.values_mut() {
            let Some(qos) = client.wants(&message.topic) else {
                continue;
            };
            if message.is_proof {
                client.append(message, qos);
                continue;
            }
            truth.owed += 1;
            if is_each(truth.owed, plants.lose_every) {
                truth.lost += 1;
                continue;
            }
            client.append(message, qos);
            client.unwritten.push((message.read, message.due));
            if is_each(truth.owed, plants.repeat_every) {
                truth.doubled += 1;
                client.append(message, qos);
            }
        }
    }
}

impl Client {
    /// The highest QoS of the subscriptions that match a topic.
    fn wants(&self, topic: &str) -> Option<QoS> {
        let matching = self.subscriptions.iter();
        let matching = matching.filter(|(filter, _)| filter.matches_topic(topic));
        matching.map(|(_, qos)| *qos).max()
    }

    /// Appends a message to what is to be written.
    fn append(&mut self, message: &Message, at_most: QoS) {
        let version = self.version.unwrap_or_default();
        let qos = message.qos.min(at_most);
        self.packet_id = self.packet_id % u16::MAX + 1;
        let properties = match version {
            Version::V5 => Properties::of_publish(&message.properties).unwrap_or_default(),
            Version::V311 => Properties::default(),
        };
        let publish = Publish {
            qos,
            topic: &message.topic,
            packet_id: if qos == QoS::AtMostOnce {
                0
            } else {
                self.packet_id
            },
            properties,
            payload: &message.payload,
            ..Publish::default()
        };
        let encoded = Packet::Publish(publish).encode(version, &mut self.output);
        encoded.expect("it was decoded");
    }

    /// Writes as much as the connection takes. Deliveries are written when all of the output is.
    fn write(&mut self, truth: &mut Truth) {
        if self.output.is_empty() {
            return;
        }
        // Before the system call: whoever waits for the message may have it when the call returns.
        let now = monotonic_now();
        match self.stream.write(&self.output) {
            Ok(n) => drop(self.output.drain(..n)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.is_gone = true,
        }
        if self.output.is_empty() {
            for (read, due) in self.unwritten.drain(..) {
                truth.latencies.push(now - read);
                truth.lateness.push(now - due);
                truth.written = Some((truth.written.map_or(now, |written| written.0), now));
            }
        }
    }
}

impl Truth {
    /// Prints it, if there was a message.
    fn print(mut self) {
        if self.messages == 0 {
            return;
        }
        let delivered = self.latencies.len();
        let (first, last) = self.written.unwrap_or_default();
        let per_s = delivered.saturating_sub(1) as f64 / (last - first).max(1) as f64 * 1e9;
        let truth = serde_json::json!({
            "in": self.messages,
            "owed": self.owed,
            "delivered": delivered,
            "lost": self.lost,
            "doubled": self.doubled,
            "served_per_s": (per_s * 10.0).round() / 10.0,
            "latency_ms": summary(&mut self.latencies),
            "late_ms": summary(&mut self.lateness),
        });
        println!("{truth}");
    }
}

/// Mean, median, 99th percentile (nearest rank) and maximum of spans, in ms to a microsecond.
fn summary(spans: &mut [Nanos]) -> serde_json::Value {
    spans.sort_unstable();
    let ms = |ns: f64| (ns / 1e3).round() / 1e3;
    let rank = |share: f64| {
        let rank = (share * spans.len() as f64).ceil() as usize;
        ms(spans.get(rank.saturating_sub(1)).copied().unwrap_or(0) as f64)
    };
    let mean = spans.iter().sum::<Nanos>() as f64 / spans.len().max(1) as f64;
    serde_json::json!({ "mean": ms(mean), "p50": rank(0.5), "p99": rank(0.99), "max": rank(1.0) })
}
