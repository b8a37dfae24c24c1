//! What the tests against real sockets share: a recorder of events and a few steps.
#![allow(dead_code, missing_docs)]

use pubgauge_driver::{
    Acknowledgement, Change, ClientId, ClientSpec, Clock, Delivery, Events, Filler, Fleet,
    FleetConfig, Header, Kind, Mark, Nanos, Payload, Publish, Settings, Subscription, Target,
    TopicId,
};
use pubgauge_driver_cyclonedds::{CycloneFleet, CycloneddsDriver};

pub const MARK: Mark = Mark::from_seed(17);
pub const MS: Nanos = 1_000_000;
pub const SECOND: Nanos = 1_000_000_000;
const LARGEST: usize = 1 << 15;

/// One delivered message.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    pub client: ClientId,
    pub topic: Option<String>,
    pub stream: u32,
    pub sequence: u32,
    pub retained: bool,
}

/// Records what a fleet reports, and checks the content of each message.
pub struct Recorder {
    pub changes: Vec<(ClientId, Change)>,
    pub seen: Vec<Seen>,
    filler: Filler,
    since_stamp: u32,
}

impl Recorder {
    pub fn sequences(&self) -> Vec<u32> {
        self.seen.iter().map(|s| s.sequence).collect()
    }

    pub fn of(&self, stream: u32) -> Vec<u32> {
        let own = self.seen.iter().filter(|s| s.stream == stream);
        own.map(|s| s.sequence).collect()
    }

    pub fn has(&self, client: ClientId, wanted: impl Fn(&Change) -> bool) -> bool {
        self.changes
            .iter()
            .any(|(c, change)| *c == client && wanted(change))
    }
}

impl Events for Recorder {
    fn arrived(&mut self) {
        self.since_stamp = 0;
    }

    fn delivered(&mut self, client: ClientId, delivery: Delivery<'_>) {
        self.since_stamp = self
            .since_stamp
            .checked_add(1)
            .expect("arrived() comes first");
        assert!(
            self.since_stamp <= 64,
            "one stamp for more than 64 messages"
        );
        let header = Header::decode(delivery.payload, MARK).expect("a header of ours");
        let len = delivery.payload.len();
        let expected = self.filler.body(header.stream, header.sequence, len);
        assert!(
            delivery.payload[16..] == *expected,
            "the content of {header:?} is damaged"
        );
        self.seen.push(Seen {
            client,
            topic: delivery.topic.map(str::to_owned),
            stream: header.stream,
            sequence: header.sequence,
            retained: delivery.retained,
        });
    }

    fn acknowledged(&mut self, _: ClientId, _: u64, _: Acknowledgement) {
        panic!("DDS acknowledges nothing to the application");
    }

    fn changed(&mut self, client: ClientId, change: Change) {
        self.changes.push((client, change));
    }
}

/// A fleet with its recorder.
pub struct Rig {
    pub fleet: CycloneFleet,
    pub seen: Recorder,
    filler: Filler,
}

impl Rig {
    pub fn open(settings: &Settings, target: &Target, worker: u32) -> Self {
        Self::try_open(settings, target, worker).expect("opens")
    }

    pub fn try_open(
        settings: &Settings,
        target: &Target,
        worker: u32,
    ) -> Result<Self, pubgauge_driver::DriverError> {
        let config = FleetConfig {
            target: target.clone(),
            settings: settings.clone(),
            clock: Clock::Monotonic,
            max_payload: LARGEST,
            clients: 4,
            worker,
        };
        Ok(Rig {
            fleet: CycloneddsDriver.open_fleet(&config)?,
            seen: Recorder {
                changes: Vec::new(),
                seen: Vec::new(),
                filler: Filler::new(LARGEST),
                since_stamp: u32::MAX,
            },
            filler: Filler::new(LARGEST),
        })
    }

    pub fn connect(&mut self, name: &str) -> ClientId {
        let spec = ClientSpec {
            name: name.to_owned(),
            publishes: true,
            subscribes: true,
            ..ClientSpec::default()
        };
        let id = self.fleet.connect(&spec).expect("connects");
        self.await_change(id, |c| matches!(c, Change::Connected { .. }));
        id
    }

    pub fn subscribe(&mut self, id: ClientId, filter: &str) {
        self.fleet
            .subscribe(id, &subscription(filter))
            .expect("subscribes");
        self.await_change(id, |c| *c == Change::Subscribed);
    }

    pub fn await_change(&mut self, id: ClientId, wanted: impl Fn(&Change) -> bool) {
        let came = self.poll_until(60 * SECOND, |s| s.has(id, &wanted));
        assert!(
            came,
            "nothing of the kind happened: {:?}",
            self.seen.changes
        );
        self.seen
            .changes
            .retain(|(c, change)| *c != id || !wanted(change));
    }

    /// Polls until `done`, for `limit` at most; says whether it was.
    pub fn poll_until(&mut self, limit: Nanos, done: impl Fn(&Recorder) -> bool) -> bool {
        let end = Clock::Monotonic.now() + limit;
        while !done(&self.seen) {
            let now = Clock::Monotonic.now();
            if now >= end {
                return false;
            }
            self.poll(end.min(now + 10 * MS));
        }
        true
    }

    pub fn poll_for(&mut self, duration: Nanos) {
        self.poll_until(duration, |_| false);
    }

    pub fn poll(&mut self, until: Nanos) {
        self.fleet.poll(until, &mut self.seen).expect("polls");
    }

    pub fn publish(
        &mut self,
        id: ClientId,
        topic: TopicId,
        stream: u32,
        sequence: u32,
        len: usize,
    ) -> Publish {
        let head = Header {
            kind: Kind::Measured,
            intended: 1,
            lag: 0,
            stream,
            sequence,
        }
        .encode(MARK);
        let body = self.filler.body(stream, sequence, len);
        self.fleet
            .publish(id, topic, Payload { head: &head, body }, 0)
    }

    /// Publishes, waiting while blocked.
    pub fn publish_all(
        &mut self,
        id: ClientId,
        topic: TopicId,
        stream: u32,
        sequences: std::ops::Range<u32>,
        len: usize,
    ) {
        for sequence in sequences {
            while self.publish(id, topic, stream, sequence, len) == Publish::Blocked {
                self.await_change(id, |c| *c == Change::Writable);
            }
        }
        self.poll(0);
    }
}

pub fn subscription(filter: &str) -> Subscription {
    Subscription {
        filter: filter.to_owned(),
        group: None,
    }
}

pub fn settings(json: serde_json::Value) -> Settings {
    serde_json::from_value(json).expect("settings")
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
        Target {
            endpoints: vec![format!("dds://localhost/{}", self.0)],
            ..Target::default()
        }
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
        let mut out = Rig::open(settings, &target, 1);
        let from = out.connect("p");
        let topic = out.fleet.advertise(from, "a/b").expect("advertises");
        let mut into = Rig::open(settings, &target, 2);
        for n in 0..subscribers {
            let to = into.connect(&format!("s{n}"));
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
            self.out.publish_all(from, topic, 999, sent..sent + 1, 64);
            sent += 1;
            self.into.poll_until(20 * MS, reached);
        }
        self.out.poll_for(100 * MS);
        self.into.poll_for(100 * MS);
        self.into.seen.seen.clear();
    }

    pub fn send(&mut self, sequences: std::ops::Range<u32>, len: usize) {
        let (from, topic) = (self.from, self.topic);
        self.out.publish_all(from, topic, 0, sequences, len);
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
