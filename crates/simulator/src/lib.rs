//! The simulated system: a driver for a system whose true behaviour is known.
//!
//! The caller sets its delay distribution, loss, duplication, reordering, stalls, limits and disconnects, and the
//! sleeps of the client itself. Everything it does is recorded ([`Bus::truth`]), so that the engine's report can be
//! compared with what happened.

mod behaviour;
mod bus;
mod fleet;
mod truth;

use std::sync::Arc;

pub use behaviour::{Behaviour, Pauses, Waiting, WhenFull};
pub use bus::{Bus, Carried, TruthRecord, WillTruth};
pub use truth::Truth;

use pubgauge_driver::clock::Clock;
use pubgauge_driver::header::Mark;
use pubgauge_driver::seam::{DriverError, Fleet, FleetConfig, InProcessSystem, Target, Traits};
use pubgauge_driver::settings::{Mapping, Settings, Unsupported};
use pubgauge_driver::{Carries, Driver, NativeSettings, Resolution, Will};

static NATIVE: NativeSettings<Behaviour> = NativeSettings::for_driver(SimulatedDriver::NAME);

/// The driver of the simulated system.
///
/// All fleets of a trial must share one [`Bus`] in [`Target::shared`].
#[derive(Clone, Copy, Debug, Default)]
pub struct SimulatedDriver;

impl SimulatedDriver {
    /// The driver's name.
    pub const NAME: &'static str = "simulated";

    /// The behaviour that a study asks for under `native.simulated`, without what [`Driver::resolve`] refuses.
    pub fn behaviour(settings: &Settings) -> Behaviour {
        NATIVE.read(settings, &mut Resolution::default())
    }

    /// A target for a fresh simulated system.
    pub fn target(bus: Arc<Bus>) -> Target {
        Target {
            shared: Some(bus),
            ..Target::default()
        }
    }
}

impl Driver for SimulatedDriver {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn shared(&self, settings: &Settings, mark: Mark) -> Option<InProcessSystem> {
        let behaviour = Self::behaviour(settings);
        Some(Arc::new(Bus::new(behaviour, Clock::Monotonic, mark)))
    }

    fn resolve(&self, settings: &Settings, _: &Target) -> Result<Vec<Mapping>, Vec<Unsupported>> {
        let mut table = Resolution::default();
        NATIVE.read(settings, &mut table);
        let native = |setting: &str| match setting {
            "reliability" if settings.may_lose() => "unacknowledged",
            "reliability" => "acknowledged after one delay",
            "in-flight" => "a limit on unacknowledged messages",
            "last-value" if settings.last_value == Some(true) => {
                "kept for whoever subscribes later"
            }
            "user-properties" => "their bytes are counted with each message",
            _ => "no effect: the simulated system does as native.simulated says",
        };
        for setting in Settings::NAMES {
            table.row(setting, Some(settings.value_of(setting)), native(setting));
        }
        table.finish(()).map(|((), rows)| rows)
    }

    fn native_schema(&self) -> Option<serde_json::Value> {
        Some(NATIVE.schema())
    }

    fn traits(&self, settings: &Settings) -> Traits {
        let behaviour = Self::behaviour(settings);
        Traits {
            publishers_first: false,
            back_pressure: behaviour.capacity > 0,
            acknowledges: !settings.may_lose(),
            may_duplicate: behaviour.duplication > 0.0,
            publish_sleeps: behaviour.publish_sleep_ns > 0,
        }
    }

    fn carries(&self, settings: &Settings, _: &Target) -> Carries {
        let acknowledged = u8::from(!settings.may_lose());
        Carries {
            header_in: Some("a field of its own"),
            highest_qos: Some(2 * acknowledged),
            retain: true,
        }
    }

    fn keeps_order(&self, settings: &Settings) -> bool {
        Self::behaviour(settings).ordered
    }

    fn bounds_reading(&self, _: &Settings) -> Result<(), String> {
        Ok(())
    }

    fn check_will(&self, _: &Settings, _: &Target, _: &Will) -> Result<(), String> {
        Ok(())
    }

    fn open(&self, config: FleetConfig) -> Result<Box<dyn Fleet>, DriverError> {
        let shared = config.target.shared.clone().ok_or_else(|| {
            DriverError::with_hint(
                "the simulated system has no bus",
                "make the target with SimulatedDriver::target",
            )
        })?;
        let bus = shared.downcast::<Bus>().map_err(|_| {
            DriverError::new("the target belongs to another driver than the simulated system")
        })?;
        Ok(Box::new(fleet::SimulatedFleet::new(bus, config)))
    }
}
