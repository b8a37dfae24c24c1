//! One client: a connection, and what must be kept of it.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use pubgauge_driver::{Change, ClientSpec};
use pubgauge_net::out::{OUT_CAP, Out, OutPool};
use pubgauge_net::turns::{Marks, Phase};
use rustc_hash::FxHashMap;

use crate::frame::Framer;
use crate::sasl::Login;
use crate::window::Window;

/// Bytes of answers that may wait before a client is not read from any more: a server that sends
/// but does not read must not fill our memory.
pub(crate) const READ_PAUSE: usize = 4 * OUT_CAP;

/// How far a client has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No connection.
    Down,
    /// TCP is connecting.
    Connecting,
    /// Negotiating the stream: [`Step`] says how far.
    Negotiating,
    /// In use.
    Connected,
    /// Our end of the stream is on its way, or sent and the server's end is awaited.
    Closing,
}

impl State {
    /// What the loop must know of it.
    #[inline]
    pub fn phase(self) -> Phase {
        match self {
            State::Down => Phase::Down,
            State::Connecting => Phase::Connecting,
            State::Negotiating | State::Connected | State::Closing => Phase::Up,
        }
    }
}

/// How far the negotiation of a stream has got (RFC 6120 §4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Step {
    /// The features of a stream that is not logged in are awaited.
    #[default]
    Features,
    /// The server's word that TLS may begin.
    Proceed,
    /// SASL is under way.
    Login,
    /// The features of a stream that is logged in.
    LoggedIn,
    /// The first binding of an address.
    Bind,
    /// All is done.
    Done,
}

/// A question to the server whose answer is awaited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// An address; `report` is of the subscription that it is for.
    Bind {
        resource: Box<str>,
        report: Option<u32>,
    },
    /// A node to publish to.
    Create { topic: u32 },
    /// Its configuration, where it was there already.
    Configure { topic: u32 },
    /// A subscription; `created` once the node was found missing and made.
    Subscribe {
        node: Box<str>,
        report: u32,
        created: bool,
    },
    /// The node for a subscription.
    CreateFor { node: Box<str>, report: u32 },
    /// A subscription to a node that was found to match a wildcard.
    Match { wildcard: u32, node: Box<str> },
    /// The end of a node that this client made.
    Delete { node: Box<str> },
    /// The nodes of the service.
    Discover,
    /// An answer that does not matter.
    Forget,
}

/// What a connection needs beyond bytes.
#[derive(Default)]
pub(crate) struct Session {
    pub step: Step,
    pub login: Option<Login>,
    /// Prefix of the stream's own elements.
    pub prefix: Box<str>,
    /// Our full address, once bound.
    pub jid: Option<Box<str>>,
    /// A binding is under way.
    pub binding: bool,
    pub window: Window,
    /// Topics whose nodes are not known to be there yet.
    pub creating: u32,
    /// By their numbers, each with how often more it may be tried.
    pub requests: FxHashMap<u32, (Request, u8)>,
    pub next_request: u32,
    /// How many of them count as [`asked`](crate::shared::Shared::asked).
    pub asked: u32,
    /// Nodes subscribed to.
    pub nodes: Vec<Box<str>>,
    /// Outcomes of subscriptions, reported in the order in which these were asked for.
    pub reports: VecDeque<Option<Change>>,
    /// Number of the first of them.
    pub first_report: u32,
}

impl Session {
    /// A number for a request, which is kept until its answer comes.
    pub fn ask(&mut self, request: Request, left: u8) -> u32 {
        let id = self.next_request;
        self.next_request = id.wrapping_add(1);
        self.requests.insert(id, (request, left));
        id
    }

    /// The request that this is the answer to.
    pub fn answered(&mut self, id: u32) -> Option<(Request, u8)> {
        self.requests.remove(&id)
    }

    /// A number for a subscription whose outcome will be reported.
    pub fn promise(&mut self) -> u32 {
        self.reports.push_back(None);
        self.first_report
            .wrapping_add(self.reports.len() as u32 - 1)
    }

