//! The fleet: one worker's ZeroMQ clients behind one epoll.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use pubgauge_driver::{
    Change, ClientId, ClientSpec, Clock, DriverError, Events, Fleet, FleetConfig, Nanos, Payload,
    Publish, Refusal, Subscription, TopicId, Transport, WireBytes,
};
use rustix::event::{Timespec, epoll};

use crate::address::{ForwarderAddress, ipc_path};
use crate::inbox::{Inbox, on_the_wire};
use crate::options::{Framing, Options, Queue, Topology};
use crate::port::{Key, Port, Role, allow_ipv6};
use crate::topic::{translate, wire_topic};
use crate::zmq::{Context, Link, Message, explain, would_block};

/// How often a publisher that comes back tries to get its port again, while libzmq's threads
/// are still closing the socket it had before.
const BIND_RETRY: Nanos = 1_000_000;

/// How long other publishers' messages may hold up the news that one publisher is lost.
const LAST_WORDS: Nanos = 1_000_000_000;

/// Turns at flooded subscribers after which everybody else is looked at as well.
const TURNS_BEFORE_OTHERS: u32 = 8;

/// Epoll entries handled at once.
const READY: usize = 256;

/// One worker thread's share of the ZeroMQ clients.
pub(crate) struct ZeromqFleet {
    clients: Vec<Client>,
    topics: Vec<Box<[u8]>>,
    topic_ids: HashMap<(ClientId, String), TopicId>,
    inbox: Inbox,
    wire: WireBytes,
    /// Subscribers that may have messages left.
    flooded: Vec<u32>,
    turns: u32,
    /// Clients whose time to connect is running.
    connecting: Vec<u32>,
    news: VecDeque<(ClientId, Change)>,
    ready: Vec<epoll::Event>,
    epoll: OwnedFd,
    clock: Clock,
    options: Options,
    forwarders: Vec<ForwarderAddress>,
    scratch: PathBuf,
    worker: u32,
    /// Gone once the fleet is closed. Below the clients: their sockets end first.
    context: Option<Context>,
}

struct Client {
    spec: ClientSpec,
    phase: Phase,
    publisher: Option<Port>,
    subscriber: Option<Port>,
    /// Where subscribers reach it, once known; kept over reconnects. Direct topology only.
    address: Option<String>,
    /// All its filters, and whether one of them must be checked at the receiver.
    filters: Vec<String>,
    checked: bool,
    /// The subscriber has lost a publisher; said once what had come from it is delivered.
    lost: Option<Lost>,
    /// Its subscriber stands in [`ZeromqFleet::flooded`].
    flooded: bool,
    /// The sockets are those of the last connection, with their subscriptions.
    kept: bool,
}

struct Lost {
    why: String,
    /// When to say so even though messages keep coming, namely from other publishers.
    at_last: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Connecting {
        deadline: Nanos,
        bound: bool,
    },
    Up,
    /// Failed, closed, or aborted.
    Down,
}

