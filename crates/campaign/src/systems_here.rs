//! The systems that this machine has, and the one that a name stands for.

use pubgauge_study::KnownSystems;
use pubgauge_testbed::{Catalog, SystemFile, SystemKind, Testbed};

use crate::{Chosen, Error};

/// The simulated system has no process and no address.
const SIMULATED: &str = r#"
name = "simulated"
driver = "simulated"
description = "a simulated system whose delays, loss, duplication and order are set by native.simulated"
kind = "library"
"#;

/// Systems by their files, and what starts them.
pub struct SystemsHere<'a> {
    pub catalog: &'a Catalog,
    pub testbed: &'a Testbed,
}

impl SystemsHere<'_> {
    /// The systems of a list of names, checked; all that are found, in every variant, if it is empty.
    ///
    /// # Errors
    /// With the nearest name if there is no such system.
    pub fn names(&self, on: &[String]) -> Result<Vec<String>, Error> {
        if on.is_empty() {
            return Ok(self.known().found_variants);
        }
        for name in on {
            self.catalog.get(split(name).0).map_err(Error::bad_input)?;
        }
        Ok(on.to_vec())
    }

    /// All systems in the catalog, and those found here, variants included.
    pub fn known(&self) -> KnownSystems {
        let mut known = KnownSystems::default();
        for listing in self.catalog.list(self.testbed) {
            let variants = listing.variants.iter();
            let variants: Vec<String> = variants.map(|v| format!("{}:{v}", listing.name)).collect();
            if listing.found && listing.kind != SystemKind::External {
                known.found.push(listing.name.clone());
                if listing.first_look {
                    known.first_look.push(listing.name.clone());
                }
                known.found_variants.extend(variants.iter().cloned());
                if variants.is_empty() {
                    known.found_variants.push(listing.name.clone());
                }
            }
            if listing.kind == SystemKind::External
                && let Ok(file) = self.catalog.get(&listing.name)
            {
                let brokers = file.endpoints.len().max(1) as u32;
                known.brokers.insert(listing.name.clone(), brokers);
            }
            known.all.extend(variants);
            known.all.push(listing.name);
        }
        // The reference broker first: the others are compared with it.
        for list in [
            &mut known.found,
            &mut known.found_variants,
            &mut known.first_look,
        ] {
            list.sort_by_key(|name| name != "reference-broker");
        }
        known.all.push("simulated".into());
        known
    }

    /// The system of this name (with its variant after a colon) or address.
    ///
    /// # Errors
    /// There is no such system, it is not found here, or there is no driver for it.
    pub fn choose(&self, name: &str) -> Result<Chosen, Error> {
        if name.contains("://") {
            let drivers = self.testbed.known_drivers();
            let file = pubgauge_testbed::from_address(name, drivers).map_err(Error::bad_input)?;
            return self.with_driver(file, None);
        }
        if name == "simulated" {
            let file = SystemFile::parse(SIMULATED, "simulated").map_err(Error::not_valid)?;
            return self.with_driver(file, None);
        }
        let (plain, variant) = split(name);
        let file = self.catalog.get(plain).map_err(Error::bad_input)?;
        self.testbed.find(&file).map_err(Error::bad_input)?;
        self.with_driver(file, variant.map(str::to_owned))
    }

    fn with_driver(&self, file: SystemFile, variant: Option<String>) -> Result<Chosen, Error> {
        let drivers = self.testbed.known_drivers();
        let name = file
            .variant(variant.as_deref())
            .map_err(Error::bad_input)?
            .driver;
        let driver = drivers.by_name(&name).ok_or_else(|| {
            Error::bad_input(format!(
                "system {} needs the driver `{name}`, which this pubgauge was built without\n  hint: drivers here: {}",
                file.name,
                drivers.names().collect::<Vec<_>>().join(", ")
            ))
        })?;
        if let Some(how) = driver.missing() {
            return Err(Error::bad_input(format!(
                "system {}: this pubgauge was built without {name}\n  hint: {how}",
                file.name
            )));
        }
        Ok(Chosen {
            file,
            variant,
            driver,
            tls: None,
        })
    }
}

/// A name and its variant.
pub fn split(name: &str) -> (&str, Option<&str>) {
    match name.split_once(':') {
        Some((name, variant)) => (name, Some(variant)),
        None => (name, None),
    }
}
