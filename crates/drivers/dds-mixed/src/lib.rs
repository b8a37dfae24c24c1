//! Two DDS implementations in one system: clients publish through Fast DDS and subscribe through
//! Cyclone DDS, which interoperate by DDSI-RTPS.
//!
//! The driver adds nothing of its own: each fleet is one fleet of either driver, a client is a
//! client of the one, the other, or both. A setting is honoured if both honour it.
//!
//! Its cost: the threads and the discovery of two participants for each worker. A worker whose
//! clients all publish or all subscribe (the engine's usual division) sleeps in the fleet of those
//! clients, as without this driver. A worker with both kinds cannot sleep in two libraries at once:
//! it looks at Fast DDS every [`SLICE`] while it sleeps in Cyclone DDS, so that a blocked publisher
//! may be released that much late; messages are not delayed.

mod fleet;

pub use fleet::SLICE;

use pubgauge_driver::{
    Crowd, Driver, DriverError, Fleet, FleetConfig, Footprint, Mapping, OnFull, Resolution,
    Settings, Subscription, Target, Topology, Traits, Unsupported,
};
use pubgauge_driver_cyclonedds::CycloneddsDriver;
use pubgauge_driver_fastdds::FastddsDriver;

const HOW_TO_LINK: &str = "install both libraries and build with them (Debian): apt-get \
                               install libfastrtps-dev libfastcdr-dev cyclonedds-dev, then cargo \
                               build --release --features fastdds,cyclonedds";

/// The driver. Publishers are Fast DDS's, subscribers Cyclone DDS's; [`Mixed::SWAPPED`] the other
/// way round.
#[derive(Clone, Copy, Debug)]
pub struct Mixed {
    swapped: bool,
}

impl Mixed {
    /// Fast DDS publishes, Cyclone DDS subscribes.
    pub const FAST_TO_CYCLONE: Mixed = Mixed { swapped: false };
    /// Cyclone DDS publishes, Fast DDS subscribes.
    pub const SWAPPED: Mixed = Mixed { swapped: true };

    fn publishing(self) -> (&'static str, &'static dyn Driver) {
        if self.swapped {
            ("Cyclone DDS", &CycloneddsDriver)
        } else {
            ("Fast DDS", &FastddsDriver)
        }
    }

    fn subscribing(self) -> (&'static str, &'static dyn Driver) {
        Mixed {
            swapped: !self.swapped,
        }
        .publishing()
    }
}