impl ZeromqFleet {
    pub(crate) fn open(
        config: &FleetConfig,
        options: Options,
        topology: Topology,
    ) -> Result<Self, DriverError> {
        let forwarders = match topology {
            Topology::Direct => Vec::new(),
            Topology::Forwarder => forwarders(&config.target.endpoints, options.transport)?,
        };
        // Per client: two data sockets, and two ends of a monitor for each.
        let sockets = config.clients.saturating_mul(6).saturating_add(16);
        let context = Context::start(options.io_threads, sockets)
            .map_err(|e| failed("cannot start libzmq", &e))?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|e| failed("cannot create an epoll", &e.into()))?;
        Ok(ZeromqFleet {
            clients: Vec::with_capacity(config.clients),
            topics: Vec::new(),
            topic_ids: HashMap::new(),
            inbox: Inbox::new(options.framing),
            wire: WireBytes::default(),
            flooded: Vec::with_capacity(config.clients),
            turns: 0,
            connecting: Vec::new(),
            news: VecDeque::new(),
            ready: Vec::with_capacity(READY),
            epoll,
            clock: config.clock.clone(),
            options,
            forwarders,
            scratch: config.target.scratch.clone(),
            worker: config.worker,
            context: Some(context),
        })
    }

    /// Opens the client's sockets and begins to bind and connect them. Those that are there stay
    /// with the connections that stand.
    fn begin(&mut self, id: ClientId) -> Result<(), DriverError> {
        let context = self.context.as_ref().ok_or_else(closed)?;
        let client = self
            .clients
            .get_mut(id.0 as usize)
            .ok_or_else(|| unknown(id))?;
        let name = client.spec.name.clone();
        let cannot = |what: &str, e: &io::Error| failed(&format!("client {name}: {what}"), e);
        let mut bound = true;
        if client.spec.publishes {
            if client.publisher.is_none() {
                let port = Port::open(context, &self.options, &self.epoll, id.0, Role::Publisher);
                client.publisher = Some(port.map_err(|e| cannot("cannot open a socket", &e))?);
                bound = !self.forwarders.is_empty();
            }
            if !bound && client.address.is_none() {
                client.address = Some(match self.options.transport {
                    Some(Transport::Ipc) => {
                        let path = ipc_path(&self.scratch, self.worker, id.0)?;
                        format!("ipc://{}", path.display())
                    }
                    _ => match client.spec.source {
                        None => "tcp://127.0.0.1:*".to_owned(),
                        Some(ip) => format!("tcp://{}:*", host(ip)),
                    },
                });
            }
            if let (Some(port), Some(forwarder)) = (
                &mut client.publisher,
                self.forwarders.get(client.spec.endpoint),
            ) && (port.peers.is_empty() || !port.all_up())
            {
                let address = forwarder.for_publishers();
                port.connect(context, &self.epoll, id.0, &address)
                    .map_err(|e| cannot(&format!("cannot connect to {address}"), &e))?;
            }
        }
        if client.spec.subscribes {
            if client.subscriber.is_none() {
                let port = Port::open(context, &self.options, &self.epoll, id.0, Role::Subscriber);
                client.subscriber = Some(port.map_err(|e| cannot("cannot open a socket", &e))?);
            }
            let addresses = match self.forwarders.get(client.spec.endpoint) {
                Some(forwarder) => vec![forwarder.for_subscribers()],
                None => client.spec.peers.clone(),
            };
            if let Some(port) = &mut client.subscriber {
                for address in addresses {
                    if port.peers.iter().any(|p| p.up && p.address == address) {
                        continue;
                    }
                    port.connect(context, &self.epoll, id.0, &address)
                        .map_err(|e| cannot(&format!("cannot connect to {address}"), &e))?;
                }
            }
            // Connecting handles commands, which may have announced messages.
            if !client.flooded {
                client.flooded = true;
                self.flooded.push(id.0);
            }
        }
        let timeout = Duration::from_millis(self.options.connect_timeout_ms.into());
        let deadline = self.clock.now() + timeout.as_nanos() as Nanos;
        client.phase = Phase::Connecting { deadline, bound };
        self.connecting.push(id.0);
        self.advance(id);
        Ok(())
    }

    /// Takes a connecting client as far as it gets: bound, then up.
    fn advance(&mut self, id: ClientId) {
        let client = &mut self.clients[id.0 as usize];
        let Phase::Connecting { deadline, bound } = client.phase else {
            return;
        };
        if !bound && let (Some(port), Some(address)) = (&client.publisher, &client.address) {
            let outcome = allow_ipv6(&port.socket, address)
                .and_then(|()| port.socket.bind(address))
                .and_then(|()| port.socket.last_endpoint());
            match outcome {
                Ok(address) => client.address = Some(address),
                Err(e) if e.kind() == io::ErrorKind::AddrInUse && self.clock.now() < deadline => {
                    return; // Perhaps only until libzmq has closed the socket before.
                }
                Err(e) => {
                    let why = format!("cannot bind {address}: {}", explain(&e));
                    self.fail(id, why);
                    return;
                }
            }
            client.phase = Phase::Connecting {
                deadline,
                bound: true,
            };
        }
        let ports = [&client.publisher, &client.subscriber];
        if ports.into_iter().flatten().all(Port::all_up) {
            client.phase = Phase::Up;
            let change = Change::Connected {
                session_present: client.kept,
                address: client.address.clone(),
            };
            self.connecting.retain(|&c| c != id.0);
            self.news.push_back((id, change));
        }
    }

    fn fail(&mut self, id: ClientId, why: String) {
        let client = &mut self.clients[id.0 as usize];
        client.phase = Phase::Down;
        self.connecting.retain(|&c| c != id.0);
        self.news.push_back((id, Change::Failed(why)));
    }

    /// What libzmq still holds for a subscriber is delivered before its failure is reported: to
    /// act on a failure may mean to give up the socket.
    fn fail_once_drained(&mut self, id: ClientId, why: String) {
        let at_last = self.clock.now() + LAST_WORDS;
        let client = &mut self.clients[id.0 as usize];
        if client.lost.is_none() {
            client.lost = Some(Lost { why, at_last });
        }
        if !client.flooded {
            client.flooded = true;
            self.flooded.push(id.0);
        }
    }

    /// Retries what waits and fails what has waited too long. Returns when to look again.
    fn look_after_connecting(&mut self) -> Nanos {
        let now = self.clock.now();
        let mut next = Nanos::MAX;
        for index in (0..self.connecting.len()).rev() {
            let id = ClientId(self.connecting[index]);
            self.advance(id);
            let client = &self.clients[id.0 as usize];
            match client.phase {
                Phase::Connecting { deadline, .. } if deadline <= now => {
                    let missing = client.missing();
                    let ms = self.options.connect_timeout_ms;
                    self.fail(
                        id,
                        format!(
                            "no answer from {missing} within {ms} ms; is it running, and does it \
                             speak ZMTP? (native.zeromq.connect-timeout-ms allows more time)"
                        ),
                    );
                }
                Phase::Connecting { bound: false, .. } => next = next.min(now + BIND_RETRY),
                Phase::Connecting { deadline, .. } => next = next.min(deadline),
                _ => {}
            }
        }
        next
    }

    /// What a monitor has seen.
    fn read_monitor(&mut self, id: ClientId, role: Role) -> io::Result<()> {
        loop {
            let client = &mut self.clients[id.0 as usize];
            let Some(port) = client.port(role) else {
                return Ok(());
            };
            let Some((peer, link)) = port.next_change()? else {
                return Ok(());
            };
            let address = port.peers[peer].address.clone();
            match (link, client.phase) {
                (Link::Up, _) => self.advance(id),
                (Link::Down, Phase::Up) => {
                    let why = format!(
                        "the connection to the {} at {address} was lost: it ended or was killed",
                        self.peer_name(role)
                    );
                    match role {
                        Role::Publisher => self.fail(id, why),
                        Role::Subscriber => self.fail_once_drained(id, why),
                    }
                }
                (Link::Down | Link::Refused, Phase::Connecting { .. }) => {
                    let what = self.peer_name(role);
                    self.fail(
                        id,
                        format!(
                            "no {what} answers at {address}: nobody listens there, or not \
                                 with ZeroMQ's protocol"
                        ),
                    );
                }
                (_, _) => {}
            }
        }
    }

    fn peer_name(&self, role: Role) -> &'static str {
        match role {
            _ if !self.forwarders.is_empty() => "forwarder",
            Role::Subscriber => "publisher",
            Role::Publisher => "subscriber",
        }
    }

    /// Reports what happened outside of `poll`, or while it looked after connections.
    fn report(&mut self, events: &mut dyn Events) -> bool {
        let any = !self.news.is_empty();
        while let Some((client, change)) = self.news.pop_front() {
            events.changed(client, change);
        }
        any
    }

    /// A turn at one subscriber's socket. Returns whether anything came.
    #[inline]
    fn take_from(&mut self, id: u32, events: &mut dyn Events) -> io::Result<bool> {
        let client = &mut self.clients[id as usize];
        let Some(port) = &client.subscriber else {
            client.flooded = false;
            return Ok(false);
        };
        let checks = if client.checked {
            &client.filters[..]
        } else {
            &[]
        };
        let turn = self.inbox.take(
            &port.socket,
            ClientId(id),
            checks,
            client.flooded,
            &mut self.wire,
            events,
        )?;
        client.flooded = turn.more;
        Ok(turn.messages > 0)
    }

    /// A turn at each flooded subscriber; those that ran dry leave the list.
    fn take_from_flooded(&mut self, events: &mut dyn Events) -> io::Result<bool> {
        let mut any = false;
        let mut index = 0;
        while index < self.flooded.len() {
            let id = self.flooded[index];
            any |= self.take_from(id, events)?;
            let client = &mut self.clients[id as usize];
            let drained = !client.flooded;
            if let Some(lost) = &client.lost {
                let others = client.subscriber.as_ref().is_some_and(Port::any_up);
                if drained || (others && lost.at_last <= self.clock.now()) {
                    let why = std::mem::take(&mut client.lost).map_or_else(String::new, |l| l.why);
                    self.fail(ClientId(id), why);
                    any |= self.report(events);
                }
            }
            if drained {
                self.flooded.swap_remove(index);
            } else {
                index += 1;
            }
        }
        Ok(any)
    }

    /// Handles one entry of the epoll set. Returns whether anything was reported.
    fn handle(&mut self, key: Key, events: &mut dyn Events) -> io::Result<bool> {
        let id = ClientId(key.client);
        if key.monitor {
            self.read_monitor(id, key.role)?;
            return Ok(self.report(events));
        }
        match key.role {
            Role::Subscriber => {
                let client = &self.clients[key.client as usize];
                if client.flooded {
                    return Ok(false); // Has had its turn.
                }
                let any = self.take_from(key.client, events)?;
                if self.clients[key.client as usize].flooded {
                    self.flooded.push(key.client);
                }
                Ok(any)
            }
            Role::Publisher => {
                let client = &mut self.clients[key.client as usize];
                let Some(port) = &mut client.publisher else {
                    return Ok(false);
                };
                if self.options.queue == Queue::Block {
                    // Subscriptions: libzmq itself acts on them; read so that they do not pile
                    // up. Reading until nothing is left also silences the descriptor.
                    let mut message = Message::empty();
                    while port.socket.receive(&mut message)? {}
                } else {
                    port.socket.process_commands()?;
                }
                // libzmq does not tell whether a no-drop XPUB can be written to (ZMQ_POLLOUT is
                // always set); that a subscriber's queue has room again comes as a command.
                let writable = std::mem::take(&mut port.blocked);
                if writable {
                    events.changed(id, Change::Writable);
                }
                Ok(writable)
            }
        }
    }

    fn poll_inner(&mut self, until: Nanos, events: &mut dyn Events) -> io::Result<()> {
        loop {
            let mut reported = self.report(events);
            if !self.flooded.is_empty() {
                reported |= self.take_from_flooded(events)?;
                self.turns += 1;
                if reported && self.turns % TURNS_BEFORE_OTHERS != 0 {
                    return Ok(());
                }
            }
            let mut wake = until;
            if !self.connecting.is_empty() {
                wake = wake.min(self.look_after_connecting());
                reported |= self.report(events);
            }
            let now = self.clock.now();
            let sleep = if reported || !self.flooded.is_empty() {
                0
            } else {
                wake.saturating_sub(now)
            };
            let timeout = Timespec {
                tv_sec: (sleep / 1_000_000_000).min(i64::MAX as u64 / 2) as i64,
                tv_nsec: (sleep % 1_000_000_000) as _,
            };
            self.ready.clear();
            match epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut self.ready),
                Some(&timeout),
            ) {
                Ok(_) => {}
                // A signal: the engine may want to look at what it set.
                Err(rustix::io::Errno::INTR) => return Ok(()),
                Err(e) => return Err(e.into()),
            }
            for index in 0..self.ready.len() {
                let key = Key::of_u64(self.ready[index].data.u64());
                reported |= self.handle(key, events)?;
            }
            if reported || self.clock.now() >= until {
                return Ok(());
            }
        }
    }

    /// Closes the client's sockets.
    fn drop_ports(&mut self, id: ClientId, linger_ms: i32) {
        let client = &mut self.clients[id.0 as usize];
        for port in [client.publisher.take(), client.subscriber.take()]
            .into_iter()
            .flatten()
        {
            port.close(&self.epoll, linger_ms);
        }
        if let Some(path) = client
            .address
            .as_ref()
            .and_then(|a| a.strip_prefix("ipc://"))
        {
            // libzmq leaves the file behind. If it is not there, so much the better.
            let _ = std::fs::remove_file(path);
        }
        client.phase = Phase::Down;
        client.filters.clear();
        client.checked = false;
        client.kept = false;
        client.lost = None;
        self.connecting.retain(|&c| c != id.0);
        // What was to be reported of it is overtaken.
        self.news.retain(|(c, _)| *c != id);
    }
}

