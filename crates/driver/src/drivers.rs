//! The drivers that a program has.

use std::sync::Arc;

use crate::address::Scheme;
use crate::driver::Driver;
use crate::seam::DriverError;

/// The drivers that a program has, by name and by the scheme of an address. Code that needs a
/// driver is given these.
#[derive(Clone, Default)]
pub struct Drivers(Vec<Arc<dyn Driver>>);

impl Drivers {
    /// These drivers.
    ///
    /// # Errors
    /// Two of them with one name, or with one scheme.
    pub fn new(drivers: Vec<Arc<dyn Driver>>) -> Result<Drivers, DriverError> {
        let drivers = Drivers(drivers);
        for (n, driver) in drivers.0.iter().enumerate() {
            for before in &drivers.0[..n] {
                let clash = |what: String| {
                    let (one, other) = (before.name(), driver.name());
                    let what = format!("the drivers `{one}` and `{other}` both {what}");
                    DriverError::with_hint(what, "leave one of them out, or rename it there")
                };
                if before.name() == driver.name() {
                    return Err(clash("have that name".into()));
                }
                let names =
                    |scheme: &&Scheme| before.schemes().iter().any(|s| s.name == scheme.name);
                if let Some(scheme) = driver.schemes().iter().find(names) {
                    return Err(clash(format!("claim `{}://`", scheme.name)));
                }
            }
        }
        Ok(drivers)
    }

    pub fn by_name(&self, name: &str) -> Option<Arc<dyn Driver>> {
        self.0.iter().find(|driver| driver.name() == name).cloned()
    }

    /// The driver that speaks to addresses with this scheme, and the scheme.
    pub fn by_scheme(&self, name: &str) -> Option<(&dyn Driver, &'static Scheme)> {
        let mut all = self.schemes();
        all.find(|(_, scheme)| scheme.name == name)
    }

    /// The JSON Schemas of the drivers' own settings, by the driver's name.
    pub fn native_schemas(&self) -> impl Iterator<Item = (&'static str, serde_json::Value)> {
        let own = |driver: &Arc<dyn Driver>| Some((driver.name(), driver.native_schema()?));
        self.0.iter().filter_map(own)
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|driver| driver.name())
    }

    /// All schemes of addresses, each with the driver that speaks to them.
    pub fn schemes(&self) -> impl Iterator<Item = (&dyn Driver, &'static Scheme)> {
        let drivers = self.0.iter().map(|driver| &**driver);
        drivers.flat_map(|driver| driver.schemes().iter().map(move |scheme| (driver, scheme)))
    }
}

/// One driver alone.
impl<D: Driver + 'static> From<D> for Drivers {
    fn from(driver: D) -> Drivers {
        Drivers(vec![Arc::new(driver)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Encryption;
    use crate::seam::{Fleet, FleetConfig, Target, Traits};
    use crate::settings::{Mapping, Settings, Unsupported};

    struct Made(&'static str, &'static [Scheme]);

    impl Driver for Made {
        fn name(&self) -> &'static str {
            self.0
        }

        fn schemes(&self) -> &'static [Scheme] {
            self.1
        }

        fn resolve(&self, _: &Settings, _: &Target) -> Result<Vec<Mapping>, Vec<Unsupported>> {
            Ok(Vec::new())
        }

        fn traits(&self, _: &Settings) -> Traits {
            unreachable!("nothing is opened")
        }

        fn open(&self, _: FleetConfig) -> Result<Box<dyn Fleet>, DriverError> {
            unreachable!("nothing is opened")
        }
    }

    const COAP: Scheme = Scheme {
        name: "coap",
        also: &["udp"],
        encryption: Encryption::None,
        usual_port: Some(5683),
        path: None,
        websocket: None,
    };
    const COAPS: Scheme = Scheme {
        name: "coaps",
        also: &["dtls"],
        encryption: Encryption::Tls,
        usual_port: Some(5684),
        path: Some("RESOURCE"),
        websocket: None,
    };

    #[test]
    fn drivers_are_found_by_name_and_by_scheme() {
        let two: Vec<Arc<dyn Driver>> = vec![
            Arc::new(Made("dds", &[])),
            Arc::new(Made("coap", &[COAP, COAPS])),
        ];
        let drivers = Drivers::new(two).unwrap();
        assert_eq!(drivers.names().collect::<Vec<_>>(), ["dds", "coap"]);
        assert_eq!(drivers.by_name("coap").unwrap().schemes().len(), 2);
        assert!(drivers.by_name("coaps").is_none());
        let (driver, scheme) = drivers.by_scheme("coaps").unwrap();
        assert_eq!((driver.name(), scheme.usual_port), ("coap", Some(5684)));
        assert!(drivers.by_scheme("dtls").is_none() && drivers.by_scheme("dds").is_none());
    }

    #[test]
    fn two_drivers_with_one_name_or_scheme_are_refused() {
        let refused = |one: Made, other: Made| {
            let both: Vec<Arc<dyn Driver>> = vec![Arc::new(one), Arc::new(other)];
            Drivers::new(both).err().unwrap().to_string()
        };
        let error = refused(Made("a", &[]), Made("a", &[]));
        assert!(error.contains("`a` and `a` both have that name"), "{error}");
        let error = refused(Made("a", &[COAP, COAPS]), Made("b", &[COAPS]));
        assert!(
            error.contains("`a` and `b` both claim `coaps://`"),
            "{error}"
        );
    }

    #[test]
    fn a_server_goes_unchecked_where_the_driver_says_that_its_endpoint_has_tls() {
        let unchecked = |endpoint: &str, insecure| {
            let target = Target {
                endpoints: vec![endpoint.into()],
                tls: Some(crate::seam::Tls {
                    insecure,
                    ..Default::default()
                }),
                ..Target::default()
            };
            target.unchecked(&[COAP, COAPS]).is_some()
        };
        assert!(unchecked("coaps://h", true) && unchecked("dtls://h", true));
        assert!(!unchecked("coap://h", true) && !unchecked("mqtts://h", true));
        assert!(!unchecked("coaps://h", false));
    }

    #[test]
    fn a_scheme_shows_its_addresses() {
        assert_eq!(COAP.to_string(), "coap://[USER@]HOST[:PORT] (port 5683)");
        let secure = "coaps://[USER@]HOST[:PORT][/RESOURCE] (TLS, port 5684)";
        assert_eq!(COAPS.to_string(), secure);
        let own = Scheme {
            usual_port: None,
            ..COAP
        };
        assert_eq!(own.to_string(), "coap://...");
    }
}
