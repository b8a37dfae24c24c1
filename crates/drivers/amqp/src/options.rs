//! What the neutral settings become in AMQP 0-9-1, and which of them it cannot honour.

use pubgauge_amqp_codec::{FRAME_MIN, Properties, TableBuf, Value};
use pubgauge_driver::{Durability, Mapping, Pattern, Reliability, Session, Settings, Unsupported};

use crate::native::Native;

/// The driver's name in study files.
pub(crate) const NAME: &str = "amqp";

/// Bytes gathered before they are written, unless the settings say otherwise. Beyond 16 KiB a
/// larger write saves next to nothing.
pub(crate) const DEFAULT_BATCH: usize = 16 << 10;

/// Longest frame that is taken, RabbitMQ's default: half of the fleet's read buffer, so that a
/// frame that was cut off always has room in it.
pub(crate) const FRAME_MAX: u32 = 128 << 10;

pub(crate) const DEFAULT_IN_FLIGHT: u32 = 1000;
const DEFAULT_PREFETCH: u16 = 1000;
const DEFAULT_SESSION_EXPIRY_S: u32 = 3600;

/// Priorities -10 to 10 become 0 to 20: a queue with fewer could not tell all of them apart.
pub(crate) const DEFAULT_MAX_PRIORITY: u8 = 20;

/// RabbitMQ's timers end at 2^32 - 1 ms.
const MAX_TIMER_MS: u64 = u32::MAX as u64;

/// How long a queue that should vanish with its consumer stays if it never had one, or outlived
/// the server.
const ORPHAN_MS: i64 = 60_000;

/// What messages are published to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exchange {
    Topic,
    Direct,
    Fanout,
    /// The default exchange: straight into the queue of the topic's name.
    Queue,
}

/// What the server says about published messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    Nothing,
    Confirms,
    /// tx.commit-ok for up to so many messages.
    Commits(u16),
}

/// How a client logs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sasl {
    Plain,
    External,
}

/// The settings as the fleet uses them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Options {
    pub exchange: Exchange,
    /// An exchange of this name, declared if need be, in place of the server's own.
    pub own_exchange: Option<String>,
    pub answers: Answers,
    pub mandatory: bool,
    /// Whether deliveries are acknowledged.
    pub acknowledge: bool,
    /// Deliveries without acknowledgement at once; 0 for no limit.
    pub prefetch: u16,
    pub durable_session: bool,
    /// delivery-mode 2 and durable queues.
    pub persistent: bool,
    /// Arguments of queues that end with their consumers, and of those that stay.
    pub passing: TableBuf,
    pub staying: TableBuf,
    pub headers: TableBuf,
    /// Milliseconds, in digits.
    pub expiration: Option<String>,
    pub priority: Option<u8>,
    pub in_flight: usize,
    pub drop_when_full: bool,
    /// Bytes gathered before they are written; 0 means a write for every message.
    pub batch: usize,
    /// Seconds; the server's choice if absent.
    pub heartbeat_s: Option<u16>,
    pub frame_max: u32,
    pub sasl: Option<Sasl>,
    pub virtual_host: Option<String>,
    pub no_delay: bool,
    pub send_buffer: Option<usize>,
    pub receive_buffer: Option<usize>,
}

/// Collects what each setting became.
pub(crate) struct Table {
    rows: Vec<Mapping>,
    refused: Vec<Unsupported>,
}

impl Table {
    pub fn row(&mut self, setting: &str, value: Option<String>, native: impl Into<String>) {
        self.rows.push(Mapping {
            setting: setting.to_owned(),
            value: value.unwrap_or_else(|| "default".to_owned()),
            native: native.into(),
        });
    }

    pub fn refuse(&mut self, setting: &str, value: impl Into<String>, reason: impl Into<String>) {
        self.refused.push(Unsupported {
            setting: setting.to_owned(),
            value: value.into(),
            reason: reason.into(),
        });
    }
}

/// A setting's value as a study file spells it.
pub(crate) fn spelt<T: serde::Serialize>(value: &Option<T>) -> Option<String> {
    let value = serde_json::to_value(value.as_ref()?).ok()?;
    Some(match value {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    })
}

