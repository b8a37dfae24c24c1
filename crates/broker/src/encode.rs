//! PUBLISH packets as they go out (MQTT 5 and 3.1.1, section 3.3).

use pubgauge_mqtt_codec::{Version, varint_len, write_varint};

use crate::message::StoredMessage;

/// Flag of the first byte: sent before.
pub(crate) const DUP: u8 = 8;

/// An outgoing message, wherever its parts are stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outgoing<'a> {
    pub topic: &'a [u8],
    /// Properties that are passed on unchanged, encoded, without their length.
    pub props: &'a [u8],
    /// Remaining message expiry interval, in seconds.
    pub expiry_s: Option<u32>,
    pub payload: &'a [u8],
}

impl<'a> Outgoing<'a> {
    /// A kept message, with its remaining expiry interval.
    pub(crate) fn from_kept(message: &'a StoredMessage, now_ms: u64) -> Outgoing<'a> {
        Outgoing {
            topic: message.topic(),
            props: message.props(),
            expiry_s: message.remaining_s(now_ms),
            payload: message.payload(),
        }
    }

    fn props_len(&self, ids: &[u32]) -> usize {
        let ids: usize = ids.iter().map(|&id| 1 + varint_len(id)).sum();
        self.props.len() + ids + if self.expiry_s.is_some() { 5 } else { 0 }
    }

    fn remaining_len(&self, version: Version, qos: u8, ids: &[u32]) -> usize {
        let mut len = 2 + self.topic.len() + self.payload.len();
        if qos > 0 {
            len += 2;
        }
        if version == Version::V5 {
            let props = self.props_len(ids);
            len += varint_len(props as u32) + props;
        }
        len
    }

    /// Length of the whole packet in bytes.
    pub(crate) fn packet_len(&self, version: Version, qos: u8, ids: &[u32]) -> usize {
        let remaining = self.remaining_len(version, qos, ids);
        1 + varint_len(remaining as u32) + remaining
    }

    /// Appends the packet. `flags` are the low bits of its first byte;
    /// `packet_id` is ignored where they say QoS 0.
    pub(crate) fn encode(
        &self,
        version: Version,
        flags: u8,
        packet_id: u16,
        ids: &[u32],
        out: &mut Vec<u8>,
    ) {
        let qos = flags >> 1 & 3;
        out.push(0x30 | flags);
        write_varint(out, self.remaining_len(version, qos, ids) as u32);
        out.extend_from_slice(&(self.topic.len() as u16).to_be_bytes());
        out.extend_from_slice(self.topic);
        if qos > 0 {
            out.extend_from_slice(&packet_id.to_be_bytes());
        }
        if version == Version::V5 {
            write_varint(out, self.props_len(ids) as u32);
            if let Some(expiry_s) = self.expiry_s {
                out.push(0x02);
                out.extend_from_slice(&expiry_s.to_be_bytes());
            }
            for &id in ids {
                out.push(0x0b);
                write_varint(out, id);
            }
            out.extend_from_slice(self.props);
        }
        out.extend_from_slice(self.payload);
    }
}

/// The properties of a PUBLISH or a will that the broker itself acts on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Message expiry interval in seconds.
    pub expiry_s: Option<u32>,
    /// Topic alias.
    pub alias: Option<u16>,
    /// Will delay interval in seconds.
    pub delay_s: Option<u32>,
    /// There is a subscription identifier, which a client must not send.
    pub subscription_id: bool,
}

/// Copies the properties that are passed on to `rest`, which is emptied first,
/// and returns the others.
///
/// `raw` comes from the codec, so it is well-formed; were it not, the rest of it
/// would be left out.
pub(crate) fn split_props(mut raw: &[u8], rest: &mut Vec<u8>) -> Taken {
    rest.clear();
    let mut taken = Taken::default();
    while let Some(len) = property_len(raw) {
        let Some((property, after)) = raw.split_at_checked(len) else {
            break;
        };
        match property {
            [0x02, a, b, c, d] => taken.expiry_s = Some(u32::from_be_bytes([*a, *b, *c, *d])),
            [0x18, a, b, c, d] => taken.delay_s = Some(u32::from_be_bytes([*a, *b, *c, *d])),
            [0x23, a, b] => taken.alias = Some(u16::from_be_bytes([*a, *b])),
            [0x0b, ..] => taken.subscription_id = true,
            other => rest.extend_from_slice(other),
        }
        raw = after;
    }
    taken
}

