//! The conformance suite: what every driver must do, checked through the seam against a running
//! system. A driver's own tests call [`check`]; what a system cannot do is a named
//! [`Exception`] with its reason, never a check left out.

use std::collections::HashMap;

use crate::clock::{Clock, Nanos};
use crate::header::{Header, Kind};
use crate::payload::{Filler, Payload};
use crate::seam::{
    Acknowledgement, Change, ClientId, ClientSpec, Delivery, Driver, Events, Fleet, FleetConfig,
    Publish, Refusal, Subscription, Target, TopicId,
};
use crate::settings::Settings;

/// Longest wait for anything, ns.
const PATIENCE: Nanos = 10_000_000_000;
/// How long nothing must come before it counts as nothing, ns.
const SILENCE: Nanos = 300_000_000;
const NONCE: u8 = 42;
const LARGEST: usize = 2 * 1024 * 1024;

/// A check that a system is known to fail, and why.
#[derive(Clone, Copy, Debug)]
pub struct Exception {
    /// The check's name.
    pub check: &'static str,
    /// Why the system cannot do it.
    pub reason: &'static str,
}

/// What became of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It holds.
    Passed,
    /// It does not hold, as expected, for this reason.
    Excepted(&'static str),
    /// It does not hold.
    Failed(String),
}

type Check = fn(&mut Bed<'_>) -> Result<(), String>;

/// The checks, by name; see [`check_names`].
const CHECKS: [(&str, Check); 12] = [
    ("resolve-answers-for-every-setting", resolve_answers),
    ("refuses-before-connected", refuses_before_connected),
    ("delivers-in-order", delivers_in_order),
    ("sizes-16-b-to-2-mb", sizes),
    ("other-topics-stay-away", other_topics),
    ("many-to-one-and-one-to-many", many),
    ("late-subscriber-gets-what-follows", late_subscriber),
    ("back-pressure-is-released", back_pressure),
    ("acknowledges-what-it-promises", acknowledges),
    ("poll-keeps-time", poll_keeps_time),
    ("crashed-publisher-comes-back", crash),
    ("closes-in-time", closes),
];

/// The names of all checks.
pub fn check_names() -> impl Iterator<Item = &'static str> {
    CHECKS.iter().map(|(name, _)| *name)
}

/// Runs all checks. `target` gives the running system's address; `scratch` folders and the like
/// are the caller's.
pub fn check(
    driver: &dyn Driver,
    target: &Target,
    settings: &Settings,
    exceptions: &[Exception],
) -> Vec<(&'static str, Outcome)> {
    let mut outcomes = Vec::new();
    for (number, (name, check)) in CHECKS.into_iter().enumerate() {
        let mut bed = Bed {
            driver,
            target,
            settings,
            number,
            fleets: 0,
        };
        let exception = exceptions.iter().find(|e| e.check == name);
        let outcome = match (check(&mut bed), exception) {
            (Ok(()), None) => Outcome::Passed,
            (Err(_), Some(exception)) => Outcome::Excepted(exception.reason),
            (Err(why), None) => Outcome::Failed(why),
            (Ok(()), Some(exception)) => Outcome::Failed(format!(
                "it holds, although an exception says it does not ({}): remove the exception",
                exception.reason
            )),
        };
        outcomes.push((name, outcome));
    }
    outcomes
}

/// All checks that failed, in words; empty if the driver conforms.
pub fn failures(outcomes: &[(&str, Outcome)]) -> Vec<String> {
    let failed = |(name, outcome): &(&str, Outcome)| match outcome {
        Outcome::Failed(why) => Some(format!("{name}: {why}")),
        _ => None,
    };
    outcomes.iter().filter_map(failed).collect()
}

struct Bed<'a> {
    driver: &'a dyn Driver,
    target: &'a Target,
    settings: &'a Settings,
    number: usize,
    fleets: u32,
}

/// A fleet with what it reported so far.
struct Rig {
    fleet: Box<dyn Fleet>,
    clock: Clock,
    seen: Seen,
    filler: Filler,
    next: HashMap<u32, u32>,
}

