//! The fleet: one worker's DDS publishers and subscribers in a domain of their own.

mod receiving;
mod sending;
mod state;
mod topics;

use std::collections::{HashMap, VecDeque};
use std::ffi::CString;
use std::sync::atomic::{AtomicU32, Ordering};

use pubgauge_dds::{check_client, domain};
use pubgauge_driver::{
    Change, ClientId, ClientSpec, DriverError, Events, Fleet, FleetConfig, Nanos, Payload, Publish,
    Refusal, Resource, Subscription, TopicId, WireBytes,
};

pub use self::state::CycloneFleet;
use self::state::{Client, Phase, Publisher};
use crate::batch::Batches;
use crate::ffi::{Domain, Qos, Taken, Wire};
use crate::native::{NAME, Ownership};
use crate::options::{DEFAULT_HOLD_US, Options};
use crate::patience::Patience;
use crate::topic::{accept, overlap, partition};
use crate::{config, ports};

/// How soon a publisher that is held back is looked at again, if nothing was heard before that
/// may have made room.
const RETRY_US: u32 = 200;

/// How long a client that is to be closed waits for acknowledgements, ns: Cyclone's own
/// Internal/WriterLingerDuration.
const LINGER: Nanos = 1_000_000_000;

/// How often such a client is looked at, ns.
const LINGER_LOOK: Nanos = 5_000_000;

/// Descriptors and threads that Cyclone takes at most when a domain is opened: 5 and 6 (0.10.2),
/// with multicast 7 and 7, plus a reserve for other versions.
pub(crate) const DESCRIPTORS: usize = 10;
pub(crate) const THREADS: usize = 8;

/// Number of the next domain in this process. The domains' numbers on the network are others
/// (`ExternalDomainId`); these only have to differ.
static INSTANCES: AtomicU32 = AtomicU32::new(1_000_000);

/// What Cyclone counted for a fleet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// UDP datagrams sent: data, heartbeats, acknowledgements, discovery. A multicast datagram
    /// counts once. `None` if this version of the library cannot be counted.
    pub datagrams_sent: Option<u64>,
    /// UDP datagrams received.
    pub datagrams_received: Option<u64>,
    /// Deadlines that writers missed, at all readers of the fleet that still live.
    pub deadlines_missed: u64,
    /// Writers that the fleet's readers could not match because of their QoS.
    pub incompatible_writers: u64,
}

impl CycloneFleet {
    pub(crate) fn open(config: &FleetConfig, options: Options) -> Result<Self, DriverError> {
        let number = domain::choose(&config.target, options.native.domain, NAME)?;
        let xml = config::xml(&options, number, config.target.network.as_ref());
        let instance = INSTANCES.fetch_add(1, Ordering::Relaxed);
        let limit = options.cache_limit(config.max_payload);
        // Where it gets too little of these, Cyclone crashes or ends the process.
        Resource::can_have(DESCRIPTORS, THREADS).map_err(|resource| {
            DriverError::exhausted(format!("no {resource} left to start Cyclone DDS"), resource)
        })?;
        let domain = Domain::open(instance, &xml, limit).map_err(|why| {
            let mut error = DriverError::with_hint(
                format!("Cyclone DDS does not start in domain {number}: {why}"),
                "each worker needs two UDP ports, at most 120 workers of a host share a domain, \
                 and the interface must be up (native.cyclonedds.interface)",
            );
            error.exhausted = ports::are_taken(number).then_some(Resource::Ports);
            error
        })?;
        let clock = config.clock.clone();
        let us = |us: u32| Nanos::from(us) * 1000;
        let native = &options.native;
        let hold = us(native.hold_us.unwrap_or(DEFAULT_HOLD_US));
        let now = clock.now();
        Ok(CycloneFleet {
            clients: Vec::with_capacity(config.clients),
            publishers: Vec::new(),
            topic_ids: HashMap::new(),
            subscribers: Vec::new(),
            taken: Taken::new(),
            batches: Batches::new(options.batching, options.max_message_bytes, hold, now),
            gathering: Vec::new(),
            blocked: Vec::new(),
            retry_at: 0,
            look: false,
            unfinished: VecDeque::new(),
            closing: Vec::new(),
            news: VecDeque::new(),
            clock,
            retry: us(native.retry_us.unwrap_or(RETRY_US)),
            patience: Patience::new(native.busy_poll_us.map(us)),
            writer_qos: qos(&options, options.writer_depth, 0),
            reader_qos: qos(
                &options,
                options.reader_depth,
                options.native.max_samples.unwrap_or(0),
            ),
            options,
            worker: config.worker,
            last_wire: Wire::default(),
            domain: Some(domain),
        })
    }

