//! Handles the packets of one broker. No sockets here: bytes come in as a slice, and what is to be
//! sent is appended to the output buffer.

mod bounds;
mod canary;
mod in_flight;
mod leaving;
mod refused;
mod subscribing;

use std::collections::BTreeMap;
use std::time::Instant;

use pubgauge_driver::Secret;
use pubgauge_mqtt_codec::{
    Connect, Disconnect, Packet, PacketType, PropertiesBuf, Property, Publish, QoS, ReasonCode,
    Version, decode, decode_publish, encode_ack, encode_pingreq, is_publish,
};
use pubgauge_net::tls;

use crate::config::Broker;
use crate::dead::Why;
use crate::gather::Gather;
use crate::notice::Notice;
use bounds::{Credit, MAX_CONTROL, Passing};
pub use canary::{Canaries, Canary};
pub use in_flight::InFlight;
pub use leaving::{Leaving, LeavingStep};

/// Requests of all sessions of a collector.
#[derive(Debug)]
pub struct Asked {
    pub client_id: String,
    pub version: Version,
    pub qos: QoS,
    /// Filters, with the group.
    pub filters: Vec<String>,
    /// The one of them that is for messages of the collector's own, if it sends some.
    pub own_filter: Option<String>,
    /// Filters that an earlier configuration subscribed to, and this one does not.
    pub dropped_filters: Vec<String>,
    pub expiry_s: u32,
    pub keep_alive_s: u16,
    /// Largest packet of a message that is taken, bytes.
    pub largest_message: usize,
    /// Whether brokers are told so, which then discard what is larger (5.0 §3.1.2.11.4).
    pub announces_largest: bool,
    /// Messages in flight that a broker must allow, if they are acknowledged once they are uploaded.
    pub in_flight: Option<InFlight>,
}

/// How far a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// CONNECT was sent, or is to be.
    Greeting,
    /// SUBSCRIBE was sent.
    Subscribing,
    /// The subscriptions stand.
    Up,
}

/// One broker's session, over all connections.
#[derive(Debug)]
pub struct BrokerSession {
    /// Number of the peer.
    pub peer: u32,
    /// Address of the broker, as messages carry it.
    pub broker: String,
    /// As errors name it: SCHEME://HOST:PORT.
    pub shown: String,
    username: Option<String>,
    password: Option<Secret>,
    pub state: SessionState,
    /// Connections made, which tells acknowledgements of one from those of another.
    pub connection: u32,
    /// Whether the broker has had a session of this collector.
    pub had_session: bool,
    /// Whether it had one when the present connection was made.
    pub was_present: bool,
    /// It is subscribed to nothing that was dropped.
    pub has_left: bool,
    /// Most seconds between two packets, as the broker wants it.
    pub keep_alive_s: u16,
    /// SUBSCRIBEs on the present connection; the last one's answer counts.
    round: u16,
    /// The filters of that one.
    awaited: Vec<String>,
    /// How far it is on its way out, if it is to be given up.
    pub leaving: Option<Leaving>,
    /// A message came since that was looked at last.
    came: bool,
    /// Pings that were sent on the present connection, and those that were answered.
    pings: u64,
    pongs: u64,
    /// Messages of its own through the broker, if they are asked for.
    pub canary: Option<Canary>,
    /// QoS 2 messages that were stored and not released, with the checksums of their topics and payloads.
    unreleased: BTreeMap<u16, u32>,
    /// Control packets that the broker may send on the present connection.
    credit: Credit,
    /// A message that is too large, of which not all has come.
    passing: Option<Passing>,
    /// Dead letters over all connections, by why they are.
    dead: [u64; Why::ALL.len()],
}

/// Context of a session that takes in bytes.
pub struct Taking<'a> {
    pub asked: &'a Asked,
    pub gather: &'a mut Gather,
    pub out: &'a mut Vec<u8>,
    pub notices: &'a mut Vec<Notice>,
    /// When the bytes were read, on both clocks.
    pub at: (Instant, i64),
    /// Messages received, by QoS, and those marked as sent before.
    pub received: [u64; 3],
    pub marked_duplicate: u64,
    pub payload_bytes: u64,
    /// Dead letters, by why they are.
    pub dead: [u64; Why::ALL.len()],
}

