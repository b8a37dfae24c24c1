//! The settings that only this driver knows: `native.fastdds.*`, and the presets.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use pubgauge_dds::domain::MAX_DOMAIN;
use pubgauge_driver::{NativeSettings, Resolution, Settings};
use schemars::JsonSchema;
use serde::Deserialize;

/// Name of the driver, and of its table under `native`.
pub(crate) const NAME: &str = "fastdds";

pub(crate) static NATIVE: NativeSettings<FastNative> = NativeSettings::for_driver(NAME);

/// A named set of starting values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Preset {
    /// The library's own values: heartbeat every 3 s, heartbeat response 5 ms, nack response 5 ms, 400 samples
    /// per writer, which keeps acknowledged ones until it needs their room, the kernel's socket buffers.
    Default,
    /// Heartbeat every 1 ms (20 ms behind a flow controller and over shared memory), heartbeats and nacks answered at once,
    /// acknowledged samples forgotten at once, 4 MiB socket buffers.
    ///
    /// For small reliable messages: measured, see `benches/fastdds_vs_plain.rs`.
    #[default]
    Tuned,
}

/// Who sends a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PublishMode {
    /// The thread that writes it (SYNCHRONOUS_PUBLISH_MODE).
    Sync,
    /// A thread of the library (ASYNCHRONOUS_PUBLISH_MODE).
    Async,
}

/// How long a writer without `last-value` keeps samples; its readers get none of earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WriterDurability {
    /// Until they are acknowledged.
    Volatile,
    /// Until their room is needed.
    TransientLocal,
}

/// Policy of a flow controller (`FlowControllerSchedulerPolicy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Scheduler {
    Fifo = 0,
    RoundRobin = 1,
    HighPriority = 2,
    PriorityWithReservation = 3,
}

/// The native settings, each at its preset's value or as asked for. `None`: the library's default.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct FastNative {
    /// Starting values of the others.
    ///
    /// By default those of the system's variant, else `tuned`.
    pub(crate) preset: Preset,
    /// PublishModeQosPolicy: async has a thread of the library send.
    pub(crate) publish_mode: Option<PublishMode>,
    /// heartbeatPeriod, ms.
    #[schemars(range(min = 0.1, max = 3_600_000.0))]
    pub(crate) heartbeat_period_ms: Option<f64>,
    /// nackResponseDelay, ms.
    #[schemars(range(min = 0.0, max = 3_600_000.0))]
    pub(crate) nack_response_delay_ms: Option<f64>,
    /// heartbeatResponseDelay, ms.
    #[schemars(range(min = 0.0, max = 3_600_000.0))]
    pub(crate) heartbeat_response_delay_ms: Option<f64>,
    /// Heartbeats in messages with samples, the opposite of disable_heartbeat_piggyback.
    pub(crate) piggyback: bool,
    /// DurabilityQosPolicy of writers: what is acknowledged goes at once (volatile), or when its room is needed
    /// (transient-local). Readers are VOLATILE_DURABILITY_QOS and get nothing from before they came.
    pub(crate) writer_durability: Option<WriterDurability>,
    /// KEEP_LAST_HISTORY_QOS at writer and reader, which replaces what is older, delivered or not; depth.
    #[schemars(range(min = 1))]
    pub(crate) history_depth: Option<i32>,
    /// Writer: resource_limits.max_samples.
    #[schemars(range(min = 1))]
    pub(crate) max_samples: Option<i32>,
    /// Reader: resource_limits.max_samples_per_instance.
    #[schemars(range(min = 1))]
    pub(crate) reader_max_samples: Option<i32>,
    /// sendBufferSize (UDP), segment_size (shared memory), bytes.
    #[schemars(range(min = 1024))]
    pub(crate) send_buffer_bytes: Option<i32>,
    /// receiveBufferSize (UDP), bytes.
    #[schemars(range(min = 1024))]
    pub(crate) receive_buffer_bytes: Option<i32>,
    /// maxMessageSize, bytes: longer samples are sent in fragments.
    #[schemars(range(min = 1024, max = 65_500))]
    pub(crate) max_message_bytes: Option<i32>,
    /// TTL: routers that a multicast datagram may cross, and one (its IP time to live).
    #[schemars(range(max = 255))]
    pub(crate) multicast_hops: Option<u32>,
    /// FlowControllerSchedulerPolicy of the participant's flow controller.
    pub(crate) flow_controller: Option<Scheduler>,
    /// FlowControllerDescriptor.period_ms.
    #[schemars(range(min = 1, max = 10_000))]
    pub(crate) flow_period_ms: u32,
    /// Flow controller HIGH_PRIORITY, fastdds.sfc.priority of each writer by its topic (the library counts the
    /// other way round: -10 goes first).
    pub(crate) priorities: Priorities,
    /// DataSharingQosPolicy: samples lie in a file mapped by writer and reader; the type is bounded and has no
    /// key then, as the library demands.
    pub(crate) data_sharing: bool,
    /// intraprocess_delivery: with it writers call readers of the same process directly, and no message leaves
    /// it.
    pub(crate) intraprocess: bool,
    /// Domain.
    #[schemars(range(max = MAX_DOMAIN))]
    pub(crate) domain: Option<u32>,
    /// maxInitialPeersRange: participants of the domain that are looked for.
    #[schemars(range(min = 1, max = 100))]
    pub(crate) discovery_peers: u32,
}

