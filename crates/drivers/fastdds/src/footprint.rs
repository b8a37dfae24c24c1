//! The resources that Fast DDS takes. All figures are of libfastrtps 2.9.1, counted in `/proc`
//! while two fleets with 1 to 300 clients each had heard each other.

use pubgauge_driver::{Crowd, Footprint};

use crate::options::Options;

/// Descriptors and threads of a participant over UDP.
const DESCRIPTORS: u64 = 6;
const THREADS: u64 = 4;
/// Further ones over shared memory: the janitor's pipe is the process's, not the participant's.
const SHARED_MEMORY_THREADS: u64 = 1;
/// Descriptors that the first participant of a process opens for all.
const PROCESS_DESCRIPTORS: u64 = 3;

/// Resident memory of a participant, of a writer, of a reader, and of each pair of them that match,
/// in bytes.
const FLEET_BYTES: u64 = 1_700_000;
const WRITER_BYTES: u64 = 72_000;
const READER_BYTES: u64 = 88_000;
const MATCH_BYTES: u64 = 10_000;

pub(crate) fn of(options: &Options, crowd: &Crowd) -> Footprint {
    let mut threads = crowd.fleets * THREADS;
    if options.shared_memory {
        threads += crowd.fleets * SHARED_MEMORY_THREADS;
    }
    if options.native.data_sharing {
        // Each reader has a thread that listens to the shared files.
        threads += crowd.subscribers;
    }
    Footprint {
        descriptors: PROCESS_DESCRIPTORS + crowd.fleets * DESCRIPTORS,
        threads,
        memory_bytes: crowd.fleets * FLEET_BYTES
            + crowd.streams * WRITER_BYTES
            + crowd.subscribers * READER_BYTES
            + crowd.stream_links * MATCH_BYTES,
        ..Footprint::default()
    }
}