    /// Takes note of an outcome.
    pub fn keep_promise(&mut self, report: u32, change: Change) {
        let index = report.wrapping_sub(self.first_report) as usize;
        if let Some(slot) = self.reports.get_mut(index) {
            *slot = Some(change);
        }
    }

    /// The next outcome that may be reported.
    pub fn outcome(&mut self) -> Option<Change> {
        let change = self.reports.front_mut()?.take()?;
        self.reports.pop_front();
        self.first_report = self.first_report.wrapping_add(1);
        Some(change)
    }
}

/// A client. An idle one has no buffers.
pub(crate) struct Client {
    pub fd: Option<OwnedFd>,
    pub state: State,
    /// Stands in the list of clients with bytes to write.
    pub dirty: bool,
    /// What the loop notes of it.
    pub marks: Marks,
    /// Reading is paused until the answers are written.
    pub paused: bool,
    /// A publish was blocked and [`Change::Writable`] is owed.
    pub owes_writable: bool,
    /// The sign of life asked for has not come.
    pub awaits_pong: bool,
    /// It will subscribe.
    pub subscribes: bool,
    /// Counts connections, so that a topic knows whether its node was made sure of on this one.
    pub epoch: u32,
    /// When the timer is due that counts, in milliseconds since the fleet was opened; entries of
    /// the timer queue with another time are stale.
    pub due_ms: u32,
    /// When bytes were last written, on the same clock.
    pub last_sent_ms: u32,
    pub framer: Framer,
    /// Bytes to be written.
    pub out: Option<Box<Out>>,
    /// The beginning of a stanza whose rest has not come.
    #[allow(clippy::box_collection)] // An idle client should be small: 8 bytes, not 24.
    pub inbox: Option<Box<Vec<u8>>>,
    pub session: Box<Session>,
    pub tls: Option<Box<rustls::ClientConnection>>,
    pub endpoint: u16,
    pub source: Option<IpAddr>,
    pub name: Box<str>,
    /// Topics that it advertised.
    pub topics: Vec<u32>,
}

impl Client {
    pub fn new(spec: &ClientSpec, endpoint: u16) -> Self {
        Client {
            fd: None,
            state: State::Down,
            dirty: false,
            marks: Marks::default(),
            paused: false,
            owes_writable: false,
            awaits_pong: false,
            subscribes: spec.subscribes,
            epoch: 0,
            due_ms: 0,
            last_sent_ms: 0,
            framer: Framer::default(),
            out: None,
            inbox: None,
            session: Box::default(),
            tls: None,
            endpoint,
            source: spec.source,
            name: spec.name.as_str().into(),
            topics: Vec::new(),
        }
    }

    /// Bytes waiting to be written.
    #[inline]
    pub fn pending(&self) -> usize {
        self.out.as_ref().map_or(0, |out| out.pending().len())
    }

    /// The output buffer, from the pool if there is none yet.
    #[inline]
    pub fn out(&mut self, pool: &mut OutPool) -> &mut Out {
        self.out.get_or_insert_with(|| pool.get())
    }

    /// Whether TLS has yet to be agreed upon.
    pub fn in_handshake(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// Forgets the connection. Returns the messages that were taken and are not settled.
    pub fn drop_connection(&mut self, pool: &mut OutPool) -> u64 {
        self.fd = None; // Closes it, which also takes it out of the epoll set.
        self.state = State::Down;
        self.marks.hung_up = false;
        self.paused = false;
        self.owes_writable = false;
        self.awaits_pong = false;
        self.due_ms = 0;
        self.inbox = None;
        self.tls = None;
        self.framer = Framer::default();
        let session = &mut *self.session;
        let mut unsettled = session.window.clear();
        *session = Session {
            window: std::mem::take(&mut session.window),
            next_request: session.next_request,
            ..Session::default()
        };
        if let Some(out) = self.out.take() {
            unsettled += u64::from(out.messages);
            pool.put(out);
        }
        unsettled
    }
}