impl Client {
    fn port(&mut self, role: Role) -> Option<&mut Port> {
        match role {
            Role::Publisher => self.publisher.as_mut(),
            Role::Subscriber => self.subscriber.as_mut(),
        }
    }

    fn missing(&self) -> String {
        let ports = [&self.publisher, &self.subscriber];
        let missing: Vec<&str> = ports
            .into_iter()
            .flatten()
            .flat_map(|port| &port.peers)
            .filter(|peer| !peer.up)
            .map(|peer| peer.address.as_str())
            .collect();
        match missing.len() {
            0..=3 => missing.join(", "),
            n => format!("{} and {} more", missing[..3].join(", "), n - 3),
        }
    }
}

impl Fleet for ZeromqFleet {
    fn connect(&mut self, spec: &ClientSpec) -> Result<ClientId, DriverError> {
        if spec.will.is_some() {
            return Err(DriverError::with_hint(
                format!("client {}: ZeroMQ has no last will", spec.name),
                "leave the will out for ZeroMQ",
            ));
        }
        if !self.forwarders.is_empty() && spec.endpoint >= self.forwarders.len() {
            return Err(DriverError::new(format!(
                "client {}: endpoint {} of {}",
                spec.name,
                spec.endpoint,
                self.forwarders.len()
            )));
        }
        let id = ClientId(self.clients.len() as u32);
        self.clients.push(Client {
            spec: spec.clone(),
            phase: Phase::Down,
            publisher: None,
            subscriber: None,
            address: None,
            filters: Vec::new(),
            checked: false,
            lost: None,
            flooded: false,
            kept: false,
        });
        if let Err(error) = self.begin(id) {
            self.drop_ports(id, 0);
            self.clients.pop();
            self.flooded.retain(|&c| c != id.0);
            return Err(error);
        }
        Ok(id)
    }

