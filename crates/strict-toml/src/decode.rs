//! From the tree to the types of a file, with errors that point at line and column.

use std::fmt;
use std::ops::Range;

use serde::de::value::SeqDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, EnumAccess, Error as _, Expected, IntoDeserializer,
    MapAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use pubgauge_quantities::spelling::did_you_mean;

use crate::tree::{Entry, Node, TomlValue};

/// A value that does not fit its type.
#[derive(Clone, Debug)]
pub(crate) struct Misfit {
    pub(crate) span: Option<Range<usize>>,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// The key that is missing, if that is what is wrong.
    missing: Option<String>,
}

/// Most errors reported at once.
const MOST: usize = 20;

/// Decodes the whole tree; all misfits at once. To find the next one, the part that does not fit
/// is taken out and the rest decoded again.
pub(crate) fn decode<T: DeserializeOwned>(tree: &Node) -> Result<T, Vec<Misfit>> {
    let mut tree = tree.clone();
    let mut misfits: Vec<Misfit> = Vec::new();
    let mut removed = Vec::new();
    let mut gaps: Vec<Range<usize>> = Vec::new();
    loop {
        let misfit = match T::deserialize(NodeReader(&tree)) {
            Ok(value) if misfits.is_empty() => return Ok(value),
            Ok(_) => return Err(misfits),
            Err(misfit) => misfit,
        };
        // A key that is missing because it was taken out above is not an error of the file.
        let ours = misfit
            .missing
            .as_ref()
            .is_some_and(|key| removed.contains(key));
        let span = misfit.span.clone();
        // Nor is a key that a table lacks because something in it was taken out.
        let around = |gap: &Range<usize>| {
            span.as_ref()
                .is_some_and(|s| s.start <= gap.start && gap.end <= s.end)
        };
        if !ours && !gaps.iter().any(around) {
            misfits.push(misfit);
        }
        gaps.extend(span.clone());
        let gone = span.is_some_and(|span| tree.remove(&span, &mut removed));
        if !gone || misfits.len() >= MOST {
            return Err(misfits);
        }
    }
}

impl de::Error for Misfit {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Misfit {
            span: None,
            message: message.to_string(),
            hint: None,
            missing: None,
        }
    }

    fn invalid_type(got: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let got = match got {
            Unexpected::Map => "a table".to_string(),
            Unexpected::Seq => "a list".to_string(),
            Unexpected::Str(text) => format!("the text \"{text}\""),
            Unexpected::Signed(number) => format!("the number {number}"),
            Unexpected::Float(number) => format!("the number {number}"),
            Unexpected::Bool(value) => value.to_string(),
            got => got.to_string(),
        };
        Misfit::custom(format!("this is {got}; expected {}", plain(expected)))
    }

    fn invalid_value(got: Unexpected<'_>, expected: &dyn Expected) -> Self {
        match got {
            Unexpected::Signed(number) => Misfit::custom(format!(
                "{number} is out of range; expected {}",
                plain(expected)
            )),
            _ => Misfit::invalid_type(got, expected),
        }
    }

    fn unknown_field(key: &str, expected: &'static [&'static str]) -> Self {
        let near = did_you_mean(key, expected);
        Misfit {
            hint: Some(format!("expected one of {}", listed(expected))),
            ..Misfit::custom(format!("unknown key `{key}`{near}"))
        }
    }

    fn unknown_variant(value: &str, expected: &'static [&'static str]) -> Self {
        let near = did_you_mean(value, expected);
        Misfit {
            hint: Some(format!("expected one of {}", listed(expected))),
            ..Misfit::custom(format!("`{value}` is not possible here{near}"))
        }
    }

    fn missing_field(key: &'static str) -> Self {
        Misfit {
            missing: Some(key.to_string()),
            ..Misfit::custom(format!("the key `{key}` is missing here"))
        }
    }
}

/// The type that serde expects, without its names for Rust types.
fn plain(expected: &dyn Expected) -> String {
    let expected = expected.to_string();
    match expected.as_str() {
        "u8" | "u16" | "u32" | "u64" => "a whole number from 0".into(),
        "i32" | "i64" => "a whole number".into(),
        "f64" => "a number".into(),
        "a string" => "a text in quotes".into(),
        "a boolean" => "true or false".into(),
        "a sequence" => "a list in square brackets".into(),
        "a map" => "a table of keys and values".into(),
        "a character" => "a single character in quotes".into(),
        e if e.starts_with("struct ") => "a table of keys and values".into(),
        _ => expected,
    }
}

