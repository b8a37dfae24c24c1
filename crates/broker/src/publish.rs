//! PUBLISH from a client: the message path (MQTT 5 and 3.1.1, section 3.3).

use pubgauge_mqtt_codec::{PacketType, Publish, QoS, ReasonCode, Version, read_varint};

use crate::broker::{Broker, End, PacketOutcome};
use crate::conn::{Aliases, ConnId};
use crate::deliver::{Post, first_full};
use crate::encode::{Outgoing, Taken, split_props};
use crate::message::StoredMessage;
use crate::routes::RouteId;
use crate::topic;
use crate::tree::SessionId;

/// The beginning of a plain message: QoS 0, not retained, no properties.
struct PlainHead<'a> {
    topic: &'a [u8],
    /// Bytes before the payload.
    head_len: usize,
    packet_len: usize,
}

impl<'a> PlainHead<'a> {
    /// Reads the head of a plain message that is complete. For anything else it
    /// returns `None`, and the codec decodes it.
    #[inline]
    fn read(buf: &'a [u8], version: Version, max: usize) -> Option<PlainHead<'a>> {
        if *buf.first()? != 0x30 {
            return None;
        }
        let (remaining, len_bytes) = read_varint(&buf[1..]).ok()??;
        let packet_len = 1 + len_bytes + remaining as usize;
        if packet_len > max {
            return None;
        }
        let body = buf.get(1 + len_bytes..packet_len)?;
        let topic_len = usize::from(u16::from_be_bytes([*body.first()?, *body.get(1)?]));
        let topic = body.get(2..2 + topic_len)?;
        let mut head_len = 1 + len_bytes + 2 + topic_len;
        if version == Version::V5 {
            if *body.get(2 + topic_len)? != 0 {
                return None;
            }
            head_len += 1;
        }
        Some(PlainHead {
            topic,
            head_len,
            packet_len,
        })
    }
}

impl Broker {
    /// Forwards the plain messages at the start of `buf` that follow each other
    /// to the topic of the connection's last message, all at once: the bytes
    /// that came in are the bytes that go out. Returns how many bytes that
    /// took; 0 if there are no such messages.
    #[inline]
    pub(crate) fn run(&mut self, id: ConnId, buf: &[u8]) -> usize {
        let max = self.options.max_packet_bytes as usize;
        let Some(conn) = self.net.conns.get(id) else {
            return 0;
        };
        let (version, from, route) = (conn.version, conn.session, conn.last_route);
        let Some(head) = PlainHead::read(buf, version, max) else {
            return 0;
        };
        // A topic with a route was checked when the route was made.
        if !self.routes.is_current(route, head.topic) {
            return 0;
        }
        let route = self.routes.get(route);
        let limit = self.options.max_backlog_bytes;
        if !route.groups.is_empty()
            || first_full(route, from, &self.net, &self.sessions, &self.tree, limit).is_some()
        {
            return 0;
        }

        let mut end = head.packet_len;
        let mut count = 1;
        let mut longest = head.packet_len;
        let prefix = &buf[..head.head_len];
        while end < buf.len() {
            let rest = &buf[end..];
            // Same length and same topic, the usual case, need no reading.
            if rest.len() >= head.packet_len && rest.starts_with(prefix) {
                end += head.packet_len;
            } else {
                match PlainHead::read(rest, version, max) {
                    Some(next) if next.topic == head.topic => {
                        end += next.packet_len;
                        longest = longest.max(next.packet_len);
                    }
                    _ => break,
                }
            }
            count += 1;
        }

        let run = &buf[..end];
        for target in &route.targets {
            if target.no_local && target.session == from {
                continue;
            }
            let Some(to) = self.sessions.get(target.session).map(|s| s.conn) else {
                continue;
            };
            let Some(conn) = self.net.conns.get(to) else {
                continue;
            };
            if conn.version == version
                && target.ids.is_empty()
                && longest <= conn.max_packet as usize
            {
                self.net.push_publishes(to, run, count);
                continue;
            }
            let mut at = 0;
            while let Some(head) = PlainHead::read(&run[at..], version, max) {
                let payload = &run[at + head.head_len..at + head.packet_len];
                let message = Outgoing {
                    topic: head.topic,
                    props: &[],
                    expiry_s: None,
                    payload,
                };
                self.net.send_publish(to, &message, 0, 0, &target.ids);
                at += head.packet_len;
            }
        }
        self.net.stats.publish_received += count;
        self.net.stats.packets_received += count;
        end
    }

