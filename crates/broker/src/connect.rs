//! CONNECT: which clients are accepted, and with which session (MQTT 5 and
//! 3.1.1, section 3.1).

use std::rc::Rc;

use pubgauge_mqtt_codec::{
    ConnAck, Connect, Packet, PropertiesBuf, Property, PropertyId, ReasonCode, Version,
};

use crate::broker::{Broker, End};
use crate::conn::{ConnId, NONE};
use crate::encode::split_props;
use crate::message::StoredMessage;
use crate::session::{ClientSession, NEVER, Will};
use crate::timers::Timer;
use crate::topic;
use crate::tree::SessionId;

impl Broker {
    pub(crate) fn connect(&mut self, id: ConnId, connect: &Connect<'_>) -> Result<(), End> {
        let version = connect.version;
        let v5 = version == Version::V5;
        let number = |property| connect.properties.number(property);
        if let Some(conn) = self.net.conns.get_mut(id) {
            conn.version = version;
            conn.keep_alive_s = connect.keep_alive_s;
            conn.max_packet = number(PropertyId::MaximumPacketSize).unwrap_or(u32::MAX);
            conn.receive_max =
                number(PropertyId::ReceiveMaximum).map_or(u16::MAX, |n| n.min(65_535) as u16);
        }
        if let Err(reason) = self.admit(connect) {
            self.refuse(id, version, reason);
            return Err(End::Refused);
        }

        let mut assigned = None;
        if connect.client_id.is_empty() {
            loop {
                self.assigned += 1;
                let name = format!("pubgauge-{}", self.assigned);
                if !self.by_client.contains_key(name.as_str()) {
                    assigned = Some(name);
                    break;
                }
            }
        }
        let client_id = assigned.as_deref().unwrap_or(connect.client_id);
        let (session, present) = self.take_session(client_id, connect.clean_start);

        let conn = self.net.conns.get(id);
        let generation = conn.map_or(0, |c| c.generation);
        let expiry_s = match number(PropertyId::SessionExpiryInterval) {
            Some(expiry_s) => expiry_s,
            None if v5 || connect.clean_start => 0,
            None => NEVER,
        };
        if let Some(conn) = self.net.conns.get_mut(id) {
            conn.session = session;
        }
        let will = self.will_of(connect);
        self.generations = self.generations.wrapping_add(1);
        if let Some(state) = self.sessions.get_mut(session) {
            state.conn = id;
            state.generation = self.generations;
            state.expiry_s = expiry_s;
            // A delayed will is cancelled (section 3.1.3.2.2).
            state.will = will;
        }
        if connect.keep_alive_s > 0 {
            let at = self.now_ms + keep_alive_ms(connect.keep_alive_s);
            self.timers.set(at, Timer::KeepAlive { id, generation });
        }
        let stats = &mut self.net.stats;
        stats.clients_connected += 1;
        stats.clients_maximum = stats.clients_maximum.max(stats.clients_connected);

        let mut properties = PropertiesBuf::default();
        if v5 {
            self.announce(&mut properties, assigned.as_deref());
        }
        let connack = ConnAck {
            session_present: present,
            code: ReasonCode::SUCCESS,
            properties: properties.as_properties(),
        };
        self.net.send(id, &Packet::ConnAck(connack));
        if let Some(flight) = self
            .sessions
            .get_mut(session)
            .and_then(|s| s.flight.as_mut())
        {
            flight.window.reconnect();
        }
        self.pump(session);
        Ok(())
    }

