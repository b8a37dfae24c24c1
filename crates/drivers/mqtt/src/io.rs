//! The loop: write what waits, sleep in epoll, read what came, keep the timers.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;

use pubgauge_driver::{Change, ClientId, DriverError, Events, Nanos};
use pubgauge_mqtt_codec::{encode_pingreq, packet_len};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;
use rustix::net::{Shutdown, shutdown};

use crate::client::{OUT_CAP, READ_PAUSE, State};
use crate::fleet::MqttFleet;
use crate::protocol::{self, Broken};
use crate::socket::{self, Io};
use crate::tls::Wire;

/// Events taken from epoll at once.
const EVENTS: usize = 256;

/// How much a large packet's buffer grows at once: its length is the server's claim, and memory
/// is given only as its bytes come in.
const GROWTH: usize = 1 << 20;

/// Reads of one TLS connection in a row before others get their turn.
const TLS_READS: usize = 16;

/// A client could not be written to. It has been failed already.
pub(crate) struct WriteFailed;

/// How a read went.
enum Arrived {
    /// Bytes; more may be waiting.
    More,
    /// All there was for now.
    Drained,
    /// The end of the stream.
    Ended,
}

impl MqttFleet {
    /// [`pubgauge_driver::Fleet::poll`].
    pub fn run(&mut self, until: Nanos, events: &mut dyn Events) -> Result<(), DriverError> {
        self.shared.reported = false;
        let mut now = self.look_at_clock();
        loop {
            self.flush_dirty();
            self.keep_timers();
            self.report_owed(events);
            let wait = if self.shared.reported || !self.ready.is_empty() {
                0
            } else {
                let timer = self
                    .shared
                    .timers
                    .first_ms()
                    .map_or(until, |ms| self.at_ms(ms));
                until.min(timer).saturating_sub(now)
            };
            self.wait(wait)?;
            now = self.look_at_clock();
            // Each client gets one read of the shared buffer, then it is the next one's turn.
            for _ in 0..self.ready.len() {
                let Some(id) = self.ready.pop_front() else {
                    break;
                };
                self.clients[id as usize].ready = false;
                self.serve(ClientId(id), events);
            }
            self.report_owed(events);
            if self.shared.reported || now >= until {
                return Ok(());
            }
        }
    }

    /// Sleeps up to `wait` nanoseconds and takes note of which sockets can go on.
    fn wait(&mut self, wait: Nanos) -> Result<(), DriverError> {
        let mut list = [epoll::Event {
            flags: epoll::EventFlags::empty(),
            data: epoll::EventData::new_u64(0),
        }; EVENTS];
        let timeout = Timespec {
            tv_sec: (wait / 1_000_000_000) as i64,
            tv_nsec: (wait % 1_000_000_000) as i64,
        };
        let n = match epoll::wait(&self.epoll, &mut list, Some(&timeout)) {
            Ok(n) => n,
            Err(Errno::INTR) => 0,
            Err(errno) => return Err(DriverError::new(format!("epoll failed: {errno}"))),
        };
        for event in &list[..n] {
            // Copied out of the packed structure before use.
            let (flags, data) = (event.flags, event.data);
            self.woken(ClientId(data.u64() as u32), flags);
        }
        Ok(())
    }

    fn woken(&mut self, id: ClientId, flags: epoll::EventFlags) {
        use epoll::EventFlags as F;
        let Some(client) = self.clients.get_mut(id.0 as usize) else {
            return;
        };
        if flags.intersects(F::HUP | F::RDHUP | F::ERR) {
            client.hung_up = true;
        }
        match client.state {
            State::Down => return,
            State::Connecting => {
                if !flags.intersects(F::OUT | F::ERR | F::HUP) {
                    return;
                }
                if let Err(broken) = self.connected(id) {
                    return self.fail(id, broken);
                }
            }
            _ => {
                if flags.contains(F::OUT) {
                    self.writable(id);
                }
            }
        }
        if flags.intersects(F::IN | F::RDHUP | F::HUP | F::ERR) {
            self.mark_ready(id);
        }
    }

    fn mark_ready(&mut self, id: ClientId) {
        let client = &mut self.clients[id.0 as usize];
        if !client.ready && client.state != State::Down {
            client.ready = true;
            self.ready.push_back(id.0);
        }
    }

    /// TCP has connected, or not.
    fn connected(&mut self, id: ClientId) -> Result<(), Broken> {
        let client = &mut self.clients[id.0 as usize];
        let Some(fd) = &client.fd else {
            return Ok(());
        };
        let error = match socket_error(fd) {
            Ok(Ok(())) => None,
            Ok(Err(errno)) | Err(errno) => Some(errno),
        };
        if let Some(errno) = error {
            return Err(Broken {
                message: socket::explain(errno, self.shared.endpoint(client), true),
                reason: None,
            });
        }
        client.state = State::Greeting;
        protocol::connect(client, &mut self.shared)?;
        // A failure to write has failed the client already.
        let _ = self.flush(id);
        Ok(())
    }

