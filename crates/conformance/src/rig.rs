//! A fleet with the events that it reported.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::violation::Violation;
use pubgauge_driver::clock::{Clock, Nanos};
use pubgauge_driver::header::{Header, Kind, Mark};
use pubgauge_driver::payload::{Filler, Payload};
use pubgauge_driver::seam::{
    Acknowledgement, Change, ClientId, ClientSpec, Delivery, Events, Fleet, Publish, Subscription,
    TopicId,
};

/// Longest wait without any progress, ns.
pub(super) const PATIENCE: Nanos = 10_000_000_000;
/// Longest wait for a connection or a subscription: a server that has just started on a busy machine takes its time.
const ANSWERED: Nanos = 60_000_000_000;
/// How long nothing must come before no more is expected, ns.
pub(super) const SILENCE: Nanos = 300_000_000;
/// Streams from this number on are of sentinels.
pub(super) const SENTINELS: u32 = 1000;
const MARK: Mark = Mark::from_seed(42);
/// Size of the largest message, in bytes.
pub(super) const LARGEST: usize = 2 * 1024 * 1024;

/// A fleet with the events it has reported so far.
pub(super) struct Rig {
    pub fleet: Box<dyn Fleet>,
    pub clock: Clock,
    pub seen: Received,
    /// Addresses of its publishers, in brokerless systems.
    pub addresses: Vec<String>,
    filler: Filler,
    next: HashMap<u32, u32>,
}

/// One delivered message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heard {
    pub client: ClientId,
    pub stream: u32,
    pub sequence: u32,
    /// Length in bytes.
    pub len: usize,
    pub retained: bool,
}

#[derive(Default)]
pub(super) struct Received {
    pub changes: Vec<(ClientId, Change)>,
    /// Without sentinels: a slow system delivers those when no check waits for them any more.
    pub delivered: Vec<Heard>,
    /// Which subscriber received a sentinel of which stream, each pair once.
    pub sentinels: Vec<(ClientId, u32)>,
    pub damaged: Vec<String>,
    /// Topics that deliveries named, by stream.
    pub named: BTreeMap<u32, BTreeSet<String>>,
    /// Without those of sentinels, as above.
    pub acknowledged: Vec<(ClientId, u64, Acknowledgement)>,
    reads: u64,
    /// A message was reported before any `arrived`.
    pub before_read: bool,
    filler: Option<Filler>,
}

impl Events for Received {
    fn arrived(&mut self) {
        self.reads += 1;
    }

    fn delivered(&mut self, client: ClientId, delivery: Delivery<'_>) {
        self.before_read |= self.reads == 0;
        let Some(header) = Header::decode(delivery.payload, MARK) else {
            self.damaged.push(format!(
                "{} bytes without our header",
                delivery.payload.len()
            ));
            return;
        };
        if let Some(filler) = &self.filler
            && filler.body(header.stream, header.sequence, delivery.payload.len())
                != &delivery.payload[16..]
        {
            self.damaged.push(format!(
                "message {} of {} B is damaged",
                header.sequence,
                delivery.payload.len()
            ));
        }
        if header.kind == Kind::Sentinel {
            self.sentinels.push((client, header.stream));
            return;
        }
        if let Some(topic) = delivery.topic {
            let named = self.named.entry(header.stream).or_default();
            if !named.contains(topic) {
                named.insert(topic.to_owned());
            }
        }
        self.delivered.push(Heard {
            client,
            stream: header.stream,
            sequence: header.sequence,
            len: delivery.payload.len(),
            retained: delivery.retained,
        });
    }

    fn acknowledged(&mut self, client: ClientId, tag: u64, answer: Acknowledgement) {
        if tag >> 32 < u64::from(SENTINELS) {
            self.acknowledged.push((client, tag, answer));
        }
    }

    fn changed(&mut self, client: ClientId, change: Change) {
        self.changes.push((client, change));
    }
}

/// The sequence numbers that were received.
pub(super) fn numbers(heard: &[Heard]) -> BTreeSet<u32> {
    heard.iter().map(|m| m.sequence).collect()
}

impl Rig {
    pub fn new(fleet: Box<dyn Fleet>, clock: Clock) -> Rig {
        let filler = Filler::new(LARGEST);
        Rig {
            fleet,
            clock,
            seen: Received {
                filler: Some(filler.clone()),
                ..Received::default()
            },
            addresses: Vec::new(),
            filler,
            next: HashMap::new(),
        }
    }

