//! The resources that Fast DDS takes. All figures are of libfastrtps 2.9.1, counted in `/proc`
//! while two fleets with 1 to 300 clients each had heard each other.

use pubgauge_dds::footprint::Costs;
use pubgauge_driver::{Crowd, Footprint};

use crate::options::FastOptions;

/// A participant over UDP.
const COSTS: Costs = Costs {
    descriptors: 6,
    threads: 4,
    fleet_bytes: 1_700_000,
    writer_bytes: 72_000,
    reader_bytes: 88_000,
    match_bytes: 10_000,
};
/// Descriptors that the first participant of a process opens for all.
const PROCESS_DESCRIPTORS: u64 = 3;

pub(crate) fn footprint(options: &FastOptions, crowd: &Crowd) -> Footprint {
    let mut costs = COSTS;
    if options.shared_memory {
        // The janitor's pipe is the process's, not the participant's.
        costs.threads += 1;
    }
    let mut footprint = costs.footprint(crowd);
    footprint.descriptors += PROCESS_DESCRIPTORS;
    if options.native.data_sharing {
        // Each reader has a thread that listens to the shared files.
        footprint.threads += crowd.subscribers;
    }
    footprint
}
