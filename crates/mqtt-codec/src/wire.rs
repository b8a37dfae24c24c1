//! The data representations of both versions: integers, strings, binary data.

use crate::error::{DecodeError, EncodeError};

/// Largest value of a variable byte integer (5.0 §1.5.5).
pub const VARINT_MAX: u32 = 268_435_455;

const SECTION_VARINT: &str = "5.0 §1.5.5, 3.1.1 §2.2.3";
const SECTION_STRING: &str = "5.0 §1.5.4, 3.1.1 §1.5.3";
const SECTION_LENGTH: &str = "5.0 §2.1.4, 3.1.1 §2.2.3";

/// Reads a variable byte integer from the start of `buf`: its value and its length in bytes.
/// `None` if more bytes are needed.
///
/// # Errors
/// More than four bytes, or more bytes than the value needs where that would hide a difference
/// between encodings ("the encoded value MUST use the minimum number of bytes", MQTT-1.5.5-1).
#[inline]
pub fn read_varint(buf: &[u8]) -> Result<Option<(u32, usize)>, DecodeError> {
    let mut value = 0;
    for (i, &byte) in buf.iter().take(4).enumerate() {
        value |= u32::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            if byte == 0 && i > 0 {
                return Err(DecodeError::malformed(
                    "a variable byte integer is longer than its value needs",
                    SECTION_VARINT,
                ));
            }
            return Ok(Some((value, i + 1)));
        }
    }
    if buf.len() < 4 {
        return Ok(None);
    }
    Err(DecodeError::malformed(
        "a variable byte integer is longer than four bytes",
        SECTION_VARINT,
    ))
}

/// Length in bytes of `value` as a variable byte integer.
#[inline]
pub const fn varint_len(value: u32) -> usize {
    match value {
        0..=127 => 1,
        128..=16_383 => 2,
        16_384..=2_097_151 => 3,
        _ => 4,
    }
}

/// Appends `value` as a variable byte integer. Values above [`VARINT_MAX`] are not allowed and lose
/// their top bits.
#[inline]
pub fn write_varint(out: &mut Vec<u8>, mut value: u32) {
    debug_assert!(value <= VARINT_MAX);
    value &= VARINT_MAX;
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a two-byte length and the bytes.
pub(crate) fn write_binary(
    out: &mut Vec<u8>,
    bytes: &[u8],
    name: &'static str,
) -> Result<(), EncodeError> {
    let len = u16::try_from(bytes.len()).map_err(|_| EncodeError::FieldTooLong(name))?;
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}

/// Reads through the body of one packet. Running out of bytes is an error here, since the packet
/// said how long it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketReader<'a> {
    rest: &'a [u8],
}

impl<'a> PacketReader<'a> {
    #[inline]
    pub fn new(body: &'a [u8]) -> Self {
        PacketReader { rest: body }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// All that has not been read.
    #[inline]
    pub fn remaining_bytes(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    #[inline]
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        match self.rest.split_at_checked(len) {
            Some((head, rest)) => {
                self.rest = rest;
                Ok(head)
            }
            None => Err(DecodeError::malformed(
                "the packet ends before its last field does",
                SECTION_LENGTH,
            )),
        }
    }

    #[inline]
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        Ok(self.bytes(1)?[0])
    }

    #[inline]
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        let b = self.bytes(2)?;
        Ok(u16::from_be_bytes([b[0], b[1]]))
    }

    #[inline]
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        let b = self.bytes(4)?;
        Ok(u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
    }

    #[inline]
    pub fn varint(&mut self) -> Result<u32, DecodeError> {
        match read_varint(self.rest)? {
            Some((value, len)) => {
                self.rest = &self.rest[len..];
                Ok(value)
            }
            None => Err(DecodeError::malformed(
                "the packet ends within a variable byte integer",
                SECTION_VARINT,
            )),
        }
    }

    #[inline]
    pub fn binary(&mut self) -> Result<&'a [u8], DecodeError> {
        let len = self.u16()?;
        self.bytes(usize::from(len))
    }

    /// A UTF-8 encoded string: well-formed, without surrogates and without U+0000
    /// (MQTT-1.5.4-1, MQTT-1.5.4-2).
    #[inline]
    pub fn string(&mut self) -> Result<&'a str, DecodeError> {
        let bytes = self.binary()?;
        let text = std::str::from_utf8(bytes)
            .map_err(|_| DecodeError::malformed("a string is not UTF-8", SECTION_STRING))?;
        if bytes.contains(&0) {
            return Err(DecodeError::malformed(
                "a string has the character U+0000 in it",
                SECTION_STRING,
            ));
        }
        Ok(text)
    }

    /// Checks that the packet ends here.
    #[inline]
    pub fn end(self) -> Result<(), DecodeError> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(
            DecodeError::malformed("the packet goes on after its last field", SECTION_LENGTH)
                .with_found(self.rest.len() as u32),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_varint_comes_back(value in 0..=VARINT_MAX) {
            let mut out = Vec::new();
            write_varint(&mut out, value);
            prop_assert_eq!(out.len(), varint_len(value));
            prop_assert_eq!(read_varint(&out), Ok(Some((value, out.len()))));
            prop_assert_eq!(read_varint(&out[..out.len() - 1]), Ok(None));
        }
    }

    #[test]
    fn the_borders_of_the_varint_are_those_of_table_1_1() {
        for (value, bytes) in [
            (0u32, &[0x00u8][..]),
            (127, &[0x7f]),
            (128, &[0x80, 0x01]),
            (16_383, &[0xff, 0x7f]),
            (16_384, &[0x80, 0x80, 0x01]),
            (2_097_151, &[0xff, 0xff, 0x7f]),
            (2_097_152, &[0x80, 0x80, 0x80, 0x01]),
            (VARINT_MAX, &[0xff, 0xff, 0xff, 0x7f]),
        ] {
            let mut out = Vec::new();
            write_varint(&mut out, value);
            assert_eq!(out, bytes);
        }
        assert!(read_varint(&[0xff, 0xff, 0xff, 0xff, 0x01]).is_err());
        assert!(read_varint(&[0xff, 0xff, 0xff, 0xff]).is_err());
        assert!(read_varint(&[0x80, 0x00]).is_err(), "overlong");
    }
}
