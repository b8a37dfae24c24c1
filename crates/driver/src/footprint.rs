//! The footprint of a trial's clients in the process and on the host that they live in, as far as it is known before
//! anything is started.

use std::ops::Add;

/// The clients of one trial in numbers: what decides how much they take. All of them live in one
/// process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crowd {
    /// Fleets, one for each worker.
    pub fleets: u64,
    /// Clients, each counted once.
    pub clients: u64,
    /// Clients that publish.
    pub publishers: u64,
    /// Clients that subscribe.
    pub subscribers: u64,
    /// Topics, counted for each client that publishes to them.
    pub streams: u64,
    /// Pairs of a publishing client and a subscribing one that is entitled to hear it.
    pub links: u64,
    /// Pairs of one of the `streams` and a subscribing client that is entitled to it.
    pub stream_links: u64,
}

/// The least that a crowd takes. 0 where it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// File descriptors of the client's process.
    pub descriptors: u64,
    /// Threads of client libraries, beside the workers'.
    pub threads: u64,
    /// Memory of the process, and of the kernel for its sockets, before any message waits
    /// anywhere, in bytes.
    pub memory_bytes: u64,
    /// Connections that a server must accept.
    pub server_connections: u64,
    /// Local ports.
    pub ports: Ports,
}

/// How many local TCP ports a crowd takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ports {
    /// None, or not known.
    #[default]
    Unknown,
    /// Each client connects once, to the endpoint and from the source address that it is given
    /// ([`crate::ClientSpec`]).
    OneForEachClient,
    /// This many, all of one local address that all clients have.
    OfOneAddress(u64),
}

impl Footprint {
    /// Of clients that each have one TCP connection to a server, watched by one epoll for each
    /// fleet. `client_bytes`: memory of an idle client in the process. The kernel takes some
    /// 3.7 KB for the client's end of a connection: slabs grew by 7.4 KB for both ends (Linux 6.18,
    /// 4000 connections to mosquitto).
    pub fn over_tcp(crowd: &Crowd, client_bytes: u64) -> Self {
        const KERNEL_BYTES: u64 = 3_700;
        Footprint {
            descriptors: crowd.clients + crowd.fleets,
            threads: 0,
            memory_bytes: crowd.clients * (client_bytes + KERNEL_BYTES),
            server_connections: crowd.clients,
            ports: Ports::OneForEachClient,
        }
    }
}

/// Of two libraries side by side; the ports are those of the first that knows them.
impl Add for Footprint {
    type Output = Footprint;

    fn add(self, other: Footprint) -> Footprint {
        Footprint {
            descriptors: self.descriptors + other.descriptors,
            threads: self.threads + other.threads,
            memory_bytes: self.memory_bytes + other.memory_bytes,
            server_connections: self.server_connections + other.server_connections,
            ports: match self.ports {
                Ports::Unknown => other.ports,
                known => known,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_for_each_client() {
        let crowd = Crowd {
            fleets: 2,
            clients: 1000,
            publishers: 900,
            subscribers: 200,
            ..Crowd::default()
        };
        let footprint = Footprint::over_tcp(&crowd, 300);
        assert_eq!(footprint.descriptors, 1002);
        assert_eq!(footprint.server_connections, 1000);
        assert_eq!(footprint.memory_bytes, 4_000_000);
        let both = footprint + Footprint::default();
        assert_eq!(both, footprint);
        assert_eq!(Footprint::default() + footprint, footprint);
    }
}
