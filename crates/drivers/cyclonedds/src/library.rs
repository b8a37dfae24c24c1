//! Cyclone DDS for a fleet: a domain within the process, with its writers and readers.

mod calls;
mod entities;
mod topics;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};

use pubgauge_dds::domain;
use pubgauge_dds::fleet::DdsFleet;
use pubgauge_dds::footprint::check_room;
use pubgauge_dds::library::{Library, Traffic};
use pubgauge_driver::{Batching, DriverError, FleetConfig, Nanos, Resource, monotonic_now};

use self::entities::Subscriber;
use crate::batch::Batches;
use crate::ffi::{Domain, Qos, Taken};
use crate::native::{NAME, Ownership};
use crate::options::{CycloneOptions, DEFAULT_HOLD_US};
use crate::patience::Patience;
use crate::{config, ports};

/// A fleet over Cyclone DDS.
///
/// Opened through [`crate::CycloneddsDriver::open_fleet`] by callers that need [`Cyclone::statistics`].
pub type CycloneFleet = DdsFleet<Cyclone>;

/// How soon a publisher that is held back is looked at again, if nothing was heard before that
/// may have made room.
const RETRY_US: u32 = 200;

/// Descriptors and threads that Cyclone takes at most when a domain is opened: 5 and 6 (0.10.2),
/// with multicast 7 and 7, plus a reserve for other versions.
const DESCRIPTORS: usize = 10;
const THREADS: usize = 8;

/// Number of the next domain in this process. The domains' numbers on the network are others
/// (`ExternalDomainId`); these only have to differ.
static INSTANCES: AtomicU32 = AtomicU32::new(1_000_000);

/// The domain of one fleet, with its readers.
pub struct Cyclone {
    subscribers: Vec<Option<Subscriber>>,
    /// Subscribers whose turn ended before they were empty.
    unfinished: VecDeque<u32>,
    taken: Taken,
    batches: Batches,
    /// Numbers of the topics with an unfinished batch.
    gathering: Vec<u32>,
    /// Some writer is held back.
    held_back: bool,
    /// A write found no room since the last look: acknowledgements may have come in between.
    look: bool,
    retry: Nanos,
    patience: Patience,
    writer_qos: Qos,
    reader_qos: Qos,
    options: CycloneOptions,
    /// The last field: what was taken is given back before the domain ends.
    domain: Domain,
}

/// Counts of Cyclone for a fleet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// UDP traffic: data, heartbeats, acknowledgements, discovery. `None` if this version of the
    /// library cannot be counted.
    pub traffic: Option<Traffic>,
    /// Deadlines that writers missed, at all readers of the fleet that still live.
    pub deadlines_missed: u64,
    /// Writers that the fleet's readers could not match because of their QoS.
    pub incompatible_writers: u64,
}

impl Cyclone {
    pub(crate) fn open(config: &FleetConfig, options: CycloneOptions) -> Result<Self, DriverError> {
        let number = domain::choose(&config.target, options.native.domain, NAME)?;
        let xml = config::xml(&options, number, config.target.network.as_ref());
        let instance = INSTANCES.fetch_add(1, Ordering::Relaxed);
        let limit = options.cache_limit(config.max_payload);
        check_room("Cyclone DDS", DESCRIPTORS, THREADS)?;
        let domain = Domain::open(instance, &xml, limit).map_err(|why| {
            let mut error = DriverError::with_hint(
                format!("Cyclone DDS does not start in domain {number}: {why}"),
                "each worker needs two UDP ports, at most 120 workers of a host share a domain, \
                 and the interface must be up (native.cyclonedds.interface)",
            );
            error.exhausted = ports::are_taken(number).then_some(Resource::Ports);
            error
        })?;
        let us = |us: u32| Nanos::from(us) * 1000;
        let native = &options.native;
        let hold = us(native.hold_us.unwrap_or(DEFAULT_HOLD_US));
        let largest = options.max_message_bytes;
        Ok(Cyclone {
            subscribers: Vec::new(),
            unfinished: VecDeque::new(),
            taken: Taken::new(),
            batches: Batches::new(options.batching, largest, hold, monotonic_now()),
            gathering: Vec::new(),
            held_back: false,
            look: false,
            retry: us(native.retry_us.unwrap_or(RETRY_US)),
            patience: Patience::new(native.busy_poll_us.map(us)),
            writer_qos: qos(&options, options.writer_depth, 0),
            reader_qos: qos(
                &options,
                options.reader_depth,
                options.native.max_samples.unwrap_or(0),
            ),
            options,
            domain,
        })
    }

    /// Counts since the fleet was opened.
    pub fn statistics(&self) -> Statistics {
        let readers = || self.subscribers.iter().flatten().map(|s| &s.reader);
        Statistics {
            traffic: self.traffic(),
            deadlines_missed: readers().map(|r| u64::from(r.deadlines_missed())).sum(),
            incompatible_writers: readers().map(|r| u64::from(r.incompatible())).sum(),
        }
    }

    fn gathers(&self) -> bool {
        self.options.batching != Batching::Off
    }
}

fn qos(options: &CycloneOptions, depth: i32, max_samples: i32) -> Qos {
    let native = &options.native;
    let ns = |ms: Option<i64>| ms.map_or(i64::MAX, |ms| ms.saturating_mul(1_000_000));
    Qos {
        lifespan_ns: ns(options.lifespan_ms),
        deadline_ns: ns(native.deadline_ms),
        latency_budget_ns: ns(native.latency_budget_ms),
        depth,
        max_samples,
        transport_priority: native.transport_priority,
        ownership_strength: native.ownership_strength.unwrap_or(0),
        reliable: options.reliable,
        transient_local: options.last_value,
        exclusive: native.ownership == Ownership::Exclusive,
    }
}