impl Driver for Mixed {
    fn name(&self) -> &'static str {
        "dds-mixed"
    }

    /// The libraries of both, that of the publishers first.
    fn library(&self) -> Option<String> {
        let (out, into) = (self.publishing().1, self.subscribing().1);
        Some(format!("{} with {}", out.library()?, into.library()?))
    }

    fn missing(&self) -> Option<&'static str> {
        let one = FastddsDriver.missing().or(CycloneddsDriver.missing());
        one.map(|_| HOW_TO_LINK)
    }

    /// Settings as each library takes them: one row for each setting, which names both.
    fn resolve(
        &self,
        settings: &Settings,
        target: &Target,
    ) -> Result<Vec<Mapping>, Vec<Unsupported>> {
        let sides = [
            ("publishers", self.publishing()),
            ("subscribers", self.subscribing()),
        ];
        let mut answer = Resolution::default();
        let mut rows: Vec<Mapping> = Vec::new();
        for (who, (name, driver)) in sides {
            let more = match driver.resolve(settings, target) {
                Ok(more) => more,
                Err(refused) => {
                    for u in refused {
                        answer.refuse(&u.setting, u.value, format!("{name}: {}", u.reason));
                    }
                    continue;
                }
            };
            for mut row in more {
                row.native = format!("{who} ({name}): {}", row.native);
                match rows.iter_mut().find(|known| known.setting == row.setting) {
                    Some(known) => known.native = format!("{}; {}", known.native, row.native),
                    None => rows.push(row),
                }
            }
        }
        if settings.multicast == Some(true) {
            answer.refuse(
                "multicast",
                "true",
                "Fast DDS 2.9.1 ends the process by an assertion in its traffic statistics when a \
                 reader of another implementation announces a multicast address (measured); leave \
                 it out",
            );
        }
        if self.swapped && settings.on_full == Some(OnFull::Drop) {
            answer.refuse(
                "on-full",
                "drop",
                "Fast DDS 2.9.1 now and then ends the process by an assertion in a reader's \
                 history when a writer of another implementation has replaced messages \
                 (measured); use block",
            );
        }
        answer.finish(rows).map(|(rows, _)| rows)
    }

    fn traits(&self, settings: &Settings) -> Traits {
        let publishing = self.publishing().1.traits(settings);
        let subscribing = self.subscribing().1.traits(settings);
        Traits {
            publishers_first: false,
            back_pressure: publishing.back_pressure,
            acknowledges: publishing.acknowledges,
            may_duplicate: publishing.may_duplicate || subscribing.may_duplicate,
            publish_sleeps: publishing.publish_sleeps,
        }
    }

    fn check_subscription(
        &self,
        settings: &Settings,
        target: &Target,
        subscription: &Subscription,
    ) -> Result<(), DriverError> {
        self.subscribing()
            .1
            .check_subscription(settings, target, subscription)
    }

    fn topology(&self, _: &Target) -> Topology {
        Topology::Brokerless
    }

    /// Each fleet starts both libraries; writers are in one of them, readers in the other.
    fn footprint(&self, settings: &Settings, target: &Target, crowd: &Crowd) -> Footprint {
        let writers = Crowd {
            subscribers: 0,
            ..*crowd
        };
        let readers = Crowd {
            streams: 0,
            ..*crowd
        };
        let (out, into) = (self.publishing().1, self.subscribing().1);
        out.footprint(settings, target, &writers) + into.footprint(settings, target, &readers)
    }

    fn open(&self, config: FleetConfig) -> Result<Box<dyn Fleet>, DriverError> {
        if let Some(how) = self.missing() {
            return Err(DriverError::with_hint(
                "this program was built without Fast DDS or without Cyclone DDS",
                how,
            ));
        }
        let publishing = self.publishing().1.open(config.clone())?;
        let clock = config.clock.clone();
        let subscribing = self.subscribing().1.open(config)?;
        Ok(Box::new(fleet::MixedFleet::new(
            publishing,
            subscribing,
            clock,
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubgauge_driver::Reliability;

    #[test]
    fn both_answer_for_every_setting() {
        let settings = Settings {
            reliability: Some(Reliability::Reliable),
            ..Settings::default()
        };
        for mixed in [Mixed::FAST_TO_CYCLONE, Mixed::SWAPPED] {
            let rows = mixed.resolve(&settings, &Target::default()).unwrap();
            for name in Settings::NAMES {
                let row = rows.iter().find(|r| r.setting == name).unwrap();
                assert!(row.native.contains("Fast DDS)"), "{row:?}");
                assert!(row.native.contains("Cyclone DDS)"), "{row:?}");
            }
            assert!(mixed.traits(&settings).back_pressure);
        }
    }

    #[test]
    fn what_one_cannot_do_is_refused_in_its_name() {
        let settings = Settings {
            rate_limit_bytes_per_s: Some(1_000_000),
            ..Settings::default()
        };
        let refused = Mixed::FAST_TO_CYCLONE
            .resolve(&settings, &Target::default())
            .unwrap_err();
        assert_eq!(refused.len(), 1);
        assert!(
            refused[0].reason.starts_with("Cyclone DDS: "),
            "{refused:?}"
        );
    }

    #[test]
    fn what_ends_the_process_is_refused() {
        let drop = Settings {
            on_full: Some(OnFull::Drop),
            ..Settings::default()
        };
        let target = Target::default();
        let refused = Mixed::SWAPPED.resolve(&drop, &target).unwrap_err();
        assert_eq!(refused.len(), 1);
        assert_eq!(refused[0].setting, "on-full");
        assert!(Mixed::FAST_TO_CYCLONE.resolve(&drop, &target).is_ok());
    }

    #[test]
    fn without_the_libraries_it_says_what_is_missing() {
        let config = FleetConfig {
            target: Target::default(),
            settings: Settings::default(),
            max_payload: 64,
            clients: 1,
            ..FleetConfig::default()
        };
        let mixed = Mixed::FAST_TO_CYCLONE;
        match (mixed.missing(), mixed.open(config)) {
            (None, opened) => {
                assert!(opened.is_ok(), "{:?}", opened.err());
                let library = mixed.library().unwrap();
                assert!(library.starts_with("Fast DDS 2."), "{library}");
                assert!(library.contains(" with Cyclone DDS 0."), "{library}");
            }
            (Some(_), Ok(_)) => panic!("it opened without its libraries"),
            (Some(_), Err(error)) => {
                assert!(error.to_string().contains("apt-get install"), "{error}");
                assert_eq!(mixed.library(), None);
            }
        }
    }
}
