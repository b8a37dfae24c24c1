//! Frames (§2.3.5): type, channel, length, payload, end.

use super::error::DecodeError;

/// The first bytes of a client (§2.2.4).
pub const PROTOCOL_HEADER: [u8; 8] = *b"AMQP\x00\x00\x09\x01";

/// Bytes of a frame that are not payload: seven before it, one after it.
pub const FRAME_OVERHEAD: usize = 8;

/// Every peer takes frames of this length (§4.2.3).
pub const FRAME_MIN: usize = 4096;

/// A whole heartbeat frame (§4.2.7).
pub const HEARTBEAT: [u8; 8] = [8, 0, 0, 0, 0, 0, 0, FRAME_END];

pub(crate) const FRAME_END: u8 = 0xce;

/// Type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    Method = 1,
    /// A content header.
    Header = 2,
    /// A piece of a content body.
    Body = 3,
    Heartbeat = 8,
}

/// A frame, borrowed from the receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its type.
    pub kind: FrameKind,
    /// Its channel; 0 is the connection itself.
    pub channel: u16,
    /// Its contents.
    pub payload: &'a [u8],
}

/// Reads the frame at the start of `bytes` and its length; `None` if more bytes are needed.
///
/// # Errors
/// Bytes that are not a frame, or a frame longer than `frame_max` bytes (frame header and end
/// included).
#[inline]
pub fn decode_frame(
    bytes: &[u8],
    frame_max: usize,
) -> Result<Option<(Frame<'_>, usize)>, DecodeError> {
    let kind = match bytes.first() {
        None => return Ok(None),
        Some(1) => FrameKind::Method,
        Some(2) => FrameKind::Header,
        Some(3) => FrameKind::Body,
        Some(8) => FrameKind::Heartbeat,
        Some(&other) => return not_a_frame(bytes, other),
    };
    let Some(&[_, c1, c0, l3, l2, l1, l0]) = bytes.first_chunk() else {
        return Ok(None);
    };
    let len = u64::from(u32::from_be_bytes([l3, l2, l1, l0])) + FRAME_OVERHEAD as u64;
    if len > frame_max as u64 {
        return Err(DecodeError::FrameTooLong {
            len,
            max: frame_max,
        });
    }
    let len = len as usize;
    let Some(frame) = bytes.get(..len) else {
        return Ok(None);
    };
    if frame[len - 1] != FRAME_END {
        return Err(DecodeError::NoFrameEnd);
    }
    let frame = Frame {
        kind,
        channel: u16::from_be_bytes([c1, c0]),
        payload: &frame[7..len - 1],
    };
    Ok(Some((frame, len)))
}

/// A server that speaks another version sends the header of the one it speaks, and closes.
#[cold]
fn not_a_frame(bytes: &[u8], kind: u8) -> Result<Option<(Frame<'_>, usize)>, DecodeError> {
    let name = &PROTOCOL_HEADER[..4];
    match bytes.first_chunk::<8>() {
        Some([b'A', b'M', b'Q', b'P', a, b, c, d]) => {
            Err(DecodeError::OtherVersion(*a, *b, *c, *d))
        }
        None if bytes.starts_with(name) || name.starts_with(bytes) => Ok(None),
        _ => Err(DecodeError::UnknownFrame(kind)),
    }
}

/// Begins a frame at the end of `out`; [`end_frame`] with the returned position ends it.
#[inline]
pub fn begin_frame(kind: FrameKind, channel: u16, out: &mut Vec<u8>) -> usize {
    let at = out.len();
    let [c1, c0] = channel.to_be_bytes();
    out.extend_from_slice(&[kind as u8, c1, c0, 0, 0, 0, 0]);
    at
}

/// Ends a frame that was begun at `at`: writes its length and its end octet.
///
/// # Panics
/// If `at` did not come from [`begin_frame`] on the same buffer.
#[inline]
pub fn end_frame(at: usize, out: &mut Vec<u8>) {
    let len = (out.len() - at - 7) as u32;
    out[at + 3..at + 7].copy_from_slice(&len.to_be_bytes());
    out.push(FRAME_END);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn another_version_is_told() {
        assert_eq!(
            decode_frame(b"AMQP\x00\x01\x00\x00", 4096),
            Err(DecodeError::OtherVersion(0, 1, 0, 0))
        );
        assert_eq!(decode_frame(b"AMQ", 4096), Ok(None));
        assert_eq!(
            decode_frame(b"HTTP/1.1", 4096),
            Err(DecodeError::UnknownFrame(b'H'))
        );
        assert_eq!(
            decode_frame(b"AMX", 4096),
            Err(DecodeError::UnknownFrame(b'A'))
        );
    }

    #[test]
    fn the_length_and_the_end_are_checked() {
        let mut bytes = Vec::new();
        let at = begin_frame(FrameKind::Body, 7, &mut bytes);
        bytes.extend_from_slice(&[1; 100]);
        end_frame(at, &mut bytes);
        let (frame, len) = decode_frame(&bytes, 108).unwrap().unwrap();
        assert_eq!((frame.channel, frame.payload.len(), len), (7, 100, 108));
        assert_eq!(
            decode_frame(&bytes[..7], 107),
            Err(DecodeError::FrameTooLong { len: 108, max: 107 })
        );
        bytes[107] = 0;
        assert_eq!(decode_frame(&bytes, 108), Err(DecodeError::NoFrameEnd));
        let (heartbeat, len) = decode_frame(&HEARTBEAT, 8).unwrap().unwrap();
        assert_eq!((heartbeat.kind, len), (FrameKind::Heartbeat, 8));
    }

    proptest! {
        #[test]
        fn a_frame_is_not_read_before_it_is_whole(channel: u16, payload in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = Vec::new();
            let at = begin_frame(FrameKind::Method, channel, &mut bytes);
            bytes.extend_from_slice(&payload);
            end_frame(at, &mut bytes);
            for cut in 0..bytes.len() {
                prop_assert_eq!(decode_frame(&bytes[..cut], 4096), Ok(None));
            }
            let expected = Frame { kind: FrameKind::Method, channel, payload: &payload };
            prop_assert_eq!(decode_frame(&bytes, 4096), Ok(Some((expected, bytes.len()))));
        }

        #[test]
        fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..300), max in 0usize..400) {
            let _ = decode_frame(&bytes, max);
        }
    }
}