    fn subscribe(&mut self, id: ClientId, subscription: &Subscription) -> Result<(), DriverError> {
        let client = self
            .clients
            .get_mut(id.0 as usize)
            .ok_or_else(|| unknown(id))?;
        if let Some(group) = &subscription.group {
            return Err(DriverError::with_hint(
                format!("the group {group:?}: ZeroMQ PUB/SUB has no shared subscriptions"),
                "leave the group out; each subscriber then gets every message",
            ));
        }
        let filter = translate(&subscription.filter, self.options.plus_at_receiver)?;
        let Some(port) = &client.subscriber else {
            return Err(DriverError::new(format!(
                "client {} is not connected as a subscriber",
                client.spec.name
            )));
        };
        if self.options.queue == Queue::Conflate && !client.filters.is_empty() {
            return Err(DriverError::with_hint(
                format!(
                    "client {}: with conflate = true libzmq keeps one subscription only",
                    client.spec.name
                ),
                "ZMQ_CONFLATE also conflates the subscriptions on their way; subscribe once, or \
                 use one client for each filter",
            ));
        }
        port.socket.subscribe(&filter.prefix).map_err(|e| {
            failed(
                &format!("cannot subscribe to {:?}", subscription.filter),
                &e,
            )
        })?;
        client.checked |= filter.check.is_some();
        client.filters.push(subscription.filter.clone());
        self.news.push_back((id, Change::Subscribed));
        Ok(())
    }

