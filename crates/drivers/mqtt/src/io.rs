//! What the loop ([`pubgauge_net::turns`]) has done between two sleeps: write what waits, keep the
//! timers, read what came ([`crate::read`]).

use std::os::fd::AsFd;

use pubgauge_driver::{Change, ClientId, Events};
use pubgauge_mqtt_codec::encode_pingreq;
use pubgauge_net::out::{OUT_CAP, Written, after_write, write_out};
use pubgauge_net::socket;
use pubgauge_net::tls::Wire;
use pubgauge_net::turns::{Driven, Marks, Phase, Reports, Turns};
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;
use rustix::net::{Shutdown, shutdown};

use crate::client::State;
use crate::fleet::MqttFleet;
use crate::protocol::{self, Broken};

/// A client could not be written to. It has been failed already.
pub(crate) struct WriteFailed;

impl Driven for MqttFleet {
    #[inline]
    fn turns(&self) -> &Turns {
        &self.turns
    }

    #[inline]
    fn turns_mut(&mut self) -> &mut Turns {
        &mut self.turns
    }

    #[inline]
    fn reports(&mut self) -> &mut Reports {
        &mut self.shared.reports
    }

    #[inline]
    fn marks(&mut self, id: ClientId) -> Option<(Phase, &mut Marks)> {
        let client = self.clients.get_mut(id.0 as usize)?;
        Some((client.state.phase(), &mut client.marks))
    }

    #[inline]
    fn note_time(&mut self, now_ms: u32) {
        self.shared.now_ms = now_ms;
    }

    #[inline]
    fn next_timer_ms(&self) -> Option<u32> {
        self.shared.timers.first_ms()
    }

    fn prepare(&mut self) {
        self.flush_dirty();
        self.keep_timers();
    }

    fn greet(&mut self, id: ClientId, failed: bool) {
        if let Err(broken) = self.connected(id, failed) {
            self.fail(id, broken);
        }
    }

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

    fn read_once(&mut self, id: ClientId, events: &mut dyn Events) {
        self.serve(id, events);
    }
}

impl MqttFleet {
    /// TCP has connected, or `failed`.
    fn connected(&mut self, id: ClientId, failed: bool) -> Result<(), Broken> {
        let client = &mut self.clients[id.0 as usize];
        let Some(fd) = &client.fd else {
            return Ok(());
        };
        if failed && let Ok(Err(errno)) | Err(errno) = socket_error(fd) {
            let endpoint = self.shared.endpoint(client);
            return Err(Broken::told(socket::failure(errno, endpoint, true)));
        }
        client.state = State::Greeting;
        protocol::connect(client, &mut self.shared)?;
        // A failure to write has failed the client already.
        let _ = self.flush(id);
        Ok(())
    }

    /// What a client is owed once its buffer has room: [`Change::Writable`], and to be read from.
    pub fn settle_debts(&mut self, id: ClientId) {
        let client = &mut self.clients[id.0 as usize];
        if client.pending() >= OUT_CAP / 2 {
            return;
        }
        if client.owes_writable
            && client.state == State::Connected
            && client.session.as_ref().is_none_or(|s| s.can_publish())
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
        let Written {
            sent,
            writes,
            stuck,
            failed,
        } = write_out(fd, client.tls.as_deref_mut(), client.out.as_deref_mut());
        if sent > 0 {
            self.shared.wire.sent += sent;
            self.shared.writes += writes;
            client.last_sent_ms = self.shared.now_ms;
        }
        if let Some(errno) = failed {
            // The server may have said why before it closed: read that first, if it is there.
            if matches!(errno, Errno::PIPE | Errno::CONNRESET) && !client.marks.hung_up {
                client.marks.hung_up = true;
                if let Some(out) = &mut client.out {
                    out.stuck = true;
                }
                self.mark_ready(id);
                return Ok(());
            }
            let failure = socket::failure(errno, self.shared.endpoint(client), false);
            self.fail(id, Broken::told(failure));
            return Err(WriteFailed);
        }
        let (tls, pool) = (client.tls.as_deref(), &mut self.shared.out_pool);
        self.shared.unsettled -= after_write(&mut client.out, tls, stuck, pool);
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
                    self.fail(id, Broken::told(message));
                }
                State::Closing => {
                    self.drop_connection(id);
                    self.shared.reports.owe(id, Change::Closed);
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
            return self.fail(id, Broken::told(message));
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
}
