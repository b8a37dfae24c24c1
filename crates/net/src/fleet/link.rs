//! A connection as a protocol sees it, and the state that all clients of a fleet share.

use std::fmt::Display;
use std::net::IpAddr;

use pubgauge_driver::{
    Acknowledgement, Change, ClientId, Delivery, Events, Failure, Secret, WireBytes,
};

use super::broken::Broken;
use super::client::{FleetClient, State};
use super::identity::{Identities, Identity};
use super::tuning::Tuning;
use crate::endpoint::Endpoint;
use crate::event_loop::Reports;
use crate::out::{Out, OutPool};
use crate::timers::Timers;
use crate::websocket::WebSocket;
use crate::{login, tls};

/// State that all clients of a fleet share, whatever their protocol, apart from the sockets.
#[derive(Default)]
pub struct Shared {
    /// How the fleet was opened.
    pub tuning: Tuning,
    /// Two for each of the target's: where publishers and where subscribers connect to.
    pub endpoints: Vec<Endpoint>,
    /// User name, unless the endpoint or the client has one.
    pub username: Option<String>,
    /// Password, unless the client has one.
    pub password: Option<Secret>,
    pub(super) identities: Identities,
    /// Milliseconds since the fleet was opened, as of the last look at the clock.
    pub now_ms: u32,
    /// Messages accepted and not settled.
    pub unsettled: u64,
    /// Changes to be reported, and whether this poll has reported anything.
    pub reports: Reports,
    pub(super) pool: OutPool,
    /// Addresses that clients connect from.
    pub(super) sources: Vec<IpAddr>,
    pub(super) timers: Timers,
    /// Clients with bytes to write.
    pub(super) dirty: Vec<u32>,
    pub(super) wire: WireBytes,
    /// System calls that wrote.
    pub(super) writes: u64,
}

impl Shared {
    /// Nothing under way; no user name and no password.
    pub fn new(endpoints: Vec<Endpoint>, tuning: Tuning) -> Shared {
        Shared {
            tuning,
            endpoints,
            ..Shared::default()
        }
    }

    /// The number of an address that a client connects from, see [`Client::source`].
    pub(super) fn number_of(&mut self, source: Option<IpAddr>) -> u32 {
        let Some(source) = source else {
            return 0;
        };
        // Clients come in blocks of one source.
        let known = self.sources.iter().rposition(|known| *known == source);
        let index = known.unwrap_or_else(|| {
            self.sources.push(source);
            self.sources.len() - 1
        });
        index as u32 + 1
    }

    /// The address of that number.
    pub(super) fn source(&self, number: u32) -> Option<IpAddr> {
        let index = number.checked_sub(1)?;
        self.sources.get(index as usize).copied()
    }
}

/// One client and its connection, as its protocol sees it.
pub struct ClientLink<'a, C> {
    pub id: ClientId,
    pub client: &'a mut FleetClient<C>,
    /// State that it shares with the others.
    pub shared: &'a mut Shared,
    pub(super) tls: Option<&'a tls::TlsSetup>,
}

impl<'a, C> ClientLink<'a, C> {
    /// A client of no fleet, without a socket and without TLS: for tests of a protocol.
    pub fn unwired(id: ClientId, client: &'a mut FleetClient<C>, shared: &'a mut Shared) -> Self {
        ClientLink {
            id,
            client,
            shared,
            tls: None,
        }
    }

    /// The buffer of what is to be written, which the next round of the loop looks at.
    #[inline]
    pub fn out(&mut self) -> &mut Out {
        self.mark_dirty();
        self.client
            .out
            .get_or_insert_with(|| self.shared.pool.get())
    }

    /// Sees to it that the next round of the loop looks at this client.
    #[inline]
    pub(super) fn mark_dirty(&mut self) {
        if !self.client.dirty {
            self.client.dirty = true;
            self.shared.dirty.push(self.id.0);
        }
    }

