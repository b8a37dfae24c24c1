//! A fleet whose messages are checked as they come: their header, their content, and that the time is taken before them.

use pubgauge_driver::*;

use crate::SECOND;

const MARK: Mark = Mark::from_seed(17);

/// A message as it was delivered.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard {
    /// The client that got it.
    pub client: ClientId,
    /// Its topic; empty if the system does not tell.
    pub topic: String,
    /// Its purpose.
    pub kind: Kind,
    pub stream: u32,
    pub sequence: u32,
    /// Length of the payload in bytes, header included.
    pub len: usize,
    /// Marked as a last value.
    pub retained: bool,
}

/// Records what a fleet reports.
pub struct Recorder {
    pub changes: Vec<(ClientId, Change)>,
    pub seen: Vec<Heard>,
    /// Calls of [`Events::arrived`].
    pub stamps: u64,
    filler: Filler,
    since_stamp: u32,
}

impl Recorder {
    /// Sequence numbers of the messages that a client got.
    pub fn sequences(&self, client: ClientId) -> Vec<u32> {
        self.matching(|heard| heard.client == client)
    }

    /// Sequence numbers of the messages of a stream.
    pub fn of_stream(&self, stream: u32) -> Vec<u32> {
        self.matching(|heard| heard.stream == stream)
    }

    /// Sequence numbers of messages that are no sentinels.
    pub fn measured(&self) -> Vec<u32> {
        self.matching(|heard| heard.kind == Kind::Measured)
    }

    fn matching(&self, wanted: impl Fn(&Heard) -> bool) -> Vec<u32> {
        let of = self.seen.iter().filter(|heard| wanted(heard));
        of.map(|heard| heard.sequence).collect()
    }

    /// Whether a change that is wanted has happened to a client.
    pub fn has(&self, client: ClientId, wanted: impl Fn(&Change) -> bool) -> bool {
        let mut changes = self.changes.iter();
        changes.any(|(of, change)| *of == client && wanted(change))
    }