/// Length of the first property with its identifier, of those that a PUBLISH or
/// a will can have (MQTT 5 table 2-4).
fn property_len(raw: &[u8]) -> Option<usize> {
    let text = |at: usize| {
        let len = raw.get(at..at + 2)?;
        Some(2 + usize::from(u16::from_be_bytes([len[0], len[1]])))
    };
    Some(match *raw.first()? {
        0x01 => 2,
        0x02 | 0x18 => 5,
        0x03 | 0x08 | 0x09 => 1 + text(1)?,
        0x0b => 2 + raw[1..].iter().take_while(|b| **b & 0x80 != 0).count(),
        0x23 => 3,
        0x26 => {
            let name = text(1)?;
            1 + name + text(1 + name)?
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use pubgauge_mqtt_codec::{
        MAX_PACKET_LEN, Packet, PropertiesBuf, Property, Publish, QoS, decode,
    };

    use super::*;

    #[test]
    fn properties_are_split_and_the_packet_reads_back() {
        let passed_on = [
            Property::UserProperty(("a", "b")),
            Property::ContentType("text"),
            Property::ResponseTopic("r/t"),
            Property::CorrelationData(b"\0\x01"),
            Property::PayloadFormatIndicator(true),
            Property::UserProperty(("a", "")),
        ];
        let mut all = PropertiesBuf::default();
        all.push(Property::TopicAlias(513)).unwrap();
        for p in passed_on {
            all.push(p).unwrap();
        }
        all.push(Property::MessageExpiryInterval(70_000)).unwrap();
        let mut rest = vec![9];
        let taken = split_props(all.as_properties().as_bytes(), &mut rest);
        assert_eq!((taken.alias, taken.expiry_s), (Some(513), Some(70_000)));
        assert!(!taken.subscription_id && taken.delay_s.is_none());

        let outgoing = Outgoing {
            topic: b"t/u",
            props: &rest,
            expiry_s: taken.expiry_s,
            payload: b"load",
        };
        let mut wire = Vec::new();
        outgoing.encode(Version::V5, DUP | 2, 77, &[300, 1], &mut wire);
        assert_eq!(wire.len(), outgoing.packet_len(Version::V5, 1, &[300, 1]));
        let (packet, len) = decode(&wire, Version::V5, MAX_PACKET_LEN).unwrap().unwrap();
        assert_eq!(len, wire.len());
        let Packet::Publish(publish) = packet else {
            panic!("{packet:?}")
        };
        assert_eq!(
            (publish.topic, publish.payload, publish.packet_id),
            ("t/u", &b"load"[..], 77)
        );
        assert_eq!(
            (publish.qos, publish.dup, publish.retain),
            (QoS::AtLeastOnce, true, false)
        );
        let mut expected = vec![
            Property::MessageExpiryInterval(70_000),
            Property::SubscriptionIdentifier(300),
            Property::SubscriptionIdentifier(1),
        ];
        expected.extend(passed_on);
        assert_eq!(publish.properties.iter().collect::<Vec<_>>(), expected);

        wire.clear();
        outgoing.encode(Version::V311, 1, 0, &[300], &mut wire);
        assert_eq!(wire.len(), outgoing.packet_len(Version::V311, 0, &[]));
        let (packet, _) = decode(&wire, Version::V311, MAX_PACKET_LEN)
            .unwrap()
            .unwrap();
        let publish = Publish {
            topic: "t/u",
            payload: b"load",
            retain: true,
            ..Publish::default()
        };
        assert_eq!(packet, Packet::Publish(publish));
    }

    #[test]
    fn nonsense_is_left_out_without_a_panic() {
        let mut rest = Vec::new();
        for raw in [
            &[0x26][..],
            &[0x26, 0, 9, 1],
            &[0x0b, 0xff],
            &[0x02, 1],
            &[0x7f, 1],
            &[0x0b],
        ] {
            split_props(raw, &mut rest);
            assert!(rest.is_empty(), "{raw:?}");
        }
    }
}
