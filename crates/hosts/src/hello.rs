//! The first message of a companion: which program it is, and on which host.

use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr};

use pubgauge_engine::link::{self, frames};
use serde::{Deserialize, Serialize};

use crate::{HostError, HostIdentity};

/// The longest hello, bytes.
const LONGEST: usize = 4 << 10;
/// The longest host name, bytes (`HOST_NAME_MAX`, and a domain).
const LONGEST_NAME: usize = 255;

/// The first frame of a companion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hello {
    /// [`link::VERSION`].
    pub link: u32,
    /// Version of the program.
    pub pubgauge: String,
    /// The host.
    pub machine: HostIdentity,
    /// Its address towards the conductor.
    pub address: IpAddr,
    /// The interface with that address; empty if none has a plain name.
    pub interface: String,
    /// The UDP port of the echo there.
    pub port: u16,
}

/// Nothing known: what a program of another version left out.
impl Default for Hello {
    fn default() -> Self {
        Hello {
            link: 0,
            pubgauge: String::new(),
            machine: HostIdentity::default(),
            address: Ipv4Addr::UNSPECIFIED.into(),
            interface: String::new(),
            port: 0,
        }
    }
}

impl Hello {
    /// The hello of this host, whose echo listens at `address` and `port`.
    pub fn from_here(address: IpAddr, port: u16) -> Hello {
        Hello {
            link: link::VERSION,
            pubgauge: env!("CARGO_PKG_VERSION").into(),
            machine: HostIdentity::of_this_host(),
            address,
            interface: interface(address),
            port,
        }
    }

    /// Reads one; `None` where the stream ends.
    ///
    /// # Errors
    /// Those of the reader; a frame that is no hello, or has more than 4 KiB.
    pub fn read(from: &mut impl Read) -> io::Result<Option<Hello>> {
        frames::read_within(from, LONGEST)
    }

    /// # Errors
    /// Why the program there cannot be used, or says what no companion does.
    pub fn check(&self) -> Result<(), HostError> {
        if self.link != link::VERSION {
            return Err(HostError::OtherVersion {
                pubgauge: plain(&self.pubgauge),
                link: self.link,
            });
        }
        let names = self.machine.names();
        let is_name = |name: &str| name.len() <= LONGEST_NAME && plain(name) == name;
        let interface = &self.interface;
        if names.iter().all(|name| is_name(name))
            && (interface.is_empty() || is_interface(interface))
        {
            Ok(())
        } else {
            Err(HostError::Names)
        }
    }
}

/// A text without characters that steer a terminal.
fn plain(text: &str) -> String {
    let is_plain = |c: &char| matches!(c, ' '..='~');
    text.chars().filter(is_plain).take(LONGEST_NAME).collect()
}

/// The name of the interface that has this address; empty if there is none with a plain name.
fn interface(address: IpAddr) -> String {
    let all = if_addrs::get_if_addrs().unwrap_or_default().into_iter();
    let mut own = all.filter(|one| one.ip() == address).map(|one| one.name);
    own.find(|name| is_interface(name)).unwrap_or_default()
}

/// Whether an interface can have this name, and the name has no characters with a meaning elsewhere.
fn is_interface(name: &str) -> bool {
    const LONGEST: usize = 15;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-@".contains(&byte);
    (1..=LONGEST).contains(&name.len()) && name.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_says_who_it_is() {
        let own = Hello::from_here(Ipv4Addr::LOCALHOST.into(), 7);
        assert_eq!(own.interface, "lo");
        own.check().unwrap();
    }

    #[test]
    fn another_version_is_named() {
        let hello = Hello {
            link: 1,
            pubgauge: "0.0.9\x1b[2J".into(),
            ..Hello::default()
        };
        let why = hello.check().unwrap_err().to_string();
        for part in ["pubgauge 0.0.9[2J ", "version 1", "--host-program"] {
            assert!(why.contains(part), "{why}");
        }
    }

    /// The interface's name goes into XML that Cyclone DDS reads, the host's onto the page.
    #[test]
    fn names_that_no_host_has_are_refused() {
        let own = Hello::from_here(Ipv4Addr::LOCALHOST.into(), 7);
        let of = |host: &str, interface: &str| Hello {
            machine: HostIdentity {
                host: host.into(),
                ..own.machine.clone()
            },
            interface: interface.into(),
            ..own.clone()
        };
        for (host, interface) in [
            ("a\x1b[2J", "eth0"),
            (&"x".repeat(256), "eth0"),
            ("a", "eth0\"/>"),
            ("a", "sixteen-letters-"),
        ] {
            assert!(of(host, interface).check().is_err(), "{host} {interface}");
        }
        of("node-1", "").check().unwrap();
    }
}
