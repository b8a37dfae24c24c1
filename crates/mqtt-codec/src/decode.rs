//! From bytes to packets.

use crate::MAX_PACKET_LEN;
use crate::error::DecodeError;
use crate::packet::{
    Ack, Auth, ConnAck, Connect, Disconnect, Filters, Packet, Publish, QoS, SubAck, Subscribe,
    TopicFilters, UnsubAck, Unsubscribe, Version, Will,
};
use crate::packet_type::PacketType;
use crate::property::{Properties, PropertyId, PropertyScope};
use crate::reason::ReasonCode;
use crate::topic;
use crate::wire::{PacketReader, read_varint};

const SECTION_HEADER: &str = "5.0 §2.1.3, 3.1.1 §2.2.2";
const SECTION_REASON: &str = "5.0 §2.4";
const SECTION_PACKET_ID: &str = "5.0 §2.2.1, 3.1.1 §2.3.1";

/// Decodes the packet at the start of `buf`: the packet and how many bytes it took; or `None` if
/// more bytes are needed.
///
/// `version` is what the connection speaks; a CONNECT is in the version that it names itself. A
/// packet longer than `max` bytes in all is refused as soon as its length is known, before it has
/// come in.
///
/// # Errors
/// If the bytes are not a packet of this version.
#[inline]
pub fn decode(
    buf: &[u8],
    version: Version,
    max: usize,
) -> Result<Option<(Packet<'_>, usize)>, DecodeError> {
    let Some((first, body, len)) = frame(buf, max)? else {
        return Ok(None);
    };
    let packet = if first >> 4 == PacketType::Publish as u8 {
        Packet::Publish(publish(first, body, version)?)
    } else {
        decode_rare(first, body, version)?
    };
    Ok(Some((packet, len)))
}

/// Whether the packet that begins in `buf` is a PUBLISH, so that [`decode_publish`] applies.
#[inline]
pub fn is_publish(buf: &[u8]) -> bool {
    matches!(buf.first(), Some(first) if first >> 4 == PacketType::Publish as u8)
}

/// Length in bytes of the whole packet that begins in `buf`, as soon as its fixed header is there;
/// `None` if more bytes are needed to tell.
///
/// # Errors
/// If the fixed header is not one, or says more than `max` bytes.
pub fn packet_len(buf: &[u8], max: usize) -> Result<Option<usize>, DecodeError> {
    Ok(header(buf, max)?.map(|(_, _, len)| len))
}

/// [`decode`] for the message path: takes a PUBLISH only.
///
/// # Errors
/// As [`decode`]; also if the packet is of another type.
#[inline]
pub fn decode_publish(
    buf: &[u8],
    version: Version,
    max: usize,
) -> Result<Option<(Publish<'_>, usize)>, DecodeError> {
    let Some((first, body, len)) = frame(buf, max)? else {
        return Ok(None);
    };
    if first >> 4 != PacketType::Publish as u8 {
        return Err(not_a_publish(first));
    }
    Ok(Some((publish(first, body, version)?, len)))
}

/// How a PUBLISH begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishHead<'a> {
    pub qos: QoS,
    /// As it came: empty where an alias stands for it, and perhaps not UTF-8.
    pub topic: &'a [u8],
    /// 0 at QoS 0.
    pub packet_id: u16,
    /// Length of the whole packet, bytes.
    pub len: usize,
}

