//! One client: a connection with up to two channels, one to publish and one to consume.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use pubgauge_driver::ClientSpec;
use pubgauge_net::out::{OUT_CAP, Out, OutPool};
use pubgauge_net::turns::{Marks, Phase};

use crate::window::Window;

/// Bytes of answers that may wait before a client is not read from any more: a server that sends
/// but does not read must not fill our memory.
pub(crate) const READ_PAUSE: usize = 4 * OUT_CAP;

/// The channel that a client publishes on.
pub(crate) const PUBLISHING: u16 = 1;

/// The channel that a client consumes on: a channel of its own, so that an error or a transaction
/// of the one does not touch the other.
pub(crate) const CONSUMING: u16 = 2;

/// How far a client has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No connection.
    Down,
    /// TCP is connecting.
    Connecting,
    /// The protocol header was sent; connection.start has not come.
    Greeting,
    /// connection.start-ok was sent; connection.tune has not come.
    LoggingIn,
    /// connection.open was sent; connection.open-ok has not come.
    Entering,
    /// Channels are being opened.
    Opening,
    /// In use.
    Connected,
    /// connection.close was sent; connection.close-ok has not come.
    Closing,
}

impl State {
    /// What the loop must know of it.
    #[inline]
    pub fn phase(self) -> Phase {
        match self {
            State::Down => Phase::Down,
            State::Connecting => Phase::Connecting,
            State::Greeting
            | State::LoggingIn
            | State::Entering
            | State::Opening
            | State::Connected
            | State::Closing => Phase::Up,
        }
    }
}

/// An answer that a channel waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Awaits {
    /// What kind of answer.
    pub answer: Answer,
    /// It is the last of a subscription.
    pub subscribed: bool,
}

/// Kinds of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    ChannelOpen,
    Qos,
    Confirm,
    Tx,
    Exchange,
    Queue,
    /// queue.declare-ok if a session is there, channel.close with 404 if not.
    Session,
    Bind,
    /// For the consumer of this number.
    Consume(u32),
}

/// The publishing channel.
#[derive(Debug, Default)]
pub(crate) struct Publisher {
    pub awaits: VecDeque<Awaits>,
    /// Messages without confirm or commit.
    pub window: Window,
    /// Messages since the last tx.commit.
    pub uncommitted: u32,
    /// While a tx.commit waits for its answer, the number of the last message in it. Until then
    /// nothing may be published: RabbitMQ fails with 541 on a message between the two.
    pub committing: Option<u64>,
}

/// The consuming channel.
#[derive(Debug, Default)]
pub(crate) struct Consumer {
    /// Whether the channel is open on this connection.
    pub open: bool,
    pub awaits: VecDeque<Awaits>,
    /// The client's own queue is declared and consumed from.
    pub own: bool,
    /// Queues shared with others that are consumed from, in the order of their consumer tags.
    pub shared: Vec<Box<str>>,
    /// Subscriptions that are complete.
    pub established: u32,
    /// Highest delivery tag that came.
    pub came: u64,
    /// Highest delivery tag that was acknowledged.
    pub acknowledged: u64,
}

/// A message whose frames have not all come, or that was cut by the end of a read.
#[derive(Debug, Default)]
pub(crate) struct Partial {
    pub kind: Content,
    pub channel: u16,
    pub delivery_tag: u64,
    pub redelivered: bool,
    pub routing_key: Vec<u8>,
    /// Length of the body; `None` before the header has come.
    pub size: Option<usize>,
    pub body: Vec<u8>,
}

/// What content belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Content {
    #[default]
    Delivery,
    /// A message that came back, with the number in its header once that has come.
    Return(Option<u64>),
}

/// A client.
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
    /// connection.blocked came and connection.unblocked did not.
    pub blocked: bool,
    /// channel.flow stopped the publishing channel.
    pub stopped: bool,
    /// The server still had this client's queue.
    pub session_present: bool,
    pub publishes: bool,
    pub subscribes: bool,
    /// Seconds between signs of life as agreed with the server; 0 for none.
    pub heartbeat_s: u16,
    /// Counts connections.
    pub epoch: u32,
    /// Longest frame as agreed with the server, in bytes.
    pub frame_max: u32,
    /// When the timer is due that counts, in milliseconds since the fleet was opened; entries of
    /// the timer queue with another time are stale.
    pub due_ms: u32,
    /// When bytes were last written, on the same clock.
    pub last_sent_ms: u32,
    /// When bytes were last read, on the same clock.
    pub last_received_ms: u32,
    /// Bytes to be written.
    pub out: Option<Box<Out>>,
    /// The beginning of a frame whose rest has not come.
    #[allow(clippy::box_collection)] // An idle client must be small: 8 bytes, not 24.
    pub inbox: Option<Box<Vec<u8>>>,
    pub partial: Option<Box<Partial>>,
    pub publisher: Option<Box<Publisher>>,
    pub consumer: Option<Box<Consumer>>,
    pub tls: Option<Box<rustls::ClientConnection>>,
    pub endpoint: u16,
    pub source: Option<IpAddr>,
    pub name: Box<str>,
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
            blocked: false,
            stopped: false,
            session_present: false,
            publishes: spec.publishes,
            subscribes: spec.subscribes,
            heartbeat_s: 0,
            epoch: 0,
            frame_max: pubgauge_amqp_codec::FRAME_MIN as u32,
            due_ms: 0,
            last_sent_ms: 0,
            last_received_ms: 0,
            out: None,
            inbox: None,
            partial: None,
            publisher: None,
            consumer: None,
            tls: None,
            endpoint,
            source: spec.source,
            name: spec.name.as_str().into(),
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

    /// Whether the server or the window hold publishing back.
    #[inline]
    pub fn is_held(&self, in_flight: usize) -> bool {
        self.blocked
            || self.stopped
            || self
                .publisher
                .as_ref()
                .is_some_and(|p| p.window.len() >= in_flight || p.committing.is_some())
    }

    /// Whether TLS has yet to be agreed upon.
    pub fn in_handshake(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// Forgets the connection, and what was published on it: whether the server has it will
    /// never be known. Returns how many messages that was. Which queues a durable session
    /// consumes from stays.
    pub fn drop_connection(&mut self, pool: &mut OutPool) -> u64 {
        self.fd = None; // Closes it, which also takes it out of the epoll set.
        self.state = State::Down;
        self.marks.hung_up = false;
        self.paused = false;
        self.owes_writable = false;
        self.blocked = false;
        self.stopped = false;
        self.session_present = false;
        self.due_ms = 0;
        self.inbox = None;
        self.partial = None;
        self.tls = None;
        if let Some(consumer) = &mut self.consumer {
            consumer.open = false;
            consumer.awaits.clear();
            consumer.came = 0;
            consumer.acknowledged = 0;
            consumer.established = 0;
        }
        let unconfirmed = self.publisher.take().map_or(0, |p| p.window.len() as u64);
        let unwritten = match self.out.take() {
            Some(out) => {
                let messages = u64::from(out.messages);
                pool.put(out);
                messages
            }
            None => 0,
        };
        unconfirmed + unwritten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_client_is_small() {
        assert!(size_of::<Client>() <= 168, "{}", size_of::<Client>());
    }
}
