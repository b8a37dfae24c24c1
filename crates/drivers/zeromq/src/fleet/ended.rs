//! Which resource the client has run out of, also where libzmq does not report it.
//!
//! libzmq connects and accepts on threads of its own. Where it gets no socket or no port for a
//! connection it only says that it will try again, as it does for a peer that refuses; where it
//! cannot accept one, the other end waits. Publishers and subscribers of a trial are often in one
//! process, so that both ends take from the same descriptors. What is missing is found out by
//! trying.

use std::io;
use std::net::SocketAddr;

use pubgauge_driver::{Attempt, DriverError, Failure, Resource};
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};

use super::state::ZeromqFleet;
use crate::port::Port;
use crate::zmq::explain;

/// Most connections for which descriptors are tried: if there are enough, a failed connection is
/// the peer's fault. Thousands may fail at once, and each tries.
const ENOUGH: usize = 32;

/// An error of libzmq or of the system in words, with what to do about it.
pub(super) fn failed(what: &str, attempt: Attempt, error: &io::Error) -> DriverError {
    let text = format!("{what}: {}", explain(error));
    match Resource::exhausted_by(attempt, error) {
        Some(Resource::Descriptors) => out_of_descriptors(text),
        Some(resource) => DriverError::exhausted(text, resource),
        None => DriverError::new(text),
    }
}

fn out_of_descriptors(text: String) -> DriverError {
    let mut error = DriverError::exhausted(text, Resource::Descriptors);
    error.hint = Some(format!(
        "libzmq needs three file descriptors for each publisher, six for each subscriber and two for each pair of them (through a forwarder seven for either): {}",
        Resource::Descriptors.advice()
    ));
    error
}

impl ZeromqFleet {
    /// Why a connection to `address` failed: `why`, unless the client ran out of a resource for it.
    pub(super) fn unreached(&self, why: String, address: &str) -> Failure {
        match self.missing_towards(address) {
            Some(Resource::Descriptors) => {
                let what = format!("no file descriptor left to connect to {address}");
                out_of_descriptors(what).into()
            }
            Some(resource) => {
                let what = format!("no {resource} left to connect to {address}");
                DriverError::exhausted(what, resource).into()
            }
            None => why.into(),
        }
    }

    fn missing_towards(&self, address: &str) -> Option<Resource> {
        // Those that were given up have given their descriptors back: there must be enough for all
        // that are still to be made, at both ends where the publishers are in this process too.
        let ends = if self.forwarders.is_empty() { 2 } else { 1 };
        let mut missing = 0;
        for client in &self.clients {
            let ports = [&client.publisher, &client.subscriber, &client.receiver];
            missing += ports
                .into_iter()
                .flatten()
                .map(Port::missing)
                .sum::<usize>();
            if missing >= ENOUGH {
                break;
            }
        }
        match Resource::can_have(ends * missing.clamp(1, ENOUGH), 0) {
            Ok(()) => no_port(address),
            Err(resource) => Some(resource),
        }
    }
}

/// Whether there is no local port to connect to `address` from.
fn no_port(address: &str) -> Option<Resource> {
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