    /// What Cyclone counted since the fleet was opened.
    pub fn statistics(&self) -> Statistics {
        let counted = self
            .domain
            .as_ref()
            .filter(|d| d.counts())
            .map(Domain::wire);
        let readers = || self.subscribers.iter().flatten().map(|s| &s.reader);
        Statistics {
            datagrams_sent: counted.map(|w| w.sent_datagrams),
            datagrams_received: counted.map(|w| w.received_datagrams),
            deadlines_missed: readers().map(|r| u64::from(r.deadlines_missed())).sum(),
            incompatible_writers: readers().map(|r| u64::from(r.incompatible())).sum(),
        }
    }

    /// Creates the writers of a client for all topics that it advertised.
    fn raise(&mut self, id: ClientId) -> Result<(), DriverError> {
        for index in 0..self.publishers.len() {
            if self.publishers[index].client == id {
                self.create_writer(index)?;
            }
        }
        self.clients[id.0 as usize].phase = Phase::Up;
        Ok(())
    }

    /// Deletes the writers and readers of a client.
    fn lower(&mut self, id: ClientId) {
        for index in 0..self.publishers.len() {
            if self.publishers[index].client == id {
                self.drop_writer(index);
            }
        }
        self.drop_readers(id);
        self.forget_blocked(id);
        self.closing.retain(|c| *c != id);
        let client = &mut self.clients[id.0 as usize];
        client.filters.clear();
        client.phase = Phase::Down;
    }

    /// Closes the waiting clients that have everything acknowledged or have reached their deadline.
    fn finish_closing(&mut self, now: Nanos) {
        for index in (0..self.closing.len()).rev() {
            let id = self.closing[index];
            let due = match self.clients[id.0 as usize].phase {
                Phase::Closing(deadline) => deadline <= now,
                _ => true,
            };
            if due || self.settled(id) {
                self.lower(id);
                self.news.push_back((id, Change::Closed));
            }
        }
    }

    /// Reports what happened outside of `poll`. Says whether there was anything.
    fn report(&mut self, events: &mut dyn Events) -> bool {
        let any = !self.news.is_empty();
        while let Some((client, change)) = self.news.pop_front() {
            events.changed(client, change);
        }
        any
    }
}

impl Fleet for CycloneFleet {
    fn connect(&mut self, spec: &ClientSpec) -> Result<ClientId, DriverError> {
        check_client(spec)?;
        let id = ClientId(self.clients.len() as u32);
        self.clients.push(Client {
            spec: spec.clone(),
            phase: Phase::Up,
            filters: Vec::new(),
        });
        self.news.push_back((id, CONNECTED));
        Ok(id)
    }

    fn subscribe(&mut self, id: ClientId, subscription: &Subscription) -> Result<(), DriverError> {
        let filter = accept(subscription)?;
        let client = id.find(&self.clients)?;
        if client.phase != Phase::Up {
            return Err(DriverError::new(format!(
                "client {} is not connected",
                client.spec.name
            )));
        }
        if let Some(other) = client.filters.iter().find(|f| overlap(f, &filter.text)) {
            return Err(DriverError::with_hint(
                format!(
                    "client {}: the filters {other:?} and {:?} overlap; each is a DDS reader, and \
                     both would get the same messages",
                    client.spec.name, filter.text
                ),
                "use filters that exclude each other, or one client for each",
            ));
        }
        self.create_reader(id, &filter)?;
        self.clients[id.0 as usize].filters.push(filter.text);
        self.news.push_back((id, Change::Subscribed));
        Ok(())
    }

    fn advertise(&mut self, id: ClientId, topic: &str) -> Result<TopicId, DriverError> {
        let up = id.find(&self.clients)?.phase == Phase::Up;
        let key = (id, topic.to_owned());
        if let Some(known) = self.topic_ids.get(&key) {
            return Ok(*known);
        }
        let name = CString::new(partition(topic)?).map_err(|e| DriverError::new(e.to_string()))?;
        let index = self.publishers.len();
        let device = self.device(index, topic);
        self.publishers.push(Publisher::new(id, name, device));
        if up && let Err(error) = self.create_writer(index) {
            self.publishers.pop();
            return Err(error);
        }
        let topic_id = TopicId(index as u32);
        self.topic_ids.insert(key, topic_id);
        Ok(topic_id)
    }

    #[inline]
    fn publish(
        &mut self,
        client: ClientId,
        topic: TopicId,
        payload: Payload<'_>,
        _tag: u64,
    ) -> Publish {
        match self.publishers.get(topic.0 as usize) {
            Some(publisher) if publisher.client == client => self.write(topic.0 as usize, payload),
            _ => Publish::Refused(Refusal::NotConnected),
        }
    }

