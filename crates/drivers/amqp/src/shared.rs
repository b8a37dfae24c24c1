//! What all clients of a fleet share, apart from the sockets.

use pubgauge_amqp_codec::Method;
use pubgauge_driver::{ClientId, Secret, WireBytes};
use pubgauge_net::endpoint::Endpoint;
use pubgauge_net::out::OutPool;
use pubgauge_net::timers::Timers;
use pubgauge_net::turns::Reports;

use crate::client::{Client, Partial};
use crate::options::Options;
use crate::topics::Topics;

/// What all clients of a fleet share.
pub(crate) struct Shared {
    pub options: Options,
    /// Two for each of the target's: where publishers and where subscribers connect to.
    pub endpoints: Vec<Endpoint>,
    pub username: Option<String>,
    pub password: Option<Secret>,
    /// The fleet is being closed: durable sessions end too.
    pub leaving: bool,
    /// A client certificate was given.
    pub has_certificate: bool,
    /// Random, for names that must not collide.
    pub nonce: u64,
    pub topics: Topics,
    pub out_pool: OutPool,
    /// For messages that come in pieces.
    #[allow(clippy::vec_box)] // They move in and out of clients, which hold 8 bytes each.
    pub partials: Vec<Box<Partial>>,
    /// The topic of the message that is being delivered.
    pub topic: String,
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
    /// Longest message that is taken from a server, in bytes.
    pub max_in: usize,
    /// Milliseconds since the fleet was opened, as of the last look at the clock.
    pub now_ms: u32,
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

    /// Appends a method to what a client has to write.
    ///
    /// All names in it were checked to fit.
    pub fn send(&mut self, client: &mut Client, id: ClientId, channel: u16, method: Method<'_>) {
        let out = client.out(&mut self.out_pool);
        let encoded = method.encode(channel, &mut out.bytes);
        debug_assert_eq!(encoded, Ok(()), "{}", method.name());
        self.mark_dirty(client, id);
    }

    /// Sets the client's timer.
    pub fn set_timer(&mut self, client: &mut Client, id: ClientId, after_ms: u32) {
        // 0 stands for no timer.
        client.due_ms = self.now_ms.saturating_add(after_ms).max(1);
        self.timers.push(client.due_ms, id.0);
    }

    pub fn endpoint(&self, client: &Client) -> &str {
        &self.endpoints[usize::from(client.endpoint)].shown
    }

    /// The virtual host that a client enters.
    pub fn virtual_host(&self, client: &Client) -> &str {
        let endpoint = &self.endpoints[usize::from(client.endpoint)];
        let path = endpoint.path.as_deref().filter(|path| !path.is_empty());
        path.or(self.options.virtual_host.as_deref()).unwrap_or("/")
    }
}
