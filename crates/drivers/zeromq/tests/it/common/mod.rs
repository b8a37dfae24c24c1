//! What the tests against real sockets share: a recorder of events and a few steps.
#![allow(dead_code, missing_docs)]

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use pubgauge_driver::{
    Acknowledgement, Change, ClientId, ClientSpec, Clock, Delivery, Driver, Events, Filler, Fleet,
    FleetConfig, Header, Kind, Mark, Nanos, Payload, Publish, Settings, Subscription, Target,
    TopicId,
};
use pubgauge_driver_zeromq::{
    ForwarderAddress, ForwarderCounts, ForwarderOptions, ZeromqDriver, forwarder,
};

pub const MARK: Mark = Mark::from_seed(17);
pub const SECOND: Nanos = 1_000_000_000;

/// One delivered message.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    pub client: ClientId,
    pub topic: String,
    pub len: usize,
    pub stream: u32,
    pub sequence: u32,
}

/// Records what a fleet reports, and checks the content of each message.
pub struct Recorder {
    pub changes: Vec<(ClientId, Change)>,
    pub seen: Vec<Seen>,
    pub stamps: u64,
    filler: Filler,
    since_stamp: u32,
}

impl Default for Recorder {
    fn default() -> Self {
        Recorder {
            changes: Vec::new(),
            seen: Vec::new(),
            stamps: 0,
            filler: Filler::new(4 << 20),
            since_stamp: u32::MAX,
        }
    }
}

impl Recorder {
    pub fn sequences(&self, client: ClientId) -> Vec<u32> {
        let of_client = self.seen.iter().filter(|s| s.client == client);
        of_client.map(|s| s.sequence).collect()
    }

    pub fn has(&self, client: ClientId, wanted: impl Fn(&Change) -> bool) -> bool {
        self.changes
            .iter()
            .any(|(c, change)| *c == client && wanted(change))
    }

    pub fn failure(&self, client: ClientId) -> Option<&str> {
        self.changes.iter().find_map(|(c, change)| match change {
            Change::Failed(failure) if *c == client => Some(failure.why.as_str()),
            _ => None,
        })
    }
}

impl Events for Recorder {
    fn arrived(&mut self) {
        self.stamps += 1;
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
        let body = &delivery.payload[16..];
        let expected = self
            .filler
            .body(header.stream, header.sequence, delivery.payload.len());
        assert!(body == expected, "the content of {header:?} is damaged");
        self.seen.push(Seen {
            client,
            topic: delivery.topic.expect("a topic").to_owned(),
            len: delivery.payload.len(),
            stream: header.stream,
            sequence: header.sequence,
        });
    }

    fn acknowledged(&mut self, _: ClientId, _: u64, _: Acknowledgement) {
        panic!("ZeroMQ acknowledges nothing");
    }

    fn changed(&mut self, client: ClientId, change: Change) {
        self.changes.push((client, change));
    }
}

/// A fleet with its recorder.
pub struct Rig {
    pub fleet: Box<dyn Fleet>,
    pub seen: Recorder,
    filler: Filler,
}

impl Rig {
    pub fn open(driver: ZeromqDriver, settings: Settings, target: Target, worker: u32) -> Self {
        let config = FleetConfig {
            target,
            settings,
            clock: Clock::Monotonic,
            max_payload: 4 << 20,
            clients: 4,
            worker,
        };
        Rig::around(driver.open(config).expect("opens"))
    }

    pub fn around(fleet: Box<dyn Fleet>) -> Self {
        Rig {
            fleet,
            seen: Recorder::default(),
            filler: Filler::new(4 << 20),
        }
    }

    /// Polls until `done`, for `limit` at most; says whether it was.
    pub fn poll_until(&mut self, limit: Nanos, done: impl Fn(&Recorder) -> bool) -> bool {
        let end = Clock::Monotonic.now() + limit;
        while !done(&self.seen) {
            let now = Clock::Monotonic.now();
            if now >= end {
                return false;
            }
            self.fleet
                .poll(end.min(now + SECOND / 100), &mut self.seen)
                .expect("polls");
        }
        true
    }

    /// Polls for as long as `duration`, and at least once.
    pub fn poll_for(&mut self, duration: Nanos) {
        self.fleet.poll(0, &mut self.seen).expect("polls");
        self.poll_until(duration, |_| false);
    }

    /// Connects and waits until it stands; gives its address.
    pub fn connect(&mut self, spec: &ClientSpec) -> (ClientId, Option<String>) {
        let id = self.fleet.connect(spec).expect("begins to connect");
        (id, self.connected(id))
    }

    /// Waits for the next `Connected` of a client.
    pub fn connected(&mut self, id: ClientId) -> Option<String> {
        let ok = self.poll_until(60 * SECOND, |seen| {
            seen.has(id, |c| matches!(c, Change::Connected { .. }))
        });
        assert!(
            ok,
            "client {id:?} does not connect: {:?}",
            self.seen.changes
        );
        let position = self
            .seen
            .changes
            .iter()
            .position(|(c, change)| *c == id && matches!(change, Change::Connected { .. }));
        match self.seen.changes.remove(position.unwrap()) {
            (_, Change::Connected { address, .. }) => address,
            _ => unreachable!(),
        }
    }

