//! The settings as the fleet uses them.

use crate::codec::{Properties, TableBuf};
use pubgauge_net::fleet::Tuning;
use schemars::JsonSchema;
use serde::Deserialize;

/// The driver's name in study files.
pub(crate) const NAME: &str = "amqp";

/// Longest frame that is taken, RabbitMQ's default: half of the fleet's read buffer, so that a
/// frame that was cut off always has room in it.
pub(crate) const FRAME_MAX: u32 = 128 << 10;

/// The exchange that messages are published to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Exchange {
    #[default]
    Topic,
    Direct,
    Fanout,
    /// The default exchange: straight into the queue of the topic's name.
    #[serde(rename = "default")]
    Queue,
}

/// Answers of the server to published messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Answers {
    #[default]
    Nothing,
    Confirms,
    /// tx.commit-ok for up to so many messages.
    Commits(u16),
}

/// How a client logs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Sasl {
    Plain,
    External,
}

/// The settings as the fleet uses them. Every one of them is set by [`Options::resolve`].
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AmqpOptions {
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
    /// Milliseconds, in decimal digits.
    pub expiration: Option<String>,
    pub priority: Option<u8>,
    pub in_flight: usize,
    pub tuning: Tuning,
    /// Seconds; the server's choice if absent.
    pub heartbeat_s: Option<u16>,
    pub frame_max: u32,
    pub sasl: Option<Sasl>,
    pub virtual_host: Option<String>,
}

impl AmqpOptions {
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

    /// Properties of every message.
    pub fn properties(&self) -> Properties<'_> {
        Properties {
            headers: (!self.headers.is_empty()).then(|| self.headers.as_table()),
            delivery_mode: Some(if self.persistent { 2 } else { 1 }),
            priority: self.priority,
            expiration: self.expiration.as_deref().map(str::as_bytes),
            ..Properties::default()
        }
    }
}
