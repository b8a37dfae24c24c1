//! Delivery of messages to subscribers, and back-pressure where they do not
//! keep up.
//!
//! The one policy: a connected subscriber whose backlog is over the limit stops
//! the publishers that feed it, by not reading them, until half of it is gone.
//! So nothing is lost, and a flat-out publisher feels TCP's own back-pressure.
//! Publishers that wait for each other in a circle are let through before they
//! deadlock: see [`Broker::pause`].

use std::rc::Rc;

use pubgauge_mqtt_codec::{PacketType, encode_ack};

use crate::broker::Broker;
use crate::conn::{ConnId, NONE, Net};
use crate::encode::{DUP, Outgoing};
use crate::message::StoredMessage;
use crate::options::Options;
use crate::routes::Route;
use crate::session::ClientSession;
use crate::table::IndexTable;
use crate::timers::Timer;
use crate::tree::{GroupId, SessionId, ShareGroup, Sub, Tree};
use crate::window::{Delivery, Stage};

/// Clients that wait for each other in a circle may go over the backlog limit up
/// to this many times; beyond, messages are dropped and counted.
const CIRCLE_LIMIT: usize = 4;
/// How long a circle may make no progress, in milliseconds.
const STALL_MS: u64 = 500;

/// A message being delivered, and all that delivering it needs.
pub(crate) struct Post<'a> {
    pub net: &'a mut Net,
    pub sessions: &'a mut IndexTable<ClientSession>,
    pub options: &'a Options,
    pub outgoing: &'a Outgoing<'a>,
    /// As published.
    pub qos: u8,
    /// As published.
    pub retain: bool,
    pub expires_ms: Option<u64>,
    /// An owned copy of the message, once one is needed.
    pub kept: Option<Rc<StoredMessage>>,
}

impl Post<'_> {
    /// An owned copy of the message, made on the first call.
    pub(crate) fn keep(&mut self) -> Rc<StoredMessage> {
        let Outgoing {
            topic,
            props,
            payload,
            ..
        } = *self.outgoing;
        let kept = self.kept.get_or_insert_with(|| {
            let message = StoredMessage::new(
                topic,
                props,
                payload,
                self.qos,
                self.retain,
                self.expires_ms,
            );
            Rc::new(message)
        });
        Rc::clone(kept)
    }

    /// Delivers along a route; returns whether there was a subscriber.
    pub(crate) fn along(&mut self, route: &Route, from: SessionId, tree: &mut Tree) -> bool {
        let mut matched = false;
        for target in &route.targets {
            if target.no_local && target.session == from {
                continue;
            }
            matched = true;
            let retain = self.retain && target.retain_as_published;
            self.deliver_to(
                target.session,
                self.qos.min(target.qos),
                retain,
                &target.ids,
            );
        }
        for &group in &route.groups {
            let limit = self.options.max_backlog_bytes;
            let Some(sub) = choose(tree.group_mut(group), self.net, self.sessions, limit) else {
                continue;
            };
            matched = true;
            let options = sub.options;
            let id = [options.id];
            let ids = if options.id == 0 { &[][..] } else { &id[..] };
            let retain = self.retain && options.retain_as_published;
            self.deliver_to(sub.session, self.qos.min(options.qos), retain, ids);
        }
        matched
    }

    /// Delivers to one session.
    pub(crate) fn deliver_to(&mut self, session: SessionId, qos: u8, retain: bool, ids: &[u32]) {
        let Some(to) = self.sessions.get_mut(session) else {
            return;
        };
        let Some(conn) = self.net.conns.get(to.conn) else {
            if qos > 0 {
                self.keep_for_absent(session, qos, retain, ids);
            }
            return;
        };
        let backlog = conn.out.len() + to.queued_bytes();
        let over = backlog > self.options.max_backlog_bytes.saturating_mul(CIRCLE_LIMIT);
        let room = conn.receive_max.min(self.options.max_in_flight);
        if qos == 0 {
            if over {
                self.net.stats.publish_dropped += 1;
            } else {
                self.net
                    .send_publish(to.conn, self.outgoing, u8::from(retain), 0, ids);
            }
            return;
        }
        // Longer than the client takes: as if delivered (section 3.1.2.11.4).
        if self.outgoing.packet_len(conn.version, qos, ids) > conn.max_packet as usize {
            self.net.stats.publish_dropped += 1;
            return;
        }
        let (conn, durable) = (to.conn, to.is_durable());
        let flight = to.flight();
        if flight.queue.is_empty() && !flight.window.resending() && flight.window.has_room(room) {
            let kept = durable.then(|| Delivery {
                message: self.keep(),
                qos,
                retain,
                ids: ids.into(),
            });
            let Some(to) = self.sessions.get_mut(session) else {
                return;
            };
            let packet_id = to.flight().window.begin(qos, kept);
            let flags = qos << 1 | u8::from(retain);
            self.net
                .send_publish(conn, self.outgoing, flags, packet_id, ids);
        } else if over {
            self.net.stats.publish_dropped += 1;
        } else {
            self.enqueue(session, qos, retain, ids);
        }
    }

    fn keep_for_absent(&mut self, session: SessionId, qos: u8, retain: bool, ids: &[u32]) {
        let Some(to) = self.sessions.get_mut(session) else {
            return;
        };
        let flight = to.flight();
        if flight.queue.len() >= self.options.max_offline_messages
            || flight.queued_bytes >= self.options.max_offline_bytes
        {
            self.net.stats.publish_dropped += 1;
            return;
        }
        self.enqueue(session, qos, retain, ids);
    }

    fn enqueue(&mut self, session: SessionId, qos: u8, retain: bool, ids: &[u32]) {
        let delivery = Delivery {
            message: self.keep(),
            qos,
            retain,
            ids: ids.into(),
        };
        if let Some(to) = self.sessions.get_mut(session) {
            to.flight().enqueue(delivery);
        }
    }
}

