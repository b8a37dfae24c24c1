//! One client: a connection with up to two channels, one to publish and one to consume.

use std::collections::VecDeque;

use crate::codec::Method;
use pubgauge_driver::ClientSpec;
use pubgauge_driver::header::HEADER_LEN;
use pubgauge_net::fleet::{Broken, ClientLink};

use crate::window::ConfirmWindow;

/// The channel that a client publishes on.
pub(crate) const PUBLISHING: u16 = 1;

/// The channel that a client consumes on: a channel of its own, so that an error or a transaction
/// of the one does not touch the other.
pub(crate) const CONSUMING: u16 = 2;

/// How far a login has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoginStep {
    /// The protocol header was sent; connection.start has not come.
    Greeting,
    /// connection.start-ok was sent; connection.tune has not come.
    LoggingIn,
    /// connection.open was sent; connection.open-ok has not come.
    Entering,
    /// Channels are being opened.
    Opening,
    Done,
}

/// An answer that a channel waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Awaits {
    /// Its kind.
    pub answer: AnswerKind,
    /// Whether it is the last answer that a subscription needs.
    pub subscribed: bool,
}

/// Kinds of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerKind {
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
pub(crate) struct PublishingChannel {
    pub awaits: VecDeque<Awaits>,
    /// Messages without confirm or commit.
    pub window: ConfirmWindow,
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
    pub kind: ContentOwner,
    pub channel: u16,
    pub delivery_tag: u64,
    pub redelivered: bool,
    pub routing_key: Vec<u8>,
    /// Length of the body; `None` before the header has come.
    pub size: Option<usize>,
    /// The header of the message, where it travels beside it.
    pub header: Option<[u8; HEADER_LEN]>,
    pub body: Vec<u8>,
}

/// The owner of content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ContentOwner {
    #[default]
    Delivery,
    /// A returned message (basic.return), with the number in its header once that has come.
    Return(Option<u64>),
}

/// State of a client besides its connection.
pub(crate) struct AmqpClient {
    pub step: LoginStep,
    /// connection.blocked came and connection.unblocked did not.
    pub blocked: bool,
    /// channel.flow stopped the publishing channel.
    pub stopped: bool,
    /// The server still had this client's queue.
    pub session_present: bool,
    pub publishes: bool,
    pub subscribes: bool,
    /// Heartbeat interval agreed with the server, in seconds; 0 for no heartbeats.
    pub heartbeat_s: u16,
    /// Longest frame as agreed with the server, in bytes.
    pub frame_max: u32,
    pub partial: Option<Box<Partial>>,
    pub publisher: Option<Box<PublishingChannel>>,
    pub consumer: Option<Box<Consumer>>,
}

/// A client and its connection.
pub(crate) type L<'a> = ClientLink<'a, AmqpClient>;

impl AmqpClient {
    pub fn new(spec: &ClientSpec) -> Self {
        AmqpClient {
            step: LoginStep::Greeting,
            blocked: false,
            stopped: false,
            session_present: false,
            publishes: spec.publishes,
            subscribes: spec.subscribes,
            heartbeat_s: 0,
            frame_max: crate::codec::FRAME_MIN as u32,
            partial: None,
            publisher: None,
            consumer: None,
        }
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

    /// Forgets the connection and the messages without an answer, and returns how many those were.
    /// The list of queues that a durable session consumes from is kept.
    pub fn forget_connection(&mut self) -> u64 {
        self.step = LoginStep::Greeting;
        self.blocked = false;
        self.stopped = false;
        self.session_present = false;
        self.partial = None;
        if let Some(consumer) = &mut self.consumer {
            consumer.open = false;
            consumer.awaits.clear();
            consumer.came = 0;
            consumer.acknowledged = 0;
            consumer.established = 0;
        }
        self.publisher.take().map_or(0, |p| p.window.len() as u64)
    }
}

/// Appends a method to what a client has to write.
///
/// All names in it were checked to fit.
pub(crate) fn send(link: &mut L<'_>, channel: u16, method: Method<'_>) {
    let encoded = method.encode(channel, &mut link.out().bytes);
    debug_assert_eq!(encoded, Ok(()), "{}", method.name());
}

/// The server broke the protocol.
pub(crate) fn breach(link: &L<'_>, what: impl std::fmt::Display) -> Broken {
    link.protocol_broken(what, "is it an AMQP 0-9-1 server?")
}

/// A method that the server may send, but not now.
pub(crate) fn unexpected(link: &L<'_>, method: &Method<'_>) -> Broken {
    let when = match link.client.own.step {
        LoginStep::Greeting => "before connection.start",
        LoginStep::LoggingIn => "during the login",
        LoginStep::Entering => "before connection.open-ok",
        LoginStep::Opening | LoginStep::Done => "out of turn",
    };
    breach(link, format!("a {} {when}", method.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_client_is_small() {
        let size = size_of::<pubgauge_net::fleet::FleetClient<AmqpClient>>();
        assert!(size <= 168, "{size}");
    }
}
