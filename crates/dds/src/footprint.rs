//! The resources that a DDS library takes.

use pubgauge_driver::{Crowd, DriverError, Footprint, Resource};

/// Measured figures of a library.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// Descriptors of a fleet.
    pub descriptors: u64,
    /// Threads of a fleet.
    pub threads: u64,
    /// Resident memory of a fleet.
    pub fleet_bytes: u64,
    /// Resident memory of a writer, with what another fleet knows of it.
    pub writer_bytes: u64,
    /// Resident memory of a reader.
    pub reader_bytes: u64,
    /// Resident memory of each pair of a writer and a reader that match.
    pub match_bytes: u64,
}

impl Costs {
    /// The footprint of a crowd.
    pub fn footprint(&self, crowd: &Crowd) -> Footprint {
        Footprint {
            descriptors: crowd.fleets * self.descriptors,
            threads: crowd.fleets * self.threads,
            memory_bytes: crowd.fleets * self.fleet_bytes
                + crowd.streams * self.writer_bytes
                + crowd.subscribers * self.reader_bytes
                + crowd.stream_links * self.match_bytes,
            ..Footprint::default()
        }
    }
}

/// Checks that there are as many descriptors and threads as a library takes at most when it starts: with fewer it
/// crashes, ends the process or does without, and does not say so.
///
/// # Errors
/// There are fewer.
pub fn check_room(library: &str, descriptors: usize, threads: usize) -> Result<(), DriverError> {
    Resource::can_have(descriptors, threads).map_err(|resource| {
        DriverError::exhausted(format!("no {resource} left to start {library}"), resource)
    })
}
