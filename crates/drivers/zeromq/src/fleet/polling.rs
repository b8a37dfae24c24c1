//! How a fleet waits, reads, and reports.

use std::io;

use pubgauge_driver::{Change, ClientId, Events, Nanos};
use rustix::event::{Timespec, epoll};

use super::state::ZeromqFleet;
use crate::options::Queue;
use crate::port::{Key, Port, Role};
use crate::zmq::ZmqMessage;

/// Turns at flooded subscribers after which all other sockets are polled as well.
const TURNS_BEFORE_OTHERS: u32 = 8;

/// Calls of `poll` without sleeping that a fleet of publishers skips between two that read: only
/// subscriptions come in, which libzmq itself handles while sending, and the loss of a forwarder.
pub(super) const HURRIED_MAX: u32 = 15;

impl ZeromqFleet {
    /// Reports what happened outside of `poll`, or while connections were handled.
    pub(super) fn report(&mut self, events: &mut dyn Events) -> bool {
        let any = !self.news.is_empty();
        while let Some((client, change)) = self.news.pop_front() {
            events.changed(client, change);
        }
        any
    }

    /// A turn at one subscriber's socket. Returns whether anything came.
    #[inline]
    pub(super) fn take_from(&mut self, id: u32, events: &mut dyn Events) -> io::Result<bool> {
        if self.clients[id as usize].untold && self.options.point_to_point {
            self.hear_announcements(ClientId(id))?;
            self.report(events);
        }
        let client = &mut self.clients[id as usize];
        let port = if !self.options.point_to_point {
            &client.subscriber
        } else {
            &client.receiver
        };
        let Some(port) = port else {
            client.flooded = false;
            return Ok(false);
        };
        if client.bound == Some(0) {
            // So that its descriptor does not wake the fleet again; libzmq's own queue goes on filling.
            port.socket.process_commands()?;
            client.flooded = false;
            return Ok(false);
        }
        let checks = if client.checked {
            &client.filters[..]
        } else {
            &[]
        };
        let turn = self.inbox.take(
            &port.socket,
            ClientId(id),
            checks,
            (client.flooded, client.bound),
            &mut self.wire,
            events,
        )?;
        if let Some(left) = &mut client.bound {
            *left = left.saturating_sub(turn.messages as u32);
        }
        client.flooded = turn.more;
        Ok(turn.messages > 0)
    }

    /// A turn at each flooded subscriber; those that ran dry leave the list.
    pub(super) fn take_from_flooded(&mut self, events: &mut dyn Events) -> io::Result<bool> {
        let mut any = false;
        let mut index = 0;
        while index < self.flooded.len() {
            let id = self.flooded[index];
            any |= self.take_from(id, events)?;
            let client = &mut self.clients[id as usize];
            if let Some(lost) = &client.lost
                && !client.flooded
                && client.awaits_queues()
                && self.clock.now() < lost.at_last
            {
                client.flooded = true;
            }
            let drained = !client.flooded;
            if let Some(lost) = &client.lost {
                let others = client.subscriber.as_ref().is_some_and(Port::any_up);
                if drained || (others && lost.at_last <= self.clock.now()) {
                    client.forget_sources();
                    if let Some(lost) = client.lost.take() {
                        self.fail(ClientId(id), lost.why);
                    }
                    any |= self.report(events);
                }
            }
            if drained {
                self.flooded.swap_remove(index);
            } else {
                index += 1;
            }
        }
        Ok(any)
    }

    /// Handles one entry of the epoll set. Returns whether anything was reported.
    pub(super) fn handle(&mut self, key: Key, events: &mut dyn Events) -> io::Result<bool> {
        let id = ClientId(key.owner);
        if key.monitor {
            self.read_monitor(id, key.role)?;
            return Ok(self.report(events));
        }
        match key.role {
            Role::Queue => self.handle_queue(key.owner, events),
            Role::Subscriber if self.options.point_to_point => {
                self.hear_announcements(id)?;
                Ok(self.report(events))
            }
            Role::Publisher if self.options.point_to_point => {
                self.answer_subscriptions(id)?;
                Ok(false)
            }
            Role::Subscriber | Role::Receiver => {
                let client = &self.clients[key.owner as usize];
                if client.flooded {
                    return Ok(false); // Has had its turn.
                }
                let any = self.take_from(key.owner, events)?;
                if self.clients[key.owner as usize].flooded {
                    self.flooded.push(key.owner);
                }
                Ok(any)
            }
            Role::Publisher => {
                let client = &mut self.clients[key.owner as usize];
                let Some(port) = &mut client.publisher else {
                    return Ok(false);
                };
                if self.options.queue == Queue::Block {
                    // Subscriptions: libzmq itself acts on them; read so that they do not pile
                    // up. Reading until nothing is left also silences the descriptor.
                    let mut message = ZmqMessage::empty();
                    while port.socket.receive(&mut message)?.is_some() {}
                } else {
                    port.socket.process_commands()?;
                }
                // libzmq does not tell whether a no-drop XPUB can be written to (ZMQ_POLLOUT is
                // always set); that a subscriber's queue has room again comes as a command.
                let writable = std::mem::take(&mut port.blocked);
                if writable {
                    events.changed(id, Change::Writable);
                }
                Ok(writable)
            }
        }
    }

    pub(super) fn poll_inner(&mut self, until: Nanos, events: &mut dyn Events) -> io::Result<()> {
        loop {
            let mut reported = self.report(events);
            if !self.flooded.is_empty() {
                reported |= self.take_from_flooded(events)?;
                self.turns += 1;
                if reported && !self.turns.is_multiple_of(TURNS_BEFORE_OTHERS) {
                    return Ok(());
                }
            }
            let mut wake = until;
            if !self.connecting.is_empty() {
                wake = wake.min(self.look_after_connecting());
                reported |= self.report(events);
            }
            let now = self.clock.now();
            let hurry = until <= now && !self.subscribes && self.connecting.is_empty();
            if hurry && self.hurried < HURRIED_MAX {
                self.hurried += 1;
                return Ok(());
            }
            self.hurried = 0;
            let sleep = if reported || !self.flooded.is_empty() {
                0
            } else {
                wake.saturating_sub(now)
            };
            let timeout = Timespec {
                tv_sec: (sleep / 1_000_000_000).min(i64::MAX as u64 / 2) as i64,
                tv_nsec: (sleep % 1_000_000_000) as _,
            };
            self.ready.clear();
            match epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut self.ready),
                Some(&timeout),
            ) {
                Ok(_) => {}
                // A signal: the engine may have to act on it.
                Err(rustix::io::Errno::INTR) => return Ok(()),
                Err(e) => return Err(e.into()),
            }
            for index in 0..self.ready.len() {
                let key = Key::of_u64(self.ready[index].data.u64());
                reported |= self.handle(key, events)?;
            }
            if reported || self.clock.now() >= until {
                return Ok(());
            }
        }
    }
}