impl BrokerSession {
    pub fn new(peer: u32, broker: String, shown: String) -> BrokerSession {
        BrokerSession {
            peer,
            broker,
            shown,
            username: None,
            password: None,
            state: SessionState::Greeting,
            connection: 0,
            had_session: false,
            was_present: false,
            has_left: false,
            keep_alive_s: 0,
            round: 0,
            awaited: Vec::new(),
            leaving: None,
            came: false,
            pings: 0,
            pongs: 0,
            canary: None,
            unreleased: BTreeMap::new(),
            credit: Credit::default(),
            passing: None,
            dead: [0; Why::ALL.len()],
        }
    }

    /// Logs in as the configuration says, from the next connection on.
    pub fn log_in_as(&mut self, broker: &Broker) {
        self.username.clone_from(&broker.endpoint.username);
        self.password.clone_from(&broker.password);
    }

    /// A connection is made: appends the CONNECT.
    ///
    /// # Errors
    /// If something in it is longer than the protocol allows.
    pub fn begin(&mut self, asked: &Asked, out: &mut Vec<u8>) -> Result<(), String> {
        self.state = SessionState::Greeting;
        self.connection += 1;
        self.round = 0;
        (self.credit, self.passing) = (Credit::default(), None);
        (self.pings, self.pongs) = (0, 0);
        self.keep_alive_s = asked.keep_alive_s;
        let mut properties = PropertiesBuf::default();
        if asked.version == Version::V5 {
            // A number always fits.
            if !self.is_dropping() {
                let _ = properties.push(Property::SessionExpiryInterval(asked.expiry_s));
            }
            if asked.in_flight.is_some() {
                let _ = properties.push(Property::ReceiveMaximum(u16::MAX));
            }
            if asked.announces_largest {
                let largest = u32::try_from(asked.largest_message).unwrap_or(u32::MAX);
                let _ = properties.push(Property::MaximumPacketSize(largest));
            }
        }
        let connect = Connect {
            version: asked.version,
            clean_start: self.is_dropping(),
            keep_alive_s: asked.keep_alive_s,
            client_id: &asked.client_id,
            will: None,
            username: self.username.as_deref(),
            password: self
                .password
                .as_ref()
                .map(|password| password.reveal().as_bytes()),
            properties: properties.as_properties(),
        };
        let encoded = Packet::Connect(connect).encode(asked.version, out);
        encoded.map_err(|error| format!("{}: the CONNECT cannot be encoded: {error}", self.shown))
    }

    /// Takes in `bytes`, as many whole packets as they hold, and returns how many bytes that was.
    ///
    /// # Errors
    /// Why the connection cannot go on, in words.
    pub fn receive(&mut self, bytes: &[u8], taking: &mut Taking<'_>) -> Result<usize, String> {
        let version = taking.asked.version;
        let mut at = 0;
        loop {
            at += self.pass(bytes.len() - at, taking);
            let rest = &bytes[at..];
            if self.state != SessionState::Greeting && is_publish(rest) {
                match decode_publish(rest, version, taking.asked.largest_message) {
                    Ok(Some((publish, len))) => {
                        self.message(&publish, taking)?;
                        at += len;
                    }
                    Ok(None) => return Ok(at),
                    Err(error) if error.reason == ReasonCode::PACKET_TOO_LARGE => {
                        if !self.begin_passing(rest, taking)? {
                            return Ok(at);
                        }
                    }
                    Err(error) => at += self.refuse_malformed(rest, &error, taking)?,
                }
                continue;
            }
            match decode(rest, version, MAX_CONTROL) {
                Ok(Some((packet, len))) => {
                    self.control(packet, taking)?;
                    at += len;
                }
                Ok(None) => return Ok(at),
                Err(_) if self.state == SessionState::Greeting && tls::looks_like_tls(rest) => {
                    return Err(tls::unexpected(&self.shown).to_string());
                }
                Err(error) => return Err(self.breach(&error)),
            }
        }
    }

    #[cold]
    fn breach(&self, what: &dyn std::fmt::Display) -> String {
        format!(
            "{}: {what}\n  hint: is it an MQTT server, and of this version?",
            self.shown
        )
    }