#[derive(Default)]
struct Seen {
    changes: Vec<(ClientId, Change)>,
    delivered: Vec<(ClientId, u32, u32, usize)>,
    damaged: Vec<String>,
    acknowledged: Vec<(ClientId, u64, Acknowledgement)>,
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
        match Header::decode(delivery.payload, NONCE) {
            None => self.damaged.push(format!(
                "{} bytes without our header",
                delivery.payload.len()
            )),
            Some(header) => {
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
                self.delivered.push((
                    client,
                    header.stream,
                    header.sequence,
                    delivery.payload.len(),
                ));
            }
        }
    }

    fn acknowledged(&mut self, client: ClientId, tag: u64, answer: Acknowledgement) {
        self.acknowledged.push((client, tag, answer));
    }

    fn changed(&mut self, client: ClientId, change: Change) {
        self.changes.push((client, change));
    }
}

impl Bed<'_> {
    fn open(&mut self, clients: usize) -> Result<Rig, String> {
        self.fleets += 1;
        let clock = Clock::Monotonic;
        let fleet = self
            .driver
            .open(FleetConfig {
                target: self.target.clone(),
                settings: self.settings.clone(),
                clock: clock.clone(),
                max_payload: LARGEST,
                clients,
                worker: self.number as u32 * 10 + self.fleets,
            })
            .map_err(|e| e.to_string())?;
        let filler = Filler::new(LARGEST);
        let seen = Seen {
            filler: Some(filler.clone()),
            ..Seen::default()
        };
        Ok(Rig {
            fleet,
            clock,
            seen,
            filler,
            next: HashMap::new(),
        })
    }

    fn name(&self, who: &str) -> String {
        format!("conform-{}-{}-{who}", std::process::id(), self.number)
    }

    fn topic(&self, which: &str) -> String {
        format!("conform/{}/{which}", self.number)
    }

    /// Publishers and subscribers in one fleet each, connected, subscribed to `filter`, and
    /// proven to be reached by every publisher.
    fn pair(
        &mut self,
        publishers: usize,
        subscribers: usize,
        filter: &str,
    ) -> Result<Pair, String> {
        let traits = self.driver.traits(self.settings);
        let (mut out, mut into) = (self.open(publishers)?, self.open(subscribers)?);
        let mut peers = Vec::new();
        let mut senders = Vec::new();
        for p in 0..publishers {
            let (client, address) = out.connect(ClientSpec {
                name: self.name(&format!("p{p}-{}", self.fleets)),
                publishes: true,
                ..ClientSpec::default()
            })?;
            let topic = out
                .fleet
                .advertise(client, &self.topic(&format!("t{p}")))
                .map_err(|e| e.to_string())?;
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
}

struct Pair {
    out: Rig,
    into: Rig,
    senders: Vec<(ClientId, TopicId)>,
}

impl Pair {
    /// Sends sentinels until each subscriber has one of each publisher, then forgets them.
    fn prove(&mut self, subscribers: usize) -> Result<(), String> {
        let start = self.out.clock.now();
        let mut heard: HashMap<(u32, u32), bool> = HashMap::new();
        while heard.len() < subscribers * self.senders.len() {
            if self.out.clock.now() - start > PATIENCE {
                return Err(format!(
                    "only {} of {} paths carried a sentinel within 10 s",
                    heard.len(),
                    subscribers * self.senders.len()
                ));
            }
            for (p, (client, topic)) in self.senders.clone().into_iter().enumerate() {
                self.out
                    .send(client, topic, 1000 + p as u32, 64, Kind::Sentinel)?;
            }
            self.out.poll(5_000_000)?;
            self.into.poll(20_000_000)?;
            for (client, stream, ..) in self.into.seen.delivered.drain(..) {
                heard.insert((client.0, stream), true);
            }
        }
        // What is still on its way must not be taken for what follows.
        self.quiet()?;
        self.into.seen.delivered.clear();
        self.out.seen.acknowledged.clear();
        Ok(())
    }

    fn quiet(&mut self) -> Result<(), String> {
        let mut count = usize::MAX;
        while count != self.into.seen.delivered.len() {
            count = self.into.seen.delivered.len();
            let until = self.out.clock.now() + SILENCE / 3;
            while self.out.clock.now() < until {
                self.out.poll(1_000_000)?;
                self.into.poll(10_000_000)?;
            }
        }
        Ok(())
    }

    /// Polls both until `done` or patience ends.
    fn until(&mut self, what: &str, mut done: impl FnMut(&Pair) -> bool) -> Result<(), String> {
        let start = self.out.clock.now();
        while !done(self) {
            if self.out.clock.now() - start > PATIENCE {
                return Err(format!(
                    "{what}: not within 10 s ({} delivered)",
                    self.into.seen.delivered.len()
                ));
            }
            self.out.poll(1_000_000)?;
            self.into.poll(1_000_000)?;
        }
        if let Some(damage) = self.into.seen.damaged.first() {
            return Err(damage.clone());
        }
        if self.into.seen.before_read {
            return Err("a message was reported before any `arrived`".into());
        }
        Ok(())
    }

    fn close(mut self) -> Result<(), String> {
        for rig in [&mut self.out, &mut self.into] {
            let until = rig.clock.now() + 2_000_000_000;
            rig.fleet.close(until);
        }
        Ok(())
    }

    /// Sends `count` messages, polling both sides while blocked.
    fn send_all(&mut self, sender: usize, count: u32, len: usize) -> Result<(), String> {
        let (client, topic) = self.senders[sender];
        let start = self.out.clock.now();
        let mut sent = 0;
        while sent < count {
            match self
                .out
                .send(client, topic, sender as u32, len, Kind::Measured)?
            {
                Publish::Accepted => sent += 1,
                Publish::Blocked => {
                    self.out.poll(1_000_000)?;
                    self.into.poll(1_000_000)?;
                }
                Publish::Refused(why) => return Err(format!("refused: {why:?}")),
            }
            if self.out.clock.now() - start > PATIENCE {
                return Err(format!(
                    "only {sent} of {count} messages were accepted within 10 s"
                ));
            }
        }
        Ok(())
    }
}

impl Rig {
    fn poll(&mut self, at_most: Nanos) -> Result<(), String> {
        let until = self.clock.now() + at_most;
        self.fleet
            .poll(until, &mut self.seen)
            .map_err(|e| e.to_string())
    }

    fn await_change(
        &mut self,
        client: ClientId,
        what: &str,
        wanted: fn(&Change) -> bool,
    ) -> Result<Change, String> {
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
                Change::Failed(why) if *c == client => Some(why.clone()),
                _ => None,
            };
            if let Some(why) = self.seen.changes.iter().find_map(failed) {
                return Err(format!("{what}: failed: {why}"));
            }
            if self.clock.now() - start > PATIENCE {
                return Err(format!("{what}: not within 10 s"));
            }
            self.poll(20_000_000)?;
        }
    }

    fn connect(&mut self, spec: ClientSpec) -> Result<(ClientId, Option<String>), String> {
        let client = self.fleet.connect(&spec).map_err(|e| e.to_string())?;
        match self.await_change(client, "connect", |c| matches!(c, Change::Connected { .. }))? {
            Change::Connected { address, .. } => Ok((client, address)),
            _ => Err("connect: another change than asked for".into()),
        }
    }

    fn subscribe(&mut self, client: ClientId, filter: &str) -> Result<(), String> {
        let subscription = Subscription {
            filter: filter.into(),
            group: None,
        };
        self.fleet
            .subscribe(client, &subscription)
            .map_err(|e| e.to_string())?;
        self.await_change(client, "subscribe", |c| matches!(c, Change::Subscribed))
            .map(|_| ())
    }

    fn send(
        &mut self,
        client: ClientId,
        topic: TopicId,
        stream: u32,
        len: usize,
        kind: Kind,
    ) -> Result<Publish, String> {
        let next = self.next.entry(stream).or_default();
        let head = Header {
            kind,
            intended: 0,
            lag: 0,
            stream,
            sequence: *next,
        }
        .encode(NONCE);
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

fn resolve_answers(bed: &mut Bed<'_>) -> Result<(), String> {
    let answers = bed
        .driver
        .resolve(bed.settings, bed.target)
        .map_err(|u| format!("refuses its own settings: {u:?}"))?;
    let missing: Vec<&str> = Settings::NAMES
        .into_iter()
        .filter(|name| !answers.iter().any(|a| a.setting == *name))
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("no answer for {}", missing.join(", ")))
    }
}

