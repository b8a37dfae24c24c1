//! One client: a connection, and the little that must be kept of it while it is idle.

use std::os::fd::OwnedFd;

use pubgauge_driver::ClientSpec;

use crate::event_loop::{ConnectionPhase, Marks};
use crate::out::{Out, OutPool};
use crate::websocket::WebSocket;

/// How far a client has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No connection.
    Down,
    /// The host is looked up, or TCP is connecting.
    Connecting,
    /// TCP is connected; TLS, login and whatever else comes before messages are under way.
    Greeting,
    /// In use.
    Connected,
    /// The last bytes are being written, or are sent and the server's end is awaited.
    Closing,
}

impl State {
    /// The phase that the loop must know.
    #[inline]
    pub(super) fn phase(self) -> ConnectionPhase {
        match self {
            State::Down => ConnectionPhase::Down,
            State::Connecting => ConnectionPhase::Connecting,
            State::Greeting | State::Connected | State::Closing => ConnectionPhase::Up,
        }
    }
}

/// Layers between a protocol and its socket.
#[derive(Default)]
pub(super) struct Layers {
    pub tls: Option<Box<rustls::ClientConnection>>,
    pub websocket: Option<WebSocket>,
    /// How many more messages are taken from it, where that is bounded.
    pub bound: Option<u32>,
    /// The bound was reached in the middle of what was read: the inbox may have whole units.
    pub held: bool,
}

/// A client; `C` is what its protocol keeps of it. An idle one has no buffers.
pub struct FleetClient<C> {
    pub(super) fd: Option<OwnedFd>,
    /// How far it has got.
    pub state: State,
    /// Stands in the list of clients with bytes to write.
    pub(super) dirty: bool,
    /// Notes of the loop.
    pub(super) marks: Marks,
    /// Reading is paused until the answers are written.
    pub paused: bool,
    /// A publish was held back and [`pubgauge_driver::Change::Writable`] is owed.
    pub(super) owes_writable: bool,
    /// A ping was sent and nothing has come since.
    pub awaits_pong: bool,
    /// The writing side was shut down.
    pub(super) half_closed: bool,
    /// Which of the fleet's endpoints it connects to.
    pub place: u16,
    /// Keep-alive interval in seconds; 0 for no pings.
    pub(super) keep_alive_s: u16,
    /// The number of connections begun.
    pub epoch: u32,
    /// When the client's timer is due; 0 for no timer.
    pub(super) due_ms: u32,
    /// When its one entry of the timer queue is due, no later than the timer; 0 for no entry. Entries with another
    /// time are stale.
    pub(super) queued_ms: u32,
    /// When bytes were last written, in the milliseconds of [`super::Shared::now_ms`].
    pub last_sent_ms: u32,
    /// When bytes were last read, on the same clock.
    pub last_received_ms: u32,
    /// Bytes to be written.
    pub out: Option<Box<Out>>,
    /// The beginning of a unit whose rest has not come.
    #[allow(clippy::box_collection)] // An idle client must be small: 8 bytes, not 24.
    pub(super) inbox: Option<Box<Vec<u8>>>,
    pub(super) layers: Option<Box<Layers>>,
    /// The address that it connects from: its number in [`super::Shared::sources`], from 1; 0 for any.
    pub(super) source: u32,
    /// Its name, as in [`ClientSpec::name`].
    pub name: Box<str>,
    /// State of its protocol.
    pub own: C,
}

impl<C> FleetClient<C> {
    /// One without a connection.
    pub fn new(spec: &ClientSpec, place: u16, own: C) -> Self {
        FleetClient {
            fd: None,
            state: State::Down,
            dirty: false,
            marks: Marks::default(),
            paused: false,
            owes_writable: false,
            awaits_pong: false,
            half_closed: false,
            place,
            keep_alive_s: 0,
            epoch: 0,
            due_ms: 0,
            queued_ms: 0,
            last_sent_ms: 0,
            last_received_ms: 0,
            out: None,
            inbox: None,
            layers: None,
            source: 0,
            name: spec.name.as_str().into(),
            own,
        }
    }

    /// Bytes waiting to be written.
    #[inline]
    pub fn pending(&self) -> usize {
        self.out.as_ref().map_or(0, |out| out.pending().len())
    }

