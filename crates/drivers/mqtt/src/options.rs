//! Translates the neutral settings to MQTT, and names those that it cannot honour.

use pubgauge_driver::{
    DriverError, Durability, MessagingPattern, Reliability, Resolution, Resolved, Session,
    Settings, Subscription, Target, Will, becomes, cannot, spelt,
};
use pubgauge_mqtt_codec::{QoS, RetainHandling, Version, topic};
use pubgauge_net::fleet::{Terms, Tuning};

use crate::native::{MqttNative, NAME, NATIVE};

/// QoS 1 and 2 messages in flight per publisher, unless the settings or the server say otherwise.
/// Under 3.1.1 a server cannot tell its limit; it may end connections that exceed it: mosquitto 2.0
/// does so above 20 QoS 2 messages, unless its `max_inflight_messages` is raised.
const DEFAULT_IN_FLIGHT: u32 = 20;

/// Most messages in flight; packet identifiers above it are reserved for SUBSCRIBE.
pub(crate) const MAX_IN_FLIGHT: u32 = 64_000;

const DEFAULT_KEEP_ALIVE_S: u16 = 60;
const DEFAULT_SESSION_EXPIRY_S: u32 = 3600;

const TERMS: Terms = Terms {
    protocol: "MQTT",
    units: "packets",
    unit: "packet",
    tcp: "TCP; with TLS where the endpoint is mqtts:// or wss://, in frames of WebSocket where it is ws:// or wss://",
    not_tcp: "this driver speaks MQTT over TCP (mqtt://), TLS (mqtts://) and WebSocket (ws://, wss://) only",
};

/// The settings as the fleet uses them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MqttOptions {
    pub version: Version,
    pub qos: QoS,
    pub subscribe_qos: QoS,
    pub durable: bool,
    /// Session Expiry Interval of MQTT 5; 0 is the protocol's default and not sent.
    pub session_expiry_s: u32,
    /// Shortest Session Expiry Interval that a server may grant, in seconds: the one that the settings name; 0 where
    /// they name none.
    pub session_at_least_s: u32,
    pub retain: bool,
    pub message_expiry_s: Option<u32>,
    pub in_flight: u32,
    pub tuning: Tuning,
    pub keep_alive_s: u16,
    pub user_properties: Vec<(String, String)>,
    pub receive_maximum: u16,
    pub topic_alias: u16,
    pub retain_handling: RetainHandling,
    pub no_local: bool,
    pub subscription_identifier: Option<u32>,
    pub content_type: Option<String>,
    pub response_topic: Option<String>,
}

/// How subscribers subscribe under some settings, for whoever brings subscribers of another kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriberTerms {
    /// Version of the protocol.
    pub version: Version,
    /// QoS in SUBSCRIBE.
    pub qos: QoS,
    /// Keep Alive, s; 0 is off.
    pub keep_alive_s: u16,
    /// How long a session outlives its connection, s, where it is durable.
    pub durable_s: Option<u32>,
}

impl SubscriberTerms {
    /// Those of a system like `target`. Settings that are refused have none that are of use.
    pub fn new(settings: &Settings, target: &Target) -> SubscriberTerms {
        let (options, _) = MqttOptions::read(settings, target);
        SubscriberTerms {
            version: options.version,
            qos: options.subscribe_qos,
            keep_alive_s: options.keep_alive_s,
            durable_s: options.durable.then_some(options.session_expiry_s),
        }
    }
}

impl MqttOptions {
    /// Resolves the settings for a system like `target`.
    pub fn resolve(settings: &Settings, target: &Target) -> Resolved<MqttOptions> {
        let (options, table) = MqttOptions::read(settings, target);
        table.finish(options)
    }

    /// Checks that a client under these options can have this will.
    ///
    /// # Errors
    /// Why not, and what would do instead.
    pub fn check_will(&self, will: &Will) -> Result<(), String> {
        if will.payload.len() > 65_535 {
            return Err("the payload of a will has at most 65535 bytes".into());
        }
        if will.delay_s == 0 {
            return Ok(());
        }
        if self.version == Version::V311 {
            return Err(
                "a will that waits (Will Delay Interval) needs MQTT 5: set native.mqtt.version = \"5\", or leave the delay out"
                    .into(),
            );
        }
        if !self.durable {
            return Err(
                "a will does not wait longer than the session lasts, and a clean one ends with its connection (5.0, section \
                 3.1.2.5): set session = \"durable\", or leave the delay out"
                    .into(),
            );
        }
        if will.delay_s > self.session_expiry_s {
            return Err(format!(
                "a will does not wait longer than the session lasts (5.0, section 3.1.2.5), which expires after {} s: set a larger \
                 session-expiry-s, or a shorter delay",
                self.session_expiry_s
            ));
        }
        Ok(())
    }