fn refuses_before_connected(bed: &mut Bed<'_>) -> Result<(), String> {
    let mut rig = bed.open(1)?;
    let spec = ClientSpec {
        name: bed.name("early"),
        publishes: true,
        ..ClientSpec::default()
    };
    let (client, _) = rig.connect(spec)?;
    let topic = rig
        .fleet
        .advertise(client, &bed.topic("early"))
        .map_err(|e| e.to_string())?;
    rig.fleet.abort(client);
    match rig.send(client, topic, 0, 64, Kind::Measured)? {
        Publish::Refused(Refusal::NotConnected) => {
            rig.fleet.close(rig.clock.now());
            Ok(())
        }
        other => Err(format!("publishing without a connection gave {other:?}")),
    }
}

fn delivers_in_order(bed: &mut Bed<'_>) -> Result<(), String> {
    let mut pair = bed.pair(1, 1, &bed.topic("t0"))?;
    pair.send_all(0, 20_000, 64)?;
    pair.until("20,000 messages", |p| p.into.seen.delivered.len() >= 20_000)?;
    for (n, (_, _, sequence, _)) in pair.into.seen.delivered.iter().enumerate() {
        if *sequence != n as u32 {
            return Err(format!("message {sequence} came in place of {n}"));
        }
    }
    pair.close()
}

