//! The broker's state, and what it does with each packet.

use std::collections::VecDeque;
use std::rc::Rc;

use pubgauge_mqtt_codec::{
    Ack, DecodeError, Disconnect, Packet, PacketType, PropertyId, ReasonCode, Version, decode,
    encode_ack, encode_pingresp,
};
use rustc_hash::FxHashMap;

use crate::conn::{ConnId, NONE, Net};
use crate::options::Options;
use crate::retained::Retained;
use crate::routes::Routes;
use crate::session::{ClientSession, NEVER};
use crate::table::IndexTable;
use crate::timers::{Timer, Timers};
use crate::tree::{SessionId, Tree};
use crate::window::Stage;

/// The broker's whole state.
#[derive(Debug)]
pub(crate) struct Broker {
    pub options: Options,
    pub net: Net,
    pub sessions: IndexTable<ClientSession>,
    pub by_client: FxHashMap<Rc<str>, SessionId>,
    pub tree: Tree,
    pub routes: Routes,
    pub retained: Retained,
    pub timers: Timers,
    /// The values last published to `$SYS/broker/`, by the rest of the topic.
    pub sys: Vec<(&'static str, String)>,
    /// Milliseconds since the start, read once per turn of the event loop.
    pub now_ms: u64,
    /// Connections whose pause is over.
    pub resume: VecDeque<ConnId>,
    /// Bytes held for paused connections.
    pub held_bytes: usize,
    /// Properties to be passed on of the message being handled.
    pub scratch: Vec<u8>,
    /// Counts the beginnings and ends of sessions. One count for all, since
    /// indices are used again and timers of different sessions must differ.
    pub generations: u32,
    /// Numbers the client identifiers that the broker assigns.
    pub assigned: u64,
}

/// The outcome of handling a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PacketOutcome {
    /// It is handled.
    Done,
    /// It must be handled again when the connection's pause is over.
    Wait,
}

/// Why a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The client closed it, or it broke.
    Gone,
    /// The client sent DISCONNECT; its will is published only if that asks for
    /// it.
    Goodbye { with_will: bool },
    /// CONNECT was refused; the CONNACK is on its way.
    Refused,
    /// The client broke the protocol or a limit.
    Fault(ReasonCode),
    /// The broker ends it, though the client did nothing wrong.
    Close(ReasonCode),
}

impl From<DecodeError> for End {
    fn from(error: DecodeError) -> End {
        End::Fault(error.reason)
    }
}

impl Broker {
    pub(crate) fn new(options: Options, net: Net) -> Broker {
        Broker {
            options,
            net,
            sessions: IndexTable::new(),
            by_client: FxHashMap::default(),
            tree: Tree::new(),
            routes: Routes::new(),
            retained: Retained::default(),
            timers: Timers::default(),
            sys: Vec::new(),
            now_ms: 0,
            resume: VecDeque::new(),
            held_bytes: 0,
            scratch: Vec::new(),
            generations: 0,
            assigned: 0,
        }
    }

    /// Handles the packets in `buf`; returns how many bytes of it are used up.
    /// The rest is the beginning of a packet, or waits while the connection is
    /// paused.
    pub(crate) fn input(&mut self, id: ConnId, buf: &[u8]) -> Result<usize, End> {
        let max = self.options.max_packet_bytes as usize;
        let mut at = 0;
        while at < buf.len() {
            let Some(conn) = self.net.conns.get(id) else {
                return Ok(buf.len());
            };
            let (version, ready) = (conn.version, conn.session != NONE);
            if ready {
                let taken = self.run(id, &buf[at..]);
                if taken > 0 {
                    at += taken;
                    self.net.flush_if_much();
                    continue;
                }
            }
            let (packet, len) = match decode(&buf[at..], version, max) {
                Ok(Some(found)) => found,
                Ok(None) => return Ok(at),
                Err(error) => return Err(self.undecodable(id, error)),
            };
            match self.packet(id, &packet, ready)? {
                PacketOutcome::Done => at += len,
                PacketOutcome::Wait => return Ok(at),
            }
            self.net.stats.packets_received += 1;
            self.net.flush_if_much();
        }
        Ok(at)
    }

    fn undecodable(&mut self, id: ConnId, error: DecodeError) -> End {
        if error.reason == ReasonCode::UNSUPPORTED_PROTOCOL_VERSION {
            // In the form of MQTT 3.1.1, which every client understands
            // (section 3.1.2.2).
            self.net
                .append(id, 4, |out| out.extend_from_slice(&[0x20, 2, 0, 1]));
            self.net.stats.protocol_errors += 1;
            return End::Refused;
        }
        error.into()
    }

