//! MQTT as far as the rules need it.

use std::collections::VecDeque;

use pubgauge_mqtt_codec::{
    DecodeError, MAX_PACKET_LEN, Packet, PacketType, PropertyId, QoS, Version, decode, is_publish,
};

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// The client has not sent enough bytes to tell.
    Unknown,
    Mqtt(Version),
    Other,
}

/// What a CONNECT says.
pub(super) struct Introduction {
    pub version: Version,
    pub client_id: String,
}

/// Reads the first bytes of a client: its CONNECT, or `None` while it is incomplete. An error if
/// they are not MQTT.
pub(super) fn introduction(bytes: &[u8]) -> Result<Option<Introduction>, String> {
    if bytes
        .first()
        .is_some_and(|b| b >> 4 != PacketType::Connect as u8)
    {
        return Err("the first byte is not that of an MQTT CONNECT".to_owned());
    }
    match decode(bytes, Version::V5, MAX_PACKET_LEN) {
        Ok(None) => Ok(None),
        Ok(Some((Packet::Connect(connect), _))) => Ok(Some(Introduction {
            version: connect.version,
            client_id: connect.client_id.to_owned(),
        })),
        Ok(Some(_)) => Err("the first packet is not an MQTT CONNECT".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// What the rules must know of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Publish {
        qos: QoS,
        /// 0 at QoS 0.
        packet_id: u16,
        /// It has a topic alias.
        alias: bool,
    },
    PubAck {
        packet_id: u16,
    },
    Other,
}

/// Reads one whole packet.
pub(super) fn look(packet: &[u8], version: Version) -> Result<Seen, DecodeError> {
    let acknowledges = packet[0] >> 4 == PacketType::PubAck as u8;
    if !is_publish(packet) && !acknowledges {
        return Ok(Seen::Other);
    }
    Ok(match decode(packet, version, MAX_PACKET_LEN)? {
        Some((Packet::Publish(publish), _)) => Seen::Publish {
            qos: publish.qos,
            packet_id: publish.packet_id,
            alias: publish.properties.find(PropertyId::TopicAlias).is_some(),
        },
        Some((Packet::PubAck(ack), _)) => Seen::PubAck {
            packet_id: ack.packet_id,
        },
        _ => Seen::Other,
    })
}

/// PUBLISH packets of QoS 1 that went one way and await their PUBACK from the other, in their order:
/// a receiver acknowledges in the order of receiving (5.0 §4.6, 3.1.1 §4.6).
#[derive(Debug, Default)]
pub(super) struct Unacknowledged(VecDeque<(u16, bool)>);

impl Unacknowledged {
    pub(super) fn push(&mut self, packet_id: u16, duplicate: bool) {
        self.0.push_back((packet_id, duplicate));
    }

    /// Whether this acknowledgement answers a duplicate.
    pub(super) fn answers_duplicate(&mut self, packet_id: u16) -> bool {
        let first = self.0.iter().position(|(id, _)| *id == packet_id);
        let entry = first.and_then(|at| self.0.remove(at));
        entry.is_some_and(|(_, duplicate)| duplicate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubgauge_mqtt_codec::{Ack, Connect, PropertiesBuf, Property, Publish};

    fn wire(packet: Packet<'_>, version: Version) -> Vec<u8> {
        let mut out = Vec::new();
        packet.encode(version, &mut out).unwrap();
        out
    }

    #[test]
    fn a_client_introduces_itself_or_speaks_something_else() {
        for version in [Version::V311, Version::V5] {
            let connect = Connect {
                version,
                client_id: "s-3",
                clean_start: true,
                ..Connect::default()
            };
            let bytes = wire(Packet::Connect(connect), version);
            for len in 0..bytes.len() {
                assert!(introduction(&bytes[..len]).unwrap().is_none());
            }
            let whole = introduction(&bytes).unwrap().unwrap();
            assert_eq!((whole.version, &*whole.client_id), (version, "s-3"));
        }
        assert!(introduction(b"AMQP\0\0\x09\x01").is_err());
        assert!(introduction(b"\x10\x04abcd").is_err());
    }

    #[test]
    fn packets_are_told_apart() {
        let mut properties = PropertiesBuf::default();
        properties.push(Property::TopicAlias(3)).unwrap();
        let publish = Publish {
            topic: "a",
            qos: QoS::AtLeastOnce,
            packet_id: 9,
            properties: properties.as_properties(),
            ..Publish::default()
        };
        let ack = Ack {
            packet_id: 7,
            ..Ack::default()
        };
        let seen = |packet| look(&wire(packet, Version::V5), Version::V5).unwrap();
        assert_eq!(
            seen(Packet::Publish(publish)),
            Seen::Publish {
                qos: QoS::AtLeastOnce,
                packet_id: 9,
                alias: true
            }
        );
        assert_eq!(seen(Packet::PubAck(ack)), Seen::PubAck { packet_id: 7 });
        assert_eq!(seen(Packet::PubRec(ack)), Seen::Other);
        assert_eq!(seen(Packet::PingReq), Seen::Other);
        assert!(look(b"\x30\x01\0", Version::V5).is_err());
    }

    #[test]
    fn an_acknowledgement_answers_the_first_of_its_identifier() {
        let mut unacknowledged = Unacknowledged::default();
        for (id, duplicate) in [(1, false), (2, false), (1, true), (1, false)] {
            unacknowledged.push(id, duplicate);
        }
        let answers = [1, 2, 1, 1, 5].map(|id| unacknowledged.answers_duplicate(id));
        assert_eq!(answers, [false, false, true, false, false]);
    }
}
