//! What a collector does with the packets of one broker. No sockets here: bytes come in as a slice, and what is to be
//! sent is appended to the output buffer.

use std::collections::BTreeSet;
use std::time::Instant;

use pubgauge_driver::Secret;
use pubgauge_mqtt_codec::{
    ConnAck, Connect, Disconnect, FiltersBuf, MAX_PACKET_LEN, Packet, PacketType, PropertiesBuf,
    Property, PropertyId, Publish, QoS, ReasonCode, RetainHandling, SubAck, Subscribe,
    SubscribeOptions, TopicFiltersBuf, Unsubscribe, Version, connect_return_code_words, decode,
    decode_publish, encode_ack, encode_pingreq, is_publish,
};
use pubgauge_net::{login, tls};

use crate::gather::Gather;
use crate::notice::Notice;

/// What all sessions of a collector ask for.
#[derive(Debug)]
pub struct Asked {
    pub client_id: String,
    pub version: Version,
    pub qos: QoS,
    /// Filters, with the group.
    pub filters: Vec<String>,
    /// Filters that an earlier configuration subscribed to, and this one does not.
    pub dropped_filters: Vec<String>,
    pub expiry_s: u32,
    pub keep_alive_s: u16,
    pub password: Option<Secret>,
}

/// How far a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// CONNECT was sent, or is to be.
    Greeting,
    /// SUBSCRIBE was sent.
    Subscribing,
    /// The subscriptions stand.
    Up,
}

/// One broker's session, over all connections.
#[derive(Debug)]
pub struct Session {
    /// Number of the peer.
    pub peer: u32,
    /// Address of the broker, as messages carry it.
    pub broker: String,
    /// As errors name it: SCHEME://HOST:PORT.
    pub shown: String,
    pub username: Option<String>,
    pub state: State,
    /// Connections made, which tells acknowledgements of one from those of another.
    pub connection: u32,
    /// Whether the broker has had a session of this collector.
    pub had_session: bool,
    /// Whether it had one when the present connection was made.
    pub was_present: bool,
    /// The subscriptions have stood since the collector began.
    pub was_up: bool,
    /// Most seconds between two packets, as the broker wants it.
    pub keep_alive_s: u16,
    /// QoS 2 messages that were stored and not released.
    unreleased: BTreeSet<u16>,
}

/// What a session works with while it takes in bytes.
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
}

const SUBSCRIBE_ID: u16 = 1;
const UNSUBSCRIBE_ID: u16 = 2;

impl Session {
    pub fn new(peer: u32, broker: String, shown: String, username: Option<String>) -> Session {
        Session {
            peer,
            broker,
            shown,
            username,
            state: State::Greeting,
            connection: 0,
            had_session: false,
            was_present: false,
            was_up: false,
            keep_alive_s: 0,
            unreleased: BTreeSet::new(),
        }
    }

