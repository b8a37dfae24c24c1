//! The work of the loop ([`crate::event_loop`]) between two sleeps: begin connections, write what
//! waits, keep the timers, read what came ([`super::read`]).

use std::net::SocketAddr;
use std::os::fd::AsFd;

use pubgauge_driver::{Change, ClientId, DriverError, Encryption, Events};
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;
use rustix::net::{Shutdown, shutdown};

use super::client::Layers;
use super::{Broken, CONNECT_TIMEOUT_MS, Protocol, State, TcpFleet};
use crate::event_loop::{ConnectionPhase, Driven, EventLoop, Marks, Reports};
use crate::lookups::Lookups;
use crate::out::{OUT_CAP, WriteOutcome, after_write, write_out};
use crate::socket;
use crate::tls::Wire;

/// A client could not be written to. Its failure is queued for the next report.
pub(super) struct WriteFailed;

impl<P: Protocol> Driven for TcpFleet<P> {
    #[inline]
    fn event_loop(&mut self) -> &mut EventLoop {
        &mut self.event_loop
    }

    #[inline]
    fn reports(&mut self) -> &mut Reports {
        &mut self.shared.reports
    }

    #[inline]
    fn marks(&mut self, id: ClientId) -> Option<(ConnectionPhase, &mut Marks)> {
        let client = self.clients.get_mut(id.0 as usize)?;
        Some((client.state.phase(), &mut client.marks))
    }

    #[inline]
    fn note_time(&mut self, now_ms: u32) {
        self.shared.now_ms = now_ms;
    }

    #[inline]
    fn next_timer_ms(&self) -> Option<u32> {
        let timers = [self.shared.timers.first_ms(), self.protocol.next_timer_ms()];
        timers.into_iter().flatten().min()
    }

    fn prepare(&mut self) {
        self.take_addresses();
        P::prepare(self);
        self.flush_dirty();
        self.keep_timers();
    }

    fn greet(&mut self, id: ClientId, failed: bool) {
        if let Err(broken) = self.tcp_connected(id, failed) {
            self.fail(id, broken);
        }
    }

    fn writable(&mut self, id: ClientId) {
        let client = &mut self.clients[id.0 as usize];
        if let Some(out) = &mut client.out {
            out.stuck = false;
        }
        if self.flush(id).is_ok() {
            self.written(id);
        }
    }

    fn read_once(&mut self, id: ClientId, events: &mut dyn Events) {
        self.serve(id, events);
    }
}

impl<P: Protocol> TcpFleet<P> {
    /// Begins to connect a client that is down.
    ///
    /// # Errors
    /// If no connection can be begun; one that is refused at once is reported like any other.
    pub fn begin(&mut self, id: ClientId) -> Result<(), DriverError> {
        self.look_at_clock();
        let client = &mut self.clients[id.0 as usize];
        client.epoch += 1;
        let place = usize::from(client.place);
        let endpoint = &self.shared.endpoints[place];
        if let Some(lookups) = self.lookups.as_ref().filter(|_| endpoint.has_name()) {
            lookups.ask(id, client.epoch, place);
            client.state = State::Connecting;
            self.link(id).1.set_timer(CONNECT_TIMEOUT_MS);
            return Ok(());
        }
        let source = self.shared.source(client.source);
        let address = endpoint.address_for(source, id.0 as usize)?;
        self.connect_to(id, address)
    }

    /// Goes on with the connections whose hosts were looked up since.
    fn take_addresses(&mut self) {
        while let Some(answer) = self.lookups.as_ref().and_then(Lookups::take_answer) {
            let id = answer.id;
            let client = &self.clients[id.0 as usize];
            let waits = client.state == State::Connecting && client.fd.is_none();
            if !waits || client.epoch != answer.epoch {
                continue; // It was given up since.
            }
            let endpoint = &self.shared.endpoints[usize::from(client.place)];
            let source = self.shared.source(client.source);
            let found = answer.addresses;
            let address = found.and_then(|addresses| endpoint.address_among(&addresses, source, 0));
            let begun = address.and_then(|address| self.connect_to(id, address));
            if let Err(error) = begun {
                self.fail(id, Broken::new(error));
            }
        }
    }

