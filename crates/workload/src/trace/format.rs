//! How ordinary CSV and NDJSON become readings.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};

use super::time::TimeFormat;

/// How ordinary CSV becomes readings, and NDJSON of any form: a column is then a field of the object by its name, or by a
/// JSON Pointer, such as "/decoded/temperature".
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TraceFormat {
    /// The separator of columns; `,` if absent.
    pub delimiter: Option<char>,
    /// Whether the first line names the columns; true if absent.
    pub header: Option<bool>,
    /// Column of the time.
    pub time: TraceColumn,
    /// How the time is written; "rfc3339" or "epoch-s", whichever fits, if absent.
    pub time_format: Option<TimeFormat>,
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
    /// The names of all columns that it needs, each once.
    pub(super) fn named(&self) -> Vec<String> {
        let several = self.size_of_json.iter().flat_map(BTreeMap::values);
        let changes = self.on_change.iter().map(|change| &change.column);
        let single = [
            &self.device,
            &self.topic,
            &self.size,
            &self.payload,
            &self.drop_repeats,
        ];
        let columns = single.into_iter().flatten().chain(several).chain(changes);
        let names = columns
            .chain([&self.time])
            .filter_map(|column| match column {
                TraceColumn::Name(name) if !name.starts_with('$') => Some(name.clone()),
                _ => None,
            });
        names.collect::<BTreeSet<String>>().into_iter().collect()
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
