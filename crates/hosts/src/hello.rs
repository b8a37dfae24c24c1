//! The exchange before a link begins: a worker's hello, the conductor's answer. Each is one frame like those
//! of the link (four bytes of length, big-endian, and JSON), at most [`LONGEST`] bytes long.

use std::fmt;
use std::io::{self, Read};
use std::net::IpAddr;

use pubgauge_clock::udp::Key;
use serde::{Deserialize, Serialize};

use crate::hex::{hex, unhex};
use crate::machine::Machine;

/// Version of this exchange.
pub const VERSION: u32 = 1;
/// The longest frame before a link begins, bytes, without its length.
pub const LONGEST: usize = 4_096;
/// The longest name in a hello, bytes: that of a host.
const LONGEST_NAME: usize = 255;

/// The first frame of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// [`VERSION`].
    pub join: u32,
    /// [`pubgauge_engine::link::VERSION`].
    pub link: u32,
    /// Version of the program.
    pub pubgauge: String,
    /// Which worker it is, from 0.
    pub rank: u32,
    /// How many workers there are, according to what started this one.
    pub size: Option<u32>,
    /// Where it runs.
    pub machine: Machine,
    /// The network interface from which it reaches the conductor; empty if unknown.
    pub interface: String,
    /// HMAC-SHA256 by the rank's token over what TLS exports of this connection and the rank, hexadecimal.
    pub proof: String,
}

/// The conductor's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Answer {
    /// The worker is let in; a link begins.
    Welcome(Welcome),
    /// It is not.
    Refused {
        /// In words.
        why: String,
    },
}

/// The answer to a worker that is let in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Welcome {
    /// How many workers there are.
    pub size: u32,
    /// Where the conductor runs.
    pub machine: Machine,
    /// Where to exchange clock readings; `None` if the conductor has no clock server.
    pub clock: Option<ClockServer>,
}

/// A [`pubgauge_clock::udp::Server`] on the conductor's host.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockServer {
    /// Its UDP port, at the address where the conductor was joined.
    pub port: u16,
    /// Its key, hexadecimal.
    key: String,
}

impl ClockServer {
    /// A server on `port` that has this key.
    pub fn new(port: u16, key: &Key) -> ClockServer {
        let key = hex(key.bytes());
        ClockServer { port, key }
    }

    /// Its key; `None` if the text is not a key.
    pub fn key(&self) -> Option<Key> {
        unhex(&self.key).map(Key::from_bytes)
    }
}

impl fmt::Debug for ClockServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClockServer {{ port: {}, key: (key) }}", self.port)
    }
}

/// Why a hello is not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unclear {
    /// It is not a hello.
    Malformed,
    /// It has this other version.
    Version(u32),
}

impl Hello {
    /// Reads a hello without its length.
    ///
    /// # Errors
    /// Another version, or anything else.
    pub fn decode(bytes: &[u8]) -> Result<Hello, Unclear> {
        /// What hellos of all versions have.
        #[derive(Deserialize)]
        struct Any {
            join: u32,
        }
        let any: Any = serde_json::from_slice(bytes).map_err(|_| Unclear::Malformed)?;
        if any.join != VERSION {
            return Err(Unclear::Version(any.join));
        }
        let hello: Hello = serde_json::from_slice(bytes).map_err(|_| Unclear::Malformed)?;
        let machine = &hello.machine;
        let names = [
            &hello.pubgauge,
            &machine.host,
            &machine.boot_id,
            &machine.time_namespace,
        ];
        // They are printed: they must not have control characters.
        let is_plain = |name: &&String| {
            name.len() <= LONGEST_NAME && name.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        };
        let is_known = hello.interface.is_empty() || is_interface(&hello.interface);
        match is_known && names.iter().all(is_plain) {
            true => Ok(hello),
            false => Err(Unclear::Malformed),
        }
    }
}

