//! A connection that publishes at QoS 1, and counts acknowledgements.

mod answers;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pubgauge_mqtt_codec::{Connect, Disconnect, Packet, Publish, QoS, Version, encode_pingreq};
use pubgauge_net::socket::Arrived;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::stored::StoredMessage;
use super::{ReplayTarget, check};
use crate::Error;
use crate::collector::Certificates;
use crate::config::Broker;
use crate::link::Link;
use crate::status::Wire;
use pubgauge_net::random::random;

/// Most messages that are not acknowledged, whatever the broker allows.
const WINDOW: usize = 1000;

/// Bytes that the socket has not taken, at the most, before no message is added.
const UNSENT: usize = 1 << 20;

/// Bytes that are written together.
const TOGETHER: usize = 64 << 10;

/// How long a broker may be silent while something is awaited of it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Most seconds between two packets.
const KEEP_ALIVE_S: u16 = 30;

/// Longest sleep: whether to stop is looked at in between.
const LOOK: Duration = Duration::from_millis(200);

/// A connection that publishes.
pub struct Publisher {
    link: Link,
    shown: String,
    version: Version,
    allowed: Allowed,
    /// When messages were received that are not acknowledged, by their identifiers.
    in_flight: BTreeMap<u16, i64>,
    last_id: u16,
    pub acknowledged: u64,
    pub refused: u64,
    is_connected: bool,
    heard_at: Instant,
    pinged_at: Instant,
}

/// Limits of the broker.
struct Allowed {
    window: usize,
    retains: bool,
    most_bytes: usize,
    keep_alive_s: u16,
}

impl Publisher {
    /// Connects with a session of its own, to the first address of the broker's name that answers.
    ///
    /// # Errors
    /// If it cannot be reached, or refuses.
    pub fn connect(target: &ReplayTarget, stop: &AtomicBool) -> Result<Publisher, Error> {
        let broker = &target.broker;
        let certificates = Certificates::read(std::slice::from_ref(broker))?;
        let addresses = broker.endpoint.look_up().map_err(|error| Error {
            what: error.what,
            hint: error.hint,
            is_input: false,
        })?;
        let mut why = String::new();
        for address in addresses {
            let connected = certificates
                .begin(0)
                .and_then(|tls| Publisher::connect_to(address, target, tls, stop));
            match connected {
                Ok(publisher) => return Ok(publisher),
                Err(error) => why = error,
            }
        }
        Err(Error::failed(why))
    }

    fn connect_to(
        address: SocketAddr,
        target: &ReplayTarget,
        tls: Option<Box<rustls::ClientConnection>>,
        stop: &AtomicBool,
    ) -> Result<Publisher, String> {
        let Broker { endpoint, .. } = &target.broker;
        let url = endpoint.websocket.as_deref();
        let (shown, wire) = (endpoint.shown.clone(), Arc::<Wire>::default());
        let now = Instant::now();
        let mut publisher = Publisher {
            link: Link::begin(address, &shown, tls, url, wire)?,
            shown,
            version: target.version,
            allowed: Allowed {
                window: WINDOW,
                retains: true,
                most_bytes: pubgauge_mqtt_codec::MAX_PACKET_LEN,
                keep_alive_s: KEEP_ALIVE_S,
            },
            in_flight: BTreeMap::new(),
            last_id: 0,
            acknowledged: 0,
            refused: 0,
            is_connected: false,
            heard_at: now,
            pinged_at: now,
        };
        publisher.greet(target, stop)?;
        Ok(publisher)
    }

    fn greet(&mut self, target: &ReplayTarget, stop: &AtomicBool) -> Result<(), String> {
        let client_id = format!("pubgauge-replay-{:06x}", random() & 0xff_ffff);
        let connect = Connect {
            version: self.version,
            clean_start: true,
            keep_alive_s: KEEP_ALIVE_S,
            client_id: &client_id,
            username: target.broker.endpoint.username.as_deref(),
            password: target
                .broker
                .password
                .as_ref()
                .map(|password| password.reveal().as_bytes()),
            ..Connect::default()
        };
        let encoded = Packet::Connect(connect).encode(self.version, self.link.out());
        encoded.map_err(|error| format!("the CONNECT cannot be encoded: {error}"))?;
        while !self.is_connected {
            check(stop)?;
            self.work(LOOK)?;
        }
        Ok(())
    }

    /// When the first message was received that is not acknowledged.
    pub fn oldest_ns(&self) -> Option<i64> {
        self.in_flight.values().min().copied()
    }