    /// Begins the connection to an address.
    ///
    /// # Errors
    /// As [`TcpFleet::begin`].
    fn connect_to(&mut self, id: ClientId, address: SocketAddr) -> Result<(), DriverError> {
        let client = &mut self.clients[id.0 as usize];
        let place = usize::from(client.place);
        let endpoint = &self.shared.endpoints[place];
        let source = self.shared.source(client.source);
        let tls = match (&self.tls, endpoint.encryption) {
            (Some(setup), Encryption::Tls) => {
                let own = self.shared.identities.of_client(id.0 as usize);
                let begun = setup.begin(place, own.and_then(|own| own.key.as_ref()));
                Some(begun.map_err(|e| DriverError::new(format!("{}: {e}", endpoint.shown)))?)
            }
            _ => None,
        };
        let options = &self.shared.tuning.socket;
        let (fd, begun) = socket::begin_connect(address, source, options, &endpoint.shown)?;
        if let Err(failure) = begun {
            client.state = State::Down;
            self.shared.reports.owe(id, Change::Failed(failure));
            return Ok(());
        }
        self.event_loop.watch(&fd, id)?;
        client.fd = Some(fd);
        client.layers = tls.map(|tls| {
            Box::new(Layers {
                tls: Some(tls),
                ..Layers::default()
            })
        });
        client.state = State::Connecting;
        self.link(id).1.set_timer(CONNECT_TIMEOUT_MS);
        Ok(())
    }

    /// TCP has connected, or `failed`.
    fn tcp_connected(&mut self, id: ClientId, failed: bool) -> Result<(), Broken> {
        let (protocol, mut link) = self.link(id);
        let Some(fd) = &link.client.fd else {
            return Ok(());
        };
        if failed && let Ok(Err(errno)) | Err(errno) = socket_error(fd) {
            return Err(Broken::new(socket::failure(
                errno,
                link.display_endpoint(),
                true,
            )));
        }
        link.client.state = State::Greeting;
        if link.endpoint().websocket.is_some() {
            link.begin_websocket(P::SUBPROTOCOL)?;
        } else {
            protocol.greet(&mut link)?;
        }
        // A failure to write has failed the client already.
        let _ = self.flush(id);
        Ok(())
    }

    /// The socket has taken bytes, or something was read: what has waited for either goes on.
    pub(super) fn written(&mut self, id: ClientId) {
        let (protocol, mut link) = self.link(id);
        protocol.after_write(&mut link);
        self.settle_debts(id);
    }

    /// Gives a client what it is owed once its buffer has room: [`Change::Writable`], and to be read from.
    fn settle_debts(&mut self, id: ClientId) {
        let client = &mut self.clients[id.0 as usize];
        if client.pending() >= OUT_CAP / 2 {
            return;
        }
        if client.owes_writable
            && client.state == State::Connected
            && self.protocol.may_publish(&client.own)
        {
            client.owes_writable = false;
            self.shared.reports.owe(id, Change::Writable);
        }
        if client.paused {
            client.paused = false;
            self.mark_ready(id);
        }
    }

    fn flush_dirty(&mut self) {
        let mut dirty = std::mem::take(&mut self.shared.dirty);
        for id in dirty.drain(..).map(ClientId) {
            let (protocol, mut link) = self.link(id);
            protocol.before_write(&mut link);
            link.client.dirty = false;
            if link.client.out.as_ref().is_some_and(|out| out.stuck) {
                continue; // The socket will say when it takes more.
            }
            if self.flush(id).is_ok() {
                self.settle_debts(id);
            }
        }
        if self.shared.dirty.is_empty() {
            self.shared.dirty = dirty; // Keeps its capacity.
        }
    }

    /// Writes as much of a client's buffer as the socket takes, whatever comes of it.
    #[inline]
    pub(super) fn write(&mut self, id: ClientId) -> WriteOutcome {
        let client = &mut self.clients[id.0 as usize];
        client.frame();
        let Some(fd) = &client.fd else {
            return WriteOutcome::default();
        };
        let tls = client.layers.as_mut().and_then(|l| l.tls.as_deref_mut());
        let written = write_out(fd.as_fd(), tls, client.out.as_deref_mut());
        if written.sent > 0 {
            self.shared.wire.sent += written.sent;
            self.shared.writes += written.writes;
            client.last_sent_ms = self.shared.now_ms;
        }
        written
    }

