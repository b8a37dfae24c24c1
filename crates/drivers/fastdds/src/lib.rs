//! Fast DDS, the DDS implementation of eProsima, through a thin C++ shim over the system's
//! libfastrtps (release 2).
//!
//! The shim is compiled with the cargo feature `native`. Without it the driver still resolves
//! settings, and [`Driver::open`] fails with what is missing.
//!
//! All messages have the DDS topic `pubgauge` and the type
//!
//! ```text
//! module pubgauge { @final struct Message { @key unsigned long device; sequence<octet> payload; }; };
//! ```
//!
//! in plain little-endian CDR (XCDR version 1), so that any DDS implementation can take part.
//! Topics of pubgauge are partitions ([`pubgauge_dds::topic`]).
//!
//! Each fleet is one domain participant on the loopback interface; it has threads of its own for
//! events, for reception and, with asynchronous publishing, for sending. Participants find each
//! other by unicast. Calls between participants of one process (`intraprocess`) and sharing of
//! memory (`data-sharing`) are off unless asked for: a trial measures messages that go through
//! sockets.

// Without the library, nothing uses the options that only the fleet reads.
#![cfg_attr(not(feature = "native"), allow(dead_code))]

#[cfg(feature = "native")]
mod ffi;
#[cfg(feature = "native")]
mod janitor;
#[cfg(feature = "native")]
mod library;

mod footprint;
mod native;
mod options;
mod topic;

use pubgauge_dds::domain;
use pubgauge_dds::topic::Filter;
use pubgauge_driver::capability::{Answer, Capability, Filtering};
use pubgauge_driver::{
    Crowd, Driver, DriverError, Fleet, FleetConfig, Footprint, Mapping, Settings, Subscription,
    Target, Topology, Traits, Unsupported, accepted,
};

const HOW_TO_LINK: &str = "install the library and build with it: apt-get install \
                               libfastrtps-dev libfastcdr-dev, then cargo build --release \
                               --features fastdds";

/// The driver. The domain is that of the target's endpoint, `dds://localhost/N`; without one it
/// follows from the trial's private folder, so that the fleets of one trial share a domain and
/// those of others use another.
#[derive(Clone, Copy, Debug, Default)]
pub struct FastddsDriver;

impl Driver for FastddsDriver {
    fn name(&self) -> &'static str {
        native::NAME
    }

    fn library(&self) -> Option<String> {
        option_env!("FASTDDS_VERSION").map(|version| format!("Fast DDS {version}"))
    }

    fn missing(&self) -> Option<&'static str> {
        (!cfg!(feature = "native")).then_some(HOW_TO_LINK)
    }

    fn resolve(
        &self,
        settings: &Settings,
        target: &Target,
    ) -> Result<Vec<Mapping>, Vec<Unsupported>> {
        options::resolve(settings, target).map(|(_, mappings)| mappings)
    }

    fn native_schema(&self) -> Option<serde_json::Value> {
        Some(native::NATIVE.schema())
    }

    /// Settings that [`Driver::resolve`] refuses have the traits of the default settings.
    fn traits(&self, settings: &Settings) -> Traits {
        let target = Target::default();
        options::resolve(settings, &target)
            .or_else(|_| options::resolve(&Settings::default(), &target))
            .map(|(options, _)| options.traits())
            .expect("the default settings ask for nothing that could be refused")
    }

    fn check_subscription(
        &self,
        _: &Settings,
        _: &Target,
        asked: &Subscription,
    ) -> Result<(), DriverError> {
        topic::check_pattern(&Filter::new(asked)?)
    }

    fn topology(&self, _: &Target) -> Topology {
        Topology::Brokerless
    }

    fn capability(&self, capability: Capability, target: &Target) -> Answer {
        match capability {
            Capability::Filter(Filtering::Content) => Answer::unsupported(
                "a content-filtered topic needs fields to filter by; the type here is an octet sequence whose only field is the device, and none is set up",
            ),
            _ => capability.derived(self, target),
        }
    }

    fn footprint(&self, settings: &Settings, target: &Target, crowd: &Crowd) -> Footprint {
        options::resolve(settings, target).map_or_else(
            |_| Footprint::default(),
            |(options, _)| footprint::footprint(&options, crowd),
        )
    }

    fn open(&self, config: FleetConfig) -> Result<Box<dyn Fleet>, DriverError> {
        let resolved = options::resolve(&config.settings, &config.target);
        let options = accepted("Fast DDS", resolved)?;
        let domain = domain::choose(&config.target, options.native.domain, native::NAME)?;
        open(&config, options, domain)
    }
}

#[cfg(feature = "native")]
fn open(
    config: &FleetConfig,
    options: options::FastOptions,
    domain: u32,
) -> Result<Box<dyn Fleet>, DriverError> {
    let library = library::FastDds::open(config, options, domain)?;
    Ok(Box::new(library::FastddsFleet::new(config, library)))
}

#[cfg(not(feature = "native"))]
fn open(_: &FleetConfig, _: options::FastOptions, _: u32) -> Result<Box<dyn Fleet>, DriverError> {
    Err(DriverError::with_hint(
        "this program was built without Fast DDS",
        HOW_TO_LINK,
    ))
}
