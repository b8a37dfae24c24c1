//! What checks use: fleets with the events they reported, and pairs of publishers and subscribers.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicU32, Ordering};

use super::lifecycle::Lifecycle;
use super::violation::Violation;
use pubgauge_driver::Driver;
use pubgauge_driver::clock::{Clock, Nanos};
use pubgauge_driver::header::{Header, Kind, Mark};
use pubgauge_driver::payload::{Filler, Payload};
use pubgauge_driver::seam::{
    Acknowledgement, Change, ClientId, ClientSpec, Delivery, Events, Fleet, FleetConfig, Publish,
    Subscription, Target, TopicId,
};
use pubgauge_driver::settings::{Reliability, Session, Settings};

/// Longest wait without any progress, ns.
pub(super) const PATIENCE: Nanos = 10_000_000_000;
/// For how long a round of sentinels brings nothing more before the next one goes out.
const ROUND: Nanos = 50_000_000;
/// How long nothing must come before no more is expected, ns.
const SILENCE: Nanos = 300_000_000;
/// Streams from this number on are of sentinels.
const SENTINELS: u32 = 1000;
const MARK: Mark = Mark::from_seed(42);
/// Size of the largest message, in bytes.
pub(super) const LARGEST: usize = 2 * 1024 * 1024;

/// A driver and a running system, under one set of settings.
pub(super) struct Setup<'a> {
    pub driver: &'a dyn Driver,
    pub target: &'a Target,
    pub settings: Settings,
    /// The system's server, where checks may kill it.
    pub server: Option<&'a mut dyn Lifecycle>,
    /// Number of the check, so that none receives another's messages.
    number: u32,
    fleets: u32,
}

/// A fleet with the events it has reported so far.
pub(super) struct Rig {
    pub fleet: Box<dyn Fleet>,
    pub clock: Clock,
    pub seen: Seen,
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
pub(super) struct Seen {
    pub changes: Vec<(ClientId, Change)>,
    /// Without sentinels: a slow system delivers those when no check waits for them any more.
    pub delivered: Vec<Heard>,
    /// Which subscriber received a sentinel of which stream, each pair once.
    pub sentinels: Vec<(ClientId, u32)>,
    pub damaged: Vec<String>,
    /// Topics that deliveries named, by stream.
    named: BTreeMap<u32, BTreeSet<String>>,
    /// Without those of sentinels, as above.
    pub acknowledged: Vec<(ClientId, u64, Acknowledgement)>,
    reads: u64,
    before_read: bool,
    filler: Option<Filler>,
}

impl Events for Seen {
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

impl<'a> Setup<'a> {
    pub fn new(driver: &'a dyn Driver, target: &'a Target, settings: Settings) -> Self {
        // Each setup has its own topics: messages left in a system must not reach another one.
        static BEDS: AtomicU32 = AtomicU32::new(0);
        Setup {
            driver,
            target,
            settings,
            server: None,
            number: BEDS.fetch_add(1, Ordering::Relaxed) * 100,
            fleets: 0,
        }
    }

    /// Goes on to the next check.
    pub fn next(&mut self) {
        self.number += 1;
    }
}

impl Setup<'_> {
    pub fn open(&mut self, clients: usize) -> Result<Rig, Violation> {
        self.fleets += 1;
        let clock = Clock::Monotonic;
        let fleet = self.driver.open(FleetConfig {
            target: self.target.clone(),
            settings: self.settings.clone(),
            clock: clock.clone(),
            max_payload: LARGEST,
            clients,
            worker: self.number * 10 + self.fleets,
        })?;
        let filler = Filler::new(LARGEST);
        let seen = Seen {
            filler: Some(filler.clone()),
            ..Seen::default()
        };
        Ok(Rig {
            fleet,
            clock,
            seen,
            addresses: Vec::new(),
            filler,
            next: HashMap::new(),
        })
    }

    /// The name of a client of this check.
    pub fn name(&self, who: &str) -> String {
        format!("conform-{}-{}-{who}", std::process::id(), self.number)
    }

    /// The level above this check's topics.
    pub fn base(&self) -> String {
        format!("conform-{}/{}", std::process::id(), self.number)
    }

    /// A topic below [`Setup::base`].
    pub fn topic(&self, which: &str) -> String {
        format!("{}/{which}", self.base())
    }

