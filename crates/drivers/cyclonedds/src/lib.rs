//! Eclipse Cyclone DDS, through a C shim over Debian's libddsc 0.10.
//!
//! All messages are of one DDS topic, `pubgauge`, and one type, a sequence of octets keyed by its
//! writer (shim/message.idl). A topic of pubgauge is the PARTITION of a DDS publisher with one
//! writer; a subscription is a DDS subscriber with one reader. Any DDS program that uses the same
//! names can take part; the Fast DDS driver does.
//!
//! Each fleet is a domain of its own within the process, with its own sockets and threads, and all
//! of them are one domain on the network: what two fleets say to each other goes through UDP as
//! between processes. Participants find each other over unicast on the loopback interface, unless
//! told otherwise.
//!
//! Without the cargo feature `native` the library is not linked: the driver then only resolves its
//! settings, and [`Driver::open`] fails with what is missing.
//!
//! [`Driver::open`]: pubgauge_driver::Driver::open

// Without the library, everything that does not call it is still built and tested.
#![cfg_attr(not(feature = "native"), allow(dead_code))]

mod batch;
mod config;
#[cfg(feature = "native")]
mod ffi;
#[cfg(feature = "native")]
mod library;

mod footprint;
mod native;
mod options;
mod patience;
#[cfg(all(test, feature = "native"))]
mod pool_tests;
mod ports;

#[cfg(feature = "native")]
pub use library::{Cyclone, CycloneFleet, Statistics};

use pubgauge_dds::domain::MAX_DOMAIN;
use pubgauge_dds::topic::Filter;
use pubgauge_driver::capability::{Answer, Capability, Filtering};
use pubgauge_driver::{
    Crowd, Driver, DriverError, Fleet, FleetConfig, Footprint, Mapping, Settings, Subscription,
    Target, Topology, Traits, Unsupported, accepted,
};

const HOW_TO_LINK: &str = "install the library and build with it (Debian): apt-get install \
                               cyclonedds-dev && cargo build --release --features cyclonedds";

/// The driver. [`Target::endpoints`] may name the DDS domain, as `dds://localhost/N`; otherwise
/// it follows from [`Target::scratch`].
#[derive(Clone, Copy, Debug, Default)]
pub struct CycloneddsDriver;

impl CycloneddsDriver {
    /// The XML configuration that Cyclone is started with under `settings`, in DDS domain `domain`
    /// (0 to 232); for other programs that are to be configured in the same way.
    ///
    /// # Errors
    /// Settings that [`Driver::resolve`] refuses.
    pub fn configuration(&self, settings: &Settings, domain: u32) -> Result<String, DriverError> {
        let options = accepted("Cyclone DDS", options::resolve(settings))?;
        Ok(config::xml(&options, domain.min(MAX_DOMAIN), None))
    }
}

impl Driver for CycloneddsDriver {
    fn name(&self) -> &'static str {
        native::NAME
    }

    fn library(&self) -> Option<String> {
        #[cfg(feature = "native")]
        return Some(format!("Cyclone DDS {}", ffi::version()));
        #[cfg(not(feature = "native"))]
        None
    }

    fn missing(&self) -> Option<&'static str> {
        (!cfg!(feature = "native")).then_some(HOW_TO_LINK)
    }

    fn resolve(
        &self,
        settings: &Settings,
        _target: &Target,
    ) -> Result<Vec<Mapping>, Vec<Unsupported>> {
        options::resolve(settings).map(|(_, mappings)| mappings)
    }

    fn native_schema(&self) -> Option<serde_json::Value> {
        Some(native::NATIVE.schema())
    }

    /// Settings that [`Driver::resolve`] refuses have the traits of the default settings.
    fn traits(&self, settings: &Settings) -> Traits {
        options::resolve(settings)
            .or_else(|_| options::resolve(&Settings::default()))
            .map(|(options, _)| options.traits())
            .expect("the default settings ask for nothing that could be refused")
    }

    fn check_subscription(
        &self,
        _settings: &Settings,
        _: &Target,
        subscription: &Subscription,
    ) -> Result<(), DriverError> {
        Filter::new(subscription).map(drop)
    }

    fn topology(&self, _target: &Target) -> Topology {
        Topology::Brokerless
    }

    fn capability(&self, capability: Capability, target: &Target) -> Answer {
        match capability {
            Capability::Filter(Filtering::Content) => Answer::unsupported(
                "Cyclone DDS 0.10 evaluates no filter expressions: it asks a function of the application at the reader, and pubgauge sets none",
            ),
            _ => capability.derived(self, target),
        }
    }

    fn footprint(&self, settings: &Settings, _: &Target, crowd: &Crowd) -> Footprint {
        options::resolve(settings).map_or_else(
            |_| Footprint::default(),
            |(options, _)| footprint::footprint(&options, crowd),
        )
    }

    fn open(&self, config: FleetConfig) -> Result<Box<dyn Fleet>, DriverError> {
        let options = accepted("Cyclone DDS", options::resolve(&config.settings))?;
        open(&config, options)
    }
}

#[cfg(feature = "native")]
impl CycloneddsDriver {
    /// As [`Driver::open`], for callers that need [`Cyclone::statistics`].
    ///
    /// # Errors
    /// As [`Driver::open`].
    pub fn open_fleet(&self, config: &FleetConfig) -> Result<CycloneFleet, DriverError> {
        let options = accepted("Cyclone DDS", options::resolve(&config.settings))?;
        Ok(CycloneFleet::new(config, Cyclone::open(config, options)?))
    }
}

#[cfg(feature = "native")]
fn open(
    config: &FleetConfig,
    options: options::CycloneOptions,
) -> Result<Box<dyn Fleet>, DriverError> {
    let library = Cyclone::open(config, options)?;
    Ok(Box::new(CycloneFleet::new(config, library)))
}

#[cfg(not(feature = "native"))]
fn open(_: &FleetConfig, _: options::CycloneOptions) -> Result<Box<dyn Fleet>, DriverError> {
    Err(DriverError::with_hint(
        "this pubgauge was built without Cyclone DDS",
        HOW_TO_LINK,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(not(feature = "native"))]
    fn without_the_library_it_says_how_to_get_it() {
        let config = FleetConfig {
            target: Target::default(),
            settings: Settings::default(),
            max_payload: 64,
            clients: 1,
            ..FleetConfig::default()
        };
        let error = CycloneddsDriver.open(config).err().unwrap().to_string();
        assert!(error.contains("apt-get install cyclonedds-dev"), "{error}");
        assert!(error.contains("--features cyclonedds"), "{error}");
        assert!(error.contains(CycloneddsDriver.missing().unwrap()));
        assert!(CycloneddsDriver.library().is_none());
    }

    #[test]
    fn the_configuration_names_the_domain() {
        let xml = CycloneddsDriver.configuration(&Settings::default(), 42);
        assert!(xml.unwrap().contains("<ExternalDomainId>42<"));
    }

    #[test]
    fn groups_and_bad_filters_are_refused_in_the_plan() {
        let check = |subscription: Subscription| {
            let target = Target::default();
            CycloneddsDriver.check_subscription(&Settings::default(), &target, &subscription)
        };
        assert!(check(Subscription::matching("a/+/#")).is_ok());
        assert!(check(Subscription::matching("a").of_group("g")).is_err());
        assert!(check(Subscription::matching("a/#/b")).is_err());
    }
}
