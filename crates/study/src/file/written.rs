//! Values that may be written in several ways: a size or a list of sizes, a duration or a count.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use pubgauge_quantities::{Size, Span};

use super::criterion::CriterionValue;
use super::flow::{Dimension, Filters};
use super::network::CoresFile;
use super::payload::{Drawn, OneSize, PayloadFile};
use super::phases::{UntilCount, UntilFile};
use super::presence::SpanRange;
use super::systems::Systems;
use super::written_as::written_as;

written_as!(
    Systems,
    "the name of a system, a list of names, \"available\", \"available-variants\" or \"first-look\"",
    |_| json_schema!({
        "description": "Names of systems; \"available\" for all that are found, \"available-variants\" for these in every variant, \"first-look\" for those found that start at once.",
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}],
    }),
    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Systems, E> {
        Ok(Systems::One(text.to_string()))
    },
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Systems, A::Error> {
        Deserialize::deserialize(SeqAccessDeserializer::new(seq)).map(Systems::Many)
    },
);

written_as!(
    Filters,
    "a text in quotes, or a list of them",
    |_| json_schema!({
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}],
    }),
    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Filters, E> {
        Ok(Filters::One(text.to_string()))
    },
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Filters, A::Error> {
        Deserialize::deserialize(SeqAccessDeserializer::new(seq)).map(Filters::Many)
    },
);

written_as!(
    Dimension,
    "a number of values, or a list of names",
    |_| json_schema!({
        "description": "A number of values (named 0, 1, ...), or a list of names.",
        "anyOf": [
            {"type": "integer", "minimum": 1},
            {"type": "array", "items": {"type": "string"}, "minItems": 1},
        ],
    }),
    fn visit_i64<E: serde::de::Error>(self, count: i64) -> Result<Dimension, E> {
        u32::try_from(count)
            .map(Dimension::Count)
            .map_err(|_| E::custom("a dimension has 1 to 4,294,967,295 values"))
    },
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Dimension, A::Error> {
        Deserialize::deserialize(SeqAccessDeserializer::new(seq)).map(Dimension::Names)
    },
);

written_as!(
    CoresFile,
    "a number of processors such as 0.5, or a list with one for each host",
    |_| json_schema!({
        "description": "Processors' worth of time of each host, or a list with one number for each.",
        "anyOf": [
            {"type": "number", "minimum": 0.1},
            {"type": "array", "items": {"type": "number", "minimum": 0.1}, "minItems": 1},
        ],
    }),
    fn visit_f64<E: serde::de::Error>(self, cores: f64) -> Result<CoresFile, E> {
        Ok(CoresFile::Same(cores))
    },
    fn visit_i64<E: serde::de::Error>(self, cores: i64) -> Result<CoresFile, E> {
        Ok(CoresFile::Same(cores as f64))
    },
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<CoresFile, A::Error> {
        Deserialize::deserialize(SeqAccessDeserializer::new(seq)).map(CoresFile::Each)
    },
);

written_as!(
    UntilFile,
    "a duration such as \"10s\", or { messages = 1000, within = \"60s\" }",
    |generator| {
        let span = generator.subschema_for::<Span>();
        let count = generator.subschema_for::<UntilCount>();
        json_schema!({"anyOf": [span, count]})
    },
    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<UntilFile, E> {
        text.parse().map(UntilFile::Time).map_err(E::custom)
    },
    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<UntilFile, E> {
        self.visit_str(&number.to_string())
    },
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<UntilFile, A::Error> {
        Deserialize::deserialize(MapAccessDeserializer::new(map)).map(UntilFile::Count)
    },
);

written_as!(
    SpanRange,
    "a time such as \"5min\", or two such as \"30s..10min\"",
    |_| json_schema!({"type": "string", "description": "A time, or the shortest and the longest of times that are drawn: \"30s..10min\"."}),
    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<SpanRange, E> {
        let (least, most) = text.split_once("..").unwrap_or((text, text));
        Ok(SpanRange {
            least: least.parse().map_err(E::custom)?,
            most: most.parse().map_err(E::custom)?,
        })
    },
);

written_as!(
    PayloadFile,
    "a size such as \"64B\", a list of sizes, \"recorded\", or a distribution such as \
     { uniform = { min = \"64B\", max = \"1KiB\" } }",
    |generator| {
        let size = generator.subschema_for::<Size>();
        let drawn = generator.subschema_for::<Drawn>();
        json_schema!({
            "description": "A size, a list of sizes taken in turn, \"recorded\" (with a replay), or a distribution.",
            "anyOf": [size, {"const": "recorded"}, {"type": "array", "items": size, "minItems": 1}, drawn],
        })
    },
    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<PayloadFile, E> {
        let one = match text {
            "recorded" => OneSize::Recorded,
            _ => OneSize::Fixed(text.parse().map_err(E::custom)?),
        };
        Ok(PayloadFile::One(one))
    },
    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<PayloadFile, E> {
        self.visit_str(&number.to_string())
    },
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<PayloadFile, A::Error> {
        Deserialize::deserialize(SeqAccessDeserializer::new(seq)).map(PayloadFile::List)
    },
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PayloadFile, A::Error> {
        const KINDS: [&str; 3] = ["uniform", "normal", "log-normal"];
        let Some(kind) = map.next_key::<String>()? else {
            return Err(A::Error::custom(
                "an empty table is no distribution of sizes; \
                expected `uniform`, `normal` or `log-normal`",
            ));
        };
        let drawn = match kind.as_str() {
            "uniform" => Drawn::Uniform(map.next_value()?),
            "normal" => Drawn::Normal(map.next_value()?),
            "log-normal" => Drawn::LogNormal(map.next_value()?),
            other => return Err(A::Error::unknown_field(other, &KINDS)),
        };
        match map.next_key::<String>()? {
            None => Ok(PayloadFile::Drawn(drawn)),
            Some(second) => Err(A::Error::custom(format!(
                "sizes follow one distribution, but both `{kind}` and `{second}` are given"
            ))),
        }
    },
);

written_as!(
    CriterionValue,
    "a number, or a quantity with its unit in quotes",
    |_| json_schema!({"anyOf": [{"type": "number"}, {"type": "string"}]}),
    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<CriterionValue, E> {
        Ok(CriterionValue::Text(text.to_string()))
    },
    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<CriterionValue, E> {
        Ok(CriterionValue::Number(number as f64))
    },
    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<CriterionValue, E> {
        Ok(CriterionValue::Number(number))
    },
);
