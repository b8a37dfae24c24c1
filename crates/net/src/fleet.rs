//! A fleet over TCP and TLS, whatever its protocol: sockets, buffers, timers, connecting, reading,
//! writing, back-pressure and closing are [`TcpFleet`]'s; what the bytes mean is a [`Protocol`]'s.
//!
//! Every call between the two is direct: a fleet is compiled for its protocol, and a message costs
//! no dynamic call, allocation, lock or system call.
//!
//! | a client is | what happens there | calls of the protocol |
//! |---|---|---|
//! | [`State::Down`] | nothing | |
//! | [`State::Connecting`] | its host is looked up, TCP connects | |
//! | [`State::Greeting`] | TLS, login | [`greet`](Protocol::greet), [`receive`](Protocol::receive), until it says [`ClientLink::connected`] |
//! | [`State::Connected`] | messages | `receive`, [`publish`](Protocol::publish), [`keep_alive`](Protocol::keep_alive), ... |
//! | [`State::Closing`] | last bytes are written, the server's end is awaited | [`goodbye`](Protocol::goodbye), `receive` |
//!
//! From each of them it goes down, and [`Protocol::dropped`] is called.

mod broken;
mod calls;
mod client;
mod identity;
mod link;
mod read;
mod tuning;
mod write;

use std::borrow::Cow;
use std::sync::Arc;

use pubgauge_driver::{
    Change, ClientId, ClientSpec, DriverError, Events, Failure, FleetConfig, Grant, Nanos, Payload,
    Refusal, Subscription, TopicId, Travel,
};

use crate::endpoint::Endpoint;
use crate::event_loop::{Driven, EventLoop};
use crate::lookups::{LookUp, Lookups};
use crate::socket::NameLookup;
use crate::tls;
use crate::waker::Waker;

pub use broken::Broken;
pub use client::{FleetClient, State};
pub use link::{ClientLink, Shared};
pub use tuning::{Terms, Tuning};

/// Bytes of the buffer that all connections are read into: a larger read saves next to nothing.
const READ_BUF: usize = 256 << 10;

/// Time for TCP, TLS and login together.
const CONNECT_TIMEOUT_MS: u32 = 30_000;

/// Time for the server to close the connection after the client's last bytes.
const CLOSE_TIMEOUT_MS: u32 = 5_000;

/// A protocol: the form and the meaning of its bytes.
///
/// Its value is what all clients of a fleet share: options, topics, scratch.
pub trait Protocol: Sized {
    /// State of each client besides its connection. An idle client must stay small.
    type Client;

    /// The protocol's name of a ping, in error messages.
    const PING: &'static str = "ping";

    /// Whether the writing side is shut after the client's last bytes, so that the server closes.
    /// Where it is not, the server answers those bytes.
    const HALF_CLOSES: bool = true;

