//! Workers on other hosts: how they dial the conductor and are let in.
//!
//! The conductor makes an [`Identity`] for the run (a key and a certificate) and [`Credentials`]: the
//! certificate's fingerprint and a token for each rank, which reach the workers in a file. It starts a
//! [`Listener`]. A worker finds its rank ([`rank`]) and the conductor ([`conductor`]) from whatever started
//! it, reads its credentials and [`join`]s: TLS 1.3 with the one certificate that has the fingerprint, then a
//! [`hello::Hello`] with a proof of its token. The token itself never travels, and a proof is worth nothing on
//! another connection. Each rank joins once, or again when its connection is in use ([`Options::again`]).
//!
//! Both then have the halves of a stream, [`Reader`] and [`Writer`], for the ends of a link:
//! [`pubgauge_engine::link::stream::link`] at the conductor's, [`pubgauge_engine::link::stream::serve`] at
//! the worker's.

#![forbid(unsafe_code)]

mod admission;
mod credentials;
mod dial;
pub mod hello;
mod identity;
mod kept;
mod limited;
mod listener;
mod machine;
mod place;
mod stream;

pub use credentials::{Credentials, CredentialsError, FILE_VARIABLE, Fingerprint, Token};
pub use dial::{Dial, JoinError, Member, join};
pub use identity::{Identity, IdentityError};
pub use kept::KeptCredentials;
pub use listener::{Counts, Joined, Limits, Listener, Missing, Options};
pub use machine::Machine;
pub use place::{Address, DEFAULT_PORT, PlaceError, Rank, conductor, rank};
pub use stream::{Connection, Reader, Writer};

/// Bytes as hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// 32 bytes from 64 hexadecimal digits.
fn unhex(digits: &str) -> Option<[u8; 32]> {
    let digits = digits.as_bytes();
    let mut bytes = [0; 32];
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_bytes() {
        let bytes: [u8; 32] = std::array::from_fn(|n| (n * 9) as u8);
        assert_eq!(unhex(&hex(&bytes)), Some(bytes));
        assert_eq!(unhex(&hex(&bytes).to_uppercase()), Some(bytes));
        for wrong in [
            "",
            "00",
            &"0".repeat(63),
            &"0".repeat(65),
            &"+1".repeat(32),
            &"g".repeat(64),
        ] {
            assert_eq!(unhex(wrong), None, "{wrong}");
        }
    }
}