    /// The socket takes bytes again.
    fn writable(&mut self, id: ClientId) {
        let client = &mut self.clients[id.0 as usize];
        if let Some(out) = &mut client.out {
            out.stuck = false;
        }
        if self.flush(id).is_err() {
            return;
        }
        let client = &mut self.clients[id.0 as usize];
        protocol::send_again(client, &mut self.shared, id);
        self.settle_debts(id);
    }

    /// What a client is owed once its buffer has room: [`Change::Writable`], and to be read from.
    fn settle_debts(&mut self, id: ClientId) {
        let client = &mut self.clients[id.0 as usize];
        if client.pending() >= OUT_CAP / 2 {
            return;
        }
        if client.owes_writable
            && client.state == State::Connected
            && client.session.as_ref().is_none_or(|s| s.can_publish())
        {
            client.owes_writable = false;
            self.shared.owed.push((id, Change::Writable));
        }
        if client.paused {
            client.paused = false;
            self.mark_ready(id);
        }
    }

    fn flush_dirty(&mut self) {
        let mut dirty = std::mem::take(&mut self.shared.dirty);
        for id in dirty.drain(..) {
            let client = &mut self.clients[id as usize];
            client.dirty = false;
            if client.out.as_ref().is_some_and(|out| out.stuck) {
                continue; // The socket will say when it takes more.
            }
            let id = ClientId(id);
            if self.flush(id).is_ok() {
                self.settle_debts(id);
            }
        }
        if self.shared.dirty.is_empty() {
            self.shared.dirty = dirty; // Keeps its capacity.
        }
    }

    /// Writes as much of a client's buffer as the socket takes.
    ///
    /// On an error the client has been failed.
    pub fn flush(&mut self, id: ClientId) -> Result<(), WriteFailed> {
        let client = &mut self.clients[id.0 as usize];
        let Some(fd) = &client.fd else {
            return Ok(());
        };
        let fd = fd.as_fd();
        if client.state == State::Connecting {
            return Ok(());
        }
        let mut failed = None;
        let mut stuck = false;
        let mut sent = 0;
        if let Some(tls) = &mut client.tls {
            let mut wire = Wire { fd, moved: 0 };
            loop {
                let mut took = 0;
                if let Some(out) = &mut client.out {
                    // Takes what its own buffer has room for, and cannot fail otherwise.
                    took = tls.writer().write(out.pending()).unwrap_or(0);
                    out.start += took;
                }
                while failed.is_none() && !stuck && tls.wants_write() {
                    match tls.write_tls(&mut wire) {
                        Ok(_) => {}
                        Err(error) if error.kind() == ErrorKind::WouldBlock => stuck = true,
                        Err(error) => {
                            failed = Some(Errno::from_io_error(&error).unwrap_or(Errno::IO))
                        }
                    }
                }
                if took == 0 || stuck || failed.is_some() {
                    break;
                }
            }
            // Before the handshake is done rustls holds back plaintext by itself.
            sent = wire.moved;
        } else if let Some(out) = &mut client.out {
            while out.start < out.bytes.len() {
                match socket::write(fd, &out.bytes[out.start..]) {
                    Io::Done(n) => {
                        out.start += n;
                        sent += n as u64;
                    }
                    Io::WouldBlock => {
                        stuck = true;
                        break;
                    }
                    Io::Failed(errno) => {
                        failed = Some(errno);
                        break;
                    }
                }
            }
        }
        if sent > 0 {
            self.shared.wire.sent += sent;
            client.last_sent_ms = self.shared.now_ms;
        }
        if let Some(errno) = failed {
            // The server may have said why before it closed: read that first, if it is there.
            if matches!(errno, Errno::PIPE | Errno::CONNRESET) && !client.hung_up {
                client.hung_up = true;
                if let Some(out) = &mut client.out {
                    out.stuck = true;
                }
                self.mark_ready(id);
                return Ok(());
            }
            let message = socket::explain(errno, self.shared.endpoint(client), false);
            self.fail(
                id,
                Broken {
                    message,
                    reason: None,
                },
            );
            return Err(WriteFailed);
        }
        let tls_waits = client.tls.as_ref().is_some_and(|tls| tls.wants_write());
        if let Some(out) = &mut client.out {
            out.stuck = stuck;
            if out.start == out.bytes.len() && !tls_waits {
                self.shared.unsettled -= u64::from(out.messages);
                if let Some(out) = client.out.take() {
                    self.shared.out_pool.put(out);
                }
            }
        }
        if client.state == State::Closing && client.out.is_none() && !client.half_closed {
            client.half_closed = true;
            if let Some(tls) = &mut client.tls {
                tls.send_close_notify();
                let _ = tls.write_tls(&mut Wire { fd, moved: 0 });
            }
            // The server closes when it has read our DISCONNECT; to close at once could throw
            // that away, were bytes from the server still unread (RFC 1122 §4.2.2.13).
            let _ = shutdown(fd, Shutdown::Write);
        }
        Ok(())
    }

