//! Datagrams as a raw socket sees them. It takes root.

use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use pubgauge_driver::Target;
use rustix::net::{AddressFamily, RecvFlags, SocketType, ipproto, recv, socket, sockopt};

/// Where multicast data of a DDS domain goes (DDSI-RTPS 2.3, section 9.6.1); `target` names the domain.
pub fn multicast_group(target: &Target) -> SocketAddrV4 {
    let domain = target.endpoints[0].rsplit('/').next();
    let domain: u16 = domain.and_then(|n| n.parse().ok()).expect("a domain");
    SocketAddrV4::new([239, 255, 0, 1].into(), 7401 + 250 * domain)
}

/// Bytes of a datagram that are looked at: both headers, options of IP included.
const HEADERS: usize = 68;

/// All UDP datagrams that arrive on this machine.
#[derive(Debug)]
pub struct Datagrams(OwnedFd);

impl Datagrams {
    /// Hears all that arrive from now on.
    pub fn listen() -> Datagrams {
        let raw = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::UDP));
        let raw = raw.expect("a raw socket takes root");
        let wait = Some(Duration::from_millis(100));
        sockopt::set_socket_timeout(&raw, sockopt::Timeout::Recv, wait).expect("is a socket");
        Datagrams(raw)
    }

    /// The time to live (RFC 791, section 3.1) of the next datagram to `to`; `None` if there is none within `within`.
    pub fn hops_to(&self, to: SocketAddrV4, within: Duration) -> Option<u8> {
        let end = Instant::now() + within;
        let mut datagram = [0_u8; HEADERS];
        while Instant::now() < end {
            // The socket's timeout is no failure.
            let Ok((len, _)) = recv(&self.0, &mut datagram, RecvFlags::empty()) else {
                continue;
            };
            let datagram = &datagram[..len.min(HEADERS)];
            let header = 4 * usize::from(datagram[0] & 0x0f);
            let port = datagram.get(header + 2..header + 4);
            if datagram[16..20] == to.ip().octets() && port == Some(&to.port().to_be_bytes()[..]) {
                return Some(datagram[8]);
            }
        }
        None
    }
}
