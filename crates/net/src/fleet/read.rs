//! Reading: into the one buffer of the fleet, decoded in place; only beginnings of units are kept
//! with their client.

use std::io::Read;
use std::os::fd::AsFd;

use pubgauge_driver::{ClientId, Events, WireBytes};
use rustix::io::Errno;

use super::{Broken, ClientLink, FleetClient, Protocol, State, TcpFleet};
use crate::event_loop::Driven;
use crate::out::OUT_CAP;
use crate::socket::{self, Arrived, Io};
use crate::tls::{self, TlsFailure};

/// Bytes of answers that may wait before a client is not read from any more: a server that sends
/// but does not read must not fill the client's memory.
const READ_PAUSE: usize = 4 * OUT_CAP;

/// How much the buffer of a large unit grows at once: its length is the server's claim, and memory
/// is given only as its bytes come in.
const GROWTH: usize = 1 << 20;

/// The advice where WebSocket does not begin.
const WEBSOCKET_PORT: &str = "does the server speak WebSocket at this port, at this path, with TLS if it is wss://? Its other ports are others";

/// Bytes that are read at once for a client whose application takes so many messages and no more: what it does not take
/// should wait in its socket, before the server.
const BOUNDED_READ: usize = 4 << 10;

/// Reads of one TLS connection in a row before other clients are read from.
const TLS_READS: usize = 16;

impl<P: Protocol> TcpFleet<P> {
    /// Reads from a client, as a rule once, and reports what came.
    pub(super) fn serve(&mut self, id: ClientId, events: &mut dyn Events) {
        let client = &mut self.clients[id.0 as usize];
        if matches!(client.state, State::Down | State::Connecting) {
            return;
        }
        // A server that has hung up will not read answers any more: the rest of what it sent is
        // read.
        if client.pending() > READ_PAUSE && !client.marks.hung_up {
            client.paused = true;
            return;
        }
        if client.is_busy() {
            return;
        }
        let mut arrived = self.read(id, events);
        // The end of a stream is reported together with its last bytes.
        while self.has_hung_up(id) && matches!(arrived, Ok(Arrived::More)) && !self.is_busy(id) {
            arrived = self.read(id, events);
        }
        if self.has_hung_up(id) && matches!(arrived, Ok(Arrived::Drained)) && !self.is_busy(id) {
            arrived = self.read(id, events);
        }
        match arrived {
            Err(broken) => return self.fail(id, broken),
            Ok(Arrived::Ended) => {
                let broken = self.connection_ended(id, false);
                return self.fail(id, broken);
            }
            // It is read from again once more is asked for.
            Ok(_) if self.is_busy(id) => {}
            Ok(Arrived::More) => self.mark_ready(id),
            // The end of the stream comes without another edge.
            Ok(Arrived::Drained) if self.has_hung_up(id) => self.mark_ready(id),
            Ok(Arrived::Drained) => {}
        }
        // Answers go out with one write for all that came with one read.
        let client = &self.clients[id.0 as usize];
        if client.out.as_ref().is_some_and(|out| !out.stuck) && self.flush(id).is_err() {
            return;
        }
        self.written(id);
    }

    fn has_hung_up(&self, id: ClientId) -> bool {
        self.clients[id.0 as usize].marks.hung_up
    }

    fn is_busy(&self, id: ClientId) -> bool {
        self.clients[id.0 as usize].is_busy()
    }

    /// Takes in whole units that a bound has kept in the inbox.
    #[cold]
    fn take_held(&mut self, id: ClientId, events: &mut dyn Events) -> Result<(), Broken> {
        let client = &mut self.clients[id.0 as usize];
        let Some(mut inbox) = client.inbox.take() else {
            return Ok(());
        };
        events.arrived();
        let (protocol, mut link) = self.link(id);
        let used = protocol.receive(&mut link, &inbox, events)?;
        inbox.drain(..used);
        link.client.keep(inbox);
        Ok(())
    }

