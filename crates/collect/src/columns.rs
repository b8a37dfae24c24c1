//! Columns for what payloads and topics say: JSON, CBOR, and SenML in either form, and levels of topics.
//!
//! JSON and CBOR are read into the same tree. A payload that is none, or a value that its column cannot hold as it is,
//! is told; nothing is rounded, cut or guessed.

mod senml;
mod value;

use ciborium::Value;
use pubgauge_driver::TopicMatch;

pub use crate::config::{ColumnType, TimeUnit};
pub use value::Cell;
pub(crate) use value::{find, time};

/// Longest payload that is decoded; a tree is larger than its bytes by far.
pub const MAX_BYTES: usize = 1 << 20;

/// Forms of payloads.
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
    /// A level of the topic, from 0.
    TopicLevel(usize),
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
    /// Unit of numbers, in a column of timestamps.
    pub unit: TimeUnit,
    /// Filter of the topics whose messages have it; all have if absent.
    pub topics: Option<String>,
}

impl Column {
    /// Whether messages of a topic have it.
    fn applies(&self, topic: &str) -> bool {
        let filter = self.topics.as_deref();
        filter.is_none_or(|filter| filter.matches_topic(topic))
    }

    fn is_of_payload(&self) -> bool {
        !matches!(self.source, Source::TopicLevel(_))
    }
}

/// All columns, which are none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// Form of payloads; raw if absent.
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

/// A message's values, one for each column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    pub cells: Vec<Option<Cell>>,
    pub unfit: Option<Unfit>,
    /// A column asks for something of such a payload; of a raw one, for a level of its topic.
    pub is_asked: bool,
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

/// A payload, as columns look into it.
enum Body<'a> {
    /// No column does, or it is not of the form.
    None,
    Tree(&'a Value),
    Records(Vec<senml::Record<'a>>),
}

impl Columns {
    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        self.columns.is_empty()
    }

    /// The values of a message that was received at a time; `None` where there are no columns.
    pub fn decode(&self, topic: &str, payload: &[u8], received_ns: i64) -> Option<Decoded> {
        if self.is_none() {
            return None;
        }
        let applies = |column: &&Column| column.applies(topic);
        let mut applying = self.columns.iter().filter(applies);
        let is_asked = applying.any(|column| self.form.is_none() || column.is_of_payload());
        let form = self.form.filter(|_| is_asked);
        let tree = form.and_then(|form| tree(form, payload));
        let body = form.zip(tree.as_ref()).and_then(|(form, tree)| match form {
            Form::Json | Form::Cbor => Some(Body::Tree(tree)),
            Form::SenmlJson => senml::records(tree, &senml::JSON).map(Body::Records),
            Form::SenmlCbor => senml::records(tree, &senml::CBOR).map(Body::Records),
        });
        let mut decoded = Decoded {
            // Counted once, whatever its columns are.
            unfit: (form.is_some() && body.is_none()).then_some(Unfit::Form),
            is_asked,
            ..Decoded::default()
        };
        let body = body.unwrap_or(Body::None);
        for column in &self.columns {
            let cell = match (&column.source, &body) {
                _ if !column.applies(topic) => Ok(None),
                (Source::TopicLevel(nth), _) => value::level(topic, *nth, column),
                (Source::Pointer(steps), Body::Tree(tree)) => value::find(tree, steps)
                    .and_then(|found| value::cell(found.ok_or(Unfit::Missing)?, column)),
                (Source::Record(name), Body::Records(records)) => {
                    senml::find(records, name, column, received_ns)
                }
                _ => Err(Unfit::Missing),
            };
            decoded.push(cell);
        }
        Some(decoded)
    }

    /// Whether a payload is stored as it came.
    pub fn keeps(&self, decoded: Option<&Decoded>) -> bool {
        self.keep_raw || decoded.is_none_or(|decoded| !decoded.is_whole())
    }
}

impl Decoded {
    /// Whether every column that such a message has found something, and one looked into its payload.
    pub fn is_whole(&self) -> bool {
        self.is_asked && self.unfit.is_none()
    }

    /// Adds the next column's value.
    fn push(&mut self, cell: Result<Option<Cell>, Unfit>) {
        // A payload of another form says more than a value that does not fit, and that more than one that is not there.
        match (cell.as_ref().err(), self.unfit) {
            (Some(unfit), None) => self.unfit = Some(*unfit),
            (Some(Unfit::Value), Some(Unfit::Missing)) => self.unfit = Some(Unfit::Value),
            _ => {}
        }
        self.cells.push(cell.ok().flatten());
    }
}

/// The tree of a payload that is JSON or CBOR, whichever it is.
pub(crate) fn either_tree(payload: &[u8]) -> Option<Value> {
    tree(Form::Json, payload).or_else(|| tree(Form::Cbor, payload))
}

/// The tree of a payload, if the whole of it is one, and it is not too long.
fn tree(form: Form, payload: &[u8]) -> Option<Value> {
    if payload.len() > MAX_BYTES {
        return None;
    }
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