/// Topic or `topic/#`, and its priority, -10 (least) to 10 (most); the longest name first.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(try_from = "BTreeMap<String, i32>")]
pub(crate) struct Priorities(pub(crate) Vec<(String, i32)>);

impl TryFrom<BTreeMap<String, i32>> for Priorities {
    type Error = &'static str;

    fn try_from(table: BTreeMap<String, i32>) -> Result<Self, Self::Error> {
        if table
            .values()
            .any(|priority| !(-10..=10).contains(priority))
        {
            return Err("expected topics (or topic/#) with priorities from -10 to 10");
        }
        let mut priorities: Vec<(String, i32)> = table.into_iter().collect();
        priorities.sort_by_key(|(topic, _)| Reverse(topic.len()));
        Ok(Priorities(priorities))
    }
}

impl Default for FastNative {
    /// As the library, but for the preset's values.
    fn default() -> Self {
        FastNative {
            preset: Preset::default(),
            publish_mode: None,
            heartbeat_period_ms: None,
            nack_response_delay_ms: None,
            heartbeat_response_delay_ms: None,
            piggyback: true,
            writer_durability: None,
            history_depth: None,
            max_samples: None,
            reader_max_samples: None,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            max_message_bytes: None,
            multicast_hops: None,
            flow_controller: None,
            flow_period_ms: 100,
            priorities: Priorities::default(),
            data_sharing: false,
            intraprocess: false,
            domain: None,
            discovery_peers: 32,
        }
    }
}

impl FastNative {
    /// The native settings of `settings`, with the values of the preset that they name, else of the system's
    /// variant, where they give none; what is wrong with them goes into `answer`.
    pub(crate) fn read(
        settings: &Settings,
        variant: Preset,
        answer: &mut Resolution,
    ) -> FastNative {
        let mut native = NATIVE.read(settings, answer);
        if settings.native(NAME, "preset").is_none() {
            native.preset = variant;
            let word = match variant {
                Preset::Default => "default",
                Preset::Tuned => "tuned",
            };
            let native_words = NATIVE.native("preset", &word.into());
            answer.row(&format!("native.{NAME}.preset"), None, native_words);
        }
        if native.preset == Preset::Tuned {
            native.nack_response_delay_ms.get_or_insert(0.0);
            native.heartbeat_response_delay_ms.get_or_insert(0.0);
            native
                .writer_durability
                .get_or_insert(WriterDurability::Volatile);
            native.send_buffer_bytes.get_or_insert(4 << 20);
            native.receive_buffer_bytes.get_or_insert(4 << 20);
        }
        native
    }

    /// Whether writers keep acknowledged samples until room is needed, though no reader asks for them; by
    /// default they do.
    pub(crate) fn writer_transient_local(&self) -> bool {
        self.writer_durability != Some(WriterDurability::Volatile)
    }

    /// `fastdds.sfc.priority` of a topic's writers; least if others have one and it has none, as
    /// in the library.
    pub(crate) fn priority_of(&self, topic: &str) -> Option<i32> {
        let names = |name: &str| match name.strip_suffix("/#") {
            Some(root) => topic
                .strip_prefix(root)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
            None => name == topic || name == "#",
        };
        let found = self.priorities.0.iter().find(|(name, _)| names(name));
        found.map(|(_, priority)| -priority)
    }
}