    /// Whether bytes may be written now, as far as is known.
    pub fn is_writable(&self) -> bool {
        self.out.as_ref().is_none_or(|out| !out.stuck) && !self.marks.hung_up
    }

    /// Whether it has TLS, its handshake done or not.
    pub fn has_tls(&self) -> bool {
        self.tls().is_some()
    }

    /// Whether the handshake of TLS is not done yet.
    pub fn is_in_handshake(&self) -> bool {
        self.tls().is_some_and(|tls| tls.is_handshaking())
    }

    /// Whether what is taken from it is bounded.
    #[inline]
    pub fn is_bounded(&self) -> bool {
        self.layers.as_ref().is_some_and(|l| l.bound.is_some())
    }

    /// Whether nothing more is taken from it for now: its application is busy.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.layers.as_ref().is_some_and(|l| l.bound == Some(0))
    }

    /// Keeps what is left of what was read: the beginning of a unit, and whole ones before it where a bound was reached.
    #[allow(clippy::box_collection)] // The inbox is boxed, so that idle clients are small.
    pub(super) fn keep(&mut self, rest: Box<Vec<u8>>) {
        self.inbox = Some(rest).filter(|rest| !rest.is_empty());
        let is_held = self.is_busy() && self.inbox.is_some();
        if let Some(layers) = &mut self.layers {
            layers.held = is_held;
        }
    }

    /// Whether its inbox may have whole units.
    pub(super) fn holds_units(&self) -> bool {
        self.layers.as_ref().is_some_and(|l| l.held)
    }

    /// One more message was delivered to it.
    #[inline]
    pub fn count_delivery(&mut self) {
        if let Some(layers) = &mut self.layers
            && let Some(left) = &mut layers.bound
        {
            *left = left.saturating_sub(1);
        }
    }

    /// Whether the server has not accepted WebSocket yet.
    pub(super) fn is_beginning_websocket(&self) -> bool {
        let websocket = self.layers.as_ref().and_then(|l| l.websocket.as_ref());
        websocket.is_some_and(WebSocket::is_beginning)
    }

    pub(super) fn tls(&self) -> Option<&rustls::ClientConnection> {
        self.layers.as_ref()?.tls.as_deref()
    }

    #[inline]
    pub(super) fn tls_mut(&mut self) -> Option<&mut rustls::ClientConnection> {
        self.layers.as_mut()?.tls.as_deref_mut()
    }

    #[inline]
    pub(super) fn websocket_mut(&mut self) -> Option<&mut WebSocket> {
        self.layers.as_mut()?.websocket.as_mut()
    }

    /// Puts what waits and is in no frame of WebSocket into frames, if there is WebSocket and it is accepted. It is not
    /// closed by a frame of its own: the protocol's last words end the connection (MQTT 5.0 §3.14.4), and servers drop
    /// the acknowledgements that are on their way where a frame closes it.
    #[inline]
    pub(super) fn frame(&mut self) {
        let Some(layers) = &mut self.layers else {
            return;
        };
        let Some(websocket) = layers.websocket.as_mut().filter(|w| !w.is_beginning()) else {
            return;
        };
        if let Some(out) = &mut self.out {
            websocket.frame(&mut out.bytes, out.framed);
            out.framed = out.bytes.len();
        }
    }

    /// Forgets the connection. Returns the messages that would have been settled by writing them.
    pub(super) fn drop_connection(&mut self, pool: &mut OutPool) -> u64 {
        self.fd = None; // Closes it, which also takes it out of the epoll set.
        self.state = State::Down;
        self.marks.hung_up = false;
        self.paused = false;
        self.owes_writable = false;
        self.awaits_pong = false;
        self.half_closed = false;
        self.due_ms = 0;
        self.inbox = None;
        self.layers = None;
        match self.out.take() {
            Some(out) => {
                let messages = u64::from(out.messages);
                pool.give_back(out);
                messages
            }
            None => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_client_is_small() {
        // With a name of 24 bytes in its own allocation, an 8-byte timer entry and what a protocol
        // keeps this leaves an idle connection below 200 bytes.
        assert!(
            size_of::<FleetClient<()>>() <= 80,
            "{}",
            size_of::<FleetClient<()>>()
        );
    }
}