    /// Publishers and subscribers in one fleet each, connected, subscribed to `filter`, and proven
    /// to receive from every publisher.
    pub fn pair(
        &mut self,
        publishers: usize,
        subscribers: usize,
        filter: &str,
    ) -> Result<Pair, Violation> {
        let traits = self.driver.traits(&self.settings);
        let (mut out, mut into) = (self.open(publishers)?, self.open(subscribers)?);
        let mut peers = Vec::new();
        let mut senders = Vec::new();
        for p in 0..publishers {
            let (client, address) = out.connect(ClientSpec {
                name: self.name(&format!("p{p}-{}", self.fleets)),
                publishes: true,
                ..ClientSpec::default()
            })?;
            let topic = out.fleet.advertise(client, &self.topic(&format!("t{p}")))?;
            senders.push((client, topic));
            peers.extend(address);
        }
        if traits.publishers_first && peers.len() != publishers {
            return Err("publishers come first, but told no address".into());
        }
        for s in 0..subscribers {
            let (client, _) = into.connect(ClientSpec {
                name: self.name(&format!("s{s}-{}", self.fleets)),
                subscribes: true,
                peers: peers.clone(),
                ..ClientSpec::default()
            })?;
            into.subscribe(client, filter)?;
        }
        let mut pair = Pair { out, into, senders };
        pair.prove(subscribers)?;
        Ok(pair)
    }

    /// A client that reports whether it had a session.
    pub(super) fn client(
        &self,
        rig: &mut Rig,
        who: &str,
        publishes: bool,
    ) -> Result<Joined, Violation> {
        let (client, address) = rig.connect(ClientSpec {
            name: self.name(who),
            publishes,
            subscribes: !publishes,
            ..ClientSpec::default()
        })?;
        Ok(Joined { client, address })
    }

    /// The settings with a durable session added, where the system has one.
    pub(super) fn with_session(&self) -> Option<Settings> {
        [
            None,
            Some(Reliability::AtLeastOnce),
            Some(Reliability::Reliable),
        ]
        .into_iter()
        .map(|reliability| Settings {
            session: Some(Session::Durable),
            reliability: reliability.or(self.settings.reliability),
            ..self.settings.clone()
        })
        // Messages that may be lost need not be kept for a subscriber that is away.
        .find(|s| !s.may_lose() && self.driver.resolve(s, self.target).is_ok())
    }

    /// Disconnects the subscriber; its session stays.
    pub(super) fn leave(&self, pair: &mut Pair) -> Result<(), Violation> {
        pair.into.fleet.disconnect(ClientId(0));
        pair.into
            .await_change(ClientId(0), "disconnect", |c| *c == Change::Closed)?;
        Ok(())
    }

    /// Connects the subscriber again, which subscribes again only if its session is gone; returns
    /// whether the session was there.
    pub(super) fn come_back(&self, pair: &mut Pair) -> Result<bool, Violation> {
        let into = &mut pair.into;
        let back = into.reconnect(ClientId(0))?;
        let present = matches!(
            back,
            Change::Connected {
                session_present: true,
                ..
            }
        );
        if !present {
            into.subscribe(ClientId(0), &self.topic("t0"))?;
        }
        Ok(present)
    }

    /// Waits until the system has taken everything that was accepted.
    pub(super) fn settle(&self, pair: &mut Pair) -> Result<(), Violation> {
        pair.until("acknowledgements", |p| p.out.fleet.unsettled() == 0)?;
        pair.quiet()
    }
}

/// A connected client.
pub(super) struct Joined {
    pub client: ClientId,
    pub address: Option<String>,
}

/// The sequence numbers that were received.
pub(super) fn numbers(heard: &[Heard]) -> BTreeSet<u32> {
    heard.iter().map(|m| m.sequence).collect()
}

/// Publishers and subscribers.
pub(super) struct Pair {
    pub out: Rig,
    pub into: Rig,
    /// Each publisher with its topic `t0`, `t1`, ...
    pub senders: Vec<(ClientId, TopicId)>,
}

impl Pair {
    /// Sends sentinels until each subscriber has received one of each publisher, then forgets them. They go out in
    /// rounds, the next one once the one before brings nothing more: a slow server must not be filled with them.
    pub fn prove(&mut self, subscribers: usize) -> Result<(), Violation> {
        let wanted = subscribers * self.senders.len();
        let mut heard: HashSet<(ClientId, u32)> = HashSet::new();
        let mut progress = self.out.clock.now();
        while heard.len() < wanted {
            if self.out.clock.now() - progress > PATIENCE {
                return Err(format!(
                    "only {} of {wanted} paths carried a sentinel, and none more within 10 s",
                    heard.len()
                )
                .into());
            }
            for (p, (client, topic)) in self.senders.clone().into_iter().enumerate() {
                let stream = SENTINELS + p as u32;
                if heard.iter().filter(|(_, of)| *of == stream).count() < subscribers {
                    self.out.send(client, topic, stream, 64, Kind::Sentinel)?;
                }
            }
            let mut last = self.out.clock.now();
            while heard.len() < wanted && self.out.clock.now() - last < ROUND {
                self.out.poll(5_000_000)?;
                self.into.poll(20_000_000)?;
                let before = heard.len();
                heard.extend(self.into.seen.sentinels.iter().copied());
                if heard.len() > before {
                    last = self.out.clock.now();
                    progress = last;
                }
            }
        }
        // Sentinels that are still under way must not fill the window of later messages.
        self.quiet()?;
        self.until("sentinels settled", |p| p.out.fleet.unsettled() == 0)?;
        self.into.seen.delivered.clear();
        Ok(())
    }

