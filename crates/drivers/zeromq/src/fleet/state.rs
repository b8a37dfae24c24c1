//! State of a fleet: its clients, their sockets and queues.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use pubgauge_driver::{Change, ClientId, ClientSpec, Clock, Failure, Nanos, TopicId, WireBytes};
use rustix::event::epoll;

use crate::address::ForwarderAddress;
use crate::inbox::Inbox;
use crate::options::ZeromqOptions;
use crate::port::Port;
use crate::zmq::Context;

/// One worker thread's share of the ZeroMQ clients.
pub(crate) struct ZeromqFleet {
    pub(super) clients: Vec<ZeromqClient>,
    pub(super) topics: Vec<Box<[u8]>>,
    pub(super) topic_ids: HashMap<(ClientId, String), TopicId>,
    /// Beside `topics`, under point-to-point only.
    pub(super) queues: Vec<Queue>,
    /// Queues so far.
    pub(super) queues_opened: u32,
    pub(super) inbox: Inbox,
    pub(super) wire: WireBytes,
    /// Subscribers that may have messages left.
    pub(super) flooded: Vec<u32>,
    pub(super) turns: u32,
    /// Calls of `poll` in a row that skipped reading.
    pub(super) hurried: u32,
    /// Whether any client ever subscribes.
    pub(super) subscribes: bool,
    /// Clients whose time to connect is running.
    pub(super) connecting: Vec<u32>,
    pub(super) news: VecDeque<(ClientId, Change)>,
    pub(super) ready: Vec<epoll::Event>,
    pub(super) epoll: OwnedFd,
    pub(super) clock: Clock,
    pub(super) options: ZeromqOptions,
    pub(super) forwarders: Vec<ForwarderAddress>,
    pub(super) scratch: PathBuf,
    /// Where publishers listen that have no source address of their own.
    pub(super) address: IpAddr,
    pub(super) worker: u32,
    /// `None` once the fleet is closed. Declared after the clients: their sockets end first.
    pub(super) context: Option<Context>,
}

#[derive(Default)]
pub(super) struct ZeromqClient {
    pub(super) spec: ClientSpec,
    pub(super) phase: SocketPhase,
    pub(super) publisher: Option<Port>,
    pub(super) subscriber: Option<Port>,
    /// The socket for its messages under point-to-point; otherwise `subscriber` receives them.
    pub(super) receiver: Option<Port>,
    /// How many more messages are taken from its socket, where that is bounded.
    pub(super) bound: Option<u32>,
    /// The publishers' queues that the receiver takes from.
    pub(super) sources: Vec<TopicSource>,
    /// The subscriber may hold announcements of queues that no event will report.
    pub(super) untold: bool,
    /// Its topics, under point-to-point.
    pub(super) topics: Vec<TopicId>,
    /// Where subscribers reach it, once known; kept over reconnects. Direct topology only.
    pub(super) address: Option<String>,
    /// All its filters, and whether one of them must be checked at the receiver.
    pub(super) filters: Vec<String>,
    pub(super) checked: bool,
    /// The subscriber has lost a publisher; reported once its messages are delivered.
    pub(super) lost: Option<Lost>,
    /// Is listed in [`ZeromqFleet::flooded`].
    pub(super) flooded: bool,
    /// The sockets are those of the last connection, with their subscriptions.
    pub(super) kept: bool,
}

pub(super) struct Lost {
    pub(super) why: Failure,
    /// When to report it even though messages keep coming, namely from other publishers.
    pub(super) at_last: Nanos,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SocketPhase {
    Connecting {
        deadline: Nanos,
        bound: bool,
    },
    Up,
    /// Not connected yet, failed, closed, or aborted.
    #[default]
    Down,
}

/// The queue of one topic; has the topic's index in the fleet.
pub(super) struct Queue {
    pub(super) client: ClientId,
    /// `None` while its publisher is not connected.
    pub(super) open: Option<OpenQueue>,
}

/// A queue with a socket.
pub(super) struct OpenQueue {
    pub(super) port: Port,
    pub(super) address: String,
}

/// Where a receiver takes one topic of one publisher from.
pub(super) struct TopicSource {
    pub(super) topic: String,
    pub(super) publisher: String,
    pub(super) queue: String,
}
