//! The settings that only this driver knows: `native.cyclonedds.*`.

use pubgauge_driver::{Resolution, Settings, spelt};
use serde_json::Value;

use crate::domain::MAX_DOMAIN;

/// Name of the driver, and of its table under `native`.
pub(crate) const NAME: &str = "cyclonedds";

/// Names of the native settings, listed in the error for an unknown name.
///
/// | name | value | default | Cyclone DDS |
/// |---|---|---|---|
/// | `domain` | 0 to 232 | from the endpoint or the trial's folder | domain id |
/// | `history-depth` | 1 to 2147483647 | `queue-limit` | HISTORY KEEP_LAST depth of writers and readers |
/// | `max-samples` | 1 to 2147483647 | none | RESOURCE_LIMITS max_samples of readers; Cyclone 0.10 delivers twice where one of several readers is full |
/// | `deadline-ms` | ms | none | DEADLINE of writers and readers |
/// | `latency-budget-ms` | ms | 0 | LATENCY_BUDGET of writers and readers |
/// | `transport-priority` | any whole number | 0 | TRANSPORT_PRIORITY of writers |
/// | `ownership` | `shared`, `exclusive` | `shared` | OWNERSHIP; with `exclusive` the writers of a topic share one instance |
/// | `ownership-strength` | any whole number | 0 | OWNERSHIP_STRENGTH of writers |
/// | `whc-high-bytes` | bytes | 512000 | Internal/Watermarks/WhcHigh |
/// | `whc-high-init-bytes` | bytes | 30720 | Internal/Watermarks/WhcHighInit |
/// | `whc-low-bytes` | bytes | 1024 | Internal/Watermarks/WhcLow |
/// | `whc-adaptive` | true, false | true | Internal/Watermarks/WhcAdaptive |
/// | `max-message-bytes` | 128 to 65000 | 14720, or what `batching` asks | General/MaxMessageSize |
/// | `fragment-bytes` | 1000 to 64000 | 1344 | General/FragmentSize |
/// | `receive-buffer-bytes` | bytes | 4194304, or what the kernel allows | Internal/SocketReceiveBufferSize |
/// | `send-buffer-bytes` | bytes | 65536 | Internal/SocketSendBufferSize |
/// | `heartbeat-ms` | ms | 100 | Internal/HeartbeatInterval |
/// | `nack-delay-ms` | ms | 100 | Internal/NackDelay |
/// | `interface` | name | `lo`, or that of the host on a network | General/Interfaces/NetworkInterface |
/// | `peers` | addresses with commas between | `127.0.0.1` on `lo`, all hosts of a network, else none | Discovery/Peers |
/// | `multicast-mode` | `spdp`, `asm`, `ssm` | `asm` with `multicast` | General/AllowMulticast |
/// | `hold-us` | 1 to 10000 | 100 | driver: how long adaptive batching may hold a message back |
/// | `retry-us` | 10 to 1000 | 200 | driver: how soon a blocked publisher looks for room again, if no acknowledgement comes before |
/// | `busy-poll-us` | 0 to 1000 | 50, for answers while they come within it | driver: how long to look again before sleeping |
const NAMES: [&str; 24] = [
    "domain",
    "history-depth",
    "max-samples",
    "deadline-ms",
    "latency-budget-ms",
    "transport-priority",
    "ownership",
    "ownership-strength",
    "whc-high-bytes",
    "whc-high-init-bytes",
    "whc-low-bytes",
    "whc-adaptive",
    "max-message-bytes",
    "fragment-bytes",
    "receive-buffer-bytes",
    "send-buffer-bytes",
    "heartbeat-ms",
    "nack-delay-ms",
    "interface",
    "peers",
    "multicast-mode",
    "hold-us",
    "retry-us",
    "busy-poll-us",
];

