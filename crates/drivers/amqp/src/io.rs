//! What the loop ([`pubgauge_net::turns`]) has done between two sleeps: write what waits, keep the
//! timers, read what came ([`crate::read`]).

use std::os::fd::AsFd;

use pubgauge_amqp_codec::{HEARTBEAT, PROTOCOL_HEADER};
use pubgauge_driver::{Change, ClientId, Events};
use pubgauge_net::out::{OUT_CAP, Written, after_write, write_out};
use pubgauge_net::socket;
use pubgauge_net::turns::{Driven, Marks, Phase, Reports, Turns};
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;

use crate::broken::Broken;
use crate::client::State;
use crate::fleet::AmqpFleet;
use crate::options::Answers;

/// A client could not be written to. It has been failed already.
pub(crate) struct WriteFailed;

impl Driven for AmqpFleet {
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
        if self.flush(id).is_ok() {
            self.settle_debts(id);
        }
    }

    fn read_once(&mut self, id: ClientId, events: &mut dyn Events) {
        self.serve(id, events);
    }
}

impl AmqpFleet {
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
        client
            .out(&mut self.shared.out_pool)
            .bytes
            .extend_from_slice(&PROTOCOL_HEADER);
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
            && !client.is_held(self.shared.options.in_flight)
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
        let transactions = matches!(self.shared.options.answers, Answers::Commits(_));
        let mut dirty = std::mem::take(&mut self.shared.dirty);
        for id in dirty.drain(..) {
            let client = &mut self.clients[id as usize];
            if transactions && client.state == State::Connected {
                self.commit(ClientId(id));
            }
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

    /// Writes as much of a client's buffer as the socket takes, whatever comes of it.
    pub fn write(&mut self, id: ClientId) -> Written {
        let client = &mut self.clients[id.0 as usize];
        let Some(fd) = &client.fd else {
            return Written::default();
        };
        let (tls, out) = (client.tls.as_deref_mut(), client.out.as_deref_mut());
        let written = write_out(fd.as_fd(), tls, out);
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
    pub fn flush(&mut self, id: ClientId) -> Result<(), WriteFailed> {
        let client = &self.clients[id.0 as usize];
        if client.fd.is_none() || client.state == State::Connecting {
            return Ok(());
        }
        let Written { stuck, failed, .. } = self.write(id);
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
            let failure = socket::failure(errno, self.shared.endpoint(client), false);
            self.fail(id, Broken::told(failure));
            return Err(WriteFailed);
        }
        let (tls, pool) = (client.tls.as_deref(), &mut self.shared.out_pool);
        self.shared.unsettled -= after_write(&mut client.out, tls, stuck, pool);
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
            let what = match client.state {
                State::Down => continue,
                State::Connected => {
                    self.heartbeat(id);
                    continue;
                }
                State::Closing => {
                    self.drop_connection(id);
                    self.shared.reports.owe(id, Change::Closed);
                    continue;
                }
                State::Connecting => "no TCP connection",
                State::Greeting => "no connection.start",
                State::LoggingIn => "no answer to the login",
                State::Entering => "no connection.open-ok",
                State::Opening => "not all channels and queues were answered for",
            };
            let message = format!(
                "{}: {what} within 30 s\n  hint: the server hangs, is overloaded, or something between swallows packets",
                self.shared.endpoint(client)
            );
            self.fail(id, Broken::told(message));
        }
    }

    /// Looks after a connection twice in each interval (§4.2.7): a sign of life goes out if
    /// nothing else did, and after two intervals without any from the server it is given up.
    fn heartbeat(&mut self, id: ClientId) {
        let client = &mut self.clients[id.0 as usize];
        let half_ms = u32::from(client.heartbeat_s) * 500;
        let now = self.shared.now_ms;
        // A client that is not read from, because its answers wait, cannot judge.
        if now.saturating_sub(client.last_received_ms) >= 4 * half_ms && !client.paused {
            let message = format!(
                "{}: no sign of life from the server for {} s, twice the heartbeat\n  hint: it hangs, or the connection is dead",
                self.shared.endpoint(client),
                2 * u32::from(client.heartbeat_s)
            );
            return self.fail(id, Broken::told(message));
        }
        self.shared.set_timer(client, id, half_ms);
        // Where bytes have been waiting all that time another sign would only wait behind them.
        if client.out.is_none() && now.saturating_sub(client.last_sent_ms) + 50 >= half_ms {
            let out = client.out(&mut self.shared.out_pool);
            out.bytes.extend_from_slice(&HEARTBEAT);
            // A failure to write has failed the client already.
            let _ = self.flush(id);
        }
    }
}
