//! From a value of a tree to a cell of a column.

use ciborium::Value;

use super::{Column, ColumnType, TimeUnit, Unfit};

/// A value in a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Int64(i64),
    Double(f64),
    String(String),
    Boolean(bool),
    /// Microseconds since 1970-01-01 UTC.
    Timestamp(i64),
}

/// Whole numbers up to this are the same as floating-point numbers.
const EXACT: i128 = 1 << 53;

/// The tag of CBOR on a time as text, and on a time in seconds (RFC 8949 §3.4.1, §3.4.2).
const TIME_TAGS: [u64; 2] = [0, 1];

/// The value that a pointer leads to.
///
/// # Errors
/// If an object has one of the names twice: which one is meant cannot be told.
pub fn find<'a>(tree: &'a Value, steps: &[String]) -> Result<Option<&'a Value>, Unfit> {
    let mut at = tree;
    for step in steps {
        let next = match at {
            Value::Map(entries) => entry(entries, |key| key.as_text() == Some(step.as_str()))?,
            // A number without leading zeros (RFC 6901 §4).
            Value::Array(values) => step
                .parse()
                .ok()
                .filter(|nth: &usize| nth.to_string() == *step)
                .and_then(|nth| values.get(nth)),
            _ => None,
        };
        match next {
            Some(next) => at = next,
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}

/// The value of the only key that fits.
///
/// # Errors
/// If there are several.
pub fn entry(
    entries: &[(Value, Value)],
    fits: impl Fn(&Value) -> bool,
) -> Result<Option<&Value>, Unfit> {
    let mut found = entries
        .iter()
        .filter(|(key, _)| fits(key))
        .map(|(_, value)| value);
    match (found.next(), found.next()) {
        (first, None) => Ok(first),
        (_, Some(_)) => Err(Unfit::Value),
    }
}

/// The cell of a level of a topic, as text or as a whole number that is written as numbers are.
///
/// # Errors
/// If the topic has fewer levels, or the level is no such number.
pub fn level(topic: &str, nth: usize, column: &Column) -> Result<Option<Cell>, Unfit> {
    let level = topic.split('/').nth(nth).ok_or(Unfit::Missing)?;
    let cell = match column.of {
        ColumnType::Int64 => {
            let number: i64 = level.parse().map_err(|_| Unfit::Value)?;
            // Of 007 and 7, which are two topics, one number would be made.
            if number.to_string() != level {
                return Err(Unfit::Value);
            }
            Cell::Int64(number)
        }
        _ => Cell::String(level.to_owned()),
    };
    Ok(Some(cell))
}

/// The cell of a value, if it is of the column's type; null has none.
///
/// # Errors
/// If the column cannot hold it as it is.
pub fn cell(value: &Value, column: &Column) -> Result<Option<Cell>, Unfit> {
    if value.is_null() {
        return Ok(None);
    }
    let cell = match (column.of, value) {
        (ColumnType::Int64, Value::Integer(number)) => {
            i64::try_from(i128::from(*number)).ok().map(Cell::Int64)
        }
        (ColumnType::Int64, Value::Float(number)) => whole_number(*number).map(Cell::Int64),
        (ColumnType::Double, Value::Float(number)) => Some(Cell::Double(*number)),
        (ColumnType::Double, Value::Integer(number)) => {
            exact(i128::from(*number)).map(Cell::Double)
        }
        (ColumnType::String, Value::Text(text)) => Some(Cell::String(text.clone())),
        (ColumnType::Boolean, Value::Bool(is)) => Some(Cell::Boolean(*is)),
        (ColumnType::Timestamp, value) => time(value, column.unit).map(Cell::Timestamp),
        _ => None,
    };
    cell.map(Some).ok_or(Unfit::Value)
}

/// A floating-point number that is a whole one, and of which the neighbours are, too.
pub fn whole_number(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() <= EXACT as f64).then_some(number as i64)
}

/// The floating-point number that is the same as a whole one.
pub fn exact(number: i128) -> Option<f64> {
    let float = number as f64;
    (float as i128 == number).then_some(float)
}

/// A time in microseconds since 1970.
pub fn time(value: &Value, unit: TimeUnit) -> Option<i64> {
    match value {
        Value::Tag(tag, inner) if TIME_TAGS.contains(tag) => time(inner, TimeUnit::S),
        Value::Text(text) => text
            .parse::<jiff::Timestamp>()
            .ok()
            .map(|time| time.as_microsecond()),
        Value::Integer(number) => scaled(i128::from(*number), unit),
        Value::Float(number) => microseconds(*number, unit),
        _ => None,
    }
}

/// Microseconds of a whole number of units, if a timestamp can be so.
fn scaled(number: i128, unit: TimeUnit) -> Option<i64> {
    let microseconds = match unit {
        TimeUnit::S => number.checked_mul(1_000_000)?,
        TimeUnit::Ms => number.checked_mul(1000)?,
        TimeUnit::Us => number,
        TimeUnit::Ns => number.div_euclid(1000),
    };
    in_range(i64::try_from(microseconds).ok()?)
}

/// The microsecond nearest to a number of units.
pub fn microseconds(number: f64, unit: TimeUnit) -> Option<i64> {
    let scale = match unit {
        TimeUnit::S => 1e6,
        TimeUnit::Ms => 1e3,
        TimeUnit::Us => 1.0,
        TimeUnit::Ns => 1e-3,
    };
    let microseconds = (number * scale).round();
    (microseconds.abs() < i64::MAX as f64)
        .then_some(microseconds as i64)
        .and_then(in_range)
}

/// Times that calendars have: from the year -9999 to 9999.
pub fn in_range(microseconds: i64) -> Option<i64> {
    jiff::Timestamp::from_microsecond(microseconds)
        .ok()
        .map(|time| time.as_microsecond())
}