    /// Any PUBLISH.
    pub(crate) fn publish(
        &mut self,
        id: ConnId,
        publish: &Publish<'_>,
    ) -> Result<PacketOutcome, End> {
        let mut props = std::mem::take(&mut self.scratch);
        let taken = split_props(publish.properties.as_bytes(), &mut props);
        // The alias table is taken out meanwhile, so that the topic can be
        // borrowed from it.
        let mut aliases = self.net.conns.get_mut(id).and_then(|c| c.aliases.take());
        let result = resolve(
            &mut aliases,
            publish.topic,
            &taken,
            self.options.topic_alias_maximum,
        )
        .and_then(|topic| self.publish_to(id, publish, topic, &props, &taken));
        if let Some(conn) = self.net.conns.get_mut(id) {
            conn.aliases = aliases;
        }
        self.scratch = props;
        result
    }

    fn publish_to(
        &mut self,
        id: ConnId,
        publish: &Publish<'_>,
        topic: &[u8],
        props: &[u8],
        taken: &Taken,
    ) -> Result<PacketOutcome, End> {
        if taken.subscription_id {
            // Only the server sends those (section 3.3.4).
            return Err(End::Fault(ReasonCode::PROTOCOL_ERROR));
        }
        let Some(conn) = self.net.conns.get(id) else {
            return Ok(PacketOutcome::Done);
        };
        let (from, hint) = (conn.session, conn.last_route);
        let route = if self.routes.is_current(hint, topic) {
            hint
        } else {
            if !topic::is_shallow(topic) {
                return Err(End::Fault(ReasonCode::TOPIC_NAME_INVALID));
            }
            self.routes.find(topic, &self.tree)
        };
        if publish.qos == QoS::ExactlyOnce && self.is_repeated(from, id, publish.packet_id)? {
            self.net.stats.publish_received += 1;
            self.acknowledge(id, publish, ReasonCode::SUCCESS);
            return Ok(PacketOutcome::Done);
        }
        // Only the broker itself publishes to those topics.
        let allowed = !topic.starts_with(b"$SYS/");
        if allowed && self.must_wait(id, from, route) {
            return Ok(PacketOutcome::Wait);
        }
        if let Some(conn) = self.net.conns.get_mut(id) {
            conn.last_route = route;
        }
        self.net.stats.publish_received += 1;
        let mut reason = ReasonCode::NOT_AUTHORIZED;
        if allowed {
            let outgoing = Outgoing {
                topic,
                props,
                expiry_s: taken.expiry_s,
                payload: publish.payload,
            };
            let qos = publish.qos as u8;
            let matched = self.forward(route, from, &outgoing, qos, publish.retain);
            reason = if matched {
                ReasonCode::SUCCESS
            } else {
                ReasonCode::NO_MATCHING_SUBSCRIBERS
            };
        }
        if publish.qos == QoS::ExactlyOnce
            && !reason.is_error()
            && let Some(session) = self.sessions.get_mut(from)
        {
            session.flight().incoming.insert(publish.packet_id);
        }
        self.acknowledge(id, publish, reason);
        Ok(PacketOutcome::Done)
    }

    /// Whether a QoS 2 message came before (section 4.3.3).
    fn is_repeated(&mut self, from: SessionId, id: ConnId, packet_id: u16) -> Result<bool, End> {
        let Some(session) = self.sessions.get_mut(from) else {
            return Ok(false);
        };
        let incoming = &session.flight().incoming;
        if incoming.contains(&packet_id) {
            return Ok(true);
        }
        let most = usize::from(self.options.receive_maximum);
        if incoming.len() >= most && self.net.speaks_v5(id) {
            return Err(End::Fault(ReasonCode::RECEIVE_MAXIMUM_EXCEEDED));
        }
        Ok(false)
    }

