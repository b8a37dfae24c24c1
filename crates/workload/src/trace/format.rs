//! How ordinary CSV and NDJSON become readings.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};

use super::time::TimeFormat;
use super::zone::ZoneName;

/// How ordinary CSV becomes readings, and NDJSON of any form: a column is then a field of the object by its name, or by a
/// JSON Pointer, such as "/decoded/temperature".
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TraceFormat {
    /// The separator of columns; `,` if absent.
    pub delimiter: Option<char>,
    /// Whether the first line names the columns; true if absent.
    pub header: Option<bool>,
    /// How many columns there are, of files without a header; where absent, a payload must be in the last one.
    pub columns: Option<u32>,
    /// Lines that begin with this character are passed over.
    pub comment: Option<char>,
    /// Lines at the top that are passed over; none if absent.
    pub skip_lines: Option<u32>,
    /// Column of the time.
    pub time: TraceColumn,
    /// Column of the date, where the time of day stands in one of its own: the date, a space and the time are read together.
    pub date: Option<TraceColumn>,
    /// How the time is written; "rfc3339" or "epoch-s", whichever fits, if absent.
    pub time_format: Option<TimeFormat>,
    /// The zone of times that name none, "Europe/Berlin" or "+02:00"; UTC if absent.
    pub time_zone: Option<ZoneName>,
    /// The mark of decimals in times and in numbers; "." if absent.
    pub decimal: Option<char>,
    /// Column of the device.
    pub device: Option<TraceColumn>,
    /// The device from the file name, for example `meter-{device}_*.csv`.
    pub device_from_file: Option<String>,
    /// Column of the topic.
    pub topic: Option<TraceColumn>,
    /// Column of the size in bytes.
    pub size: Option<TraceColumn>,
    /// One size for all, in bytes.
    pub size_bytes: Option<u32>,
    /// The size of a compact JSON object with these members: key = column. `$time` stands for
    /// the time in whole seconds since 1970, `$device` for the device.
    pub size_of_json: Option<BTreeMap<String, TraceColumn>>,
    /// Column of the payload; its length is the size unless one is given.
    pub payload: Option<TraceColumn>,
    /// How the payload is written; "text" if absent.
    pub payload_as: Option<PayloadText>,
    /// Column of the quality of service: 0, 1 or 2.
    pub qos: Option<TraceColumn>,
    /// Column that says whether the message was to be kept as last value: 0 or 1, false or true.
    pub retain: Option<TraceColumn>,
    /// Leave out objects that lack a field which is named; refused if absent. Of NDJSON alone.
    pub skip_incomplete: Option<bool>,
    /// Leave out readings in which this column is as in the device's reading before.
    pub drop_repeats: Option<TraceColumn>,
    /// Send on change: keep only readings in which one of these columns has changed enough since
    /// the last reading that was kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_change: Vec<OnChange>,
}

impl TraceFormat {
    /// All columns that it needs.
    pub(super) fn columns(&self) -> impl Iterator<Item = &TraceColumn> {
        let several = self.size_of_json.iter().flat_map(BTreeMap::values);
        let changes = self.on_change.iter().map(|change| &change.column);
        let single = [
            &self.device,
            &self.topic,
            &self.size,
            &self.payload,
            &self.drop_repeats,
            &self.date,
            &self.qos,
            &self.retain,
        ];
        let columns = single.into_iter().flatten().chain(several).chain(changes);
        columns.chain([&self.time])
    }

    /// The names of all columns that it needs, each once.
    pub(super) fn named(&self) -> Vec<String> {
        let names = self.columns().filter_map(|column| match column {
            TraceColumn::Name(name) if !name.starts_with('$') => Some(name.clone()),
            _ => None,
        });
        names.collect::<BTreeSet<String>>().into_iter().collect()
    }
}

/// How the bytes of a payload are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PayloadText {
    /// As they are; of NDJSON the text of a string, and any other value as compact JSON.
    Text,
    /// Two hexadecimal digits for each byte.
    Hex,
    /// Base64, with or without padding.
    Base64,
}

impl fmt::Display for PayloadText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PayloadText::Text => "text",
            PayloadText::Hex => "hexadecimal digits",
            PayloadText::Base64 => "Base64",
        })
    }
}

impl PayloadText {
    /// The bytes; `None` where the text is none of this form.
    pub(super) fn decode(self, text: &[u8]) -> Option<Cow<'_, [u8]>> {
        let digit = |byte: &u8| (*byte as char).to_digit(16);
        let text = match self {
            PayloadText::Text => return Some(text.into()),
            _ => text.trim_ascii(),
        };
        if self == PayloadText::Base64 {
            let padding = text.iter().rev().take(2).take_while(|byte| **byte == b'=');
            let unpadded = &text[..text.len() - padding.count()];
            return STANDARD_NO_PAD.decode(unpadded).ok().map(Cow::Owned);
        }
        let (pairs, rest) = text.as_chunks::<2>();
        let byte = |[high, low]: &[u8; 2]| Some((digit(high)? << 4 | digit(low)?) as u8);
        let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
        bytes.filter(|_| rest.is_empty()).map(Cow::Owned)
    }
}

/// A column whose change decides whether a reading is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OnChange {
    /// The column; its values are numbers.
    pub column: TraceColumn,
    /// Smallest change that counts, in the column's own unit.
    pub absolute: Option<f64>,
    /// Smallest change that counts, as a share of the last value kept; 0.05 is 5 %. Where both
    /// are given, the change has to reach the larger.
    pub relative: Option<f64>,
}

/// A column, by name (of the header line) or by number, from 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum TraceColumn {
    /// By name.
    Name(String),
    /// By number, from 1.
    Number(u32),
}

impl Default for TraceColumn {
    fn default() -> Self {
        TraceColumn::Number(1)
    }
}

impl fmt::Display for TraceColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceColumn::Name(name) => write!(f, "`{name}`"),
            TraceColumn::Number(number) => write!(f, "number {number}"),
        }
    }
}

impl<'de> Deserialize<'de> for TraceColumn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = TraceColumn;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a column, by its name in quotes or its number from 1")
            }
            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<TraceColumn, E> {
                Ok(TraceColumn::Name(name.to_string()))
            }
            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<TraceColumn, E> {
                match u32::try_from(number) {
                    Ok(number @ 1..) => Ok(TraceColumn::Number(number)),
                    _ => Err(E::custom(format!(
                        "there is no column {number}; columns are numbered from 1"
                    ))),
                }
            }
            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<TraceColumn, E> {
                self.visit_u64(u64::try_from(number).unwrap_or(0))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl JsonSchema for TraceColumn {
    fn schema_name() -> Cow<'static, str> {
        "Column".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A column, by the name in the header line or by its number from 1.",
            "anyOf": [{"type": "string"}, {"type": "integer", "minimum": 1}],
        })
    }
}
