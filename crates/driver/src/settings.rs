//! Neutral settings: what an application asks of a system, in words that belong to none.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The application's demands on the system. An absent value leaves the driver's documented
/// default; [`crate::Driver::resolve`] shows what each became.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Settings {
    /// Who gets a message, and whether the system brings an answer back.
    pub pattern: Option<MessagingPattern>,
    /// How hard the system tries to deliver.
    pub reliability: Option<Reliability>,
    /// Durability: whether messages survive a restart of the system.
    pub durability: Option<Durability>,
    /// Whether the system remembers a client that goes away.
    pub session: Option<Session>,
    /// Seconds that a session or its queue outlives its connection.
    pub session_expiry_s: Option<u32>,
    /// The system keeps each topic's last message for late subscribers.
    pub last_value: Option<bool>,
    /// Milliseconds after which an undelivered message may be thrown away.
    pub lifespan_ms: Option<u64>,
    /// Messages a publisher may have unacknowledged at once.
    pub in_flight: Option<u32>,
    /// Messages that may wait in a local queue of the system's client.
    pub queue_limit: Option<u32>,
    /// The behaviour when the local queue is full.
    pub on_full: Option<OnFull>,
    /// Whether messages are gathered before they are sent.
    pub batching: Option<Batching>,
    /// Importance of messages, -10 (least) to 10 (most).
    pub priority: Option<i32>,
    /// One transmission for many subscribers.
    pub multicast: Option<bool>,
    /// Bytes per second that the system itself is told to send at most.
    pub rate_limit_bytes_per_s: Option<u64>,
    /// Keep only the newest message in each queue.
    pub conflate: Option<bool>,
    /// How bytes travel.
    pub transport: Option<Transport>,
    /// Keep-alive interval in seconds: pings on an idle connection; 0 means none.
    pub keep_alive_s: Option<u16>,
    /// Extra name-value pairs attached to each message.
    pub user_properties: Option<BTreeMap<String, String>>,
    /// Settings that only one driver knows, by driver name, for example
    /// `native.mqtt.version = "3.1.1"`.
    pub native: BTreeMap<String, BTreeMap<String, serde_json::Value>>,
    /// Options of systems' own configuration, by system, for example `options.mosquitto.max-inflight = 20`; `pubgauge systems`
    /// lists what each system has. Those of other systems count for nothing.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, BTreeMap<String, serde_json::Value>>,
}

/// Where a setting stands, by its name.
enum Place<'n> {
    Neutral(&'n str),
    /// `native.DRIVER.NAME`.
    Native(&'n str, &'n str),
    /// `options.SYSTEM.NAME`.
    Options(&'n str, &'n str),
}

fn place_of(setting: &str) -> Place<'_> {
    // The name of a system may have points, that of a driver or an option has none.
    let below = |table: &str| setting.strip_prefix(table)?.rsplit_once('.');
    if let Some((driver, name)) = below("native.") {
        Place::Native(driver, name)
    } else if let Some((system, name)) = below("options.") {
        Place::Options(system, name)
    } else {
        Place::Neutral(setting)
    }
}

impl Settings {
    /// The neutral settings, in the order in which they are shown.
    pub const NAMES: [&'static str; 18] = [
        "pattern",
        "reliability",
        "durability",
        "session",
        "session-expiry-s",
        "last-value",
        "lifespan-ms",
        "in-flight",
        "queue-limit",
        "on-full",
        "batching",
        "priority",
        "multicast",
        "rate-limit-bytes-per-s",
        "conflate",
        "transport",
        "keep-alive-s",
        "user-properties",
    ];

    /// A neutral setting's value as it stands in the study, or `default`.
    pub fn value_of(&self, name: &str) -> String {
        match serde_json::to_value(self)
            .ok()
            .as_ref()
            .and_then(|all| all.get(name))
        {
            None | Some(serde_json::Value::Null) => "default".into(),
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }
    }

    /// These settings, overridden by those that `own` gives.
    pub fn overridden_by(&self, own: &Settings) -> Settings {
        let both = |mut tables: BTreeMap<String, BTreeMap<String, serde_json::Value>>, own| {
            for (of, values) in own {
                tables.entry(of).or_default().extend(values);
            }
            tables
        };
        let native = both(self.native.clone(), own.native.clone());
        let options = both(self.options.clone(), own.options.clone());
        Settings {
            pattern: own.pattern.or(self.pattern),
            reliability: own.reliability.or(self.reliability),
            durability: own.durability.or(self.durability),
            session: own.session.or(self.session),
            session_expiry_s: own.session_expiry_s.or(self.session_expiry_s),
            last_value: own.last_value.or(self.last_value),
            lifespan_ms: own.lifespan_ms.or(self.lifespan_ms),
            in_flight: own.in_flight.or(self.in_flight),
            queue_limit: own.queue_limit.or(self.queue_limit),
            on_full: own.on_full.or(self.on_full),
            batching: own.batching.or(self.batching),
            priority: own.priority.or(self.priority),
            multicast: own.multicast.or(self.multicast),
            rate_limit_bytes_per_s: own.rate_limit_bytes_per_s.or(self.rate_limit_bytes_per_s),
            conflate: own.conflate.or(self.conflate),
            transport: own.transport.or(self.transport),
            keep_alive_s: own.keep_alive_s.or(self.keep_alive_s),
            user_properties: own.user_properties.clone().or(self.user_properties.clone()),
            native,
            options,
        }
    }

