//! A DDS domain that no other participant on this machine is in.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Domains that are handed out: not the first ten, which people use, and none whose ports are among
/// those that the kernel gives to connections.
const DOMAINS: std::ops::Range<u32> = 10..100;

/// A domain of this process, until it is dropped.
pub(crate) struct Domain {
    number: u32,
    /// Bound to a name in the abstract namespace. The kernel gives a name to one process at a time
    /// and releases it when the process ends, in whatever way.
    _claim: UnixDatagram,
}

impl Domain {
    /// Claims a domain that no other pubgauge has claimed and no participant is in.
    ///
    /// # Errors
    /// If there is none.
    pub fn take() -> io::Result<Self> {
        Self::take_from(crate::ports::random())
    }

    fn take_from(start: u64) -> io::Result<Self> {
        let count = u64::from(DOMAINS.end - DOMAINS.start);
        let udp = bound_udp_ports();
        for n in 0..count {
            let number = DOMAINS.start + ((start % count + n) % count) as u32;
            let name = SocketAddr::from_abstract_name(format!("pubgauge-dds-domain-{number}"))?;
            let Ok(claim) = UnixDatagram::bind_addr(&name) else {
                continue;
            };
            if !udp.iter().any(|port| is_of(*port, number)) {
                return Ok(Domain {
                    number,
                    _claim: claim,
                });
            }
        }
        let (first, last) = (DOMAINS.start, DOMAINS.end - 1);
        let what = format!("every DDS domain from {first} to {last} is in use");
        Err(io::Error::new(io::ErrorKind::AddrInUse, what))
    }

    pub fn number(&self) -> u32 {
        self.number
    }
}

/// Whether a port is one of a domain's: 250 from 7400 on for each (DDSI-RTPS 2.3, section 9.6.1).
fn is_of(port: u16, domain: u32) -> bool {
    let first = 7400 + 250 * domain;
    (first..first + 250).contains(&u32::from(port))
}

/// The UDP ports that sockets are bound to, as far as the kernel tells.
fn bound_udp_ports() -> Vec<u16> {
    let port = |line: &str| {
        let (_, port) = line.split_whitespace().nth(1)?.rsplit_once(':')?;
        u16::from_str_radix(port, 16).ok()
    };
    ["/proc/net/udp", "/proc/net/udp6"]
        .iter()
        .flat_map(|table| {
            let text = std::fs::read_to_string(table).unwrap_or_default();
            text.lines().filter_map(port).collect::<Vec<_>>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_is_given_once_and_again_when_it_is_free() {
        let first = Domain::take_from(5).unwrap();
        let second = Domain::take_from(5).unwrap();
        assert_ne!(first.number(), second.number());
        let number = first.number();
        drop(first);
        assert_eq!(Domain::take_from(5).unwrap().number(), number);
    }

    #[test]
    fn a_domain_with_a_participant_is_passed_over() {
        let free = Domain::take_from(40).unwrap().number();
        // The port of the first participant's own discovery.
        let port = 7400 + 250 * free as u16 + 10;
        let participant = std::net::UdpSocket::bind(("127.0.0.1", port)).unwrap();
        assert!(bound_udp_ports().contains(&port));
        let other = Domain::take_from(u64::from(free - DOMAINS.start)).unwrap();
        assert_ne!(other.number(), free);
        drop((other, participant));
        let again = Domain::take_from(u64::from(free - DOMAINS.start)).unwrap();
        assert_eq!(again.number(), free);
    }

    #[test]
    fn the_ports_of_a_domain_are_250() {
        assert!(is_of(7400, 0) && is_of(7649, 0) && !is_of(7650, 0));
        assert!(is_of(7650, 1) && !is_of(7649, 1));
    }
}
