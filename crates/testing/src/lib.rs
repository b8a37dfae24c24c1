//! Parts that tests of drivers share: a fleet whose events are recorded and that is polled until
//! something has happened, free ports, counts of connections, a throttle that plants a known rate, delay
//! and loss, and what benches do alike ([`mod@bench`]).
//!
//! It is for tests and benches only, and panics where a condition does not hold.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use libtest_mimic::{Arguments, Trial};

use pubgauge_driver::*;
use pubgauge_testbed::Running;

pub mod allocator;
mod background;
pub mod bench;
pub mod certificates;
mod checked;
pub mod confined;
mod datagrams;
pub mod exhaustion;
pub mod hostile;
pub mod meddling;
pub mod mosquitto;
pub mod object_store;
pub mod pages;
mod places;
pub mod program;
mod server;
mod settings;
mod shared;
pub mod stranger;
pub mod throttle;

pub use background::{Background, scripted};
pub use checked::{CheckedRig, Heard, Recorder};
pub use datagrams::{Datagrams, multicast_group};
pub use places::separate_places;
pub use server::{Server, conforms, conforms_with_kill, system};
pub use settings::{
    answers_contain, contradictions_are_refused, every_setting_is_answered, refused,
    refused_by_name, settings,
};
pub use shared::shared;

/// Runs these tests by name, as a program of tests that has its own `main` because it starts itself again in another
/// role.
pub fn own_main(tests: &[(&str, fn())]) -> ExitCode {
    let trial = |(name, run): &(&str, fn())| {
        let run = *run;
        Trial::test(*name, move || {
            run();
            Ok(())
        })
    };
    let trials = tests.iter().map(trial).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// The name of the test that calls this on its own thread, with its modules, as the program of tests takes it after
/// `--exact`.
///
/// # Panics
/// If no test calls it.
pub fn this_test() -> String {
    let by_runner = std::env::var("NEXTEST_TEST_NAME").ok();
    let by_thread = || std::thread::current().name().map(str::to_owned);
    by_runner.or_else(by_thread).expect("a test has a name")
}

/// A DDS domain, 0 to 199, that no test uses that runs at the time: hashes of folders, modulo 200, may collide.
/// The test runner numbers the tests that run at a time from 0, eight at the most; without it the process is told
/// apart by its number.
pub fn dds_domain() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let slot = std::env::var("NEXTEST_TEST_GLOBAL_SLOT").ok();
    match slot.and_then(|slot| slot.parse::<u32>().ok()) {
        Some(slot) => (slot % 8 * 25) + next % 25,
        None => std::process::id().wrapping_mul(31).wrapping_add(next) % 200,
    }
}

/// One second in nanoseconds.
pub const SECOND: u64 = 1_000_000_000;

/// A delivered message.
#[derive(Clone, Debug, PartialEq)]
pub struct DeliveredMessage {
    /// The client that got it.
    pub client: u32,
    /// Its topic; empty if the system does not tell.
    pub topic: String,
    /// The whole payload, header included.
    pub payload: Vec<u8>,
    /// Marked as a last value.
    pub retained: bool,
    /// Marked as delivered before, perhaps.
    pub redelivered: bool,
}

/// All that a fleet reported.
#[derive(Default)]
pub struct Observations {
    /// Calls of [`Events::arrived`].
    pub arrivals: usize,
    /// Delivered messages, in order of delivery.
    pub messages: Vec<DeliveredMessage>,
    /// Keep only the count of messages.
    pub count_only: bool,
    /// How many messages were delivered.
    pub delivered: usize,
    /// Acknowledged messages: client, tag and answer of each.
    pub acknowledged: Vec<(u32, u64, Acknowledgement)>,
    /// Clients that have connected, and whether the server still had the session.
    pub connected: Vec<(u32, bool)>,
    /// Clients whose connection has failed, and why.
    pub failed: Vec<(u32, String)>,
    /// Of these, the clients that failed because the client itself ran out of a resource.
    pub exhausted: Vec<(u32, Resource)>,
    /// Clients whose subscriptions are established, one entry for each.
    pub subscribed: Vec<u32>,
    /// Clients whose subscriptions were refused, and why.
    pub refused: Vec<(u32, String)>,
    /// Clients that may publish again.
    pub writable: Vec<u32>,
    /// Clients that have closed as asked for.
    pub closed: Vec<u32>,
}

