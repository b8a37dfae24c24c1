//! The fleet: one worker's DDS entities behind one participant.
//!
//! The participant starts when the fleet is opened, with all threads that the library needs; each
//! client is a set of entities in it: a Publisher with a DataWriter for each topic that it
//! advertises, a Subscriber with a DataReader for all that it subscribes to.

mod receiving;
mod setup;

use std::collections::{HashMap, VecDeque};

use pubgauge_dds::check_client;
use pubgauge_driver::{
    Change, ClientId, ClientSpec, Clock, DriverError, Events, Fleet, FleetConfig, Nanos, Payload,
    Publish, Refusal, Resource, Subscription, TopicId, WireBytes,
};

use self::receiving::take_turn;
use self::setup::shim_config;
use crate::ffi::{GROUP, Participant, RawSample, Reader, Traffic, Writer, Written};
use crate::janitor::Janitor;
use crate::options::Options;
use crate::topic;

/// How soon a blocked publisher is told to try again if no datagram came before, ns.
const RETRY: Nanos = 1_000_000;
/// How long a client that disconnects waits for acknowledgements, ns.
const LINGER: Nanos = 1_000_000_000;
/// How often such a client is checked, ns.
const LINGER_LOOK: Nanos = 1_000_000;

/// Descriptors and threads that Fast DDS takes at most when a participant is created: 9 and 4
/// (2.9.1), with shared memory 9 and 6, one descriptor for a while, plus a reserve for other
/// versions.
pub(crate) const DESCRIPTORS: usize = 16;
pub(crate) const THREADS: usize = 10;

/// One worker thread's share of the clients.
pub(crate) struct FastddsFleet {
    clients: Vec<Client>,
    topics: Vec<Topic>,
    topic_ids: HashMap<(ClientId, String), TopicId>,
    /// Readers that have something, as far as known.
    flooded: VecDeque<u32>,
    ready: Vec<u32>,
    samples: Vec<RawSample>,
    news: VecDeque<(ClientId, Change)>,
    /// Clients with [`Client::asked`].
    asking: Vec<ClientId>,
    /// Clients whose publish was `Blocked`; since when, and how many datagrams had come by then.
    blocked: Vec<u32>,
    blocked_at: Nanos,
    blocked_arrivals: i64,
    closing: Vec<u32>,
    /// The participant's last traffic counts, once it is deleted.
    last_traffic: Traffic,
    clock: Clock,
    options: Options,
    worker: u32,
    /// `None` once the fleet is closed. Declared after clients and topics: their entities end
    /// first.
    participant: Option<Participant>,
    /// Present where the library keeps files; dropped after the participant.
    janitor: Option<Janitor>,
}

#[derive(Default)]
struct Client {
    spec: ClientSpec,
    phase: Phase,
    reader: Option<Reader>,
    /// CLOCK_REALTIME when the reader was created, ns; samples written before are last values.
    reader_since: i64,
    partitions: Vec<String>,
    /// Subscriptions that are in `partitions` and not in the reader yet.
    asked: usize,
    topics: Vec<u32>,
    blocked: bool,
    /// Its reader is listed in [`FastddsFleet::flooded`].
    flooded: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    Up,
    /// Waits for acknowledgements until then.
    Closing(Nanos),
    #[default]
    Down,
}

struct Topic {
    client: ClientId,
    partition: String,
    writer: Option<Writer>,
}

impl FastddsFleet {
    pub(crate) fn open(
        config: &FleetConfig,
        options: Options,
        domain: u32,
    ) -> Result<Self, DriverError> {
        let janitor = if options.shared_memory || options.native.data_sharing {
            Some(Janitor::engage()?)
        } else {
            None
        };
        // Where it gets too little of these, Fast DDS starts with some of its sockets and threads and
        // does not say so.
        Resource::can_have(DESCRIPTORS, THREADS).map_err(|resource| {
            DriverError::exhausted(format!("no {resource} left to start Fast DDS"), resource)
        })?;
        let participant = Participant::open(&shim_config(config, &options, domain)?)?;
        Ok(FastddsFleet {
            clients: Vec::with_capacity(config.clients),
            topics: Vec::new(),
            topic_ids: HashMap::new(),
            flooded: VecDeque::with_capacity(config.clients),
            ready: vec![0; 64],
            samples: vec![RawSample::EMPTY; GROUP],
            news: VecDeque::new(),
            asking: Vec::new(),
            blocked: Vec::new(),
            blocked_at: 0,
            blocked_arrivals: 0,
            closing: Vec::new(),
            last_traffic: Traffic::default(),
            clock: config.clock.clone(),
            options,
            worker: config.worker,
            participant: Some(participant),
            janitor,
        })
    }

