//! A message as one JSON object in a line.

use std::borrow::Cow;
use std::io::{self, Write};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::message::Message;

/// A line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line<'a> {
    /// When it was read, UTC, to the microsecond.
    received: String,
    pub received_ns: i64,
    pub seq: u64,
    #[serde(borrow)]
    pub broker: Cow<'a, str>,
    #[serde(borrow)]
    pub topic: Cow<'a, str>,
    pub qos: u8,
    pub retain: bool,
    pub dup: bool,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    content_type: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    properties: Option<Map<String, Value>>,
    /// The payload, if it is text.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    payload: Option<Cow<'a, str>>,
    /// The payload, if it is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
}

impl Line<'_> {
    /// The payload's bytes; `None` if the line has none.
    pub fn payload(&self) -> Option<Vec<u8>> {
        match (&self.payload, &self.payload_base64) {
            (Some(text), None) => Some(text.as_bytes().to_vec()),
            (None, Some(coded)) => BASE64_STANDARD.decode(coded).ok(),
            _ => None,
        }
    }
}

/// Writes a message with its line end.
///
/// # Errors
/// If `out` cannot be written to.
pub fn write(message: &Message<'_>, out: &mut impl Write) -> io::Result<()> {
    let (content_type, properties) = super::properties::of(message.properties);
    let text = std::str::from_utf8(message.payload).ok();
    let time = jiff::Timestamp::from_microsecond(message.received_ns.div_euclid(1000));
    let line = Line {
        received: time
            .unwrap_or_default()
            .strftime("%Y-%m-%dT%H:%M:%S%.6fZ")
            .to_string(),
        received_ns: message.received_ns,
        seq: message.seq,
        broker: message.broker.into(),
        topic: message.topic.into(),
        qos: message.qos as u8,
        retain: message.retain,
        dup: message.dup,
        content_type: content_type.map(Cow::from),
        properties,
        payload: text.map(Cow::from),
        payload_base64: text
            .is_none()
            .then(|| BASE64_STANDARD.encode(message.payload)),
    };
    serde_json::to_writer(&mut *out, &line)?;
    out.write_all(b"\n")
}
