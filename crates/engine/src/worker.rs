//! A worker: one thread, one loop, one fleet. Due sends first, then poll until the next is due.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex};

use pubgauge_driver::{
    Change, ClientId, ClientSpec, Clock, Driver, DriverError, Filler, Fleet, FleetConfig, Nanos,
    Settings, Subscription, Target, Traits, Will,
};
use pubgauge_workload::{Exchange, Subscriber};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::assignment::{Assignment, Brief, Timetable};
use crate::live::Live;
use crate::receiving::{Intervals, Receiving};
use crate::recording::{Recording, Usage};
use crate::sending::{Sending, reply_topic};
use crate::usage::{Reading, threads};

/// Longest sleep, so that commands are seen soon.
const NAP: Nanos = 10_000_000;
/// Clients connecting at the same time; brokers' listen queues are often 100 long, and one that
/// overflows costs a second of SYN retransmission.
const CONNECTING_AT_ONCE: usize = 64;

/// Clients that share a source address. There are some 28,000 ports to one, but the kernel's search
/// for a free one gets slow long before they run out: at 15,000 it was a quarter of all the
/// processor time spent on connecting.
const PER_SOURCE: u32 = 4_000;

/// What the conductor tells a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Command {
    /// Connect all clients and subscribe. Subscribers of brokerless systems get the addresses of
    /// the publishers: (device, address).
    Connect(Vec<(u32, String)>),
    /// Where every client can be reached, now that all are connected; for those that publish and
    /// subscribe in a brokerless system: (device, address).
    Peers(Vec<(u32, String)>),
    /// Send sentinels, until told otherwise.
    Prove,
    /// Run by this timetable.
    Run(Timetable),
    /// The measurement ended: send nothing more.
    Stop(Nanos),
    /// Connections are about to be closed: from the answer on, one that ends is no loss.
    Closing,
    /// Give the recording; end all connections by this time.
    Finish(Nanos),
}

/// What a worker tells the conductor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Report {
    /// All clients are connected and subscribed; the addresses under which publishers can be
    /// reached.
    Ready(Vec<(u32, String)>),
    /// Connecting or subscribing has failed for good.
    Failed(String),
    /// The measured messages it was allowed are all handed over.
    Done(Nanos),
    /// It knows that connections are about to be closed.
    Closing,
    /// Everything it saw.
    Recording(Box<Recording>),
}

/// What a worker needs beside its assignment.
#[derive(Clone)]
pub struct Context {
    /// The workload and what follows from it.
    pub brief: Arc<Brief>,
    /// The driver.
    pub driver: Arc<dyn Driver>,
    /// The system.
    pub target: Target,
    /// What the application asks for.
    pub settings: Settings,
    /// The trial's clock.
    pub clock: Clock,
    /// Origin of the times in headers.
    pub epoch: Nanos,
    /// Counters shown while running.
    pub live: Arc<Live>,
    /// Bodies of messages.
    pub filler: Arc<Filler>,
    /// Where filled histograms go.
    pub intervals: Intervals,
}

/// Threads that appear while a fleet is opened belong to its library; one fleet at a time.
static OPENING: Mutex<()> = Mutex::new(());

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Waiting,
    Connecting,
    Connected,
    Proving,
    Running,
    Draining,
    Over,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ClientState {
    New,
    Connecting,
    Subscribing(u32),
    Up,
    Down,
}

/// A worker. [`Worker::step`] is one turn of its loop.
pub struct Worker {
    assignment: Assignment,
    context: Context,
    traits: Traits,
    fleet: Box<dyn Fleet>,
    helpers: Vec<u32>,
    commands: Receiver<Command>,
    reports: Sender<Report>,
    sending: Sending,
    receiving: Receiving,
    phase: Phase,
    clients: Vec<ClientState>,
    client_of: FxHashMap<u32, ClientId>,
    peers: Vec<(u32, String)>,
    addresses: Vec<(u32, String)>,
    begun: usize,
    connecting: usize,
    up: usize,
    first_connect: Option<Nanos>,
    next_connect: Nanos,
    connect_reading: Reading,
    connect_usage: Usage,
    table: Option<Timetable>,
    start_reading: Option<Reading>,
    usage: Option<Usage>,
    reconnects: VecDeque<(Nanos, ClientId)>,
    made: u64,
    lost: u64,
    remade: u64,
    done_told: bool,
    closing: bool,
    errors: Vec<String>,
    more_errors: u64,
}