    fn participant(&self) -> Result<&Participant, DriverError> {
        self.participant.as_ref().ok_or_else(DriverError::closed)
    }

    /// A new writer, for a topic by its number. The key field has the same value in all messages of one writer, and another
    /// in those of others: a reader's limits and KEEP_LAST count for each writer.
    fn writer(&self, topic: u32, partition: &str) -> Result<Writer, DriverError> {
        let device = (self.worker & 0xfff) << 20 | (topic & 0xf_ffff);
        let priority = self.options.native.priority_of(partition);
        self.participant()?.writer(partition, device, priority)
    }

    /// Creates the client's entities again, except subscriptions, which the caller has to repeat.
    fn begin(&mut self, id: ClientId) -> Result<(), DriverError> {
        for index in self.clients[id.0 as usize].topics.clone() {
            let writer = self.writer(index, &self.topics[index as usize].partition)?;
            self.topics[index as usize].writer = Some(writer);
        }
        id.find_mut(&mut self.clients)?.phase = Phase::Up;
        let connected = Change::Connected {
            session_present: false,
            address: None,
        };
        self.news.push_back((id, connected));
        Ok(())
    }

    /// Deletes the client's entities at once.
    fn drop_entities(&mut self, id: ClientId) {
        let client = &mut self.clients[id.0 as usize];
        client.phase = Phase::Down;
        client.reader = None;
        client.partitions.clear();
        client.asked = 0;
        client.blocked = false;
        for index in &client.topics {
            self.topics[*index as usize].writer = None;
        }
        self.blocked.retain(|c| *c != id.0);
        self.closing.retain(|c| *c != id.0);
    }

    /// Applies the subscriptions that were asked for since the last poll, in one change of each reader. Discovery
    /// announces all partitions of a reader with each change: 200 changes announce 200 lists of up to 200.
    fn subscribe_to_what_was_asked(&mut self) -> Result<(), DriverError> {
        for id in std::mem::take(&mut self.asking) {
            let client = &mut self.clients[id.0 as usize];
            let asked = std::mem::take(&mut client.asked);
            if asked == 0 {
                continue;
            }
            client.partitions.sort_unstable();
            client.partitions.dedup();
            if let Err(why) = topic::check_announced(&client.partitions) {
                self.news.push_back((id, Change::SubscriptionRefused(why)));
                continue;
            }
            match &client.reader {
                Some(reader) => reader.set_partitions(&client.partitions)?,
                None => {
                    let participant = self.participant.as_ref();
                    let participant = participant.ok_or_else(DriverError::closed)?;
                    client.reader_since = realtime_ns();
                    client.reader = Some(participant.reader(id.0, &client.partitions)?);
                }
            }
            let subscribed = std::iter::repeat_n((id, Change::Subscribed), asked);
            self.news.extend(subscribed);
        }
        Ok(())
    }

    fn report_news(&mut self, events: &mut dyn Events) -> bool {
        let any = !self.news.is_empty();
        for (id, change) in self.news.drain(..) {
            events.changed(id, change);
        }
        any
    }

    /// Tells blocked publishers to try again, if a datagram came since or [`RETRY`] is over.
    fn release(&mut self, now: Nanos, events: &mut dyn Events) -> bool {
        if self.blocked.is_empty() {
            return false;
        }
        let Some(participant) = &self.participant else {
            return false;
        };
        let came = participant.arrivals() > self.blocked_arrivals;
        if !came && now < self.blocked_at + RETRY {
            return false;
        }
        for index in self.blocked.drain(..) {
            self.clients[index as usize].blocked = false;
            events.changed(ClientId(index), Change::Writable);
        }
        true
    }

    fn finish_closing(&mut self, now: Nanos, events: &mut dyn Events) -> bool {
        let mut any = false;
        for index in std::mem::take(&mut self.closing) {
            let client = &self.clients[index as usize];
            let Phase::Closing(deadline) = client.phase else {
                continue;
            };
            let settled = client.topics.iter().all(|t| {
                let writer = &self.topics[*t as usize].writer;
                writer.as_ref().is_none_or(Writer::settled)
            });
            if settled || now >= deadline {
                self.drop_entities(ClientId(index));
                events.changed(ClientId(index), Change::Closed);
                any = true;
            } else {
                self.closing.push(index);
            }
        }
        any
    }

