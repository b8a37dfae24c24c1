//! The settings that only this driver knows: `native.fastdds.*`, and the presets.

use pubgauge_driver::{Resolution, Settings, spelt};
use serde_json::Value;

use crate::domain::MAX_DOMAIN;

/// Name of the driver, and of its table under `native`.
pub(crate) const NAME: &str = "fastdds";

/// Names of the native settings, listed in the error for an unknown name. What each means:
/// `docs/settings.md`.
const NAMES: [&str; 20] = [
    "preset",
    "publish-mode",
    "heartbeat-period-ms",
    "nack-response-delay-ms",
    "heartbeat-response-delay-ms",
    "piggyback",
    "writer-durability",
    "history-depth",
    "max-samples",
    "reader-max-samples",
    "send-buffer-bytes",
    "receive-buffer-bytes",
    "max-message-bytes",
    "flow-controller",
    "flow-period-ms",
    "priorities",
    "data-sharing",
    "intraprocess",
    "domain",
    "discovery-peers",
];

/// A named set of starting values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preset {
    /// The library's own defaults.
    Default,
    /// Values for small reliable messages: measured, see `benches/fastdds_vs_plain.rs`.
    Tuned,
}

impl Preset {
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "default" => Some(Preset::Default),
            "tuned" => Some(Preset::Tuned),
            _ => None,
        }
    }
}

/// Policy of a flow controller (`FlowControllerSchedulerPolicy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheduler {
    Fifo = 0,
    RoundRobin = 1,
    HighPriority = 2,
    PriorityWithReservation = 3,
}

/// The native settings, each at its preset's value or as asked for. `None`: the library's default.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Native {
    pub(crate) preset: Preset,
    pub(crate) asynchronous: Option<bool>,
    pub(crate) heartbeat_ns: Option<i64>,
    pub(crate) nack_response_ns: Option<i64>,
    pub(crate) heartbeat_response_ns: Option<i64>,
    pub(crate) piggyback: bool,
    /// Writers keep acknowledged samples until room is needed, though no reader asks for them.
    pub(crate) writer_transient_local: bool,
    pub(crate) history_depth: Option<i32>,
    pub(crate) max_samples: Option<i32>,
    pub(crate) reader_max_samples: Option<i32>,
    pub(crate) send_buffer_bytes: Option<i32>,
    pub(crate) receive_buffer_bytes: Option<i32>,
    pub(crate) max_message_bytes: Option<i32>,
    pub(crate) scheduler: Option<Scheduler>,
    flow_period_ms: Option<u32>,
    /// Topic or `topic/#`, and its priority, -10 (least) to 10 (most); the longest name first.
    pub(crate) priorities: Vec<(String, i32)>,
    pub(crate) data_sharing: bool,
    pub(crate) intraprocess: bool,
    pub(crate) domain: Option<u32>,
    pub(crate) discovery_peers: u32,
}

impl Native {
    /// The values of a preset.
    pub(crate) fn of(preset: Preset) -> Self {
        let library = Native {
            preset,
            asynchronous: None,
            heartbeat_ns: None,
            nack_response_ns: None,
            heartbeat_response_ns: None,
            piggyback: true,
            writer_transient_local: true,
            history_depth: None,
            max_samples: None,
            reader_max_samples: None,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            max_message_bytes: None,
            scheduler: None,
            flow_period_ms: None,
            priorities: Vec::new(),
            data_sharing: false,
            intraprocess: false,
            domain: None,
            discovery_peers: 32,
        };
        match preset {
            Preset::Default => library,
            Preset::Tuned => Native {
                nack_response_ns: Some(0),
                heartbeat_response_ns: Some(0),
                writer_transient_local: false,
                send_buffer_bytes: Some(4 << 20),
                receive_buffer_bytes: Some(4 << 20),
                ..library
            },
        }
    }

    /// The native settings of `settings`, starting from the preset that they name, else from that
    /// of the system's variant; what is wrong with them goes into `answer`.
    pub(crate) fn read(settings: &Settings, variant: Preset, answer: &mut Resolution) -> Native {
        let named = settings.native(NAME, "preset").and_then(Value::as_str);
        let preset = named.and_then(Preset::named).unwrap_or(variant);
        let mut native = Native::of(preset);
        if settings.native(NAME, "preset").is_none() {
            answer.row(&format!("native.{NAME}.preset"), None, preset_words(preset));
        }
        answer.natives(settings, NAME, &NAMES, |name, value| {
            native.set(name, value).map(Some)
        });
        native
    }