    /// Reads once from a client and reports what came.
    fn serve(&mut self, id: ClientId, events: &mut dyn Events) {
        let client = &mut self.clients[id.0 as usize];
        if matches!(client.state, State::Down | State::Connecting) {
            return;
        }
        if client.pending() > READ_PAUSE {
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
            Ok(Arrived::Drained) if client.hung_up => self.mark_ready(id),
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
        let (when, hint) = match client.state {
            State::Greeting => (
                "closed the connection before its CONNACK",
                "does it speak this version of MQTT there, without TLS where the endpoint is mqtt://? Its log may say why",
            ),
            _ => (
                "closed the connection",
                "it was stopped, or threw this client out: its log may say why",
            ),
        };
        Broken {
            message: format!(
                "{}: the server {when}\n  hint: {hint}",
                self.shared.endpoint(client)
            ),
            reason: None,
        }
    }

    fn read_failed(&self, id: ClientId, errno: Errno) -> Broken {
        let client = &self.clients[id.0 as usize];
        let connecting = client.state == State::Greeting;
        Broken {
            message: socket::explain(errno, self.shared.endpoint(client), connecting),
            reason: None,
        }
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
            let mut wire = Wire {
                fd: fd.as_fd(),
                moved: 0,
            };
            let read = tls.read_tls(&mut wire);
            self.shared.wire.received += wire.moved;
            let mut ended = false;
            match read {
                Ok(0) => ended = true,
                Ok(_) => client.awaits_pong = false,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Arrived::Drained),
                Err(error) => {
                    let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                    return Err(self.read_failed(id, errno));
                }
            }
            if let Err(error) = tls.process_new_packets() {
                // rustls has an alert ready that tells the server.
                let _ = tls.write_tls(&mut wire);
                return Err(Broken {
                    message: format!(
                        "{}: TLS failed: {error}\n  hint: check the CA certificate, the name it is for, and the client certificate",
                        self.shared.endpoint(client)
                    ),
                    reason: None,
                });
            }
            self.drain_tls(id, events)?;
            if ended {
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

    /// Sends signs of life that are due, and gives up on clients that wait in vain.
    fn keep_timers(&mut self) {
        while let Some((due, id)) = self.shared.timers.pop_due(self.shared.now_ms) {
            let id = ClientId(id);
            let client = &mut self.clients[id.0 as usize];
            if client.due_ms != due {
                continue; // Overtaken.
            }
            let endpoint = self.shared.endpoint(client);
            match client.state {
                State::Down => {}
                State::Connecting | State::Greeting => {
                    let what = match client.state {
                        State::Connecting => "no TCP connection",
                        _ => "no CONNACK",
                    };
                    let message = format!(
                        "{endpoint}: {what} within 30 s\n  hint: the server hangs, is overloaded, or something between swallows packets"
                    );
                    self.fail(
                        id,
                        Broken {
                            message,
                            reason: None,
                        },
                    );
                }
                State::Closing => {
                    self.drop_connection(id);
                    self.shared.owed.push((id, Change::Closed));
                }
                State::Connected => self.keep_alive(id),
            }
        }
    }

    fn keep_alive(&mut self, id: ClientId) {
        let client = &mut self.clients[id.0 as usize];
        let interval_ms = u32::from(client.keep_alive_s) * 1000;
        let idle_ms = self.shared.now_ms.saturating_sub(client.last_sent_ms);
        if client.awaits_pong {
            let message = format!(
                "{}: no sign of life from the server for {} s after a PINGREQ\n  hint: it hangs, or the connection is dead",
                self.shared.endpoint(client),
                client.keep_alive_s
            );
            return self.fail(
                id,
                Broken {
                    message,
                    reason: None,
                },
            );
        }
        if idle_ms < interval_ms {
            return self.shared.set_timer(client, id, interval_ms - idle_ms);
        }
        // Where bytes have been waiting all that time a PINGREQ would only wait behind them: the
        // server's reading them is the sign of life.
        client.awaits_pong = true;
        if client.out.is_none() {
            let out = client.out(&mut self.shared.out_pool);
            encode_pingreq(&mut out.bytes);
        }
        self.shared.set_timer(client, id, interval_ms);
        // A failure to write has failed the client already.
        let _ = self.flush(id);
    }

    fn report_owed(&mut self, events: &mut dyn Events) {
        if self.shared.owed.is_empty() {
            return;
        }
        for (id, change) in std::mem::take(&mut self.shared.owed) {
            self.shared.report(events, id, change);
        }
    }
}
