//! The UDP ports of a DDS domain.

use std::net::{Ipv4Addr, UdpSocket};

/// The highest participant index whose ports are below 65536 and not the next domain's
/// (ports 7400 + 250 domain + 10 and 11 + 2 index).
pub(crate) fn highest_index(domain: u32) -> u32 {
    ((65_535 - 11 - 7400 - 250 * domain) / 2).min(119)
}

/// Whether no participant finds two UDP ports in a domain any more.
pub(crate) fn are_taken(domain: u32) -> bool {
    let is_free = |port: u32| {
        u16::try_from(port).is_ok_and(|port| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok())
    };
    let first = 7400 + 250 * domain + 10;
    !(0..=highest_index(domain)).any(|n| is_free(first + 2 * n) && is_free(first + 2 * n + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubgauge_dds::domain::MAX_DOMAIN;

    #[test]
    fn ports_stay_below_65536() {
        for domain in 0..=MAX_DOMAIN {
            let index = highest_index(domain);
            assert!(7400 + 250 * domain + 11 + 2 * index <= 65_535);
            assert!(11 + 2 * index < 250);
        }
        assert_eq!(highest_index(0), 119);
        assert_eq!(highest_index(232), 62);
    }
}