    fn acknowledge(&mut self, id: ConnId, publish: &Publish<'_>, reason: ReasonCode) {
        let kind = match publish.qos {
            QoS::AtMostOnce => return,
            QoS::AtLeastOnce => PacketType::PubAck,
            QoS::ExactlyOnce => PacketType::PubRec,
        };
        self.reply(id, kind, publish.packet_id, reason);
    }

    /// Retains and delivers a message; returns whether its topic has a
    /// subscriber.
    fn forward(
        &mut self,
        route: RouteId,
        from: SessionId,
        outgoing: &Outgoing<'_>,
        qos: u8,
        retain: bool,
    ) -> bool {
        let expires_ms = outgoing.expiry_s.map(|s| self.now_ms + u64::from(s) * 1000);
        let mut post = Post {
            net: &mut self.net,
            sessions: &mut self.sessions,
            options: &self.options,
            outgoing,
            qos,
            retain,
            expires_ms,
            kept: None,
        };
        if retain {
            let (topic, len) = (outgoing.topic, outgoing.payload.len());
            let limit = self.options.max_retained_bytes;
            // The one before is not the last value any more, whether or not this one has room.
            if len == 0 || self.retained.bytes() + len > limit {
                self.retained.set(topic, None);
            }
            if self.retained.bytes() + len > limit {
                post.net.stats.publish_dropped += 1;
            } else if len > 0 {
                self.retained.set(topic, Some(post.keep()));
            }
        }
        post.along(self.routes.get(route), from, &mut self.tree)
    }

    /// Publishes a message of the broker's own: a will, or a `$SYS` topic. It
    /// does not wait for subscribers.
    pub(crate) fn publish_own(
        &mut self,
        message: &StoredMessage,
        from: SessionId,
        expiry_s: Option<u32>,
    ) {
        let outgoing = Outgoing {
            topic: message.topic(),
            props: message.props(),
            expiry_s,
            payload: message.payload(),
        };
        let route = self.routes.find(message.topic(), &self.tree);
        self.forward(route, from, &outgoing, message.qos, message.retain);
    }

    /// Publishes the session's will, if it still has one.
    pub(crate) fn publish_will(&mut self, id: SessionId) {
        let will = self.sessions.get_mut(id).and_then(|s| s.will.take());
        if let Some(will) = will {
            self.publish_own(&will.message, id, will.expiry_s);
        }
    }

    /// Whether the connection must wait for a subscriber of the route; if so, it
    /// is paused.
    fn must_wait(&mut self, id: ConnId, from: SessionId, route: RouteId) -> bool {
        let limit = self.options.max_backlog_bytes;
        let route = self.routes.get(route);
        match first_full(route, from, &self.net, &self.sessions, &self.tree, limit) {
            Some(full) => self.pause(id, from, full),
            None => {
                if let Some(conn) = self.net.conns.get_mut(id) {
                    conn.passes = false;
                }
                false
            }
        }
    }
}

/// The topic that a PUBLISH means (MQTT 5 section 3.3.2.3.4).
fn resolve<'a>(
    aliases: &'a mut Option<Box<Aliases>>,
    topic: &'a str,
    taken: &Taken,
    maximum: u16,
) -> Result<&'a [u8], End> {
    let Some(alias) = taken.alias else {
        return Ok(topic.as_bytes());
    };
    if alias == 0 || alias > maximum {
        return Err(End::Fault(ReasonCode::TOPIC_ALIAS_INVALID));
    }
    let at = usize::from(alias) - 1;
    let known = &mut aliases.get_or_insert_default().0;
    if !topic.is_empty() {
        if known.len() <= at {
            known.resize(at + 1, Box::default());
        }
        if *known[at] != *topic.as_bytes() {
            known[at] = topic.as_bytes().into();
        }
        return Ok(topic.as_bytes());
    }
    match known.get(at) {
        Some(topic) if !topic.is_empty() => Ok(topic),
        _ => Err(End::Fault(ReasonCode::PROTOCOL_ERROR)),
    }
}
