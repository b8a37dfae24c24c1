//! Sessions, which may outlive a connection: a client's subscriptions, and
//! messages to be delivered to it (MQTT 5 section 4.1).

use std::collections::VecDeque;
use std::rc::Rc;

use rustc_hash::FxHashSet;

use crate::conn::{ConnId, NONE};
use crate::message::StoredMessage;
use crate::window::{Delivery, ExchangeWindow};

/// Session expiry interval that stands for "never" (MQTT 5 section 3.1.2.11.2).
pub(crate) const NEVER: u32 = u32::MAX;
/// Estimated memory of a queued message besides its own bytes.
const QUEUED_OVERHEAD: usize = 96;

/// One client's session.
#[derive(Debug)]
pub(crate) struct ClientSession {
    pub client_id: Rc<str>,
    /// Its connection, or [`NONE`] while the client is not connected.
    pub conn: ConnId,
    /// How long it outlives the connection, in seconds.
    pub expiry_s: u32,
    /// Changes whenever a timer set for the session no longer holds.
    pub generation: u32,
    /// Filters subscribed to, as sent.
    pub filters: Vec<Box<str>>,
    pub will: Option<Box<Will>>,
    /// State of traffic, once there is any.
    pub flight: Option<Box<Flight>>,
}

/// State that only a session with traffic has: QoS 1 and 2 messages both ways,
/// and the publishers that wait for it.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    /// Messages in flight to the client.
    pub window: ExchangeWindow,
    /// Messages that wait for room in the window, or for the client to
    /// reconnect.
    pub queue: VecDeque<Delivery>,
    /// Bytes in the queue, with their overhead.
    pub queued_bytes: usize,
    /// Packet identifiers of QoS 2 messages received whose PUBREL is due.
    pub incoming: FxHashSet<u16>,
    /// Publishers that are not read until it has drained.
    pub waiters: Vec<ConnId>,
}

/// The message that is published when the connection is lost (MQTT 5 section
/// 3.1.2.5).
#[derive(Debug)]
pub(crate) struct Will {
    pub message: StoredMessage,
    /// Message expiry interval, in seconds from when the will is published.
    pub expiry_s: Option<u32>,
    /// Seconds from the loss of the connection.
    pub delay_s: u32,
}

impl ClientSession {
    pub(crate) fn new(client_id: Rc<str>) -> ClientSession {
        ClientSession {
            client_id,
            conn: NONE,
            expiry_s: 0,
            generation: 0,
            filters: Vec::new(),
            will: None,
            flight: None,
        }
    }

    pub(crate) fn flight(&mut self) -> &mut Flight {
        self.flight.get_or_insert_default()
    }

    /// Bytes waiting for room in the window.
    #[inline]
    pub(crate) fn queued_bytes(&self) -> usize {
        self.flight.as_ref().map_or(0, |f| f.queued_bytes)
    }

    /// Whether it outlives its connection, so that messages in flight must be
    /// kept.
    pub(crate) fn is_durable(&self) -> bool {
        self.expiry_s > 0
    }
}

impl Flight {
    pub(crate) fn enqueue(&mut self, delivery: Delivery) {
        self.queued_bytes += delivery.message.len() + QUEUED_OVERHEAD;
        self.queue.push_back(delivery);
    }

    pub(crate) fn dequeue(&mut self) -> Option<Delivery> {
        let delivery = self.queue.pop_front()?;
        self.queued_bytes -= delivery.message.len() + QUEUED_OVERHEAD;
        if self.queue.is_empty() && self.queue.capacity() > 1024 {
            self.queue = VecDeque::new();
        }
        Some(delivery)
    }
}