    pub fn quiet(&mut self) -> Result<(), Violation> {
        let mut count = usize::MAX;
        let heard = |seen: &Seen| seen.delivered.len() + seen.sentinels.len();
        while count != heard(&self.into.seen) {
            count = heard(&self.into.seen);
            let until = self.out.clock.now() + SILENCE / 3;
            while self.out.clock.now() < until {
                self.out.poll(1_000_000)?;
                self.into.poll(10_000_000)?;
            }
        }
        Ok(())
    }

    /// Polls both fleets until `done`, or until [`PATIENCE`] has passed without progress.
    pub fn until(
        &mut self,
        what: &str,
        mut done: impl FnMut(&Pair) -> bool,
    ) -> Result<(), Violation> {
        let mut progress = (self.out.clock.now(), 0);
        while !done(self) {
            let events = self.into.seen.delivered.len() + self.out.seen.acknowledged.len();
            let now = self.out.clock.now();
            if events != progress.1 {
                progress = (now, events);
            } else if now - progress.0 > PATIENCE {
                return Err(format!(
                    "{what}: nothing more came for 10 s ({} delivered)",
                    self.into.seen.delivered.len()
                )
                .into());
            }
            self.out.poll(1_000_000)?;
            self.into.poll(1_000_000)?;
        }
        if let Some(damage) = self.into.seen.damaged.first() {
            return Err(damage.as_str().into());
        }
        if self.into.seen.before_read {
            return Err("a message was reported before any `arrived`".into());
        }
        Ok(())
    }

    /// Checks that deliveries that name a topic name that of their stream: streams 0, 1 and so on are published on
    /// `t0`, `t1` and so on.
    pub fn are_named(&self, setup: &Setup<'_>) -> Result<(), Violation> {
        for (stream, topics) in &self.into.seen.named {
            let expected = setup.topic(&format!("t{stream}"));
            if let Some(other) = topics.iter().find(|topic| **topic != expected) {
                return Err(
                    format!("a message on {expected} was delivered as one on {other}").into(),
                );
            }
        }
        Ok(())
    }

    /// Sends until the subscriber receives a message, and an undamaged one.
    pub fn hears_again(&mut self) -> Result<(), Violation> {
        let (client, topic) = self.senders[0];
        let start = self.out.clock.now();
        while self.into.seen.delivered.is_empty() {
            if let Some(damage) = self.into.seen.damaged.first() {
                return Err(damage.as_str().into());
            }
            if self.out.clock.now() - start > PATIENCE {
                return Err("nothing came to a subscriber that had come back".into());
            }
            self.out.send(client, topic, 0, 64, Kind::Measured)?;
            self.out.poll(5_000_000)?;
            self.into.poll(20_000_000)?;
        }
        match self.into.seen.damaged.first() {
            Some(damage) => Err(damage.as_str().into()),
            None => Ok(()),
        }
    }

    pub fn close(mut self) -> Result<(), Violation> {
        for rig in [&mut self.out, &mut self.into] {
            let until = rig.clock.now() + 2_000_000_000;
            rig.fleet.close(until);
        }
        Ok(())
    }

    /// Sends `count` messages, polling both sides while blocked.
    pub fn send_all(&mut self, sender: usize, count: u32, len: usize) -> Result<(), Violation> {
        let (client, topic) = self.senders[sender];
        let mut progress = self.out.clock.now();
        let mut sent = 0;
        while sent < count {
            match self
                .out
                .send(client, topic, sender as u32, len, Kind::Measured)?
            {
                Publish::Accepted => {
                    sent += 1;
                    progress = self.out.clock.now();
                }
                Publish::Blocked => {
                    self.out.poll(1_000_000)?;
                    self.into.poll(1_000_000)?;
                }
                Publish::Refused(why) => return Err(format!("refused: {why:?}").into()),
            }
            if self.out.clock.now() - progress > PATIENCE {
                return Err(
                    format!("after {sent} of {count} messages none was accepted for 10 s").into(),
                );
            }
        }
        Ok(())
    }
}

impl Rig {
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
            if self.clock.now() - start > PATIENCE {
                return Err(format!("{what}: not within 10 s").into());
            }
            self.poll(20_000_000)?;
        }
    }

    /// Connects a client again. A server that has just restarted may refuse it at first, as
    /// applications experience: this tries again until [`PATIENCE`] has passed.
    pub fn reconnect(&mut self, client: ClientId) -> Result<Change, Violation> {
        let start = self.clock.now();
        loop {
            self.fleet.reconnect(client)?;
            let connected = |c: &Change| matches!(c, Change::Connected { .. });
            match self.await_change(client, "reconnect", connected) {
                Err(why) if self.clock.now() - start > PATIENCE => return Err(why),
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
