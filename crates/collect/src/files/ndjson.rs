//! A message as one JSON object in a line.

use std::borrow::Cow;
use std::io::{self, Write};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::columns::{Cell, Columns, Decoded};
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
    pub content_type: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub properties: Option<Map<String, Value>>,
    /// Its columns, where payloads are decoded, and whether it has all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decoded: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    values: Option<Map<String, Value>>,
    /// The payload, if it is text.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    payload: Option<Cow<'a, str>>,
    /// The payload, if it is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
}

impl Line<'_> {
    /// Whether it has its payload.
    pub fn is_payload_kept(&self) -> bool {
        self.payload.is_some() || self.payload_base64.is_some()
    }

    /// The payload's bytes, none of one that was decoded and is not kept; `None` if the line lacks it.
    pub fn payload(&self) -> Option<Vec<u8>> {
        match (&self.payload, &self.payload_base64) {
            (None, None) if self.decoded == Some(true) => Some(Vec::new()),
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
pub fn write(
    message: &Message<'_>,
    columns: &Columns,
    decoded: Option<Decoded>,
    out: &mut impl Write,
) -> io::Result<()> {
    let (content_type, properties) = super::properties::decode(message.properties);
    let is_whole = decoded.as_ref().map(Decoded::is_whole);
    let is_kept = columns.keeps(decoded.as_ref());
    let text = std::str::from_utf8(message.payload).ok();
    let line = Line {
        received: format_time(message.received_ns.div_euclid(1000)),
        received_ns: message.received_ns,
        seq: message.seq,
        broker: message.broker.into(),
        topic: message.topic.into(),
        qos: message.qos as u8,
        retain: message.retain,
        dup: message.dup,
        content_type: content_type.map(Cow::from),
        properties,
        decoded: is_whole,
        values: decoded.map(|decoded| values(columns, decoded)),
        payload: text.filter(|_| is_kept).map(Cow::from),
        payload_base64: (is_kept && text.is_none())
            .then(|| BASE64_STANDARD.encode(message.payload)),
    };
    serde_json::to_writer(&mut *out, &line)?;
    out.write_all(b"\n")
}

/// A time in microseconds since 1970, as RFC 3339 has it.
fn format_time(microseconds: i64) -> String {
    let time = jiff::Timestamp::from_microsecond(microseconds).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// The values that are there, by column.
fn values(columns: &Columns, decoded: Decoded) -> Map<String, Value> {
    let each = columns.columns.iter().zip(decoded.cells);
    let each = each.filter_map(|(column, cell)| {
        let value = match cell? {
            Cell::Int64(number) => number.into(),
            Cell::Double(number) => double(number),
            Cell::String(text) => text.into(),
            Cell::Boolean(is) => is.into(),
            Cell::Timestamp(microseconds) => format_time(microseconds).into(),
        };
        Some((column.name.clone(), value))
    });
    each.collect()
}

/// JSON has no infinity and no NaN, which CBOR has: they are text.
fn double(number: f64) -> Value {
    serde_json::Number::from_f64(number).map_or_else(|| number.to_string().into(), Value::Number)
}