fn listed(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

impl std::error::Error for Misfit {}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Misfit {
    /// Sets the span unless an inner one is known.
    fn or_at(mut self, span: &Range<usize>) -> Self {
        self.span.get_or_insert_with(|| span.clone());
        self
    }
}

/// Decodes one node.
struct NodeReader<'a>(&'a Node);

impl<'de> de::Deserializer<'de> for NodeReader<'_> {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match &self.0.value {
            TomlValue::Text(text) => visitor.visit_str(text),
            TomlValue::Integer(number) => visitor.visit_i64(*number),
            TomlValue::Float(number) => visitor.visit_f64(*number),
            TomlValue::Boolean(value) => visitor.visit_bool(*value),
            TomlValue::Date(text) => Err(Misfit::invalid_type(
                Unexpected::Other(&format!("the date {text}")),
                &visitor,
            )),
            TomlValue::List(nodes) => {
                visitor.visit_seq(SeqDeserializer::new(nodes.iter().map(NodeReader)))
            }
            TomlValue::Table(entries) => visitor.visit_map(TableReader(entries.iter(), None)),
        }
        .map_err(|misfit| misfit.or_at(&self.0.span))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        let span = &self.0.span;
        let variant = match &self.0.value {
            TomlValue::Text(text) => Variant(text, None),
            TomlValue::Table(entries) if entries.len() == 1 => {
                Variant(&entries[0].key, Some(&entries[0].node))
            }
            _ => {
                return Err(Misfit::custom(format!(
                    "this is not possible here; expected one of {}",
                    listed(variants)
                ))
                .or_at(span));
            }
        };
        visitor
            .visit_enum(variant)
            .map_err(|misfit| misfit.or_at(span))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl IntoDeserializer<'_, Misfit> for NodeReader<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

struct TableReader<'a>(std::slice::Iter<'a, Entry>, Option<&'a Entry>);

impl<'de> MapAccess<'de> for TableReader<'_> {
    type Error = Misfit;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Misfit> {
        self.1 = self.0.next();
        let Some(entry) = self.1 else {
            return Ok(None);
        };
        let key: de::value::StrDeserializer<'_, Misfit> = entry.key.as_str().into_deserializer();
        seed.deserialize(key)
            .map(Some)
            .map_err(|m| m.or_at(&entry.span))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Misfit> {
        match self.1 {
            Some(entry) => seed.deserialize(NodeReader(&entry.node)),
            None => Err(Misfit::custom("a value was asked for before its key")),
        }
    }
}

/// A variant by name, with its content if it has one.
struct Variant<'a>(&'a str, Option<&'a Node>);

impl<'a, 'de> EnumAccess<'de> for Variant<'a> {
    type Error = Misfit;
    type Variant = NodeContent<'a>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, NodeContent<'a>), Misfit> {
        let name: de::value::StrDeserializer<'_, Misfit> = self.0.into_deserializer();
        Ok((seed.deserialize(name)?, NodeContent(self.1)))
    }
}

struct NodeContent<'a>(Option<&'a Node>);

impl<'a> NodeContent<'a> {
    fn needs(self, what: &str) -> Result<NodeReader<'a>, Misfit> {
        let node = self.0.map(NodeReader);
        node.ok_or_else(|| Misfit::custom(format!("this choice needs {what}")))
    }
}

impl<'de> VariantAccess<'de> for NodeContent<'_> {
    type Error = Misfit;

    fn unit_variant(self) -> Result<(), Misfit> {
        match self.0 {
            None => Ok(()),
            Some(_) => Err(Misfit::custom("this choice stands alone, without a value")),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Misfit> {
        seed.deserialize(self.needs("a value, as in { name = value }")?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Misfit> {
        de::Deserializer::deserialize_any(self.needs("a list of values")?, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        de::Deserializer::deserialize_any(self.needs("a table of values")?, visitor)
    }
}
