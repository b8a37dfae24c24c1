//! The resources that libzmq takes. All figures are of libzmq 4.3.4 as zmq-sys builds it, counted
//! in `/proc` while fleets of 1 to 400 clients had heard each other; `tests/it/resources.rs` counts
//! the descriptors again.
//!
//! A mailbox is a pair of sockets. Each libzmq socket has one; a socket that connects also has a
//! monitor, which is two more sockets. A connection is one descriptor at either end, and both ends
//! are in the client's process where there is no forwarder.

use pubgauge_driver::{Crowd, Footprint, Ports, Transport};

use crate::options::{Topology, ZeromqOptions};

/// A socket that binds: its mailbox and the listener.
const BOUND: u64 = 3;
/// A socket that connects: its mailbox, those of the monitor's two ends.
const CONNECTING: u64 = 6;

/// Resident memory of a bound socket, of a connecting one, and of both ends of a connection with
/// their buffers and pipes, the kernel's part of it included, in bytes.
const BOUND_BYTES: u64 = 10_000;
const CONNECTING_BYTES: u64 = 15_000;
const LINK_BYTES: u64 = 56_000;

pub(crate) fn estimate(options: &ZeromqOptions, topology: Topology, crowd: &Crowd) -> Footprint {
    let threads = u64::from(options.native.io_threads) + 1;
    let fleets = Footprint {
        // An epoll and a mailbox for each thread, the context's mailbox, the fleet's epoll.
        descriptors: crowd.fleets * (3 * threads + 3),
        threads: crowd.fleets * threads,
        ..Footprint::default()
    };
    let over_tcp = options.transport != Some(Transport::Ipc);
    let clients = match topology {
        Topology::Forwarder => {
            let sockets = crowd.publishers + crowd.subscribers;
            // One side of the forwarder is one address and port.
            let most = crowd.publishers.max(crowd.subscribers);
            Footprint {
                descriptors: sockets * (CONNECTING + 1),
                memory_bytes: sockets * (CONNECTING_BYTES + LINK_BYTES / 2),
                server_connections: sockets,
                ports: ports(over_tcp, most),
                threads: 0,
            }
        }
        Topology::Direct => {
            let (queues, receivers, links) = if options.point_to_point {
                (
                    crowd.streams,
                    crowd.subscribers,
                    crowd.links + crowd.stream_links,
                )
            } else {
                (0, 0, crowd.links)
            };
            let bound = crowd.publishers + queues;
            let connecting = crowd.subscribers + receivers;
            // Of the connections to one bound socket, on average, each has a port, which is none
            // of those that are bound.
            let ports_taken = bound + links.div_ceil(bound.max(1));
            Footprint {
                descriptors: bound * BOUND + connecting * CONNECTING + 2 * links,
                memory_bytes: bound * BOUND_BYTES
                    + connecting * CONNECTING_BYTES
                    + links * LINK_BYTES,
                ports: ports(over_tcp, ports_taken),
                threads: 0,
                server_connections: 0,
            }
        }
    };
    fleets + clients
}

fn ports(over_tcp: bool, taken: u64) -> Ports {
    if over_tcp {
        Ports::OfOneAddress(taken)
    } else {
        Ports::Unknown
    }
}
