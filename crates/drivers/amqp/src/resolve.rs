//! Translates the neutral settings to AMQP 0-9-1, and names those that it cannot honour.

use crate::codec::{FRAME_MIN, TableBuf, Value};
use pubgauge_driver::{
    Durability, MessagingPattern, OnFull, Reliability, Resolution, Resolved, Session, Settings,
    becomes, cannot, spelt,
};
use pubgauge_net::fleet::{Terms, Tuning};

use crate::native::{Acknowledge, AmqpNative, NATIVE, Overflow, QueueType};
use crate::options::{AmqpOptions, Answers, Exchange, FRAME_MAX};

const DEFAULT_IN_FLIGHT: u32 = 1000;
const DEFAULT_PREFETCH: u16 = 1000;
const DEFAULT_SESSION_EXPIRY_S: u32 = 3600;
/// Priorities -10 to 10 become 0 to 20: a queue with fewer could not tell all of them apart.
const DEFAULT_MAX_PRIORITY: u8 = 20;

/// The longest time that RabbitMQ takes, 2^32 - 1 ms.
const MAX_TIMER_MS: u64 = u32::MAX as u64;

/// How long a queue that is to be deleted with its consumer stays if it never had a consumer, or
/// outlived a restart of the server, in ms.
const ORPHAN_MS: i64 = 60_000;

/// Most unconfirmed messages of one publisher.
const MAX_IN_FLIGHT: u32 = 1_000_000;

const TERMS: Terms = Terms {
    protocol: "AMQP",
    units: "frames",
    unit: "message",
    tcp: "TCP; with TLS where the endpoint is amqps://",
    not_tcp: "this driver speaks AMQP over TCP (amqp://) and TLS (amqps://) only",
};

impl AmqpOptions {
    /// Resolves the settings. AMQP 0-9-1 servers are taken to have RabbitMQ's extensions.
    pub fn resolve(settings: &Settings) -> Resolved<AmqpOptions> {
        let mut table = Resolution::default();
        let t = &mut table;
        let native = NATIVE.read(settings, t);
        let mut options = AmqpOptions::default();
        options.connection(settings, &native, t);
        options.pattern(settings, &native, t);
        options.delivery(settings, &native, t);
        options.durability(settings, t);
        options.session(settings, &native, t);
        options.message(settings, &native, t);
        options.queues(settings, &native, t);
        options.flow(settings, t);
        absent(settings, t);
        table.finish(options)
    }

