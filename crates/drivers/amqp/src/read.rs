//! Reading: into the one buffer of the fleet, decoded in place; only beginnings of frames are
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
use crate::fleet::AmqpFleet;
use crate::protocol;

/// Reads of one TLS connection in a row before others get their turn.
const TLS_READS: usize = 16;

impl AmqpFleet {
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
        let arrived = match client.tls.is_some() {
            true => self.serve_tls(id, events),
            false => self.serve_plain(id, events),
        };
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
        let client = &self.clients[id.0 as usize];
        if client.out.as_ref().is_some_and(|out| !out.stuck) && self.flush(id).is_err() {
            return;
        }
        self.settle_debts(id);
    }

    fn ended(&self, id: ClientId) -> Broken {
        let client = &self.clients[id.0 as usize];
        let endpoint = self.shared.endpoint(client);
        if client.in_handshake() {
            return Broken::told(tls::ended_early(endpoint));
        }
        let (when, hint) = match client.state {
            State::Greeting => {
                return Broken::told(format!(
                    "{endpoint}: the server closed the connection without a greeting\n  hint: does it speak AMQP 0-9-1 there, and {} Has it reached a limit on connections? Its log may say why",
                    tls::wrong_port(endpoint)
                ));
            }
            State::LoggingIn => {
                return Broken::told(crate::login::refused(
                    client,
                    &self.shared,
                    "the server closed the connection during the login",
                ));
            }
            State::Entering => (
                "closed the connection in place of opening the virtual host",
                "check the virtual host and the user's permissions there; its log may say why",
            ),
            _ => (
                "closed the connection",
                "it was stopped, or threw this client out: its log may say why",
            ),
        };
        Broken::told(format!("{endpoint}: the server {when}\n  hint: {hint}"))
    }

    fn read_failed(&self, id: ClientId, errno: Errno) -> Broken {
        let client = &self.clients[id.0 as usize];
        let endpoint = self.shared.endpoint(client);
        let connecting = client.state == State::Greeting;
        if connecting && errno == Errno::CONNRESET {
            return self.ended(id);
        }
        Broken::told(socket::failure(errno, endpoint, connecting))
    }

    fn serve_plain(&mut self, id: ClientId, events: &mut dyn Events) -> Result<Arrived, Broken> {
        let client = &mut self.clients[id.0 as usize];
        let Some(fd) = &client.fd else {
            return Ok(Arrived::Drained);
        };
        // Less than a frame, which is half of the buffer at most.
        let kept = client.inbox.as_ref().map_or(0, |inbox| inbox.len());
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
        client.last_received_ms = self.shared.now_ms;
        self.take_in(id, kept + n, events)?;
        Ok(arrived)
    }

    /// Decodes the first `len` bytes of the shared buffer and keeps what is left over.
    fn take_in(&mut self, id: ClientId, len: usize, events: &mut dyn Events) -> Result<(), Broken> {
        events.arrived();
        let client = &mut self.clients[id.0 as usize];
        let bytes = &self.buf[..len];
        let used = protocol::receive(client, &mut self.shared, id, bytes, events)?;
        self.keep_rest(id, used, len);
        Ok(())
    }

    fn keep_rest(&mut self, id: ClientId, from: usize, to: usize) {
        let client = &mut self.clients[id.0 as usize];
        client.inbox = (from < to).then(|| Box::new(self.buf[from..to].to_vec()));
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
                    return Err(Broken::told(tls::failure(
                        self.shared.endpoint(client),
                        &error,
                    )));
                }
            };
            if read == TlsRead::Bytes {
                client.last_received_ms = self.shared.now_ms;
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