    /// Period of the flow controller, ms: the library's own by default.
    pub(crate) fn flow_period_ms(&self) -> u32 {
        self.flow_period_ms.unwrap_or(100)
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
        let found = self.priorities.iter().find(|(name, _)| names(name));
        found.map(|(_, priority)| -priority)
    }

    fn set(&mut self, name: &str, value: &Value) -> Result<String, String> {
        let max = i64::from(i32::MAX);
        let given = spelt(&Some(value)).unwrap_or_default();
        Ok(match name {
            "preset" => {
                let preset = value.as_str().and_then(Preset::named);
                preset_words(preset.ok_or("expected \"default\" or \"tuned\"")?)
            }
            "publish-mode" => {
                self.asynchronous = Some(match value.as_str() {
                    Some("sync") => false,
                    Some("async") => true,
                    _ => return Err("expected \"sync\" or \"async\"".into()),
                });
                match self.asynchronous {
                    Some(true) => "ASYNCHRONOUS_PUBLISH_MODE: a thread of the library sends",
                    _ => "SYNCHRONOUS_PUBLISH_MODE: write() sends",
                }
                .into()
            }
            "heartbeat-period-ms" => {
                self.heartbeat_ns = Some(milliseconds(value, 0.1)?);
                format!("heartbeatPeriod {given} ms")
            }
            "nack-response-delay-ms" => {
                self.nack_response_ns = Some(milliseconds(value, 0.0)?);
                format!("nackResponseDelay {given} ms")
            }
            "heartbeat-response-delay-ms" => {
                self.heartbeat_response_ns = Some(milliseconds(value, 0.0)?);
                format!("heartbeatResponseDelay {given} ms")
            }
            "piggyback" => {
                self.piggyback = boolean(value)?;
                format!("disable_heartbeat_piggyback {}", !self.piggyback)
            }
            "writer-durability" => {
                self.writer_transient_local = match value.as_str() {
                    Some("transient-local") => true,
                    Some("volatile") => false,
                    _ => return Err("expected \"volatile\" or \"transient-local\"".into()),
                };
                if self.writer_transient_local {
                    "writers TRANSIENT_LOCAL_DURABILITY_QOS: what is acknowledged goes when room is \
                     needed; readers are VOLATILE_DURABILITY_QOS and get nothing of it"
                } else {
                    "writers VOLATILE_DURABILITY_QOS: what is acknowledged goes at once"
                }
                .into()
            }
            "history-depth" => {
                self.history_depth = Some(whole(value, 1, max)?);
                format!(
                    "KEEP_LAST_HISTORY_QOS, depth {given}, at writer and reader: what is \
                         older gives way, delivered or not"
                )
            }
            "max-samples" => {
                self.max_samples = Some(whole(value, 1, max)?);
                format!("writer: resource_limits.max_samples {given}")
            }
            "reader-max-samples" => {
                self.reader_max_samples = Some(whole(value, 1, max)?);
                format!("reader: resource_limits.max_samples_per_instance {given}")
            }
            "send-buffer-bytes" => {
                self.send_buffer_bytes = Some(whole(value, 1024, max)?);
                format!("sendBufferSize {given} (UDP), segment_size (shared memory)")
            }
            "receive-buffer-bytes" => {
                self.receive_buffer_bytes = Some(whole(value, 1024, max)?);
                format!("receiveBufferSize {given} (UDP)")
            }
            "max-message-bytes" => {
                self.max_message_bytes = Some(whole(value, 1024, 65_500)?);
                format!("maxMessageSize {given}: longer samples are sent in fragments")
            }
            "flow-controller" => {
                self.scheduler = Some(match value.as_str() {
                    Some("fifo") => Scheduler::Fifo,
                    Some("round-robin") => Scheduler::RoundRobin,
                    Some("high-priority") => Scheduler::HighPriority,
                    Some("priority-with-reservation") => Scheduler::PriorityWithReservation,
                    _ => {
                        return Err("expected \"fifo\", \"round-robin\", \"high-priority\" or \
                                    \"priority-with-reservation\""
                            .into());
                    }
                });
                format!(
                    "FlowControllerSchedulerPolicy of the participant's flow controller: {given}"
                )
            }
            "flow-period-ms" => {
                self.flow_period_ms = Some(whole(value, 1, 10_000)? as u32);
                format!("FlowControllerDescriptor.period_ms {given}")
            }
            "priorities" => {
                self.priorities = priorities(value)?;
                "flow controller HIGH_PRIORITY, fastdds.sfc.priority of each writer by its topic \
                 (the library counts the other way round: -10 goes first)"
                    .into()
            }
            "data-sharing" => {
                self.data_sharing = boolean(value)?;
                if self.data_sharing {
                    "DataSharing ON: samples lie in a file mapped by writer and reader; the type \
                     is bounded and has no key then, as the library demands"
                        .into()
                } else {
                    "DataSharing OFF".into()
                }
            }
            "intraprocess" => {
                self.intraprocess = boolean(value)?;
                if self.intraprocess {
                    "INTRAPROCESS_FULL: writers call readers of the same process directly, and no \
                     message leaves it"
                        .into()
                } else {
                    "INTRAPROCESS_OFF".into()
                }
            }
            "domain" => {
                self.domain = Some(whole(value, 0, i64::from(MAX_DOMAIN))? as u32);
                format!("domain {given}")
            }
            "discovery-peers" => {
                self.discovery_peers = whole(value, 1, 100)? as u32;
                format!(
                    "maxInitialPeersRange {given}: participants of the domain that are looked for"
                )
            }
            unknown => unreachable!("{unknown} is not in NAMES"),
        })
    }
}