impl Worker {
    /// A worker on the calling thread.
    ///
    /// # Errors
    /// When the driver cannot open a fleet.
    pub fn new(
        assignment: Assignment,
        context: Context,
        commands: Receiver<Command>,
        reports: Sender<Report>,
    ) -> Result<Self, DriverError> {
        let traits = context.driver.traits(&context.settings);
        let (fleet, helpers) = {
            let _one_at_a_time = OPENING
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            let before = threads();
            let fleet = context.driver.open(FleetConfig {
                target: context.target.clone(),
                settings: context.settings.clone(),
                clock: context.clock.clone(),
                max_payload: context.brief.max_payload,
                clients: assignment.devices.len(),
                worker: assignment.worker,
            })?;
            let mut helpers = Vec::new();
            if fleet.has_threads() {
                helpers = threads();
                helpers.retain(|tid| !before.contains(tid));
            }
            (fleet, helpers)
        };
        if let Ok(mut known) = context.live.threads.lock() {
            // SAFETY: gettid takes no argument and cannot fail.
            let own = unsafe { libc::gettid() } as u32;
            known.extend(
                helpers
                    .iter()
                    .chain([&own])
                    .map(|tid| (assignment.role, *tid)),
            );
        }
        let c = &context;
        let sending = Sending::new(
            c.brief.clone(),
            c.live.clone(),
            c.clock.clone(),
            c.epoch,
            assignment.nonce,
            c.filler.clone(),
            assignment.measured_limit,
        );
        let receiving = Receiving::new(
            c.brief.clone(),
            c.live.clone(),
            c.clock.clone(),
            c.epoch,
            assignment.nonce,
            c.filler.clone(),
            &assignment.devices,
        );
        Ok(Worker {
            clients: vec![ClientState::New; assignment.devices.len()],
            assignment,
            context,
            traits,
            fleet,
            helpers,
            commands,
            reports,
            sending,
            receiving,
            phase: Phase::Waiting,
            client_of: FxHashMap::default(),
            peers: Vec::new(),
            addresses: Vec::new(),
            begun: 0,
            connecting: 0,
            up: 0,
            first_connect: None,
            next_connect: 0,
            connect_reading: Reading::default(),
            connect_usage: Usage::default(),
            table: None,
            start_reading: None,
            usage: None,
            reconnects: VecDeque::new(),
            made: 0,
            lost: 0,
            remade: 0,
            done_told: false,
            closing: false,
            errors: Vec::new(),
            more_errors: 0,
        })
    }

    /// One turn of the loop; false once the recording is given.
    pub fn step(&mut self) -> bool {
        self.take_commands();
        let now = self.context.clock.now();
        let mut until = now + NAP;
        match self.phase {
            Phase::Over => return false,
            Phase::Connecting => until = until.min(self.connect_some(now)),
            Phase::Proving => until = until.min(self.sending.send_sentinels(&mut *self.fleet)),
            Phase::Running => until = until.min(self.run(now)),
            _ => {}
        }
        if let Some((at, client)) = self.reconnects.front().copied() {
            if at <= now {
                self.reconnects.pop_front();
                if let Err(error) = self.fleet.reconnect(client) {
                    self.note(error.to_string());
                }
            } else {
                until = until.min(at);
            }
        }
        // Before the messages go out: nobody may count a delivery that was not yet published.
        self.sending.show();
        if let Err(error) = self.fleet.poll(until, &mut self.receiving) {
            self.fail(error.to_string());
            return true;
        }
        if !self.receiving.changes.is_empty() {
            self.take_changes();
        }
        if !self.receiving.replies.is_empty() {
            let mut replies = std::mem::take(&mut self.receiving.replies);
            self.sending.answer(&mut *self.fleet, &mut replies);
            self.receiving.replies = replies;
        }
        if !self.receiving.answered.is_empty() {
            let mut answered = std::mem::take(&mut self.receiving.answered);
            self.sending.answered(&mut answered);
            self.receiving.answered = answered;
        }
        self.receiving.show();
        true
    }