    pub fn subscribe(&mut self, id: ClientId, filter: &str) {
        self.fleet
            .subscribe(id, &subscription(filter))
            .expect("subscribes");
        let ok = self.poll_until(60 * SECOND, |seen| {
            seen.has(id, |c| *c == Change::Subscribed)
        });
        assert!(ok, "no Subscribed for {filter}");
        self.seen
            .changes
            .retain(|(c, change)| *c != id || *change != Change::Subscribed);
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
        sequence: u32,
        len: usize,
    ) {
        loop {
            match self.publish(id, topic, stream, sequence, len) {
                Publish::Accepted => return,
                Publish::Blocked => self.writable(id),
                Publish::Refused(why) => panic!("refused: {why:?}"),
            }
        }
    }

    pub fn writable(&mut self, id: ClientId) {
        let ok = self.poll_until(60 * SECOND, |s| s.has(id, |c| *c == Change::Writable));
        assert!(ok, "blocked for good");
        self.seen.changes.retain(|(_, c)| *c != Change::Writable);
    }

    pub fn close(mut self) {
        self.fleet.close(Clock::Monotonic.now() + 10 * SECOND);
    }
}

pub fn subscription(filter: &str) -> Subscription {
    Subscription {
        filter: filter.to_owned(),
        group: None,
    }
}

pub fn publisher(name: &str) -> ClientSpec {
    ClientSpec {
        name: name.to_owned(),
        publishes: true,
        ..ClientSpec::default()
    }
}

pub fn subscriber(name: &str, peers: &[String]) -> ClientSpec {
    ClientSpec {
        name: name.to_owned(),
        subscribes: true,
        peers: peers.to_vec(),
        ..ClientSpec::default()
    }
}

pub fn settings(json: serde_json::Value) -> Settings {
    serde_json::from_value(json).expect("settings")
}

/// A short private folder: socket paths are limited to 107 bytes.
pub fn scratch() -> tempfile::TempDir {
    tempfile::Builder::new()
        .prefix("pg")
        .tempdir()
        .expect("a folder")
}

pub fn direct(scratch: &tempfile::TempDir) -> Target {
    Target {
        scratch: scratch.path().to_owned(),
        ..Target::default()
    }
}

/// A publisher fleet and a subscriber fleet with one client each, where the subscriber has seen
/// a first message, so that the rest cannot be missed.
pub struct Pair {
    pub publishing: Rig,
    pub subscribing: Rig,
    pub from: ClientId,
    pub to: ClientId,
    pub topic: TopicId,
    /// Where the publisher can be reached; direct topology only.
    pub address: Option<String>,
}

impl Pair {
    pub fn open(driver: ZeromqDriver, settings: &Settings, target: &Target) -> Self {
        let mut publishing = Rig::open(driver, settings.clone(), target.clone(), 0);
        let (from, address) = publishing.connect(&publisher("p"));
        let peers: Vec<String> = address.iter().cloned().collect();
        let mut subscribing = Rig::open(driver, settings.clone(), target.clone(), 1);
        let (to, _) = subscribing.connect(&subscriber("s", &peers));
        subscribing.subscribe(to, "a/b");
        let topic = publishing.fleet.advertise(from, "a/b").expect("advertises");
        let mut pair = Pair {
            publishing,
            subscribing,
            from,
            to,
            topic,
            address,
        };
        pair.prove_delivery();
        pair
    }

    /// Sends messages of stream 999 until one arrives, and takes them all away again.
    pub fn prove_delivery(&mut self) {
        let mut sent = 0;
        while self.subscribing.seen.seen.is_empty() {
            assert!(sent < 1000, "nothing arrives");
            self.publishing
                .publish_all(self.from, self.topic, 999, sent, 16);
            sent += 1;
            self.publishing.poll_for(0);
            self.subscribing
                .poll_until(SECOND / 100, |s| !s.seen.is_empty());
        }
        self.subscribing.poll_until(60 * SECOND, |s| {
            s.seen.last().is_some_and(|last| last.sequence == sent - 1)
        });
        self.subscribing.seen.seen.clear();
    }
}

/// A forwarder in a thread of its own.
pub struct RunningForwarder {
    pub address: ForwarderAddress,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<ForwarderCounts>>,
}

impl RunningForwarder {
    pub fn tcp(settings: &Settings) -> Self {
        Self::start(
            ForwarderAddress::Tcp {
                host: Ipv4Addr::LOCALHOST.to_string(),
                xsub_port: 0,
                xpub_port: 0,
            },
            settings,
        )
    }

    pub fn ipc(scratch: &tempfile::TempDir, settings: &Settings) -> Self {
        let path = |name: &str| scratch.path().join(name).display().to_string();
        Self::start(
            ForwarderAddress::Ipc {
                xsub_path: path("in"),
                xpub_path: path("out"),
            },
            settings,
        )
    }

    pub fn start(address: ForwarderAddress, settings: &Settings) -> Self {
        let options = ForwarderOptions::new(address, settings).expect("options");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            forwarder::run(&options, |a| tell.send(a.clone()).unwrap(), &stopped).expect("runs")
        });
        RunningForwarder {
            address: told.recv().expect("binds"),
            stop,
            thread: Some(thread),
        }
    }

    pub fn target(&self) -> Target {
        Target {
            endpoints: vec![self.address.to_string()],
            scratch: PathBuf::from("/nonexistent"),
            ..Target::default()
        }
    }

    pub fn stop(&mut self) -> ForwarderCounts {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().expect("runs").join().expect("ends well")
    }
}

impl Drop for RunningForwarder {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.stop();
        }
    }
}