    /// A connection is made: appends the CONNECT.
    ///
    /// # Errors
    /// If something in it is longer than the protocol allows.
    pub fn begin(&mut self, asked: &Asked, out: &mut Vec<u8>) -> Result<(), String> {
        self.state = State::Greeting;
        self.connection += 1;
        self.keep_alive_s = asked.keep_alive_s;
        let mut properties = PropertiesBuf::default();
        if asked.version == Version::V5 {
            // A number always fits.
            let _ = properties.push(Property::SessionExpiryInterval(asked.expiry_s));
        }
        let connect = Connect {
            version: asked.version,
            clean_start: false,
            keep_alive_s: asked.keep_alive_s,
            client_id: &asked.client_id,
            will: None,
            username: self.username.as_deref(),
            password: asked
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
            let rest = &bytes[at..];
            if self.state != State::Greeting && is_publish(rest) {
                match decode_publish(rest, version, MAX_PACKET_LEN) {
                    Ok(Some((publish, len))) => {
                        self.message(&publish, taking)?;
                        at += len;
                    }
                    Ok(None) => return Ok(at),
                    Err(error) => return Err(self.breach(&error)),
                }
                continue;
            }
            match decode(rest, version, MAX_PACKET_LEN) {
                Ok(Some((packet, len))) => {
                    self.control(packet, taking)?;
                    at += len;
                }
                Ok(None) => return Ok(at),
                Err(_) if self.state == State::Greeting && tls::looks_like_tls(rest) => {
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
        let again = publish.qos == QoS::ExactlyOnce && !self.unreleased.insert(publish.packet_id);
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

    fn control(&mut self, packet: Packet<'_>, taking: &mut Taking<'_>) -> Result<(), String> {
        match (self.state, packet) {
            (State::Greeting, Packet::ConnAck(connack)) => self.accepted(&connack, taking),
            (State::Greeting, Packet::Disconnect(end)) | (_, Packet::Disconnect(end))
                if taking.asked.version == Version::V5 =>
            {
                Err(self.dismissed(&end))
            }
            (State::Greeting, other) => Err(self.breach(&format_args!(
                "{} before its CONNACK",
                other.packet_type().name()
            ))),
            (_, Packet::SubAck(suback)) if suback.packet_id == SUBSCRIBE_ID => {
                self.subscribed(&suback, taking)
            }
            (_, Packet::PubRel(ack)) => {
                self.unreleased.remove(&ack.packet_id);
                encode_ack(PacketType::PubComp, ack.packet_id, taking.out);
                Ok(())
            }
            (_, Packet::PingResp | Packet::UnsubAck(_)) => Ok(()),
            (_, other) => Err(self.breach(&format_args!(
                "an unexpected {}",
                other.packet_type().name()
            ))),
        }
    }

    fn accepted(&mut self, connack: &ConnAck<'_>, taking: &mut Taking<'_>) -> Result<(), String> {
        if connack.code != ReasonCode::SUCCESS {
            return Err(self.refused(connack, taking.asked));
        }
        if !connack.session_present {
            self.unreleased.clear();
            if self.had_session {
                taking.notices.push(Notice::SessionLost {
                    broker: self.broker.clone(),
                });
            }
        }
        self.had_session |= connack.session_present;
        self.was_present = connack.session_present;
        if let Some(wanted) = connack.properties.number(PropertyId::ServerKeepAlive) {
            self.keep_alive_s = u16::try_from(wanted).unwrap_or(u16::MAX);
        }
        self.state = State::Subscribing;
        let encoded = self.subscribe(taking);
        encoded.map_err(|error| format!("{}: the SUBSCRIBE cannot be encoded: {error}", self.shown))
    }

    fn subscribe(&self, taking: &mut Taking<'_>) -> Result<(), pubgauge_mqtt_codec::EncodeError> {
        let asked = taking.asked;
        let mut filters = FiltersBuf::default();
        let is_v5 = asked.version == Version::V5;
        for filter in &asked.filters {
            let options = SubscribeOptions {
                qos: asked.qos,
                no_local: false,
                retain_as_published: is_v5,
                // With every SUBSCRIBE all retained messages would come again.
                retain_handling: if is_v5 {
                    RetainHandling::SendIfNew
                } else {
                    RetainHandling::Send
                },
            };
            filters.push(filter, options)?;
        }
        let subscribe = Subscribe {
            packet_id: SUBSCRIBE_ID,
            filters: filters.as_filters(),
            ..Subscribe::default()
        };
        Packet::Subscribe(subscribe).encode(asked.version, taking.out)?;
        if !asked.dropped_filters.is_empty() {
            let mut filters = TopicFiltersBuf::default();
            for filter in &asked.dropped_filters {
                filters.push(filter)?;
            }
            let unsubscribe = Unsubscribe {
                packet_id: UNSUBSCRIBE_ID,
                filters: filters.as_filters(),
                ..Unsubscribe::default()
            };
            Packet::Unsubscribe(unsubscribe).encode(asked.version, taking.out)?;
        }
        Ok(())
    }

    fn subscribed(&mut self, suback: &SubAck<'_>, taking: &mut Taking<'_>) -> Result<(), String> {
        let asked = taking.asked;
        if suback.codes.len() != asked.filters.len() {
            return Err(
                self.breach(&"a SUBACK with another number of codes than filters were asked for")
            );
        }
        let broker = || self.broker.clone();
        let mut refused = 0;
        for (filter, &code) in asked.filters.iter().zip(suback.codes) {
            let filter = filter.clone();
            if code >= 0x80 {
                refused += 1;
                let why = ReasonCode(code).words().to_owned();
                taking.notices.push(Notice::SubscriptionRefused {
                    broker: broker(),
                    filter,
                    why,
                });
            } else if code < asked.qos as u8 {
                taking.notices.push(Notice::LowerQos {
                    broker: broker(),
                    filter,
                    qos: code,
                });
            }
        }
        if refused == asked.filters.len() {
            return Err(format!(
                "{}: the broker refused every subscription\n  hint: may this user subscribe to these topics? Does the broker have shared subscriptions?",
                self.shown
            ));
        }
        self.state = State::Up;
        (self.had_session, self.was_up) = (true, true);
        Ok(())
    }

    fn refused(&self, connack: &ConnAck<'_>, asked: &Asked) -> String {
        let code = connack.code;
        let is_v311 = asked.version == Version::V311;
        let (words, number) = if is_v311 {
            (
                connect_return_code_words(code.0),
                format!("return code {}", code.0),
            )
        } else {
            (code.words(), format!("reason code 0x{:02x}", code.0))
        };
        let hint = match (is_v311, code.0) {
            (true, 4 | 5) | (false, 0x86 | 0x87) => {
                let (what, hint) = login::refused(
                    &self.shown,
                    self.username.is_some(),
                    asked.password.is_some(),
                );
                format!(": {what}\n  hint: {hint}")
            }
            (true, 1) | (false, 0x84) => "\n  hint: set `mqtt` to what the broker speaks".into(),
            (true, 2) | (false, 0x85) => {
                "\n  hint: the broker does not take this name as client identifier".into()
            }
            _ => String::new(),
        };
        let told = connack.properties.text(PropertyId::ReasonString);
        let told = told.map(|told| format!(": {told}")).unwrap_or_default();
        format!(
            "{}: the broker refused the connection: {words} ({number}){told}{hint}",
            self.shown
        )
    }

    fn dismissed(&self, end: &Disconnect<'_>) -> String {
        let hint = match end.reason {
            ReasonCode::SESSION_TAKEN_OVER => {
                "\n  hint: another collector has the same name, or two of the addresses lead to one broker"
            }
            _ => "",
        };
        format!(
            "{}: the broker ended the connection: {}{hint}",
            self.shown, end.reason
        )
    }

    /// Appends a PINGREQ.
    pub fn ping(&self, out: &mut Vec<u8>) {
        encode_pingreq(out);
    }

    /// Appends the DISCONNECT that keeps the session.
    pub fn leave(&self, asked: &Asked, out: &mut Vec<u8>) {
        // It cannot fail: success without properties.
        let _ = Packet::Disconnect(Disconnect::default()).encode(asked.version, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn asked(version: Version) -> Asked {
        Asked {
            client_id: "c".into(),
            version,
            qos: QoS::ExactlyOnce,
            filters: vec!["a/#".into(), "b/#".into()],
            dropped_filters: vec!["old/#".into()],
            expiry_s: 60,
            keep_alive_s: 30,
            password: None,
        }
    }

    /// A session, and what it has gathered, sent and told.
    struct Bench {
        asked: Asked,
        session: Session,
        gather: Gather,
        out: Vec<u8>,
        notices: Vec<Notice>,
    }

    impl Bench {
        fn new(version: Version) -> Bench {
            Bench {
                asked: asked(version),
                session: Session::new(3, "h:1".into(), "mqtt://h:1".into(), None),
                gather: Gather::new(1, 1),
                out: Vec::new(),
                notices: Vec::new(),
            }
        }

        fn receive(&mut self, bytes: &[u8]) -> Result<usize, String> {
            let mut taking = Taking {
                asked: &self.asked,
                gather: &mut self.gather,
                out: &mut self.out,
                notices: &mut self.notices,
                at: (Instant::now(), 5),
                received: [0; 3],
                marked_duplicate: 0,
                payload_bytes: 0,
            };
            self.session.receive(bytes, &mut taking)
        }

        /// Connects and subscribes; the server has a session or not.
        fn up(&mut self, session_present: u8) {
            self.session.begin(&self.asked, &mut self.out).unwrap();
            let is_v5 = self.asked.version == Version::V5;
            let (connack, suback): (&[u8], &[u8]) = match is_v5 {
                true => (&[0x20, 3, session_present, 0, 0], &[0x90, 5, 0, 1, 0, 2, 2]),
                false => (&[0x20, 2, session_present, 0], &[0x90, 4, 0, 1, 2, 2]),
            };
            self.receive(connack).unwrap();
            assert_eq!(self.session.state, State::Subscribing);
            self.receive(suback).unwrap();
            assert_eq!(self.session.state, State::Up);
            self.out.clear();
        }
    }

    /// A PUBLISH of QoS 2 under 3.1.1.
    fn publish(id: u8, dup: bool) -> [u8; 8] {
        [0x34 | u8::from(dup) << 3, 6, 0, 1, b'a', 0, id, b'x']
    }

    #[test]
    fn it_asks_for_a_session_that_lasts_and_leaves_old_filters() {
        for version in [Version::V5, Version::V311] {
            let mut bench = Bench::new(version);
            bench.session.begin(&bench.asked, &mut bench.out).unwrap();
            let Ok(Some((Packet::Connect(connect), len))) =
                decode(&bench.out, version, MAX_PACKET_LEN)
            else {
                panic!("no CONNECT");
            };
            assert!(!connect.clean_start && connect.client_id == "c" && connect.keep_alive_s == 30);
            let expiry = connect.properties.number(PropertyId::SessionExpiryInterval);
            assert_eq!(expiry, (version == Version::V5).then_some(60));
            bench.out.drain(..len);
            let connack: &[u8] = if version == Version::V5 {
                &[0x20, 3, 0, 0, 0]
            } else {
                &[0x20, 2, 0, 0]
            };
            bench.receive(connack).unwrap();
            let Ok(Some((Packet::Subscribe(subscribe), len))) =
                decode(&bench.out, version, MAX_PACKET_LEN)
            else {
                panic!("no SUBSCRIBE");
            };
            let filters: Vec<_> = subscribe
                .filters
                .iter()
                .map(|(filter, options)| (filter, options.qos))
                .collect();
            assert_eq!(
                filters,
                [("a/#", QoS::ExactlyOnce), ("b/#", QoS::ExactlyOnce)]
            );
            let Ok(Some((Packet::Unsubscribe(gone), _))) =
                decode(&bench.out[len..], version, MAX_PACKET_LEN)
            else {
                panic!("no UNSUBSCRIBE");
            };
            assert_eq!(gone.filters.iter().collect::<Vec<_>>(), ["old/#"]);
        }
    }

    #[test]
    fn a_message_of_qos_2_is_stored_once_and_acknowledged_on_the_connection_that_asks() {
        let mut bench = Bench::new(Version::V311);
        bench.up(0);
        bench.receive(&publish(7, false)).unwrap();
        // The connection is lost before the acknowledgement; the server sends it again.
        bench.up(1);
        bench.receive(&publish(7, true)).unwrap();
        let commit = bench.gather.take(0);
        assert_eq!(commit.messages, 1);
        let acks: Vec<_> = commit
            .acks
            .iter()
            .map(|acks| (acks.peer, acks.connection, &acks.bytes[..]))
            .collect();
        assert_eq!(
            acks,
            [(3, 1, &[0x50, 2, 0, 7][..]), (3, 2, &[0x50, 2, 0, 7])]
        );
        // Released, the identifier is free for another message.
        bench.receive(&[0x62, 2, 0, 7]).unwrap();
        assert_eq!(bench.out, [0x70, 2, 0, 7]);
        bench.receive(&publish(7, false)).unwrap();
        assert_eq!(bench.gather.take(0).messages, 1);
        // A server that has forgotten the session begins anew.
        bench.up(0);
        assert_eq!(
            bench.notices,
            [Notice::SessionLost {
                broker: "h:1".into()
            }]
        );
        bench.receive(&publish(7, false)).unwrap();
        assert_eq!(bench.gather.take(0).messages, 1);
    }

    #[test]
    fn refused_and_lower_subscriptions_are_told() {
        let mut bench = Bench::new(Version::V5);
        bench.session.begin(&bench.asked, &mut bench.out).unwrap();
        bench.receive(&[0x20, 3, 0, 0, 0]).unwrap();
        bench.receive(&[0x90, 5, 0, 1, 0, 0x87, 1]).unwrap();
        let told: Vec<String> = bench.notices.iter().map(Notice::to_string).collect();
        assert_eq!(
            told[0],
            "h:1: the subscription a/# was refused: not authorized"
        );
        assert_eq!(told[1], "h:1: delivers b/# at QoS 1 at the most");
        assert_eq!(bench.session.state, State::Up);
    }

    #[test]
    fn a_packet_in_parts_is_waited_for() {
        let mut bench = Bench::new(Version::V311);
        bench.up(0);
        let whole = [publish(1, false), publish(2, false)].concat();
        for len in 0..8 {
            assert_eq!(bench.receive(&whole[..len]), Ok(0));
        }
        assert_eq!(bench.receive(&whole[..15]), Ok(8));
        assert_eq!(bench.receive(&whole[8..]), Ok(8));
        assert_eq!(bench.gather.take(0).messages, 2);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), v5: bool, up: bool) {
            let mut bench = Bench::new(if v5 { Version::V5 } else { Version::V311 });
            match up {
                true => bench.up(0),
                false => bench.session.begin(&bench.asked, &mut bench.out).unwrap(),
            }
            let taken = bench.receive(&bytes);
            prop_assert!(taken.is_err() || taken.is_ok_and(|taken| taken <= bytes.len()));
        }
    }
}
