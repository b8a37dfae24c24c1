//! Free loopback ports, and whether a system listens on its own.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use crate::limits::ephemeral_ports;
use crate::lock::lock;

/// Ports handed out by this process: two systems that start at once must not get the same one
/// between its release and the moment that the system binds it.
static HANDED_OUT: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// Named free ports, held until they are released.
pub(crate) struct Ports(Vec<(String, TcpListener, u16)>);

impl Ports {
    /// A free loopback port for each name.
    pub fn take(names: &[String]) -> io::Result<Self> {
        let mut handed_out = lock(&HANDED_OUT);
        let mut ports = Vec::new();
        let mut rejected = Vec::new();
        for name in names {
            let mut tries = 0;
            let (listener, port) = loop {
                let (listener, port) = listen()?;
                tries += 1;
                if handed_out.insert(port) {
                    break (listener, port);
                }
                if tries > 1000 {
                    // Nearly all ports were handed out once: begin again.
                    handed_out.clear();
                }
                // Kept open, so that the kernel offers another one.
                rejected.push(listener);
            };
            ports.push((name.clone(), listener, port));
        }
        Ok(Ports(ports))
    }

    /// The ports as values of placeholders.
    pub fn values(&self) -> impl Iterator<Item = (String, String)> {
        self.0
            .iter()
            .map(|(name, _, port)| (name.clone(), port.to_string()))
    }

    /// Lets go of the ports, for the system to bind.
    pub fn release(self) -> Vec<u16> {
        self.0.iter().map(|(_, _, port)| *port).collect()
    }
}

/// Ports that are kept while their system is down. Nothing listens on them, so connections are
/// refused. No other program gets them, and the kernel does not use one as the source port of a
/// client's connection to that very port, which would connect the client to itself.
pub(crate) struct HeldPorts(
    #[expect(dead_code, reason = "holds by being open")] Vec<rustix::fd::OwnedFd>,
);

impl HeldPorts {
    /// Takes those of the ports that are free.
    pub fn take(ports: &[u16]) -> Self {
        use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
        let hold = |port: &u16| -> rustix::io::Result<_> {
            let kind = (AddressFamily::INET, SocketType::STREAM);
            let socket = socket_with(kind.0, kind.1, SocketFlags::CLOEXEC, None)?;
            // Connections of the system may still be in TIME_WAIT on the port.
            sockopt::set_socket_reuseaddr(&socket, true)?;
            bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, *port)))?;
            Ok(socket)
        };
        HeldPorts(ports.iter().filter_map(|port| hold(port).ok()).collect())
    }
}

/// A loopback port that nobody listens on. Where the ports that the kernel gives to connections
/// begin at 11,000 or later, it lies below them, so that no client's connection takes it meanwhile.
///
/// # Errors
/// If there is none.
pub fn free_port() -> io::Result<u16> {
    listen().map(|(_, port)| port)
}

/// The lowest port that is chosen: those below are for well-known services.
const FIRST: u16 = 10_000;

/// Listens on a free loopback port below those that the kernel gives to connections, if there are
/// 1000 of them. A port among the latter may be taken by any client before its system binds it, and
/// a client that connects to it before may be connected to itself.
fn listen() -> io::Result<(TcpListener, u16)> {
    let end = first_ephemeral();
    if end >= FIRST + 1000 {
        for _ in 0..200 {
            let port = FIRST + (random() % u64::from(end - FIRST)) as u16;
            if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
                return Ok((listener, port));
            }
        }
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

/// The first port that the kernel gives to connections; 0 if it cannot be read.
fn first_ephemeral() -> u16 {
    let range = ephemeral_ports().map(RangeInclusive::into_inner);
    range.map_or(0, |(first, _)| first as u16)
}

/// A random number, which differs between processes that start at the same moment too.
pub(crate) fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

/// Whether nobody listens on a loopback port.
pub(crate) fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// How long a server may take to close a connection after its client has.
const SERVER_CLOSES: Duration = Duration::from_millis(200);

/// More than any server sends before its client does.
const GREETING_BYTES: u64 = 64 << 10;

/// Whether one of the processes `pids` accepts connections on a port, of `host` or of loopback. A listener of
/// another program is no sign of readiness. A listener whose owner cannot be seen is taken for the system.
pub(crate) fn accepts(host: Ipv4Addr, port: u16, pids: &[i32]) -> bool {
    let connects = |host: Ipv4Addr| {
        let address = SocketAddr::from((host, port));
        let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(500)) else {
            return false;
        };
        // A server that still holds this connection when clients come has one open file less for them.
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.set_read_timeout(Some(SERVER_CLOSES));
        let _ = io::copy(&mut stream.take(GREETING_BYTES), &mut io::sink());
        true
    };
    if !connects(host) && (host.is_loopback() || !connects(Ipv4Addr::LOCALHOST)) {
        return false;
    }
    let sockets = listening(port);
    if sockets.is_empty() {
        return true;
    }
    let mut unseen = false;
    for pid in pids {
        let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else {
            unseen = true;
            continue;
        };
        let mut links = entries
            .flatten()
            .map(|entry| std::fs::read_link(entry.path()));
        if links.any(|link| link.is_ok_and(|link| sockets.contains(&link))) {
            return true;
        }
    }
    unseen
}

/// The sockets that listen on a port, from the kernel's table, as links in `/proc/PID/fd` name them.
fn listening(port: u16) -> Vec<PathBuf> {
    const LISTEN: &str = "0A";
    let wanted = format!(":{port:04X}");
    let mut sockets = Vec::new();
    for table in ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"] {
        for line in std::fs::read_to_string(table).unwrap_or_default().lines() {
            let fields: Vec<&str> = line.split_whitespace().collect();
            if let [_, local, _, LISTEN, _, _, _, _, _, inode, ..] = fields.as_slice()
                && local.ends_with(&wanted)
            {
                sockets.push(PathBuf::from(format!("socket:[{inode}]")));
            }
        }
    }
    sockets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_free_and_all_different() {
        let names: Vec<String> = (0..50).map(|n| format!("port{n}")).collect();
        let first = Ports::take(&names).unwrap().release();
        let second = Ports::take(&names).unwrap().release();
        let all: BTreeSet<u16> = first.iter().chain(&second).copied().collect();
        assert_eq!(all.len(), 100);
    }

    #[test]
    fn ports_are_none_that_connections_get() {
        let range = match first_ephemeral() {
            end if end >= FIRST + 1000 => FIRST..end,
            // Connections may get every port that is chosen here.
            end => end..u16::MAX,
        };
        for _ in 0..50 {
            let port = free_port().unwrap();
            assert!(range.contains(&port), "{port} is not in {range:?}");
        }
    }

    #[test]
    fn only_the_systems_own_listener_counts() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let me = std::process::id() as i32;
        assert!(accepts(Ipv4Addr::LOCALHOST, port, &[me]));
        assert!(!accepts(Ipv4Addr::LOCALHOST, port, &[]));
        assert!(!is_free(port));
        drop(listener);
        assert!(!accepts(Ipv4Addr::LOCALHOST, port, &[me]));
    }
}
