//! What the loop ([`pubgauge_net::turns`]) has done between two sleeps: write what waits, keep the
//! timers, read what came ([`crate::read`]).

use std::os::fd::AsFd;

use pubgauge_driver::{Change, ClientId, Events};
use pubgauge_net::out::{OUT_CAP, Written, after_write, write_out};
use pubgauge_net::socket;
use pubgauge_net::turns::{Driven, Marks, Phase, Reports, Turns};
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;

use crate::broken::Broken;
use crate::client::{Request, State, Step};
use crate::fleet::XmppFleet;
use crate::negotiate;
use crate::write;

/// A client could not be written to. It has been failed already.
pub(crate) struct WriteFailed;

impl Driven for XmppFleet {
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
        let shared = &self.shared;
        let timers = [shared.timers.first_ms(), shared.wildcards.first_ms()];
        timers.into_iter().flatten().min()
    }

    fn prepare(&mut self) {
        self.search();
        self.send_waiting();
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
        self.settle_debts(id);
    }

    fn read_once(&mut self, id: ClientId, events: &mut dyn Events) {
        self.serve(id, events);
    }

    fn report_owed(&mut self, events: &mut dyn Events) {
        while let Some(id) = self.shared.settled.pop() {
            while let Some(change) = self.clients[id as usize].session.outcome() {
                self.shared.reports.report(events, ClientId(id), change);
            }
        }
        self.shared.reports.report_owed(events);
    }
}

impl XmppFleet {
    /// TCP has connected, or `failed`.
    fn connected(&mut self, id: ClientId, failed: bool) -> Result<(), Broken> {
        let client = &mut self.clients[id.0 as usize];
        let Some(fd) = &client.fd else {
            return Ok(());
        };
        if failed && let Ok(Err(errno)) | Err(errno) = socket_error(fd) {
            let endpoint = self.shared.shown(client);
            return Err(Broken(socket::failure(errno, endpoint, true)));
        }
        client.state = State::Negotiating;
        negotiate::open_stream(client, &mut self.shared, id, Step::Features);
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
            && client.session.creating == 0
            && client.session.jid.is_some()
            && client
                .session
                .window
                .has_room(self.shared.options.in_flight)
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
            let failure = socket::failure(errno, self.shared.shown(client), false);
            self.fail(id, Broken(failure));
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
            match client.state {
                State::Down => {}
                State::Connecting | State::Negotiating => {
                    let what = match client.state {
                        State::Connecting => "no TCP connection".to_owned(),
                        _ => format!(
                            "no XMPP session (waiting at step {:?})",
                            client.session.step
                        ),
                    };
                    let message = format!(
                        "{}: {what} within 30 s\n  hint: the server hangs, is overloaded, or something between swallows packets",
                        self.shared.shown(client)
                    );
                    self.fail(id, Broken(message.into()));
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
        let keep_alive_s = self.shared.options.keep_alive_s;
        let interval_ms = u32::from(keep_alive_s) * 1000;
        let idle_ms = self.shared.now_ms.saturating_sub(client.last_sent_ms);
        if client.awaits_pong {
            let message = format!(
                "{}: no sign of life from the server for {keep_alive_s} s after a ping\n  hint: it hangs, or the connection is dead",
                self.shared.shown(client),
            );
            return self.fail(id, Broken(message.into()));
        }
        if idle_ms < interval_ms {
            return self.shared.set_timer(client, id, interval_ms - idle_ms);
        }
        // Where bytes have been waiting all that time a ping would only wait behind them: the
        // server's reading them is the sign of life.
        client.awaits_pong = true;
        if client.out.is_none() {
            let number = client.session.ask(Request::Forget, 0);
            let domain = &self.shared.endpoints[usize::from(client.endpoint)].domain;
            let out = client.out.get_or_insert_with(|| self.shared.out_pool.get());
            write::ping(&mut out.bytes, number, domain);
        }
        self.shared.set_timer(client, id, interval_ms);
        // A failure to write has failed the client already.
        let _ = self.flush(id);
    }
}
