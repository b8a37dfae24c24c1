//! State of one client and of its connection.

use std::collections::VecDeque;

use pubgauge_driver::{Change, ClientSpec};
use pubgauge_net::fleet::ClientLink;
use rustc_hash::FxHashMap;

use crate::frame::Framer;
use crate::sasl::Login;
use crate::window::RequestWindow;

/// How far the negotiation of a stream has got (RFC 6120 §4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum NegotiationStep {
    /// The features of a stream that is not logged in are awaited.
    #[default]
    Features,
    /// `<proceed/>`, after which TLS may begin, is awaited.
    Proceed,
    /// SASL is in progress.
    Login,
    /// The features of a stream that is logged in are awaited.
    LoggedIn,
    /// The answer to the first binding of an address is awaited.
    Bind,
    Done,
}

/// A request to the server whose answer is awaited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Binds an address; `report` is that of the subscription that it is for.
    Bind {
        resource: Box<str>,
        report: Option<u32>,
    },
    /// Creates a node to publish to.
    Create { topic: u32 },
    /// Configures that node, where it was there already.
    Configure { topic: u32 },
    /// Subscribes; `created` once the node was missing and has been created.
    Subscribe {
        node: Box<str>,
        report: u32,
        created: bool,
    },
    /// Creates the node for a subscription.
    CreateFor { node: Box<str>, report: u32 },
    /// Subscribes to a node that was found to match a wildcard.
    Match { wildcard: u32, node: Box<str> },
    /// Deletes a node that this client created.
    Delete { node: Box<str> },
    /// Lists the nodes of the service.
    Discover,
    /// A request whose answer is ignored.
    Forget,
}

/// State of a connection beyond its bytes.
#[derive(Default)]
pub(crate) struct XmppSession {
    pub step: NegotiationStep,
    pub login: Option<Login>,
    /// Prefix of the stream's own elements.
    pub prefix: Box<str>,
    /// Our full address, once bound.
    pub jid: Option<Box<str>>,
    /// A binding is in progress.
    pub binding: bool,
    pub window: RequestWindow,
    /// Topics whose nodes are not known to be there yet.
    pub creating: u32,
    /// Requests by their numbers, each with how often it may be retried.
    pub requests: FxHashMap<u32, (Request, u8)>,
    pub next_request: u32,
    /// How many of them count as [`asked`](crate::shared::Xmpp::asked).
    pub asked: u32,
    /// Nodes subscribed to.
    pub nodes: Vec<Box<str>>,
    /// Outcomes of subscriptions, reported in the order in which these were asked for.
    pub reports: VecDeque<Option<Change>>,
    /// Number of the first of them.
    pub first_report: u32,
}

impl XmppSession {
    /// A number for a request, which is kept until its answer comes.
    pub fn ask(&mut self, request: Request, left: u8) -> u32 {
        let id = self.next_request;
        self.next_request = id.wrapping_add(1);
        self.requests.insert(id, (request, left));
        id
    }

    pub fn answered(&mut self, id: u32) -> Option<(Request, u8)> {
        self.requests.remove(&id)
    }

    /// A number for a subscription whose outcome will be reported.
    pub fn promise(&mut self) -> u32 {
        self.reports.push_back(None);
        self.first_report
            .wrapping_add(self.reports.len() as u32 - 1)
    }

    /// Stores an outcome.
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

/// State of a client besides its connection.
pub(crate) struct XmppClient {
    /// It will subscribe.
    pub subscribes: bool,
    pub framer: Framer,
    pub session: Box<XmppSession>,
    /// Topics that it advertised.
    pub topics: Vec<u32>,
}

/// A client and its connection.
pub(crate) type XmppLink<'a> = ClientLink<'a, XmppClient>;

impl XmppClient {
    pub fn new(spec: &ClientSpec) -> Self {
        XmppClient {
            subscribes: spec.subscribes,
            framer: Framer::default(),
            session: Box::default(),
            topics: Vec::new(),
        }
    }

    /// Forgets the connection. Returns the messages that wait for an answer.
    pub fn forget_connection(&mut self) -> u64 {
        self.framer = Framer::default();
        let session = &mut *self.session;
        let unanswered = session.window.clear();
        *session = XmppSession {
            window: std::mem::take(&mut session.window),
            next_request: session.next_request,
            ..XmppSession::default()
        };
        unanswered
    }
}
