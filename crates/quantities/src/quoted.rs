//! Quantities as strings in files: a number, and its unit.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Unexpected, Visitor};

/// A quantity that cannot be read, with what is expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnitError(pub(crate) String);

/// The number at the start of `text`, and the rest. `_` may separate digits.
pub(crate) fn number(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !in_number(c)).unwrap_or(text.len());
    let digits: String = text[..end].chars().filter(|c| *c != '_').collect();
    let value: f64 = digits.parse().ok()?;
    Some((value, text[end..].trim_start()))
}

pub(crate) fn in_number(c: char) -> bool {
    c.is_ascii_digit() || c == '.' || c == '_'
}

/// A value that stands in a file as a string.
pub(crate) struct InQuotes<T> {
    pub(crate) expected: &'static str,
    pub(crate) of: PhantomData<T>,
}

impl<T: FromStr<Err = UnitError>> Visitor<'_> for InQuotes<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<T, E> {
        match value.to_string().parse::<T>() {
            Err(error) => Err(E::custom(error)),
            Ok(_) => Err(E::invalid_type(Unexpected::Signed(value), &self)),
        }
    }
}

/// Reads and writes a quantity as a string in files, and describes it in schemas.
macro_rules! as_string {
    ($type:ty, $expected:literal, $description:literal, $pattern:literal) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any($crate::quoted::InQuotes {
                    expected: $expected,
                    of: std::marker::PhantomData,
                })
            }
        }
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "description": $description,
                    "pattern": $pattern,
                })
            }
        }
    };
}

pub(crate) use as_string;