    /// Protocols to be named in the handshake (ALPN, RFC 7301) where TLS begins with the connection.
    const ALPN: &'static [&'static [u8]] = &[];

    /// Its name among the protocols that are spoken over WebSocket (RFC 6455 §1.9), where it has endpoints of that.
    const SUBPROTOCOL: &'static str = "";

    /// The protocol's name and a hint, for the error, where it has no last wills.
    const NO_WILLS: Option<[&'static str; 2]> = None;

    /// For the error of a connection that the server closed early: before which answer, and what the
    /// server may not speak: `["before its CONNACK", "this version of MQTT"]`.
    const TURNED_AWAY: [&'static str; 2];

    /// A new client.
    ///
    /// # Errors
    /// Names what the protocol cannot have: a name, a will.
    fn client(&mut self, spec: &ClientSpec) -> Result<Self::Client, DriverError>;

    /// Replaces the payload of a client's will, from its next connection on; false if it has none.
    fn renew_will(&mut self, client: &mut Self::Client, payload: Vec<u8>) -> bool {
        let _ = (client, payload);
        false
    }

    /// The name that the server's certificate must have at one of the fleet's endpoints; the
    /// endpoint's host by default.
    fn server_name<'a>(&'a self, _place: usize, endpoint: &'a Endpoint) -> &'a str {
        &endpoint.host
    }

    /// TCP is connected: appends the first bytes, if the client speaks first.
    ///
    /// # Errors
    /// If the connection cannot go on.
    fn greet(&mut self, _link: &mut ClientLink<'_, Self::Client>) -> Result<(), Broken> {
        Ok(())
    }

    /// Takes in as many whole units as `bytes` hold, and returns how many bytes that was. What is
    /// left comes again, with more behind it. After each unit it stops if [`FleetClient::is_busy`].
    ///
    /// # Errors
    /// If the connection cannot go on. While the client is closing, that ends it in order.
    fn receive(
        &mut self,
        link: &mut ClientLink<'_, Self::Client>,
        bytes: &[u8],
        events: &mut dyn Events,
    ) -> Result<usize, Broken>;

    /// The length of the unit that begins so, where it is known: a unit larger than half of the
    /// fleet's buffer is not looked at before it is whole.
    fn unit_len(&self, _beginning: &[u8]) -> Option<usize> {
        None
    }

    /// Asks for a subscription; the client is connected.
    ///
    /// # Errors
    /// If the protocol cannot have it.
    fn subscribe(
        &mut self,
        link: &mut ClientLink<'_, Self::Client>,
        subscription: &Subscription,
    ) -> Result<(), DriverError>;

    /// The id of a client's topic, made if it is new.
    ///
    /// # Errors
    /// If the protocol cannot have it.
    fn advertise(
        &mut self,
        link: &mut ClientLink<'_, Self::Client>,
        topic: &str,
    ) -> Result<TopicId, DriverError>;

    /// As [`Protocol::advertise`], for messages that travel in a way of their own ([`Fleet::advertise_as`]).
    ///
    /// [`Fleet::advertise_as`]: pubgauge_driver::Fleet::advertise_as
    ///
    /// # Errors
    /// As [`Protocol::advertise`].
    fn advertise_as(
        &mut self,
        link: &mut ClientLink<'_, Self::Client>,
        topic: &str,
        travel: Travel,
    ) -> Result<TopicId, DriverError> {
        let _ = travel;
        self.advertise(link, topic)
    }

    /// Whether messages on an advertised topic are acknowledged.
    fn is_acknowledged(&self, topic: TopicId) -> bool {
        let _ = topic;
        true
    }

    /// Appends a message; the client is connected, and its buffer has room. A message that counts
    /// as settled once it is written is counted in [`crate::out::Out::messages`]; others are settled
    /// with [`ClientLink::acknowledge`] or [`ClientLink::settled`].
    fn publish(
        &mut self,
        link: &mut ClientLink<'_, Self::Client>,
        topic: TopicId,
        payload: Payload<'_>,
        tag: u64,
    ) -> Taken;

    /// Whether a publisher that was held back may go on, apart from room in its buffer.
    fn may_publish(&self, _client: &Self::Client) -> bool {
        true
    }

    /// Called before waiting bytes of a client are written, once for each round of the loop.
    #[inline]
    fn before_write(&mut self, _link: &mut ClientLink<'_, Self::Client>) {}

    /// Called after a read, and after the socket has taken bytes again: appends what has waited for
    /// room.
    #[inline]
    fn after_write(&mut self, _link: &mut ClientLink<'_, Self::Client>) {}

    /// Appends a ping.
    fn ping(&mut self, link: &mut ClientLink<'_, Self::Client>);

    /// The timer that [`ClientLink::keep_alive`] set for a connected client is due: a ping goes out if
    /// nothing else did, and a server that sends nothing for one interval after a ping is given up.
    ///
    /// # Errors
    /// If the server is given up.
    fn keep_alive(&mut self, link: &mut ClientLink<'_, Self::Client>) -> Result<(), Broken> {
        if !link.needs_ping(Self::PING)? {
            return Ok(());
        }
        // Behind bytes that wait, too: its answer alone tells of a server that owes the client nothing else.
        self.ping(link);
        Ok(())
    }

    /// Appends the last bytes of a connected client, such as a DISCONNECT.
    fn goodbye(&mut self, _link: &mut ClientLink<'_, Self::Client>) {}

    /// The connection cannot go on, and is about to be dropped: appends what the server is to be
    /// told. Returns whether anything is to be written.
    fn failing(&mut self, _link: &mut ClientLink<'_, Self::Client>, _code: Option<u8>) -> bool {
        false
    }

    /// The connection has ended, and its state is about to be dropped. Settles the messages that
    /// this settles. `in_order`: all was written, and the server closed after that.
    fn dropped(&mut self, _link: &mut ClientLink<'_, Self::Client>, _in_order: bool) {}

    /// The missing answer while a client is greeting: "no CONNACK".
    fn waits_for(&self, _client: &Self::Client) -> Cow<'static, str> {
        "no login".into()
    }

    /// Why the server may have ended the connection (`reset` it) while the client was greeting;
    /// `None` where nothing more can be said than of any connection.
    fn turned_away(&self, link: &ClientLink<'_, Self::Client>, _reset: bool) -> Option<Failure> {
        Some(link.turned_away(Self::TURNED_AWAY))
    }

    /// Adds the protocol's advice to an error of TLS.
    fn tls_failed(&self, _error: &mut DriverError) {}

    /// Called before the loop may sleep, ahead of writing.
    #[inline]
    fn prepare(_fleet: &mut TcpFleet<Self>) {}

    /// When the protocol's own timer is due, in the milliseconds of [`Shared::now_ms`].
    #[inline]
    fn next_timer_ms(&self) -> Option<u32> {
        None
    }

    /// Ends all clients by `until`, and removes what they would leave on the server.
    fn close(fleet: &mut TcpFleet<Self>, until: Nanos) {
        fleet.leave(until);
    }

    /// Limits of the clients that have connected, as of [`pubgauge_driver::Fleet::grants`].
    fn grants(&self) -> Vec<Grant> {
        Vec::new()
    }

    /// Messages that [`Protocol::close`] published itself, to remove others.
    fn parting_messages(&self) -> u64 {
        0
    }

    /// Names what [`Protocol::close`] could not remove; the first endpoint stands before them.
    fn left_behind(&self) -> Option<String> {
        None
    }
}

/// The outcome of publishing a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It was appended.
    Accepted,
    /// A window is full: the message is dropped or held back, as the settings say.
    Full,
    /// It cannot be sent yet, whatever the settings say of full queues.
    NotYet,
    /// It cannot be sent.
    Refused(Refusal),
}

/// One worker's share of the clients, of one protocol.
pub struct TcpFleet<P: Protocol> {
    /// State of the protocol that the clients share.
    pub protocol: P,
    /// The clients, by [`ClientId`].
    pub clients: Vec<FleetClient<P::Client>>,
    /// Other state that the clients share.
    pub shared: Shared,
    event_loop: EventLoop,
    /// Every connection is read into this and decoded in place.
    buf: Box<[u8]>,
    tls: Option<tls::TlsSetup>,
    /// Where each connection looks its host up.
    lookups: Option<Lookups>,
}

/// The number under which the loop watches for looked-up hosts: no client has it.
const NO_CLIENT: ClientId = ClientId(u32::MAX);

impl<P: Protocol> TcpFleet<P> {
    /// A fleet without clients, whose endpoints are those that [`crate::pair::parse_places`] gave.
    ///
    /// # Errors
    /// Certificates that cannot be read, no more descriptors.
    pub fn open(
        config: FleetConfig,
        endpoints: Vec<Endpoint>,
        tuning: Tuning,
        protocol: P,
    ) -> Result<Self, DriverError> {
        let target = config.target;
        let tls = if endpoints.iter().any(|e| e.encryption.is_on()) {
            Some(tls::TlsSetup::new(
                &target.tls.unwrap_or_default(),
                &endpoints,
                |place| protocol.server_name(place, &endpoints[place]),
                P::ALPN,
            )?)
        } else {
            None
        };
        let each_connection = tuning.socket.name_lookup == NameLookup::EachConnection;
        let mut fleet = TcpFleet {
            protocol,
            clients: Vec::with_capacity(config.clients),
            shared: Shared {
                username: target.username,
                password: target.password,
                ..Shared::new(endpoints, tuning)
            },
            event_loop: EventLoop::new(config.clock)?,
            buf: vec![0; READ_BUF].into_boxed_slice(),
            tls,
            lookups: None,
        };
        if each_connection {
            fleet.look_up_each(&(Arc::new(Endpoint::look_up) as LookUp))?;
        }
        Ok(fleet)
    }

    /// From now on each connection asks `look_up` for the addresses of its host, if that has a name, and takes the first.
    ///
    /// # Errors
    /// No more descriptors or threads.
    pub fn look_up_each(&mut self, look_up: &LookUp) -> Result<(), DriverError> {
        let endpoints = &self.shared.endpoints;
        if endpoints.iter().any(Endpoint::has_name) {
            let waker = Waker::new()?;
            self.event_loop.watch(waker.fd(), NO_CLIENT)?;
            self.lookups = Some(Lookups::begin(endpoints, look_up, &waker)?);
        }
        Ok(())
    }

    /// A client as the protocol sees it, with the protocol.
    #[inline]
    pub fn link(&mut self, id: ClientId) -> (&mut P, ClientLink<'_, P::Client>) {
        let link = ClientLink {
            id,
            client: &mut self.clients[id.0 as usize],
            shared: &mut self.shared,
            tls: self.tls.as_ref(),
        };
        (&mut self.protocol, link)
    }

    /// The time on the fleet's clock.
    pub fn now(&self) -> Nanos {
        self.event_loop.now()
    }

    /// Runs until `done` or `until` and reports nothing.
    pub fn run_until(&mut self, until: Nanos, done: impl Fn(&Self) -> bool) {
        self.run_unheard(until, done);
    }

    /// Disconnects all clients and waits for their ends until `until`.
    pub fn leave(&mut self, until: Nanos) {
        for id in 0..self.clients.len() as u32 {
            pubgauge_driver::Fleet::disconnect(self, ClientId(id));
        }
        self.run_unheard(until, |fleet| {
            fleet.clients.iter().all(|c| c.state == State::Down)
        });
    }

    /// Ends a connection that cannot go on. The change is reported by the next poll.
    fn fail(&mut self, id: ClientId, broken: Broken) {
        let client = &self.clients[id.0 as usize];
        let (state, half_closed) = (client.state, client.half_closed);
        if state == State::Down {
            return;
        }
        let (protocol, mut link) = self.link(id);
        let may_speak = !link.client.is_beginning_websocket();
        if may_speak && protocol.failing(&mut link, broken.code) {
            self.write(id);
        }
        let closing = state == State::Closing;
        self.drop_connection(id, closing && half_closed);
        // After the client's last bytes any end is in order.
        let change = if closing {
            Change::Closed
        } else {
            Change::Failed(broken.failure)
        };
        self.shared.reports.owe(id, change);
    }

    /// Ends a client's connection without telling the server.
    fn drop_connection(&mut self, id: ClientId, in_order: bool) {
        let (protocol, mut link) = self.link(id);
        protocol.dropped(&mut link, in_order);
        let unwritten = link.client.drop_connection(&mut link.shared.pool);
        link.settled(unwritten);
    }
}
