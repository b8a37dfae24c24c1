//! Capabilities: what applications ask of middleware, as a typed vocabulary that every driver
//! answers for every value.
//!
//! The vocabulary is the six properties of kang2020 (section 2: reliability, multicast, intelligent
//! batching, rate limit, message lifespan, topic priority) and all of happ2016's table 1 (messaging
//! pattern, filtering, QoS semantics, topology, message format), with durability, limits and what
//! happens at them.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::resolution::spelt;
use crate::settings::{
    Batching, Durability, MessagingPattern, OnFull, Reliability, Session, Settings,
};

/// One value of one property that a system may have.
///
/// Written as `property:value` (`reliability:at-most-once`), or as the property alone where it
/// has no values (`last-value`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Capability {
    /// Who gets a message.
    Pattern(MessagingPattern),
    /// Which messages a subscriber can ask for.
    Filter(Filtering),
    /// Members of a group share messages: each goes to one of them.
    Group,
    /// How hard the system tries to deliver.
    Reliability(Reliability),
    /// Durability: whether messages survive a restart of the system.
    Durability(Durability),
    /// The system remembers a subscriber that goes away, and what it missed.
    DurableSession,
    /// A late subscriber gets the topic's last message.
    LastValue,
    /// Messages expire.
    Lifespan,
    /// Messages of higher priority overtake others.
    Priority,
    /// One transmission for many subscribers.
    Multicast,
    /// Each message is sent by itself.
    BatchingOff,
    /// A fixed number of bytes is gathered.
    BatchingFixed,
    /// The driver or the system chooses how much is gathered.
    BatchingAdaptive,
    /// The system itself keeps a limit on bytes per second.
    RateLimit,
    /// A limit on messages that are not acknowledged yet.
    InFlight,
    /// A limit on messages that wait.
    QueueLimit,
    /// The behaviour at the limit on messages that wait.
    OnFull(OnFull),
    /// How clients reach each other.
    Topology(Topology),
    /// The system does not look into payloads.
    PayloadAgnostic,
    /// Payloads travel as they are, all 256 values of a byte.
    BinaryPayload,
}

/// Which messages a subscriber can ask for (happ2016, requirement R2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Filtering {
    /// One topic.
    Exact,
    /// Everything below a level: `a/#`.
    Prefix,
    /// Any value of one level: `a/+/c`.
    PerLevel,
    /// By what is in the message.
    Content,
}

/// How clients reach each other (happ2016, requirement R4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// Through a server.
    Brokered,
    /// Directly.
    Brokerless,
    /// A server brings them together, messages go directly.
    Hybrid,
}

/// Whether a system has a capability, and what it is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Answer {
    /// Whether the system has it.
    pub support: Support,
    /// Its form in the system's own terms; why not, if it is unsupported.
    pub words: String,
}

/// Whether a system has a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Support {
    /// The system has it.
    Native,
    /// The driver makes it from what the system has.
    Emulated,
    /// The system promises it, and was measured to break the promise.
    Broken,
    /// It cannot be had.
    Unsupported,
}

impl Answer {
    /// The system has it; `words`: as what.
    pub fn native(words: impl Into<String>) -> Self {
        Answer {
            support: Support::Native,
            words: words.into(),
        }
    }

    /// The driver makes it; `words`: from what.
    pub fn emulated(words: impl Into<String>) -> Self {
        Answer {
            support: Support::Emulated,
            words: words.into(),
        }
    }

    /// It cannot be had, for this reason.
    pub fn unsupported(reason: impl Into<String>) -> Self {
        Answer {
            support: Support::Unsupported,
            words: reason.into(),
        }
    }
}

