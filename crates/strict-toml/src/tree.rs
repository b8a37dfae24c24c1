//! A text as a tree of values with their positions, so that values can be changed and every error can point at its
//! cause.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value and its span in the texts that it comes from ([`crate::Sources`]).
#[derive(Clone, Debug)]
pub struct Node {
    pub span: Range<usize>,
    pub value: TomlValue,
}

/// A TOML value.
#[derive(Clone, Debug)]
pub enum TomlValue {
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Date(String),
    List(Vec<Node>),
    Table(Vec<Entry>),
}

/// A key with its value, in the order of the file.
#[derive(Clone, Debug)]
pub struct Entry {
    pub key: String,
    pub span: Range<usize>,
    pub node: Node,
}

impl Node {
    /// A value that stands at `span`.
    pub fn at_span(span: &Range<usize>, value: TomlValue) -> Node {
        let span = span.clone();
        Node { span, value }
    }

    /// From what the TOML parser found, all spans moved on by `base`.
    ///
    /// # Errors
    /// The span of a number that is out of range.
    pub fn new(node: Spanned<DeValue<'_>>, base: usize) -> Result<Node, Range<usize>> {
        let span = node.span().start + base..node.span().end + base;
        let value = match node.into_inner() {
            DeValue::String(text) => TomlValue::Text(text.into_owned()),
            DeValue::Integer(number) => {
                let value = i64::from_str_radix(number.as_str(), number.radix());
                TomlValue::Integer(value.map_err(|_| span.clone())?)
            }
            DeValue::Float(number) => {
                TomlValue::Float(number.as_str().parse().map_err(|_| span.clone())?)
            }
            DeValue::Boolean(value) => TomlValue::Boolean(value),
            DeValue::Datetime(value) => TomlValue::Date(value.to_string()),
            DeValue::Array(array) => {
                let nodes = array.into_iter().map(|node| Node::new(node, base));
                TomlValue::List(nodes.collect::<Result<_, _>>()?)
            }
            DeValue::Table(table) => return Node::table(table, span, base),
        };
        Ok(Node { span, value })
    }

    /// As [`Node::new`], for a table.
    pub(crate) fn table(
        table: DeTable<'_>,
        span: Range<usize>,
        base: usize,
    ) -> Result<Node, Range<usize>> {
        let mut entries = Vec::with_capacity(table.len());
        for (key, node) in table {
            entries.push(Entry {
                span: key.span().start + base..key.span().end + base,
                key: key.into_inner().into_owned(),
                node: Node::new(node, base)?,
            });
        }
        // The parser sorts by key; the file's own order is that of the keys' places.
        entries.sort_by_key(|entry| entry.span.start);
        Ok(Node {
            span,
            value: TomlValue::Table(entries),
        })
    }

    /// The keys of a table with their values; none of another value.
    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            TomlValue::Table(entries) => entries,
            _ => &[],
        }
    }

    /// The entry under `key`.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// The text under `key`.
    pub fn text(&self, key: &str) -> Option<&str> {
        match &self.get(key)?.node.value {
            TomlValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The text under `name`.
    pub fn name(&self) -> Option<&str> {
        self.text("name")
    }

    /// The elements of the list under `key`; none if there is no list.
    pub fn list(&self, key: &str) -> &[Node] {
        match self.get(key).map(|entry| &entry.node.value) {
            Some(TomlValue::List(nodes)) => nodes,
            _ => &[],
        }
    }

    /// The list under `key`, to be changed.
    pub fn list_mut(&mut self, key: &str) -> Option<&mut Vec<Node>> {
        let TomlValue::Table(entries) = &mut self.value else {
            return None;
        };
        let entry = entries.iter_mut().find(|entry| entry.key == key)?;
        match &mut entry.node.value {
            TomlValue::List(nodes) => Some(nodes),
            _ => None,
        }
    }

    /// Leaves a key of this table out.
    pub fn leave_out(&mut self, key: &str) {
        if let TomlValue::Table(entries) = &mut self.value {
            entries.retain(|entry| entry.key != key);
        }
    }

    /// The value as JSON, for what is only shown.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            TomlValue::Text(text) | TomlValue::Date(text) => text.clone().into(),
            TomlValue::Integer(number) => (*number).into(),
            TomlValue::Float(number) => (*number).into(),
            TomlValue::Boolean(value) => (*value).into(),
            TomlValue::List(nodes) => nodes.iter().map(Node::to_json).collect(),
            TomlValue::Table(entries) => entries
                .iter()
                .map(|entry| (entry.key.clone(), entry.node.to_json()))
                .collect(),
        }
    }

    /// The span of `path`: its key's value, or the last part of it that exists.
    pub fn locate(&self, path: &[&str]) -> Range<usize> {
        let Some((step, rest)) = path.split_first() else {
            return self.span.clone();
        };
        let inner = match &self.value {
            TomlValue::Table(_) => self.get(step).map(|entry| &entry.node),
            TomlValue::List(nodes) => step.parse::<usize>().ok().and_then(|n| nodes.get(n)),
            _ => None,
        };
        match inner {
            Some(node) => node.locate(rest),
            // Of a table only the first line is shown.
            None => self.span.clone(),
        }
    }

    /// Removes what has this span, key or value; false if nothing has, or the whole tree.
    pub(crate) fn remove(&mut self, span: &Range<usize>, removed: &mut Vec<String>) -> bool {
        match &mut self.value {
            TomlValue::Table(entries) => {
                let hit = |entry: &Entry| entry.span == *span || entry.node.span == *span;
                if let Some(index) = entries.iter().position(hit) {
                    removed.push(entries.remove(index).key);
                    return true;
                }
                entries
                    .iter_mut()
                    .any(|entry| entry.node.remove(span, removed))
            }
            TomlValue::List(nodes) => {
                if let Some(index) = nodes.iter().position(|node| node.span == *span) {
                    nodes.remove(index);
                    return true;
                }
                nodes.iter_mut().any(|node| node.remove(span, removed))
            }
            _ => false,
        }
    }
}

impl Entry {
    /// A key and its value that both stand at `span`.
    pub fn at_span(span: &Range<usize>, key: &str, value: TomlValue) -> Entry {
        Entry {
            key: key.to_owned(),
            span: span.clone(),
            node: Node::at_span(span, value),
        }
    }
}