/// Which traffic uses multicast (General/AllowMulticast).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Multicast {
    /// Participant discovery only.
    Discovery,
    /// Discovery and data, to any source.
    AnySource,
    /// Discovery, and data of one source to a group.
    SourceSpecific,
}

/// The native settings, each at its default or as asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Native {
    pub(crate) domain: Option<u32>,
    pub(crate) history_depth: Option<i32>,
    pub(crate) max_samples: Option<i32>,
    pub(crate) deadline_ms: Option<i64>,
    pub(crate) latency_budget_ms: Option<i64>,
    pub(crate) transport_priority: i32,
    pub(crate) exclusive: bool,
    pub(crate) ownership_strength: Option<i32>,
    pub(crate) whc_high_bytes: Option<i64>,
    pub(crate) whc_high_init_bytes: Option<i64>,
    pub(crate) whc_low_bytes: Option<i64>,
    pub(crate) whc_adaptive: Option<bool>,
    pub(crate) max_message_bytes: Option<i64>,
    pub(crate) fragment_bytes: Option<i64>,
    pub(crate) receive_buffer_bytes: Option<i64>,
    pub(crate) send_buffer_bytes: Option<i64>,
    pub(crate) heartbeat_ms: Option<i64>,
    pub(crate) nack_delay_ms: Option<i64>,
    pub(crate) interface: Option<String>,
    pub(crate) peers: Option<Vec<String>>,
    pub(crate) multicast_mode: Option<Multicast>,
    pub(crate) hold_us: Option<i64>,
    pub(crate) retry_us: Option<i64>,
    pub(crate) busy_poll_us: Option<i64>,
}

impl Native {
    /// The native settings of `settings`; what is wrong with them goes into `answer`.
    pub(crate) fn read(settings: &Settings, answer: &mut Resolution) -> Native {
        let mut native = Native::default();
        answer.natives(settings, NAME, &NAMES, |name, value| {
            let option = native.set(name, value)?;
            Ok(Some(format!(
                "{option} {}",
                spelt(&Some(value)).unwrap_or_default()
            )))
        });
        native.agree(answer);
        native
    }

    /// Refuses settings that contradict each other.
    fn agree(&self, answer: &mut Resolution) {
        let refuse = |answer: &mut Resolution, name: &str, value: String, reason: &str| {
            answer.refuse(&format!("native.{NAME}.{name}"), value, reason);
        };
        if let Some(strength) = self.ownership_strength
            && !self.exclusive
        {
            let reason = "only exclusive owners have a strength; set native.cyclonedds.ownership \
                          = \"exclusive\" as well";
            refuse(answer, "ownership-strength", strength.to_string(), reason);
        }
        let (low, high) = (
            self.whc_low_bytes.unwrap_or(1024),
            self.whc_high_bytes.unwrap_or(512_000),
        );
        if low > high {
            let reason = "the low-water mark must not be above the high one (whc-high-bytes)";
            refuse(answer, "whc-low-bytes", low.to_string(), reason);
        }
        if let Some(init) = self.whc_high_init_bytes
            && (init < low || init > high)
        {
            let reason = "must lie between whc-low-bytes and whc-high-bytes";
            refuse(answer, "whc-high-init-bytes", init.to_string(), reason);
        }
    }

