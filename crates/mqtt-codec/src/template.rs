//! The message path: a PUBLISH whose unchanging part is encoded once.

use crate::error::EncodeError;
use crate::packet::{QoS, Version};
use crate::packet_type::PacketType;
use crate::property::{Properties, PropertyId, PropertyScope};
use crate::topic;
use crate::wire::{VARINT_MAX, varint_len, write_binary};

/// Everything of a PUBLISH but packet identifier and payload, encoded once for a topic.
///
/// [`PublishTemplate::append`] then costs a few copies for a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishTemplate {
    /// Length and bytes of the topic name, room for the packet identifier above QoS 0, and
    /// under MQTT 5 the properties with their length.
    variable_header: Box<[u8]>,
    /// Where the packet identifier goes in `variable_header`; 0 at QoS 0.
    packet_id_at: u32,
    first_byte: u8,
}

impl PublishTemplate {
    /// Prepares messages to `topic` (empty only if the properties have a topic alias).
    ///
    /// # Errors
    /// If the topic is not a valid topic name, or a property is not allowed in a PUBLISH of this
    /// version.
    pub fn new(
        version: Version,
        topic: &str,
        qos: QoS,
        retain: bool,
        properties: Properties<'_>,
    ) -> Result<Self, EncodeError> {
        check_publish(topic, properties, version)?;
        let mut header = Vec::new();
        write_binary(&mut header, topic.as_bytes(), "the topic name")?;
        let mut packet_id_at = 0;
        if qos != QoS::AtMostOnce {
            packet_id_at = header.len() as u32;
            header.extend_from_slice(&[0, 0]);
        }
        if version == Version::V5 {
            properties.write(&mut header)?;
        }
        Ok(PublishTemplate {
            variable_header: header.into_boxed_slice(),
            packet_id_at,
            first_byte: (PacketType::Publish as u8) << 4 | (qos as u8) << 1 | u8::from(retain),
        })
    }

    /// The topic that messages go to; empty where a topic alias stands for it.
    pub fn topic(&self) -> &str {
        let name = self.variable_header.split_first_chunk().map(|(len, rest)| {
            let len = usize::from(u16::from_be_bytes(*len));
            &rest[..len]
        });
        std::str::from_utf8(name.unwrap_or_default()).unwrap_or_default()
    }

    /// Length in bytes of the whole packet with a payload of `payload_len` bytes. `None` if it
    /// is more than the protocol can express.
    #[inline]
    pub fn packet_len(&self, payload_len: usize) -> Option<usize> {
        let remaining = self.variable_header.len().checked_add(payload_len)?;
        if remaining > VARINT_MAX as usize {
            return None;
        }
        Some(1 + varint_len(remaining as u32) + remaining)
    }

    /// Appends a message to `out`, its payload in two parts that follow each other on the wire.
    /// `packet_id` is ignored at QoS 0; above QoS 0 it must not be 0.
    ///
    /// Returns false, and appends nothing, if the payload is longer than the protocol can express.
    #[inline]
    pub fn append(&self, out: &mut Vec<u8>, packet_id: u16, head: &[u8], body: &[u8]) -> bool {
        let remaining = self.variable_header.len() + head.len() + body.len();
        if remaining > VARINT_MAX as usize {
            return false;
        }
        out.reserve(5 + remaining);
        // The fixed header is put together in a register-sized array and copied at once.
        let mut fixed = [self.first_byte, 0, 0, 0, 0];
        let mut rest = remaining as u32;
        let mut len = 1;
        while rest >= 0x80 {
            fixed[len] = rest as u8 | 0x80;
            rest >>= 7;
            len += 1;
        }
        fixed[len] = rest as u8;
        out.extend_from_slice(&fixed[..=len]);
        let at = out.len();
        out.extend_from_slice(&self.variable_header);
        if self.packet_id_at != 0 {
            debug_assert!(packet_id != 0);
            let at = at + self.packet_id_at as usize;
            out[at..at + 2].copy_from_slice(&packet_id.to_be_bytes());
        }
        out.extend_from_slice(head);
        out.extend_from_slice(body);
        true
    }
}

/// Checks the fields before the payload of a PUBLISH.
fn check_publish(
    topic: &str,
    properties: Properties<'_>,
    version: Version,
) -> Result<(), EncodeError> {
    if version == Version::V311 && !properties.is_empty() {
        return Err(EncodeError::OnlyInV5("a property"));
    }
    if !properties.is_empty() {
        let place = PropertyScope::in_packet(PacketType::Publish);
        properties.check(place).map_err(EncodeError::Invalid)?;
    }
    let alias_alone = topic.is_empty() && properties.find(PropertyId::TopicAlias).is_some();
    if !alias_alone && topic::check_name(topic).is_err() {
        return Err(EncodeError::TopicName);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::property::{PropertiesBuf, Property};
    use crate::{MAX_PACKET_LEN, Packet, Publish, decode};

    #[test]
    fn a_template_gives_what_the_encoder_gives() {
        let mut buf = PropertiesBuf::default();
        buf.push(Property::MessageExpiryInterval(7)).unwrap();
        for version in [Version::V311, Version::V5] {
            for qos in [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce] {
                for len in [0, 1, 100, 200, 20_000, 3_000_000] {
                    let properties = match version {
                        Version::V5 => buf.as_properties(),
                        Version::V311 => Properties::default(),
                    };
                    let payload = vec![7; len];
                    let publish = Publish {
                        qos,
                        topic: "a/b",
                        packet_id: if qos == QoS::AtMostOnce { 0 } else { 515 },
                        retain: true,
                        properties,
                        payload: &payload,
                        dup: false,
                    };
                    let mut expected = Vec::new();
                    Packet::Publish(publish)
                        .encode(version, &mut expected)
                        .unwrap();
                    let template =
                        PublishTemplate::new(version, "a/b", qos, true, properties).unwrap();
                    let mut out = Vec::new();
                    let (head, body) = payload.split_at(len.min(16));
                    assert!(template.append(&mut out, 515, head, body));
                    assert_eq!(out, expected);
                    assert_eq!(template.packet_len(len), Some(out.len()));
                    let (packet, consumed) =
                        decode(&out, version, MAX_PACKET_LEN).unwrap().unwrap();
                    assert_eq!((packet, consumed), (Packet::Publish(publish), out.len()));
                }
            }
        }
    }

    #[test]
    fn a_template_refuses_what_is_no_topic() {
        let none = Properties::default();
        for topic in ["", "a/#", "a\0"] {
            assert!(
                PublishTemplate::new(Version::V5, topic, QoS::AtMostOnce, false, none).is_err()
            );
        }
    }
}
