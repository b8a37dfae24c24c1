//! The setting `native.mqtt.collect`, taken from the settings of the driver for MQTT.

use pubgauge_driver::{Mapping, NativeSettings, Resolution, Settings, Target, Unsupported, spelt};
use pubgauge_driver_mqtt::{NAME, SubscriberTerms};
use pubgauge_mqtt_codec::Version;
use schemars::JsonSchema;
use serde::Deserialize;

const COLLECT: &str = "collect";

pub(crate) static NATIVE: NativeSettings<Native> = NativeSettings::for_driver(NAME);

/// `native.mqtt.*` as given.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct Native {
    /// Subscribers are collectors (`pubgauge-collect`): a message is delivered once it is on disk. Their sessions outlive a
    /// connection by 1 s; durable ones are given up at the end.
    collect: Option<bool>,
    #[serde(flatten)]
    mqtt: pubgauge_driver_mqtt::MqttNative,
}

/// Settings, parted.
pub(crate) struct Asked {
    native: Native,
    /// `native.mqtt.collect`, if it was given.
    pub(crate) row: Option<Mapping>,
    /// Settings under `native.mqtt` that there are none of, or that do not take their value.
    pub(crate) wrong: Vec<Unsupported>,
    /// All other settings, which the driver for MQTT is asked.
    pub(crate) rest: Settings,
}

fn full_name(setting: &str) -> String {
    format!("native.{NAME}.{setting}")
}

impl Asked {
    pub(crate) fn read(settings: &Settings) -> Asked {
        let mut table = Resolution::default();
        let native = NATIVE.read(settings, &mut table);
        let (rows, wrong) = match table.finish(()) {
            Ok(((), rows)) => (rows, Vec::new()),
            Err(wrong) => (Vec::new(), wrong),
        };
        let mut rest = settings.clone();
        if let Some(own) = rest.native.get_mut(NAME) {
            let is_wrong = |name: &str| wrong.iter().any(|wrong| wrong.setting == full_name(name));
            own.retain(|name, _| name != COLLECT && !is_wrong(name));
        }
        let of_collect = |row: &Mapping| row.setting == full_name(COLLECT);
        Asked {
            native,
            row: rows.into_iter().find(of_collect),
            wrong,
            rest,
        }
    }

    pub(crate) fn collects(&self) -> bool {
        self.native.collect == Some(true)
    }

    /// Settings that collectors as subscribers do not have, if they are to be some.
    pub(crate) fn refused_for_collectors(
        &self,
        settings: &Settings,
        target: &Target,
    ) -> Vec<Unsupported> {
        if !self.collects() {
            return Vec::new();
        }
        let mut refused = Vec::new();
        let mut refuse = |setting: String, value: String, reason: &str| {
            refused.push(Unsupported {
                setting,
                value,
                reason: reason.to_owned(),
            });
        };
        let terms = SubscriberTerms::new(&self.rest, target);
        if terms.version != Version::V5 && terms.durable_s.is_none() {
            let reason = "the sessions of collectors end by themselves under MQTT 5 alone; use native.mqtt.version = \"5\", or session = \"durable\"";
            refuse(full_name(COLLECT), "true".into(), reason);
        }
        if settings.last_value == Some(true) {
            let reason = "collectors take a last value for a new message";
            refuse("last-value".into(), "true".into(), reason);
        }
        let mqtt = &self.native.mqtt;
        let natives = [
            ("receive-maximum", mqtt.receive_maximum.is_some()),
            ("retain-handling", mqtt.retain_handling.is_some()),
            ("no-local", mqtt.no_local == Some(true)),
        ];
        for (name, _) in natives.into_iter().filter(|(_, given)| *given) {
            let value = spelt(&settings.native(NAME, name)).unwrap_or_default();
            refuse(
                full_name(name),
                value,
                "collectors have their own; leave it out",
            );
        }
        refused
    }
}
