//! What the client itself has run out of, as far as libzmq tells and where it does not.
//!
//! libzmq connects and accepts on threads of its own. Where it gets no socket or no port for a
//! connection it only says that it will try again, as it does for a peer that refuses; where it
//! cannot accept one, the other end waits. Publishers and subscribers of a trial are often in one
//! process, so that both ends may want for the same descriptors. [`towards`] finds out by trying.

use std::io;
use std::net::SocketAddr;

use pubgauge_driver::{Attempt, DriverError, Failure, Resource};
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};

use crate::zmq::explain;

/// An error of libzmq or of the system in words, with what to do about it.
pub(super) fn failed(what: &str, attempt: Attempt, error: &io::Error) -> DriverError {
    let text = format!("{what}: {}", explain(error));
    match Resource::ended(attempt, error) {
        Some(Resource::Descriptors) => out_of_descriptors(text),
        Some(resource) => DriverError::exhausted(text, resource),
        None => DriverError::new(text),
    }
}

fn out_of_descriptors(text: String) -> DriverError {
    let mut error = DriverError::exhausted(text, Resource::Descriptors);
    error.hint = Some(format!(
        "libzmq needs up to nine file descriptors for each client, and two for each subscriber of a publisher: {}",
        Resource::Descriptors.advice()
    ));
    error
}

/// Why a connection to `address` did not come to be: `why`, unless the client has nothing left to
/// connect or, where the publisher is `ours`, to accept with.
pub(super) fn unreached(why: String, address: &str, ours: bool) -> Failure {
    match towards(address, ours) {
        Some(Resource::Descriptors) => {
            out_of_descriptors(format!("no file descriptor left to connect to {address}")).into()
        }
        Some(Resource::Ports) => {
            let what = format!("no local port left to connect to {address}");
            DriverError::exhausted(what, Resource::Ports).into()
        }
        Some(resource) => {
            let what = format!("no {resource} left to connect to {address}");
            DriverError::exhausted(what, resource).into()
        }
        None => why.into(),
    }
}

/// What this process has too little of to connect to `address` at present.
fn towards(address: &str, ours: bool) -> Option<Resource> {
    let ends = if ours { 2 } else { 1 };
    if let Err(resource) = Resource::can_have(ends, 0) {
        return Some(resource);
    }
    // The kernel says at once that no port is left, before anything is sent. (A name has been
    // resolved by libzmq; only numbers are tried here.)
    let address: SocketAddr = address.strip_prefix("tcp://")?.parse().ok()?;
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let tried = net::socket_with(family, SocketType::STREAM, flags, None)
        .and_then(|fd| net::connect(&fd, &address));
    let errno = tried.err()?;
    Resource::of_errno(Attempt::Connect, errno.raw_os_error())
}
