//! `[[claim]]` and `[side]` as they are written.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::absent::is_default;
use super::written_as::written_as;

/// A statement about systems, and the rule by which a run judges it: see docs/claims.md.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClaimFile {
    /// Its name, unique in the study.
    pub id: String,
    /// The statement, in one sentence.
    pub sentence: String,
    /// Where it was made: paper, section, figure.
    pub source: String,
    /// The source's own figures; they are shown beside the measured ones and decide nothing.
    pub papers: Option<String>,
    /// Figure of every part that names none.
    pub figure: Option<String>,
    /// Cells of every part: `system`, `settings`, `workload`, `flow` and axes of the grid, each with the
    /// values that count, or with a range of them, such as "..1KiB" or "64B..1KiB" (both ends included).
    #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub filter: BTreeMap<String, Values>,
    /// Axis of every part that names none.
    pub along: Option<String>,
    /// Verdicts of the trials that count, of every part that names none; ["valid"] if absent.
    pub verdicts: Option<Vec<String>>,
    /// Systems without which it is not applicable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs_systems: Vec<String>,
    /// Links between hosts without which it is not applicable, such as "links of 95 Mbit/s".
    pub needs_network: Option<String>,
    /// Why no run can judge it.
    pub not_applicable: Option<String>,
    /// Why the study's cells do not tell it, whatever is measured there: "its bed decides, not the system". The rule stays,
    /// and is not judged.
    pub cannot_tell: Option<String>,
    /// The machine or the measurement that would tell it. It stands behind the reason of a claim that cannot be told.
    pub told_by: Option<String>,
    /// The first day whose trials count, such as "2026-11-30": the rule or the bed was another one before.
    pub not_before: Option<String>,
    /// How the version that is claimed about differs from the one that is measured, and since which version: the outcome is
    /// then "true of its version" in place of "does not hold".
    pub of_version: Option<String>,
    /// The stand-in, and what it replaces, such as "Cyclone DDS's adaptive batching for RTI Connext's TurboMode": the
    /// outcome then says that it is that of a stand-in.
    pub stand_in: Option<String>,
    /// More than this share of the points that can be decided, such as "50%", instead of all parts.
    pub share: Option<String>,
    /// One rule, or several parts: the claim holds if all do, and in part if some do.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rule: RuleList,
}

/// A rule: who is judged, and by exactly one judge; or, instead of a judge, parts of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RuleFile {
    /// Name of the part; a, b, ... if absent.
    pub part: Option<String>,
    /// The figure, as in criteria and comparisons; "limit" for what a search found; "A / B" for the
    /// quotient of two in each trial.
    pub figure: Option<String>,
    /// Who is judged: names of `[side]` or of systems, or cells. A judge of two sides takes each with the
    /// next.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sides: Vec<Cells>,
    /// Each side is held against each of these instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<Cells>,
    /// Cells, on top of those of the claim.
    #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub filter: BTreeMap<String, Values>,
    /// The axis whose values are the points.
    pub along: Option<String>,
    /// In how many blocks of equal length the measurement of each trial is cut, 3 to 100: these are the points, and spans of each
    /// are its repeats. Of series alone, such as "latency.p99" or "delivered-rate", with a judge of an axis.
    pub blocks: Option<u32>,
    /// Verdicts of the trials that count; those of the claim if absent.
    pub verdicts: Option<Vec<String>>,
    /// Verdicts of which one trial takes its cell out of the rule, where the claim is not about such cells:
    /// ["overloaded", "broken"] of "the loads that a system carries".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leave_out: Vec<String>,
    /// Instead of a judge: parts of which one must hold, or `least`. They take over figure, cells, axis and
    /// verdicts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub any: Vec<RuleFile>,
    /// Of `any`: how many must hold; 1 if absent.
    pub least: Option<u32>,
    /// Instead of a judge: parts which must all hold. They take over figure, cells, axis and verdicts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub all: Vec<RuleFile>,
    /// The largest of all sides over the smallest is judged, whichever they are: by `value`, `rises`, `falls`
    /// or `flat`.
    pub gap: Option<bool>,
    /// At every point (if absent), at some, of the geometric mean over all, or of that with no point decided against.
    pub at: Option<PointsFile>,
    /// Judge: the figure of each side lies in a range, such as "< 1ms" or "0.9..1.1".
    pub value: Option<String>,
    /// Judge: the ratio of two sides lies in a range, such as "> 1" or "1.2..2.1".
    pub ratio: Option<String>,
    /// Judge: the difference of two sides lies in a range, such as "> 100us".
    pub difference: Option<String>,
    /// Judge: two sides differ by no more than this, such as "10%".
    pub equal: Option<String>,
    /// Judge: exactly, in every repeat: "= 0" or "> 0".
    pub count: Option<String>,
    /// Judge: its trend rises along the axis, no step is decided to fall by more than this: of ratios with a share, such
    /// as "5%", of differences with a quantity, such as "0us".
    pub rises: Option<String>,
    /// Judge: its trend falls along the axis, no step is decided to rise by more than this.
    pub falls: Option<String>,
    /// Of `rises` and `falls`: the trend from the first to the last point; "> 1" and "< 1" if absent. Of differences:
    /// "> 0" and "< 0" if absent.
    pub ends: Option<String>,
    /// Judge: the trend along the axis is within this, and no point is decided further from the mean over it.
    pub flat: Option<String>,
    /// Judge: the first side is above the second up to the first value of the axis, below it from the
    /// second value on: as geometric means, no point decided against.
    pub cross: Option<[String; 2]>,
    /// Judge: the largest step lies between these values of the axis, and more than doubles the figure.
    pub jump: Option<[String; 2]>,
    /// Judge: the first side rises less with each unit of the axis than the second; "linear": both are
    /// straight lines, too.
    pub slope: Option<SlopeFile>,
    /// Judge: in most repeats the first side reaches this share of its own largest value, such as "95%", at a
    /// smaller value of the axis than the second.
    pub reaches: Option<String>,
    /// Judge: the ratio of standard deviations lies in a range: over seconds, or over the steps along the
    /// axis.
    pub spread: Option<String>,
    /// The source's machine decides its numbers: ranges are doubled on either side (not across 1), a
    /// crossing or a jump may lie anywhere.
    pub wide: Option<bool>,
    /// Repeats are compared one by one.
    pub paired: Option<bool>,
    /// Of `ratio`: up to which share two sides are alike, such as "2%". An order within it neither
    /// holds nor fails.
    pub margin: Option<String>,
    /// Systems without which the part is left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs_systems: Vec<String>,
    /// Links between hosts without which the part is left out.
    pub needs_network: Option<String>,
    /// Why no run can judge the part; it has no judge then.
    pub not_applicable: Option<String>,
    /// Why the study's cells do not tell the part, whatever is measured there; it may have a judge all the same.
    pub cannot_tell: Option<String>,
    /// How the version that the part is about differs from the one that is measured, and since which version.
    pub of_version: Option<String>,
}

