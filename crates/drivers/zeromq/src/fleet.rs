//! The fleet: one worker's ZeroMQ clients behind one epoll.

mod connecting;
mod ended;
mod polling;
mod queues;
mod state;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::Ipv4Addr;

use pubgauge_driver::{
    Attempt, Change, ClientId, ClientSpec, DriverError, Events, Fleet, FleetConfig, Nanos, Payload,
    Publish, Refusal, Resource, Subscription, TopicId, Transport, WireBytes,
};
use rustix::event::epoll;

use self::connecting::deadline;
use self::ended::failed;
use self::polling::HURRIED_MAX;
pub(crate) use self::state::ZeromqFleet;
use self::state::{SocketPhase, ZeromqClient};
use crate::address::ForwarderAddress;
use crate::inbox::{Inbox, on_the_wire};
use crate::native::Framing;
use crate::options::{Queue, ZeromqOptions};
use crate::port::{Port, Role};
use crate::topic::{accept, wire_topic};
use crate::zmq::{Context, ZmqMessage, would_block};

/// Fewest sockets that a context has room for, if more clients come than were announced.
const MIN_SOCKETS: usize = 8192;

/// Epoll entries handled at once.
const READY: usize = 256;

impl ZeromqFleet {
    pub(crate) fn open(config: &FleetConfig, options: ZeromqOptions) -> Result<Self, DriverError> {
        let forwarders = forwarders(&config.target.endpoints, options.transport)?;
        // Per client: two data sockets, and two ends of a monitor for each. A slot costs 8 bytes.
        // Under point-to-point also a receiver with its monitor, and a queue for each topic.
        let sockets = if !options.point_to_point {
            config.clients.saturating_mul(6).max(MIN_SOCKETS)
        } else {
            config.clients.saturating_mul(32).max(8 * MIN_SOCKETS)
        };
        // Where it gets too little of these, libzmq ends the process. Each thread, the one that closes
        // sockets among them, has an epoll and a mailbox, a pair of descriptors; so have the context
        // and its first socket one. The last is the fleet's epoll.
        let threads = usize::from(options.native.io_threads) + 1;
        Resource::can_have(3 * threads + 5, threads).map_err(|resource| {
            DriverError::exhausted(format!("no {resource} left to start libzmq"), resource)
        })?;
        let context = Context::start(options.native.io_threads, sockets)
            .map_err(|e| failed("cannot start libzmq", Attempt::Start, &e))?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|e| failed("cannot create an epoll", Attempt::Open, &e.into()))?;
        Ok(ZeromqFleet {
            clients: Vec::with_capacity(config.clients),
            topics: Vec::new(),
            topic_ids: HashMap::new(),
            queues: Vec::new(),
            queues_opened: 0,
            inbox: Inbox::new(options.native.framing),
            wire: WireBytes::default(),
            flooded: Vec::with_capacity(config.clients),
            turns: 0,
            hurried: 0,
            subscribes: false,
            connecting: Vec::new(),
            news: VecDeque::new(),
            ready: Vec::with_capacity(READY),
            epoll,
            clock: config.clock.clone(),
            options,
            forwarders,
            scratch: config.target.scratch.clone(),
            address: match &config.target.network {
                Some(network) => network.address.into(),
                None => Ipv4Addr::LOCALHOST.into(),
            },
            worker: config.worker,
            context: Some(context),
        })
    }
}

impl Fleet for ZeromqFleet {
    fn connect(&mut self, spec: &ClientSpec) -> Result<ClientId, DriverError> {
        spec.without_will("ZeroMQ", "ZeroMQ")?;
        if !self.forwarders.is_empty() && spec.endpoint >= self.forwarders.len() {
            return Err(DriverError::new(format!(
                "client {}: endpoint {} of {}",
                spec.name,
                spec.endpoint,
                self.forwarders.len()
            )));
        }
        self.subscribes |= spec.subscribes;
        let id = ClientId(self.clients.len() as u32);
        self.clients.push(ZeromqClient {
            spec: spec.clone(),
            ..ZeromqClient::default()
        });
        if let Err(error) = self.begin(id) {
            self.drop_ports(id, 0);
            self.clients.pop();
            self.flooded.retain(|&c| c != id.0);
            return Err(error);
        }
        Ok(id)
    }

    /// Behind a forwarder there is nothing to do: everything comes from it. A lost publisher that
    /// is named again is connected to again, on the same socket.
    fn add_peer(&mut self, id: ClientId, address: &str) -> Result<(), DriverError> {
        if !self.forwarders.is_empty() {
            return Ok(());
        }
        let client = id.find(&self.clients)?;
        if !client.spec.subscribes {
            return Err(DriverError::new(format!(
                "client {} does not subscribe and needs no peers",
                client.spec.name
            )));
        }
        // Earlier events of this connection no longer matter.
        self.read_monitor(id, Role::Subscriber)
            .map_err(|e| failed("libzmq failed", Attempt::Transfer, &e))?;
        let context = self.context.as_ref().ok_or_else(DriverError::closed)?;
        let client = &mut self.clients[id.0 as usize];
        if !client.spec.peers.iter().any(|p| p == address) {
            client.spec.peers.push(address.to_owned());
        }
        // A client that is closed connects to it when it connects again.
        let Some(port) = &mut client.subscriber else {
            return Ok(());
        };
        if port.is_up(address) {
            return Ok(());
        }
        client.untold = true;
        port.connect(context, &self.epoll, id.0, address)
            .map_err(|e| failed(&format!("cannot connect to {address}"), Attempt::Open, &e))?;
        if port.peers.iter().filter(|p| !p.is_up()).count() == 1 {
            client.lost = None;
        }
        if client.phase == SocketPhase::Down {
            client.kept = true;
            client.phase = SocketPhase::Connecting {
                deadline: deadline(&self.clock, &self.options),
                bound: true,
            };
            self.connecting.push(id.0);
        }
        if !client.flooded {
            client.flooded = true;
            self.flooded.push(id.0);
        }
        Ok(())
    }