    /// Writes as much of a client's buffer as the socket takes.
    ///
    /// On an error the client has been failed.
    pub(super) fn flush(&mut self, id: ClientId) -> Result<(), WriteFailed> {
        let client = &self.clients[id.0 as usize];
        if client.fd.is_none() || client.state == State::Connecting {
            return Ok(());
        }
        let WriteOutcome { stuck, failed, .. } = self.write(id);
        let client = &mut self.clients[id.0 as usize];
        if let Some(errno) = failed {
            if let Some(out) = &mut client.out {
                out.stuck = true;
            }
            // The server may have said why before it closed: read that first, if it is there.
            if matches!(errno, Errno::PIPE | Errno::CONNRESET) && !client.marks.hung_up {
                client.marks.hung_up = true;
                self.mark_ready(id);
                return Ok(());
            }
            let failure = socket::failure(errno, self.link(id).1.display_endpoint(), false);
            self.fail(id, Broken::new(failure));
            return Err(WriteFailed);
        }
        let tls = client.layers.as_ref().and_then(|l| l.tls.as_deref());
        let pool = &mut self.shared.pool;
        self.shared.unsettled -= after_write(&mut client.out, tls, stuck, pool);
        if P::HALF_CLOSES && client.state == State::Closing && client.out.is_none() {
            self.half_close(id);
        }
        Ok(())
    }

    /// Shuts the writing side, if it was not shut before. The server closes when it has read the
    /// last bytes; to close at once could discard them if bytes from the server were still unread
    /// (RFC 1122 §4.2.2.13).
    fn half_close(&mut self, id: ClientId) {
        let client = &mut self.clients[id.0 as usize];
        let Some(fd) = client.fd.as_ref().filter(|_| !client.half_closed) else {
            return;
        };
        client.half_closed = true;
        let tls = client.layers.as_mut().and_then(|l| l.tls.as_mut());
        if let Some(tls) = tls {
            let mut wire = Wire {
                fd: fd.as_fd(),
                moved: 0,
            };
            tls.send_close_notify();
            let _ = tls.write_tls(&mut wire);
        }
        let _ = shutdown(fd, Shutdown::Write);
    }

    /// Sends pings that are due, and ends clients whose time to connect or to close is over.
    fn keep_timers(&mut self) {
        while let Some((queued, id)) = self.shared.timers.pop_due(self.shared.now_ms) {
            let id = ClientId(id);
            let (protocol, mut link) = self.link(id);
            if link.client.queued_ms != queued {
                continue; // Overtaken.
            }
            link.client.queued_ms = 0;
            if link.client.due_ms > link.shared.now_ms {
                link.queue_timer(); // Put off.
                continue;
            }
            if link.client.due_ms == 0 {
                continue;
            }
            let what = match link.client.state {
                State::Down => continue,
                State::Closing => {
                    self.drop_connection(id, false);
                    self.shared.reports.owe(id, Change::Closed);
                    continue;
                }
                State::Connected => {
                    if link.client.is_busy() {
                        // Nothing that the server has sent is read: its silence says nothing.
                        link.client.awaits_pong = false;
                        link.client.last_received_ms = link.shared.now_ms;
                    }
                    match protocol.keep_alive(&mut link) {
                        // A failure to write has failed the client already.
                        Ok(()) => {
                            let _ = self.flush(id);
                        }
                        Err(broken) => self.fail(id, broken),
                    }
                    continue;
                }
                State::Connecting if link.client.fd.is_none() => {
                    "no address from the name service".into()
                }
                State::Connecting => "no TCP connection".into(),
                State::Greeting if link.client.is_beginning_websocket() => {
                    "no answer to the request for WebSocket".into()
                }
                State::Greeting => protocol.waits_for(&link.client.own),
            };
            let broken = link.broken(format_args!(
                "{what} within 30 s\n  hint: the server hangs, is overloaded, or something between swallows packets"
            ));
            self.fail(id, broken);
        }
    }
}