    /// Why a connection ended, or was `reset`, without the protocol's saying so.
    fn connection_ended(&mut self, id: ClientId, reset: bool) -> Broken {
        let (protocol, link) = self.link(id);
        if link.client.is_in_handshake() {
            return Broken::new(tls::ended_early(link.display_endpoint()));
        }
        if link.client.is_beginning_websocket() {
            return link.broken(format_args!(
                "the server closed the connection in place of beginning WebSocket\n  hint: {WEBSOCKET_PORT}"
            ));
        }
        let greeting = link.client.state == State::Greeting;
        if greeting && let Some(failure) = protocol.turned_away(&link, reset) {
            return Broken::new(failure);
        }
        if reset {
            Broken::new(socket::failure(
                Errno::CONNRESET,
                link.display_endpoint(),
                false,
            ))
        } else {
            link.broken(
            "the server closed the connection\n  hint: it was stopped, or threw this client out: its log may say why",
        )
        }
    }

    fn read_failed(&mut self, id: ClientId, errno: Errno) -> Broken {
        let greeting = self.clients[id.0 as usize].state == State::Greeting;
        if greeting && errno == Errno::CONNRESET {
            return self.connection_ended(id, true);
        }
        Broken::new(socket::failure(
            errno,
            self.link(id).1.display_endpoint(),
            greeting,
        ))
    }

    fn read(&mut self, id: ClientId, events: &mut dyn Events) -> Result<Arrived, Broken> {
        let layers = &mut self.clients[id.0 as usize].layers;
        if layers
            .as_mut()
            .is_some_and(|layers| std::mem::take(&mut layers.held))
        {
            self.take_held(id, events)?;
            if self.is_busy(id) {
                return Ok(Arrived::More);
            }
        }
        if self.clients[id.0 as usize].has_tls() {
            return self.read_tls(id, events);
        }
        let (io, filled) = self.take_in(id, events, plain)?;
        match io {
            Io::Done(0) => Ok(Arrived::Ended),
            Io::Done(_) if filled => Ok(Arrived::More),
            Io::Done(_) | Io::WouldBlock => Ok(Arrived::Drained),
            Io::Failed(errno) => Err(self.read_failed(id, errno)),
        }
    }

    fn read_tls(&mut self, id: ClientId, events: &mut dyn Events) -> Result<Arrived, Broken> {
        // Decrypted bytes that a bound has left there.
        if !self.take_in_plaintext(id, events)? {
            return Ok(Arrived::More);
        }
        for _ in 0..TLS_READS {
            let client = &mut self.clients[id.0 as usize];
            let tls = client.layers.as_mut().and_then(|l| l.tls.as_mut());
            let (Some(fd), Some(tls)) = (&client.fd, tls) else {
                return Ok(Arrived::Drained);
            };
            let read = match tls::read(fd.as_fd(), tls, &mut self.shared.wire.received) {
                Ok(Arrived::Drained) => return Ok(Arrived::Drained),
                Ok(read) => read,
                Err(TlsFailure::Socket(errno)) => return Err(self.read_failed(id, errno)),
                Err(TlsFailure::Protocol(error)) => {
                    let (protocol, link) = self.link(id);
                    let mut error = tls::failure(link.display_endpoint(), &error);
                    protocol.tls_failed(&mut error);
                    return Err(Broken::new(error));
                }
            };
            if read == Arrived::More {
                self.mark_alive(id);
            }
            if !self.take_in_plaintext(id, events)? {
                return Ok(Arrived::More);
            }
            if read == Arrived::Ended {
                return Ok(Arrived::Ended);
            }
            // The handshake, and answers that waited for it.
            let tls = self.clients[id.0 as usize].tls();
            if tls.is_some_and(|tls| tls.wants_write()) && self.flush(id).is_err() {
                return Ok(Arrived::Drained);
            }
        }
        Ok(Arrived::More)
    }

