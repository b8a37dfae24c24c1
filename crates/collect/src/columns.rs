//! Columns for what payloads say: JSON, CBOR, and SenML in either form.
//!
//! JSON and CBOR are read into the same tree. A payload that is none, or a value that its column cannot hold as it is,
//! is told; nothing is rounded, cut or guessed.

mod senml;
mod value;

use ciborium::Value;

pub use crate::config::{ColumnType, TimeUnit};
pub use value::Cell;
pub(crate) use value::find;

/// Longest payload that is decoded; a tree is larger than its bytes by far.
pub const MAX_BYTES: usize = 1 << 20;

/// What payloads are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Json,
    Cbor,
    SenmlJson,
    SenmlCbor,
}

/// Where a column's value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Names of objects and numbers of elements, from the outermost.
    Pointer(Vec<String>),
    /// The name of a SenML record, with its base name or without.
    Record(String),
}

impl Source {
    /// Reads a JSON Pointer (RFC 6901).
    pub fn pointer(text: &str) -> Option<Source> {
        if text.is_empty() {
            return Some(Source::Pointer(Vec::new()));
        }
        let steps = text.strip_prefix('/')?.split('/').map(|step| {
            let escapes = step.matches('~').count();
            let known = step.matches("~0").count() + step.matches("~1").count();
            (escapes == known).then(|| step.replace("~1", "/").replace("~0", "~"))
        });
        steps.collect::<Option<Vec<_>>>().map(Source::Pointer)
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub source: Source,
    pub of: ColumnType,
    /// What numbers count, if it is one of timestamps.
    pub unit: TimeUnit,
}

/// All columns, which are none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// What payloads are; raw if absent.
    pub form: Option<Form>,
    /// A payload that was decoded is stored as well.
    pub keep_raw: bool,
    pub columns: Vec<Column>,
}

/// Why a payload is not decoded, or not wholly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It is not of the form, or too long.
    Form,
    /// A value is not of its column's type, or is there twice.
    Value,
    /// Nothing is there for a column, not even null.
    Missing,
}

/// A payload's values, one for each column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    pub cells: Vec<Option<Cell>>,
    pub unfit: Option<Unfit>,
}

/// Payloads that were not decoded, or not wholly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Undecoded {
    /// Payloads that are not of the form, or too long.
    pub form: u64,
    /// Payloads of the form with a value that its column cannot hold.
    pub value: u64,
    /// Other payloads of the form, with nothing for a column.
    pub missing: u64,
}

impl Undecoded {
    /// Counts a payload.
    pub fn count(&mut self, unfit: Option<Unfit>) {
        match unfit {
            None => {}
            Some(Unfit::Form) => self.form += 1,
            Some(Unfit::Value) => self.value += 1,
            Some(Unfit::Missing) => self.missing += 1,
        }
    }

    /// Adds other ones.
    pub fn add(&mut self, other: Undecoded) {
        self.form += other.form;
        self.value += other.value;
        self.missing += other.missing;
    }
}

impl Columns {
    /// The values of a payload that was received at a time; `None` where payloads are raw.
    pub fn decode(&self, payload: &[u8], received_ns: i64) -> Option<Decoded> {
        let form = self.form?;
        let tree = (payload.len() <= MAX_BYTES)
            .then(|| tree(form, payload))
            .flatten();
        let decoded = match (form, tree) {
            (_, None) => None,
            (Form::Json | Form::Cbor, Some(tree)) => Some(self.of_tree(&tree)),
            (Form::SenmlJson, Some(tree)) => senml::decode(self, &tree, &senml::JSON, received_ns),
            (Form::SenmlCbor, Some(tree)) => senml::decode(self, &tree, &senml::CBOR, received_ns),
        };
        Some(decoded.unwrap_or_else(|| Decoded {
            cells: vec![None; self.columns.len()],
            unfit: Some(Unfit::Form),
        }))
    }

    /// Whether a payload is stored as it came.
    pub fn keeps(&self, decoded: Option<&Decoded>) -> bool {
        self.keep_raw || decoded.is_none_or(|decoded| decoded.unfit.is_some())
    }

    fn of_tree(&self, tree: &Value) -> Decoded {
        let mut decoded = Decoded::default();
        for column in &self.columns {
            let found = match &column.source {
                Source::Pointer(steps) => value::find(tree, steps),
                Source::Record(_) => Err(Unfit::Missing),
            };
            let cell = found.and_then(|found| value::cell(found.ok_or(Unfit::Missing)?, column));
            decoded.push(cell);
        }
        decoded
    }
}

impl Decoded {
    /// Adds the next column's value.
    fn push(&mut self, cell: Result<Option<Cell>, Unfit>) {
        // A value that does not fit says more than one that is not there.
        match cell {
            Err(Unfit::Missing) => {
                self.unfit.get_or_insert(Unfit::Missing);
            }
            Err(unfit) => self.unfit = Some(unfit),
            Ok(_) => {}
        }
        self.cells.push(cell.ok().flatten());
    }
}

/// The tree of a payload that is JSON or CBOR, whichever it is.
pub(crate) fn either_tree(payload: &[u8]) -> Option<Value> {
    tree(Form::Json, payload).or_else(|| tree(Form::Cbor, payload))
}

/// The tree of a payload, if the whole of it is one.
fn tree(form: Form, payload: &[u8]) -> Option<Value> {
    match form {
        Form::Json | Form::SenmlJson => serde_json::from_slice(payload).ok(),
        Form::Cbor | Form::SenmlCbor => {
            let mut rest = payload;
            let tree = ciborium::from_reader(&mut rest).ok()?;
            rest.is_empty().then_some(tree)
        }
    }
}

#[cfg(test)]
mod tests;