impl Capability {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Capability; 34] = [
        Capability::Pattern(MessagingPattern::PublishSubscribe),
        Capability::Pattern(MessagingPattern::PointToPoint),
        Capability::Pattern(MessagingPattern::RequestReply),
        Capability::Filter(Filtering::Exact),
        Capability::Filter(Filtering::Prefix),
        Capability::Filter(Filtering::PerLevel),
        Capability::Filter(Filtering::Content),
        Capability::Group,
        Capability::Reliability(Reliability::AtMostOnce),
        Capability::Reliability(Reliability::AtLeastOnce),
        Capability::Reliability(Reliability::ExactlyOnce),
        Capability::Reliability(Reliability::BestEffort),
        Capability::Reliability(Reliability::Reliable),
        Capability::Durability(Durability::Memory),
        Capability::Durability(Durability::Disk),
        Capability::Durability(Durability::DiskSynced),
        Capability::DurableSession,
        Capability::LastValue,
        Capability::Lifespan,
        Capability::Priority,
        Capability::Multicast,
        Capability::BatchingOff,
        Capability::BatchingFixed,
        Capability::BatchingAdaptive,
        Capability::RateLimit,
        Capability::InFlight,
        Capability::QueueLimit,
        Capability::OnFull(OnFull::Block),
        Capability::OnFull(OnFull::Drop),
        Capability::Topology(Topology::Brokered),
        Capability::Topology(Topology::Brokerless),
        Capability::Topology(Topology::Hybrid),
        Capability::PayloadAgnostic,
        Capability::BinaryPayload,
    ];

    /// The property's name.
    pub fn property(self) -> &'static str {
        match self {
            Capability::Pattern(_) => "pattern",
            Capability::Filter(_) => "filter",
            Capability::Group => "group",
            Capability::Reliability(_) => "reliability",
            Capability::Durability(_) => "durability",
            Capability::DurableSession => "durable-session",
            Capability::LastValue => "last-value",
            Capability::Lifespan => "lifespan",
            Capability::Priority => "priority",
            Capability::Multicast => "multicast",
            Capability::BatchingOff | Capability::BatchingFixed | Capability::BatchingAdaptive => {
                "batching"
            }
            Capability::RateLimit => "rate-limit",
            Capability::InFlight => "in-flight",
            Capability::QueueLimit => "queue-limit",
            Capability::OnFull(_) => "on-full",
            Capability::Topology(_) => "topology",
            Capability::PayloadAgnostic => "payload-agnostic",
            Capability::BinaryPayload => "binary-payload",
        }
    }

    /// The value's name; `None` where the property is there or not.
    pub fn value(self) -> Option<String> {
        match self {
            Capability::Pattern(v) => spelt(&Some(v)),
            Capability::Filter(v) => spelt(&Some(v)),
            Capability::Reliability(v) => spelt(&Some(v)),
            Capability::Durability(v) => spelt(&Some(v)),
            Capability::OnFull(v) => spelt(&Some(v)),
            Capability::Topology(v) => spelt(&Some(v)),
            Capability::BatchingOff => Some("off".into()),
            Capability::BatchingFixed => Some("fixed".into()),
            Capability::BatchingAdaptive => Some("adaptive".into()),
            _ => None,
        }
    }

    /// The ways in which a study may ask for it, the plainest first: some limits mean something
    /// only where messages are acknowledged or sessions are kept. Empty where no setting asks.
    pub fn requesting_settings(self) -> Vec<Settings> {
        let ask = self.ask();
        let Some((name, ask)) = ask else {
            return Vec::new();
        };
        let mut asks = vec![ask.clone()];
        if self == Capability::InFlight {
            // A window of unacknowledged messages means nothing where messages are not
            // acknowledged.
            asks.clear();
        }
        if name == "reliability" || name == "pattern" {
            return asks;
        }
        for reliability in [
            Reliability::AtLeastOnce,
            Reliability::Reliable,
            Reliability::BestEffort,
        ] {
            let ask = Settings {
                reliability: Some(reliability),
                ..ask.clone()
            };
            asks.push(ask.clone());
            if ask.session.is_none() {
                asks.push(Settings {
                    session: Some(Session::Durable),
                    ..ask
                });
            }
        }
        asks
    }

    /// The setting that decides, and the plainest settings with it.
    pub(crate) fn ask(self) -> Option<(&'static str, Settings)> {
        let mut s = Settings::default();
        match self {
            Capability::Pattern(v) => s.pattern = Some(v),
            Capability::Reliability(v) => s.reliability = Some(v),
            Capability::Durability(v) => {
                s.durability = Some(v);
                if v != Durability::Memory {
                    s.session = Some(Session::Durable);
                    s.reliability = Some(Reliability::AtLeastOnce);
                }
            }
            Capability::DurableSession => s.session = Some(Session::Durable),
            Capability::LastValue => s.last_value = Some(true),
            Capability::Lifespan => s.lifespan_ms = Some(1000),
            Capability::Priority => s.priority = Some(5),
            Capability::Multicast => s.multicast = Some(true),
            Capability::BatchingOff => s.batching = Some(Batching::Off),
            Capability::BatchingFixed => s.batching = Some(Batching::Bytes(8192)),
            Capability::BatchingAdaptive => s.batching = Some(Batching::Adaptive),
            Capability::RateLimit => s.rate_limit_bytes_per_s = Some(200_000),
            Capability::InFlight => s.in_flight = Some(8),
            Capability::QueueLimit => s.queue_limit = Some(100),
            Capability::OnFull(v) => s.on_full = Some(v),
            Capability::Filter(_)
            | Capability::Group
            | Capability::Topology(_)
            | Capability::PayloadAgnostic
            | Capability::BinaryPayload => return None,
        }
        let name = match self {
            Capability::DurableSession => "session",
            Capability::Lifespan => "lifespan-ms",
            Capability::RateLimit => "rate-limit-bytes-per-s",
            _ => self.property(),
        };
        Some((name, s))
    }

    /// Whether these settings ask for it. Where it has a number (a lifespan, a limit), any number
    /// does.
    pub fn is_asked_by(self, settings: &Settings) -> bool {
        let Some((name, plainest)) = self.ask() else {
            return false;
        };
        let value = settings.value_of(name);
        match self {
            Capability::BatchingFixed => matches!(settings.batching, Some(Batching::Bytes(_))),
            Capability::Lifespan
            | Capability::Priority
            | Capability::RateLimit
            | Capability::InFlight
            | Capability::QueueLimit => value != "default",
            _ => value == plainest.value_of(name),
        }
    }
}