    /// Takes in all plaintext that rustls has; false if a bound was reached before its end.
    fn take_in_plaintext(&mut self, id: ClientId, events: &mut dyn Events) -> Result<bool, Broken> {
        while let (Io::Done(1..), _) = self.take_in(id, events, plaintext)? {
            if self.is_busy(id) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Bytes came from the server: it is alive.
    #[inline]
    fn mark_alive(&mut self, id: ClientId) {
        let client = &mut self.clients[id.0 as usize];
        client.awaits_pong = false;
        client.last_received_ms = self.shared.now_ms;
    }

    /// Reads once, behind the beginning of a unit that was kept, and lets the protocol take in what
    /// is whole. A unit that outgrows the shared buffer gathers in one of its own. Returns what the
    /// read came to, and whether it filled all the room there was.
    #[inline]
    fn take_in(
        &mut self,
        id: ClientId,
        events: &mut dyn Events,
        read: impl FnOnce(&mut FleetClient<P::Client>, &mut WireBytes, &mut [u8]) -> Io,
    ) -> Result<(Io, bool), Broken> {
        let client = &mut self.clients[id.0 as usize];
        let mut inbox = client.inbox.take();
        let kept = inbox.as_ref().map_or(0, |inbox| inbox.len());
        if kept > self.buf.len() / 2 {
            return self.take_in_large(id, events, inbox.unwrap_or_default(), read);
        }
        if let Some(inbox) = &inbox {
            self.buf[..kept].copy_from_slice(inbox);
        }
        let mut room = self.buf.len() - kept;
        if client.is_bounded() {
            room = room.min(BOUNDED_READ);
        }
        let io = read(
            client,
            &mut self.shared.wire,
            &mut self.buf[kept..kept + room],
        );
        let Io::Done(n @ 1..) = io else {
            client.inbox = inbox.take();
            return Ok((io, false));
        };
        self.mark_alive(id);
        let mut carried = n;
        if self.clients[id.0 as usize].layers.is_some() {
            carried = self.unframe(id, kept, n, None)?;
            if carried == 0 {
                self.clients[id.0 as usize].inbox = inbox.take();
                return self.check_websocket(id).map(|()| (io, n == room));
            }
        }
        events.arrived();
        let mut link = ClientLink {
            id,
            client: &mut self.clients[id.0 as usize],
            shared: &mut self.shared,
            tls: self.tls.as_ref(),
        };
        let bytes = &self.buf[..kept + carried];
        let used = self.protocol.receive(&mut link, bytes, events)?;
        if used < bytes.len() {
            link.client.keep(Box::new(bytes[used..].to_vec()));
        }
        self.check_websocket(id)?;
        Ok((io, n == room))
    }

    /// Takes in a unit larger than half of the shared buffer, whose beginning is in `inbox`.
    #[allow(clippy::box_collection)] // As it is kept with the client.
    fn take_in_large(
        &mut self,
        id: ClientId,
        events: &mut dyn Events,
        mut inbox: Box<Vec<u8>>,
        read: impl FnOnce(&mut FleetClient<P::Client>, &mut WireBytes, &mut [u8]) -> Io,
    ) -> Result<(Io, bool), Broken> {
        let kept = inbox.len();
        let whole = self.protocol.unit_len(&inbox);
        // Where the length is not known: twice what is there.
        let missing = whole.map_or(kept, |whole| whole.saturating_sub(kept).max(1));
        let room = missing.min(GROWTH);
        inbox.resize(kept + room, 0);
        let client = &mut self.clients[id.0 as usize];
        let io = read(client, &mut self.shared.wire, &mut inbox[kept..]);
        let n = if let Io::Done(n) = io { n } else { 0 };
        let mut carried = n;
        if n > 0 {
            self.mark_alive(id);
            if self.clients[id.0 as usize].layers.is_some() {
                carried = self.unframe(id, kept, n, Some(&mut inbox))?;
            }
        }
        inbox.truncate(kept + carried);
        let mut used = 0;
        if n > 0 && whole.is_none_or(|whole| inbox.len() >= whole) {
            events.arrived();
            let (protocol, mut link) = self.link(id);
            used = protocol.receive(&mut link, &inbox, events)?;
        }
        match used {
            0 => self.clients[id.0 as usize].inbox = Some(inbox),
            _ if used == inbox.len() => {}
            _ => self.clients[id.0 as usize].keep(Box::new(inbox[used..].to_vec())),
        }
        self.check_websocket(id)?;
        Ok((io, n == room))
    }

    /// Takes the frames of WebSocket away, if there is such, from `n` bytes that came to the shared buffer, or to `large`,
    /// behind `kept` of them. Returns how many are left; they stand where the frames stood.
    fn unframe(
        &mut self,
        id: ClientId,
        kept: usize,
        n: usize,
        large: Option<&mut Vec<u8>>,
    ) -> Result<usize, Broken> {
        let buffer = large.map_or(&mut self.buf[..], |large| &mut large[..]);
        let came = &mut buffer[kept..kept + n];
        let client = &mut self.clients[id.0 as usize];
        let has_tls = client.has_tls();
        let Some(websocket) = client.websocket_mut() else {
            return Ok(n);
        };
        let was_beginning = websocket.is_beginning();
        if was_beginning && !has_tls && tls::looks_like_tls(came) {
            let shown = &self.shared.endpoints[usize::from(client.place)].shown;
            return Err(Broken::new(tls::unexpected(shown)));
        }
        let taken = websocket.take(came);
        let (has_begun, owes_pong) = (
            was_beginning && !websocket.is_beginning(),
            websocket.owes_pong(),
        );
        let (protocol, mut link) = self.link(id);
        let carried = taken.map_err(|why| {
            if was_beginning {
                link.broken(format_args!("{why}\n  hint: {WEBSOCKET_PORT}"))
            } else {
                link.protocol_broken(why, "what is between may be at fault, too")
            }
        })?;
        if has_begun {
            protocol.greet(&mut link)?;
        }
        if owes_pong {
            link.out();
            link.client.frame();
            if let Some(out) = &mut link.client.out
                && let Some(layers) = &mut link.client.layers
                && let Some(websocket) = &mut layers.websocket
            {
                websocket.answer(&mut out.bytes);
                out.framed = out.bytes.len();
            }
        }
        Ok(carried)
    }

    /// Fails where the server has closed WebSocket.
    fn check_websocket(&mut self, id: ClientId) -> Result<(), Broken> {
        let client = &mut self.clients[id.0 as usize];
        if client.holds_units() {
            return Ok(());
        }
        let closed = client
            .websocket_mut()
            .and_then(|websocket| websocket.closed());
        let Some(code) = closed else {
            return Ok(());
        };
        let code = code.map_or(String::new(), |code| format!(" (close code {code})"));
        Err(self.link(id).1.broken(format_args!(
            "the server closed WebSocket{code}\n  hint: it was stopped, or threw this client out: its log may say why"
        )))
    }
}

fn plain<C>(client: &mut FleetClient<C>, wire: &mut WireBytes, buf: &mut [u8]) -> Io {
    let Some(fd) = &client.fd else {
        return Io::WouldBlock;
    };
    let io = socket::read(fd.as_fd(), buf);
    if let Io::Done(n) = io {
        wire.received += n as u64;
    }
    io
}

/// Decrypted bytes, which were counted as they came.
fn plaintext<C>(client: &mut FleetClient<C>, _: &mut WireBytes, buf: &mut [u8]) -> Io {
    match client.tls_mut().map(|tls| tls.reader().read(buf)) {
        Some(Ok(n @ 1..)) => Io::Done(n),
        // Nothing for now, or the end, which the socket reports too.
        _ => Io::WouldBlock,
    }
}
