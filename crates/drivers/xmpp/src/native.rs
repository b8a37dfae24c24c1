//! The settings that only this driver knows, `native.xmpp.*`.

use pubgauge_driver::{Resolution, Settings};
use pubgauge_net::socket::SocketOptions;
use serde_json::Value;

use crate::sasl::Choice;

/// The driver's name in study files.
pub(crate) const NAME: &str = "xmpp";

/// The driver's own settings, each with what it takes.
const NATIVE: [(&str, &str); 6] = [
    (
        "mechanism",
        "\"auto\", \"plain\", \"scram-sha-1\", \"scram-sha-256\" or \"anonymous\"",
    ),
    (
        "pubsub-service",
        "the address of a service, such as \"pubsub.example.org\"",
    ),
    ("discovery-interval-ms", "0, or a number from 10 to 3600000"),
    SocketOptions::NATIVE[0],
    SocketOptions::NATIVE[1],
    SocketOptions::NATIVE[2],
];

/// `native.xmpp.*` as given.
#[derive(Default)]
pub(crate) struct Native {
    pub mechanism: Option<Choice>,
    pub service: Option<String>,
    pub discovery_interval_ms: Option<u32>,
    pub socket: SocketOptions,
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
        match name {
            "mechanism" => self.mechanism = Some(Choice::parse(value.as_str()?)?),
            "pubsub-service" => {
                self.service = Some(value.as_str().filter(|s| is_service(s))?.to_owned());
            }
            "discovery-interval-ms" => {
                let fits = |n: &u64| *n == 0 || (10..=3_600_000).contains(n);
                self.discovery_interval_ms = Some(u32::try_from(number.filter(fits)?).ok()?);
            }
            name => drop(self.socket.take(name, value)?),
        }
        Some(())
    }
}

/// A bare address: no resource, and nothing that would have to be escaped.
fn is_service(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 1023
        && !text.contains(|c: char| "/<>&'\"".contains(c) || c.is_whitespace() || c.is_control())
}

fn expected(name: &str) -> String {
    let known = NATIVE.iter().find(|(known, _)| *known == name);
    known.map_or(String::new(), |(_, expected)| {
        format!("expected {expected}")
    })
}
