//! Helpers of the tests: fleets in a domain of their own, and a pair that can hear each other.
#![allow(dead_code, missing_docs)]

use std::ops::Range;

use pubgauge_driver::{
    ClientId, Clock, DriverError, Fleet, FleetConfig, Nanos, Settings, Target, TopicId,
};
use pubgauge_driver_cyclonedds::{CycloneFleet, CycloneddsDriver, Statistics};
use pubgauge_testing::{CheckedRig, config};

pub use pubgauge_driver::Subscription;
pub use pubgauge_testing::{Recorder, SECOND, settings};

pub const MS: Nanos = 1_000_000;
const LARGEST: usize = 1 << 15;

pub type Rig = CheckedRig<CycloneFleet>;

pub fn open(settings: &Settings, target: &Target, worker: u32) -> Rig {
    try_open(settings, target, worker).expect("opens")
}

pub fn try_open(settings: &Settings, target: &Target, worker: u32) -> Result<Rig, DriverError> {
    let config = FleetConfig {
        max_payload: LARGEST,
        worker,
        ..config(target.clone(), settings.clone())
    };
    let fleet = CycloneddsDriver.open_fleet(&config)?;
    Ok(Rig::around(Box::new(fleet), LARGEST))
}

/// The library's counts for a fleet.
pub fn statistics(rig: &Rig) -> Statistics {
    rig.fleet.library().expect("open").statistics()
}

/// Publishes these messages of a stream, waiting while blocked.
pub fn send_all(
    rig: &mut Rig,
    (id, topic): (ClientId, TopicId),
    stream: u32,
    sequences: Range<u32>,
    len: usize,
) {
    for sequence in sequences {
        rig.send(id, topic, stream, sequence, len);
    }
    rig.poll(0);
}

/// Settings with native ones of this driver.
pub fn native(json: serde_json::Value) -> Settings {
    settings(serde_json::json!({"native": {"cyclonedds": json}}))
}

/// A DDS domain for a test alone.
pub struct Place(u32);

impl Place {
    pub fn new() -> Self {
        Place(pubgauge_testing::dds_domain())
    }

    pub fn target(&self) -> Target {
        Target::single(format!("dds://localhost/{}", self.0))
    }
}

/// A publisher and subscribers in fleets of their own, proven to be reached.
pub struct Pair {
    pub out: Rig,
    pub into: Rig,
    pub from: ClientId,
    pub topic: TopicId,
    pub place: Place,
}

impl Pair {
    pub fn open(settings: &Settings) -> Self {
        Self::with(settings, 1)
    }

    /// With so many subscribers in one fleet.
    pub fn with(settings: &Settings, subscribers: usize) -> Self {
        let place = Place::new();
        let target = place.target();
        let mut out = open(settings, &target, 1);
        let from = out.named("p");
        let topic = out.fleet.advertise(from, "a/b").expect("advertises");
        let mut into = open(settings, &target, 2);
        for n in 0..subscribers {
            let to = into.named(&format!("s{n}"));
            into.subscribe(to, "a/b");
        }
        let mut pair = Pair {
            out,
            into,
            from,
            topic,
            place,
        };
        pair.prove(subscribers);
        pair
    }

    /// Sends messages of stream 999 until all subscribers hear them, and forgets them.
    fn prove(&mut self, subscribers: usize) {
        let reached = |s: &Recorder| {
            (0..subscribers as u32).all(|n| s.seen.iter().any(|m| m.client == ClientId(n)))
        };
        let mut sent = 0;
        while !reached(&self.into.seen) {
            assert!(sent < 500, "nothing arrives");
            let (from, topic) = (self.from, self.topic);
            send_all(&mut self.out, (from, topic), 999, sent..sent + 1, 64);
            sent += 1;
            self.into.poll_until(20 * MS, reached);
        }
        self.out.poll_for(100 * MS);
        self.into.poll_for(100 * MS);
        self.into.seen.seen.clear();
    }

    pub fn send(&mut self, sequences: Range<u32>, len: usize) {
        let (from, topic) = (self.from, self.topic);
        send_all(&mut self.out, (from, topic), 0, sequences, len);
    }

    /// Polls both for a while.
    pub fn both(&mut self, duration: Nanos) {
        let end = Clock::Monotonic.now() + duration;
        while Clock::Monotonic.now() < end {
            self.out.poll_for(5 * MS);
            self.into.poll_for(5 * MS);
        }
    }
}