/// Milliseconds in ns.
pub(crate) fn ns(ms: Option<f64>) -> Option<i64> {
    ms.map(|ms| (ms * 1e6).round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::resolve;
    use pubgauge_driver::Target;
    use serde_json::Value;

    fn with(name: &str, value: Value) -> Settings {
        let mut settings = Settings::default();
        let table = [(name.to_owned(), value)].into();
        settings.native.insert(NAME.to_owned(), table);
        settings
    }

    fn reason(name: &str, value: Value) -> String {
        let wrong = resolve(&with(name, value), &Target::default()).unwrap_err();
        assert_eq!(wrong.len(), 1);
        assert_eq!(wrong[0].setting, format!("native.fastdds.{name}"));
        wrong[0].reason.clone()
    }

    #[test]
    fn every_name_is_known_and_shown() {
        let schema = NATIVE.schema();
        for name in schema["properties"].as_object().unwrap().keys() {
            let value = match name.as_str() {
                "preset" => "default".into(),
                "publish-mode" => "async".into(),
                "flow-controller" => "fifo".into(),
                "writer-durability" => "volatile".into(),
                "piggyback" | "data-sharing" | "intraprocess" => true.into(),
                "heartbeat-period-ms" => 0.5.into(),
                "send-buffer-bytes" | "receive-buffer-bytes" | "max-message-bytes" => 65_000.into(),
                "priorities" => serde_json::json!({"a": 1}),
                _ => 7.into(),
            };
            let (_, mappings) = resolve(&with(name, value), &Target::default()).unwrap();
            let full = format!("native.fastdds.{name}");
            let row = mappings.iter().find(|row| row.setting == full).unwrap();
            assert!(!row.native.is_empty());
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_nearest() {
        assert!(reason("heartbeat-ms", 1.into()).contains("did you mean `heartbeat-period-ms`?"));
        assert!(reason("qqq", 1.into()).contains("flow-period-ms"));
    }

    #[test]
    fn values_out_of_range_or_of_the_wrong_type_are_refused() {
        assert!(reason("heartbeat-period-ms", 0.into()).contains("from 0.1"));
        assert!(reason("domain", 233.into()).contains("from 0 to 232"));
        assert!(reason("max-samples", (-1).into()).contains("from 1"));
        assert!(reason("piggyback", 1.into()).contains("true or false"));
        assert!(reason("publish-mode", "later".into()).contains("async"));
        assert!(reason("preset", "fast".into()).contains("tuned"));
        assert!(reason("flow-controller", 1.into()).contains("round-robin"));
        assert!(reason("writer-durability", true.into()).contains("transient-local"));
    }

    #[test]
    fn the_preset_comes_from_the_setting_else_from_the_variant_else_is_tuned() {
        let variant = |name: &str| Target {
            features: vec![format!("preset-{name}")],
            ..Target::default()
        };
        let preset = |settings: &Settings, target: &Target| {
            resolve(settings, target).unwrap().0.native.preset
        };
        let none = Settings::default();
        assert_eq!(preset(&none, &Target::default()), Preset::Tuned);
        assert_eq!(preset(&none, &variant("default")), Preset::Default);
        assert_eq!(
            preset(&with("preset", "tuned".into()), &variant("default")),
            Preset::Tuned
        );
    }

    #[test]
    fn topics_have_the_priority_of_their_longest_name() {
        let table = serde_json::json!({"a/#": 3, "a/b": -4, "a/b/#": 10});
        let native = resolve(&with("priorities", table), &Target::default())
            .unwrap()
            .0
            .native;
        assert_eq!(native.priority_of("a/c"), Some(-3));
        assert_eq!(native.priority_of("a/b"), Some(-10));
        assert_eq!(native.priority_of("ab"), None);
        assert!(reason("priorities", serde_json::json!({"a": 11})).contains("-10 to 10"));
        assert!(reason("priorities", 3.into()).contains("expected a map"));
    }

    #[test]
    fn what_is_given_wins_over_the_preset() {
        let settings = with("heartbeat-period-ms", 20.into());
        let options = resolve(&settings, &Target::default()).unwrap().0;
        assert_eq!(options.heartbeat_ns(), Some(20_000_000));
        assert_eq!(options.native.nack_response_delay_ms, Some(0.0));
    }
}
