//! How a fleet's clients connect, disconnect and reconnect.

use std::io;

use pubgauge_driver::{Attempt, Change, ClientId, Clock, DriverError, Failure, Nanos};

use super::ended::failed;
use super::state::{Lost, SocketPhase, ZeromqClient, ZeromqFleet};
use crate::address::to_bind;
use crate::options::ZeromqOptions;
use crate::port::{Port, Role, allow_ipv6};
use crate::zmq::Link;

/// How often a publisher that reconnects tries to bind its port again, while libzmq's threads are
/// still closing its former socket, ns.
const BIND_RETRY: Nanos = 1_000_000;

/// How long other publishers' messages may delay the report that one publisher is lost, ns.
const LAST_WORDS: Nanos = 1_000_000_000;

impl ZeromqFleet {
    /// Opens the client's sockets and begins to bind and connect them. Sockets that are open stay,
    /// with the connections that are up.
    pub(super) fn begin(&mut self, id: ClientId) -> Result<(), DriverError> {
        if id.find(&self.clients)?.spec.publishes {
            self.open_queues(id)?;
        }
        let context = self.context.as_ref().ok_or_else(DriverError::closed)?;
        let client = id.find_mut(&mut self.clients)?;
        let name = client.spec.name.clone();
        let cannot =
            |what: &str, e: &io::Error| failed(&format!("client {name}: {what}"), Attempt::Open, e);
        let open = |role| {
            let port = Port::open(context, &self.options, &self.epoll, id.0, role);
            port.map_err(|e| cannot("cannot open a socket", &e))
        };
        let connect = |port: &mut Port, address: &str| {
            let begun = port.connect(context, &self.epoll, id.0, address);
            begun.map_err(|e| cannot(&format!("cannot connect to {address}"), &e))
        };
        let mut bound = true;
        if client.spec.publishes {
            if client.publisher.is_none() {
                client.publisher = Some(open(Role::Publisher)?);
                bound = !self.forwarders.is_empty();
            }
            if !bound && client.address.is_none() {
                let ip = client.spec.source.unwrap_or(self.address);
                let name = format!("z{}-{}", self.worker, id.0);
                let address = to_bind(self.options.transport, ip, &self.scratch, &name)?;
                client.address = Some(address);
            }
            if let (Some(port), Some(forwarder)) = (
                &mut client.publisher,
                self.forwarders.get(client.spec.endpoint),
            ) && (port.peers.is_empty() || !port.all_up())
            {
                connect(port, &forwarder.for_publishers())?;
            }
        }
        if client.spec.subscribes {
            if client.subscriber.is_none() {
                client.subscriber = Some(open(Role::Subscriber)?);
            }
            if self.options.point_to_point && client.receiver.is_none() {
                client.receiver = Some(open(Role::Receiver)?);
            }
            let addresses = match self.forwarders.get(client.spec.endpoint) {
                Some(forwarder) => vec![forwarder.for_subscribers()],
                None => client.spec.peers.clone(),
            };
            if let Some(port) = &mut client.subscriber {
                for address in addresses {
                    if !port.is_up(&address) {
                        connect(port, &address)?;
                    }
                }
            }
            // Connecting handles commands, which may have announced messages.
            client.untold = true;
            if !client.flooded {
                client.flooded = true;
                self.flooded.push(id.0);
            }
        }
        let deadline = deadline(&self.clock, &self.options);
        client.phase = SocketPhase::Connecting { deadline, bound };
        self.connecting.push(id.0);
        self.advance(id);
        Ok(())
    }

    /// Advances a connecting client: bound, then connected.
    pub(super) fn advance(&mut self, id: ClientId) {
        let client = &mut self.clients[id.0 as usize];
        let SocketPhase::Connecting { deadline, bound } = client.phase else {
            return;
        };
        if !bound && let (Some(port), Some(address)) = (&client.publisher, &client.address) {
            let outcome = allow_ipv6(&port.socket, address)
                .and_then(|()| port.socket.bind(address))
                .and_then(|()| port.socket.last_endpoint());
            match outcome {
                Ok(address) => client.address = Some(address),
                Err(e)
                    if e.kind() == io::ErrorKind::AddrInUse
                        && !any_port(address)
                        && self.clock.now() < deadline =>
                {
                    return; // Perhaps only until libzmq has closed the socket before.
                }
                Err(e) => {
                    let failure = cannot_bind(address, &e);
                    self.fail(id, failure);
                    return;
                }
            }
            client.phase = SocketPhase::Connecting {
                deadline,
                bound: true,
            };
        }
        let ports = [&client.publisher, &client.subscriber];
        if ports.into_iter().flatten().all(Port::all_up) {
            client.phase = SocketPhase::Up;
            let address = match self.forwarders.get(client.spec.endpoint) {
                // The side of the forwarder that its messages leave by.
                Some(forwarder) => client.spec.publishes.then(|| forwarder.for_subscribers()),
                None => client.address.clone(),
            };
            let change = Change::Connected {
                session_present: client.kept,
                address,
            };
            self.connecting.retain(|&c| c != id.0);
            self.news.push_back((id, change));
        }
    }

    pub(super) fn fail(&mut self, id: ClientId, why: impl Into<Failure>) {
        let client = &mut self.clients[id.0 as usize];
        client.phase = SocketPhase::Down;
        self.connecting.retain(|&c| c != id.0);
        self.news.push_back((id, Change::Failed(why.into())));
    }

    /// Messages that libzmq still holds for a subscriber are delivered before its failure is reported:
    /// whoever acts on a failure may close the socket.
    pub(super) fn fail_once_drained(&mut self, id: ClientId, why: impl Into<Failure>) {
        let at_last = self.clock.now() + LAST_WORDS;
        let client = &mut self.clients[id.0 as usize];
        if client.lost.is_none() {
            let why = why.into();
            client.lost = Some(Lost { why, at_last });
        }
        if !client.flooded {
            client.flooded = true;
            self.flooded.push(id.0);
        }
    }