    fn advertise(&mut self, client: ClientId, topic: &str) -> Result<TopicId, DriverError> {
        if client.0 as usize >= self.clients.len() {
            return Err(unknown(client));
        }
        let key = (client, topic.to_owned());
        if let Some(id) = self.topic_ids.get(&key) {
            return Ok(*id);
        }
        let wire = wire_topic(topic)?;
        let id = TopicId(self.topics.len() as u32);
        self.topics.push(wire);
        self.topic_ids.insert(key, id);
        Ok(id)
    }

    #[inline]
    fn publish(
        &mut self,
        client: ClientId,
        topic: TopicId,
        payload: Payload<'_>,
        _tag: u64,
    ) -> Publish {
        let Some(client) = self.clients.get_mut(client.0 as usize) else {
            return Publish::Refused(Refusal::NotConnected);
        };
        let (Phase::Up, Some(port)) = (client.phase, &mut client.publisher) else {
            return Publish::Refused(Refusal::NotConnected);
        };
        let topic = &self.topics[topic.0 as usize];
        let outcome = match self.options.framing {
            Framing::SingleFrame => {
                self.wire.sent += on_the_wire(topic.len() + payload.len());
                Message::of([topic, payload.head, payload.body])
                    .and_then(|mut message| port.socket.send(&mut message, false))
            }
            Framing::Multipart => {
                self.wire.sent += on_the_wire(topic.len()) + on_the_wire(payload.len());
                send_in_two(port, topic, payload)
            }
        };
        match outcome {
            Ok(()) => Publish::Accepted,
            Err(error) => {
                self.wire.sent -= match self.options.framing {
                    Framing::SingleFrame => on_the_wire(topic.len() + payload.len()),
                    Framing::Multipart => on_the_wire(topic.len()) + on_the_wire(payload.len()),
                };
                if would_block(&error) {
                    port.blocked = true;
                    Publish::Blocked
                } else if error.raw_os_error() == Some(libc::ENOMEM) {
                    Publish::Refused(Refusal::TooLarge)
                } else {
                    Publish::Refused(Refusal::NotConnected)
                }
            }
        }
    }

