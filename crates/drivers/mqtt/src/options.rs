//! What the neutral settings become in MQTT, and which of them it cannot honour.

use pubgauge_driver::{
    DriverError, Durability, Mapping, MessagingPattern, Reliability, Resolution, Session, Settings,
    Subscription, Target, Unsupported, spelt,
};
use pubgauge_mqtt_codec::{QoS, RetainHandling, Version};
use pubgauge_net::fleet::{Terms, Tuning};

use crate::native::{NAME, NATIVE, Native};

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
    tcp: "TCP; with TLS where the endpoint is mqtts://",
    not_tcp: "this driver speaks MQTT over TCP (mqtt://) and TLS (mqtts://) only",
};

/// The settings as the fleet uses them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Options {
    pub version: Version,
    pub qos: QoS,
    pub subscribe_qos: QoS,
    pub durable: bool,
    /// Session Expiry Interval of MQTT 5; 0 is the protocol's default and not sent.
    pub session_expiry_s: u32,
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
}

impl Options {
    /// Resolves the settings for a system like `target`.
    pub fn resolve(
        settings: &Settings,
        target: &Target,
    ) -> Result<(Options, Vec<Mapping>), Vec<Unsupported>> {
        let mut table = Resolution::default();
        let native = NATIVE.read(settings, &mut table);
        let version = native
            .version
            .map_or_else(|| default_version(target), Version::from);
        let mut options = Options {
            version,
            qos: QoS::AtMostOnce,
            subscribe_qos: QoS::AtMostOnce,
            durable: false,
            session_expiry_s: 0,
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
        };
        check_version(version, target, &mut table);
        options.delivery(settings, target, &native, &mut table);
        options.session(settings, &mut table);
        options.message(settings, &mut table);
        options.flow(settings, &mut table);
        absent(settings, &mut table);
        options.connection(settings, &mut table);
        options.only_of_v5(settings, &mut table);
        table.finish(options)
    }

    fn delivery(&mut self, s: &Settings, target: &Target, native: &Native, t: &mut Resolution) {
        self.qos = match s.reliability {
            None | Some(Reliability::AtMostOnce | Reliability::BestEffort) => QoS::AtMostOnce,
            Some(Reliability::AtLeastOnce) => QoS::AtLeastOnce,
            Some(Reliability::ExactlyOnce | Reliability::Reliable) => QoS::ExactlyOnce,
        };
        let subscribe_qos = native.subscribe_qos.and_then(QoS::from_bits);
        self.subscribe_qos = subscribe_qos.unwrap_or(self.qos);
        let lacks = |feature: &str| target.features.iter().any(|f| f == feature);
        if lacks("no-qos-2") {
            let reason = "this server has no QoS 2 (its file lists the feature `no-qos-2`); use at-least-once";
            if self.qos == QoS::ExactlyOnce {
                t.refuse(
                    "reliability",
                    spelt(&s.reliability).unwrap_or_default(),
                    reason,
                );
            }
            if subscribe_qos == Some(QoS::ExactlyOnce) {
                t.refuse("native.mqtt.subscribe-qos", "2", reason);
            }
        }
        if self.retain && lacks("no-retained") {
            t.refuse(
                "last-value",
                "true",
                "this server keeps no retained messages (its file lists the feature `no-retained`)",
            );
        }
        t.row(
            "reliability",
            spelt(&s.reliability),
            format!(
                "QoS {} published, QoS {} subscribed",
                self.qos as u8, self.subscribe_qos as u8
            ),
        );
        let known = !target.features.is_empty();
        let has = |feature: &str| target.features.iter().any(|f| f == feature);
        let value = spelt(&s.durability);
        match s.durability {
            None => t.row("durability", value, "as the server is configured"),
            Some(Durability::Memory) if has("persistent") => t.refuse(
                "durability",
                "memory",
                "this system's configuration writes sessions and messages to disk; take its variant without persistence",
            ),
            Some(Durability::Memory) => t.row(
                "durability",
                value,
                if known { "the server keeps messages in memory" } else { "as the server is configured (not known here)" },
            ),
            Some(Durability::Disk) if known && !has("persistent") => t.refuse(
                "durability",
                "disk",
                "the server's configuration decides, and this system's file does not list the feature `persistent`; take a variant with persistence",
            ),
            Some(Durability::Disk) => t.row(
                "durability",
                value,
                if known {
                    "the server writes its store to disk; only QoS 1 and 2 messages of durable sessions, and retained ones, are in it"
                } else {
                    "as the server is configured (not known here)"
                },
            ),
            Some(Durability::DiskSynced) if has("persistent-synced") => {
                t.row("durability", value, "the server syncs its store before it acknowledges");
            }
            Some(Durability::DiskSynced) => t.refuse(
                "durability",
                "disk-synced",
                "a client cannot ask for it, and this system's file does not list the feature `persistent-synced`",
            ),
        }
    }

