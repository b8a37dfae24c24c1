//! The settings that only this driver knows: `native.cyclonedds.*`.

use pubgauge_dds::domain::MAX_DOMAIN;
use pubgauge_driver::{NativeSettings, Resolution, Settings};
use schemars::JsonSchema;
use serde::Deserialize;

/// Name of the driver, and of its table under `native`.
pub(crate) const NAME: &str = "cyclonedds";

pub(crate) static NATIVE: NativeSettings<CycloneNative> = NativeSettings::for_driver(NAME);

/// Which traffic uses multicast (General/AllowMulticast).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub(crate) enum Multicast {
    /// Participant discovery only.
    #[serde(rename = "spdp")]
    Discovery,
    /// Discovery and data, to any source.
    #[serde(rename = "asm")]
    AnySource,
    /// Discovery, and data of one source to a group.
    #[serde(rename = "ssm")]
    SourceSpecific,
}

/// Who may write an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Ownership {
    #[default]
    Shared,
    /// The strongest writer; the writers of a topic share one instance.
    Exclusive,
}

/// The native settings, each at its default or as asked for.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct CycloneNative {
    /// Domain id.
    ///
    /// By default from the endpoint or the trial's folder.
    #[schemars(range(max = MAX_DOMAIN))]
    pub(crate) domain: Option<u32>,
    /// HISTORY KEEP_LAST depth of writers and readers.
    #[schemars(range(min = 1))]
    pub(crate) history_depth: Option<i32>,
    /// RESOURCE_LIMITS max_samples of readers (where one of several readers of a writer is full, Cyclone
    /// 0.10 delivers again to the others).
    #[schemars(range(min = 1))]
    pub(crate) max_samples: Option<i32>,
    /// DEADLINE of writers and readers, ms.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub(crate) deadline_ms: Option<i64>,
    /// LATENCY_BUDGET, ms (Cyclone compares it with the reader's and with
    /// Internal/SynchronousDeliveryLatencyBound; it gathers nothing).
    #[schemars(range(min = 0, max = i32::MAX))]
    pub(crate) latency_budget_ms: Option<i64>,
    /// TRANSPORT_PRIORITY of writers (below 0 the receiver delivers in a thread of its own; nothing
    /// overtakes).
    pub(crate) transport_priority: i32,
    /// OWNERSHIP.
    pub(crate) ownership: Ownership,
    /// OWNERSHIP_STRENGTH of writers.
    pub(crate) ownership_strength: Option<i32>,
    /// Internal/Watermarks/WhcHigh, bytes.
    ///
    /// 512,000 by default.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub(crate) whc_high_bytes: Option<i64>,
    /// Internal/Watermarks/WhcHighInit, bytes.
    ///
    /// 30,720 by default.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub(crate) whc_high_init_bytes: Option<i64>,
    /// Internal/Watermarks/WhcLow, bytes.
    ///
    /// 1,024 by default.
    #[schemars(range(min = 0, max = i32::MAX))]
    pub(crate) whc_low_bytes: Option<i64>,
    /// Internal/Watermarks/WhcAdaptive.
    ///
    /// True by default.
    pub(crate) whc_adaptive: Option<bool>,
    /// General/MaxMessageSize, bytes.
    ///
    /// 14,720 by default, or what `batching` asks.
    #[schemars(range(min = 128, max = 65_000))]
    pub(crate) max_message_bytes: Option<u32>,
    /// General/FragmentSize, bytes.
    ///
    /// 1,344 by default.
    #[schemars(range(min = 1000, max = 64_000))]
    pub(crate) fragment_bytes: Option<u32>,
    /// Internal/SocketReceiveBufferSize, bytes (as far as net.core.rmem_max allows).
    #[schemars(range(min = 1, max = i32::MAX))]
    pub(crate) receive_buffer_bytes: Option<i64>,
    /// Internal/SocketSendBufferSize, bytes (as far as net.core.wmem_max allows).
    ///
    /// 65,536 by default.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub(crate) send_buffer_bytes: Option<i64>,
    /// Internal/HeartbeatInterval, ms.
    ///
    /// 100 by default.
    #[schemars(range(min = 1, max = 10_000))]
    pub(crate) heartbeat_ms: Option<u32>,
    /// Internal/NackDelay, ms.
    ///
    /// 100 by default.
    #[schemars(range(max = 10_000))]
    pub(crate) nack_delay_ms: Option<u32>,
    /// General/Interfaces/NetworkInterface.
    ///
    /// By default `lo`, or that of the host on a network.
    pub(crate) interface: Option<Interface>,
    /// Discovery/Peers, with commas between.
    ///
    /// By default `127.0.0.1` on `lo`, all hosts of a network, else none.
    pub(crate) peers: Option<Peers>,
    /// General/AllowMulticast.
    ///
    /// `asm` by default where `multicast` is asked for.
    pub(crate) multicast_mode: Option<Multicast>,
    /// General/MulticastTimeToLive: routers that a multicast datagram may cross, and one (its IP time to live).
    ///
    /// 32 by default.
    #[schemars(range(max = 255))]
    pub(crate) multicast_hops: Option<u32>,
    /// Driver: adaptive batching holds a message back for so long at most, us.
    ///
    /// 100 by default.
    #[schemars(range(min = 1, max = 10_000))]
    pub(crate) hold_us: Option<u32>,
    /// Driver: a blocked publisher looks for room at the latest after this, us.
    ///
    /// 200 by default; an acknowledgement may come before.
    #[schemars(range(min = 10, max = 1000))]
    pub(crate) retry_us: Option<u32>,
    /// Driver: looks again for so long before it sleeps, us.
    ///
    /// 50 by default, for answers while they come within it.
    #[schemars(range(max = 1000))]
    pub(crate) busy_poll_us: Option<u32>,
}

