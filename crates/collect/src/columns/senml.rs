//! SenML (RFC 8428): records, and the base values that hold from one record on.

use ciborium::Value;

use super::value::{self, Cell};
use super::{Column, ColumnType, TimeUnit, Unfit};

/// How fields are called in a form.
pub struct Names {
    base_name: Label,
    base_time: Label,
    base_value: Label,
    base_version: Label,
    name: Label,
    time: Label,
    value: Label,
    text: Label,
    boolean: Label,
    data: Label,
}

/// A field's key.
#[derive(Clone, Copy)]
enum Label {
    Text(&'static str),
    Number(i128),
}

impl Label {
    fn is(self, key: &Value) -> bool {
        match (self, key) {
            (Label::Text(name), Value::Text(key)) => name == key,
            (Label::Number(number), Value::Integer(key)) => number == i128::from(*key),
            _ => false,
        }
    }
}

/// In JSON (RFC 8428 §4, table 1).
pub const JSON: Names = Names {
    base_name: Label::Text("bn"),
    base_time: Label::Text("bt"),
    base_value: Label::Text("bv"),
    base_version: Label::Text("bver"),
    name: Label::Text("n"),
    time: Label::Text("t"),
    value: Label::Text("v"),
    text: Label::Text("vs"),
    boolean: Label::Text("vb"),
    data: Label::Text("vd"),
};

/// In CBOR (RFC 8428 §6, table 4).
pub const CBOR: Names = Names {
    base_name: Label::Number(-2),
    base_time: Label::Number(-3),
    base_value: Label::Number(-5),
    base_version: Label::Number(-1),
    name: Label::Number(0),
    time: Label::Number(6),
    value: Label::Number(2),
    text: Label::Number(3),
    boolean: Label::Number(4),
    data: Label::Number(8),
};

/// The version of SenML that is read (RFC 8428 §4.4).
const VERSION: i128 = 10;

/// Times below are relative to when the message came (RFC 8428 §4.5.3).
const ABSOLUTE_FROM_S: f64 = (1u64 << 28) as f64;

/// A record with the base values worked in (RFC 8428 §4.6).
pub struct Record<'a> {
    base_name: &'a str,
    /// Without the base name.
    own_name: &'a str,
    /// Seconds, absolute or relative.
    time_s: f64,
    base_value: Option<f64>,
    value: Option<&'a Value>,
    text: Option<&'a Value>,
    boolean: Option<&'a Value>,
    data: Option<&'a Value>,
}

impl Record<'_> {
    /// Whether a column means this record: by its whole name, or by what stands behind the base name.
    fn is_called(&self, name: &str) -> bool {
        let whole = name.strip_prefix(self.base_name) == Some(self.own_name);
        whole || (!self.own_name.is_empty() && self.own_name == name)
    }
}

/// The cell of the only record that a column means.
///
/// # Errors
/// If none is there, several are, or the column cannot hold its value as it is.
pub fn find(
    records: &[Record<'_>],
    name: &str,
    column: &Column,
    received_ns: i64,
) -> Result<Option<Cell>, Unfit> {
    let mut meant = records.iter().filter(|record| record.is_called(name));
    match (meant.next(), meant.next()) {
        (None, _) => Err(Unfit::Missing),
        (Some(record), None) => cell(record, column, received_ns),
        // A series, or several devices in one pack: a row has one value.
        (Some(_), Some(_)) => Err(Unfit::Value),
    }
}

/// The records of a SenML pack; `None` where the tree is not one.
pub fn records<'a>(tree: &'a Value, names: &Names) -> Option<Vec<Record<'a>>> {
    let pack = tree.as_array()?;
    let mut base = ("", 0.0, None);
    let mut records = Vec::new();
    for record in pack {
        let entries = record.as_map()?;
        let field = |label: Label| value::entry(entries, |key| label.is(key)).ok();
        if let Some(version) = field(names.base_version)?
            && version
                .as_integer()
                .map(i128::from)
                .is_none_or(|version| version > VERSION)
        {
            return None;
        }
        if entries
            .iter()
            .any(|(key, _)| key.as_text().is_some_and(|key| key.ends_with('_')))
        {
            // A field that must be understood, and is not (RFC 8428 §4.4).
            return None;
        }
        if let Some(name) = field(names.base_name)? {
            base.0 = name.as_text()?;
        }
        if let Some(time) = field(names.base_time)? {
            base.1 = number(time)?;
        }
        if let Some(value) = field(names.base_value)? {
            base.2 = Some(number(value)?);
        }
        let own_name = field(names.name)?.map_or(Some(""), Value::as_text)?;
        let time = field(names.time)?.map_or(Some(0.0), number)?;
        records.push(Record {
            base_name: base.0,
            own_name,
            time_s: base.1 + time,
            base_value: base.2,
            value: field(names.value)?,
            text: field(names.text)?,
            boolean: field(names.boolean)?,
            data: field(names.data)?,
        });
    }
    Some(records)
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Float(number) => Some(*number),
        Value::Integer(number) => value::exact(i128::from(*number)),
        _ => None,
    }
}

fn cell(record: &Record<'_>, column: &Column, received_ns: i64) -> Result<Option<Cell>, Unfit> {
    let given = match column.of {
        ColumnType::Int64 | ColumnType::Double => record.value,
        ColumnType::String => record.text,
        ColumnType::Boolean => record.boolean,
        ColumnType::Timestamp => return time(record.time_s, received_ns).ok_or(Unfit::Value),
    };
    let all = [record.value, record.text, record.boolean, record.data];
    let has_other = all.iter().any(Option::is_some);
    match (given, record.base_value) {
        (Some(value), Some(base))
            if column.of == ColumnType::Int64 || column.of == ColumnType::Double =>
        {
            let sum = number(value).ok_or(Unfit::Value)? + base;
            value::cell(&Value::Float(sum), column)
        }
        (Some(value), _) => value::cell(value, column),
        // A value of another kind.
        (None, _) if has_other => Err(Unfit::Value),
        (None, _) => Err(Unfit::Missing),
    }
}

fn time(time_s: f64, received_ns: i64) -> Option<Option<Cell>> {
    let microseconds = value::microseconds(time_s, TimeUnit::S)?;
    let microseconds = if time_s < ABSOLUTE_FROM_S {
        value::in_range(received_ns.div_euclid(1000).checked_add(microseconds)?)?
    } else {
        microseconds
    };
    Some(Some(Cell::Timestamp(microseconds)))
}
