//! One data socket of a client, with the connections it is made of.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::epoll;

use crate::options::{Queue, ZeromqOptions};
use crate::zmq::{Context, IntOption, Link, Monitor, Socket, SocketType};

/// ZMQ_RECONNECT_IVL, long enough that libzmq never connects again by itself within a trial: the
/// engine is told of a lost connection and acts on it. (A value of -1 would also make libzmq throw
/// away what it has received and not yet handed out.)
const NEVER_MS: i32 = 1_000_000_000;

/// Purpose of a port; also the low bits of its key in the epoll set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// PUB or XPUB; under point-to-point the XPUB that tells where a topic's queue is.
    Publisher = 0,
    /// SUB; under point-to-point it only receives the addresses of queues.
    Subscriber = 1,
    /// PUSH: the queue of one topic of one publisher.
    Queue = 2,
    /// PULL.
    Receiver = 3,
}

impl Role {
    const ALL: [Role; 4] = [
        Role::Publisher,
        Role::Subscriber,
        Role::Queue,
        Role::Receiver,
    ];
}

/// The key of an entry of the epoll set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// Number of the client; of a [`Role::Queue`], number of the topic.
    pub(crate) owner: u32,
    pub(crate) role: Role,
    /// The port's monitor, not its socket.
    pub(crate) monitor: bool,
}

impl Key {
    pub(crate) fn to_u64(self) -> u64 {
        u64::from(self.owner) << 3 | u64::from(self.monitor) << 2 | self.role as u64
    }

    pub(crate) fn of_u64(key: u64) -> Self {
        Key {
            owner: (key >> 3) as u32,
            role: Role::ALL[(key & 3) as usize],
            monitor: key & 4 != 0,
        }
    }
}

/// One connection of a port.
pub(crate) struct Peer {
    pub(crate) address: String,
    state: PeerState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeerState {
    Pending,
    Up,
    /// Refused or lost; stays so until connected again.
    Down,
}

impl Peer {
    pub(crate) fn is_up(&self) -> bool {
        self.state == PeerState::Up
    }
}

/// One data socket of a client.
pub(crate) struct Port {
    pub(crate) socket: Socket,
    pub(crate) role: Role,
    /// Whom it connects to; empty for a publisher that binds.
    pub(crate) peers: Vec<Peer>,
    /// Publishers and queues: the last message was not taken.
    pub(crate) blocked: bool,
    monitor: Option<Monitor>,
}

impl Port {
    /// A socket with all options set, watched by `epoll`, not yet bound or connected.
    pub(crate) fn open(
        context: &Context,
        options: &ZeromqOptions,
        epoll: &OwnedFd,
        owner: u32,
        role: Role,
    ) -> io::Result<Self> {
        let kind = match (role, options.queue) {
            (Role::Subscriber, _) => SocketType::Sub,
            (Role::Publisher, Queue::Block) => SocketType::Xpub,
            (Role::Publisher, Queue::Drop | Queue::Conflate) => SocketType::Pub,
            (Role::Queue, _) => SocketType::Push,
            (Role::Receiver, _) => SocketType::Pull,
        };
        let socket = context.socket(kind)?;
        configure(&socket, kind, options)?;
        socket.set(IntOption::ReconnectMs, NEVER_MS)?;
        match (role, options.queue) {
            (Role::Publisher | Role::Subscriber, _) if options.point_to_point => {
                // They carry few messages, each of which must arrive.
                socket.set(IntOption::SendHwm, 0)?;
                socket.set(IntOption::ReceiveHwm, 0)?;
                if role == Role::Publisher {
                    // Every subscription must be seen, also one that another subscriber has made
                    // before.
                    socket.set(IntOption::XpubVerbose, 1)?;
                }
            }
            (Role::Publisher, Queue::Block) => socket.set(IntOption::XpubNoDrop, 1)?,
            (_, Queue::Conflate) => socket.set(IntOption::Conflate, 1)?,
            _ => {}
        }
        let key = Key {
            owner,
            role,
            monitor: false,
        };
        epoll::add(
            epoll,
            socket.fd(),
            epoll::EventData::new_u64(key.to_u64()),
            epoll::EventFlags::IN,
        )?;
        Ok(Port {
            socket,
            role,
            peers: Vec::new(),
            blocked: false,
            monitor: None,
        })
    }

    /// Begins to connect to `address`; the monitor reports the outcome.
    pub(crate) fn connect(
        &mut self,
        context: &Context,
        epoll: &OwnedFd,
        client: u32,
        address: &str,
    ) -> io::Result<()> {
        if self.monitor.is_none() {
            let key = Key {
                owner: client,
                role: self.role,
                monitor: true,
            };
            let name = format!("monitor-{}-{}", key.to_u64(), self.socket_number());
            let monitor = Monitor::watch(&self.socket, context, &name)?;
            epoll::add(
                epoll,
                monitor.fd(),
                epoll::EventData::new_u64(key.to_u64()),
                epoll::EventFlags::IN,
            )?;
            self.monitor = Some(monitor);
        }
        match self.peers.iter_mut().find(|p| p.address == address) {
            Some(peer) => {
                peer.state = PeerState::Pending;
                // Ends what is left of an earlier connection; there may be none.
                let _ = self.socket.disconnect(address);
            }
            None => self.peers.push(Peer {
                address: address.to_owned(),
                state: PeerState::Pending,
            }),
        }
        allow_ipv6(&self.socket, address)?;
        self.socket.connect(address)
    }