/// Reads how the PUBLISH at the start of `buf` begins, for whoever acknowledges one that it does not
/// take; `None` if more bytes are needed, which are 64 KiB at the most.
///
/// # Errors
/// If the bytes do not begin a PUBLISH, or it has no packet identifier where it needs one.
pub fn decode_publish_head(buf: &[u8]) -> Result<Option<PublishHead<'_>>, DecodeError> {
    let Some((first, body_at, len)) = header(buf, MAX_PACKET_LEN)? else {
        return Ok(None);
    };
    if first >> 4 != PacketType::Publish as u8 {
        return Err(not_a_publish(first));
    }
    let body = &buf[body_at..buf.len().min(len)];
    let Some(topic_len) = body.first_chunk() else {
        return Ok(None);
    };
    let with_id = usize::from(first >> 1 & 3 != 0);
    let needed = 2 + usize::from(u16::from_be_bytes(*topic_len)) + 2 * with_id;
    if body.len() < needed && buf.len() < len {
        return Ok(None);
    }
    let mut reader = PacketReader::new(body);
    let topic = reader.binary()?;
    let qos = QoS::from_bits(first >> 1 & 3).unwrap_or_default(); // 3 was refused above.
    let packet_id = match qos {
        QoS::AtMostOnce => 0,
        _ => packet_id(&mut reader)?,
    };
    Ok(Some(PublishHead {
        qos,
        topic,
        packet_id,
        len,
    }))
}

#[cold]
fn not_a_publish(first: u8) -> DecodeError {
    DecodeError::protocol("the packet is not a PUBLISH", SECTION_HEADER).with_found(first)
}

/// First byte, body, and length of a whole packet.
type Frame<'a> = (u8, &'a [u8], usize);

/// Splits the packet at the start of `buf` after its fixed header (§2.1).
#[inline]
fn frame(buf: &[u8], max: usize) -> Result<Option<Frame<'_>>, DecodeError> {
    let Some((first, body_at, len)) = header(buf, max)? else {
        return Ok(None);
    };
    Ok(buf.get(body_at..len).map(|body| (first, body, len)))
}

/// First byte, where the body begins, and length of the whole packet.
#[inline]
fn header(buf: &[u8], max: usize) -> Result<Option<(u8, usize, usize)>, DecodeError> {
    let Some((&first, rest)) = buf.split_first() else {
        return Ok(None);
    };
    check_first_byte(first)?;
    let Some((remaining, length_bytes)) = read_varint(rest)? else {
        return Ok(None);
    };
    let len = 1 + length_bytes + remaining as usize;
    if len > max {
        return Err(DecodeError::protocol(
            "the packet is larger than allowed",
            "5.0 §3.1.2.11.4 and §2.1.4, 3.1.1 §2.2.3",
        )
        .with_reason(ReasonCode::PACKET_TOO_LARGE)
        .with_found(u32::try_from(len).unwrap_or(u32::MAX)));
    }
    Ok(Some((first, 1 + length_bytes, len)))
}

/// Packet type and flags (5.0 §2.1.2, §2.1.3).
#[inline]
fn check_first_byte(first: u8) -> Result<(), DecodeError> {
    let flags = first & 0x0f;
    let expected = match first >> 4 {
        3 => {
            return match flags >> 1 & 3 {
                0 if flags & 8 != 0 => Err(DecodeError::malformed(
                    "a PUBLISH of QoS 0 has the DUP flag set",
                    "5.0 §3.3.1.1, 3.1.1 §3.3.1.1",
                )),
                3 => Err(DecodeError::malformed(
                    "a PUBLISH has QoS 3",
                    "5.0 §3.3.1.2, 3.1.1 §3.3.1.2",
                )),
                _ => Ok(()),
            };
        }
        0 => {
            return Err(DecodeError::malformed(
                "packet type 0",
                "5.0 §2.1.2, 3.1.1 §2.2.1",
            ));
        }
        6 | 8 | 10 => 2,
        _ => 0,
    };
    if flags != expected {
        return Err(DecodeError::malformed(
            "the flags of the fixed header are not those of the packet type",
            SECTION_HEADER,
        )
        .with_found(first));
    }
    Ok(())
}