    /// The quality of service with which a client's will is published.
    pub fn qos_of_will(&self, will: &Will) -> QoS {
        match will.qos {
            None => self.qos,
            Some(0) => QoS::AtMostOnce,
            Some(1) => QoS::AtLeastOnce,
            Some(_) => QoS::ExactlyOnce,
        }
    }

    /// As [`Options::resolve`], with what was refused still in the table.
    fn read(settings: &Settings, target: &Target) -> (MqttOptions, Resolution) {
        let mut table = Resolution::default();
        let native = NATIVE.read(settings, &mut table);
        let version = native
            .version
            .map_or_else(|| default_version(target), Version::from);
        let mut options = MqttOptions {
            version,
            qos: QoS::AtMostOnce,
            subscribe_qos: QoS::AtMostOnce,
            durable: false,
            session_expiry_s: 0,
            session_at_least_s: 0,
            retain: settings.last_value.unwrap_or(false),
            message_expiry_s: None,
            in_flight: settings.in_flight.unwrap_or(DEFAULT_IN_FLIGHT),
            tuning: Tuning::resolve(settings, native.socket, TERMS, &mut table),
            keep_alive_s: settings.keep_alive_s.unwrap_or(DEFAULT_KEEP_ALIVE_S),
            user_properties: Vec::new(),
            receive_maximum: native.receive_maximum.unwrap_or(u16::MAX),
            topic_alias: native.topic_alias.unwrap_or(0),
            retain_handling: match native.retain_handling {
                Some(1) => RetainHandling::SendIfNew,
                Some(2) => RetainHandling::DoNotSend,
                _ => RetainHandling::Send,
            },
            no_local: native.no_local.unwrap_or(false),
            subscription_identifier: native.subscription_identifier,
            content_type: native.content_type.clone(),
            response_topic: native.response_topic.clone(),
        };
        check_version(version, target, &mut table);
        options.delivery(settings, target, &native, &mut table);
        options.session(settings, &mut table);
        options.message(settings, &mut table);
        options.flow(settings, &mut table);
        absent(settings, &mut table);
        options.connection(settings, &mut table);
        options.properties(&mut table);
        options.only_of_v5(settings, &mut table);
        (options, table)
    }

    fn delivery(&mut self, s: &Settings, target: &Target, native: &MqttNative, t: &mut Resolution) {
        self.qos = match s.reliability {
            None | Some(Reliability::AtMostOnce | Reliability::BestEffort) => QoS::AtMostOnce,
            Some(Reliability::AtLeastOnce) => QoS::AtLeastOnce,
            Some(Reliability::ExactlyOnce | Reliability::Reliable) => QoS::ExactlyOnce,
        };
        let subscribe_qos = native.subscribe_qos.and_then(QoS::from_bits);
        self.subscribe_qos = subscribe_qos.unwrap_or(self.qos);
        let no_qos_2 =
            "this server has no QoS 2 (its file lists the feature `no-qos-2`); use at-least-once";
        t.decide("reliability", s.reliability, |_| match self.qos {
            QoS::ExactlyOnce if target.has("no-qos-2") => cannot(no_qos_2),
            _ => becomes(format!(
                "QoS {} published, QoS {} subscribed",
                self.qos as u8, self.subscribe_qos as u8
            )),
        });
        t.quality_of_service(self.qos as u8);
        if subscribe_qos == Some(QoS::ExactlyOnce) && target.has("no-qos-2") {
            t.refuse("native.mqtt.subscribe-qos", "2", no_qos_2);
        }
        t.decide("last-value", s.last_value, |_| match self.retain {
            true if target.has("no-retained") => cannot(
                "this server keeps no retained messages (its file lists the feature `no-retained`)",
            ),
            true => becomes("RETAIN 1 on every PUBLISH"),
            false => becomes("RETAIN 0"),
        });
        let known = !target.features.is_empty();
        t.decide("durability", s.durability, |durability| match durability {
            None => becomes("as the server is configured"),
            Some(Durability::Memory) if target.has("persistent") => cannot(
                "this system's configuration writes sessions and messages to disk; take its variant without persistence",
            ),
            Some(Durability::Memory) if known => becomes("the server keeps messages in memory"),
            Some(Durability::Disk) if known && !target.has("persistent") => cannot(
                "the server's configuration decides, and this system's file does not list the feature `persistent`; take a variant with persistence",
            ),
            Some(Durability::Disk) if known => becomes(
                "the server writes its store to disk; only QoS 1 and 2 messages of durable sessions, and retained ones, are in it",
            ),
            Some(Durability::Memory | Durability::Disk) => {
                becomes("as the server is configured (not known here)")
            }
            Some(Durability::DiskSynced) if target.has("persistent-synced") => {
                becomes("the server syncs its store before it acknowledges")
            }
            Some(Durability::DiskSynced) => cannot(
                "a client cannot ask for it, and this system's file does not list the feature `persistent-synced`",
            ),
        });
    }