    fn poll(&mut self, until: Nanos, events: &mut dyn Events) -> Result<(), DriverError> {
        self.flush();
        let now = self.clock.now();
        if self.blocked.is_empty() {
            self.batches.adapt(now);
        }
        loop {
            let now = self.clock.now();
            self.release_blocked(now);
            if !self.closing.is_empty() {
                self.finish_closing(now);
            }
            let mut any = self.report(events);
            any |= self.receive(events)?;
            if any || now >= until {
                return Ok(());
            }
            let mut wake = until;
            if !self.blocked.is_empty() {
                wake = wake.min(self.retry_at);
            }
            if !self.closing.is_empty() {
                wake = wake.min(now + LINGER_LOOK);
            }
            self.wait(wake, now);
        }
    }

    fn disconnect(&mut self, client: ClientId) {
        let deadline = self.clock.now() + LINGER;
        let Some(c) = self.clients.get_mut(client.0 as usize) else {
            return;
        };
        if c.phase == Phase::Up {
            c.phase = Phase::Closing(deadline);
            self.flush();
            for publisher in self.publishers.iter_mut().filter(|p| p.client == client) {
                publisher.ending = true;
                publisher.blocked = false;
            }
            self.forget_blocked(client);
            self.drop_readers(client);
            self.closing.push(client);
        } else if c.phase == Phase::Down {
            self.news.push_back((client, Change::Closed));
        }
    }

    /// Deletes the client's writers and readers at once. Other participants learn of that at once,
    /// by discovery. A crash would be noticed only when the participant's lease ends, but all
    /// clients of the fleet share the participant.
    fn abort(&mut self, client: ClientId) {
        if (client.0 as usize) < self.clients.len() {
            self.lower(client);
            self.news.retain(|(c, _)| *c != client);
        }
    }

    fn reconnect(&mut self, id: ClientId) -> Result<(), DriverError> {
        match id.find(&self.clients)?.phase {
            Phase::Up => return Ok(()),
            Phase::Closing(_) => self.lower(id),
            Phase::Down => {}
        }
        if let Err(error) = self.raise(id) {
            self.lower(id);
            return Err(error);
        }
        self.news.push_back((id, CONNECTED));
        Ok(())
    }

    /// Always 0: Cyclone does not tell how many accepted messages are not acknowledged yet.
    fn unsettled(&self) -> u64 {
        0
    }

    /// UDP payloads of the fleet's domain: RTPS with its headers, heartbeats, acknowledgements,
    /// repeated messages and discovery. 0 if this version of the library cannot be counted
    /// (shim/wire.c).
    fn wire_bytes(&self) -> WireBytes {
        let wire = self
            .domain
            .as_ref()
            .map_or(self.last_wire, |domain| domain.wire());
        WireBytes {
            sent: wire.sent_bytes,
            received: wire.received_bytes,
        }
    }

    /// UDP datagrams sent, one system call each: data, heartbeats, acknowledgements, discovery.
    fn writes(&self) -> Option<u64> {
        self.statistics().datagrams_sent
    }

    fn has_threads(&self) -> bool {
        true
    }

    fn close(&mut self, until: Nanos) {
        if self.domain.is_none() {
            return;
        }
        self.flush();
        for index in 0..self.publishers.len() {
            if let (Some(writer), Some(domain)) = (self.publishers[index].writer, &self.domain) {
                let left = until.saturating_sub(self.clock.now());
                domain.acknowledged(writer, left);
            }
        }
        self.taken.release();
        for index in 0..self.clients.len() {
            self.lower(ClientId(index as u32));
        }
        self.news.clear();
        self.unfinished.clear();
        self.last_wire = self.domain.as_ref().map_or(self.last_wire, Domain::wire);
        self.domain = None;
    }
}

impl Drop for CycloneFleet {
    fn drop(&mut self) {
        self.close(0);
    }
}

const CONNECTED: Change = Change::Connected {
    session_present: false,
    address: None,
};

fn qos(options: &Options, depth: i32, max_samples: i32) -> Qos {
    let native = &options.native;
    let ns = |ms: Option<i64>| ms.map_or(i64::MAX, |ms| ms.saturating_mul(1_000_000));
    Qos {
        lifespan_ns: ns(options.lifespan_ms),
        deadline_ns: ns(native.deadline_ms),
        latency_budget_ns: ns(native.latency_budget_ms),
        depth,
        max_samples,
        transport_priority: native.transport_priority,
        ownership_strength: native.ownership_strength.unwrap_or(0),
        reliable: options.reliable,
        transient_local: options.last_value,
        exclusive: native.ownership == Ownership::Exclusive,
    }
}