#[inline]
fn publish(first: u8, body: &[u8], version: Version) -> Result<Publish<'_>, DecodeError> {
    let mut reader = PacketReader::new(body);
    let name = reader.binary()?;
    let name = std::str::from_utf8(name).map_err(|_| {
        DecodeError::malformed("a topic name is not UTF-8", "5.0 §1.5.4, 3.1.1 §1.5.3")
    })?;
    topic::check_response_topic(name)?;
    let qos = QoS::from_bits(first >> 1 & 3).unwrap_or_default(); // 3 was refused above.
    let packet_id = if qos == QoS::AtMostOnce {
        0
    } else {
        packet_id(&mut reader)?
    };
    let properties = properties(
        &mut reader,
        version,
        PropertyScope::in_packet(PacketType::Publish),
    )?;
    if name.is_empty()
        && (version == Version::V311 || properties.find(PropertyId::TopicAlias).is_none())
    {
        return Err(DecodeError::protocol(
            "a PUBLISH has neither topic name nor topic alias",
            "5.0 §3.3.2.1, 3.1.1 §4.7.3",
        ));
    }
    Ok(Publish {
        dup: first & 8 != 0,
        qos,
        retain: first & 1 != 0,
        topic: name,
        packet_id,
        properties,
        payload: reader.remaining_bytes(),
    })
}

#[inline]
fn packet_id(reader: &mut PacketReader<'_>) -> Result<u16, DecodeError> {
    match reader.u16()? {
        0 => Err(DecodeError::protocol(
            "a packet identifier is 0",
            SECTION_PACKET_ID,
        )),
        id => Ok(id),
    }
}

fn decode_rare(first: u8, body: &[u8], version: Version) -> Result<Packet<'_>, DecodeError> {
    let Some(packet_type) = PacketType::from_bits(first >> 4) else {
        return Err(DecodeError::malformed(
            "packet type 0",
            "5.0 §2.1.2, 3.1.1 §2.2.1",
        ));
    };
    let mut reader = PacketReader::new(body);
    let r = &mut reader;
    let place = PropertyScope::in_packet(packet_type);
    let packet = match packet_type {
        PacketType::Connect => Packet::Connect(connect(r)?),
        PacketType::ConnAck => Packet::ConnAck(connack(r, version)?),
        PacketType::Publish => return publish(first, body, version).map(Packet::Publish),
        PacketType::PubAck => Packet::PubAck(ack(r, version, packet_type)?),
        PacketType::PubRec => Packet::PubRec(ack(r, version, packet_type)?),
        PacketType::PubRel => Packet::PubRel(ack(r, version, packet_type)?),
        PacketType::PubComp => Packet::PubComp(ack(r, version, packet_type)?),
        PacketType::Subscribe => Packet::Subscribe(Subscribe {
            packet_id: packet_id(r)?,
            properties: properties(r, version, place)?,
            filters: Filters::checked(r.remaining_bytes(), version)?,
        }),
        PacketType::Unsubscribe => Packet::Unsubscribe(Unsubscribe {
            packet_id: packet_id(r)?,
            properties: properties(r, version, place)?,
            filters: TopicFilters::checked(r.remaining_bytes())?,
        }),
        PacketType::SubAck => Packet::SubAck(SubAck {
            packet_id: packet_id(r)?,
            properties: properties(r, version, place)?,
            codes: codes(r.remaining_bytes(), version, packet_type)?,
        }),
        PacketType::UnsubAck => Packet::UnsubAck(UnsubAck {
            packet_id: packet_id(r)?,
            properties: properties(r, version, place)?,
            codes: match version {
                Version::V5 => codes(r.remaining_bytes(), version, packet_type)?,
                Version::V311 => &[],
            },
        }),
        PacketType::PingReq => Packet::PingReq,
        PacketType::PingResp => Packet::PingResp,
        PacketType::Disconnect => {
            let (reason, properties) = reason_and_properties(r, version, packet_type)?;
            Packet::Disconnect(Disconnect { reason, properties })
        }
        PacketType::Auth => {
            if version == Version::V311 {
                return Err(DecodeError::malformed(
                    "packet type 15 (AUTH)",
                    "3.1.1 §2.2.1",
                ));
            }
            let (reason, properties) = reason_and_properties(r, version, packet_type)?;
            Packet::Auth(Auth { reason, properties })
        }
    };
    reader.end()?;
    Ok(packet)
}