    fn session(&mut self, s: &Settings, t: &mut Resolution) {
        self.durable = s.session == Some(Session::Durable);
        let v5 = self.version == Version::V5;
        if self.durable {
            self.session_expiry_s = s.session_expiry_s.unwrap_or(DEFAULT_SESSION_EXPIRY_S);
            self.session_at_least_s = s.session_expiry_s.unwrap_or(0);
        }
        t.row(
            "session",
            spelt(&s.session),
            match (self.durable, v5) {
                (true, true) => "Clean Start 0, with a Session Expiry Interval",
                (true, false) => "Clean Session 0",
                (false, true) => "Clean Start 1",
                (false, false) => "Clean Session 1",
            },
        );
        t.term("session", if v5 { "MQTT 5" } else { "MQTT 3.1.1" });
        t.decide("session-expiry-s", s.session_expiry_s, |expiry| {
            match (expiry, self.durable) {
                (Some(_), _) if !v5 => {
                    cannot("MQTT 3.1.1 sessions have no expiry; use native.mqtt.version = \"5\"")
                }
                (Some(_), false) => {
                    cannot("a clean session ends with its connection; set session = \"durable\"")
                }
                (None, false) => becomes("ends with the connection"),
                (None, true) if !v5 => becomes("never, or as the server is configured"),
                (Some(expiry), true) => becomes(format!("Session Expiry Interval {expiry} s")),
                (None, true) => becomes(format!(
                    "Session Expiry Interval {DEFAULT_SESSION_EXPIRY_S} s, or as long as the server grants"
                )),
            }
        });
    }

    fn message(&mut self, s: &Settings, t: &mut Resolution) {
        let v311 = self.version == Version::V311;
        let expiry = |ms: u64| u32::try_from(ms.div_ceil(1000)).ok();
        self.message_expiry_s = s.lifespan_ms.and_then(expiry);
        t.decide("lifespan-ms", s.lifespan_ms, |lifespan| {
            match (lifespan, self.message_expiry_s) {
                (None, _) => becomes("no Message Expiry Interval"),
                (Some(_), _) if v311 => {
                    cannot("MQTT 3.1.1 messages do not expire; use native.mqtt.version = \"5\"")
                }
                (Some(0), _) => {
                    cannot("a message must live for at least 1 ms; leave it out for ever")
                }
                (Some(_), None) => cannot("above 4294967295 s; leave it out for ever"),
                (Some(_), Some(expiry)) => becomes(format!(
                    "Message Expiry Interval {expiry} s (whole seconds, rounded up)"
                )),
            }
        });
        let name = "user-properties";
        let properties = s.user_properties.clone().unwrap_or_default();
        let odd = |text: &str| text.len() > 65_535 || text.contains('\0');
        if !properties.is_empty() && v311 {
            let reason = "MQTT 3.1.1 has none; use native.mqtt.version = \"5\"";
            t.refuse(name, format!("{} pairs", properties.len()), reason);
        } else if let Some((key, _)) = properties.iter().find(|(k, v)| odd(k) || odd(v)) {
            let reason =
                "a name or value is longer than 65535 bytes or has the character U+0000 in it";
            t.refuse(name, format!("{key:?}"), reason);
        } else {
            let native = match properties.len() {
                0 => "none".to_owned(),
                n => format!("{n} User Properties on every PUBLISH"),
            };
            t.row(name, spelt(&s.user_properties), native);
            self.user_properties = properties.into_iter().collect();
        }
    }

    fn flow(&mut self, s: &Settings, t: &mut Resolution) {
        let bound = match self.version {
            Version::V5 => ", or the server's Receive Maximum if that is less",
            Version::V311 => "",
        };
        t.decide("in-flight", s.in_flight, |asked| match asked {
            Some(n) if n == 0 || n > MAX_IN_FLIGHT => {
                cannot(format!("packet identifiers allow 1 to {MAX_IN_FLIGHT}"))
            }
            _ if self.qos == QoS::AtMostOnce => becomes("no effect: QoS 0 is not acknowledged"),
            _ => becomes(format!(
                "{} unacknowledged PUBLISH per publisher{bound}",
                self.in_flight
            )),
        });
        t.absent(
            "queue-limit",
            &s.queue_limit,
            "64 KiB of packets per publisher, then back-pressure",
            "the driver's queue is bounded in bytes, not messages; to bound messages under way use in-flight with QoS 1 or 2",
        );
        t.row(
            "on-full",
            spelt(&s.on_full),
            if self.tuning.drop_when_full {
                "refused as dropped while 64 KiB wait or the window is full"
            } else {
                "the publisher is held back by TCP and the window"
            },
        );
    }

