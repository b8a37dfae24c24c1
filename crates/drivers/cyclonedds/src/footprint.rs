//! The resources that Cyclone DDS takes. All figures are of libddsc 0.10.2, counted in `/proc`
//! while two fleets with 1 to 400 clients each had heard each other.

use pubgauge_driver::{Crowd, Footprint};

use crate::options::Options;

/// Descriptors and threads of a domain.
const DESCRIPTORS: u64 = 5;
const THREADS: u64 = 6;
/// Further ones with multicast: two sockets, and the thread that receives from them.
const MULTICAST: (u64, u64) = (2, 1);

/// Resident memory of a fleet, of a writer with what another fleet knows of it, of a reader, and
/// of each pair of them that match, in bytes.
const FLEET_BYTES: u64 = 900_000;
const WRITER_BYTES: u64 = 16_000;
const READER_BYTES: u64 = 10_000;
const MATCH_BYTES: u64 = 1_000;

pub(crate) fn of(options: &Options, crowd: &Crowd) -> Footprint {
    let (sockets, receivers) = match options.multicast {
        Some(_) => MULTICAST,
        None => (0, 0),
    };
    Footprint {
        descriptors: crowd.fleets * (DESCRIPTORS + sockets),
        threads: crowd.fleets * (THREADS + receivers),
        memory_bytes: crowd.fleets * FLEET_BYTES
            + crowd.streams * WRITER_BYTES
            + crowd.subscribers * READER_BYTES
            + crowd.stream_links * MATCH_BYTES,
        ..Footprint::default()
    }
}
