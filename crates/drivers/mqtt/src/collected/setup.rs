//! What the collectors of a fleet have in common, and what settings they have no use for.

use std::path::{Path, PathBuf};

use pubgauge_collect::Config;
use pubgauge_collect::config::{CollectFile, LogFile, Mqtt, SessionFile};
use pubgauge_driver::{DriverError, Resolution, Settings, Target, spelt};
use pubgauge_mqtt_codec::{QoS, Version};
use pubgauge_quantities::{Size, Span};

use crate::native::{NAME, Native};
use crate::options::Options;

const SECOND: u64 = 1_000_000_000;

/// What all collectors of a fleet have in common.
pub(super) struct Setup {
    target: Target,
    qos: QoS,
    keep_alive_s: u16,
    version: Version,
    /// How long sessions outlive a connection, s, where they are durable. They are given up at the end then.
    durable_s: Option<u32>,
    /// Data folders are made here.
    pub(super) folder: PathBuf,
}

impl Setup {
    pub(super) fn new(options: &Options, target: Target, worker: u32) -> Setup {
        Setup {
            folder: target.scratch.join(format!("collected-{worker}")),
            target,
            qos: options.subscribe_qos,
            keep_alive_s: options.keep_alive_s,
            version: options.version,
            durable_s: options.durable.then_some(options.session_expiry_s),
        }
    }

    /// Whether sessions outlive the trial unless they are given up.
    pub(super) fn is_durable(&self) -> bool {
        self.durable_s.is_some()
    }

    /// Removes what was collected.
    pub(super) fn remove(&self) {
        // The scratch folder goes with the trial in any case.
        let _ = std::fs::remove_dir_all(&self.folder);
    }

    /// Files of a second, so that making them is part of every measurement.
    pub(super) fn config(&self, name: &str, endpoint: usize) -> Result<Config, DriverError> {
        let url = self.target.endpoints.get(endpoint);
        let keep_alive_s = u64::from(self.keep_alive_s);
        let expiry_s = u64::from(self.durable_s.unwrap_or(1));
        let (mqtt, expiry) = match self.version {
            Version::V5 => (Mqtt::V5, Some(Span(expiry_s * SECOND))),
            Version::V311 => (Mqtt::V311, None),
        };
        let written = CollectFile {
            brokers: url.into_iter().cloned().collect(),
            // At least one is wanted; it is taken out again.
            topics: vec!["#".into()],
            to: Some(self.folder.join(name)),
            name: Some(name.to_owned()),
            qos: Some(self.qos as u8),
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
        let config = Config::of(&written, Path::new(""), self.target.password.clone());
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

impl Options {
    /// Refuses what subscribers that are collectors do not have.
    pub(crate) fn refuse_for_collectors(&self, s: &Settings, native: &Native, t: &mut Resolution) {
        let own = "collectors have their own; leave it out";
        if self.version != Version::V5 && !self.durable {
            let reason = "the sessions of collectors end by themselves under MQTT 5 alone; use native.mqtt.version = \"5\", or session = \"durable\"";
            t.refuse("native.mqtt.collect", "true", reason);
        }
        if self.retain {
            let reason = "collectors take a last value for a new message";
            t.refuse("last-value", "true", reason);
        }
        let natives = [
            ("receive-maximum", native.receive_maximum.is_some()),
            ("retain-handling", native.retain_handling.is_some()),
            ("no-local", self.no_local),
        ];
        for (name, _) in natives.into_iter().filter(|(_, given)| *given) {
            let value = s.native.get(NAME).and_then(|of| spelt(&of.get(name)));
            let name = format!("native.mqtt.{name}");
            t.refuse(&name, value.unwrap_or_default(), own);
        }
    }
}
