//! One client: a connection, and what must be kept of it while it is idle, which is little.

use std::net::IpAddr;
use std::os::fd::OwnedFd;

use pubgauge_driver::{ClientSpec, Will};
use pubgauge_net::out::{OUT_CAP, Out, OutPool};
use pubgauge_net::turns::{Marks, Phase};

use crate::session::Session;

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
    /// CONNECT was sent (under TLS: will be, after the handshake), CONNACK has not come.
    Greeting,
    /// In use.
    Connected,
    /// DISCONNECT is on its way, or sent and the server's end is awaited.
    Closing,
}

impl State {
    /// What the loop must know of it.
    #[inline]
    pub fn phase(self) -> Phase {
        match self {
            State::Down => Phase::Down,
            State::Connecting => Phase::Connecting,
            State::Greeting | State::Connected | State::Closing => Phase::Up,
        }
    }
}

/// A client. An idle one has no boxes.
pub(crate) struct Client {
    pub fd: Option<OwnedFd>,
    pub state: State,
    /// Stands in the list of clients with bytes to write.
    pub dirty: bool,
    /// What the loop notes of it.
    pub marks: Marks,
    /// Reading is paused until the answers are written.
    pub paused: bool,
    /// A publish was blocked and [`pubgauge_driver::Change::Writable`] is owed.
    pub owes_writable: bool,
    /// The sign of life asked for has not come.
    pub awaits_pong: bool,
    /// The writing side was shut down.
    pub half_closed: bool,
    /// The server may keep a session of it beyond its connection.
    pub has_session: bool,
    /// It was lost or dropped while it had a will to be retained.
    pub will_was_due: bool,
    /// Its last connection ended after all was written, and a DISCONNECT.
    pub ended_in_order: bool,
    /// Seconds between signs of life as agreed with the server; 0 for none.
    pub keep_alive_s: u16,
    /// Receive Maximum of the server.
    pub receive_max: u16,
    /// Topic Alias Maximum of the server, as far as the settings use it.
    pub alias_max: u16,
    /// Aliases given out.
    pub aliases: u16,
    /// Counts connections, so that a topic knows whether its alias was introduced on this one.
    pub epoch: u32,
    /// Maximum Packet Size of the server.
    pub max_packet: u32,
    /// When the timer is due that counts, in milliseconds since the fleet was opened; entries of
    /// the timer queue with another time are stale.
    pub due_ms: u32,
    /// When bytes were last written, on the same clock.
    pub last_sent_ms: u32,
    /// Bytes to be written.
    pub out: Option<Box<Out>>,
    /// The beginning of a packet whose rest has not come.
    #[allow(clippy::box_collection)] // An idle client must be small: 8 bytes, not 24.
    pub inbox: Option<Box<Vec<u8>>>,
    pub session: Option<Box<Session>>,
    pub tls: Option<Box<rustls::ClientConnection>>,
    pub endpoint: u16,
    pub source: Option<IpAddr>,
    pub name: Box<str>,
    pub will: Option<Box<Will>>,
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
            half_closed: false,
            has_session: false,
            will_was_due: false,
            ended_in_order: false,
            keep_alive_s: 0,
            receive_max: u16::MAX,
            alias_max: 0,
            aliases: 0,
            epoch: 0,
            max_packet: u32::MAX,
            due_ms: 0,
            last_sent_ms: 0,
            out: None,
            inbox: None,
            session: None,
            tls: None,
            endpoint,
            source: spec.source,
            name: spec.name.as_str().into(),
            will: spec.will.clone().map(Box::new),
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

    /// Forgets the connection, but not the session. Returns the QoS 0 messages that were taken
    /// and not written.
    pub fn drop_connection(&mut self, pool: &mut OutPool) -> u64 {
        self.will_was_due |=
            self.state == State::Connected && self.will.as_ref().is_some_and(|will| will.retain);
        self.fd = None; // Closes it, which also takes it out of the epoll set.
        self.state = State::Down;
        self.marks.hung_up = false;
        self.paused = false;
        self.owes_writable = false;
        self.awaits_pong = false;
        self.half_closed = false;
        self.due_ms = 0;
        self.inbox = None;
        self.tls = None;
        match self.out.take() {
            Some(out) => {
                let messages = u64::from(out.messages);
                pool.put(out);
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
        // With a name of 24 bytes in its own allocation and a 16-byte timer entry this keeps an
        // idle connection below 200 bytes.
        assert!(size_of::<Client>() <= 144, "{}", size_of::<Client>());
    }
}