#[inline]
fn properties<'a>(
    reader: &mut PacketReader<'a>,
    version: Version,
    place: PropertyScope,
) -> Result<Properties<'a>, DecodeError> {
    match version {
        Version::V5 => Properties::read(reader, place),
        Version::V311 => Ok(Properties::default()),
    }
}

fn reason(
    reader: &mut PacketReader<'_>,
    packet_type: PacketType,
) -> Result<ReasonCode, DecodeError> {
    let code = ReasonCode(reader.u8()?);
    if !code.is_valid_in(packet_type) && !code.rejects_in(packet_type) {
        return Err(DecodeError::protocol(
            "a reason code that does not belong in this packet",
            SECTION_REASON,
        )
        .with_found(code.0));
    }
    Ok(code)
}

/// Reason code and properties that may both be left out from the end (5.0 §3.4.2.1, §3.14.2.1);
/// 3.1.1 has neither.
fn reason_and_properties<'a>(
    reader: &mut PacketReader<'a>,
    version: Version,
    packet_type: PacketType,
) -> Result<(ReasonCode, Properties<'a>), DecodeError> {
    if version == Version::V311 || reader.is_empty() {
        return Ok(Default::default());
    }
    let code = reason(reader, packet_type)?;
    // Only AUTH may not end here (5.0 §3.15.2.2.1).
    if reader.is_empty() && packet_type != PacketType::Auth {
        return Ok((code, Properties::default()));
    }
    Ok((
        code,
        Properties::read(reader, PropertyScope::in_packet(packet_type))?,
    ))
}

fn ack<'a>(
    reader: &mut PacketReader<'a>,
    version: Version,
    packet_type: PacketType,
) -> Result<Ack<'a>, DecodeError> {
    let packet_id = packet_id(reader)?;
    let (reason, properties) = reason_and_properties(reader, version, packet_type)?;
    Ok(Ack {
        packet_id,
        reason,
        properties,
    })
}

pub(crate) fn codes(
    codes: &[u8],
    version: Version,
    packet_type: PacketType,
) -> Result<&[u8], DecodeError> {
    if codes.is_empty() {
        return Err(DecodeError::protocol(
            "an acknowledgement without a code for any topic filter",
            "5.0 §3.9.3 and §3.11.3, 3.1.1 §3.9.3",
        ));
    }
    let valid = |code: u8| match version {
        Version::V5 => ReasonCode(code).is_valid_in(packet_type),
        Version::V311 => matches!(code, 0..=2 | 0x80),
    };
    match codes.iter().find(|code| !valid(**code)) {
        None => Ok(codes),
        Some(&code) => Err(DecodeError::protocol(
            "a reason code that does not belong in this packet",
            "5.0 §3.9.3 and §3.11.3, 3.1.1 §3.9.3",
        )
        .with_found(code)),
    }
}