fn preset_words(preset: Preset) -> String {
    match preset {
        Preset::Default => {
            "default: the library's own values (heartbeat every 3 s, heartbeat response 5 ms, nack \
             response 5 ms, 400 samples per writer, which keeps acknowledged ones until it needs \
             their room, the kernel's socket buffers)"
        }
        Preset::Tuned => {
            "tuned: heartbeat every 1 ms (20 ms behind a flow controller), heartbeats and nacks \
             answered at once, acknowledged samples forgotten at once, 4 MiB socket buffers"
        }
    }
    .to_owned()
}

fn priorities(value: &Value) -> Result<Vec<(String, i32)>, String> {
    let expected = "expected a table of topics (or topic/#) with priorities from -10 to 10";
    let table = value.as_object().ok_or(expected)?;
    let mut priorities = Vec::new();
    for (topic, priority) in table {
        priorities.push((
            topic.clone(),
            whole(priority, -10, 10).map_err(|_| expected)?,
        ));
    }
    priorities.sort_by_key(|(topic, _)| std::cmp::Reverse(topic.len()));
    Ok(priorities)
}

fn boolean(value: &Value) -> Result<bool, String> {
    value
        .as_bool()
        .ok_or_else(|| "expected true or false".into())
}

fn milliseconds(value: &Value, min: f64) -> Result<i64, String> {
    value
        .as_f64()
        .filter(|ms| (min..=3_600_000.0).contains(ms))
        .map(|ms| (ms * 1e6).round() as i64)
        .ok_or_else(|| format!("expected a number of milliseconds from {min} to 3600000"))
}

fn whole(value: &Value, min: i64, max: i64) -> Result<i32, String> {
    value
        .as_i64()
        .filter(|v| (min..=max).contains(v))
        .and_then(|v| i32::try_from(v).ok())
        .ok_or_else(|| format!("expected a whole number from {min} to {max}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::resolve;
    use pubgauge_driver::Target;

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
        for name in NAMES {
            let value = match name {
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
            let row = mappings.last().unwrap();
            assert_eq!(row.setting, format!("native.fastdds.{name}"));
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
        assert!(reason("priorities", 3.into()).contains("table"));
    }

    #[test]
    fn what_is_given_wins_over_the_preset() {
        let settings = with("heartbeat-period-ms", 20.into());
        let options = resolve(&settings, &Target::default()).unwrap().0;
        assert_eq!(options.heartbeat_ns(), Some(20_000_000));
        assert_eq!(options.native.nack_response_ns, Some(0));
    }
}
