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

use std::sync::{Mutex, MutexGuard, PoisonError};

mod admission;
mod credentials;
mod dial;
pub mod hello;
mod hex;
mod identity;
mod kept;
mod limited;
mod listener;
mod machine;
mod place;
mod stream;

pub use admission::{Joined, Limits};
pub use credentials::{Credentials, CredentialsError, FILE_VARIABLE, Fingerprint, Token};
pub use dial::{Dial, JoinError, Member, join};
pub use identity::{Identity, IdentityError};
pub use kept::KeptCredentials;
pub use listener::{Counts, Listener, Missing, Options, ranks};
pub use machine::Machine;
pub use place::{Address, DEFAULT_PORT, PlaceError, Rank, conductor, rank};
pub use stream::{Connection, Reader, Writer};

/// What a mutex guards, also after a thread has panicked that held it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
