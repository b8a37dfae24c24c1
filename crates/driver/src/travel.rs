//! How recorded messages travel: with their own quality of service, as last values or not, and with the header beside the
//! payload instead of in front of it.

use crate::header::HEADER_LEN;

/// How the messages on an advertised topic are to travel, where that is not as the settings say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Travel {
    /// The header travels beside the payload, which is then the body alone.
    pub header_apart: bool,
    /// The quality of service, as MQTT counts it, 0 to 2; as the settings say if absent, and never above that.
    pub qos: Option<u8>,
    /// Whether the system keeps the messages as last values; as the settings say if absent.
    pub retain: Option<bool>,
}

/// The part of a [`Travel`] that a system honours; it lets the rest go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carries {
    /// Where the header travels when it is apart from the payload, in the protocol's words; `None`: it stays in front.
    pub header_in: Option<&'static str>,
    /// The highest quality of service with which messages of their own one travel; `None`: all travel as the settings say.
    pub highest_qos: Option<u8>,
    /// Each message may be a last value or not.
    pub retain: bool,
}

/// The name under which a header travels beside its payload: of a user property, a header field.
pub const HEADER_NAME: &str = "pubgauge";

/// Bytes of a header as text.
pub const HEADER_TEXT_LEN: usize = 2 * HEADER_LEN;

/// A header as hexadecimal digits, for protocols whose properties are text.
#[inline]
pub fn header_text(header: &[u8; HEADER_LEN]) -> [u8; HEADER_TEXT_LEN] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0; HEADER_TEXT_LEN];
    for (pair, byte) in text.as_chunks_mut::<2>().0.iter_mut().zip(header) {
        *pair = [
            DIGITS[usize::from(byte >> 4)],
            DIGITS[usize::from(byte & 15)],
        ];
    }
    text
}

/// The header that [`header_text`] wrote; `None` if the text is none.
#[inline]
pub fn header_of_text(text: &[u8]) -> Option<[u8; HEADER_LEN]> {
    let (pairs, rest) = text.as_chunks::<2>();
    if pairs.len() != HEADER_LEN || !rest.is_empty() {
        return None;
    }
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut header = [0; HEADER_LEN];
    for (byte, [high, low]) in header.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_as_text_are_read_again() {
        let header: [u8; HEADER_LEN] = std::array::from_fn(|n| (n * 17) as u8);
        let text = header_text(&header);
        assert_eq!(&text[..8], b"00112233");
        assert_eq!(header_of_text(&text), Some(header));
        for wrong in [
            &text[1..],
            b"",
            &[b'g'; HEADER_TEXT_LEN],
            b"AABBCCDDEEFF00112233445566778899",
        ] {
            assert_eq!(header_of_text(wrong), None, "{wrong:?}");
        }
    }
}