    fn take_commands(&mut self) {
        loop {
            match self.commands.try_recv() {
                Ok(Command::Connect(peers)) => {
                    self.peers = peers;
                    self.phase = Phase::Connecting;
                    self.connect_reading = Reading::take(self.context.clock.now(), &self.helpers);
                }
                Ok(Command::Peers(peers)) => {
                    let known = std::mem::replace(&mut self.peers, peers);
                    self.hear_late_peers(&known);
                }
                Ok(Command::Prove) => {
                    self.phase = Phase::Proving;
                }
                Ok(Command::Run(table)) => {
                    self.table = Some(table);
                    self.receiving.start(
                        &table,
                        &self.context.intervals,
                        self.traits.acknowledges && self.sending.publishes(),
                        self.receiving.receives(),
                    );
                    let window = self.assignment.default_window;
                    if let Err(error) = self.sending.start(table, window, &self.context.intervals) {
                        self.fail(error);
                    }
                    self.phase = Phase::Running;
                }
                Ok(Command::Stop(end)) => {
                    self.close_window(end);
                    self.phase = Phase::Draining;
                }
                Ok(Command::Closing) => {
                    self.closing = true;
                    self.reconnects.clear();
                    let _ = self.reports.send(Report::Closing);
                }
                Ok(Command::Finish(until)) => self.finish(until),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    // The conductor is gone: nobody wants the recording.
                    self.fleet.close(self.context.clock.now());
                    self.phase = Phase::Over;
                    return;
                }
            }
        }
    }

    /// Ends the accounts of the measurement.
    fn close_window(&mut self, end: Nanos) {
        self.receiving.end_window(end);
        self.sending.stop();
        if self.usage.is_none()
            && let Some(start) = &self.start_reading
        {
            self.usage = Some(Reading::take(self.context.clock.now(), &self.helpers).since(start));
        }
    }

    fn run(&mut self, now: Nanos) -> Nanos {
        let Some(table) = self.table else { return now };
        let mut until = Nanos::MAX;
        if self.start_reading.is_none() {
            if now >= table.measure {
                self.start_reading = Some(Reading::take(now, &self.helpers));
            } else {
                until = table.measure;
            }
        } else if self.usage.is_none() {
            if now >= table.end {
                self.close_window(table.end);
            } else {
                until = table.end;
            }
        }
        let next = self.sending.send_due(&mut *self.fleet);
        if let (Some(at), false) = (self.sending.done_at, self.done_told) {
            self.done_told = true;
            let _ = self.reports.send(Report::Done(at));
        }
        until.min(next)
    }

    fn connect_some(&mut self, now: Nanos) -> Nanos {
        let gap = self
            .context
            .brief
            .workload
            .phases
            .connect_per_s
            .map_or(0, |rate| (1e9 / rate) as Nanos);
        if self.first_connect.is_none() {
            self.first_connect = Some(now);
            self.next_connect = now;
        }
        while self.begun < self.assignment.devices.len() && self.connecting < CONNECTING_AT_ONCE {
            if self.next_connect > now {
                return self.next_connect;
            }
            self.next_connect += gap;
            let device = self.assignment.devices[self.begun];
            let spec = self.spec(device);
            match self.fleet.connect(&spec) {
                Ok(client) => {
                    self.client_of.insert(device, client);
                    self.clients[client.0 as usize] = ClientState::Connecting;
                    self.begun += 1;
                    self.connecting += 1;
                }
                Err(error) => {
                    self.fail(error.to_string());
                    return now;
                }
            }
        }
        if self.up == self.assignment.devices.len() {
            self.connect_usage = Reading::take(now, &self.helpers).since(&self.connect_reading);
            self.phase = Phase::Connected;
            let report = match self.sending.advertise(&mut *self.fleet, &self.client_of) {
                Ok(()) => Report::Ready(std::mem::take(&mut self.addresses)),
                Err(error) => Report::Failed(error),
            };
            let _ = self.reports.send(report);
        }
        Nanos::MAX
    }

    fn spec(&self, device: u32) -> ClientSpec {
        let workload = &self.context.brief.workload;
        let described = &workload.devices[device as usize];
        let mut spec = ClientSpec {
            name: described.name.clone(),
            endpoint: described.endpoint,
            source: self.source(device),
            will: described.will.clone().map(|(topic, payload, retain)| Will {
                topic,
                payload,
                retain,
            }),
            ..ClientSpec::default()
        };
        for link in self.context.brief.links(device) {
            let ping_pong = self.context.brief.is_ping_pong(link.flow as usize);
            spec.publishes |= !link.subscribes || ping_pong && link.index == 0;
            spec.subscribes |= link.subscribes || ping_pong;
        }
        if self.traits.publishers_first && spec.subscribes {
            spec.peers = self.peers_of(device);
        }
        spec
    }

    /// A source address of its own for each [`PER_SOURCE`] clients beyond the first, where the
    /// endpoint is on loopback.
    fn source(&self, device: u32) -> Option<std::net::IpAddr> {
        let workload = &self.context.brief.workload;
        let endpoint = self
            .context
            .target
            .endpoints
            .get(workload.devices[device as usize].endpoint)?;
        let block = device / PER_SOURCE;
        (endpoint.contains("127.0.0.1") && block > 0).then(|| {
            std::net::IpAddr::from([127, 0, (1 + block / 250) as u8, (1 + block % 250) as u8])
        })
    }

    /// Addresses of the publishers a device must listen to: those whose streams it is entitled
    /// to, and, for a ping-pong publisher, its responder (who has none before it is connected).
    fn peers_of(&self, device: u32) -> Vec<String> {
        let brief = &self.context.brief;
        let mut wanted = std::collections::BTreeSet::new();
        for link in brief.links(device) {
            let flow = &brief.workload.flows[link.flow as usize];
            if link.subscribes {
                let party = brief.audience.party_of(link.flow, link.index);
                for stream in brief.audience.parties[party as usize]
                    .streams
                    .iter()
                    .cloned()
                    .flatten()
                {
                    let info = brief.audience.streams[stream as usize];
                    let publisher = &brief.workload.flows[info.flow as usize].publishers
                        [info.publisher as usize];
                    wanted.insert(publisher.device);
                }
            } else if let (Exchange::PingPong, Some(responder)) =
                (flow.exchange, flow.subscribers.first())
            {
                wanted.insert(responder.device);
            }
        }
        self.peers
            .iter()
            .filter(|(d, _)| wanted.contains(d))
            .map(|(_, address)| address.clone())
            .collect()
    }

    /// Clients that connected before their peers had addresses get them now.
    fn hear_late_peers(&mut self, known: &[(u32, String)]) {
        for index in 0..self.assignment.devices.len() {
            let device = self.assignment.devices[index];
            let late: Vec<String> = self
                .peers_of(device)
                .into_iter()
                .filter(|address| !known.iter().any(|(_, a)| a == address))
                .collect();
            for address in late {
                if let Err(error) = self.fleet.add_peer(self.client_of[&device], &address) {
                    self.fail(error.to_string());
                }
            }
        }
    }

    /// What a device subscribes to, answers of ping-pong included.
    fn subscriptions(&self, device: u32) -> Vec<Subscription> {
        let mut all = Vec::new();
        for link in self.context.brief.links(device) {
            let flow = &self.context.brief.workload.flows[link.flow as usize];
            let index = link.index as usize;
            if link.subscribes {
                let Subscriber { filters, group, .. } = &flow.subscribers[index];
                all.extend(filters.iter().map(|f| Subscription {
                    filter: f.clone(),
                    group: group.clone(),
                }));
            } else if flow.exchange == Exchange::PingPong {
                let topics = flow.publishers[index].topics.iter();
                all.extend(topics.map(|t| Subscription {
                    filter: reply_topic(t),
                    group: None,
                }));
            }
        }
        all
    }

    fn take_changes(&mut self) {
        let mut changes = std::mem::take(&mut self.receiving.changes);
        for (client, change) in changes.drain(..) {
            self.take_change(client, change);
        }
        self.receiving.changes = changes;
    }

    fn take_change(&mut self, client: ClientId, change: Change) {
        let index = client.0 as usize;
        let device = self.assignment.devices[index];
        match change {
            Change::Connected {
                session_present,
                address,
            } => {
                if let Some(address) = address {
                    self.addresses.push((device, address));
                }
                let again = self.clients[index] == ClientState::Down;
                if again {
                    self.remade += 1;
                } else {
                    self.made += 1;
                }
                self.context
                    .live
                    .connected
                    .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let wanted = if session_present {
                    Vec::new()
                } else {
                    self.subscriptions(device)
                };
                self.clients[index] = ClientState::Subscribing(wanted.len() as u32);
                for subscription in &wanted {
                    if let Err(error) = self.fleet.subscribe(client, subscription) {
                        self.fail(error.to_string());
                    }
                }
                if wanted.is_empty() {
                    self.come_up(client);
                }
            }
            Change::Subscribed => {
                if let ClientState::Subscribing(left) = &mut self.clients[index] {
                    *left -= 1;
                    if *left == 0 {
                        self.come_up(client);
                    }
                }
            }
            Change::SubscriptionRefused(why) => {
                self.fail(format!("{}: {why}", self.device_name(device)));
            }
            Change::Writable => self.sending.writable(&mut *self.fleet, client),
            Change::Failed(_) if self.closing => self.clients[index] = ClientState::Down,
            Change::Failed(why) => {
                let name = self.device_name(device).to_owned();
                let was = std::mem::replace(&mut self.clients[index], ClientState::Down);
                match was {
                    ClientState::Connecting if self.phase == Phase::Connecting => {
                        self.fail(format!("{name}: {why}"));
                    }
                    _ => {
                        if matches!(was, ClientState::Up | ClientState::Subscribing(_)) {
                            self.lost += 1;
                            self.context
                                .live
                                .lost
                                .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        }
                        if self.phase == Phase::Connecting {
                            self.fail(format!("{name}: {why}"));
                        } else {
                            self.note(format!("{name}: {why}"));
                        }
                    }
                }
                if let Some(after) = self.context.brief.workload.phases.reconnect_after
                    && self.phase != Phase::Connecting
                {
                    self.reconnects
                        .push_back((self.context.clock.now() + after, client));
                }
            }
            Change::Closed => {}
        }
    }

    fn come_up(&mut self, client: ClientId) {
        let index = client.0 as usize;
        self.clients[index] = ClientState::Up;
        if self.phase == Phase::Connecting {
            self.connecting -= 1;
            self.up += 1;
        } else {
            self.sending.writable(&mut *self.fleet, client);
        }
    }

    fn device_name(&self, device: u32) -> &str {
        &self.context.brief.workload.devices[device as usize].name
    }

    fn note(&mut self, error: String) {
        if self.errors.len() < Recording::MOST_ERRORS {
            self.errors.push(error);
        } else {
            self.more_errors += 1;
        }
    }

    fn fail(&mut self, error: String) {
        let _ = self.reports.send(Report::Failed(error.clone()));
        self.note(error);
    }

    fn finish(&mut self, until: Nanos) {
        if self.phase == Phase::Running {
            self.close_window(self.context.clock.now());
        }
        let unsettled = self.fleet.unsettled();
        let wire = self.fleet.wire_bytes();
        self.receiving.show();
        self.sending.show();
        self.fleet.close(until);
        let mut flows = self.sending.finish();
        self.receiving.finish(&mut flows);
        let recording = Recording {
            worker: self.assignment.worker,
            role: self.assignment.role,
            flows,
            sentinels: self.sending.sentinels,
            foreign: self.receiving.foreign,
            retained: self.receiving.retained,
            redelivered: self.receiving.redelivered,
            usage: self.usage.unwrap_or_default(),
            connect_usage: self.connect_usage,
            wire,
            made: self.made,
            lost: self.lost,
            remade: self.remade,
            done_at: self.sending.done_at,
            unsettled,
            errors: std::mem::take(&mut self.errors),
            more_errors: self.more_errors,
        };
        let _ = self.reports.send(Report::Recording(Box::new(recording)));
        self.phase = Phase::Over;
    }
}