/// The name of the interface that has this address; empty if there is none with a plain name.
pub(crate) fn interface(address: IpAddr) -> String {
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

/// Something as one frame.
pub(crate) fn frame(what: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pubgauge_engine::link::frames::write(&mut bytes, what)?;
    Ok(bytes)
}

/// Reads one frame, without its length.
///
/// # Errors
/// Those of the reader; a frame that is longer than [`LONGEST`].
pub(crate) fn read(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > LONGEST {
        let why = format!("a frame of {length} bytes, before any is expected above {LONGEST}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hello() -> Hello {
        Hello {
            join: VERSION,
            link: pubgauge_engine::link::VERSION,
            pubgauge: "0.1.0".into(),
            rank: 3,
            size: Some(8),
            machine: Machine::here(),
            interface: "eth0".into(),
            proof: "0".repeat(64),
        }
    }

    fn changed(from: &str, to: &str) -> Result<Hello, Unclear> {
        let text = serde_json::to_string(&hello()).unwrap();
        assert!(text.contains(from), "{text}");
        Hello::decode(text.replacen(from, to, 1).as_bytes())
    }

    #[test]
    fn a_hello_comes_back() {
        let bytes = frame(&hello()).unwrap();
        let read = read(&mut &bytes[..]).unwrap();
        assert_eq!(Hello::decode(&read), Ok(hello()));
    }

    #[test]
    fn other_versions_are_told_from_nonsense() {
        assert_eq!(
            changed("\"join\":1", "\"join\":2"),
            Err(Unclear::Version(2))
        );
        // Whatever else a later version says.
        assert_eq!(
            Hello::decode(br#"{"join":7,"more":[1]}"#),
            Err(Unclear::Version(7))
        );
        for (from, to) in [
            ("\"join\":1", "\"join\":-1"),
            ("\"join\":1", "\"jion\":1"),
            ("\"rank\":3", "\"rank\":3,\"more\":1"),
            ("\"rank\":3", "\"rank\":3,\"rank\":4"),
            ("\"rank\":3", "\"rank\":4294967296"),
            ("0.1.0", "\\u001b[2J"),
            ("eth0", "<x/>"),
            ("eth0", "eth0123456789012"),
            ("0.1.0", &"x".repeat(256)),
        ] {
            assert_eq!(changed(from, to), Err(Unclear::Malformed), "{to}");
        }
    }

    #[test]
    fn an_address_has_an_interface() {
        let name = interface(std::net::Ipv4Addr::LOCALHOST.into());
        assert_eq!(name, "lo");
        assert_eq!(
            interface([192, 0, 2, 1].into()),
            "",
            "set apart for examples"
        );
    }

    #[test]
    fn long_and_short_frames_are_refused() {
        let long = (LONGEST as u32 + 1).to_be_bytes();
        let error = read(&mut [&long[..], &[b' '; 5_000]].concat().as_slice()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let error = read(&mut &[0, 0, 0, 5, b'x'][..]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_key_is_told_and_not_shown() {
        let key = Key::from_bytes([0xcd; 32]);
        let clock = ClockServer::new(9, &key);
        assert_eq!(clock.key().unwrap().bytes(), key.bytes());
        assert!(!format!("{clock:?}").contains("cdcd"));
        let text = serde_json::to_string(&clock).unwrap();
        let back: ClockServer = serde_json::from_str(&text).unwrap();
        assert_eq!(back, clock);
        let bad: ClockServer = serde_json::from_str(r#"{"port":1,"key":"x"}"#).unwrap();
        assert!(bad.key().is_none());
    }

    proptest! {
        /// Whatever a stranger says: a hello that is written as it was read, or a refusal.
        #[test]
        fn any_bytes_are_taken(at in 0..300usize, byte: u8, cut in 0..400usize, garbage in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(Hello::decode(&garbage).is_err());
            let mut bytes = serde_json::to_vec(&hello()).unwrap();
            let last = bytes.len() - 1;
            bytes[at.min(last)] = byte;
            bytes.truncate(cut.max(1));
            if let Ok(hello) = Hello::decode(&bytes) {
                let again = serde_json::to_vec(&hello).unwrap();
                prop_assert_eq!(Hello::decode(&again), Ok(hello));
            }
        }
    }
}