    fn poll(&mut self, until: Nanos, events: &mut dyn Events) -> Result<(), DriverError> {
        self.poll_inner(until, events)
            .map_err(|e| failed("libzmq failed", &e))
    }

    fn disconnect(&mut self, client: ClientId) {
        if (client.0 as usize) < self.clients.len() {
            self.drop_ports(client, self.options.linger_ms);
            self.news.push_back((client, Change::Closed));
        }
    }

    fn abort(&mut self, client: ClientId) {
        if (client.0 as usize) < self.clients.len() {
            self.drop_ports(client, 0);
        }
    }

    fn reconnect(&mut self, id: ClientId) -> Result<(), DriverError> {
        let client = self
            .clients
            .get_mut(id.0 as usize)
            .ok_or_else(|| unknown(id))?;
        if client.phase == Phase::Up {
            return Ok(());
        }
        // A subscriber that still hears other publishers keeps its socket, with what is queued
        // in it and its subscriptions; only the lost connections are made again.
        let ports = [&client.publisher, &client.subscriber];
        let keep = client.subscriber.is_some()
            && ports
                .into_iter()
                .flatten()
                .all(|p| p.peers.is_empty() || p.any_up());
        if keep {
            client.kept = true;
        } else {
            self.drop_ports(id, 0);
        }
        self.connecting.retain(|&c| c != id.0);
        self.begin(id)
    }