impl Options {
    /// Resolves the settings. AMQP 0-9-1 servers are taken to have RabbitMQ's extensions.
    pub fn resolve(settings: &Settings) -> Result<(Options, Vec<Mapping>), Vec<Unsupported>> {
        let mut table = Table {
            rows: Vec::new(),
            refused: Vec::new(),
        };
        let t = &mut table;
        let native = Native::parse(settings, t);
        let mut options = Options::plain();
        options.connection(settings, &native, t);
        options.pattern(settings, &native, t);
        options.delivery(settings, &native, t);
        options.durability(settings, t);
        options.session(settings, &native, t);
        options.message(settings, &native, t);
        options.queues(settings, &native, t);
        options.flow(settings, t);
        crate::limits::absent(settings, t);
        options.natives(settings, t);
        if !table.refused.is_empty() {
            return Err(table.refused);
        }
        let order = |m: &Mapping| Settings::NAMES.iter().position(|n| *n == m.setting);
        table.rows.sort_by_key(|m| order(m).unwrap_or(usize::MAX));
        Ok((options, table.rows))
    }

    /// Where resolving begins: nothing asked for.
    pub fn plain() -> Options {
        Options {
            exchange: Exchange::Topic,
            own_exchange: None,
            answers: Answers::Nothing,
            mandatory: false,
            acknowledge: false,
            prefetch: 0,
            durable_session: false,
            persistent: false,
            passing: TableBuf::default(),
            staying: TableBuf::default(),
            headers: TableBuf::default(),
            expiration: None,
            priority: None,
            in_flight: DEFAULT_IN_FLIGHT as usize,
            drop_when_full: false,
            batch: DEFAULT_BATCH,
            heartbeat_s: None,
            frame_max: FRAME_MAX,
            sasl: None,
            virtual_host: None,
            no_delay: true,
            send_buffer: None,
            receive_buffer: None,
        }
    }

    /// The exchange's name in `basic.publish` and `queue.bind`.
    pub fn exchange_name(&self) -> &str {
        match (&self.own_exchange, self.exchange) {
            (_, Exchange::Queue) => "",
            (Some(name), _) => name,
            (None, Exchange::Topic) => "amq.topic",
            (None, Exchange::Direct) => "amq.direct",
            (None, Exchange::Fanout) => "amq.fanout",
        }
    }

