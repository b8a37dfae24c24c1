//! The key of a run, and random bytes.

use std::fmt;

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

/// The key of a run: those who have it may take part in exchanges.
#[derive(Clone)]
pub struct Key {
    bytes: [u8; Key::LEN],
    pub(super) hmac: hmac::Key,
}

impl Key {
    /// Length of a key, bytes.
    pub const LEN: usize = 32;

    /// A new key.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn random() -> std::io::Result<Key> {
        random().map(Key::from_bytes)
    }

    /// The key that [`bytes`](Self::bytes) gave elsewhere.
    pub fn from_bytes(bytes: [u8; Key::LEN]) -> Key {
        let hmac = hmac::Key::new(hmac::HMAC_SHA256, &bytes);
        Key { bytes, hmac }
    }

    /// The key itself, for a worker's link only.
    pub fn bytes(&self) -> &[u8; Key::LEN] {
        &self.bytes
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(key)")
    }
}

pub(super) fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| std::io::Error::other("the system has no random numbers (getrandom)"))?;
    Ok(bytes)
}
