//! From packets to bytes.

use crate::decode::codes;
use crate::error::EncodeError;
use crate::packet::{Ack, ConnAck, Connect, Filters, Packet, Publish, QoS, TopicFilters, Version};
use crate::packet_type::PacketType;
use crate::property::{Properties, PropertyScope};
use crate::reason::ReasonCode;
use crate::template::PublishTemplate;
use crate::topic;
use crate::wire::{VARINT_MAX, write_binary, write_varint};

impl Packet<'_> {
    /// Appends the packet in wire form to `out`. A CONNECT is written in its own version.
    ///
    /// # Errors
    /// If it would not be a valid packet; then `out` is as it was before.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let start = out.len();
        self.write(version, out)
            .inspect_err(|_| out.truncate(start))
    }

    fn write(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        if let Packet::Publish(publish) = self {
            return write_publish(publish, version, out);
        }
        let packet_type = self.packet_type();
        let flags = match packet_type {
            PacketType::PubRel | PacketType::Subscribe | PacketType::Unsubscribe => 2,
            _ => 0,
        };
        out.push((packet_type as u8) << 4 | flags);
        // Control packets are short: the body is written first, after room for one byte of
        // length, and moved when it needs more.
        let length_at = out.len();
        out.push(0);
        self.write_body(version, out)?;
        let len = u32::try_from(out.len() - length_at - 1)
            .ok()
            .filter(|len| *len <= VARINT_MAX)
            .ok_or(EncodeError::PacketTooLong)?;
        if len < 128 {
            out[length_at] = len as u8;
        } else {
            let mut length = Vec::with_capacity(4);
            write_varint(&mut length, len);
            out.splice(length_at..=length_at, length);
        }
        Ok(())
    }

    fn write_body(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let place = PropertyScope::in_packet(self.packet_type());
        match self {
            Packet::Connect(connect) => write_connect(connect, out),
            Packet::ConnAck(connack) => write_connack(connack, version, out),
            Packet::Publish(_) => Ok(()), // Written by `write`.
            Packet::PubAck(ack)
            | Packet::PubRec(ack)
            | Packet::PubRel(ack)
            | Packet::PubComp(ack) => write_ack(ack, version, self.packet_type(), out),
            Packet::Subscribe(p) => {
                packet_id(p.packet_id, out)?;
                write_properties(p.properties, version, place, out)?;
                Filters::checked(p.filters.raw(), version).map_err(EncodeError::Invalid)?;
                out.extend_from_slice(p.filters.raw());
                Ok(())
            }
            Packet::Unsubscribe(p) => {
                packet_id(p.packet_id, out)?;
                write_properties(p.properties, version, place, out)?;
                TopicFilters::checked(p.filters.raw()).map_err(EncodeError::Invalid)?;
                out.extend_from_slice(p.filters.raw());
                Ok(())
            }
            Packet::SubAck(p) => {
                packet_id(p.packet_id, out)?;
                write_properties(p.properties, version, place, out)?;
                if p.codes.is_empty() {
                    return Err(EncodeError::Empty("a SUBACK"));
                }
                codes(p.codes, version, PacketType::SubAck).map_err(EncodeError::Invalid)?;
                out.extend_from_slice(p.codes);
                Ok(())
            }
            Packet::UnsubAck(p) => {
                packet_id(p.packet_id, out)?;
                write_properties(p.properties, version, place, out)?;
                match version {
                    Version::V5 if p.codes.is_empty() => Err(EncodeError::Empty("an UNSUBACK")),
                    Version::V5 => {
                        codes(p.codes, version, PacketType::UnsubAck)
                            .map_err(EncodeError::Invalid)?;
                        out.extend_from_slice(p.codes);
                        Ok(())
                    }
                    Version::V311 if p.codes.is_empty() => Ok(()),
                    Version::V311 => Err(EncodeError::OnlyInV5("a code in an UNSUBACK")),
                }
            }
            Packet::PingReq | Packet::PingResp => Ok(()),
            Packet::Disconnect(p) => {
                write_reason(p.reason, p.properties, version, PacketType::Disconnect, out)
            }
            Packet::Auth(_) if version == Version::V311 => Err(EncodeError::OnlyInV5("AUTH")),
            Packet::Auth(p) => write_reason(p.reason, p.properties, version, PacketType::Auth, out),
        }
    }
}

/// Appends a PINGREQ.
pub fn encode_pingreq(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0xc0, 0]);
}

/// Appends a PINGRESP.
pub fn encode_pingresp(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0xd0, 0]);
}

/// Appends a PUBACK, PUBREC, PUBREL or PUBCOMP that says success, in the four bytes that are the
/// same in both versions. For the message path; other types give an invalid packet.
///
/// `packet_id` must not be 0.
#[inline]
pub fn encode_ack(packet_type: PacketType, packet_id: u16, out: &mut Vec<u8>) {
    debug_assert!(packet_id != 0);
    let flags = if packet_type == PacketType::PubRel {
        2
    } else {
        0
    };
    let [high, low] = packet_id.to_be_bytes();
    out.extend_from_slice(&[(packet_type as u8) << 4 | flags, 2, high, low]);
}