    /// Notes which readers have got something.
    fn gather(&mut self) {
        let Some(participant) = &self.participant else {
            return;
        };
        loop {
            let count = participant.ready(&mut self.ready);
            for index in &self.ready[..count] {
                if let Some(client) = self.clients.get_mut(*index as usize)
                    && !client.flooded
                {
                    client.flooded = true;
                    self.flooded.push_back(*index);
                }
            }
            if count < self.ready.len() {
                return;
            }
        }
    }

    /// Gives each reader that has something one turn.
    fn receive(&mut self, events: &mut dyn Events) -> Result<bool, DriverError> {
        let mut any = false;
        for _ in 0..self.flooded.len() {
            let Some(index) = self.flooded.pop_front() else {
                break;
            };
            let client = &mut self.clients[index as usize];
            client.flooded = false;
            let Some(reader) = &mut client.reader else {
                continue;
            };
            let since = self.options.last_value.then_some(client.reader_since);
            let turn = take_turn(ClientId(index), reader, since, &mut self.samples, events)?;
            any |= turn.messages > 0;
            if turn.more {
                client.flooded = true;
                self.flooded.push_back(index);
            }
        }
        Ok(any)
    }

    fn sleep(&self, until: Nanos, now: Nanos) {
        let Some(participant) = &self.participant else {
            return;
        };
        let mut until = until;
        let mut arrivals = None;
        if !self.blocked.is_empty() {
            until = until.min(self.blocked_at + RETRY);
            arrivals = Some(self.blocked_arrivals);
        }
        if !self.closing.is_empty() {
            until = until.min(now + LINGER_LOOK);
        }
        if until > now {
            let nanos = i64::try_from(until - now).unwrap_or(i64::MAX);
            participant.sleep(arrivals, nanos);
        }
    }
}

/// CLOCK_REALTIME, in which DDS stamps samples.
fn realtime_ns() -> i64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| {
            i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
        })
}

impl Fleet for FastddsFleet {
    fn connect(&mut self, spec: &ClientSpec) -> Result<ClientId, DriverError> {
        check_client(spec)?;
        let id = ClientId(self.clients.len() as u32);
        self.clients.push(Client {
            spec: spec.clone(),
            ..Client::default()
        });
        if let Err(error) = self.begin(id) {
            self.clients.pop();
            return Err(error);
        }
        Ok(id)
    }

    fn subscribe(&mut self, id: ClientId, asked: &Subscription) -> Result<(), DriverError> {
        let wanted = topic::accept(asked)?;
        let client = id.find_mut(&mut self.clients)?;
        if client.phase != Phase::Up {
            return Err(DriverError::new(format!(
                "client {} is not connected",
                client.spec.name
            )));
        }
        client.partitions.extend(wanted);
        client.asked += 1;
        if client.asked == 1 {
            self.asking.push(id);
        }
        Ok(())
    }

    fn advertise(&mut self, id: ClientId, name: &str) -> Result<TopicId, DriverError> {
        if let Some(known) = self.topic_ids.get(&(id, name.to_owned())) {
            return Ok(*known);
        }
        let partition = topic::partition(name)?.to_owned();
        let topic = TopicId(self.topics.len() as u32);
        let writer = match id.find(&self.clients)?.phase {
            Phase::Up => Some(self.writer(topic.0, &partition)?),
            _ => None,
        };
        self.topics.push(Topic {
            client: id,
            partition,
            writer,
        });
        self.clients[id.0 as usize].topics.push(topic.0);
        self.topic_ids.insert((id, name.to_owned()), topic);
        Ok(topic)
    }