    fn connection(&mut self, s: &Settings, t: &mut Resolution) {
        t.row(
            "keep-alive-s",
            spelt(&s.keep_alive_s),
            match self.keep_alive_s {
                0 => "Keep Alive 0 (off)".to_owned(),
                n => format!("Keep Alive {n} s, PINGREQ on idle connections"),
            },
        );
    }

    /// Refuses properties that no packet can have.
    fn properties(&self, t: &mut Resolution) {
        if let Some(number) = self.subscription_identifier
            && !(1..=268_435_455).contains(&number)
        {
            let reason = "a Subscription Identifier is a number from 1 to 268,435,455";
            t.refuse(
                "native.mqtt.subscription-identifier",
                number.to_string(),
                reason,
            );
        }
        if let Some(text) = &self.content_type
            && (text.len() > 65_535 || text.contains('\0'))
        {
            let reason = "a Content Type has at most 65535 bytes and no U+0000";
            t.refuse("native.mqtt.content-type", format!("{text:?}"), reason);
        }
        if let Some(topic) = &self.response_topic
            && let Err(error) = topic::check_name(topic)
        {
            let reason = format!("no topic to publish to: {error}");
            t.refuse("native.mqtt.response-topic", format!("{topic:?}"), reason);
        }
    }

    /// Refuses the native settings that 3.1.1 does not have.
    fn only_of_v5(&self, s: &Settings, t: &mut Resolution) {
        for name in [
            "topic-alias",
            "receive-maximum",
            "retain-handling",
            "no-local",
            "subscription-identifier",
            "content-type",
            "response-topic",
        ] {
            if self.version == Version::V311
                && let Some(value) = s.native(NAME, name)
            {
                t.refuse(
                    &format!("native.mqtt.{name}"),
                    value.to_string(),
                    "exists only in MQTT 5; use native.mqtt.version = \"5\"",
                );
            }
        }
    }
}

/// Refuses the settings that MQTT over TCP cannot honour.
fn absent(s: &Settings, t: &mut Resolution) {
    t.decide("pattern", s.pattern, |pattern| match pattern {
        None | Some(MessagingPattern::PublishSubscribe) => {
            becomes("PUBLISH to a topic, SUBSCRIBE to topic filters")
        }
        Some(MessagingPattern::PointToPoint) => cannot(
            "MQTT has topics and no addressees: whoever may subscribe to a device's topic gets its messages too; give each device a topic of its own and use publish-subscribe",
        ),
        Some(MessagingPattern::RequestReply) => cannot(
            "an MQTT server matches no answers to questions (MQTT 5's Response Topic is a note between clients); use a ping-pong workload, which asks and answers on two topics",
        ),
    });
    t.absent(
        "priority",
        &s.priority,
        "none: messages go out in their order",
        "MQTT messages have no priority; leave it out",
    );
    t.absent(
        "rate-limit-bytes-per-s",
        &s.rate_limit_bytes_per_s,
        "none",
        "an MQTT client cannot tell the server to limit its rate; shape the link in the testbed or lower the workload's rate",
    );
    t.absent(
        "conflate",
        &s.conflate,
        "off",
        "MQTT servers queue every message; last-value keeps the newest for late subscribers only",
    );
}

/// MQTT 5, unless the system is known to have 3.1.1 only.
fn default_version(target: &Target) -> Version {
    if target.has("mqtt-3.1.1") && !target.has("mqtt-5") {
        Version::V311
    } else {
        Version::V5
    }
}

fn check_version(version: Version, target: &Target, t: &mut Resolution) {
    let (feature, value) = match version {
        Version::V311 => ("mqtt-3.1.1", "3.1.1"),
        Version::V5 => ("mqtt-5", "5"),
    };
    let names_versions = target.features.iter().any(|f| f.starts_with("mqtt-"));
    if names_versions && !target.has(feature) {
        t.refuse(
            "native.mqtt.version",
            value,
            format!("this system's file does not list the feature `{feature}`"),
        );
    }
}

/// Shared subscriptions are in MQTT 5 only (section 4.8.2): a server without them takes the filter
/// for a topic's name, and nothing ever arrives.
pub(crate) fn check_group(
    settings: &Settings,
    target: &Target,
    subscription: &Subscription,
) -> Result<(), DriverError> {
    let version = match MqttOptions::resolve(settings, target) {
        Ok((options, _)) => options.version,
        // `resolve` refuses these settings.
        Err(_) => return Ok(()),
    };
    let known = target.features.iter().any(|f| f.starts_with("mqtt-"));
    let without = version == Version::V311 && known && !target.has("mqtt-5");
    if subscription.group.is_none() || !without || target.has("shared-subscriptions") {
        return Ok(());
    }
    Err(DriverError::with_hint(
        "this server speaks MQTT 3.1.1 only, which has no shared subscriptions",
        "if it has them nevertheless, add the feature `shared-subscriptions` to the system's file",
    ))
}