    /// Publishes a message, once the broker has room for it. Whether the broker takes such.
    ///
    /// # Errors
    /// Why the connection cannot go on.
    pub fn publish(&mut self, message: &StoredMessage, stop: &AtomicBool) -> Result<bool, String> {
        let (Some(payload), Some(properties)) = (&message.payload, message.properties()) else {
            return Ok(false);
        };
        if message.retain && !self.allowed.retains {
            return Ok(false);
        }
        while self.link.unsent() > UNSENT || self.in_flight.len() >= self.allowed.window {
            check(stop)?;
            self.work(LOOK)?;
        }
        let packet_id = self.free_id();
        let publish = Publish {
            dup: false,
            qos: QoS::AtLeastOnce,
            retain: message.retain,
            topic: &message.topic,
            packet_id,
            properties: match self.version {
                Version::V5 => properties.as_properties(),
                Version::V311 => Default::default(),
            },
            payload,
        };
        let out = self.link.out();
        let before = out.len();
        let encoded = Packet::Publish(publish).encode(self.version, out);
        if encoded.is_err() || out.len() - before > self.allowed.most_bytes {
            out.truncate(before);
            return Ok(false);
        }
        self.in_flight.insert(packet_id, message.received_ns);
        if self.link.unsent() > TOGETHER {
            self.work(Duration::ZERO)?;
        }
        Ok(true)
    }

    /// Waits for what is not acknowledged yet, and says farewell.
    ///
    /// # Errors
    /// Why the connection ended before, or that not all was acknowledged in time.
    pub fn finish(&mut self, until: Instant) -> Result<(), String> {
        let is_late = || Instant::now() >= until;
        while !self.in_flight.is_empty() && !is_late() {
            self.work(LOOK)?;
        }
        let farewell = Packet::Disconnect(Disconnect::default());
        let encoded = farewell.encode(self.version, self.link.out());
        encoded.map_err(|error| error.to_string())?;
        self.link.flush()?;
        while self.link.wants_write() && !is_late() {
            self.work(LOOK)?;
        }
        match self.in_flight.len() {
            0 => Ok(()),
            count => Err(format!("{count} messages were not acknowledged in time")),
        }
    }

    /// An identifier that no message has.
    fn free_id(&mut self) -> u16 {
        loop {
            self.last_id = self.last_id.checked_add(1).unwrap_or(1);
            if !self.in_flight.contains_key(&self.last_id) {
                return self.last_id;
            }
        }
    }

    /// Waits at most so long for the socket, writes what it takes, and takes in what came; keeps the connection alive.
    ///
    /// # Errors
    /// Why the connection cannot go on.
    pub fn work(&mut self, wait: Duration) -> Result<(), String> {
        let now = Instant::now();
        if now.saturating_duration_since(self.heard_at) > PATIENCE {
            let silent = PATIENCE.as_secs();
            return Err(format!(
                "{}: the broker is silent for {silent} s",
                self.shown
            ));
        }
        let half = Duration::from_secs(u64::from(self.allowed.keep_alive_s)) / 2;
        if self.is_connected && now.saturating_duration_since(self.pinged_at) > half {
            self.pinged_at = now;
            encode_pingreq(self.link.out());
        }
        if !self.link.connecting {
            self.link.flush()?;
        }
        let mut flags = PollFlags::IN;
        if self.link.connecting || self.link.wants_write() {
            flags |= PollFlags::OUT;
        }
        let wait = Timespec::try_from(wait.min(LOOK)).map_err(|error| error.to_string())?;
        match poll(
            &mut [PollFd::from_borrowed_fd(self.link.fd(), flags)],
            Some(&wait),
        ) {
            Err(rustix::io::Errno::INTR) | Ok(0) => return Ok(()),
            Err(error) => return Err(error.to_string()),
            Ok(_) => {}
        }
        if self.link.connecting {
            self.link.connected()?;
        }
        self.link.flush()?;
        self.read()
    }

    /// Reads what came.
    fn read(&mut self) -> Result<(), String> {
        loop {
            let (arrived, _) = self.link.read()?;
            let input = std::mem::take(&mut self.link.input);
            let taken = self.receive(&input);
            self.link.input = input;
            self.link.consume(taken?);
            match arrived {
                Arrived::More => {}
                Arrived::Drained => return self.link.flush(),
                Arrived::Ended => {
                    let (shown, code) = (&self.shown, self.link.close_code());
                    return Err(format!("{shown}: the broker closed the connection{code}"));
                }
            }
        }
    }
}
