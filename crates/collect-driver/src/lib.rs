//! The driver for MQTT with one more setting, `native.mqtt.collect`: subscribers are collectors of `pubgauge-collect`, and a
//! message is delivered once it is on disk.
//!
//! It is registered in place of [`MqttDriver`], whose name and answers it has, so that any system and any settings over
//! MQTT can have collectors as subscribers, and the driver for MQTT itself knows of none. What is delegated is what
//! [`MqttDriver`] answers itself; a method that it comes to answer is to be delegated too.

mod asked;
mod collecting;
mod fleet;
mod relay;
mod setup;
mod told;

use pubgauge_driver::{
    Carries, Crowd, Driver, DriverError, Fleet, FleetConfig, Footprint, Identification, Mapping,
    Scheme, Settings, Subscription, Target, Traits, Unsupported, Will, accepted,
};
use pubgauge_driver_mqtt::{MqttDriver, SubscriberTerms};

use asked::Asked;

/// The driver.
#[derive(Clone, Copy, Debug, Default)]
pub struct CollectDriver;

impl Driver for CollectDriver {
    fn name(&self) -> &'static str {
        MqttDriver.name()
    }

    fn schemes(&self) -> &'static [Scheme] {
        MqttDriver.schemes()
    }

    fn resolve(
        &self,
        settings: &Settings,
        target: &Target,
    ) -> Result<Vec<Mapping>, Vec<Unsupported>> {
        let asked = Asked::read(settings);
        let mut refused = asked.wrong.clone();
        let mut rows = MqttDriver
            .resolve(&asked.rest, target)
            .unwrap_or_else(|more| {
                refused.extend(more);
                Vec::new()
            });
        refused.extend(asked.refused_for_collectors(settings, target));
        if !refused.is_empty() {
            return Err(refused);
        }
        rows.extend(asked.row);
        Ok(rows)
    }

    fn native_schema(&self) -> Option<serde_json::Value> {
        Some(asked::NATIVE.schema())
    }

    fn traits(&self, settings: &Settings) -> Traits {
        MqttDriver.traits(settings)
    }

    fn identification(&self, settings: &Settings, target: &Target) -> Identification {
        let asked = Asked::read(settings);
        if asked.collects() {
            return Identification::none("collectors log in as the command line says, all alike");
        }
        MqttDriver.identification(&asked.rest, target)
    }

    fn carries(&self, settings: &Settings, target: &Target) -> Carries {
        let asked = Asked::read(settings);
        // A collector stores payloads alone, where messages are found again.
        if asked.collects() {
            return Carries::default();
        }
        MqttDriver.carries(&asked.rest, target)
    }

    fn check_will(&self, settings: &Settings, target: &Target, will: &Will) -> Result<(), String> {
        let asked = Asked::read(settings);
        if asked.collects() {
            return Err("a collector has no last will".into());
        }
        MqttDriver.check_will(&asked.rest, target, will)
    }

    fn bounds_reading(&self, settings: &Settings) -> Result<(), String> {
        if Asked::read(settings).collects() {
            return Err("a collector takes all that comes".into());
        }
        MqttDriver.bounds_reading(settings)
    }

    fn rejection(&self, code: u16) -> String {
        MqttDriver.rejection(code)
    }

    fn check_subscription(
        &self,
        settings: &Settings,
        target: &Target,
        subscription: &Subscription,
    ) -> Result<(), DriverError> {
        let rest = Asked::read(settings).rest;
        MqttDriver.check_subscription(&rest, target, subscription)
    }

    fn footprint(&self, settings: &Settings, target: &Target, crowd: &Crowd) -> Footprint {
        let asked = Asked::read(settings);
        let footprint = MqttDriver.footprint(&asked.rest, target, crowd);
        if asked.collects() {
            footprint + fleet::footprint(crowd)
        } else {
            footprint
        }
    }

    fn open(&self, mut config: FleetConfig) -> Result<Box<dyn Fleet>, DriverError> {
        let resolved = self.resolve(&config.settings, &config.target);
        accepted("MQTT", resolved.map(|rows| ((), rows)))?;
        let asked = Asked::read(&config.settings);
        let collects = asked.collects();
        config.settings = asked.rest;
        if !collects {
            return MqttDriver.open(config);
        }
        let terms = SubscriberTerms::new(&config.settings, &config.target);
        let (target, clock) = (config.target.clone(), config.clock.clone());
        let worker = config.worker;
        let publishing = MqttDriver.open(config)?;
        let fleet = fleet::open(publishing, terms, target, clock, worker);
        Ok(Box::new(fleet))
    }
}