    fn subscribe(&mut self, id: ClientId, subscription: &Subscription) -> Result<(), DriverError> {
        let client = id.find_mut(&mut self.clients)?;
        let filter = accept(subscription, &self.options)?;
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
            let what = format!("cannot subscribe to {:?}", subscription.filter);
            failed(&what, Attempt::Transfer, &e)
        })?;
        client.checked |= filter.check.is_some();
        client.filters.push(subscription.filter.clone());
        self.news.push_back((id, Change::Subscribed));
        Ok(())
    }

    fn advertise(&mut self, client: ClientId, topic: &str) -> Result<TopicId, DriverError> {
        client.find(&self.clients)?;
        let key = (client, topic.to_owned());
        if let Some(id) = self.topic_ids.get(&key) {
            return Ok(*id);
        }
        let wire = wire_topic(topic)?;
        let id = TopicId(self.topics.len() as u32);
        if self.options.point_to_point {
            self.add_queue(client)?;
        }
        self.topics.push(wire);
        self.topic_ids.insert(key, id);
        if self.options.point_to_point {
            self.announce(id)
                .and_then(|()| self.answer_subscriptions(client))
                .map_err(|e| failed("libzmq failed", Attempt::Transfer, &e))?;
        }
        Ok(id)
    }

    #[inline]
    fn publish(
        &mut self,
        id: ClientId,
        topic: TopicId,
        payload: Payload<'_>,
        _tag: u64,
    ) -> Publish {
        let Some(client) = self.clients.get_mut(id.0 as usize) else {
            return Publish::Refused(Refusal::NotConnected);
        };
        let port = if self.options.point_to_point {
            let queue = self.queues.get_mut(topic.0 as usize);
            queue.and_then(|q| q.open.as_mut()).map(|q| &mut q.port)
        } else {
            client.publisher.as_mut()
        };
        let (SocketPhase::Up, Some(port)) = (client.phase, port) else {
            return Publish::Refused(Refusal::NotConnected);
        };
        let topic = &self.topics[topic.0 as usize];
        let (bytes, outcome) = match self.options.native.framing {
            Framing::SingleFrame => (
                on_the_wire(topic.len() + payload.len()),
                ZmqMessage::from_parts(topic, payload.head, payload.body)
                    .and_then(|message| port.socket.send_new(message, false)),
            ),
            Framing::Multipart => (
                on_the_wire(topic.len()) + on_the_wire(payload.len()),
                send_in_two(port, topic, payload),
            ),
        };
        match outcome {
            Ok(()) => {
                self.wire.sent += bytes;
                Publish::Accepted
            }
            Err(error) if would_block(&error) => {
                port.blocked = true;
                self.hurried = HURRIED_MAX;
                Publish::Blocked
            }
            Err(error) => {
                if Resource::exhausted_by(Attempt::Transfer, &error).is_some() {
                    let name = &client.spec.name;
                    let what = format!("client {name}: libzmq cannot take a message");
                    let failure = failed(&what, Attempt::Transfer, &error);
                    self.fail(id, failure);
                }
                Publish::Refused(Refusal::NotConnected)
            }
        }
    }

    fn poll(&mut self, until: Nanos, events: &mut dyn Events) -> Result<(), DriverError> {
        self.poll_inner(until, events)
            .map_err(|e| failed("libzmq failed", Attempt::Transfer, &e))
    }

    fn take_at_most(&mut self, id: ClientId, messages: Option<u32>) -> Result<(), DriverError> {
        let client = id.find_mut(&mut self.clients)?;
        client.bound = messages;
        if messages != Some(0) && !std::mem::replace(&mut client.flooded, true) {
            self.flooded.push(id.0);
        }
        Ok(())
    }

    fn disconnect(&mut self, client: ClientId) {
        if (client.0 as usize) < self.clients.len() {
            self.drop_ports(client, self.options.native.linger_ms);
            self.news.push_back((client, Change::Closed));
        }
    }

    fn abort(&mut self, client: ClientId) {
        if (client.0 as usize) < self.clients.len() {
            self.drop_ports(client, 0);
        }
    }

    fn reconnect(&mut self, id: ClientId) -> Result<(), DriverError> {
        let client = id.find_mut(&mut self.clients)?;
        if client.phase == SocketPhase::Up {
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

    /// Always 0: libzmq does not tell how many accepted messages still wait in its queues.
    fn unsettled(&self) -> u64 {
        0
    }

    /// ZMTP frames handed to libzmq (once, however many subscribers get them) and got from it.
    /// libzmq does not tell what it adds (greeting, handshake, heartbeats) or drops.
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
    port.socket.send_new(ZmqMessage::copy_of(topic)?, true)?;
    let mut second = ZmqMessage::from_parts(&[], payload.head, payload.body)?;
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