    /// Where it is connected to.
    pub fn endpoint(&self) -> &Endpoint {
        &self.shared.endpoints[usize::from(self.client.place)]
    }

    /// Its endpoint, for messages.
    pub fn display_endpoint(&self) -> &str {
        &self.endpoint().shown
    }

    fn identity(&self) -> Option<&Identity> {
        self.shared.identities.of_client(self.id.0 as usize)
    }

    /// The user name of this client alone, if it has one of its own.
    pub fn own_username(&self) -> Option<&str> {
        self.identity()?.username.as_deref()
    }

    /// The client's own user name, else that of the endpoint, else that of the target.
    pub fn username(&self) -> Option<&str> {
        let shared = || self.endpoint().username.as_deref();
        let own = self.own_username().or_else(shared);
        own.or(self.shared.username.as_deref())
    }

    /// The client's own password, else that of the target.
    pub fn password(&self) -> Option<&Secret> {
        let own = self.identity().and_then(|own| own.password.as_ref());
        own.or(self.shared.password.as_ref())
    }

    /// Whether it has a certificate that no other client has.
    pub fn has_own_certificate(&self) -> bool {
        self.identity().is_some_and(|own| own.key.is_some())
    }

    /// Whether the client is in use.
    #[inline]
    pub fn is_connected(&self) -> bool {
        self.client.state == State::Connected
    }

    /// The client has all that it needs and may be used. The protocol reports that
    /// ([`ClientLink::report_connected`]).
    pub fn connected(&mut self) {
        self.client.state = State::Connected;
        self.client.awaits_pong = false;
        self.client.due_ms = 0;
        self.client.last_received_ms = self.shared.now_ms;
    }

    pub fn report_connected(&mut self, events: &mut dyn Events, session_present: bool) {
        let change = Change::Connected {
            session_present,
            address: None,
        };
        self.report(events, change);
    }

    /// The parts of a login that it has to give.
    pub fn login_parts(&self) -> login::Given {
        login::Given {
            username: self.username().is_some(),
            password: self.password().is_some(),
            own: self.identity().is_some(),
        }
    }

    /// Why the login was refused, and what to do, by what the client had to give.
    pub fn login_refused(&self) -> (&'static str, String) {
        login::refused(self.display_endpoint(), self.login_parts())
    }

    /// Has [`super::Protocol::keep_alive`] called when nothing was written for three quarters of `seconds`; never if
    /// that is 0.
    pub fn keep_alive(&mut self, seconds: u16) {
        self.client.keep_alive_s = seconds;
        if seconds > 0 {
            self.set_timer(u32::from(seconds) * 750);
        }
    }

    /// Sets the client's one timer to `after_ms` from now, instead of the one before.
    pub fn set_timer(&mut self, after_ms: u32) {
        // 0 stands for no timer.
        self.client.due_ms = self.shared.now_ms.saturating_add(after_ms).max(1);
        // A timer that is put off waits behind the entry that is there.
        if self.client.queued_ms == 0 || self.client.due_ms < self.client.queued_ms {
            self.queue_timer();
        }
    }

    pub(super) fn queue_timer(&mut self) {
        self.client.queued_ms = self.client.due_ms;
        self.shared.timers.push(self.client.due_ms, self.id.0);
    }

