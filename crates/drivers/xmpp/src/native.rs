//! The settings that only this driver knows, `native.xmpp.*`.

use std::collections::BTreeMap;

use pubgauge_driver::Settings;

use crate::options::{NAME, Table};
use crate::sasl::Choice;

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
    ("no-delay", "true or false"),
    ("send-buffer-bytes", "a number from 1 to 1073741824"),
    ("receive-buffer-bytes", "a number from 1 to 1073741824"),
];

/// `native.xmpp.*` as given.
#[derive(Default)]
pub(crate) struct Native {
    pub mechanism: Option<Choice>,
    pub service: Option<String>,
    pub discovery_interval_ms: Option<u32>,
    pub no_delay: Option<bool>,
    pub send_buffer: Option<usize>,
    pub receive_buffer: Option<usize>,
}

impl Native {
    /// Reads them; what is unknown or out of range is refused in `t`.
    pub fn parse(settings: &Settings, t: &mut Table) -> Native {
        let mut native = Native::default();
        let none = BTreeMap::new();
        for (name, value) in settings.native.get(NAME).unwrap_or(&none) {
            let number = value.as_u64();
            let understood = match name.as_str() {
                "mechanism" => {
                    native.mechanism = value.as_str().and_then(Choice::parse);
                    native.mechanism.is_some()
                }
                "pubsub-service" => {
                    native.service = value.as_str().filter(|s| is_service(s)).map(str::to_owned);
                    native.service.is_some()
                }
                "discovery-interval-ms" => {
                    native.discovery_interval_ms = number
                        .filter(|n| *n == 0 || (10..=3_600_000).contains(n))
                        .and_then(|n| u32::try_from(n).ok());
                    native.discovery_interval_ms.is_some()
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
                unknown => {
                    let near = |n: &str| strsim::jaro_winkler(unknown, n);
                    let nearest = NATIVE
                        .iter()
                        .max_by(|a, b| near(a.0).total_cmp(&near(b.0)))
                        .map_or("", |(name, _)| name);
                    let all: Vec<_> = NATIVE.iter().map(|(name, _)| *name).collect();
                    t.refuse(
                        &format!("native.xmpp.{unknown}"),
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
                    &format!("native.xmpp.{name}"),
                    value.to_string(),
                    format!("expected {expected}"),
                );
            }
        }
        native
    }
}

/// A bare address: no resource, and nothing that would have to be escaped.
fn is_service(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 1023
        && !text.contains(|c: char| "/<>&'\"".contains(c) || c.is_whitespace() || c.is_control())
}

fn buffer(number: Option<u64>) -> Option<usize> {
    number
        .filter(|n| (1..=1 << 30).contains(n))
        .and_then(|n| usize::try_from(n).ok())
}
