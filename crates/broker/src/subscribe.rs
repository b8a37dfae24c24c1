//! SUBSCRIBE and UNSUBSCRIBE (MQTT 5 and 3.1.1, sections 3.8 to 3.11).

use pubgauge_mqtt_codec::{
    Packet, PropertyId, ReasonCode, RetainHandling, SubAck, Subscribe, UnsubAck, Unsubscribe,
};

use crate::broker::{Broker, End};
use crate::conn::ConnId;
use crate::deliver::Post;
use crate::encode::Outgoing;
use crate::topic::{self, ParsedFilter};
use crate::tree::{SessionId, Sub, SubOptions};

impl Broker {
    pub(crate) fn subscribe(&mut self, id: ConnId, subscribe: &Subscribe<'_>) -> Result<(), End> {
        let Some(session) = self.session_of(id) else {
            return Ok(());
        };
        let v5 = self.net.speaks_v5(id);
        let sub_id = subscribe
            .properties
            .number(PropertyId::SubscriptionIdentifier)
            .unwrap_or(0);
        if subscribe
            .filters
            .iter()
            .any(|(f, _)| f.starts_with("$SYS/"))
        {
            self.publish_sys();
        }
        let mut codes = Vec::with_capacity(4);
        // Filters whose retained messages follow the SUBACK.
        let mut owed: Vec<(&[u8], SubOptions)> = Vec::new();
        for (raw, asked) in subscribe.filters.iter() {
            if !topic::is_shallow(raw.as_bytes()) {
                let failed = ReasonCode::TOPIC_FILTER_INVALID;
                codes.push(if v5 {
                    failed.0
                } else {
                    ReasonCode::UNSPECIFIED_ERROR.0
                });
                continue;
            }
            let options = SubOptions {
                qos: asked.qos as u8,
                no_local: asked.no_local,
                retain_as_published: asked.retain_as_published,
                id: sub_id,
            };
            let known = self.add_subscription(session, raw, options);
            codes.push(options.qos);
            let retained = match asked.retain_handling {
                RetainHandling::Send => true,
                RetainHandling::SendIfNew => !known,
                RetainHandling::DoNotSend => false,
            };
            // A shared subscription gets none (section 4.8.2).
            if let (true, ParsedFilter::Plain(filter)) = (retained, ParsedFilter::parse(raw)) {
                owed.push((filter, options));
            }
        }
        let packet_id = subscribe.packet_id;
        let suback = SubAck {
            packet_id,
            codes: &codes,
            ..SubAck::default()
        };
        self.net.send(id, &Packet::SubAck(suback));
        for (filter, options) in owed {
            self.send_retained(session, filter, options);
        }
        Ok(())
    }

    pub(crate) fn unsubscribe(&mut self, id: ConnId, unsubscribe: &Unsubscribe<'_>) {
        let Some(session) = self.session_of(id) else {
            return;
        };
        let v5 = self.net.speaks_v5(id);
        let mut codes = Vec::with_capacity(4);
        for raw in unsubscribe.filters.iter() {
            let Some(state) = self.sessions.get_mut(session) else {
                return;
            };
            let at = state.filters.iter().position(|f| **f == *raw);
            if let Some(at) = at {
                state.filters.swap_remove(at);
                self.drop_subscription(session, raw);
            }
            codes.push(match at {
                Some(_) => ReasonCode::SUCCESS.0,
                None => ReasonCode::NO_SUBSCRIPTION_EXISTED.0,
            });
        }
        if !v5 {
            codes.clear();
        }
        let packet_id = unsubscribe.packet_id;
        let unsuback = UnsubAck {
            packet_id,
            codes: &codes,
            ..UnsubAck::default()
        };
        self.net.send(id, &Packet::UnsubAck(unsuback));
    }

    /// Adds a subscription; returns whether it replaced one.
    fn add_subscription(&mut self, id: SessionId, raw: &str, options: SubOptions) -> bool {
        let Some(session) = self.sessions.get_mut(id) else {
            return false;
        };
        let known = session.filters.iter().any(|f| **f == *raw);
        if !known {
            session.filters.push(raw.into());
        }
        let sub = Sub {
            session: id,
            options,
        };
        let filter = ParsedFilter::parse(raw);
        match filter {
            ParsedFilter::Plain(filter) => self.tree.subscribe(filter, sub, !known),
            ParsedFilter::Shared { group, filter } => {
                self.tree.subscribe_shared(group, filter, sub)
            }
        }
        self.routes
            .changed(filter.pattern(), topic::is_exact(filter.pattern()));
        known
    }

    /// Removes a subscription from the tree; the caller updates the session's
    /// own list.
    pub(crate) fn drop_subscription(&mut self, id: SessionId, raw: &str) {
        let filter = ParsedFilter::parse(raw);
        match filter {
            ParsedFilter::Plain(filter) => self.tree.unsubscribe(filter, id),
            ParsedFilter::Shared { group, filter } => {
                self.tree.unsubscribe_shared(group, filter, id)
            }
        };
        self.routes
            .changed(filter.pattern(), topic::is_exact(filter.pattern()));
    }

    fn send_retained(&mut self, session: SessionId, filter: &[u8], options: SubOptions) {
        let mut found = Vec::new();
        self.retained.find(filter, &mut found);
        let id = [options.id];
        let ids = if options.id == 0 { &[][..] } else { &id[..] };
        for message in found {
            if message.is_expired(self.now_ms) {
                self.retained.set(message.topic(), None);
                continue;
            }
            let outgoing = Outgoing::from_kept(&message, self.now_ms);
            let mut post = Post {
                net: &mut self.net,
                sessions: &mut self.sessions,
                options: &self.options,
                outgoing: &outgoing,
                qos: message.qos,
                retain: true,
                expires_ms: message.expires_ms,
                kept: Some(message.clone()),
            };
            post.deliver_to(session, message.qos.min(options.qos), true, ids);
        }
    }
}