    /// Whether nothing was written for so long that a `ping` is due: three quarters of the interval that the server was
    /// told, so that it gets one in each (MQTT 5.0 §3.1.2.10; a NATS server does not wait for longer where that is 1 s).
    /// Sets the timer again.
    ///
    /// # Errors
    /// If nothing came for an interval after the last ping.
    pub(super) fn needs_ping(&mut self, ping: &str) -> Result<bool, Broken> {
        let now_ms = self.shared.now_ms;
        let interval_ms = u32::from(self.client.keep_alive_s) * 1000;
        if self.client.awaits_pong {
            let silent_ms = now_ms.saturating_sub(self.client.last_received_ms);
            if silent_ms < 2 * interval_ms {
                self.set_timer(2 * interval_ms - silent_ms);
                return Ok(false);
            }
            return Err(self.broken(format_args!(
                "no sign of life from the server for {} s after a {ping}\n  hint: it hangs, or the connection is dead",
                self.client.keep_alive_s
            )));
        }
        let due_ms = u32::from(self.client.keep_alive_s) * 750;
        let idle_ms = now_ms.saturating_sub(self.client.last_sent_ms);
        if idle_ms < due_ms {
            self.set_timer(due_ms - idle_ms);
            return Ok(false);
        }
        self.client.awaits_pong = true;
        // A server that had nothing to send counts as silent only from the ping on.
        let asked_ms = now_ms.saturating_sub(interval_ms);
        self.client.last_received_ms = self.client.last_received_ms.max(asked_ms);
        self.set_timer(due_ms);
        Ok(true)
    }

    /// TLS begins here: what is sent from now on is encrypted, and what comes must be.
    ///
    /// # Errors
    /// If it cannot begin.
    pub fn start_tls(&mut self) -> Result<(), Broken> {
        let begun = match self.tls {
            Some(setup) => {
                let own = self.identity().and_then(|own| own.key.as_ref());
                setup.begin(usize::from(self.client.place), own)
            }
            None => return Err(self.broken("TLS is not set up")),
        };
        let tls = begun.map_err(|error| self.broken(error))?;
        self.client.layers.get_or_insert_default().tls = Some(tls);
        Ok(())
    }

    /// Asks the server for WebSocket; the protocol begins once it has accepted.
    pub(super) fn begin_websocket(&mut self, subprotocol: &str) -> Result<(), Broken> {
        let Some(url) = self.endpoint().websocket.clone() else {
            return Ok(());
        };
        let out = self.out();
        let begun = WebSocket::begin(&url, subprotocol, &mut out.bytes);
        out.framed = out.bytes.len();
        let websocket = begun.map_err(|why| self.broken(why))?;
        self.client.layers.get_or_insert_default().websocket = Some(websocket);
        Ok(())
    }

    /// Reports a change now.
    #[inline]
    pub fn report(&mut self, events: &mut dyn Events, change: Change) {
        self.shared.reports.report(events, self.id, change);
    }

    /// Queues a change, which the next poll reports.
    pub fn owe(&mut self, change: Change) {
        self.shared.reports.owe(self.id, change);
    }

    #[inline]
    pub fn deliver(&mut self, events: &mut dyn Events, delivery: Delivery<'_>) {
        self.client.count_delivery();
        self.shared.reports.deliver(events, self.id, delivery);
    }

    /// Reports what became of a message, which is settled by that.
    #[inline]
    pub fn acknowledge(&mut self, events: &mut dyn Events, tag: u64, answer: Acknowledgement) {
        self.shared.reports.reported = true;
        events.acknowledged(self.id, tag, answer);
        self.settled(1);
    }

    /// This many messages are settled without a report.
    #[inline]
    pub fn settled(&mut self, messages: u64) {
        self.shared.unsettled -= messages;
    }

    /// The connection cannot go on, because of what the server did.
    pub fn broken(&self, what: impl Display) -> Broken {
        Broken::new(format!("{}: {what}", self.display_endpoint()))
    }

    /// The server closed the connection while the client was greeting; see
    /// [`super::Protocol::TURNED_AWAY`].
    pub fn turned_away(&self, [when, language]: [&str; 2]) -> Failure {
        let shown = self.display_endpoint();
        let port = tls::wrong_port(shown);
        Failure::from(format!(
            "{shown}: the server closed the connection {when}\n  hint: does it speak {language} there, and {port} Has it reached a limit on connections? Its log may say why"
        ))
    }

    /// Says that the server violated the protocol; `hint` says what to look at.
    pub fn protocol_broken(&self, what: impl Display, hint: &str) -> Broken {
        self.broken(format_args!(
            "the server broke the protocol: {what}\n  hint: {hint}"
        ))
    }
}
