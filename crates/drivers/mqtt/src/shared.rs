//! What all clients of a fleet share, apart from the sockets.

use pubgauge_driver::{ClientId, Secret, WireBytes};
use pubgauge_mqtt_codec::Version;
use pubgauge_net::endpoint::Endpoint;
use pubgauge_net::out::OutPool;
use pubgauge_net::timers::Timers;
use pubgauge_net::turns::Reports;

use crate::client::Client;
use crate::options::Options;
use crate::session::Received;
use crate::topics::Topics;

/// What all clients of a fleet share.
pub(crate) struct Shared {
    pub options: Options,
    /// The fleet is being closed: connections from now on have no session and no will.
    pub leaving: bool,
    /// Two for each of the target's: where publishers and where subscribers connect to.
    pub endpoints: Vec<Endpoint>,
    pub username: Option<String>,
    pub password: Option<Secret>,
    pub topics: Topics,
    pub out_pool: OutPool,
    pub bitmap_pool: Vec<Box<Received>>,
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
    /// Longest packet that is taken from a server, in bytes.
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

    /// Whether a DISCONNECT has to say that no session is to stay (MQTT 5).
    pub fn ends_sessions(&self) -> bool {
        self.leaving && self.options.durable && self.options.version == Version::V5
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
}
