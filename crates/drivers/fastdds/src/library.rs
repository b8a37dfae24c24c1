//! Fast DDS for a fleet: a participant, with the readers of its clients.
//!
//! The participant starts when the fleet is opened, with all threads that the library needs. A client
//! has a Subscriber with one DataReader for all that it subscribes to.

mod calls;
mod client_reader;
mod reading;
mod setup;

use std::collections::VecDeque;

use pubgauge_dds::fleet::DdsFleet;
use pubgauge_dds::footprint::check_room;
use pubgauge_driver::{ClientId, DriverError, FleetConfig};

use self::client_reader::ClientReader;
use self::setup::shim_config;
use crate::ffi::{GROUP, Participant, RawSample};
use crate::janitor::Janitor;
use crate::options::FastOptions;

/// One worker thread's share of the clients.
pub(crate) type FastddsFleet = DdsFleet<FastDds>;

/// Descriptors and threads that Fast DDS takes at most when a participant is created: 9 and 4
/// (2.9.1), with shared memory 9 and 6, one descriptor for a while, plus a reserve for other
/// versions.
const DESCRIPTORS: usize = 16;
const THREADS: usize = 10;

/// The participant of one fleet, with its readers. Fields end in the order in which they stand: readers
/// before their participant, and the files that it leaves last.
pub(crate) struct FastDds {
    /// By the number of their client.
    readers: Vec<ClientReader>,
    /// Clients whose readers have something, as far as known.
    flooded: VecDeque<u32>,
    ready: Vec<u32>,
    samples: Vec<RawSample>,
    /// Clients whose readers lack subscriptions.
    asking: Vec<ClientId>,
    /// Some writer is held back; how many datagrams had come before it found no room.
    held_back: bool,
    arrivals_before: i64,
    options: FastOptions,
    participant: Participant,
    /// Present where the library keeps files.
    _janitor: Option<Janitor>,
}

impl FastDds {
    pub(crate) fn open(
        config: &FleetConfig,
        options: FastOptions,
        domain: u32,
    ) -> Result<Self, DriverError> {
        let janitor = if options.shared_memory || options.native.data_sharing {
            Some(Janitor::engage()?)
        } else {
            None
        };
        check_room("Fast DDS", DESCRIPTORS, THREADS)?;
        let participant = Participant::open(&shim_config(config, &options, domain)?)?;
        Ok(FastDds {
            readers: Vec::with_capacity(config.clients),
            flooded: VecDeque::with_capacity(config.clients),
            ready: vec![0; 64],
            samples: vec![RawSample::EMPTY; GROUP],
            asking: Vec::new(),
            held_back: false,
            arrivals_before: 0,
            options,
            participant,
            _janitor: janitor,
        })
    }
}
