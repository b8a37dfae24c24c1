//! A fleet with what it reported, and a pair of them that can hear each other.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pubgauge_driver::{
    Acknowledgement, Change, ClientId, ClientSpec, Clock, Delivery, Driver, Events, Filler, Fleet,
    FleetConfig, Header, Kind, Mark, Nanos, Payload, Publish, Settings, Subscription, Target,
    TopicId,
};
use pubgauge_driver_fastdds::FastddsDriver;

pub const SECOND: Nanos = 1_000_000_000;
const MARK: Mark = Mark::from_seed(7);
const LONGEST: usize = 20_000;

pub fn settings(json: serde_json::Value) -> Settings {
    serde_json::from_value(json).expect("settings")
}

/// The domain of a folder: the same each time, and no other's.
pub fn target(scratch: &tempfile::TempDir) -> Target {
    static DOMAINS: Mutex<BTreeMap<PathBuf, u32>> = Mutex::new(BTreeMap::new());
    let scratch = scratch.path().to_owned();
    let mut domains = DOMAINS.lock().unwrap_or_else(PoisonError::into_inner);
    let domain = domains.entry(scratch.clone());
    let domain = *domain.or_insert_with(pubgauge_testing::dds_domain);
    Target {
        endpoints: vec![format!("dds://localhost/{domain}")],
        scratch,
        ..Target::default()
    }
}

pub struct Rig {
    pub fleet: Box<dyn Fleet>,
    pub seen: Seen,
    /// Length of the payloads to send, bytes.
    pub len: usize,
    filler: Filler,
}

#[derive(Default)]
pub struct Seen {
    /// Sequence numbers of measured messages, in order of arrival.
    pub got: Vec<u32>,
    /// Who got them.
    pub who: Vec<ClientId>,
    /// All messages, sentinels included.
    pub all: usize,
    pub sentinels: usize,
    pub retained: usize,
    pub damaged: usize,
    pub changes: Vec<(ClientId, Change)>,
    filler: Option<Filler>,
}

impl Events for Seen {
    fn arrived(&mut self) {}

    fn delivered(&mut self, client: ClientId, delivery: Delivery<'_>) {
        self.all += 1;
        self.retained += usize::from(delivery.retained);
        let Some(header) = Header::decode(delivery.payload, MARK) else {
            self.damaged += 1;
            return;
        };
        let filler = self.filler.get_or_insert_with(|| Filler::new(LONGEST));
        let body = filler.body(header.stream, header.sequence, delivery.payload.len());
        self.damaged += usize::from(body != &delivery.payload[16..]);
        if header.kind == Kind::Measured {
            self.got.push(header.sequence);
            self.who.push(client);
        } else {
            self.sentinels += 1;
        }
    }

    fn acknowledged(&mut self, _: ClientId, _: u64, _: Acknowledgement) {}

    fn changed(&mut self, client: ClientId, change: Change) {
        self.changes.push((client, change));
    }
}

impl Rig {
    pub fn open(target: &Target, settings: &Settings, worker: u32) -> Self {
        Self::open_with(&FastddsDriver, target, settings, worker)
    }

    pub fn open_with(
        driver: &dyn Driver,
        target: &Target,
        settings: &Settings,
        worker: u32,
    ) -> Self {
        let config = FleetConfig {
            target: target.clone(),
            settings: settings.clone(),
            clock: Clock::Monotonic,
            max_payload: LONGEST,
            clients: 4,
            worker,
        };
        Rig {
            fleet: driver.open(config).expect("opens"),
            seen: Seen::default(),
            len: 64,
            filler: Filler::new(LONGEST),
        }
    }

    pub fn connect(&mut self, publishes: bool) -> ClientId {
        let spec = ClientSpec {
            name: "someone".into(),
            publishes,
            subscribes: !publishes,
            ..ClientSpec::default()
        };
        let client = self.fleet.connect(&spec).expect("connects");
        self.poll(SECOND);
        let up = |(c, change): &(ClientId, Change)| {
            *c == client && matches!(change, Change::Connected { .. })
        };
        assert!(self.seen.changes.iter().any(up));
        client
    }

    pub fn publisher(&mut self, topic: &str) -> (ClientId, TopicId) {
        let client = self.connect(true);
        (
            client,
            self.fleet.advertise(client, topic).expect("advertises"),
        )
    }

    pub fn subscriber(&mut self, filter: &str) -> ClientId {
        let client = self.connect(false);
        self.subscribe(client, filter);
        client
    }

    pub fn subscribe(&mut self, client: ClientId, filter: &str) {
        let subscription = Subscription {
            filter: filter.into(),
            group: None,
        };
        self.fleet
            .subscribe(client, &subscription)
            .expect("subscribes");
    }

    pub fn poll(&mut self, at_most: Nanos) {
        let until = Clock::Monotonic.now() + at_most;
        self.fleet.poll(until, &mut self.seen).expect("polls");
    }

    pub fn put(&mut self, client: ClientId, topic: TopicId, sequence: u32, kind: Kind) -> Publish {
        let head = Header {
            kind,
            intended: 0,
            lag: 0,
            stream: 0,
            sequence,
        }
        .encode(MARK);
        let payload = Payload {
            head: &head,
            body: self.filler.body(0, sequence, self.len),
        };
        self.fleet.publish(client, topic, payload, 0)
    }

    pub fn try_send(&mut self, client: ClientId, topic: TopicId, sequence: u32) -> Publish {
        self.put(client, topic, sequence, Kind::Measured)
    }

    pub fn send(&mut self, client: ClientId, topic: TopicId, sequence: u32) {
        assert_eq!(self.try_send(client, topic, sequence), Publish::Accepted);
    }
}

/// Polls both once.
pub fn step(out: &mut Rig, into: &mut Rig) {
    out.poll(1_000_000);
    into.poll(1_000_000);
}

/// Polls both until `done`, for `at_most` at the longest.
pub fn run(out: &mut Rig, into: &mut Rig, at_most: Nanos, done: impl Fn(&Rig, &Rig) -> bool) {
    let until = Clock::Monotonic.now() + at_most;
    while !done(out, into) && Clock::Monotonic.now() < until {
        step(out, into);
    }
}

/// Sends sentinels until one arrives, and waits until no more come.
pub fn prove(out: &mut Rig, into: &mut Rig, client: ClientId, topic: TopicId) {
    let heard = into.seen.sentinels;
    let until = Clock::Monotonic.now() + 60 * SECOND;
    while into.seen.sentinels == heard {
        assert!(
            Clock::Monotonic.now() < until,
            "no sentinel came within 10 s"
        );
        out.put(client, topic, 0, Kind::Sentinel);
        out.poll(5_000_000);
        into.poll(10_000_000);
    }
    let mut count = usize::MAX;
    while count != into.seen.all {
        count = into.seen.all;
        run(out, into, SECOND / 5, |_, _| false);
    }
}

/// A publisher and a subscriber of one topic, proven to hear each other.
pub fn pair(scratch: &tempfile::TempDir, settings: &Settings) -> (Rig, Rig, ClientId, TopicId) {
    let mut out = Rig::open(&target(scratch), settings, 1);
    let (client, topic) = out.publisher("pair/t");
    let mut into = Rig::open(&target(scratch), settings, 2);
    into.subscriber("pair/t");
    prove(&mut out, &mut into, client, topic);
    (out, into, client, topic)
}
