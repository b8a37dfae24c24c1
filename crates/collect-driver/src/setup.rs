//! The configuration that the collectors of a fleet have in common.

use std::path::{Path, PathBuf};

use pubgauge_collect::Config;
use pubgauge_collect::config::{CollectFile, LogFile, Mqtt, SessionFile};
use pubgauge_driver::{DriverError, Target};
use pubgauge_driver_mqtt::SubscriberTerms;
use pubgauge_mqtt_codec::Version;
use pubgauge_quantities::{Size, Span};

const SECOND: u64 = 1_000_000_000;

/// Configuration that all collectors of a fleet share.
pub(crate) struct Setup {
    target: Target,
    terms: SubscriberTerms,
    /// Data folders are made here.
    pub(crate) folder: PathBuf,
}

impl Setup {
    pub(crate) fn new(terms: SubscriberTerms, target: Target, worker: u32) -> Setup {
        Setup {
            folder: target.scratch.join(format!("collected-{worker}")),
            target,
            terms,
        }
    }

    /// Whether sessions outlive the trial unless they are given up, which they are at its end.
    pub(crate) fn is_durable(&self) -> bool {
        self.terms.durable_s.is_some()
    }

    /// Removes what was collected.
    pub(crate) fn remove(&self) {
        // The scratch folder goes with the trial in any case.
        let _ = std::fs::remove_dir_all(&self.folder);
    }

    /// Files of a second, so that making them is part of every measurement.
    pub(crate) fn config(&self, name: &str, endpoint: usize) -> Result<Config, DriverError> {
        let url = self.target.endpoints.get(endpoint);
        let keep_alive_s = u64::from(self.terms.keep_alive_s);
        let expiry_s = u64::from(self.terms.durable_s.unwrap_or(1));
        let (mqtt, expiry) = match self.terms.version {
            Version::V5 => (Mqtt::V5, Some(Span(expiry_s * SECOND))),
            Version::V311 => (Mqtt::V311, None),
        };
        let written = CollectFile {
            brokers: url.into_iter().cloned().collect(),
            // At least one is wanted; it is taken out again.
            topics: vec!["#".into()],
            to: Some(self.folder.join(name)),
            name: Some(name.to_owned()),
            qos: Some(self.terms.qos as u8),
            mqtt: Some(mqtt),
            stop_within: Some(Span(2 * SECOND)),
            session: SessionFile {
                expiry,
                keep_alive: (keep_alive_s > 0).then_some(Span(keep_alive_s * SECOND)),
                ..SessionFile::default()
            },
            log: LogFile {
                segment: Some(Size(32 << 20)),
                segment_age: Some(Span(SECOND)),
                ..LogFile::default()
            },
            ..CollectFile::default()
        };
        let config = Config::from_written(&written, Path::new(""), self.target.password.clone());
        let mut config = config.map_err(|faults| {
            let words = faults.first().map(|fault| fault.message.clone());
            DriverError::new(words.unwrap_or_default())
        })?;
        config.filters.clear();
        for broker in &mut config.brokers {
            broker.tls = self.target.tls.clone().unwrap_or_default();
            if broker.endpoint.username.is_none() {
                broker.endpoint.username.clone_from(&self.target.username);
            }
        }
        Ok(config)
    }
}