    /// Always 0: what libzmq has accepted is the system's, and it does not tell how much of it
    /// still waits in its queues.
    fn unsettled(&self) -> u64 {
        0
    }

    /// ZMTP frames handed to libzmq (once, however many subscribers get them) and got from it.
    /// What libzmq itself adds (greeting, handshake, heartbeats) and drops, it does not tell.
    fn wire_bytes(&self) -> WireBytes {
        self.wire
    }

    fn has_threads(&self) -> bool {
        true
    }

    fn close(&mut self, until: Nanos) {
        let left_ms = until.saturating_sub(self.clock.now()) / 1_000_000;
        let linger_ms = i32::try_from(left_ms).unwrap_or(i32::MAX);
        for index in 0..self.clients.len() {
            self.drop_ports(ClientId(index as u32), linger_ms);
        }
        self.flooded.clear();
        self.news.clear();
        // Waits for libzmq's threads to send what lingers, and ends them.
        self.context = None;
    }
}

impl Drop for ZeromqFleet {
    fn drop(&mut self) {
        self.close(0);
    }
}

/// Sends topic and payload as two frames of one message.
#[inline]
fn send_in_two(port: &Port, topic: &[u8], payload: Payload<'_>) -> io::Result<()> {
    port.socket
        .send(&mut Message::of([topic, &[], &[]])?, true)?;
    let mut second = Message::of([payload.head, payload.body, &[]])?;
    // Once the first frame is taken, so is the second: libzmq counts whole messages against the
    // high-water mark and has fixed the receivers with the first frame (xpub.cpp, xsend).
    while let Err(error) = port.socket.send(&mut second, false) {
        if !would_block(&error) {
            return Err(error);
        }
        port.socket.process_commands()?;
    }
    Ok(())
}

fn forwarders(
    endpoints: &[String],
    transport: Option<Transport>,
) -> Result<Vec<ForwarderAddress>, DriverError> {
    if endpoints.is_empty() {
        return Err(DriverError::with_hint(
            "no ZeroMQ forwarder to connect to",
            "give its address as zmq-forwarder+tcp://HOST:PUBLISHER_PORT,SUBSCRIBER_PORT",
        ));
    }
    let forwarders: Vec<ForwarderAddress> = endpoints
        .iter()
        .map(|e| e.parse())
        .collect::<Result<_, _>>()?;
    if let (Some(asked), Some(other)) = (
        transport,
        forwarders.iter().find(|f| Some(f.transport()) != transport),
    ) {
        return Err(DriverError::with_hint(
            format!("the transport is {asked:?}, but the forwarder is {other}"),
            "start the forwarder with the same transport",
        ));
    }
    Ok(forwarders)
}

fn host(ip: std::net::IpAddr) -> String {
    match ip {
        std::net::IpAddr::V4(ip) => ip.to_string(),
        std::net::IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

fn failed(what: &str, error: &io::Error) -> DriverError {
    let text = format!("{what}: {}", explain(error));
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => DriverError::with_hint(
            text,
            "libzmq needs up to nine file descriptors for each client: raise the limit (ulimit \
             -n) or use fewer clients per process",
        ),
        _ => DriverError::new(text),
    }
}

fn unknown(client: ClientId) -> DriverError {
    DriverError::new(format!("there is no client {}", client.0))
}

fn closed() -> DriverError {
    DriverError::new("the fleet is closed")
}