    /// Tells this socket's monitor from that of a socket this client had before.
    fn socket_number(&self) -> usize {
        use std::sync::atomic::{AtomicUsize, Ordering};
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }

    /// The next change of a connection: which peer, and what.
    pub(crate) fn next_change(&mut self) -> io::Result<Option<(usize, Link)>> {
        let Some(monitor) = &mut self.monitor else {
            return Ok(None);
        };
        while let Some((link, address)) = monitor.next()? {
            let found = self.peers.iter().position(|p| p.address == address);
            // After libzmq has resolved a host name the address differs, so a single peer is
            // matched without it. (Addresses of queues are numeric, and a receiver's peers come and
            // go.)
            let alone = self.peers.len() == 1 && self.role != Role::Receiver;
            let found = found.or(alone.then_some(0));
            let Some(index) = found else { continue };
            let peer = &mut self.peers[index];
            let before = peer.state;
            peer.state = match link {
                Link::Up => PeerState::Up,
                Link::Down | Link::Refused => PeerState::Down,
            };
            // After a loss libzmq also reports that it will connect again.
            if peer.state != before {
                return Ok(Some((index, link)));
            }
        }
        Ok(None)
    }

    /// Gives up the connection to `address`, messages of it that are not received, and the peer
    /// itself.
    pub(crate) fn forget(&mut self, address: &str) {
        // The connection may be gone already.
        let _ = self.socket.disconnect(address);
        self.peers.retain(|p| p.address != address);
    }

    /// Gives up the connection to `address`, if it is up, and marks it as lost.
    pub(crate) fn lose(&mut self, address: &str) {
        if let Some(peer) = self.peers.iter_mut().find(|p| p.address == address) {
            peer.state = PeerState::Down;
            let _ = self.socket.disconnect(address);
        }
    }

    /// Whether the connection to `address` is up.
    pub(crate) fn is_up(&self, address: &str) -> bool {
        self.peers.iter().any(|p| p.is_up() && p.address == address)
    }

    /// Whether all connections are up.
    pub(crate) fn all_up(&self) -> bool {
        self.peers.iter().all(Peer::is_up)
    }

    /// How many connections are not up.
    pub(crate) fn missing(&self) -> usize {
        self.peers.iter().filter(|peer| !peer.is_up()).count()
    }

    /// Whether any connection is up.
    pub(crate) fn any_up(&self) -> bool {
        self.peers.iter().any(Peer::is_up)
    }

    /// Takes the port out of `epoll` and closes it; what a publisher has waiting is sent for
    /// another `linger_ms` in the background.
    pub(crate) fn close(self, epoll: &OwnedFd, linger_ms: i32) {
        // Fails only for a socket that is not in the set, or not open.
        if let Some(monitor) = &self.monitor {
            let _ = epoll::delete(epoll, monitor.fd());
        }
        let _ = epoll::delete(epoll, self.socket.fd());
        // A subscriber has only subscriptions to send. libzmq would linger in full for them once
        // the publisher is gone.
        if matches!(self.role, Role::Publisher | Role::Queue) {
            let _ = self.socket.set(IntOption::LingerMs, linger_ms);
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.socket.unmonitor();
    }
}

/// Sets ZMQ_IPV6 where `address` is an IPv6 one. (For all others libzmq's default stays: with
/// ZMQ_IPV6 a host's name could resolve to an address that nobody listens on.)
pub(crate) fn allow_ipv6(socket: &Socket, address: &str) -> io::Result<()> {
    if address.contains('[') {
        socket.set(IntOption::Ipv6, 1)?;
    }
    Ok(())
}

/// Sets what publishers, subscribers and the forwarder's sockets have in common.
pub(crate) fn configure(
    socket: &Socket,
    kind: SocketType,
    options: &ZeromqOptions,
) -> io::Result<()> {
    let native = &options.native;
    // Such a socket sends nothing but its subscriptions, and drops those beyond its mark (libzmq, xsub.cpp).
    let sends_subscriptions = matches!(kind, SocketType::Sub | SocketType::Xsub);
    let send_hwm = if sends_subscriptions {
        0
    } else {
        options.send_hwm
    };
    socket.set(IntOption::SendHwm, send_hwm)?;
    socket.set(IntOption::ReceiveHwm, options.receive_hwm)?;
    socket.set(IntOption::HandshakeMs, native.handshake_ms)?;
    socket.set(IntOption::HeartbeatMs, options.heartbeat_ms)?;
    socket.set(IntOption::Immediate, native.immediate.into())?;
    socket.set(IntOption::TypeOfService, options.type_of_service)?;
    if let Some(bytes) = native.send_buffer_bytes {
        socket.set(IntOption::SendBufferBytes, bytes)?;
    }
    if let Some(bytes) = native.receive_buffer_bytes {
        socket.set(IntOption::ReceiveBufferBytes, bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_kept() {
        for owner in [0, 1, u32::MAX] {
            for role in Role::ALL {
                for monitor in [false, true] {
                    let key = Key {
                        owner,
                        role,
                        monitor,
                    };
                    assert_eq!(Key::of_u64(key.to_u64()), key);
                }
            }
        }
    }
}