    pub fn poll(&mut self, at_most: Nanos) -> Result<(), Violation> {
        let until = self.clock.now() + at_most;
        Ok(self.fleet.poll(until, &mut self.seen)?)
    }

    pub fn await_change(
        &mut self,
        client: ClientId,
        what: &str,
        wanted: fn(&Change) -> bool,
    ) -> Result<Change, Violation> {
        let start = self.clock.now();
        loop {
            if let Some(index) = self
                .seen
                .changes
                .iter()
                .position(|(c, change)| *c == client && wanted(change))
            {
                return Ok(self.seen.changes.remove(index).1);
            }
            let failed = |(c, change): &(ClientId, Change)| match change {
                Change::Failed(failure) if *c == client => Some(failure.why.clone()),
                Change::SubscriptionRefused(why) if *c == client => Some(why.clone()),
                _ => None,
            };
            if let Some(why) = self.seen.changes.iter().find_map(failed) {
                return Err(format!("{what}: failed: {why}").into());
            }
            if self.clock.now() - start > ANSWERED {
                return Err(format!("{what}: not within 60 s").into());
            }
            self.poll(20_000_000)?;
        }
    }

    /// Connects a client again. A server that has just restarted may refuse it at first, as
    /// applications experience: this tries again until [`ANSWERED`] has passed.
    pub fn reconnect(&mut self, client: ClientId) -> Result<Change, Violation> {
        let start = self.clock.now();
        loop {
            self.fleet.reconnect(client)?;
            let connected = |c: &Change| matches!(c, Change::Connected { .. });
            match self.await_change(client, "reconnect", connected) {
                Err(why) if self.clock.now() - start > ANSWERED => return Err(why),
                Err(_) => {
                    let failed = |c: &Change| matches!(c, Change::Failed(_) | Change::Closed);
                    let changes = &mut self.seen.changes;
                    changes.retain(|(c, change)| *c != client || !failed(change));
                    self.poll(SILENCE)?;
                }
                connected => return connected,
            }
        }
    }

    pub fn connect(&mut self, spec: ClientSpec) -> Result<(ClientId, Option<String>), Violation> {
        let client = self.fleet.connect(&spec)?;
        match self.await_change(client, "connect", |c| matches!(c, Change::Connected { .. }))? {
            Change::Connected { address, .. } => {
                self.addresses.extend(address.clone());
                Ok((client, address))
            }
            _ => Err("connect: another change than asked for".into()),
        }
    }

    pub fn subscribe(&mut self, client: ClientId, filter: &str) -> Result<(), Violation> {
        self.subscribe_in(client, filter, None)
    }

    pub fn subscribe_in(
        &mut self,
        client: ClientId,
        filter: &str,
        group: Option<&str>,
    ) -> Result<(), Violation> {
        self.ask(client, filter, group)?;
        self.subscribed(client)
    }

    /// Waits for the answer to a subscription.
    pub fn subscribed(&mut self, client: ClientId) -> Result<(), Violation> {
        self.await_change(client, "subscribe", |c| matches!(c, Change::Subscribed))
            .map(|_| ())
    }

    /// Sends a subscription, without waiting for the answer.
    pub fn ask(
        &mut self,
        client: ClientId,
        filter: &str,
        group: Option<&str>,
    ) -> Result<(), Violation> {
        let subscription = Subscription {
            filter: filter.into(),
            group: group.map(str::to_owned),
        };
        Ok(self.fleet.subscribe(client, &subscription)?)
    }

    pub fn send(
        &mut self,
        client: ClientId,
        topic: TopicId,
        stream: u32,
        len: usize,
        kind: Kind,
    ) -> Result<Publish, Violation> {
        let next = self.next.entry(stream).or_default();
        let head = Header {
            kind,
            intended: 0,
            lag: 0,
            stream,
            sequence: *next,
        }
        .encode(MARK);
        let payload = Payload {
            head: &head,
            body: self.filler.body(stream, *next, len),
        };
        let outcome = self.fleet.publish(
            client,
            topic,
            payload,
            u64::from(stream) << 32 | u64::from(*next),
        );
        if outcome == Publish::Accepted {
            *next += 1;
        }
        Ok(outcome)
    }
}
