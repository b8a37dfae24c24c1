//! The messages of a link as bytes: frames of four bytes of length (big-endian) and JSON.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest frame that is read: an order of a workload with a million devices has some 200 MB.
const LONGEST: usize = 1 << 30;

/// Writes one frame at once.
///
/// # Errors
/// As [`write_frame`].
pub fn write(out: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    write_frame(out, what)?;
    out.flush()
}

/// Writes one frame, which may wait in the writer's buffer.
///
/// # Errors
/// Those of the writer; data that cannot be written as JSON; a frame longer than 1 GiB.
pub fn write_frame(out: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    let bytes = serde_json::to_vec(what)?;
    if bytes.len() > LONGEST {
        let why = format!("a frame of {} bytes is too long", bytes.len());
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    out.write_all(&(bytes.len() as u32).to_be_bytes())?;
    out.write_all(&bytes)
}

/// Reads one frame; `None` at the end of the stream between two frames.
///
/// # Errors
/// Those of the reader; a stream that ends within a frame; a frame that is longer than 1 GiB or is
/// not a `T` in JSON.
pub fn read<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    read_within(from, LONGEST)
}

/// As [`read`], of a frame of `most` bytes at the most.
///
/// # Errors
/// As [`read`].
pub fn read_within<T: DeserializeOwned>(
    from: &mut impl Read,
    most: usize,
) -> io::Result<Option<T>> {
    let bytes = read_bytes(from, most)?;
    let of = |bytes: Vec<u8>| Ok(serde_json::from_slice(&bytes)?);
    bytes.map(of).transpose()
}

/// Reads the bytes of one frame of `most` at the most; `None` at the end of the stream between two frames.
///
/// # Errors
/// Those of the reader; a stream that ends within a frame; a frame that is longer.
pub(super) fn read_bytes(from: &mut impl Read, most: usize) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    let mut got = 0;
    while got < length.len() {
        match from.read(&mut length[got..]) {
            Ok(0) if got == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => got += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > most {
        let why = format!("a frame of {length} bytes is too long");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    // Grows as bytes come, so that a wrong length takes no memory by itself.
    let mut bytes = Vec::new();
    from.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(bytes))
}

/// The value that a frame with this one would bring to the other end.
///
/// # Errors
/// As [`write`] and [`read`].
pub(super) fn encode_and_decode<T: Serialize + DeserializeOwned>(what: &T) -> io::Result<T> {
    let mut bytes = Vec::new();
    write(&mut bytes, what)?;
    read(&mut &bytes[..])?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn frames_come_back_in_order() {
        let mut bytes = Vec::new();
        write(&mut bytes, &"one").unwrap();
        write(&mut bytes, &vec![1, 2, 3]).unwrap();
        let mut from = &bytes[..];
        assert_eq!(read::<String>(&mut from).unwrap().as_deref(), Some("one"));
        assert_eq!(read::<Vec<u32>>(&mut from).unwrap(), Some(vec![1, 2, 3]));
        assert_eq!(read::<String>(&mut from).unwrap(), None);
    }

    proptest! {
        /// Whatever a stranger says: an error or the end, no panic, and no memory for what never comes.
        #[test]
        fn garbage_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut from = &bytes[..];
            while let Ok(Some(_)) = read::<serde_json::Value>(&mut from) {}
        }
    }
}