/// At which points of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PointsFile {
    /// At every one.
    Every,
    /// At one at least.
    Some,
    /// Of the geometric mean over all.
    Mean,
    /// Of the geometric mean over all, with no point decided against.
    Joint,
}

/// A demand on slopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SlopeFile {
    /// The first is the smaller one.
    Less,
    /// And both are straight lines, up to a tenth of their range.
    Linear,
}

/// The parts of a claim.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum RuleList {
    One(Box<RuleFile>),
    Many(Vec<RuleFile>),
}

impl Default for RuleList {
    fn default() -> Self {
        RuleList::Many(Vec::new())
    }
}

impl RuleList {
    /// As a list.
    pub fn list(&self) -> &[RuleFile] {
        match self {
            RuleList::One(one) => std::slice::from_ref(one),
            RuleList::Many(many) => many,
        }
    }
}

/// A name of `[side]` or of a system, what cells have in common, or a list of implementations of the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected the name of a side or a system, cells such as { system = \"mosquitto\", settings = \"qos1\" }, or a list of these"
)]
pub enum Cells {
    /// A name of `[side]`, or of a system.
    Named(String),
    /// The values that they share. `side` stands for the cells of another side; where that has several
    /// implementations, the same one is taken in all places.
    Like(BTreeMap<String, Values>),
    /// Implementations of the same, which must agree.
    Any(Vec<Cells>),
}

/// One value, or several, as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "WrittenValues", into = "Vec<String>")]
#[schemars(with = "WrittenValues")]
pub struct Values(pub Vec<String>);

/// A value such as "64B" or 100, or a list of values.
#[derive(Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a value such as \"64B\" or 100, or a list of values"
)]
#[schemars(rename = "Values")]
enum WrittenValues {
    Text(String),
    Whole(i64),
    Number(f64),
    Flag(bool),
    Several(Vec<WrittenValues>),
}

impl From<WrittenValues> for Values {
    fn from(written: WrittenValues) -> Values {
        Values(match written {
            WrittenValues::Text(text) => vec![text],
            WrittenValues::Whole(number) => vec![number.to_string()],
            WrittenValues::Number(number) => vec![number.to_string()],
            WrittenValues::Flag(value) => vec![value.to_string()],
            WrittenValues::Several(all) => all
                .into_iter()
                .flat_map(|one| Values::from(one).0)
                .collect(),
        })
    }
}

impl From<Values> for Vec<String> {
    fn from(Values(values): Values) -> Vec<String> {
        values
    }
}

written_as!(
    RuleList,
    "a rule such as { sides = [\"a\", \"b\"], ratio = \"> 1\" }, or a list of rules",
    |generator| {
        let rule = generator.subschema_for::<RuleFile>();
        json_schema!({"anyOf": [rule, {"type": "array", "items": rule, "minItems": 1}]})
    },
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RuleList, A::Error> {
        Deserialize::deserialize(MapAccessDeserializer::new(map)).map(RuleList::One)
    },
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<RuleList, A::Error> {
        Deserialize::deserialize(SeqAccessDeserializer::new(seq)).map(RuleList::Many)
    },
);
