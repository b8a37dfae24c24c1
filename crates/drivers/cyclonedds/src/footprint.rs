//! The resources that Cyclone DDS takes. All figures are of libddsc 0.10.2, counted in `/proc`
//! while two fleets with 1 to 400 clients each had heard each other.

use pubgauge_dds::footprint::Costs;
use pubgauge_driver::{Crowd, Footprint};

use crate::options::CycloneOptions;

const COSTS: Costs = Costs {
    descriptors: 5,
    threads: 6,
    fleet_bytes: 900_000,
    writer_bytes: 16_000,
    reader_bytes: 10_000,
    match_bytes: 1_000,
};

pub(crate) fn footprint(options: &CycloneOptions, crowd: &Crowd) -> Footprint {
    let mut costs = COSTS;
    if options.multicast.is_some() {
        // Two sockets, and the thread that receives from them.
        costs.descriptors += 2;
        costs.threads += 1;
    }
    costs.footprint(crowd)
}
