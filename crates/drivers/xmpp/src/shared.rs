//! What all clients of a fleet share, apart from the sockets.

use std::collections::VecDeque;

use pubgauge_driver::{ClientId, Secret, WireBytes};
use pubgauge_net::out::OutPool;
use pubgauge_net::timers::Timers;
use pubgauge_net::turns::Reports;

use rustc_hash::FxHashMap;

use crate::client::{Client, Request};
use crate::element::Scratch;
use crate::endpoint::Endpoint;
use crate::options::Options;
use crate::tls;
use crate::wildcard::Wildcards;
use crate::write::Template;

/// A topic that a client advertised.
pub(crate) struct Topic {
    pub client: u32,
    pub name: Box<str>,
    pub template: Template,
    /// The connection (by [`Client::epoch`]) on which its node was made sure of.
    pub ready: u32,
}

/// A request that waits for its turn.
pub(crate) struct Waiting {
    pub client: u32,
    /// The connection (by [`Client::epoch`]) that it is for.
    pub epoch: u32,
    pub request: Request,
    /// How often more it may be tried.
    pub left: u8,
}

/// What all clients of a fleet share.
pub(crate) struct Shared {
    pub options: Options,
    /// Two for each of the target's: where publishers and where subscribers connect to.
    pub endpoints: Vec<Endpoint>,
    pub password: Option<Secret>,
    pub topics: Vec<Topic>,
    /// Their numbers, by client and name.
    pub topic_ids: FxHashMap<(u32, Box<str>), u32>,
    pub wildcards: Wildcards,
    /// Requests that concern nodes and have not been sent, and how many wait for their answers.
    pub waiting: VecDeque<Waiting>,
    pub asked: u32,
    pub out_pool: OutPool,
    pub timers: Timers,
    /// Clients with bytes to write.
    pub dirty: Vec<u32>,
    /// What is to be told, and whether this poll has told anything.
    pub reports: Reports,
    /// Messages accepted and not settled.
    pub unsettled: u64,
    pub wire: WireBytes,
    /// System calls that wrote.
    pub writes: u64,
    /// Longest stanza that is taken from a server, in bytes.
    pub max_in: usize,
    /// Milliseconds since the fleet was opened, as of the last look at the clock.
    pub now_ms: u32,
    pub scratch: Scratch,
    /// Clients with outcomes of subscriptions to report.
    pub settled: Vec<u32>,
    /// A payload, decoded.
    pub decoded: Vec<u8>,
    pub tls: Option<tls::Setup>,
    /// Nodes that this fleet has made, each with the client that owns it.
    pub made: Vec<(ClientId, Box<str>)>,
}

impl Shared {
    /// Sees to it that the next flush looks at this client.
    #[inline]
    pub fn mark_dirty(&mut self, client: &mut Client, id: ClientId) {
        if !client.dirty {
            client.dirty = true;
            self.dirty.push(id.0);
        }
    }

    /// Sets the client's timer.
    pub fn set_timer(&mut self, client: &mut Client, id: ClientId, after_ms: u32) {
        // 0 stands for no timer.
        client.due_ms = self.now_ms.saturating_add(after_ms).max(1);
        self.timers.push(client.due_ms, id.0);
    }

    pub fn endpoint(&self, client: &Client) -> &Endpoint {
        &self.endpoints[usize::from(client.endpoint)]
    }

    /// For messages.
    pub fn shown(&self, client: &Client) -> &str {
        &self.endpoint(client).net.shown
    }

    /// TLS for a client's connection.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn tls_connection(&self, client: &Client) -> Result<Box<rustls::ClientConnection>, String> {
        match &self.tls {
            Some(setup) => setup.connection(usize::from(client.endpoint)),
            None => Err("TLS is not set up".into()),
        }
    }

    /// The address of the publish-subscribe service.
    pub fn service(&self, client: &Client) -> String {
        match &self.options.service {
            Some(service) => service.clone(),
            None => format!("pubsub.{}", self.endpoint(client).domain),
        }
    }
}
