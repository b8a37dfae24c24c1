//! Networks that several tests use.
#![allow(dead_code)]

use std::sync::{Mutex, MutexGuard, PoisonError};

use pubgauge_network::{Host, HostRole, Hosts, Link, Network};

/// Publisher and subscriber hosts with these links.
pub fn network(publishers: (u32, Link), subscribers: (u32, Link)) -> Network {
    let hosts = |(hosts, link)| Hosts { hosts, link };
    Network {
        publisher: hosts(publishers),
        subscriber: hosts(subscribers),
        ..Network::default()
    }
}

pub fn publisher(number: u32) -> Host {
    Host {
        role: HostRole::Publisher,
        number,
    }
}

pub fn subscriber(number: u32) -> Host {
    Host {
        role: HostRole::Subscriber,
        number,
    }
}

/// A link with a rate.
pub fn rate(bits_per_s: u64) -> Link {
    Link {
        rate_bits_per_s: Some(bits_per_s),
        ..Link::default()
    }
}

/// One test at a time: each measures, and none is to lack a processor because of another.
pub fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
