//! Other hosts as places for workers.
//!
//! A host is a *command prefix*, such as `ssh loadgen-1` or `kubectl exec -i pod --`: with a program and its arguments
//! behind it, it runs that program there and passes its standard input and output on. Who may start programs there,
//! and who can read along, is the affair of ssh, Slurm or Kubernetes.
//!
//! For each host the conductor starts one *companion*, `PREFIX pubgauge worker --echo ADDRESS` ([`echo`]), which lives as
//! long as the run: it says which host that is, echoes the conductor's questions for its clock, and its end shows that
//! the host is lost ([`Companion`]). The workers of a trial are further processes started by the same prefix
//! ([`Host::worker`]). Nothing listens but the echo, over UDP; its key travels over the companion's standard input.
//!
//! [`clock`] bounds the offset between two clocks from what the echo says.

#![forbid(unsafe_code)]

use std::sync::{Mutex, MutexGuard, PoisonError};

mod ask;
pub mod clock;
mod companion;
pub mod echo;
mod error;
mod hello;
mod host;
mod hosts;
mod machine;
mod packet;

pub use ask::ClockWatch;
pub use companion::Companion;
pub use error::{HostError, HostsError};
pub use hello::Hello;
pub use host::{Host, PROGRAM, Prefix, PrefixError, read_hosts};
pub use hosts::Hosts;
pub use machine::HostIdentity;
pub use packet::{EchoKey, EchoPacket};

/// Locks a mutex, also after a thread has panicked that held it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