    /// Whether a setting is given, by its name as in [`Mapping::setting`].
    pub fn has(&self, name: &str) -> bool {
        match place_of(name) {
            Place::Native(driver, name) => self.native(driver, name).is_some(),
            Place::Options(system, name) => self.option(system, name).is_some(),
            Place::Neutral(name) => self.value_of(name) != "default",
        }
    }

    /// These settings without one, by its name as in [`Mapping::setting`].
    pub fn without_setting(&self, name: &str) -> Settings {
        let mut rest = self.clone();
        let (tables, of, name) = match place_of(name) {
            Place::Native(driver, name) => (&mut rest.native, driver, name),
            Place::Options(system, name) => (&mut rest.options, system, name),
            Place::Neutral(name) => return self.without_neutral(name),
        };
        if let Some(values) = tables.get_mut(of) {
            values.remove(name);
        }
        tables.retain(|_, values| !values.is_empty());
        rest
    }

    fn without_neutral(&self, name: &str) -> Settings {
        let rest = self.clone();
        let Ok(serde_json::Value::Object(mut all)) = serde_json::to_value(&rest) else {
            return rest;
        };
        all.remove(name);
        serde_json::from_value(all.into()).unwrap_or(rest)
    }

    /// These settings with a value of one, by its name as in [`Mapping::setting`] or `options.SYSTEM.NAME`.
    ///
    /// # Errors
    /// If there is no such neutral setting, or it cannot have this value.
    pub fn with_setting(
        &self,
        name: &str,
        value: serde_json::Value,
    ) -> Result<Settings, serde_json::Error> {
        let mut more = self.clone();
        let (tables, of, name) = match place_of(name) {
            Place::Native(driver, name) => (&mut more.native, driver, name),
            Place::Options(system, name) => (&mut more.options, system, name),
            Place::Neutral(name) => {
                let one = serde_json::Map::from_iter([(name.to_owned(), value)]);
                let own = serde_json::from_value(one.into())?;
                return Ok(self.overridden_by(&own));
            }
        };
        let values = tables.entry(of.to_owned()).or_default();
        values.insert(name.to_owned(), value);
        Ok(more)
    }

    /// Whether a message may be lost without anybody having broken a promise.
    pub fn may_lose(&self) -> bool {
        matches!(
            self.reliability,
            None | Some(Reliability::AtMostOnce | Reliability::BestEffort)
        )
    }

    /// A driver's own setting as it stands in the study, if given.
    pub fn native(&self, driver: &str, name: &str) -> Option<&serde_json::Value> {
        self.native.get(driver)?.get(name)
    }

    /// An option of a system's own configuration, if given.
    pub fn option(&self, system: &str, name: &str) -> Option<&serde_json::Value> {
        self.options.get(system)?.get(name)
    }
}

/// Who gets a message, and whether the system brings an answer back (happ2016, requirement R1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MessagingPattern {
    /// Everybody who subscribed to its topic.
    PublishSubscribe,
    /// The one receiver that its topic names: a queue, a device.
    PointToPoint,
    /// The one receiver that its topic names, whose answer the system itself brings back.
    RequestReply,
}

/// How hard the system tries to deliver a message.
///
/// The first three are promises as MQTT words them, the last two as DDS does (kang2020, section
/// 2.1, equates best effort with MQTT's QoS 0 and reliable with its QoS 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reliability {
    /// Each message arrives once or not at all (MQTT QoS 0, DDS best effort).
    AtMostOnce,
    /// Each message arrives, perhaps more than once (MQTT QoS 1).
    AtLeastOnce,
    /// Each message arrives once (MQTT QoS 2).
    ExactlyOnce,
    /// Nothing is sent a second time (DDS best effort, MQTT QoS 0).
    BestEffort,
    /// While both ends live, each message arrives, once and in order; how is the system's matter
    /// (DDS reliable).
    Reliable,
}

/// Durability: whether messages survive a restart of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// Nothing: messages live in memory.
    Memory,
    /// Messages are written to disk, some time.
    Disk,
    /// Messages are on disk before they are acknowledged.
    DiskSynced,
}

/// Whether the system remembers a client that goes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Session {
    /// Forgotten with its connection.
    Clean,
    /// Subscriptions and undelivered messages are kept.
    Durable,
}

/// The behaviour when a local queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnFull {
    /// The publisher is held back.
    Block,
    /// The message is dropped.
    Drop,
}

/// Whether messages are gathered before they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Batching {
    /// Each message is sent by itself.
    Off,
    /// Up to this many bytes are sent together.
    Bytes(u32),
    /// The driver chooses from rate and payload.
    Adaptive,
}

/// How bytes travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// Local sockets between processes of one host.
    Ipc,
    /// Memory shared between processes of one host.
    SharedMemory,
}

/// The outcome of one neutral setting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mapping {
    /// The neutral setting's name, or `native.DRIVER.NAME`.
    pub setting: String,
    /// The value asked for, or `default`.
    pub value: String,
    /// Its form in the system's own terms, for example `Clean Start 1`.
    pub native: String,
    /// The short term for it that a workload's line has beside the neutral settings, for example `QoS 1`; absent where they
    /// say enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub term: Option<String>,
    /// MQTT's quality of service that messages are published with, 0 to 2, beside `reliability`; absent for a protocol that
    /// has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos: Option<u8>,
}

/// A setting that a system cannot honour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unsupported {
    /// The neutral setting's name, or `native.DRIVER.NAME`.
    pub setting: String,
    /// The value asked for.
    pub value: String,
    /// Why not, and what would do instead.
    pub reason: String,
}