impl Events for Observations {
    fn arrived(&mut self) {
        self.arrivals += 1;
    }
    fn delivered(&mut self, client: ClientId, d: Delivery<'_>) {
        assert!(self.arrivals > 0, "arrived() comes before the messages");
        self.delivered += 1;
        if !self.count_only {
            self.messages.push(DeliveredMessage {
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
            Change::Failed(failure) => {
                self.exhausted
                    .extend(failure.exhausted.map(|resource| (client.0, resource)));
                self.failed.push((client.0, failure.why));
            }
            Change::Closed => self.closed.push(client.0),
        }
    }
}

/// A fleet and what it reported.
pub struct Rig {
    pub fleet: Box<dyn Fleet>,
    /// Its reports.
    pub seen: Observations,
}

/// A configuration for up to four clients and messages of up to 4 MiB.
pub fn config(target: Target, settings: Settings) -> FleetConfig {
    FleetConfig {
        target,
        settings,
        clients: 4,
        ..FleetConfig::default()
    }
}

impl Rig {
    /// A fleet of up to four clients.
    ///
    /// # Panics
    /// If the driver refuses.
    #[track_caller]
    pub fn open(driver: &dyn Driver, target: Target, settings: Settings) -> Rig {
        Rig {
            fleet: driver.open(config(target, settings)).unwrap(),
            seen: Observations::default(),
        }
    }

    /// Polls for so long, whatever happens.
    ///
    /// # Panics
    /// If the fleet cannot be polled.
    pub fn poll_for(&mut self, time: Duration) {
        let until = clock::monotonic_now() + time.as_nanos() as u64;
        while clock::monotonic_now() < until {
            self.fleet.poll(until, &mut self.seen).unwrap();
        }
    }

    /// Polls until the condition holds.
    ///
    /// # Panics
    /// After 60 s, with the text `what`.
    #[track_caller]
    pub fn until(&mut self, what: &str, mut holds: impl FnMut(&Observations) -> bool) {
        let end = clock::monotonic_now() + 60 * SECOND;
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

    /// A client that publishes and subscribes.
    pub fn spec(name: &str) -> ClientSpec {
        ClientSpec {
            name: name.to_owned(),
            publishes: true,
            subscribes: true,
            ..ClientSpec::default()
        }
    }

    /// Connects a client and waits until it is.
    ///
    /// # Panics
    /// If it has not connected after 60 s.
    #[track_caller]
    pub fn client(&mut self, spec: &ClientSpec) -> ClientId {
        let before = self.seen.connected.len();
        let id = self.fleet.connect(spec).unwrap();
        self.until("connected", |s| s.connected.len() > before);
        id
    }

    /// A client that publishes only, connected.
    #[track_caller]
    pub fn named_publisher(&mut self, name: &str) -> ClientId {
        self.client(&ClientSpec {
            subscribes: false,
            ..Rig::spec(name)
        })
    }

    /// A client that subscribes only, connected.
    #[track_caller]
    pub fn named_subscriber(&mut self, name: &str) -> ClientId {
        self.client(&ClientSpec {
            publishes: false,
            ..Rig::spec(name)
        })
    }

    /// A client that publishes and subscribes, connected.
    #[track_caller]
    pub fn named(&mut self, name: &str) -> ClientId {
        self.client(&Rig::spec(name))
    }

    /// Subscribes and waits until the subscription is established.
    #[track_caller]
    pub fn subscribe(&mut self, client: ClientId, filter: &str) {
        self.subscribe_shared(client, filter, None);
    }

    /// The same, in a group.
    ///
    /// # Panics
    /// If it is not established after 60 s.
    #[track_caller]
    pub fn subscribe_shared(&mut self, client: ClientId, filter: &str, group: Option<&str>) {
        let before = self.seen.subscribed.len();
        let subscription = Subscription {
            group: group.map(str::to_owned),
            ..Subscription::matching(filter)
        };
        self.fleet.subscribe(client, &subscription).unwrap();
        self.until("subscribed", |s| s.subscribed.len() > before);
    }

    /// Closes a client's connection and waits until it is.
    ///
    /// # Panics
    /// If it has not closed after 60 s.
    #[track_caller]
    pub fn disconnect(&mut self, client: ClientId) {
        let before = self.seen.closed.len();
        self.fleet.disconnect(client);
        self.until("closed", |s| s.closed.len() > before);
    }

    /// Why a client cannot connect.
    ///
    /// # Panics
    /// If it has not failed after 60 s.
    #[track_caller]
    pub fn failure(driver: &dyn Driver, target: Target, settings: Settings) -> String {
        let mut rig = Rig::open(driver, target, settings);
        rig.fleet.connect(&Rig::spec("c")).unwrap();
        rig.until("failed", |s| !s.failed.is_empty());
        rig.seen.failed.remove(0).1
    }

    /// Publishes `len` bytes with `sequence` as their number and tag; says what became of the call.
    pub fn try_publish(
        &mut self,
        client: ClientId,
        topic: TopicId,
        sequence: u64,
        len: usize,
    ) -> Publish {
        self.try_publish_body(client, topic, &body(sequence, len), sequence)
    }

    fn try_publish_body(
        &mut self,
        client: ClientId,
        topic: TopicId,
        body: &[u8],
        tag: u64,
    ) -> Publish {
        let payload = Payload {
            head: &head(tag),
            body,
        };
        self.fleet.publish(client, topic, payload, tag)
    }

    /// Publishes `len` bytes with `sequence` as their number and tag, polling while it is blocked.
    ///
    /// # Panics
    /// If it is refused, or blocked for 60 s.
    #[track_caller]
    pub fn publish(&mut self, client: ClientId, topic: TopicId, sequence: u64, len: usize) {
        self.publish_body(client, topic, &body(sequence, len), sequence);
    }

    /// Publishes these bytes after a head with `tag` as its number, polling while it is blocked.
    ///
    /// # Panics
    /// If it is refused, or blocked for 60 s.
    #[track_caller]
    pub fn publish_body(&mut self, client: ClientId, topic: TopicId, body: &[u8], tag: u64) {
        let end = clock::monotonic_now() + 60 * SECOND;
        loop {
            match self.try_publish_body(client, topic, body, tag) {
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
        let of = |m: &&DeliveredMessage| m.client == client.0;
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

/// The bytes after the head in a payload of `len` bytes.
fn body(sequence: u64, len: usize) -> Vec<u8> {
    vec![sequence as u8; len - header::HEADER_LEN]
}

/// The number in a payload.
///
/// # Panics
/// If it is shorter than eight bytes.
pub fn sequence(payload: &[u8]) -> u64 {
    u64::from_le_bytes(payload[..8].try_into().unwrap())
}

/// Adds a native setting of the driver.
pub fn native(settings: &mut Settings, driver: &str, name: &str, value: serde_json::Value) {
    let own = settings.native.entry(driver.to_owned()).or_default();
    own.insert(name.to_owned(), value);
}

/// Waits until something holds.
///
/// # Panics
/// After 60 s, with the text `what`.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = clock::monotonic_now() + 60 * SECOND;
    while !holds() {
        assert!(clock::monotonic_now() < end, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process is there and no zombie.
pub fn alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// The port of a system's first address.
///
/// # Panics
/// If it has none.
pub fn port_of(running: &Running) -> u16 {
    let (_, port) = running.target.endpoints[0].rsplit_once(':').unwrap();
    port.parse().unwrap()
}

/// A port of the loopback address that nothing listens on at present.
///
/// # Panics
/// If none is left.
pub fn free_port() -> u16 {
    pubgauge_testbed::free_port().expect("a free port")
}
