//! The settings that only this driver knows, `native.mqtt.*`.

use pubgauge_driver::NativeSettings;
use pubgauge_mqtt_codec::Version;
use pubgauge_net::socket::SocketOptions;
use schemars::JsonSchema;
use serde::Deserialize;

/// The driver's name in study files.
pub const NAME: &str = "mqtt";

pub(crate) static NATIVE: NativeSettings<MqttNative> = NativeSettings::for_driver(NAME);

/// `native.mqtt.*` as given.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct MqttNative {
    /// Protocol version; shared subscriptions are not in 3.1.1, servers may allow them.
    pub version: Option<Protocol>,
    /// QoS in SUBSCRIBE.
    #[schemars(range(max = 2))]
    pub subscribe_qos: Option<u8>,
    /// Receive Maximum in CONNECT.
    #[schemars(range(min = 1))]
    pub receive_maximum: Option<u16>,
    /// Topic aliases of a publisher, or the server's Topic Alias Maximum if that is less.
    pub topic_alias: Option<u16>,
    /// Retain Handling in SUBSCRIBE.
    #[schemars(range(max = 2))]
    pub retain_handling: Option<u8>,
    /// No Local in SUBSCRIBE, except in shared subscriptions.
    pub no_local: Option<bool>,
    /// Subscription Identifier in SUBSCRIBE, the same for all subscriptions; every message to a subscriber has it then.
    #[schemars(range(min = 1, max = 268_435_455))]
    pub subscription_identifier: Option<u32>,
    /// Content Type of every PUBLISH, such as "application/cbor".
    pub content_type: Option<String>,
    /// Response Topic of every PUBLISH; nobody answers there.
    pub response_topic: Option<String>,
    /// The socket options of its connections.
    #[serde(flatten)]
    pub socket: SocketOptions,
}

/// `native.mqtt.version`: MQTT 3.1.1 or MQTT 5.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub enum Protocol {
    #[serde(rename = "3.1.1")]
    V311,
    #[serde(rename = "5", alias = "5.0")]
    V5,
}

impl From<Protocol> for Version {
    fn from(protocol: Protocol) -> Self {
        match protocol {
            Protocol::V311 => Version::V311,
            Protocol::V5 => Version::V5,
        }
    }
}