    fn set(&mut self, name: &str, value: &Value) -> Result<&'static str, String> {
        let int = i64::from(i32::MAX);
        let any = i64::from(i32::MIN)..=int;
        Ok(match name {
            "domain" => {
                self.domain = Some(whole(value, 0..=i64::from(MAX_DOMAIN))? as u32);
                "domain id"
            }
            "history-depth" => {
                self.history_depth = Some(whole(value, 1..=int)? as i32);
                "HISTORY KEEP_LAST"
            }
            "max-samples" => {
                self.max_samples = Some(whole(value, 1..=int)? as i32);
                "RESOURCE_LIMITS max_samples of readers (where one of several readers of a writer is \
                 full, Cyclone 0.10 delivers again to the others)"
            }
            "deadline-ms" => {
                self.deadline_ms = Some(whole(value, 1..=int)?);
                "DEADLINE, ms:"
            }
            "latency-budget-ms" => {
                self.latency_budget_ms = Some(whole(value, 0..=int)?);
                "LATENCY_BUDGET (Cyclone compares it with the reader's and with \
                 Internal/SynchronousDeliveryLatencyBound; it gathers nothing), ms:"
            }
            "transport-priority" => {
                self.transport_priority = whole(value, any)? as i32;
                "TRANSPORT_PRIORITY (below 0 the receiver delivers in a thread of its own; \
                 nothing overtakes):"
            }
            "ownership" => {
                self.exclusive = match value.as_str() {
                    Some("shared") => false,
                    Some("exclusive") => true,
                    _ => return Err("expected \"shared\" or \"exclusive\"".into()),
                };
                "OWNERSHIP"
            }
            "ownership-strength" => {
                self.ownership_strength = Some(whole(value, any)? as i32);
                "OWNERSHIP_STRENGTH"
            }
            "whc-high-bytes" => {
                self.whc_high_bytes = Some(whole(value, 1..=int)?);
                "Internal/Watermarks/WhcHigh, bytes:"
            }
            "whc-high-init-bytes" => {
                self.whc_high_init_bytes = Some(whole(value, 1..=int)?);
                "Internal/Watermarks/WhcHighInit, bytes:"
            }
            "whc-low-bytes" => {
                self.whc_low_bytes = Some(whole(value, 0..=int)?);
                "Internal/Watermarks/WhcLow, bytes:"
            }
            "whc-adaptive" => {
                self.whc_adaptive = Some(value.as_bool().ok_or("expected true or false")?);
                "Internal/Watermarks/WhcAdaptive"
            }
            "max-message-bytes" => {
                self.max_message_bytes = Some(whole(value, 128..=65_000)?);
                "General/MaxMessageSize, bytes:"
            }
            "fragment-bytes" => {
                self.fragment_bytes = Some(whole(value, 1000..=64_000)?);
                "General/FragmentSize, bytes:"
            }
            "receive-buffer-bytes" => {
                self.receive_buffer_bytes = Some(whole(value, 1..=int)?);
                "Internal/SocketReceiveBufferSize, bytes (as far as net.core.rmem_max allows):"
            }
            "send-buffer-bytes" => {
                self.send_buffer_bytes = Some(whole(value, 1..=int)?);
                "Internal/SocketSendBufferSize, bytes (as far as net.core.wmem_max allows):"
            }
            "heartbeat-ms" => {
                self.heartbeat_ms = Some(whole(value, 1..=10_000)?);
                "Internal/HeartbeatInterval, ms:"
            }
            "nack-delay-ms" => {
                self.nack_delay_ms = Some(whole(value, 0..=10_000)?);
                "Internal/NackDelay, ms:"
            }
            "interface" => {
                let known = |c: char| c.is_ascii_alphanumeric() || "-_.:@".contains(c);
                self.interface = match value.as_str() {
                    Some(text)
                        if !text.is_empty() && text.len() < 16 && text.chars().all(known) =>
                    {
                        Some(text.to_owned())
                    }
                    _ => return Err("expected the name of a network interface".into()),
                };
                "General/Interfaces/NetworkInterface"
            }
            "peers" => {
                let known = |c: char| c.is_ascii_alphanumeric() || "-_.:[]%".contains(c);
                let text = value.as_str().unwrap_or_default();
                let peers: Vec<String> = text.split(',').map(|p| p.trim().to_owned()).collect();
                if peers.iter().any(|p| p.is_empty() || !p.chars().all(known)) {
                    return Err("expected addresses with commas between".into());
                }
                self.peers = Some(peers);
                "Discovery/Peers"
            }
            "multicast-mode" => {
                self.multicast_mode = Some(match value.as_str() {
                    Some("spdp") => Multicast::Discovery,
                    Some("asm") => Multicast::AnySource,
                    Some("ssm") => Multicast::SourceSpecific,
                    _ => return Err("expected \"spdp\", \"asm\" or \"ssm\"".into()),
                });
                "General/AllowMulticast"
            }
            "hold-us" => {
                self.hold_us = Some(whole(value, 1..=10_000)?);
                "driver: adaptive batching holds a message back for so long at most, us:"
            }
            "retry-us" => {
                self.retry_us = Some(whole(value, 10..=1000)?);
                "driver: a blocked publisher looks for room at the latest after us:"
            }
            "busy-poll-us" => {
                self.busy_poll_us = Some(whole(value, 0..=1000)?);
                "driver: looks again before it sleeps, us:"
            }
            unknown => unreachable!("{unknown} is not in NAMES"),
        })
    }
}

