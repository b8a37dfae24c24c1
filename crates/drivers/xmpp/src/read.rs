//! Reading: into the one buffer of the fleet, decoded in place; only beginnings of stanzas are
//! kept with their client.

use std::io::Read;
use std::os::fd::AsFd;

use pubgauge_driver::{ClientId, Events};
use pubgauge_net::socket::{self, Arrived, Io};
use pubgauge_net::tls::{self, TlsFailure, TlsRead};
use pubgauge_net::turns::Driven;
use rustix::io::Errno;

use crate::broken::Broken;
use crate::client::{READ_PAUSE, State};
use crate::fleet::XmppFleet;
use crate::protocol;

/// How much a large stanza's buffer grows at once.
const GROWTH: usize = 1 << 20;

/// Reads of one TLS connection in a row before others get their turn.
const TLS_READS: usize = 16;

impl XmppFleet {
    /// Reads once from a client and reports what came.
    pub fn serve(&mut self, id: ClientId, events: &mut dyn Events) {
        let client = &mut self.clients[id.0 as usize];
        if matches!(client.state, State::Down | State::Connecting) {
            return;
        }
        // One that has hung up will not read our answers any more: its last words are read.
        if client.pending() > READ_PAUSE && !client.marks.hung_up {
            client.paused = true;
            return;
        }
        let mut arrived = self.serve_once(id, events);
        // The end of a stream is told together with its last words.
        while self.clients[id.0 as usize].marks.hung_up && matches!(arrived, Ok(Arrived::More)) {
            arrived = self.serve_once(id, events);
        }
        if self.clients[id.0 as usize].marks.hung_up && matches!(arrived, Ok(Arrived::Drained)) {
            arrived = self.serve_once(id, events);
        }
        let client = &mut self.clients[id.0 as usize];
        match arrived {
            Err(broken) => return self.fail(id, broken),
            Ok(Arrived::Ended) => {
                let broken = self.ended(id);
                return self.fail(id, broken);
            }
            Ok(Arrived::More) => self.mark_ready(id),
            // The end of the stream comes without another edge.
            Ok(Arrived::Drained) if client.marks.hung_up => self.mark_ready(id),
            Ok(Arrived::Drained) => {}
        }
        // Answers go out with one write for all that came with one read.
        let client = &mut self.clients[id.0 as usize];
        if client.out.as_ref().is_some_and(|out| !out.stuck) && self.flush(id).is_err() {
            return;
        }
        self.settle_debts(id);
    }

    fn serve_once(&mut self, id: ClientId, events: &mut dyn Events) -> Result<Arrived, Broken> {
        match self.clients[id.0 as usize].tls.is_some() {
            true => self.serve_tls(id, events),
            false => self.serve_plain(id, events),
        }
    }

    fn ended(&self, id: ClientId) -> Broken {
        let client = &self.clients[id.0 as usize];
        let shown = self.shared.shown(client);
        if client.in_handshake() {
            return Broken(tls::ended_early(shown).into());
        }
        let (when, hint) = match client.state {
            State::Negotiating => (
                "closed the connection before there was a session",
                format!(
                    "does it speak XMPP to clients there, and {} Has it reached a limit on connections? Its log may say why",
                    tls::wrong_port(shown)
                ),
            ),
            _ => (
                "closed the connection",
                "it was stopped, or threw this client out: its log may say why".to_owned(),
            ),
        };
        Broken::of(
            client,
            &self.shared,
            format!("the server {when}\n  hint: {hint}"),
        )
    }

    fn read_failed(&self, id: ClientId, errno: Errno) -> Broken {
        let client = &self.clients[id.0 as usize];
        let connecting = client.state == State::Negotiating;
        if connecting && errno == Errno::CONNRESET {
            return self.ended(id);
        }
        Broken(socket::failure(
            errno,
            self.shared.shown(client),
            connecting,
        ))
    }

    /// A stanza that is longer than it may be.
    fn too_long(&self, id: ClientId) -> Broken {
        let client = &self.clients[id.0 as usize];
        Broken::of(
            client,
            &self.shared,
            format!(
                "the server sent a stanza of more than {} bytes, which is more than the longest payload can need",
                self.shared.max_in
            ),
        )
    }

    fn serve_plain(&mut self, id: ClientId, events: &mut dyn Events) -> Result<Arrived, Broken> {
        let client = &mut self.clients[id.0 as usize];
        let Some(fd) = &client.fd else {
            return Ok(Arrived::Drained);
        };
        let kept = client.inbox.as_ref().map_or(0, |inbox| inbox.len());
        if kept > self.buf.len() / 2 {
            return self.serve_large(id, events);
        }
        if let Some(inbox) = client.inbox.take() {
            self.buf[..kept].copy_from_slice(&inbox);
        }
        let space = self.buf.len() - kept;
        let (n, arrived) = match socket::read(fd.as_fd(), &mut self.buf[kept..]) {
            Io::Done(0) => return Ok(Arrived::Ended),
            Io::Done(n) if n == space => (n, Arrived::More),
            Io::Done(n) => (n, Arrived::Drained),
            Io::WouldBlock => {
                self.keep_rest(id, 0, kept);
                return Ok(Arrived::Drained);
            }
            Io::Failed(errno) => return Err(self.read_failed(id, errno)),
        };
        self.shared.wire.received += n as u64;
        client.awaits_pong = false;
        self.take_in(id, kept + n, events)?;
        Ok(arrived)
    }

