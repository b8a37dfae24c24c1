//! Exchanges of clock readings over UDP.
//!
//! A question and its answer are packets of the same length, so that the server cannot amplify a flood.
//! Both are authenticated with a [`Key`] that the run made: packets without it, repeated ones and garbage
//! are counted and ignored. An attacker who delays packets makes the bound wider, never wrong.

mod client;
mod packet;
mod server;
mod watch;

use std::fmt;
use std::sync::Arc;

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use rustix::time::{ClockId, clock_gettime};

pub use client::{Client, ClientCounts};
pub use server::{Server, ServerCounts};
pub use watch::{Pace, Watch};

/// Reads a clock, ns.
pub type Reading = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The host's `CLOCK_MONOTONIC`, in ns: the clock that the engine measures on.
pub fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // It counts from the host's start.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The key of a run: those who have it may take part in exchanges.
#[derive(Clone)]
pub struct Key {
    bytes: [u8; Key::LEN],
    hmac: hmac::Key,
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

fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| std::io::Error::other("the system has no random numbers (getrandom)"))?;
    Ok(bytes)
}