fn whole(value: &Value, range: std::ops::RangeInclusive<i64>) -> Result<i64, String> {
    value.as_i64().filter(|v| range.contains(v)).ok_or_else(|| {
        format!(
            "expected a whole number from {} to {}",
            range.start(),
            range.end()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::resolve;
    use serde_json::json;

    fn with(table: Value) -> Settings {
        serde_json::from_value(json!({ "native": { NAME: table } })).unwrap()
    }

    fn reason(table: Value) -> String {
        let wrong = resolve(&with(table)).unwrap_err();
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        wrong[0].reason.clone()
    }

    #[test]
    fn every_name_is_known_and_shown() {
        for name in NAMES {
            let mut table = json!({ name: match name {
                "whc-adaptive" => json!(false),
                "ownership" => json!("exclusive"),
                "interface" => json!("eth0"),
                "peers" => json!("127.0.0.1, 10.0.0.2"),
                "multicast-mode" => json!("spdp"),
                "max-message-bytes" | "fragment-bytes" => json!(8192),
                "whc-high-init-bytes" => json!(4096),
                _ => json!(10),
            }});
            match name {
                "ownership-strength" => table["ownership"] = json!("exclusive"),
                "whc-high-bytes" => table["whc-low-bytes"] = json!(1),
                _ => {}
            }
            let mut settings = with(table);
            if name == "history-depth" {
                settings.on_full = Some(pubgauge_driver::OnFull::Drop);
            }
            let (_, mappings) = resolve(&settings).expect(name);
            let full = format!("native.{NAME}.{name}");
            assert!(mappings.iter().any(|m| m.setting == full), "{name}");
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_nearest() {
        assert!(reason(json!({"deadline": 1})).contains("did you mean `deadline-ms`?"));
        assert!(reason(json!({"whc_high_bytes": 1})).contains("did you mean `whc-high-bytes`?"));
        assert!(reason(json!({"qqq": 1})).contains("transport-priority"));
    }

    #[test]
    fn values_out_of_range_or_of_the_wrong_type_are_refused() {
        assert!(reason(json!({"domain": 233})).contains("from 0 to 232"));
        assert!(reason(json!({"history-depth": 0})).contains("from 1"));
        assert!(reason(json!({"interface": "a b"})).contains("interface"));
        assert!(reason(json!({"interface": "<x/>"})).contains("interface"));
        assert!(reason(json!({"peers": "\"/>"})).contains("addresses"));
        assert!(reason(json!({"ownership": 1})).contains("exclusive"));
        assert!(reason(json!({"whc-adaptive": 1})).contains("true or false"));
    }

    #[test]
    fn settings_that_contradict_each_other_are_refused() {
        assert!(reason(json!({"ownership-strength": 1})).contains("ownership"));
        assert!(reason(json!({"whc-high-bytes": 100})).contains("whc-high-bytes"));
        let init = json!({"whc-high-bytes": 2000, "whc-high-init-bytes": 3000});
        assert!(reason(init).contains("between"));
    }
}
