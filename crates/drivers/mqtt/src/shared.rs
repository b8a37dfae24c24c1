//! What all clients of a fleet share, apart from the sockets.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pubgauge_driver::{Change, ClientId, Events, Secret, WireBytes};

use crate::client::{Client, OutPool};
use crate::endpoint::Endpoint;
use crate::options::Options;
use crate::session::Received;
use crate::topics::Topics;

/// What all clients of a fleet share.
pub(crate) struct Shared {
    pub options: Options,
    pub endpoints: Vec<Endpoint>,
    pub username: Option<String>,
    pub password: Option<Secret>,
    pub topics: Topics,
    pub out_pool: OutPool,
    pub bitmap_pool: Vec<Box<Received>>,
    pub timers: Timers,
    /// Clients with bytes to write.
    pub dirty: Vec<u32>,
    /// Changes that happened outside a poll.
    pub owed: Vec<(ClientId, Change)>,
    /// Messages accepted and not settled.
    pub unsettled: u64,
    pub wire: WireBytes,
    /// Longest packet that is taken from a server, in bytes.
    pub max_in: usize,
    /// Milliseconds since the fleet was opened, as of the last look at the clock.
    pub now_ms: u32,
    /// Something was reported during this poll.
    pub reported: bool,
}

impl Shared {
    #[inline]
    pub fn report(&mut self, events: &mut dyn Events, id: ClientId, change: Change) {
        self.reported = true;
        events.changed(id, change);
    }

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
        self.timers.0.push(Reverse((client.due_ms, id.0)));
    }

    pub fn endpoint(&self, client: &Client) -> &str {
        &self.endpoints[usize::from(client.endpoint)].shown
    }
}

/// Timers of all clients. One that was overtaken by another stays in until it is due, and is then
/// told by its time, which is no longer the client's.
#[derive(Default)]
pub(crate) struct Timers(pub BinaryHeap<Reverse<(u32, u32)>>);

impl Timers {
    /// When the first is due.
    pub fn first_ms(&self) -> Option<u32> {
        self.0.peek().map(|Reverse((due, _))| *due)
    }

    /// Takes one out that is due: its time and its client.
    pub fn pop_due(&mut self, now_ms: u32) -> Option<(u32, u32)> {
        if self.first_ms()? > now_ms {
            return None;
        }
        self.0.pop().map(|Reverse(entry)| entry)
    }
}
