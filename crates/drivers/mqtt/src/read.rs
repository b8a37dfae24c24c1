//! Reading: into the one buffer of the fleet, decoded in place; only beginnings of packets are
//! kept with their client.

use std::io::Read;
use std::os::fd::AsFd;

use pubgauge_driver::{ClientId, Events};
use pubgauge_mqtt_codec::packet_len;
use pubgauge_net::socket::{self, Arrived, Io};
use pubgauge_net::tls::{self, TlsFailure, TlsRead};
use pubgauge_net::turns::Driven;
use rustix::io::Errno;

use crate::client::{READ_PAUSE, State};
use crate::fleet::MqttFleet;
use crate::protocol::{self, Broken};

/// How much a large packet's buffer grows at once: its length is the server's claim, and memory
/// is given only as its bytes come in.
const GROWTH: usize = 1 << 20;

/// Reads of one TLS connection in a row before others get their turn.
const TLS_READS: usize = 16;

impl MqttFleet {
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
        let client = &mut self.clients[id.0 as usize];
        if client.out.as_ref().is_some_and(|out| !out.stuck) && self.flush(id).is_err() {
            return;
        }
        let client = &mut self.clients[id.0 as usize];
        if client.session.is_some() {
            protocol::send_again(client, &mut self.shared, id);
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
                    "{endpoint}: the server closed the connection before its CONNACK\n  hint: does it speak this version of MQTT there, and {} Has it reached a limit on connections? Its log may say why",
                    tls::wrong_port(endpoint)
                ));
            }
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
        self.keep_rest(id, used, len);
        Ok(())
    }

    fn keep_rest(&mut self, id: ClientId, from: usize, to: usize) {
        let client = &mut self.clients[id.0 as usize];
        client.inbox = (from < to).then(|| Box::new(self.buf[from..to].to_vec()));
    }

    /// A packet that outgrows the shared buffer gathers in one of its own.
    fn serve_large(&mut self, id: ClientId, events: &mut dyn Events) -> Result<Arrived, Broken> {
        let client = &mut self.clients[id.0 as usize];
        let (Some(fd), Some(inbox)) = (&client.fd, &mut client.inbox) else {
            return Ok(Arrived::Drained);
        };
        // The header was checked when the beginning came in.
        let whole = packet_len(inbox, self.shared.max_in)
            .ok()
            .flatten()
            .unwrap_or(inbox.len() + 1);
        let missing = whole.saturating_sub(inbox.len()).max(1);
        let have = inbox.len();
        let step = missing.min(GROWTH);
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
        }
        if inbox.len() < whole {
            return Ok(arrived);
        }
        let Some(inbox) = client.inbox.take() else {
            return Ok(arrived);
        };
        events.arrived();
        let used = protocol::receive(client, &mut self.shared, id, &inbox, events)?;
        if used < inbox.len() {
            client.inbox = Some(Box::new(inbox[used..].to_vec()));
        }
        Ok(arrived)
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
                // A large packet: append to it and decode it where it is.
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
                let whole = packet_len(&inbox, self.shared.max_in)
                    .ok()
                    .flatten()
                    .unwrap_or(0);
                if inbox.len() < whole {
                    client.inbox = Some(inbox);
                    continue;
                }
                events.arrived();
                let used = protocol::receive(client, &mut self.shared, id, &inbox, events)?;
                if used < inbox.len() {
                    client.inbox = Some(Box::new(inbox[used..].to_vec()));
                }
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