fn packet_id(id: u16, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    if id == 0 {
        return Err(EncodeError::PacketIdentifier);
    }
    out.extend_from_slice(&id.to_be_bytes());
    Ok(())
}

fn write_properties(
    properties: Properties<'_>,
    version: Version,
    place: PropertyScope,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    match version {
        Version::V5 => {
            properties.check(place).map_err(EncodeError::Invalid)?;
            properties.write(out)
        }
        Version::V311 if properties.is_empty() => Ok(()),
        Version::V311 => Err(EncodeError::OnlyInV5("a property")),
    }
}

fn write_string(out: &mut Vec<u8>, text: &str, name: &'static str) -> Result<(), EncodeError> {
    if text.contains('\0') {
        return Err(EncodeError::Nul(name));
    }
    write_binary(out, text.as_bytes(), name)
}

/// Reason code and properties, in as few bytes as possible (5.0 §3.4.2.1, §3.14.2.1).
fn write_reason(
    reason: ReasonCode,
    properties: Properties<'_>,
    version: Version,
    packet_type: PacketType,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    if version == Version::V311 {
        return if reason == ReasonCode::SUCCESS && properties.is_empty() {
            Ok(())
        } else {
            Err(EncodeError::OnlyInV5("a reason code or property"))
        };
    }
    if !reason.is_valid_in(packet_type) && !reason.rejects_in(packet_type) {
        return Err(EncodeError::Reason(reason, packet_type.name()));
    }
    if properties.is_empty() && reason == ReasonCode::SUCCESS {
        return Ok(());
    }
    out.push(reason.0);
    // Only AUTH may not end after its reason code (5.0 §3.15.2.2.1).
    if properties.is_empty() && packet_type != PacketType::Auth {
        return Ok(());
    }
    write_properties(
        properties,
        version,
        PropertyScope::in_packet(packet_type),
        out,
    )
}

fn write_ack(
    ack: &Ack<'_>,
    version: Version,
    packet_type: PacketType,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    packet_id(ack.packet_id, out)?;
    write_reason(ack.reason, ack.properties, version, packet_type, out)
}

fn write_connect(connect: &Connect<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let version = connect.version;
    if version == Version::V311 && connect.password.is_some() && connect.username.is_none() {
        return Err(EncodeError::PasswordWithoutUsername);
    }
    let level = match version {
        Version::V311 => 4,
        Version::V5 => 5,
    };
    let mut flags = u8::from(connect.clean_start) << 1;
    if let Some(will) = &connect.will {
        flags |= 4 | (will.qos as u8) << 3 | u8::from(will.retain) << 5;
    }
    flags |= u8::from(connect.password.is_some()) << 6 | u8::from(connect.username.is_some()) << 7;
    out.extend_from_slice(b"\0\x04MQTT");
    out.extend_from_slice(&[level, flags]);
    out.extend_from_slice(&connect.keep_alive_s.to_be_bytes());
    let place = PropertyScope::in_packet(PacketType::Connect);
    write_properties(connect.properties, version, place, out)?;
    write_string(out, connect.client_id, "the client identifier")?;
    if let Some(will) = &connect.will {
        write_properties(will.properties, version, PropertyScope::WILL, out)?;
        topic::check_name(will.topic).map_err(|_| EncodeError::TopicName)?;
        write_binary(out, will.topic.as_bytes(), "the topic of the will")?;
        write_binary(out, will.payload, "the payload of the will")?;
    }
    if let Some(username) = connect.username {
        write_string(out, username, "the user name")?;
    }
    if let Some(password) = connect.password {
        write_binary(out, password, "the password")?;
    }
    Ok(())
}

fn write_connack(
    connack: &ConnAck<'_>,
    version: Version,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let valid = match version {
        Version::V311 => connack.code.0 <= 5,
        Version::V5 => connack.code.is_valid_in(PacketType::ConnAck),
    };
    if !valid || connack.session_present && connack.code != ReasonCode::SUCCESS {
        return Err(EncodeError::Reason(connack.code, "CONNACK"));
    }
    out.extend_from_slice(&[u8::from(connack.session_present), connack.code.0]);
    write_properties(
        connack.properties,
        version,
        PropertyScope::in_packet(PacketType::ConnAck),
        out,
    )
}

fn write_publish(
    publish: &Publish<'_>,
    version: Version,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let (topic, qos, properties) = (publish.topic, publish.qos, publish.properties);
    let template = PublishTemplate::new(version, topic, qos, publish.retain, properties)?;
    if (qos == QoS::AtMostOnce) != (publish.packet_id == 0) {
        return Err(EncodeError::PacketIdentifier);
    }
    if publish.dup && qos == QoS::AtMostOnce {
        return Err(EncodeError::DupAtMostOnce);
    }
    let first = out.len();
    if !template.append(out, publish.packet_id, &[], publish.payload) {
        return Err(EncodeError::PacketTooLong);
    }
    out[first] |= u8::from(publish.dup) << 3;
    Ok(())
}