    #[inline]
    fn message(&mut self, publish: &Publish<'_>, taking: &mut Taking<'_>) -> Result<(), String> {
        if publish.topic.is_empty() {
            // No aliases are allowed: Topic Alias Maximum is 0 if absent (5.0 §3.1.2.11.5).
            return Err(
                self.breach(&"a PUBLISH with a topic alias that was not allowed (5.0 §3.3.2.3.4)")
            );
        }
        self.came = true;
        let is_canary = |canary: &mut Canary| canary.takes(publish, taking.at.0);
        if self.canary.as_mut().is_some_and(is_canary) {
            let (peer, connection) = (self.peer, self.connection);
            taking.gather.acknowledge_own(peer, connection, publish);
            return Ok(());
        }
        let again = publish.qos == QoS::ExactlyOnce && self.came_before(publish);
        if publish.qos == QoS::ExactlyOnce {
            // Its PUBREL.
            self.credit.ask();
        }
        if !again {
            taking.gather.message(publish, &self.broker, taking.at);
            taking.received[publish.qos as usize] += 1;
            taking.payload_bytes += publish.payload.len() as u64;
            taking.marked_duplicate += u64::from(publish.dup);
        }
        taking
            .gather
            .acknowledge(self.peer, self.connection, publish.qos, publish.packet_id);
        Ok(())
    }

    /// Notes a QoS 2 message; whether it is the one that came under its identifier before and was not released. A broker
    /// that was killed may give an identifier again, and marks what it sends again (DUP, 3.3.1.1).
    fn came_before(&mut self, publish: &Publish<'_>) -> bool {
        let mut sum = crc32fast::Hasher::new();
        sum.update(publish.topic.as_bytes());
        sum.update(publish.payload);
        let sum = sum.finalize();
        self.unreleased.insert(publish.packet_id, sum) == Some(sum) && publish.dup
    }

    fn control(&mut self, packet: Packet<'_>, taking: &mut Taking<'_>) -> Result<(), String> {
        if !self.credit.spend() {
            return Err(self.breach(&format_args!(
                "more control packets than anything asked for, the last of them {}",
                packet.packet_type().name()
            )));
        }
        match (self.state, packet) {
            (SessionState::Greeting, Packet::ConnAck(connack)) => self.accepted(&connack, taking),
            (SessionState::Greeting, Packet::Disconnect(end)) | (_, Packet::Disconnect(end))
                if taking.asked.version == Version::V5 =>
            {
                Err(self.dismissed(&end))
            }
            (SessionState::Greeting, other) => Err(self.breach(&format_args!(
                "{} before its CONNACK",
                other.packet_type().name()
            ))),
            (_, Packet::SubAck(suback)) => self.subscribed(&suback, taking),
            (_, Packet::UnsubAck(unsuback)) => {
                self.unsubscribed(unsuback.packet_id);
                Ok(())
            }
            (_, Packet::PubRel(ack)) => {
                self.unreleased.remove(&ack.packet_id);
                encode_ack(PacketType::PubComp, ack.packet_id, taking.out);
                Ok(())
            }
            (_, Packet::PubAck(ack))
                if (self.canary.as_mut())
                    .is_some_and(|canary| canary.acknowledged(ack.packet_id, ack.reason)) =>
            {
                Ok(())
            }
            (_, Packet::PingResp) => {
                self.pongs += 1;
                Ok(())
            }
            (_, other) => Err(self.breach(&format_args!(
                "an unexpected {}",
                other.packet_type().name()
            ))),
        }
    }

    /// Appends the next message of the collector's own, if it is due.
    ///
    /// # Errors
    /// If something in it is longer than the protocol allows.
    pub fn send_canary(
        &mut self,
        now: Instant,
        asked: &Asked,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        let Some(canary) = &mut self.canary else {
            return Ok(());
        };
        let before = out.len();
        let sent = canary.send(now, asked.version, out);
        if out.len() > before {
            // Its PUBACK.
            self.credit.ask();
        }
        sent.map_err(|error| format!("{}: the canary cannot be encoded: {error}", self.shown))
    }

    /// Appends a PINGREQ.
    pub fn ping(&mut self, out: &mut Vec<u8>) {
        self.credit.ask();
        self.pings += 1;
        encode_pingreq(out);
    }

    /// Appends the DISCONNECT that keeps the session.
    pub fn leave(&self, asked: &Asked, out: &mut Vec<u8>) {
        // It cannot fail: success without properties.
        let _ = Packet::Disconnect(Disconnect::default()).encode(asked.version, out);
    }
}

#[cfg(test)]
mod tests;