fn connect<'a>(reader: &mut PacketReader<'a>) -> Result<Connect<'a>, DecodeError> {
    const SECTION_NAME: &str = "5.0 §3.1.2.1 and §3.1.2.2, 3.1.1 §3.1.2.1 and §3.1.2.2";
    const SECTION_FLAGS: &str = "5.0 §3.1.2.3 to §3.1.2.9, 3.1.1 §3.1.2.3 to §3.1.2.9";
    let unsupported = |what| {
        DecodeError::protocol(what, SECTION_NAME)
            .with_reason(ReasonCode::UNSUPPORTED_PROTOCOL_VERSION)
    };
    let name = reader.binary()?;
    if name == b"MQIsdp" {
        return Err(unsupported("MQTT 3.1 is not supported"));
    }
    if name != b"MQTT" {
        return Err(unsupported("the protocol name is not MQTT"));
    }
    let version = match reader.u8()? {
        4 => Version::V311,
        5 => Version::V5,
        level => return Err(unsupported("unknown protocol level").with_found(level)),
    };
    let flags = reader.u8()?;
    let malformed = |what| Err(DecodeError::malformed(what, SECTION_FLAGS).with_found(flags));
    if flags & 1 != 0 {
        return malformed("the reserved flag of CONNECT is set");
    }
    let has_will = flags & 4 != 0;
    let Some(will_qos) = QoS::from_bits(flags >> 3 & 3) else {
        return malformed("a will has QoS 3");
    };
    if !has_will && flags & 0x38 != 0 {
        return malformed("will QoS or will retain without a will");
    }
    if version == Version::V311 && flags & 0x80 == 0 && flags & 0x40 != 0 {
        return malformed("a password without a user name");
    }
    let keep_alive_s = reader.u16()?;
    let connect_properties = properties(
        reader,
        version,
        PropertyScope::in_packet(PacketType::Connect),
    )?;
    let client_id = reader.string()?;
    let will = if has_will {
        let properties = properties(reader, version, PropertyScope::WILL)?;
        let topic = reader.string()?;
        topic::check_name(topic)?;
        Some(Will {
            topic,
            payload: reader.binary()?,
            qos: will_qos,
            retain: flags & 0x20 != 0,
            properties,
        })
    } else {
        None
    };
    let username = (flags & 0x80 != 0).then(|| reader.string()).transpose()?;
    let password = (flags & 0x40 != 0).then(|| reader.binary()).transpose()?;
    Ok(Connect {
        version,
        clean_start: flags & 2 != 0,
        keep_alive_s,
        client_id,
        will,
        username,
        password,
        properties: connect_properties,
    })
}

fn connack<'a>(
    reader: &mut PacketReader<'a>,
    version: Version,
) -> Result<ConnAck<'a>, DecodeError> {
    let flags = reader.u8()?;
    if flags & 0xfe != 0 {
        return Err(DecodeError::malformed(
            "reserved flags of CONNACK are set",
            "5.0 §3.2.2.1, 3.1.1 §3.2.2.1",
        )
        .with_found(flags));
    }
    let session_present = flags & 1 != 0;
    // A server that refuses the version of an MQTT 5 CONNECT may answer in 3.1.1 form, without
    // properties and with return code 1 (3.1.1 §3.1.2.2); it is told from the length.
    let (code, properties) = match version {
        Version::V311 => {
            let code = reader.u8()?;
            if code > 5 {
                return Err(DecodeError::protocol(
                    "a CONNACK return code that 3.1.1 reserves",
                    "3.1.1 §3.2.2.3",
                )
                .with_found(code));
            }
            (ReasonCode(code), Properties::default())
        }
        Version::V5 => {
            let code = reader.u8()?;
            if reader.is_empty() && code == 1 {
                (
                    ReasonCode::UNSUPPORTED_PROTOCOL_VERSION,
                    Properties::default(),
                )
            } else if !ReasonCode(code).is_valid_in(PacketType::ConnAck) {
                return Err(DecodeError::protocol(
                    "a reason code that does not belong in this packet",
                    "5.0 §3.2.2.2",
                )
                .with_found(code));
            } else {
                let place = PropertyScope::in_packet(PacketType::ConnAck);
                (ReasonCode(code), Properties::read(reader, place)?)
            }
        }
    };
    if session_present && code != ReasonCode::SUCCESS {
        return Err(DecodeError::protocol(
            "a CONNACK refuses the client and claims to have its session",
            "5.0 §3.2.2.1.1, 3.1.1 §3.2.2.2",
        ));
    }
    Ok(ConnAck {
        session_present,
        code,
        properties,
    })
}
