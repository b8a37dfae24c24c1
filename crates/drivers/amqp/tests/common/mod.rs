//! A fleet with a note-book, and a private RabbitMQ that vanishes on every path.
#![allow(dead_code)] // Each test file uses its own part.

pub mod peer;

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use pubgauge_driver::conformance::{Ending, Lifecycle};
use pubgauge_driver::*;
use pubgauge_driver_amqp::AmqpDriver;
use pubgauge_testbed::{Running, SystemFile, Testbed};

pub const SECOND: u64 = 1_000_000_000;

/// A delivered message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub client: u32,
    pub topic: String,
    pub payload: Vec<u8>,
    pub retained: bool,
    pub redelivered: bool,
}

/// All that a fleet reported.
#[derive(Default)]
pub struct Seen {
    pub arrivals: usize,
    pub messages: Vec<Message>,
    /// Keep only the count of messages.
    pub count_only: bool,
    pub delivered: usize,
    pub acknowledged: Vec<(u32, u64, Acknowledgement)>,
    pub connected: Vec<(u32, bool)>,
    pub failed: Vec<(u32, String)>,
    pub subscribed: Vec<u32>,
    pub refused: Vec<(u32, String)>,
    pub writable: Vec<u32>,
    pub closed: Vec<u32>,
}

impl Events for Seen {
    fn arrived(&mut self) {
        self.arrivals += 1;
    }
    fn delivered(&mut self, client: ClientId, d: Delivery<'_>) {
        assert!(self.arrivals > 0, "arrived() comes before the messages");
        self.delivered += 1;
        if !self.count_only {
            self.messages.push(Message {
                client: client.0,
                topic: d.topic.unwrap_or_default().to_owned(),
                payload: d.payload.to_vec(),
                retained: d.retained,
                redelivered: d.redelivered,
            });
        }
    }
    fn acknowledged(&mut self, client: ClientId, tag: u64, answer: Acknowledgement) {
        self.acknowledged.push((client.0, tag, answer));
    }
    fn changed(&mut self, client: ClientId, change: Change) {
        match change {
            Change::Connected {
                session_present, ..
            } => self.connected.push((client.0, session_present)),
            Change::Subscribed => self.subscribed.push(client.0),
            Change::SubscriptionRefused(why) => self.refused.push((client.0, why)),
            Change::Writable => self.writable.push(client.0),
            Change::Failed(why) => self.failed.push((client.0, why)),
            Change::Closed => self.closed.push(client.0),
        }
    }
}

/// A fleet and what it reported.
pub struct Bench {
    pub fleet: Box<dyn Fleet>,
    pub seen: Seen,
}

pub fn config(target: Target, settings: Settings) -> FleetConfig {
    FleetConfig {
        target,
        settings,
        clock: Clock::Monotonic,
        max_payload: 4 << 20,
        clients: 4,
        worker: 0,
    }
}

pub fn target(port: u16) -> Target {
    Target {
        endpoints: vec![format!("amqp://127.0.0.1:{port}")],
        ..Target::default()
    }
}

impl Bench {
    pub fn open(target: Target, settings: Settings) -> Bench {
        Bench {
            fleet: AmqpDriver.open(config(target, settings)).unwrap(),
            seen: Seen::default(),
        }
    }

    pub fn on(port: u16, settings: Settings) -> Bench {
        Bench::open(target(port), settings)
    }

    pub fn poll_for(&mut self, time: Duration) {
        let until = clock::monotonic_now() + time.as_nanos() as u64;
        while clock::monotonic_now() < until {
            self.fleet.poll(until, &mut self.seen).unwrap();
        }
    }

    /// Polls until the condition holds; panics after 20 s, saying what was waited for.
    #[track_caller]
    pub fn until(&mut self, what: &str, mut holds: impl FnMut(&Seen) -> bool) {
        let end = clock::monotonic_now() + 20 * SECOND;
        while !holds(&self.seen) {
            let now = clock::monotonic_now();
            assert!(
                now < end,
                "waited in vain for: {what}; connected {:?}, failed {:?}, refused {:?}, {} delivered, {} acknowledged",
                self.seen.connected,
                self.seen.failed,
                self.seen.refused,
                self.seen.delivered,
                self.seen.acknowledged.len()
            );
            self.fleet.poll(now + 50_000_000, &mut self.seen).unwrap();
        }
    }

    pub fn spec(name: &str) -> ClientSpec {
        ClientSpec {
            name: name.to_owned(),
            publishes: true,
            subscribes: true,
            ..ClientSpec::default()
        }
    }

    /// Connects a client and waits until it is.
    #[track_caller]
    pub fn client(&mut self, spec: &ClientSpec) -> ClientId {
        let before = self.seen.connected.len();
        let id = self.fleet.connect(spec).unwrap();
        self.until("connected", |s| s.connected.len() > before);
        id
    }

    #[track_caller]
    pub fn named(&mut self, name: &str) -> ClientId {
        self.client(&Bench::spec(name))
    }

    #[track_caller]
    pub fn subscribe(&mut self, client: ClientId, filter: &str) {
        self.subscribe_shared(client, filter, None);
    }

