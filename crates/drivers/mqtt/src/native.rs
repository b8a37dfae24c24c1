//! The settings that only this driver knows, `native.mqtt.*`.

use std::collections::BTreeMap;

use pubgauge_driver::Settings;
use pubgauge_mqtt_codec::{QoS, RetainHandling, Version};

use crate::options::{NAME, Table};

/// The driver's own settings, each with what it takes.
const NATIVE: [(&str, &str); 9] = [
    ("version", "\"3.1.1\" or \"5\""),
    ("subscribe-qos", "0, 1 or 2"),
    ("receive-maximum", "a number from 1 to 65535"),
    ("topic-alias", "a number from 0 to 65535"),
    ("no-delay", "true or false"),
    ("send-buffer-bytes", "a number from 1 to 1073741824"),
    ("receive-buffer-bytes", "a number from 1 to 1073741824"),
    ("retain-handling", "0, 1 or 2"),
    ("no-local", "true or false"),
];

/// `native.mqtt.*` as given.
#[derive(Default)]
pub(crate) struct Native {
    pub version: Option<Version>,
    pub subscribe_qos: Option<QoS>,
    pub receive_maximum: Option<u16>,
    pub topic_alias: Option<u16>,
    pub no_delay: Option<bool>,
    pub send_buffer: Option<usize>,
    pub receive_buffer: Option<usize>,
    pub retain_handling: Option<RetainHandling>,
    pub no_local: Option<bool>,
}

impl Native {
    /// Reads them; what is unknown or out of range is refused in `t`.
    pub fn parse(settings: &Settings, t: &mut Table) -> Native {
        let mut native = Native::default();
        let none = BTreeMap::new();
        for (name, value) in settings.native.get(NAME).unwrap_or(&none) {
            let number = value.as_u64();
            let understood = match name.as_str() {
                "version" => {
                    native.version = match value.as_str() {
                        Some("3.1.1") => Some(Version::V311),
                        Some("5" | "5.0") => Some(Version::V5),
                        _ => None,
                    };
                    native.version.is_some()
                }
                "subscribe-qos" => {
                    native.subscribe_qos =
                        number.and_then(|n| QoS::from_bits(u8::try_from(n).ok()?));
                    native.subscribe_qos.is_some()
                }
                "receive-maximum" => {
                    native.receive_maximum = number
                        .and_then(|n| u16::try_from(n).ok())
                        .filter(|n| *n > 0);
                    native.receive_maximum.is_some()
                }
                "topic-alias" => {
                    native.topic_alias = number.and_then(|n| u16::try_from(n).ok());
                    native.topic_alias.is_some()
                }
                "no-delay" => {
                    native.no_delay = value.as_bool();
                    native.no_delay.is_some()
                }
                "send-buffer-bytes" => {
                    native.send_buffer = buffer(number);
                    native.send_buffer.is_some()
                }
                "receive-buffer-bytes" => {
                    native.receive_buffer = buffer(number);
                    native.receive_buffer.is_some()
                }
                "retain-handling" => {
                    native.retain_handling = match number {
                        Some(0) => Some(RetainHandling::Send),
                        Some(1) => Some(RetainHandling::SendIfNew),
                        Some(2) => Some(RetainHandling::DoNotSend),
                        _ => None,
                    };
                    native.retain_handling.is_some()
                }
                "no-local" => {
                    native.no_local = value.as_bool();
                    native.no_local.is_some()
                }
                unknown => {
                    let nearest = NATIVE
                        .iter()
                        .max_by(|a, b| {
                            let near = |n: &str| strsim::jaro_winkler(unknown, n);
                            near(a.0).total_cmp(&near(b.0))
                        })
                        .map_or("", |(name, _)| name);
                    let all: Vec<_> = NATIVE.iter().map(|(name, _)| *name).collect();
                    t.refuse(
                        &format!("native.mqtt.{unknown}"),
                        value.to_string(),
                        format!(
                            "unknown setting; did you mean `{nearest}`? Known are {}",
                            all.join(", ")
                        ),
                    );
                    continue;
                }
            };
            if !understood {
                let expected = NATIVE
                    .iter()
                    .find(|(n, _)| n == name)
                    .map_or("", |(_, e)| e);
                t.refuse(
                    &format!("native.mqtt.{name}"),
                    value.to_string(),
                    format!("expected {expected}"),
                );
            }
        }
        native
    }
}

fn buffer(number: Option<u64>) -> Option<usize> {
    number
        .filter(|n| (1..=1 << 30).contains(n))
        .and_then(|n| usize::try_from(n).ok())
}