    /// Why a client has failed.
    pub fn failure(&self, client: ClientId) -> Option<&str> {
        self.changes.iter().find_map(|(of, change)| match change {
            Change::Failed(failure) if *of == client => Some(failure.why.as_str()),
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
        let since = self.since_stamp.checked_add(1);
        self.since_stamp = since.expect("arrived() comes first");
        assert!(self.since_stamp <= 64, "one stamp for 64 messages at most");
        let header = Header::decode(delivery.payload, MARK).expect("a header of ours");
        let len = delivery.payload.len();
        let expected = self.filler.body(header.stream, header.sequence, len);
        let body = &delivery.payload[header::HEADER_LEN..];
        assert!(body == expected, "the content of {header:?} is damaged");
        self.seen.push(Heard {
            client,
            topic: delivery.topic.unwrap_or_default().to_owned(),
            kind: header.kind,
            stream: header.stream,
            sequence: header.sequence,
            len,
            retained: delivery.retained,
        });
    }

    fn acknowledged(&mut self, _: ClientId, _: u64, _: Acknowledgement) {
        panic!("these systems acknowledge nothing to applications");
    }

    fn changed(&mut self, client: ClientId, change: Change) {
        self.changes.push((client, change));
    }
}

/// A fleet of a system that acknowledges nothing, with what it reported.
pub struct CheckedRig<F: Fleet + ?Sized = dyn Fleet> {
    pub fleet: Box<F>,
    pub seen: Recorder,
}

impl CheckedRig {
    /// A fleet of up to four clients and messages of up to 4 MiB.
    ///
    /// # Panics
    /// If the driver refuses.
    #[track_caller]
    pub fn open(driver: impl Driver, settings: Settings, target: Target, worker: u32) -> Self {
        let config = FleetConfig {
            worker,
            ..crate::config(target, settings)
        };
        let largest = config.max_payload;
        Self::around(driver.open(config).expect("opens"), largest)
    }
}

impl<F: Fleet + ?Sized> CheckedRig<F> {
    /// A fleet whose messages have `largest` bytes at most; the same number for fleets that hear each other.
    pub fn around(fleet: Box<F>, largest: usize) -> Self {
        CheckedRig {
            fleet,
            seen: Recorder {
                changes: Vec::new(),
                seen: Vec::new(),
                stamps: 0,
                filler: Filler::new(largest),
                since_stamp: u32::MAX,
            },
        }
    }

    /// Polls once, until `until` at the latest.
    ///
    /// # Panics
    /// If the fleet cannot be polled.
    pub fn poll(&mut self, until: Nanos) {
        self.fleet.poll(until, &mut self.seen).expect("polls");
    }

    /// Polls until `done`, for `limit` at most; says whether it was.
    pub fn poll_until(&mut self, limit: Nanos, done: impl Fn(&Recorder) -> bool) -> bool {
        let end = Clock::Monotonic.now() + limit;
        while !done(&self.seen) {
            let now = Clock::Monotonic.now();
            if now >= end {
                return false;
            }
            self.poll(end.min(now + SECOND / 100));
        }
        true
    }

    /// Polls for as long as `duration`, and at least once.
    pub fn poll_for(&mut self, duration: Nanos) {
        self.poll(0);
        self.poll_until(duration, |_| false);
    }

    /// Waits for a change of a client, and forgets it and its like.
    ///
    /// # Panics
    /// After 60 s.
    #[track_caller]
    pub fn await_change(&mut self, id: ClientId, wanted: impl Fn(&Change) -> bool) -> Change {
        let came = self.poll_until(60 * SECOND, |seen| seen.has(id, &wanted));
        let changes = &mut self.seen.changes;
        assert!(came, "nothing of the kind happened: {changes:?}");
        let like = |(of, change): &mut (ClientId, Change)| *of == id && wanted(change);
        let mut came = changes.extract_if(.., like);
        let first = came.next().expect("it came").1;
        came.for_each(drop);
        first
    }

    /// Connects and waits until it stands; its address.
    ///
    /// # Panics
    /// If it does not connect.
    #[track_caller]
    pub fn connect(&mut self, spec: &ClientSpec) -> (ClientId, Option<String>) {
        let id = self.fleet.connect(spec).expect("begins to connect");
        (id, self.connected(id))
    }

    /// Waits until a client is connected; its address.
    #[track_caller]
    pub fn connected(&mut self, id: ClientId) -> Option<String> {
        let connected = |change: &Change| matches!(change, Change::Connected { .. });
        match self.await_change(id, connected) {
            Change::Connected { address, .. } => address,
            _ => unreachable!("it was asked for this one"),
        }
    }

    /// A client that publishes and subscribes, connected.
    #[track_caller]
    pub fn named(&mut self, name: &str) -> ClientId {
        self.connect(&crate::Rig::spec(name)).0
    }

    /// Subscribes and waits until the subscription is established.
    ///
    /// # Panics
    /// If it is refused.
    #[track_caller]
    pub fn subscribe(&mut self, id: ClientId, filter: &str) {
        let begun = self.fleet.subscribe(id, &Subscription::matching(filter));
        begun.expect("subscribes");
        self.await_change(id, |change| *change == Change::Subscribed);
    }

    /// Publishes a message if it is taken.
    pub fn publish(
        &mut self,
        id: ClientId,
        topic: TopicId,
        stream: u32,
        sequence: u32,
        len: usize,
    ) -> Publish {
        self.publish_as(Kind::Measured, id, topic, (stream, sequence), len)
    }

    /// Publishes a message of a kind, with its stream and its number there.
    pub fn publish_as(
        &mut self,
        kind: Kind,
        id: ClientId,
        topic: TopicId,
        (stream, sequence): (u32, u32),
        len: usize,
    ) -> Publish {
        let head = Header {
            kind,
            intended: 1,
            lag: 0,
            stream,
            sequence,
        };
        let payload = Payload {
            head: &head.encode(MARK),
            body: self.seen.filler.body(stream, sequence, len),
        };
        self.fleet.publish(id, topic, payload, 0)
    }

    /// Publishes a message, waiting while it is blocked.
    ///
    /// # Panics
    /// If it is refused.
    #[track_caller]
    pub fn send(&mut self, id: ClientId, topic: TopicId, stream: u32, sequence: u32, len: usize) {
        loop {
            match self.publish(id, topic, stream, sequence, len) {
                Publish::Accepted => return,
                Publish::Blocked => self.writable(id),
                Publish::Refused(why) => panic!("refused: {why:?}"),
            }
        }
    }

    /// Waits until a client may publish again.
    #[track_caller]
    pub fn writable(&mut self, id: ClientId) {
        self.await_change(id, |change| *change == Change::Writable);
    }

    pub fn close(mut self) {
        self.fleet.close(Clock::Monotonic.now() + 10 * SECOND);
    }
}