impl Filtering {
    /// A filter of this kind; `None` where no filter expresses it.
    pub(crate) fn example(self) -> Option<&'static str> {
        match self {
            Filtering::Exact => Some("a/b"),
            Filtering::Prefix => Some("a/#"),
            Filtering::PerLevel => Some("a/+/c"),
            Filtering::Content => None,
        }
    }
}

impl Topology {
    pub(crate) fn description(self) -> &'static str {
        match self {
            Topology::Brokered => "every message goes through a server",
            Topology::Brokerless => "publishers reach subscribers directly, without a server",
            Topology::Hybrid => "a server brings clients together, messages go directly",
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value() {
            None => f.write_str(self.property()),
            Some(value) => write!(f, "{}:{value}", self.property()),
        }
    }
}

/// A text that names no capability.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no capability `{0}`; there are {all}", all = names().join(", "))]
pub struct UnknownCapability(String);

fn names() -> Vec<String> {
    Capability::ALL.iter().map(ToString::to_string).collect()
}

impl FromStr for Capability {
    type Err = UnknownCapability;

    fn from_str(text: &str) -> Result<Self, UnknownCapability> {
        let named = Self::ALL.into_iter().find(|c| c.to_string() == text);
        named.ok_or_else(|| UnknownCapability(text.to_owned()))
    }
}

impl Serialize for Capability {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Capability {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Capability {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Capability".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "enum": names() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_a_capability_asks_for_it() {
        for capability in Capability::ALL {
            assert!(
                !capability.is_asked_by(&Settings::default()),
                "{capability}"
            );
            for ask in capability.requesting_settings() {
                assert!(capability.is_asked_by(&ask), "{capability}: {ask:?}");
            }
        }
        let other = Settings {
            reliability: Some(Reliability::AtLeastOnce),
            session: Some(Session::Clean),
            last_value: Some(false),
            lifespan_ms: Some(7),
            batching: Some(Batching::Bytes(1)),
            ..Settings::default()
        };
        let asked: Vec<String> = Capability::ALL
            .into_iter()
            .filter(|c| c.is_asked_by(&other))
            .map(|c| c.to_string())
            .collect();
        assert_eq!(
            asked,
            ["reliability:at-least-once", "lifespan", "batching:fixed"]
        );
    }

    #[test]
    fn names_are_unique_and_read_back() {
        let mut names = names();
        for name in &names {
            assert_eq!(
                name.parse::<Capability>().map(|c| c.to_string()),
                Ok(name.clone())
            );
        }
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!("reliability:twice".parse::<Capability>().is_err());
    }

    #[test]
    fn every_ask_differs_from_no_settings() {
        for capability in Capability::ALL {
            for ask in capability.requesting_settings() {
                assert_ne!(ask, Settings::default(), "{capability}");
            }
        }
    }
}
