//! Content: headers with properties (§4.2.6.1), and whole deliveries in one call.

use super::error::{DecodeError, EncodeError};
use super::frame::{FRAME_END, FRAME_OVERHEAD};
use super::table::Table;
use super::wire::{Field, FieldReader, put_short};

/// Class of all content.
const BASIC: u16 = 60;

/// Properties of a message; the others of the specification are skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Properties<'a> {
    /// Name-value pairs of the application.
    pub headers: Option<Table<'a>>,
    /// 1 for transient, 2 for persistent.
    pub delivery_mode: Option<u8>,
    /// 0 (least) to 255.
    pub priority: Option<u8>,
    /// RabbitMQ: time to live in milliseconds, in decimal digits.
    pub expiration: Option<&'a [u8]>,
    /// The application's identifier of the message.
    pub message_id: Option<&'a [u8]>,
}

/// A content header frame's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentHeader<'a> {
    /// Length of the body in bytes, over all body frames.
    pub body_size: u64,
    pub properties: Properties<'a>,
}

impl<'a> ContentHeader<'a> {
    /// Reads a header frame's payload.
    ///
    /// # Errors
    /// Another class than `basic`, properties that are cut off, bytes after them.
    pub fn decode(payload: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = FieldReader(payload);
        let mut head = || Some((reader.u16()?, reader.u16()?, reader.u64()?, reader.u16()?));
        let (class, _, body_size, flags) =
            head().ok_or(DecodeError::Truncated("a content header"))?;
        if class != BASIC {
            return Err(DecodeError::Header("another class than basic"));
        }
        if flags & 1 != 0 {
            return Err(DecodeError::Header("more flags than basic has properties"));
        }
        let properties =
            properties(&mut reader, flags).ok_or(DecodeError::Truncated("a content header"))?;
        match reader.0 {
            [] => Ok(ContentHeader {
                body_size,
                properties,
            }),
            _ => Err(DecodeError::Trailing("a content header")),
        }
    }

    /// The application's name-value pairs of a content header as it came, if it has some and is one.
    #[inline]
    pub fn headers_in(payload: &'a [u8]) -> Option<Table<'a>> {
        // The flags come behind class, weight and size.
        let has_headers = payload.get(12)? & 1 << 5 != 0;
        if !has_headers {
            return None;
        }
        ContentHeader::decode(payload).ok()?.properties.headers
    }

    /// Appends the payload of a header frame.
    ///
    /// # Errors
    /// A string that is too long for its field. What was appended is then incomplete.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let p = &self.properties;
        let flags = u16::from(p.headers.is_some()) << 13
            | u16::from(p.delivery_mode.is_some()) << 12
            | u16::from(p.priority.is_some()) << 11
            | u16::from(p.expiration.is_some()) << 8
            | u16::from(p.message_id.is_some()) << 7;
        out.extend_from_slice(&BASIC.to_be_bytes());
        out.extend_from_slice(&[0, 0]); // Weight.
        out.extend_from_slice(&self.body_size.to_be_bytes());
        out.extend_from_slice(&flags.to_be_bytes());
        if let Some(headers) = &p.headers {
            headers.encode(out)?;
        }
        out.extend(p.delivery_mode);
        out.extend(p.priority);
        for text in [p.expiration, p.message_id].into_iter().flatten() {
            put_short(text, out)?;
        }
        Ok(())
    }
}

fn properties<'a>(r: &mut FieldReader<'a>, flags: u16) -> Option<Properties<'a>> {
    let has = |bit: u16| flags & 1 << bit != 0;
    let skip = |r: &mut FieldReader<'a>, bits: &[u16]| {
        let mut skipped = bits.iter().filter(|bit| has(**bit));
        skipped.try_for_each(|_| r.short().map(drop))
    };
    let mut p = Properties::default();
    skip(r, &[15, 14])?; // content-type, content-encoding
    if has(13) {
        p.headers = Some(Field::get(r)?);
    }
    if has(12) {
        p.delivery_mode = Some(r.u8()?);
    }
    if has(11) {
        p.priority = Some(r.u8()?);
    }
    skip(r, &[10, 9])?; // correlation-id, reply-to
    if has(8) {
        p.expiration = Some(r.short()?);
    }
    if has(7) {
        p.message_id = Some(r.short()?);
    }
    if has(6) {
        r.u64()?; // timestamp
    }
    skip(r, &[5, 4, 3, 2])?; // type, user-id, app-id, cluster-id
    Some(p)
}

/// A whole message for a consumer, borrowed from the receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered<'a> {
    /// The channel it came on.
    pub channel: u16,
    /// Its delivery tag: its number on the channel.
    pub delivery_tag: u64,
    /// It was delivered before.
    pub redelivered: bool,
    /// The key that it was routed by.
    pub routing_key: &'a [u8],
    /// Its content header, for [`ContentHeader::decode`].
    pub header: &'a [u8],
    /// The message.
    pub body: &'a [u8],
}

/// Reads a `basic.deliver` with header and body if all three frames are complete at the start of
/// `bytes`, the body in one frame; returns it and its length.
///
/// `None` for anything else, valid or not: use [`super::decode_frame`] then.
#[inline]
pub fn decode_delivery(bytes: &[u8], frame_max: usize) -> Option<(Delivered<'_>, usize)> {
    let (channel, method, rest) = frame(bytes, 1, frame_max)?;
    let mut r = FieldReader(method);
    if r.u32()? != u32::from(BASIC) << 16 | 60 {
        return None;
    }
    r.short()?; // consumer tag
    let delivery_tag = r.u64()?;
    let redelivered = r.u8()?;
    r.short()?; // exchange
    let routing_key = r.short()?;
    let (header_channel, header, rest) = frame(rest, 2, frame_max)?;
    let mut h = FieldReader(header);
    let class = h.u32()?; // and the weight, 0
    let body_size = h.u64()?;
    let (body_channel, body, rest) = frame(rest, 3, frame_max)?;
    let regular = r.0.is_empty()
        && class == u32::from(BASIC) << 16
        && body.len() as u64 == body_size
        && header_channel == channel
        && body_channel == channel;
    regular.then(|| {
        let delivered = Delivered {
            channel,
            delivery_tag,
            redelivered: redelivered & 1 != 0,
            routing_key,
            header,
            body,
        };
        (delivered, bytes.len() - rest.len())
    })
}

/// A whole frame of this type: its channel, its payload, and what follows.
#[inline]
fn frame(bytes: &[u8], kind: u8, frame_max: usize) -> Option<(u16, &[u8], &[u8])> {
    let &[k, c1, c0, l3, l2, l1, l0] = bytes.first_chunk()?;
    let len = u32::from_be_bytes([l3, l2, l1, l0]) as usize;
    if k != kind || len > frame_max.saturating_sub(FRAME_OVERHEAD) {
        return None;
    }
    let payload = bytes.get(7..7 + len)?;
    match bytes.get(7 + len) {
        Some(&FRAME_END) => Some((
            u16::from_be_bytes([c1, c0]),
            payload,
            &bytes[FRAME_OVERHEAD + len..],
        )),
        _ => None,
    }
}