/// Bytes that wait for a connected session; 0 for one without connection, for
/// which no publisher waits.
#[inline]
fn backlog(session: &ClientSession, net: &Net) -> usize {
    match net.conns.get(session.conn) {
        Some(conn) => conn.out.len() + session.queued_bytes(),
        None => 0,
    }
}

/// The session that must drain before a message may take the route.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Full {
    pub session: SessionId,
    /// Where the message needs only one member of a group: the group, of which
    /// any may drain first.
    pub group: Option<GroupId>,
}

/// Finds a session that must drain before a message may take the route.
#[inline]
pub(crate) fn first_full(
    route: &Route,
    from: SessionId,
    net: &Net,
    sessions: &IndexTable<ClientSession>,
    tree: &Tree,
    limit: usize,
) -> Option<Full> {
    let is_full = |id| sessions.get(id).is_some_and(|s| backlog(s, net) > limit);
    for target in &route.targets {
        if is_full(target.session) && !(target.no_local && target.session == from) {
            return Some(Full {
                session: target.session,
                group: None,
            });
        }
    }
    for &group in &route.groups {
        // A group is full when every connected member is.
        let mut full = None;
        for member in &tree.group(group).members {
            if sessions.get(member.session).is_none_or(|s| s.conn == NONE) {
                continue;
            }
            if !is_full(member.session) {
                full = None;
                break;
            }
            full = full.or(Some(Full {
                session: member.session,
                group: Some(group),
            }));
        }
        if full.is_some() {
            return full;
        }
    }
    None
}

/// The member that gets the next message: in turn among those connected and not
/// full, else those connected, else any.
fn choose(
    group: &mut ShareGroup,
    net: &Net,
    sessions: &IndexTable<ClientSession>,
    limit: usize,
) -> Option<Sub> {
    let n = group.members.len();
    let is_there = |s: &ClientSession| s.conn != NONE;
    let has_room = |s: &ClientSession| is_there(s) && backlog(s, net) <= limit;
    let any = |_: &ClientSession| true;
    let wishes: [&dyn Fn(&ClientSession) -> bool; 3] = [&has_room, &is_there, &any];
    for wish in wishes {
        for i in 0..n {
            let at = (group.turn + i) % n;
            let sub = group.members[at];
            if sessions.get(sub.session).is_some_and(wish) {
                group.turn = (at + 1) % n;
                return Some(sub);
            }
        }
    }
    None
}

impl Broker {
    /// Sends what a connected session's window has room for.
    pub(crate) fn pump(&mut self, id: SessionId) {
        let now_ms = self.now_ms;
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let to = session.conn;
        let Some(conn) = self.net.conns.get(to) else {
            return;
        };
        let (version, max_packet) = (conn.version, conn.max_packet as usize);
        let room = conn.receive_max.min(self.options.max_in_flight);
        let durable = session.is_durable();
        let Some(flight) = session.flight.as_mut() else {
            return;
        };
        while let Some((packet_id, stage, delivery)) = flight.window.next_resend(room) {
            match (stage, delivery) {
                (Stage::PubCompDue, _) => {
                    self.net
                        .append(to, 4, |out| encode_ack(PacketType::PubRel, packet_id, out));
                }
                (_, Some(d)) => {
                    let flags = DUP | d.qos << 1 | u8::from(d.retain);
                    let outgoing = Outgoing::from_kept(&d.message, now_ms);
                    self.net
                        .send_publish(to, &outgoing, flags, packet_id, &d.ids);
                }
                (_, None) => {}
            }
        }
        while !flight.window.resending() && flight.window.has_room(room) {
            let Some(delivery) = flight.dequeue() else {
                break;
            };
            let Delivery {
                message,
                qos,
                retain,
                ids,
            } = &delivery;
            if message.is_expired(now_ms) {
                self.net.stats.publish_expired += 1;
                continue;
            }
            let outgoing = Outgoing::from_kept(message, now_ms);
            if outgoing.packet_len(version, *qos, ids) > max_packet {
                self.net.stats.publish_dropped += 1;
                continue;
            }
            let packet_id = flight.window.begin(*qos, durable.then(|| delivery.clone()));
            self.net
                .send_publish(to, &outgoing, qos << 1 | u8::from(*retain), packet_id, ids);
        }
        self.wake_if_drained(id);
    }

