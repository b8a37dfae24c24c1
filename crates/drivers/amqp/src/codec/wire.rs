//! Fields of methods (§4.2.5): numbers in network order, short and long strings, tables.

use super::error::EncodeError;

/// Reads fields one after the other; `None` where the bytes end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldReader<'a>(pub &'a [u8]);

impl<'a> FieldReader<'a> {
    #[inline]
    pub fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    #[inline]
    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    #[inline]
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    #[inline]
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    #[inline]
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    #[inline]
    pub fn short(&mut self) -> Option<&'a [u8]> {
        let len = self.u8()?;
        self.take(usize::from(len))
    }

    #[inline]
    pub fn long(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()?;
        self.take(usize::try_from(len).ok()?)
    }
}

/// A field of a method.
pub(crate) trait Field<'a>: Sized {
    fn get(reader: &mut FieldReader<'a>) -> Option<Self>;
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError>;
}

macro_rules! number {
    ($($t:ident)*) => {$(
        impl<'a> Field<'a> for $t {
            #[inline]
            fn get(reader: &mut FieldReader<'a>) -> Option<Self> {
                reader.$t()
            }
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
                out.extend_from_slice(&self.to_be_bytes());
                Ok(())
            }
        }
    )*};
}
number!(u8 u16 u32 u64);

/// A short string.
impl<'a> Field<'a> for &'a [u8] {
    #[inline]
    fn get(reader: &mut FieldReader<'a>) -> Option<Self> {
        reader.short()
    }

    fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        put_short(self, out)
    }
}

/// A long string (§4.2.5.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Long<'a>(pub &'a [u8]);

impl<'a> Field<'a> for Long<'a> {
    fn get(reader: &mut FieldReader<'a>) -> Option<Self> {
        reader.long().map(Long)
    }

    fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        put_long(self.0, out)
    }
}

pub(crate) fn put_short(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let len = u8::try_from(bytes.len()).map_err(|_| EncodeError::ShortTooLong(bytes.len()))?;
    out.push(len);
    out.extend_from_slice(bytes);
    Ok(())
}

pub(crate) fn put_long(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let len = u32::try_from(bytes.len()).map_err(|_| EncodeError::LongTooLong(bytes.len()))?;
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}