    /// Checks that the client may connect. Errors are MQTT 5 reason codes.
    fn admit(&self, connect: &Connect<'_>) -> Result<(), ReasonCode> {
        if connect
            .properties
            .find(PropertyId::AuthenticationMethod)
            .is_some()
        {
            return Err(ReasonCode::BAD_AUTHENTICATION_METHOD);
        }
        if connect.version == Version::V311 && connect.client_id.is_empty() && !connect.clean_start
        {
            return Err(ReasonCode::CLIENT_IDENTIFIER_NOT_VALID);
        }
        if connect
            .will
            .is_some_and(|w| !topic::is_shallow(w.topic.as_bytes()))
        {
            return Err(ReasonCode::TOPIC_NAME_INVALID);
        }
        let known = self.by_client.contains_key(connect.client_id);
        if !known && self.sessions.len() >= self.options.max_sessions {
            return Err(ReasonCode::QUOTA_EXCEEDED);
        }
        if self.options.credentials.is_empty() {
            return Ok(());
        }
        let Some(username) = connect.username else {
            return Err(ReasonCode::NOT_AUTHORIZED);
        };
        let password = connect.password.unwrap_or_default();
        let mut credentials = self.options.credentials.iter();
        if credentials.any(|c| c.username == username && c.password == password) {
            Ok(())
        } else {
            Err(ReasonCode::BAD_USER_NAME_OR_PASSWORD)
        }
    }

    fn refuse(&mut self, id: ConnId, version: Version, reason: ReasonCode) {
        let code = match version {
            Version::V5 => reason,
            // MQTT 3.1.1 section 3.2.2.3.
            Version::V311 => ReasonCode(match reason {
                ReasonCode::CLIENT_IDENTIFIER_NOT_VALID => 2,
                ReasonCode::BAD_USER_NAME_OR_PASSWORD => 4,
                ReasonCode::NOT_AUTHORIZED => 5,
                _ => 3,
            }),
        };
        self.net.send(
            id,
            &Packet::ConnAck(ConnAck {
                code,
                ..ConnAck::default()
            }),
        );
    }

    /// The client's session, taken over from another connection or new; and
    /// whether it existed (section 3.1.2.4, section 4.1).
    fn take_session(&mut self, client_id: &str, clean: bool) -> (SessionId, bool) {
        if let Some(&old) = self.by_client.get(client_id) {
            let conn = self.sessions.get(old).map_or(NONE, |s| s.conn);
            if conn != NONE {
                self.finish(conn, End::Close(ReasonCode::SESSION_TAKEN_OVER));
            }
            if clean {
                self.end_session(old);
            }
        }
        if let Some(&kept) = self.by_client.get(client_id) {
            return (kept, true);
        }
        let client_id: Rc<str> = client_id.into();
        let id = self
            .sessions
            .insert(ClientSession::new(Rc::clone(&client_id)));
        self.by_client.insert(client_id, id);
        (id, false)
    }

    fn will_of(&mut self, connect: &Connect<'_>) -> Option<Box<Will>> {
        let will = connect.will?;
        let taken = split_props(will.properties.as_bytes(), &mut self.scratch);
        let (topic, qos) = (will.topic.as_bytes(), will.qos as u8);
        let message =
            StoredMessage::new(topic, &self.scratch, will.payload, qos, will.retain, None);
        let delay_s = taken.delay_s.unwrap_or(0);
        Some(Box::new(Will {
            message,
            expiry_s: taken.expiry_s,
            delay_s,
        }))
    }

    /// Adds the broker's limits for an MQTT 5 client (section 3.2.2.3), where
    /// they are not the protocol's defaults.
    fn announce(&self, properties: &mut PropertiesBuf, assigned: Option<&str>) {
        let options = &self.options;
        let mut say = |property| {
            // None of these can be too long.
            let said = properties.push(property);
            debug_assert!(said.is_ok());
        };
        if options.receive_maximum != u16::MAX {
            say(Property::ReceiveMaximum(options.receive_maximum));
        }
        say(Property::MaximumPacketSize(options.max_packet_bytes));
        if options.topic_alias_maximum > 0 {
            say(Property::TopicAliasMaximum(options.topic_alias_maximum));
        }
        if let Some(name) = assigned {
            say(Property::AssignedClientIdentifier(name));
        }
    }
}

/// Time without a packet after which a connection is closed, in ms: one and a
/// half times the keep alive (section 3.1.2.10).
pub(crate) fn keep_alive_ms(keep_alive_s: u16) -> u64 {
    u64::from(keep_alive_s) * 1500
}