/// The name of a network interface: of characters that need no escaping in XML.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
pub(crate) struct Interface(pub(crate) String);

impl TryFrom<String> for Interface {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let known = |c: char| c.is_ascii_alphanumeric() || "-_.:@".contains(c);
        if (1..16).contains(&text.len()) && text.chars().all(known) {
            Ok(Interface(text))
        } else {
            Err("expected the name of a network interface")
        }
    }
}

/// Addresses of participants: of characters that need no escaping in XML.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
pub(crate) struct Peers(pub(crate) Vec<String>);

impl TryFrom<String> for Peers {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let known = |c: char| c.is_ascii_alphanumeric() || "-_.:[]%".contains(c);
        let peers: Vec<String> = text.split(',').map(|p| p.trim().to_owned()).collect();
        if peers.iter().all(|p| !p.is_empty() && p.chars().all(known)) {
            Ok(Peers(peers))
        } else {
            Err("expected addresses with commas between")
        }
    }
}

impl CycloneNative {
    /// The native settings of `settings`; what is wrong with them goes into `answer`.
    pub(crate) fn read(settings: &Settings, answer: &mut Resolution) -> CycloneNative {
        let native = NATIVE.read(settings, answer);
        native.agree(answer);
        native
    }

    /// Refuses settings that contradict each other.
    fn agree(&self, answer: &mut Resolution) {
        let refuse = |answer: &mut Resolution, name: &str, value: String, reason: &str| {
            answer.refuse(&format!("native.{NAME}.{name}"), value, reason);
        };
        if let Some(strength) = self.ownership_strength
            && self.ownership == Ownership::Shared
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::resolve;
    use pubgauge_testing::settings;
    use serde_json::{Value, json};

    fn with(table: Value) -> Settings {
        settings(json!({ "native": { NAME: table } }))
    }

    fn reason(table: Value) -> String {
        let wrong = resolve(&with(table)).unwrap_err();
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        wrong[0].reason.clone()
    }

    #[test]
    fn every_name_is_known_and_shown() {
        let schema = NATIVE.schema();
        for name in schema["properties"].as_object().unwrap().keys() {
            let mut table = json!({ name: match name.as_str() {
                "whc-adaptive" => json!(false),
                "ownership" => json!("exclusive"),
                "interface" => json!("eth0"),
                "peers" => json!("127.0.0.1, 10.0.0.2"),
                "multicast-mode" => json!("spdp"),
                "max-message-bytes" | "fragment-bytes" => json!(8192),
                "whc-high-init-bytes" => json!(4096),
                _ => json!(10),
            }});
            match name.as_str() {
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
