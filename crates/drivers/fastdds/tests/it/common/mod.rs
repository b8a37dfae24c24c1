//! A fleet whose messages are checked, and a pair of them that can hear each other.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pubgauge_driver::{
    ClientId, ClientSpec, Clock, Driver, Fleet, FleetConfig, Kind, Nanos, Publish, Settings,
    Subscription, Target, TopicId,
};
use pubgauge_driver_fastdds::FastddsDriver;
use pubgauge_testing::{CheckedRig, config};

pub use pubgauge_testing::{SECOND, settings};

const LONGEST: usize = 20_000;

/// The domain of a folder: the same each time, and no other's.
pub fn target(scratch: &tempfile::TempDir) -> Target {
    static DOMAINS: Mutex<BTreeMap<PathBuf, u32>> = Mutex::new(BTreeMap::new());
    let scratch = scratch.path().to_owned();
    let mut domains = DOMAINS.lock().unwrap_or_else(PoisonError::into_inner);
    let domain = domains.entry(scratch.clone());
    let domain = *domain.or_insert_with(pubgauge_testing::dds_domain);
    Target {
        scratch,
        ..Target::single(format!("dds://localhost/{domain}"))
    }
}

pub struct Rig {
    pub checked: CheckedRig,
    /// Length of the payloads to send, bytes.
    pub len: usize,
}

impl Rig {
    pub fn open(target: &Target, settings: &Settings, worker: u32) -> Self {
        let config = FleetConfig {
            max_payload: LONGEST,
            worker,
            ..config(target.clone(), settings.clone())
        };
        let fleet = FastddsDriver.open(config).expect("opens");
        Rig {
            checked: CheckedRig::around(fleet, LONGEST),
            len: 64,
        }
    }

    pub fn fleet(&mut self) -> &mut dyn Fleet {
        &mut *self.checked.fleet
    }

    /// Sequence numbers of measured messages, in order of arrival.
    pub fn got(&self) -> Vec<u32> {
        self.checked.seen.measured()
    }

    /// How many measured messages have come.
    pub fn count(&self) -> usize {
        self.got().len()
    }

    /// All messages, sentinels included.
    pub fn all(&self) -> usize {
        self.checked.seen.seen.len()
    }

    pub fn retained(&self) -> usize {
        let seen = self.checked.seen.seen.iter();
        seen.filter(|heard| heard.retained).count()
    }

    pub fn connect(&mut self, publishes: bool) -> ClientId {
        let spec = ClientSpec {
            name: "someone".into(),
            publishes,
            subscribes: !publishes,
            ..ClientSpec::default()
        };
        self.checked.connect(&spec).0
    }

    pub fn publisher(&mut self, topic: &str) -> (ClientId, TopicId) {
        let client = self.connect(true);
        let topic = self.fleet().advertise(client, topic);
        (client, topic.expect("advertises"))
    }

    pub fn subscriber(&mut self, filter: &str) -> ClientId {
        let client = self.connect(false);
        self.subscribe(client, filter);
        client
    }

    pub fn subscribe(&mut self, client: ClientId, filter: &str) {
        let begun = self
            .fleet()
            .subscribe(client, &Subscription::matching(filter));
        begun.expect("subscribes");
    }

    pub fn poll(&mut self, at_most: Nanos) {
        self.checked.poll(Clock::Monotonic.now() + at_most);
    }

    pub fn put(&mut self, client: ClientId, topic: TopicId, sequence: u32, kind: Kind) -> Publish {
        let len = self.len;
        self.checked
            .publish_as(kind, client, topic, (0, sequence), len)
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
    let sentinels = |into: &Rig| into.all() - into.count();
    let heard = sentinels(into);
    let until = Clock::Monotonic.now() + 60 * SECOND;
    while sentinels(into) == heard {
        assert!(
            Clock::Monotonic.now() < until,
            "no sentinel came within 60 s"
        );
        out.put(client, topic, 0, Kind::Sentinel);
        out.poll(5_000_000);
        into.poll(10_000_000);
    }
    let mut count = usize::MAX;
    while count != into.all() {
        count = into.all();
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