    fn pattern(&mut self, s: &Settings, native: &AmqpNative, t: &mut Resolution) {
        let value = spelt(&s.pattern);
        self.exchange = match (s.pattern, native.exchange) {
            (Some(MessagingPattern::RequestReply), _) => {
                return t.refuse(
                    "pattern",
                    "request-reply",
                    "reply-to and correlation-id are notes between clients, the server matches no answers to questions; use a ping-pong workload, which asks and answers on two topics",
                );
            }
            (Some(MessagingPattern::PointToPoint), None | Some(Exchange::Queue)) => Exchange::Queue,
            (Some(MessagingPattern::PointToPoint), Some(_)) => {
                return t.refuse(
                    "native.amqp.exchange",
                    self.exchange_kind(),
                    "point-to-point messages go through the default exchange; leave this out",
                );
            }
            (Some(MessagingPattern::PublishSubscribe), Some(Exchange::Queue)) => {
                return t.refuse(
                    "native.amqp.exchange",
                    "default",
                    "the default exchange leads into one queue each; set pattern = \"point-to-point\"",
                );
            }
            (_, exchange) => exchange.unwrap_or(Exchange::Topic),
        };
        self.own_exchange = native.exchange_name.clone().map(|name| name.0);
        if let Some(name) = &self.own_exchange
            && (name.is_empty() || name.starts_with("amq."))
        {
            t.refuse(
                "native.amqp.exchange-name",
                name,
                "expected a name of 1 to 255 bytes that does not begin with amq.",
            );
        }
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

    fn delivery(&mut self, s: &Settings, native: &AmqpNative, t: &mut Resolution) {
        let reliable = !s.may_lose();
        let value = spelt(&s.reliability);
        if s.reliability == Some(Reliability::ExactlyOnce) {
            t.refuse(
                "reliability",
                "exactly-once",
                "AMQP 0-9-1 has no such delivery: a message whose acknowledgement is lost is sent again (its transactions cover one channel to the server, not the way to the subscriber); use at-least-once",
            );
        }
        self.acknowledge = native
            .acknowledge
            .map_or(reliable, |how| how == Acknowledge::Manual);
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

    fn durability(&mut self, s: &Settings, t: &mut Resolution) {
        self.persistent = matches!(
            s.durability,
            Some(Durability::Disk | Durability::DiskSynced)
        );
        t.decide("durability", s.durability, |durability| match durability {
            None | Some(Durability::Memory) => becomes("delivery-mode 1, transient queues"),
            Some(Durability::Disk) => becomes("delivery-mode 2, durable queues"),
            Some(Durability::DiskSynced) if s.may_lose() => cannot(
                "without publisher confirms nothing tells when a message is on disk; set reliability = \"at-least-once\"",
            ),
            Some(Durability::DiskSynced) => becomes(
                "delivery-mode 2, durable queues; the confirm comes after fsync, or after all consumers acknowledged",
            ),
        });
    }

    fn session(&mut self, s: &Settings, native: &AmqpNative, t: &mut Resolution) {
        self.durable_session = s.session == Some(Session::Durable);
        let quorum = native.queue_type == Some(QueueType::Quorum);
        if quorum && !(self.durable_session && self.persistent) {
            t.refuse(
                "native.amqp.queue-type",
                "quorum",
                "quorum queues are durable and outlive their consumers; set session = \"durable\" and durability = \"disk-synced\"",
            );
        }
        let once = s.reliability == Some(Reliability::Reliable);
        let kind = (self.durable_session, self.persistent);
        t.decide("session", s.session, |_| match kind {
            (true, _) if once => cannot(
                "a subscriber that comes back may get a message again that it did not acknowledge, so not once; use reliability = \"at-least-once\"",
            ),
            (true, false) => {
                becomes("a queue named after the client that stays when it goes; not durable")
            }
            (true, true) => {
                becomes("a durable queue named after the client that stays when it goes")
            }
            (false, false) => becomes("an exclusive queue, deleted with the connection"),
            (false, true) => becomes("a durable auto-delete queue, deleted with its consumer"),
        });
        let expiry_s = s.session_expiry_s.unwrap_or(DEFAULT_SESSION_EXPIRY_S);
        let expiry_ms = u64::from(expiry_s) * 1000;
        t.decide("session-expiry-s", s.session_expiry_s, |asked| match asked {
            Some(_) if !self.durable_session => {
                cannot("a clean session ends with its connection; set session = \"durable\"")
            }
            None if !self.durable_session => becomes("ends with the connection"),
            _ if expiry_ms == 0 || expiry_ms > MAX_TIMER_MS => cannot(
                "x-expires allows 1 to 4294967 s; for a session that ends at once use session = \"clean\"",
            ),
            _ => becomes(format!("x-expires {expiry_ms} ms")),
        });
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

    fn message(&mut self, s: &Settings, native: &AmqpNative, t: &mut Resolution) {
        self.expiration = s.lifespan_ms.map(|ms| ms.to_string());
        t.decide("lifespan-ms", s.lifespan_ms, |lifespan| match lifespan {
            None => becomes("no expiration"),
            Some(ms) if ms == 0 || ms > MAX_TIMER_MS => {
                cannot("the expiration property allows 1 to 4294967295 ms; leave it out for ever")
            }
            Some(ms) => becomes(format!(
                "expiration {ms} ms, counted while the message waits in its queue"
            )),
        });
        let max = native.max_priority.unwrap_or(DEFAULT_MAX_PRIORITY);
        let known = s.priority.filter(|n| (-10..=10).contains(n));
        let level = known.map(|n| (((n + 10) as u32 * u32::from(max) + 10) / 20) as u8);
        self.priority = level;
        t.decide("priority", s.priority, |priority| match (priority, level) {
            (None, _) => becomes("none: messages go out in their order"),
            (Some(_), None) => cannot("priorities are -10 to 10"),
            (Some(_), Some(_)) if native.queue_type == Some(QueueType::Quorum) => cannot(
                "quorum queues of this server have no priorities; use native.amqp.queue-type = \"classic\"",
            ),
            (Some(_), Some(level)) => becomes(format!(
                "priority {level} of 0 to {max} (-10 to 10 spread over them), queues with x-max-priority {max}; it orders what waits in a queue, not what is prefetched"
            )),
        });
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

    /// Limits of the queues that subscribers are given.
    fn queues(&mut self, s: &Settings, native: &AmqpNative, t: &mut Resolution) {
        let mut arguments: Vec<(&str, Value<'_>)> = Vec::new();
        let overflow = native.overflow.unwrap_or(Overflow::DropHead).as_str();
        let conflate = s.conflate == Some(true);
        t.decide("queue-limit", s.queue_limit, |limit| match limit {
            None => becomes(
                "64 KiB of frames per publisher, then back-pressure; none in the server's queues",
            ),
            Some(0) => cannot("a queue needs room for one message"),
            Some(_) if conflate => cannot("conflate makes it 1; leave one of them out"),
            Some(_) if s.on_full == Some(OnFull::Block) => cannot(
                "the server does not hold a publisher back for a full queue; set on-full = \"drop\", or limit messages under way with in-flight",
            ),
            Some(n) => becomes(format!(
                "x-max-length {n}, x-overflow {overflow} on each subscriber's queue; what is prefetched does not count"
            )),
        });
        if let Some(n) = s.queue_limit {
            arguments.push(("x-max-length", Value::Int(i64::from(n))));
            arguments.push(("x-overflow", Value::Long(overflow.as_bytes())));
        }
        if native.overflow.is_some() && s.queue_limit.is_none() {
            t.refuse("native.amqp.overflow", overflow, "only with queue-limit");
        }
        if overflow == "reject-publish" && self.answers == Answers::Nothing {
            t.refuse(
                "native.amqp.overflow",
                overflow,
                "a rejection is a negative confirm; set reliability = \"at-least-once\"",
            );
        }
        t.decide("conflate", s.conflate, |_| if conflate { becomes(
            "x-max-length 1, x-overflow drop-head: the newest of what waits in the queue, not of what is prefetched",
        ) } else { becomes("off") });
        if conflate {
            arguments.push(("x-max-length", Value::Int(1)));
            arguments.push(("x-overflow", Value::Long(b"drop-head")));
        }
        if self.priority.is_some() {
            let max = native.max_priority.unwrap_or(DEFAULT_MAX_PRIORITY);
            arguments.push(("x-max-priority", Value::Int(i64::from(max))));
        }
        for table in [&mut self.passing, &mut self.staying] {
            for (name, value) in &arguments {
                // Short names and values always fit.
                let _ = table.push(name, *value);
            }
        }
    }

    fn flow(&mut self, s: &Settings, t: &mut Resolution) {
        let in_flight = s.in_flight.unwrap_or(DEFAULT_IN_FLIGHT);
        self.in_flight = in_flight as usize;
        let unanswered = self.answers == Answers::Nothing;
        t.decide("in-flight", s.in_flight, |asked| match asked {
            Some(n) if n == 0 || n > MAX_IN_FLIGHT => {
                cannot(format!("the driver keeps account of 1 to {MAX_IN_FLIGHT}"))
            }
            Some(_) if unanswered => cannot(
                "without publisher confirms nothing is known of what is under way; set reliability = \"at-least-once\"",
            ),
            None if unanswered => becomes("no effect: nothing is confirmed"),
            _ => becomes(format!("{in_flight} unconfirmed messages per publisher")),
        });
        t.row(
            "on-full",
            spelt(&s.on_full),
            if self.tuning.drop_when_full {
                "refused as dropped while 64 KiB wait, the window is full or the server says connection.blocked"
            } else {
                "the publisher is held back by TCP, the window, connection.blocked and channel.flow"
            },
        );
    }

    fn connection(&mut self, s: &Settings, native: &AmqpNative, t: &mut Resolution) {
        self.heartbeat_s = s.keep_alive_s;
        self.frame_max = native.frame_max_bytes.unwrap_or(FRAME_MAX);
        self.sasl = native.sasl;
        self.virtual_host = native.virtual_host.clone().map(|host| host.0);
        self.tuning = Tuning::resolve(s, native.socket, TERMS, t);
        t.row(
            "keep-alive-s",
            spelt(&s.keep_alive_s),
            match s.keep_alive_s {
                None => "heartbeats as the server proposes".to_owned(),
                Some(0) => "no heartbeats".to_owned(),
                Some(n) => format!("heartbeat {n} s"),
            },
        );
    }
}

/// Refuses the settings that AMQP 0-9-1 over TCP cannot honour.
fn absent(s: &Settings, t: &mut Resolution) {
    t.absent(
        "last-value",
        &s.last_value,
        "off: exchanges keep nothing",
        "AMQP 0-9-1 exchanges keep no messages (RabbitMQ's recent-history plug-in keeps an exchange's last ones, not each topic's); use a system with last values, for example MQTT",
    );
    t.absent(
        "rate-limit-bytes-per-s",
        &s.rate_limit_bytes_per_s,
        "none",
        "an AMQP client cannot tell the server to limit its rate; shape the link in the testbed or lower the workload's rate",
    );
}
