//! A stored message that can be published.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use pubgauge_mqtt_codec::{PropertiesBuf, Property};
use serde_json::{Map, Value};

/// A stored message.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredMessage {
    pub seq: u64,
    pub received_ns: i64,
    pub topic: String,
    pub retain: bool,
    pub content_type: Option<String>,
    pub properties: Option<Map<String, Value>>,
    /// None where it was decoded and is not kept.
    pub payload: Option<Vec<u8>>,
}

impl StoredMessage {
    /// Its properties in wire form; identifiers of subscriptions were the collector's, and are left out. `None` if they
    /// cannot be such.
    pub fn properties(&self) -> Option<PropertiesBuf> {
        let mut buf = PropertiesBuf::default();
        if let Some(text) = &self.content_type {
            buf.push(Property::ContentType(text)).ok()?;
        }
        for (name, value) in self.properties.iter().flatten() {
            match name.as_str() {
                "payload_is_utf8" => {
                    let is_text = value.as_bool()?;
                    buf.push(Property::PayloadFormatIndicator(is_text)).ok()?;
                }
                "message_expiry_s" => {
                    let seconds = u32::try_from(value.as_u64()?).ok()?;
                    buf.push(Property::MessageExpiryInterval(seconds)).ok()?;
                }
                "response_topic" => {
                    buf.push(Property::ResponseTopic(value.as_str()?)).ok()?;
                }
                "correlation_data_base64" => {
                    let bytes = BASE64_STANDARD.decode(value.as_str()?).ok()?;
                    buf.push(Property::CorrelationData(&bytes)).ok()?;
                }
                "user" => {
                    for pair in value.as_array()? {
                        let (name, value) = (pair.get(0)?.as_str()?, pair.get(1)?.as_str()?);
                        buf.push(Property::UserProperty((name, value))).ok()?;
                    }
                }
                _ => {}
            }
        }
        Some(buf)
    }
}