    /// The exchange's type.
    pub fn exchange_kind(&self) -> &'static str {
        match self.exchange {
            Exchange::Topic => "topic",
            Exchange::Direct | Exchange::Queue => "direct",
            Exchange::Fanout => "fanout",
        }
    }

    /// What every message carries.
    pub fn properties(&self) -> Properties<'_> {
        Properties {
            headers: (!self.headers.is_empty()).then(|| self.headers.as_table()),
            delivery_mode: Some(if self.persistent { 2 } else { 1 }),
            priority: self.priority,
            expiration: self.expiration.as_deref().map(str::as_bytes),
            ..Properties::default()
        }
    }

    fn pattern(&mut self, s: &Settings, native: &Native, t: &mut Table) {
        let value = spelt(&s.pattern);
        self.exchange = match (s.pattern, native.exchange) {
            (Some(Pattern::RequestReply), _) => {
                return t.refuse(
                    "pattern",
                    "request-reply",
                    "reply-to and correlation-id are notes between clients, the server matches no answers to questions; use a ping-pong workload, which asks and answers on two topics",
                );
            }
            (Some(Pattern::PointToPoint), None | Some(Exchange::Queue)) => Exchange::Queue,
            (Some(Pattern::PointToPoint), Some(_)) => {
                return t.refuse(
                    "native.amqp.exchange",
                    self.exchange_kind(),
                    "point-to-point messages go through the default exchange; leave this out",
                );
            }
            (Some(Pattern::PublishSubscribe), Some(Exchange::Queue)) => {
                return t.refuse(
                    "native.amqp.exchange",
                    "default",
                    "the default exchange leads into one queue each; set pattern = \"point-to-point\"",
                );
            }
            (_, exchange) => exchange.unwrap_or(Exchange::Topic),
        };
        self.own_exchange = native.exchange_name.clone();
        if self.own_exchange.is_some() && self.exchange == Exchange::Queue {
            t.refuse(
                "native.amqp.exchange-name",
                "given",
                "the default exchange has no name; leave this out",
            );
        }
        let native = match self.exchange {
            Exchange::Queue => {
                "default exchange: straight into the queue named as the topic, which its consumers share".to_owned()
            }
            Exchange::Topic => format!(
                "topic exchange {}; a/b/c has the routing key a.b.c, + is *, # is #, and . * # % within a level are %2E %2A %23 %25",
                self.exchange_name()
            ),
            Exchange::Direct => format!("direct exchange {}: exact topics", self.exchange_name()),
            Exchange::Fanout => {
                format!("fanout exchange {}: every queue gets every message", self.exchange_name())
            }
        };
        t.row("pattern", value, native);
    }

    fn delivery(&mut self, s: &Settings, native: &Native, t: &mut Table) {
        let reliable = !s.may_lose();
        let value = spelt(&s.reliability);
        if s.reliability == Some(Reliability::ExactlyOnce) {
            t.refuse(
                "reliability",
                "exactly-once",
                "AMQP 0-9-1 has no such delivery: a message whose acknowledgement is lost is sent again (its transactions cover one channel to the server, not the way to the subscriber); use at-least-once",
            );
        }
        self.acknowledge = native.acknowledge.unwrap_or(reliable);
        self.prefetch = native.prefetch.unwrap_or(DEFAULT_PREFETCH);
        self.answers = match (reliable, native.transactions) {
            (false, None) => Answers::Nothing,
            (true, None) => Answers::Confirms,
            (true, Some(n)) => Answers::Commits(n),
            (false, Some(n)) => {
                t.refuse(
                    "native.amqp.transactions",
                    n.to_string(),
                    "a commit answers for messages, which reliability at most once does not ask for; set reliability = \"at-least-once\"",
                );
                Answers::Nothing
            }
        };
        self.mandatory = native.mandatory.unwrap_or(false);
        if self.mandatory && !reliable {
            t.refuse(
                "native.amqp.mandatory",
                "true",
                "a returned message is reported with its acknowledgement; set reliability = \"at-least-once\"",
            );
        }
        if native.prefetch.is_some() && !self.acknowledge {
            t.refuse(
                "native.amqp.prefetch",
                self.prefetch.to_string(),
                "the server ignores it where deliveries are not acknowledged; set native.amqp.acknowledge = \"manual\" or reliability = \"at-least-once\"",
            );
        }
        let published = match self.answers {
            Answers::Nothing => "no confirms".to_owned(),
            Answers::Confirms => "publisher confirms".to_owned(),
            Answers::Commits(n) => format!("tx.commit for up to {n} messages"),
        };
        let consumed = match (self.acknowledge, self.prefetch) {
            (false, _) => "automatic acknowledgement (no-ack)".to_owned(),
            (true, 0) => "manual acknowledgement, no prefetch limit".to_owned(),
            (true, n) => format!("manual acknowledgement, prefetch {n}"),
        };
        t.row("reliability", value, format!("{published}, {consumed}"));
    }

    fn durability(&mut self, s: &Settings, t: &mut Table) {
        let value = spelt(&s.durability);
        self.persistent = matches!(
            s.durability,
            Some(Durability::Disk | Durability::DiskSynced)
        );
        match s.durability {
            None | Some(Durability::Memory) => {
                t.row("durability", value, "delivery-mode 1, transient queues");
            }
            Some(Durability::Disk) => {
                t.row("durability", value, "delivery-mode 2, durable queues");
            }
            Some(Durability::DiskSynced) if s.may_lose() => t.refuse(
                "durability",
                "disk-synced",
                "without publisher confirms nothing tells when a message is on disk; set reliability = \"at-least-once\"",
            ),
            Some(Durability::DiskSynced) => t.row(
                "durability",
                value,
                "delivery-mode 2, durable queues; the confirm comes after fsync, or after all consumers acknowledged",
            ),
        }
    }

    fn session(&mut self, s: &Settings, native: &Native, t: &mut Table) {
        self.durable_session = s.session == Some(Session::Durable);
        let value = spelt(&s.session);
        let quorum = native.quorum == Some(true);
        if quorum && !(self.durable_session && self.persistent) {
            t.refuse(
                "native.amqp.queue-type",
                "quorum",
                "quorum queues are durable and outlive their consumers; set session = \"durable\" and durability = \"disk-synced\"",
            );
        }
        if self.durable_session && s.reliability == Some(Reliability::Reliable) {
            t.refuse(
                "session",
                "durable",
                "a subscriber that comes back may get a message again that it did not acknowledge, so not once; use reliability = \"at-least-once\"",
            );
        }
        let native = match (self.durable_session, self.persistent) {
            (true, false) => "a queue named after the client that stays when it goes; not durable",
            (true, true) => "a durable queue named after the client that stays when it goes",
            (false, false) => "an exclusive queue, deleted with the connection",
            (false, true) => "a durable auto-delete queue, deleted with its consumer",
        };
        t.row("session", value, native);
        let value = spelt(&s.session_expiry_s);
        let expiry_s = s.session_expiry_s.unwrap_or(DEFAULT_SESSION_EXPIRY_S);
        let expiry_ms = u64::from(expiry_s) * 1000;
        match s.session_expiry_s {
            Some(_) if !self.durable_session => t.refuse(
                "session-expiry-s",
                expiry_s.to_string(),
                "a clean session ends with its connection; set session = \"durable\"",
            ),
            _ if !self.durable_session => {
                t.row("session-expiry-s", value, "ends with the connection");
            }
            _ if expiry_ms == 0 || expiry_ms > MAX_TIMER_MS => t.refuse(
                "session-expiry-s",
                expiry_s.to_string(),
                "x-expires allows 1 to 4294967 s; for a session that ends at once use session = \"clean\"",
            ),
            _ => t.row("session-expiry-s", value, format!("x-expires {expiry_ms} ms")),
        }
        // Arguments that queues have in common are added later.
        let expires = |table: &mut TableBuf, ms| {
            // A name and a number always fit.
            let _ = table.push("x-expires", Value::Int(ms));
        };
        expires(&mut self.staying, expiry_ms.min(MAX_TIMER_MS) as i64);
        if self.persistent {
            expires(&mut self.passing, ORPHAN_MS);
        }
        if quorum {
            let _ = self.staying.push("x-queue-type", Value::Long(b"quorum"));
        }
    }

    fn message(&mut self, s: &Settings, native: &Native, t: &mut Table) {
        let value = spelt(&s.lifespan_ms);
        match s.lifespan_ms {
            None => t.row("lifespan-ms", value, "no expiration"),
            Some(ms) if ms == 0 || ms > MAX_TIMER_MS => t.refuse(
                "lifespan-ms",
                ms.to_string(),
                "the expiration property allows 1 to 4294967295 ms; leave it out for ever",
            ),
            Some(ms) => {
                self.expiration = Some(ms.to_string());
                t.row(
                    "lifespan-ms",
                    value,
                    format!("expiration {ms} ms, counted while the message waits in its queue"),
                );
            }
        }
        let max = native.max_priority.unwrap_or(DEFAULT_MAX_PRIORITY);
        let value = spelt(&s.priority);
        match s.priority {
            None => t.row("priority", value, "none: messages go out in their order"),
            Some(n) if !(-10..=10).contains(&n) => {
                t.refuse("priority", n.to_string(), "priorities are -10 to 10");
            }
            Some(n) if native.quorum == Some(true) => t.refuse(
                "priority",
                n.to_string(),
                "quorum queues of this server have no priorities; use native.amqp.queue-type = \"classic\"",
            ),
            Some(n) => {
                let level = ((n + 10) as u32 * u32::from(max) + 10) / 20;
                self.priority = Some(level as u8);
                t.row(
                    "priority",
                    value,
                    format!(
                        "priority {level} of 0 to {max} (-10 to 10 spread over them), queues with x-max-priority {max}; it orders what waits in a queue, not what is prefetched"
                    ),
                );
            }
        }
        if native.max_priority.is_some() && s.priority.is_none() {
            t.refuse(
                "native.amqp.max-priority",
                max.to_string(),
                "only with priority",
            );
        }
        let properties = s.user_properties.as_ref().filter(|p| !p.is_empty());
        let value = spelt(&s.user_properties);
        let Some(properties) = properties else {
            return t.row("user-properties", value, "none");
        };
        for (name, text) in properties {
            if self
                .headers
                .push(name, Value::Long(text.as_bytes()))
                .is_err()
            {
                return t.refuse(
                    "user-properties",
                    format!("{name:?}"),
                    "the name of a header has at most 255 bytes",
                );
            }
        }
        // Header frames cannot be split (§2.3.5.2); 1 KiB is room for the other properties.
        if self.headers.as_table().as_bytes().len() > FRAME_MIN - 1024 {
            return t.refuse(
                "user-properties",
                format!("{} pairs", properties.len()),
                "together above 3 KiB, which no frame is sure to hold",
            );
        }
        t.row(
            "user-properties",
            value,
            format!("{} headers on every message", properties.len()),
        );
    }
}