    /// Retries binding and fails clients that have waited too long. Returns when to call it again.
    pub(super) fn look_after_connecting(&mut self) -> Nanos {
        let now = self.clock.now();
        let mut next = Nanos::MAX;
        for index in (0..self.connecting.len()).rev() {
            let id = ClientId(self.connecting[index]);
            self.advance(id);
            let client = &self.clients[id.0 as usize];
            match client.phase {
                SocketPhase::Connecting { deadline, .. } if deadline <= now => {
                    let missing = client.missing();
                    let ms = self.options.native.connect_timeout_ms;
                    let why = format!(
                        "no answer from {missing} within {ms} ms; is it running, and does it \
                         speak ZMTP? (native.zeromq.connect-timeout-ms allows more time)"
                    );
                    let failure = self.unreached(why, &missing);
                    self.fail(id, failure);
                }
                SocketPhase::Connecting { bound: false, .. } => next = next.min(now + BIND_RETRY),
                SocketPhase::Connecting { deadline, .. } => next = next.min(deadline),
                _ => {}
            }
        }
        next
    }

    /// Handles the events of a monitor.
    pub(super) fn read_monitor(&mut self, id: ClientId, role: Role) -> io::Result<()> {
        loop {
            let client = &mut self.clients[id.0 as usize];
            let Some(port) = client.port(role) else {
                return Ok(());
            };
            let Some((peer, link)) = port.next_change()? else {
                return Ok(());
            };
            let address = port.peers[peer].address.clone();
            if role == Role::Receiver {
                self.queue_changed(id, &address, link);
                continue;
            }
            match (link, client.phase) {
                (Link::Up, _) => self.advance(id),
                (Link::Down, SocketPhase::Up) => {
                    let why = format!(
                        "the connection to the {} at {address} was lost: it ended or was killed",
                        self.peer_name(role)
                    );
                    match role {
                        Role::Publisher => self.fail(id, why),
                        _ => self.fail_once_drained(id, why),
                    }
                }
                (Link::Refused, SocketPhase::Up) | (_, SocketPhase::Connecting { .. }) => {
                    let what = self.peer_name(role);
                    let why = format!(
                        "no {what} answers at {address}: nobody listens there, or not with \
                         ZeroMQ's protocol"
                    );
                    let failure = self.unreached(why, &address);
                    self.fail(id, failure);
                }
                (_, _) => {}
            }
        }
    }

    pub(super) fn peer_name(&self, role: Role) -> &'static str {
        match role {
            _ if !self.forwarders.is_empty() => "forwarder",
            Role::Publisher => "subscriber",
            _ => "publisher",
        }
    }
    /// Closes the client's sockets.
    pub(super) fn drop_ports(&mut self, id: ClientId, linger_ms: i32) {
        let client = &mut self.clients[id.0 as usize];
        let ports = [
            &mut client.publisher,
            &mut client.subscriber,
            &mut client.receiver,
        ];
        for port in ports.into_iter().filter_map(Option::take) {
            port.close(&self.epoll, linger_ms);
        }
        for topic in &client.topics {
            if let Some(open) = self.queues[topic.0 as usize].open.take() {
                open.close(&self.epoll, linger_ms);
            }
        }
        if let Some(address) = &client.address {
            remove_socket_file(address);
        }
        client.sources.clear();
        client.untold = false;
        client.phase = SocketPhase::Down;
        client.filters.clear();
        client.checked = false;
        client.kept = false;
        client.bound = None;
        client.lost = None;
        self.connecting.retain(|&c| c != id.0);
        // Pending reports of this client no longer hold.
        self.news.retain(|(c, _)| *c != id);
    }
}

impl ZeromqClient {
    pub(super) fn port(&mut self, role: Role) -> Option<&mut Port> {
        match role {
            Role::Publisher => self.publisher.as_mut(),
            Role::Subscriber => self.subscriber.as_mut(),
            Role::Receiver => self.receiver.as_mut(),
            // Belongs to a topic.
            Role::Queue => None,
        }
    }

    pub(super) fn missing(&self) -> String {
        let ports = [&self.publisher, &self.subscriber];
        let missing: Vec<&str> = ports
            .into_iter()
            .flatten()
            .flat_map(|port| &port.peers)
            .filter(|peer| !peer.is_up())
            .map(|peer| peer.address.as_str())
            .collect();
        match missing.len() {
            0..=3 => missing.join(", "),
            n => format!("{} and {} more", missing[..3].join(", "), n - 3),
        }
    }
}

/// Whether the kernel chooses the port.
fn any_port(address: &str) -> bool {
    address.ends_with(":*")
}

/// Why a socket cannot be bound. Where the kernel was to choose the port, none is free.
pub(super) fn cannot_bind(address: &str, error: &io::Error) -> DriverError {
    let attempt = if any_port(address) {
        Attempt::BindAnyPort
    } else {
        Attempt::Open
    };
    failed(&format!("cannot bind {address}"), attempt, error)
}

/// libzmq leaves the file of a local socket behind.
pub(super) fn remove_socket_file(address: &str) {
    if let Some(path) = address.strip_prefix("ipc://") {
        // It may be gone already.
        let _ = std::fs::remove_file(path);
    }
}

/// Deadline for a client that begins to connect now.
pub(super) fn deadline(clock: &Clock, options: &ZeromqOptions) -> Nanos {
    clock.now() + Nanos::from(options.native.connect_timeout_ms) * 1_000_000
}