    /// Stops reading a connection until the session has drained. False if it must
    /// not wait.
    ///
    /// A session drains when its client reads, and, for what waits for room in
    /// its window, when the client's acknowledgements are read. So a connection
    /// that waits, directly or through others, for itself must not wait for
    /// acknowledgements, which would not be read; and if it waits for a client
    /// that does not read because it is itself blocked in writing, it is let
    /// through after half a second without progress.
    pub(crate) fn pause(&mut self, id: ConnId, from: SessionId, full: Full) -> bool {
        let circular = self.leads_to(full.session, from);
        let Some(session) = self.sessions.get_mut(full.session) else {
            return false;
        };
        let queued = session.queued_bytes() > 0;
        let sent = self
            .net
            .conns
            .get(session.conn)
            .map_or(0, |c| c.out.written());
        let Some(conn) = self.net.conns.get_mut(id) else {
            return false;
        };
        if circular && (queued || conn.passes) {
            return false;
        }
        conn.paused = true;
        conn.waits_on = full.session;
        let generation = conn.generation;
        match full.group {
            None => session.flight().waiters.push(id),
            Some(group) => {
                for member in &self.tree.group(group).members {
                    // A session that never drains would list the same
                    // connection again and again.
                    if let Some(session) = self.sessions.get_mut(member.session)
                        && !session.flight().waiters.contains(&id)
                    {
                        session.flight().waiters.push(id);
                    }
                }
            }
        }
        self.net.stats.publisher_pauses += 1;
        self.net.rewatch(id);
        // Also outside a circle, which may close only later.
        self.timers.set(
            self.now_ms + STALL_MS,
            Timer::Stall {
                id,
                generation,
                sent,
            },
        );
        true
    }

    /// Whether following who waits for whom from the session leads to another.
    fn leads_to(&self, mut at: SessionId, goal: SessionId) -> bool {
        // Such chains never form a lasting circle, but the bound costs nothing.
        for _ in 0..self.sessions.len() {
            if at == goal {
                return true;
            }
            let Some(session) = self.sessions.get(at) else {
                return false;
            };
            match self.net.conns.get(session.conn) {
                Some(conn) if conn.paused => at = conn.waits_on,
                _ => return false,
            }
        }
        false
    }

    /// Lets a paused connection through if it waits in a circle without
    /// progress.
    pub(crate) fn check_stall(&mut self, id: ConnId, generation: u32, sent: u32) {
        let Some(conn) = self.net.conns.get(id) else {
            return;
        };
        if conn.generation != generation || !conn.paused {
            return;
        }
        let (from, full) = (conn.session, conn.waits_on);
        let target = self.sessions.get(full).map_or(NONE, |s| s.conn);
        let sent_now = self.net.conns.get(target).map_or(0, |c| c.out.written());
        if sent_now != sent {
            let timer = Timer::Stall {
                id,
                generation,
                sent: sent_now,
            };
            return self.timers.set(self.now_ms + STALL_MS, timer);
        }
        // Outside a circle checking again does no harm: subscriptions may have
        // changed.
        let passes = self.leads_to(full, from);
        if let Some(conn) = self.net.conns.get_mut(id) {
            conn.passes = passes;
        }
        self.resume.push_back(id);
    }

    /// Ends the pause of the connections that wait for the session if half of
    /// its limit is free again.
    pub(crate) fn wake_if_drained(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get(id) else {
            return;
        };
        let half = self.options.max_backlog_bytes / 2;
        let waited_for = session
            .flight
            .as_ref()
            .is_some_and(|f| !f.waiters.is_empty());
        if waited_for && backlog(session, &self.net) <= half {
            self.wake(id);
        }
    }

    /// Ends the pause of all connections that wait for the session.
    pub(crate) fn wake(&mut self, id: SessionId) {
        let Some(flight) = self.sessions.get_mut(id).and_then(|s| s.flight.as_mut()) else {
            return;
        };
        for waiter in std::mem::take(&mut flight.waiters) {
            // It may wait for another session by now; then it is paused again.
            if self.net.conns.get(waiter).is_some_and(|c| c.paused) {
                self.resume.push_back(waiter);
            }
        }
    }
}