    fn session(&mut self, s: &Settings, t: &mut Resolution) {
        self.durable = s.session == Some(Session::Durable);
        let v5 = self.version == Version::V5;
        if self.durable {
            self.session_expiry_s = s.session_expiry_s.unwrap_or(DEFAULT_SESSION_EXPIRY_S);
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
        let value = spelt(&s.session_expiry_s);
        match s.session_expiry_s {
            Some(expiry) if !v5 => t.refuse(
                "session-expiry-s",
                expiry.to_string(),
                "MQTT 3.1.1 sessions have no expiry; use native.mqtt.version = \"5\"",
            ),
            Some(expiry) if !self.durable => t.refuse(
                "session-expiry-s",
                expiry.to_string(),
                "a clean session ends with its connection; set session = \"durable\"",
            ),
            Some(expiry) => t.row(
                "session-expiry-s",
                value,
                format!("Session Expiry Interval {expiry} s"),
            ),
            None if self.durable && v5 => t.row(
                "session-expiry-s",
                value,
                format!("Session Expiry Interval {DEFAULT_SESSION_EXPIRY_S} s"),
            ),
            None if self.durable => t.row(
                "session-expiry-s",
                value,
                "never, or as the server is configured",
            ),
            None => t.row("session-expiry-s", value, "ends with the connection"),
        }
    }

    fn message(&mut self, s: &Settings, t: &mut Resolution) {
        t.row(
            "last-value",
            spelt(&s.last_value),
            if self.retain {
                "RETAIN 1 on every PUBLISH"
            } else {
                "RETAIN 0"
            },
        );
        let value = spelt(&s.lifespan_ms);
        match s.lifespan_ms {
            None => t.row("lifespan-ms", value, "no Message Expiry Interval"),
            Some(ms) if self.version == Version::V311 => t.refuse(
                "lifespan-ms",
                ms.to_string(),
                "MQTT 3.1.1 messages do not expire; use native.mqtt.version = \"5\"",
            ),
            Some(0) => t.refuse(
                "lifespan-ms",
                "0",
                "a message must live for at least 1 ms; leave it out for ever",
            ),
            Some(ms) => match u32::try_from(ms.div_ceil(1000)) {
                Ok(expiry) => {
                    self.message_expiry_s = Some(expiry);
                    t.row(
                        "lifespan-ms",
                        value,
                        format!("Message Expiry Interval {expiry} s (whole seconds, rounded up)"),
                    );
                }
                Err(_) => t.refuse(
                    "lifespan-ms",
                    ms.to_string(),
                    "above 4294967295 s; leave it out for ever",
                ),
            },
        }
        let properties = s.user_properties.as_ref().filter(|p| !p.is_empty());
        match properties {
            None => t.row("user-properties", spelt(&s.user_properties), "none"),
            Some(p) if self.version == Version::V311 => t.refuse(
                "user-properties",
                format!("{} pairs", p.len()),
                "MQTT 3.1.1 has none; use native.mqtt.version = \"5\"",
            ),
            Some(p) => match p.iter().find(|(k, v)| {
                k.len().max(v.len()) > 65_535 || k.contains('\0') || v.contains('\0')
            }) {
                Some((key, _)) => t.refuse(
                    "user-properties",
                    format!("{key:?}"),
                    "a name or value is longer than 65535 bytes or has the character U+0000 in it",
                ),
                None => {
                    self.user_properties = p.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
                    t.row(
                        "user-properties",
                        spelt(&s.user_properties),
                        format!("{} User Properties on every PUBLISH", p.len()),
                    );
                }
            },
        }
    }

    fn flow(&mut self, s: &Settings, t: &mut Resolution) {
        let value = spelt(&s.in_flight);
        let bound = match self.version {
            Version::V5 => ", or the server's Receive Maximum if that is less",
            Version::V311 => "",
        };
        match s.in_flight {
            Some(n) if n == 0 || n > MAX_IN_FLIGHT => t.refuse(
                "in-flight",
                n.to_string(),
                format!("packet identifiers allow 1 to {MAX_IN_FLIGHT}"),
            ),
            _ if self.qos == QoS::AtMostOnce => {
                t.row("in-flight", value, "no effect: QoS 0 is not acknowledged");
            }
            _ => t.row(
                "in-flight",
                value,
                format!(
                    "{} unacknowledged PUBLISH per publisher{bound}",
                    self.in_flight
                ),
            ),
        }
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

    /// Refuses the native settings that 3.1.1 does not have.
    fn only_of_v5(&self, s: &Settings, t: &mut Resolution) {
        for name in [
            "topic-alias",
            "receive-maximum",
            "retain-handling",
            "no-local",
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
    match s.pattern {
        None | Some(MessagingPattern::PublishSubscribe) => t.row(
            "pattern",
            spelt(&s.pattern),
            "PUBLISH to a topic, SUBSCRIBE to topic filters",
        ),
        Some(MessagingPattern::PointToPoint) => t.refuse(
            "pattern",
            "point-to-point",
            "MQTT has topics and no addressees: whoever may subscribe to a device's topic gets its messages too; give each device a topic of its own and use publish-subscribe",
        ),
        Some(MessagingPattern::RequestReply) => t.refuse(
            "pattern",
            "request-reply",
            "an MQTT server matches no answers to questions (MQTT 5's Response Topic is a note between clients); use a ping-pong workload, which asks and answers on two topics",
        ),
    }
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
    let has = |feature: &str| target.features.iter().any(|f| f == feature);
    if has("mqtt-3.1.1") && !has("mqtt-5") {
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
    if names_versions && !target.features.iter().any(|f| f == feature) {
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
    let has = |feature: &str| target.features.iter().any(|f| f == feature);
    let version = match Options::resolve(settings, target) {
        Ok((options, _)) => options.version,
        // `resolve` refuses these settings.
        Err(_) => return Ok(()),
    };
    let known = target.features.iter().any(|f| f.starts_with("mqtt-"));
    let without = version == Version::V311 && known && !has("mqtt-5");
    if subscription.group.is_none() || !without || has("shared-subscriptions") {
        return Ok(());
    }
    Err(DriverError::with_hint(
        "this server speaks MQTT 3.1.1 only, which has no shared subscriptions",
        "if it has them nevertheless, add the feature `shared-subscriptions` to the system's file",
    ))
}