    /// Decodes the first `len` bytes of the shared buffer and keeps what is left over.
    fn take_in(&mut self, id: ClientId, len: usize, events: &mut dyn Events) -> Result<(), Broken> {
        events.arrived();
        let client = &mut self.clients[id.0 as usize];
        let bytes = &self.buf[..len];
        let used = protocol::receive(client, &mut self.shared, id, bytes, events)?;
        if len - used > self.shared.max_in {
            return Err(self.too_long(id));
        }
        self.keep_rest(id, used, len);
        Ok(())
    }

    fn keep_rest(&mut self, id: ClientId, from: usize, to: usize) {
        let client = &mut self.clients[id.0 as usize];
        client.inbox = (from < to).then(|| Box::new(self.buf[from..to].to_vec()));
    }

    /// A stanza that outgrows the shared buffer gathers in one of its own.
    fn serve_large(&mut self, id: ClientId, events: &mut dyn Events) -> Result<Arrived, Broken> {
        let client = &mut self.clients[id.0 as usize];
        let (Some(fd), Some(inbox)) = (&client.fd, &mut client.inbox) else {
            return Ok(Arrived::Drained);
        };
        let have = inbox.len();
        // Memory is given as bytes come in: twice what is there, at most so much more.
        let step = have.min(GROWTH);
        inbox.resize(have + step, 0);
        let (n, arrived) = match socket::read(fd.as_fd(), &mut inbox[have..]) {
            Io::Done(0) => return Ok(Arrived::Ended),
            Io::Done(n) if n == step => (n, Arrived::More),
            Io::Done(n) => (n, Arrived::Drained),
            Io::WouldBlock => (0, Arrived::Drained),
            Io::Failed(errno) => return Err(self.read_failed(id, errno)),
        };
        inbox.truncate(have + n);
        if n > 0 {
            self.shared.wire.received += n as u64;
            client.awaits_pong = false;
            self.take_large(id, events)?;
        }
        Ok(arrived)
    }

    /// Reads what is whole in a client's own buffer.
    fn take_large(&mut self, id: ClientId, events: &mut dyn Events) -> Result<(), Broken> {
        let client = &mut self.clients[id.0 as usize];
        let Some(mut inbox) = client.inbox.take() else {
            return Ok(());
        };
        events.arrived();
        let used = protocol::receive(client, &mut self.shared, id, &inbox, events)?;
        if inbox.len() - used > self.shared.max_in {
            return Err(self.too_long(id));
        }
        if used < inbox.len() {
            if used > 0 {
                inbox = Box::new(inbox[used..].to_vec());
            }
            self.clients[id.0 as usize].inbox = Some(inbox);
        }
        Ok(())
    }

    fn serve_tls(&mut self, id: ClientId, events: &mut dyn Events) -> Result<Arrived, Broken> {
        for _ in 0..TLS_READS {
            let client = &mut self.clients[id.0 as usize];
            let (Some(fd), Some(tls)) = (&client.fd, &mut client.tls) else {
                return Ok(Arrived::Drained);
            };
            let read = match tls::read(fd.as_fd(), tls, &mut self.shared.wire.received) {
                Ok(TlsRead::Nothing) => return Ok(Arrived::Drained),
                Ok(read) => read,
                Err(TlsFailure::Socket(errno)) => return Err(self.read_failed(id, errno)),
                Err(TlsFailure::Protocol(error)) => {
                    let client = &self.clients[id.0 as usize];
                    let shown = self.shared.shown(client);
                    let mut failure = tls::failure(shown, &error);
                    // RFC 6120 §13.7.2.1.
                    if let Some(hint) = &mut failure.hint {
                        *hint +=
                            "; the name that counts is the XMPP domain, in the path of the address";
                    }
                    return Err(Broken(failure.into()));
                }
            };
            if read == TlsRead::Bytes {
                client.awaits_pong = false;
            }
            self.drain_tls(id, events)?;
            if read == TlsRead::Ended {
                return Ok(Arrived::Ended);
            }
            // The handshake, and answers that waited for it.
            if self.clients[id.0 as usize]
                .tls
                .as_ref()
                .is_some_and(|t| t.wants_write())
                && self.flush(id).is_err()
            {
                return Ok(Arrived::Drained);
            }
        }
        Ok(Arrived::More)
    }

    /// Takes in all plaintext that rustls has.
    fn drain_tls(&mut self, id: ClientId, events: &mut dyn Events) -> Result<(), Broken> {
        loop {
            let client = &mut self.clients[id.0 as usize];
            let Some(tls) = &mut client.tls else {
                return Ok(());
            };
            let kept = client.inbox.as_ref().map_or(0, |inbox| inbox.len());
            if kept > self.buf.len() / 2 {
                // A large stanza: append to it and read it where it is.
                let Some(mut inbox) = client.inbox.take() else {
                    return Ok(());
                };
                inbox.resize(kept + (64 << 10), 0);
                let n = tls.reader().read(&mut inbox[kept..]).unwrap_or(0);
                inbox.truncate(kept + n);
                if n == 0 {
                    client.inbox = Some(inbox);
                    return Ok(());
                }
                client.inbox = Some(inbox);
                self.take_large(id, events)?;
                continue;
            }
            let Ok(n) = tls.reader().read(&mut self.buf[kept..]) else {
                return Ok(());
            };
            if n == 0 {
                return Ok(());
            }
            if let Some(inbox) = client.inbox.take() {
                self.buf[..kept].copy_from_slice(&inbox);
            }
            self.take_in(id, kept + n, events)?;
        }
    }
}