    fn packet(
        &mut self,
        id: ConnId,
        packet: &Packet<'_>,
        ready: bool,
    ) -> Result<PacketOutcome, End> {
        match packet {
            // The first packet is CONNECT and no other is (section 3.1).
            Packet::Connect(connect) if !ready => {
                return self.connect(id, connect).map(|()| PacketOutcome::Done);
            }
            _ if !ready => return Err(End::Fault(ReasonCode::PROTOCOL_ERROR)),
            Packet::Publish(publish) => return self.publish(id, publish),
            Packet::PubAck(ack) => {
                self.settle(id, ack.packet_id, Stage::PubAckDue);
            }
            Packet::PubRec(ack) => self.pubrec(id, ack),
            Packet::PubRel(ack) => self.pubrel(id, ack),
            Packet::PubComp(ack) => {
                self.settle(id, ack.packet_id, Stage::PubCompDue);
            }
            Packet::Subscribe(subscribe) => self.subscribe(id, subscribe)?,
            Packet::Unsubscribe(unsubscribe) => self.unsubscribe(id, unsubscribe),
            Packet::PingReq => self.net.append(id, 2, encode_pingresp),
            Packet::Disconnect(disconnect) => return Err(self.goodbye(id, disconnect)),
            Packet::Connect(_)
            | Packet::ConnAck(_)
            | Packet::SubAck(_)
            | Packet::UnsubAck(_)
            | Packet::PingResp
            | Packet::Auth(_) => return Err(End::Fault(ReasonCode::PROTOCOL_ERROR)),
        }
        Ok(PacketOutcome::Done)
    }

    /// Completes an exchange if its stage was `due`; returns whether it was.
    fn settle(&mut self, id: ConnId, packet_id: u16, due: Stage) -> bool {
        let Some(session) = self.session_of(id) else {
            return false;
        };
        let settled = self
            .sessions
            .get_mut(session)
            .and_then(|s| s.flight.as_mut())
            .is_some_and(|f| f.window.advance(packet_id, due, Stage::Done));
        if settled {
            self.pump(session);
        }
        settled
    }

    /// QoS 2 delivery, part 1 (section 4.3.3).
    fn pubrec(&mut self, id: ConnId, ack: &Ack<'_>) {
        if ack.reason.is_error() {
            self.settle(id, ack.packet_id, Stage::PubRecDue);
            return;
        }
        let Some(session) = self.session_of(id).and_then(|s| self.sessions.get_mut(s)) else {
            return;
        };
        let window = &mut session.flight().window;
        let known = window.advance(ack.packet_id, Stage::PubRecDue, Stage::PubCompDue)
            || window.stage(ack.packet_id) == Some(Stage::PubCompDue);
        self.reply(id, PacketType::PubRel, ack.packet_id, if_known(known));
    }

    /// QoS 2 publish, part 2: the identifier is free again.
    fn pubrel(&mut self, id: ConnId, ack: &Ack<'_>) {
        let Some(session) = self.session_of(id).and_then(|s| self.sessions.get_mut(s)) else {
            return;
        };
        let known = session.flight().incoming.remove(&ack.packet_id);
        self.reply(id, PacketType::PubComp, ack.packet_id, if_known(known));
    }

    /// Acknowledges with one of the four packets for that; only MQTT 5 has reasons.
    pub(crate) fn reply(
        &mut self,
        id: ConnId,
        kind: PacketType,
        packet_id: u16,
        reason: ReasonCode,
    ) {
        if reason == ReasonCode::SUCCESS || !self.net.speaks_v5(id) {
            self.net
                .append(id, 4, |out| encode_ack(kind, packet_id, out));
            return;
        }
        let ack = Ack {
            packet_id,
            reason,
            ..Ack::default()
        };
        let packet = match kind {
            PacketType::PubAck => Packet::PubAck(ack),
            PacketType::PubRec => Packet::PubRec(ack),
            PacketType::PubRel => Packet::PubRel(ack),
            _ => Packet::PubComp(ack),
        };
        self.net.send(id, &packet);
    }

    fn goodbye(&mut self, id: ConnId, disconnect: &Disconnect<'_>) -> End {
        let expiry_s = disconnect
            .properties
            .number(PropertyId::SessionExpiryInterval);
        if let Some(expiry_s) = expiry_s
            && let Some(session) = self.session_of(id).and_then(|s| self.sessions.get_mut(s))
        {
            // A session that was to end now cannot be kept after all
            // (section 3.14.2.2.2).
            if session.expiry_s == 0 && expiry_s != 0 {
                return End::Fault(ReasonCode::PROTOCOL_ERROR);
            }
            session.expiry_s = expiry_s;
        }
        End::Goodbye {
            with_will: disconnect.reason == ReasonCode::DISCONNECT_WITH_WILL,
        }
    }

