//! The loop: write what waits, sleep in epoll, have read what came ([`crate::read`]), keep the
//! timers.

use std::os::fd::AsFd;

use pubgauge_driver::{Change, ClientId, DriverError, Events, Nanos};
use pubgauge_net::out::{OUT_CAP, Written, write_out};
use pubgauge_net::socket;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;

use crate::client::{Request, State, Step};
use crate::fleet::XmppFleet;
use crate::negotiate;
use crate::protocol::Broken;
use crate::write;

/// Events taken from epoll at once.
const EVENTS: usize = 256;

/// A client could not be written to. It has been failed already.
pub(crate) struct WriteFailed;

impl XmppFleet {
    /// [`pubgauge_driver::Fleet::poll`].
    pub fn run(&mut self, until: Nanos, events: &mut dyn Events) -> Result<(), DriverError> {
        self.shared.reported = false;
        let mut now = self.look_at_clock();
        loop {
            self.search();
            self.send_waiting();
            self.flush_dirty();
            self.keep_timers();
            self.report_owed(events);
            let wait = if self.shared.reported || !self.ready.is_empty() {
                0
            } else {
                let shared = &self.shared;
                let timer = [shared.timers.first_ms(), shared.wildcards.first_ms()];
                let timer = timer.into_iter().flatten().min();
                let timer = timer.map_or(until, |ms| self.at_ms(ms));
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
                let failed = flags.intersects(F::ERR | F::HUP);
                if let Err(broken) = self.connected(id, failed) {
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

    pub fn mark_ready(&mut self, id: ClientId) {
        let client = &mut self.clients[id.0 as usize];
        if !client.ready && client.state != State::Down {
            client.ready = true;
            self.ready.push_back(id.0);
        }
    }

    /// TCP has connected, or `failed`.
    fn connected(&mut self, id: ClientId, failed: bool) -> Result<(), Broken> {
        let client = &mut self.clients[id.0 as usize];
        let Some(fd) = &client.fd else {
            return Ok(());
        };
        if failed && let Ok(Err(errno)) | Err(errno) = socket_error(fd) {
            let message = socket::explain(errno, self.shared.shown(client), true);
            return Err(Broken(message));
        }
        client.state = State::Negotiating;
        negotiate::open_stream(client, &mut self.shared, id, Step::Features);
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
        self.settle_debts(id);
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
            if matches!(errno, Errno::PIPE | Errno::CONNRESET) && !client.hung_up {
                client.hung_up = true;
                if let Some(out) = &mut client.out {
                    out.stuck = true;
                }
                self.mark_ready(id);
                return Ok(());
            }
            let message = socket::explain(errno, self.shared.shown(client), false);
            self.fail(id, Broken(message));
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
                    self.fail(id, Broken(message));
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
        let keep_alive_s = self.shared.options.keep_alive_s;
        let interval_ms = u32::from(keep_alive_s) * 1000;
        let idle_ms = self.shared.now_ms.saturating_sub(client.last_sent_ms);
        if client.awaits_pong {
            let message = format!(
                "{}: no sign of life from the server for {keep_alive_s} s after a ping\n  hint: it hangs, or the connection is dead",
                self.shared.shown(client),
            );
            return self.fail(id, Broken(message));
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

    fn report_owed(&mut self, events: &mut dyn Events) {
        while let Some(id) = self.shared.settled.pop() {
            while let Some(change) = self.clients[id as usize].session.outcome() {
                self.shared.report(events, ClientId(id), change);
            }
        }
        if self.shared.owed.is_empty() {
            return;
        }
        let mut owed = std::mem::take(&mut self.shared.owed);
        for (id, change) in owed.drain(..) {
            self.shared.report(events, id, change);
        }
        if self.shared.owed.is_empty() {
            self.shared.owed = owed; // Keeps its capacity.
        }
    }
}
