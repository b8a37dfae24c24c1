//! The settings that only this driver knows, `native.mqtt.*`.

use pubgauge_driver::{Resolution, Settings};
use pubgauge_mqtt_codec::{QoS, RetainHandling, Version};
use pubgauge_net::socket::SocketOptions;
use serde_json::Value;

/// The driver's name in study files.
pub(crate) const NAME: &str = "mqtt";

/// The driver's own settings, each with what it takes.
const NATIVE: [(&str, &str); 9] = [
    ("version", "\"3.1.1\" or \"5\""),
    ("subscribe-qos", "0, 1 or 2"),
    ("receive-maximum", "a number from 1 to 65535"),
    ("topic-alias", "a number from 0 to 65535"),
    SocketOptions::NATIVE[0],
    SocketOptions::NATIVE[1],
    SocketOptions::NATIVE[2],
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
    pub socket: SocketOptions,
    pub retain_handling: Option<RetainHandling>,
    pub no_local: Option<bool>,
}

impl Native {
    /// Reads them; what is unknown or out of range is refused in `t`.
    pub fn parse(settings: &Settings, t: &mut Resolution) -> Native {
        let mut native = Native::default();
        t.natives(
            settings,
            NAME,
            &NATIVE.map(|(name, _)| name),
            |name, value| {
                let taken = native.take(name, value);
                taken.map(|()| None).ok_or_else(|| expected(name))
            },
        );
        native
    }

    /// Takes a known setting; `None` if it has no such value.
    fn take(&mut self, name: &str, value: &Value) -> Option<()> {
        let number = value.as_u64();
        let small = || u16::try_from(number?).ok();
        match name {
            "version" => {
                self.version = Some(match value.as_str()? {
                    "3.1.1" => Version::V311,
                    "5" | "5.0" => Version::V5,
                    _ => return None,
                });
            }
            "subscribe-qos" => {
                self.subscribe_qos = Some(QoS::from_bits(u8::try_from(number?).ok()?)?);
            }
            "receive-maximum" => self.receive_maximum = Some(small().filter(|n| *n > 0)?),
            "topic-alias" => self.topic_alias = Some(small()?),
            "retain-handling" => {
                self.retain_handling = Some(match number? {
                    0 => RetainHandling::Send,
                    1 => RetainHandling::SendIfNew,
                    2 => RetainHandling::DoNotSend,
                    _ => return None,
                });
            }
            "no-local" => self.no_local = Some(value.as_bool()?),
            name => drop(self.socket.take(name, value)?),
        }
        Some(())
    }
}

fn expected(name: &str) -> String {
    let known = NATIVE.iter().find(|(known, _)| *known == name);
    known.map_or(String::new(), |(_, expected)| {
        format!("expected {expected}")
    })
}