    /// The session a connection belongs to.
    #[inline]
    pub(crate) fn session_of(&self, id: ConnId) -> Option<SessionId> {
        self.net
            .conns
            .get(id)
            .map(|c| c.session)
            .filter(|&s| s != NONE)
    }

    /// Whether a session is there, and as it was when a timer was set for it.
    pub(crate) fn has_session(&self, id: SessionId, generation: u32) -> bool {
        let session = self.sessions.get(id);
        session.is_some_and(|s| s.generation == generation)
    }

    /// Ends a connection, and its session where the session does not outlive
    /// it.
    pub(crate) fn finish(&mut self, id: ConnId, end: End) {
        let Some(conn) = self.net.conns.get(id) else {
            return;
        };
        let (version, session) = (conn.version, conn.session);
        if let End::Fault(_) = end {
            self.net.stats.protocol_errors += 1;
        }
        if let End::Fault(reason) | End::Close(reason) = end
            && version == Version::V5
            && session != NONE
        {
            let valid = reason.is_valid_in(PacketType::Disconnect);
            let reason = if valid {
                reason
            } else {
                ReasonCode::PROTOCOL_ERROR
            };
            self.net.send(
                id,
                &Packet::Disconnect(Disconnect {
                    reason,
                    ..Disconnect::default()
                }),
            );
        }
        if !matches!(end, End::Gone | End::Goodbye { .. }) {
            self.net.write(id);
        }
        let Some(conn) = self.net.remove(id) else {
            return;
        };
        if conn.paused {
            self.held_bytes -= conn.partial.len();
        }
        // Closing with bytes unread would send a reset, which can overtake the
        // last packet sent.
        let said = match end {
            End::Gone | End::Goodbye { .. } => false,
            End::Refused | End::Fault(_) => true,
            End::Close(_) => version == Version::V5,
        };
        if said {
            let _ = rustix::net::shutdown(&conn.fd, rustix::net::Shutdown::Write);
            let mut rest = [0u8; 4096];
            for _ in 0..64 {
                let got =
                    rustix::net::recv(&conn.fd, &mut rest[..], rustix::net::RecvFlags::DONTWAIT);
                if !matches!(got, Ok((n, _)) if n > 0) {
                    break;
                }
            }
        }
        drop(conn);
        if session != NONE {
            self.leave(
                session,
                id,
                !matches!(end, End::Goodbye { with_will: false }),
            );
        }
    }

    /// Lets go of a session whose connection is gone.
    fn leave(&mut self, id: SessionId, conn: ConnId, with_will: bool) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        if session.conn != conn {
            return;
        }
        session.conn = NONE;
        self.generations = self.generations.wrapping_add(1);
        session.generation = self.generations;
        let (generation, expiry_s) = (session.generation, session.expiry_s);
        if !with_will {
            session.will = None;
        }
        let delay_s = session.will.as_ref().map(|w| w.delay_s.min(expiry_s));
        self.net.stats.clients_connected -= 1;
        self.wake(id);
        match delay_s {
            Some(0) => self.publish_will(id),
            Some(delay_s) if delay_s != NEVER => {
                self.timers.set(
                    self.now_ms + u64::from(delay_s) * 1000,
                    Timer::Will { id, generation },
                );
            }
            _ => {}
        }
        match expiry_s {
            0 => self.end_session(id),
            NEVER => {}
            _ => {
                let at = self.now_ms + u64::from(expiry_s) * 1000;
                self.timers.set(at, Timer::SessionExpiry { id, generation });
            }
        }
    }

    /// Forgets a session; a will that still waits is published first
    /// (section 3.1.3.2.2).
    pub(crate) fn end_session(&mut self, id: SessionId) {
        self.publish_will(id);
        let filters = match self.sessions.get_mut(id) {
            Some(session) => std::mem::take(&mut session.filters),
            None => return,
        };
        for filter in filters {
            self.drop_subscription(id, &filter);
        }
        self.wake(id);
        if let Some(session) = self.sessions.remove(id) {
            self.by_client.remove(&session.client_id);
        }
    }
}

/// The reason of an acknowledgement, by whether its packet identifier is known.
fn if_known(known: bool) -> ReasonCode {
    if known {
        ReasonCode::SUCCESS
    } else {
        ReasonCode::PACKET_IDENTIFIER_NOT_FOUND
    }
}