fn sizes(bed: &mut Bed<'_>) -> Result<(), String> {
    let mut pair = bed.pair(1, 1, &bed.topic("t0"))?;
    let sizes = [
        16, 17, 64, 127, 128, 1000, 1024, 16_383, 16_384, 65_536, 300_000, LARGEST,
    ];
    for (n, len) in sizes.into_iter().enumerate() {
        pair.send_all(0, 1, len)?;
        pair.until("one message", |p| p.into.seen.delivered.len() > n)?;
        let got = pair.into.seen.delivered[n].3;
        if got != len {
            return Err(format!("{len} B were sent and {got} B came"));
        }
    }
    pair.close()
}

fn other_topics(bed: &mut Bed<'_>) -> Result<(), String> {
    // The subscriber listens to t0 only; the second publisher speaks on a topic that begins alike.
    let mut pair = bed.pair(1, 1, &bed.topic("t0"))?;
    let (client, _) = pair.senders[0];
    let other = pair
        .out
        .fleet
        .advertise(client, &bed.topic("t0x"))
        .map_err(|e| e.to_string())?;
    pair.out.send(client, other, 7, 64, Kind::Measured)?;
    pair.send_all(0, 1, 64)?;
    pair.until("the wanted message", |p| !p.into.seen.delivered.is_empty())?;
    pair.quiet()?;
    if pair.into.seen.delivered.len() != 1 {
        return Err("a message of a topic that was not subscribed to came".into());
    }
    pair.close()
}

fn many(bed: &mut Bed<'_>) -> Result<(), String> {
    let mut pair = bed.pair(3, 2, &format!("conform/{}/#", bed.number))?;
    for sender in 0..3 {
        pair.send_all(sender, 500, 64)?;
    }
    pair.until("3 x 500 messages for each of 2", |p| {
        p.into.seen.delivered.len() >= 3000
    })?;
    pair.quiet()?;
    let mut next: HashMap<(ClientId, u32), u32> = HashMap::new();
    for (client, stream, sequence, _) in &pair.into.seen.delivered {
        let expected = next.entry((*client, *stream)).or_default();
        if sequence != expected {
            return Err(format!(
                "stream {stream}: message {sequence} came in place of {expected}"
            ));
        }
        *expected += 1;
    }
    if next.len() != 6 || next.values().any(|n| *n != 500) {
        return Err(format!(
            "unequal shares: {:?}",
            next.values().collect::<Vec<_>>()
        ));
    }
    pair.close()
}

fn late_subscriber(bed: &mut Bed<'_>) -> Result<(), String> {
    // `pair` publishes sentinels before and after the subscription: those before must not stop
    // those after from being delivered, and what follows is complete.
    let mut pair = bed.pair(1, 1, &bed.topic("t0"))?;
    pair.send_all(0, 100, 64)?;
    pair.until("100 messages", |p| p.into.seen.delivered.len() >= 100)?;
    let first = pair.into.seen.delivered[0].2;
    if first != 0 {
        return Err(format!(
            "the first message after readiness was lost: {first} came first"
        ));
    }
    pair.close()
}

