//! The settings that only this driver knows, `native.amqp.*`.

use pubgauge_driver::NativeSettings;
use pubgauge_net::socket::SocketOptions;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::options::{Exchange, FRAME_MAX, NAME, Sasl};

pub(crate) static NATIVE: NativeSettings<AmqpNative> = NativeSettings::for_driver(NAME);

/// `native.amqp.*` as given.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct AmqpNative {
    /// Exchange that messages are published to: amq.topic, amq.direct, amq.fanout or the default exchange.
    pub exchange: Option<Exchange>,
    /// exchange.declare of an exchange in place of the server's own; durable with durability.
    pub exchange_name: Option<ShortString>,
    /// Acknowledgement of deliveries: manual is one basic.ack for all of a read, automatic is no-ack in
    /// basic.consume.
    pub acknowledge: Option<Acknowledge>,
    /// basic.qos per consumer, 0 for no limit.
    pub prefetch: Option<u16>,
    /// Messages per tx.commit, which comes earlier if the worker has nothing due; the publisher is held back
    /// until it is answered.
    #[schemars(range(min = 1))]
    pub transactions: Option<u16>,
    /// mandatory, and a message-id of 16 digits, so that one that comes back is known; without it, what no
    /// queue gets is confirmed all the same.
    pub mandatory: Option<bool>,
    /// x-queue-type.
    pub queue_type: Option<QueueType>,
    /// x-overflow.
    pub overflow: Option<Overflow>,
    /// x-max-priority.
    #[schemars(range(min = 1))]
    pub max_priority: Option<u8>,
    /// Longest frame, bytes, or what the server allows if that is less.
    #[schemars(range(min = 4096, max = FRAME_MAX))]
    pub frame_max_bytes: Option<u32>,
    /// SASL mechanism.
    pub sasl: Option<Sasl>,
    /// connection.open of the virtual host.
    pub virtual_host: Option<ShortString>,
    #[serde(flatten)]
    pub socket: SocketOptions,
}

/// A short string (AMQP 0-9-1, section 4.2.5.3).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
pub(crate) struct ShortString(pub String);

impl TryFrom<String> for ShortString {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.len() {
            0..=255 => Ok(ShortString(text)),
            _ => Err("expected a name of at most 255 bytes"),
        }
    }
}

/// `native.amqp.acknowledge`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Acknowledge {
    Automatic,
    Manual,
}

/// `native.amqp.queue-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum QueueType {
    Classic,
    Quorum,
}

/// `native.amqp.overflow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Overflow {
    DropHead,
    RejectPublish,
}

impl Overflow {
    /// As x-overflow spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Overflow::DropHead => "drop-head",
            Overflow::RejectPublish => "reject-publish",
        }
    }
}