    #[track_caller]
    pub fn subscribe_shared(&mut self, client: ClientId, filter: &str, group: Option<&str>) {
        let before = self.seen.subscribed.len();
        let subscription = Subscription {
            filter: filter.to_owned(),
            group: group.map(str::to_owned),
        };
        self.fleet.subscribe(client, &subscription).unwrap();
        self.until("subscribed", |s| s.subscribed.len() > before);
    }

    /// Publishes, polling while it is blocked.
    #[track_caller]
    pub fn publish(&mut self, client: ClientId, topic: TopicId, sequence: u64, len: usize) {
        let head = head(sequence);
        let body = vec![sequence as u8; len - header::HEADER_LEN];
        let payload = Payload {
            head: &head,
            body: &body,
        };
        let end = clock::monotonic_now() + 20 * SECOND;
        loop {
            match self.fleet.publish(client, topic, payload, sequence) {
                Publish::Accepted => return,
                Publish::Blocked => {
                    let now = clock::monotonic_now();
                    assert!(now < end, "blocked for good; failed {:?}", self.seen.failed);
                    self.fleet.poll(now + 50_000_000, &mut self.seen).unwrap();
                }
                Publish::Refused(why) => panic!("refused: {why:?}; failed {:?}", self.seen.failed),
            }
        }
    }

    /// The sequence numbers delivered to a client, in their order.
    pub fn sequences(&self, client: ClientId) -> Vec<u64> {
        let of = |m: &&Message| m.client == client.0;
        self.seen
            .messages
            .iter()
            .filter(of)
            .map(|m| sequence(&m.payload))
            .collect()
    }
}

/// Sixteen bytes with a number in them.
pub fn head(sequence: u64) -> [u8; header::HEADER_LEN] {
    let mut head = [0x5a; header::HEADER_LEN];
    head[..8].copy_from_slice(&sequence.to_le_bytes());
    head
}

pub fn sequence(payload: &[u8]) -> u64 {
    u64::from_le_bytes(payload[..8].try_into().unwrap())
}

/// These settings and one of the driver's own.
pub fn native(mut settings: Settings, name: &str, value: serde_json::Value) -> Settings {
    settings
        .native
        .entry("amqp".into())
        .or_default()
        .insert(name.into(), value);
    settings
}

/// A port of the loopback that nobody listens on at the moment.
pub fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// A private RabbitMQ, started from `systems/rabbitmq.toml`.
pub struct Rabbit {
    pub target: Target,
    running: Option<Running>,
    _scratch: tempfile::TempDir,
}

impl Rabbit {
    /// One that all tests of a file that run at the time share: it takes ten seconds to start.
    pub fn shared() -> Arc<Rabbit> {
        static SHARED: Mutex<Weak<Rabbit>> = Mutex::new(Weak::new());
        let mut shared: MutexGuard<'_, _> = SHARED
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(rabbit) = shared.upgrade() {
            return rabbit;
        }
        let rabbit = Arc::new(Rabbit::start(|_| {}));
        *shared = Arc::downgrade(&rabbit);
        rabbit
    }

    /// One of its own, its description changed before it is started.
    pub fn start(change: impl FnOnce(&mut SystemFile)) -> Rabbit {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../systems/rabbitmq.toml");
        let mut system = SystemFile::read(&path).unwrap();
        change(&mut system);
        let scratch = tempfile::tempdir().unwrap();
        let testbed = Testbed::new()
            .unwrap()
            .probe(Box::new(|_, what, target, deadline| {
                pubgauge_testbed::probe(&AmqpDriver, what, target, deadline)
            }));
        let running = testbed
            .start(&system, None, scratch.path())
            .expect("these tests need RabbitMQ (apt install rabbitmq-server)");
        Rabbit {
            target: running.target.clone(),
            running: Some(running),
            _scratch: scratch,
        }
    }

    pub fn running(&mut self) -> &mut Running {
        self.running.as_mut().unwrap()
    }

    pub fn bench(&self, settings: Settings) -> Bench {
        Bench::open(self.target.clone(), settings)
    }

    /// Runs `rabbitmqctl` on this node and gives what it prints.
    pub fn ctl(&self, arguments: &[&str]) -> String {
        let running = self.running.as_ref().unwrap();
        let env = &running.record.env;
        let output = Command::new("/usr/lib/rabbitmq/bin/rabbitmqctl")
            .env_clear()
            .envs(env)
            .args(["-n", &env["RABBITMQ_NODENAME"]])
            .args(arguments)
            .output()
            .expect("these tests need rabbitmqctl (apt install rabbitmq-server)");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {text}{complaint}");
        text
    }

    pub fn port(&self) -> u16 {
        let (_, port) = self.target.endpoints[0].rsplit_once(':').unwrap();
        port.parse().unwrap()
    }
}

impl Drop for Rabbit {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop();
        }
    }
}

impl Lifecycle for Rabbit {
    fn restart(&mut self, how: Ending) -> Result<(), String> {
        let running = self.running();
        match how {
            Ending::Killed => running.kill(),
            Ending::Stopped => running.halt(),
        };
        running.restart().map(drop).map_err(|e| e.to_string())
    }
}

/// Settings that promise that nothing is lost.
pub fn reliable() -> Settings {
    Settings {
        reliability: Some(Reliability::AtLeastOnce),
        ..Settings::default()
    }
}

/// Those, with a session that stays.
pub fn durable() -> Settings {
    Settings {
        session: Some(Session::Durable),
        ..reliable()
    }
}