fn back_pressure(bed: &mut Bed<'_>) -> Result<(), String> {
    if !bed.driver.traits(bed.settings).back_pressure {
        return Ok(());
    }
    // Nobody reads for a while; then everything must come and the publisher be told.
    let mut pair = bed.pair(1, 1, &bed.topic("t0"))?;
    let (client, topic) = pair.senders[0];
    let start = pair.out.clock.now();
    let mut sent = 0usize;
    let mut blocked = false;
    while pair.out.clock.now() - start < 3_000_000_000 && !blocked && sent < 4_000 {
        match pair.out.send(client, topic, 0, 100_000, Kind::Measured)? {
            Publish::Accepted => sent += 1,
            Publish::Blocked => {
                blocked = true;
                for _ in 0..50 {
                    pair.out.poll(2_000_000)?;
                }
            }
            Publish::Refused(why) => return Err(format!("refused: {why:?}")),
        }
    }
    pair.until("everything that was accepted", |p| {
        p.into.seen.delivered.len() >= sent
    })?;
    if blocked {
        let writable = |p: &Pair| {
            p.out
                .seen
                .changes
                .iter()
                .any(|(c, change)| *c == client && *change == Change::Writable)
        };
        pair.until("word that a blocked publisher may go on", writable)?;
        pair.send_all(0, 1, 64)?;
        pair.until("a message after the release", |p| {
            p.into.seen.delivered.len() > sent
        })?;
    }
    pair.close()
}

fn acknowledges(bed: &mut Bed<'_>) -> Result<(), String> {
    let promised = bed.driver.traits(bed.settings).acknowledges;
    let mut pair = bed.pair(1, 1, &bed.topic("t0"))?;
    pair.send_all(0, 300, 64)?;
    pair.until("300 messages", |p| p.into.seen.delivered.len() >= 300)?;
    if promised {
        pair.until("300 acknowledgements", |p| {
            p.out.seen.acknowledged.len() >= 300
        })?;
        pair.until("nothing unsettled", |p| p.out.fleet.unsettled() == 0)?;
    }
    let mut tags: Vec<u64> = pair
        .out
        .seen
        .acknowledged
        .iter()
        .map(|(_, tag, _)| *tag)
        .collect();
    tags.sort_unstable();
    let expected: Vec<u64> = if promised {
        (0..300).collect()
    } else {
        Vec::new()
    };
    if tags != expected {
        return Err(format!(
            "{} acknowledgements with other tags than were given",
            tags.len()
        ));
    }
    pair.close()
}

fn poll_keeps_time(bed: &mut Bed<'_>) -> Result<(), String> {
    let mut pair = bed.pair(1, 1, &bed.topic("t0"))?;
    let mut late = Vec::new();
    for _ in 0..40 {
        let until = pair.out.clock.now() + 1_500_000;
        while pair.out.clock.now() < until {
            pair.out
                .fleet
                .poll(until, &mut pair.out.seen)
                .map_err(|e| e.to_string())?;
        }
        late.push(pair.out.clock.now() - until);
    }
    late.sort_unstable();
    // A driver that rounds to whole milliseconds is late by half of one at the median; the
    // machine's noise is not.
    if late[20] > 400_000 {
        return Err(format!(
            "the median wake-up was {} us late",
            late[20] / 1000
        ));
    }
    pair.close()
}

fn crash(bed: &mut Bed<'_>) -> Result<(), String> {
    let mut pair = bed.pair(1, 1, &bed.topic("t0"))?;
    let (client, topic) = pair.senders[0];
    pair.out.fleet.abort(client);
    pair.out.poll(50_000_000)?;
    pair.out.seen.changes.clear();
    pair.out
        .fleet
        .reconnect(client)
        .map_err(|e| e.to_string())?;
    let change = pair.out.await_change(client, "reconnect", |c| {
        matches!(c, Change::Connected { .. })
    })?;
    if let Change::Connected {
        address: Some(address),
        ..
    } = change
    {
        // A brokerless publisher may have a new address.
        let _ = pair.into.fleet.add_peer(ClientId(0), &address);
    }
    let start = pair.out.clock.now();
    while pair.into.seen.delivered.is_empty() {
        if pair.out.clock.now() - start > PATIENCE {
            return Err("nothing came from a publisher that had crashed and come back".into());
        }
        pair.out.send(client, topic, 0, 64, Kind::Measured)?;
        pair.out.poll(5_000_000)?;
        pair.into.poll(20_000_000)?;
    }
    pair.close()
}

fn closes(bed: &mut Bed<'_>) -> Result<(), String> {
    let pair = bed.pair(2, 2, &format!("conform/{}/#", bed.number))?;
    let start = pair.out.clock.now();
    pair.close()?;
    let took = Clock::Monotonic.now() - start;
    if took > 5_000_000_000 {
        Err(format!("closing took {} ms", took / 1_000_000))
    } else {
        Ok(())
    }
}