    #[inline]
    fn publish(&mut self, id: ClientId, topic: TopicId, payload: Payload<'_>, _: u64) -> Publish {
        let not_connected = Publish::Refused(Refusal::NotConnected);
        let Some(topic) = self.topics.get(topic.0 as usize) else {
            return not_connected;
        };
        let Some(writer) = topic.writer.as_ref().filter(|_| topic.client == id) else {
            return not_connected;
        };
        let client = &mut self.clients[id.0 as usize];
        if client.phase != Phase::Up {
            return not_connected;
        }
        // Read before the attempt: datagrams that come during it may make room as well.
        let arrivals = self.participant.as_ref().map_or(0, Participant::arrivals);
        match writer.write(payload.head, payload.body) {
            Written::Yes => Publish::Accepted,
            Written::NoRoom if self.options.drop_when_full => Publish::Refused(Refusal::Dropped),
            Written::NoRoom => {
                if self.blocked.is_empty() {
                    self.blocked_at = self.clock.now();
                    self.blocked_arrivals = arrivals;
                }
                if !client.blocked {
                    client.blocked = true;
                    self.blocked.push(id.0);
                }
                Publish::Blocked
            }
            Written::Failed => Publish::Refused(Refusal::TooLarge),
        }
    }

    fn poll(&mut self, until: Nanos, events: &mut dyn Events) -> Result<(), DriverError> {
        if !self.asking.is_empty() {
            self.subscribe_to_what_was_asked()?;
        }
        let mut reported = self.report_news(events);
        loop {
            self.gather();
            reported |= self.receive(events)?;
            if !self.blocked.is_empty() || !self.closing.is_empty() {
                let now = self.clock.now();
                reported |= self.release(now, events);
                reported |= self.finish_closing(now, events);
            }
            if reported || until == 0 {
                return Ok(());
            }
            let now = self.clock.now();
            if now >= until {
                return Ok(());
            }
            self.sleep(until, now);
        }
    }

    fn disconnect(&mut self, id: ClientId) {
        let deadline = self.clock.now() + LINGER;
        let Ok(client) = id.find_mut(&mut self.clients) else {
            return;
        };
        if client.phase == Phase::Up {
            client.phase = Phase::Closing(deadline);
            client.reader = None;
            client.partitions.clear();
            client.asked = 0;
            self.closing.push(id.0);
        } else if client.phase == Phase::Down {
            self.news.push_back((id, Change::Closed));
        }
    }

    /// DDS cannot end one writer or reader unannounced: discovery tells the others.
    fn abort(&mut self, id: ClientId) {
        if (id.0 as usize) < self.clients.len() {
            self.drop_entities(id);
            self.news.retain(|(client, _)| *client != id);
        }
    }

    fn reconnect(&mut self, id: ClientId) -> Result<(), DriverError> {
        let client = id.find(&self.clients)?;
        if client.phase != Phase::Down {
            return Err(DriverError::new(format!(
                "client {} is still connected",
                client.spec.name
            )));
        }
        self.begin(id)
    }

    /// Writers with unacknowledged samples: DDS does not tell how many those are.
    fn unsettled(&self) -> u64 {
        if !self.options.reliable {
            return 0;
        }
        let writers = self.topics.iter().filter_map(|t| t.writer.as_ref());
        writers.filter(|w| !w.settled()).count() as u64
    }

    /// RTPS messages of the participant, discovery included, without UDP and IP headers.
    fn wire_bytes(&self) -> WireBytes {
        let traffic = self
            .participant
            .as_ref()
            .map_or(self.last_traffic, Participant::traffic);
        WireBytes {
            sent: traffic.sent_bytes,
            received: traffic.received_bytes,
        }
    }

    /// Datagrams: the library makes one system call for each.
    fn writes(&self) -> Option<u64> {
        let traffic = self
            .participant
            .as_ref()
            .map_or(self.last_traffic, Participant::traffic);
        Some(traffic.sent_datagrams)
    }

    fn has_threads(&self) -> bool {
        true
    }

    fn close(&mut self, until: Nanos) {
        for topic in &mut self.topics {
            if let Some(writer) = topic.writer.take() {
                let left = if self.options.reliable {
                    until.saturating_sub(self.clock.now())
                } else {
                    0
                };
                writer.end(i64::try_from(left).unwrap_or(i64::MAX));
            }
        }
        for client in &mut self.clients {
            client.reader = None;
            client.phase = Phase::Down;
        }
        self.blocked.clear();
        self.closing.clear();
        self.flooded.clear();
        self.news.clear();
        if let Some(participant) = self.participant.take() {
            self.last_traffic = participant.traffic();
        }
        self.janitor = None;
    }
}

impl Drop for FastddsFleet {
    fn drop(&mut self) {
        // Entities before their participant, whatever the order of the fields.
        self.close(0);
    }
}
