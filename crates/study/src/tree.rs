//! The study as a tree of values with their positions in the text, so that flags and grid axes can
//! set values and every error can point at its cause.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value and its span in the texts of the study.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) span: Range<usize>,
    pub(crate) value: Value,
}

/// A TOML value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
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
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) span: Range<usize>,
    pub(crate) node: Node,
}

/// Where a value is missing from a path that was to be set.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PathFault {
    /// A step leads into something that is not a table.
    NoTable(String),
    /// A list has no such element.
    NoElement {
        list: String,
        step: String,
        names: Vec<String>,
    },
}

/// Lists of tables whose elements have names.
const LISTS: [&str; 4] = ["workload", "flow", "settings", "criterion"];

/// Keys below which more keys may follow, by the list that they are in: any other step that is not
/// the last must be the name of an element.
const TABLES: [(&str, &[&str]); 3] = [
    (
        "workload",
        &["phases", "topology", "client", "testbed", "grid", "flow"],
    ),
    ("flow", &["dimensions", "payload", "bursts", "replay"]),
    ("settings", &["user-properties", "batching", "native"]),
];

/// Short names for longer paths.
const SHORT: [(&str, &str); 12] = [
    ("publishers", "workload.flow.publishers"),
    ("subscribers", "workload.flow.subscribers"),
    ("topics", "workload.flow.topics"),
    ("payload", "workload.flow.payload"),
    ("rate", "workload.flow.rate"),
    ("burst", "workload.flow.burst"),
    ("burst-every", "workload.flow.burst-every"),
    ("brokers", "topology.brokers"),
    ("window", "workload.flow.window"),
    ("duration", "phases.measure"),
    ("warm-up", "phases.warm-up"),
    ("pacing-within", "client.pacing-within"),
];

pub(crate) fn short_names() -> impl Iterator<Item = &'static str> {
    SHORT.iter().map(|(short, _)| *short)
}

/// `path` with a short name written out.
pub(crate) fn full_path(path: &str) -> &str {
    SHORT
        .iter()
        .find(|(short, _)| *short == path)
        .map_or(path, |(_, full)| full)
}

impl Node {
    /// A value that stands at `span`.
    pub(crate) fn at(span: &Range<usize>, value: Value) -> Node {
        let span = span.clone();
        Node { span, value }
    }

    /// From what the TOML parser found, all spans moved on by `base`; a number that is out of
    /// range is reported by its span.
    pub(crate) fn new(node: Spanned<DeValue<'_>>, base: usize) -> Result<Node, Range<usize>> {
        let span = node.span().start + base..node.span().end + base;
        let value = match node.into_inner() {
            DeValue::String(text) => Value::Text(text.into_owned()),
            DeValue::Integer(number) => {
                let value = i64::from_str_radix(number.as_str(), number.radix());
                Value::Integer(value.map_err(|_| span.clone())?)
            }
            DeValue::Float(number) => {
                Value::Float(number.as_str().parse().map_err(|_| span.clone())?)
            }
            DeValue::Boolean(value) => Value::Boolean(value),
            DeValue::Datetime(value) => Value::Date(value.to_string()),
            DeValue::Array(array) => {
                let nodes = array.into_iter().map(|node| Node::new(node, base));
                Value::List(nodes.collect::<Result<_, _>>()?)
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
            value: Value::Table(entries),
        })
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Table(entries) => entries,
            _ => &[],
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// The text under `key`.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match &self.get(key)?.node.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.text("name")
    }

    /// The elements of the list under `key`; none if there is no list.
    pub(crate) fn list(&self, key: &str) -> &[Node] {
        match self.get(key).map(|entry| &entry.node.value) {
            Some(Value::List(nodes)) => nodes,
            _ => &[],
        }
    }

    /// The list under `key`, to be changed.
    pub(crate) fn list_mut(&mut self, key: &str) -> Option<&mut Vec<Node>> {
        let Value::Table(entries) = &mut self.value else {
            return None;
        };
        let entry = entries.iter_mut().find(|entry| entry.key == key)?;
        match &mut entry.node.value {
            Value::List(nodes) => Some(nodes),
            _ => None,
        }
    }

    /// Leaves a key of this table out.
    pub(crate) fn leave_out(&mut self, key: &str) {
        if let Value::Table(entries) = &mut self.value {
            entries.retain(|entry| entry.key != key);
        }
    }

    /// The value as JSON, for what is only shown.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Text(text) | Value::Date(text) => text.clone().into(),
            Value::Integer(number) => (*number).into(),
            Value::Float(number) => (*number).into(),
            Value::Boolean(value) => (*value).into(),
            Value::List(nodes) => nodes.iter().map(Node::to_json).collect(),
            Value::Table(entries) => entries
                .iter()
                .map(|entry| (entry.key.clone(), entry.node.to_json()))
                .collect(),
        }
    }

    /// Puts `value` at `path`. A step into a list of tables may be a number (from 0) or the `name`
    /// of an element; without one, every element is set. Missing tables are created.
    pub(crate) fn set(
        &mut self,
        path: &[&str],
        key_span: Range<usize>,
        value: &Node,
    ) -> Result<(), PathFault> {
        self.set_in("", path, key_span, value)
    }

    /// As [`Node::set`], of the value of the key `list`.
    fn set_in(
        &mut self,
        list: &str,
        path: &[&str],
        key_span: Range<usize>,
        value: &Node,
    ) -> Result<(), PathFault> {
        let Some((step, rest)) = path.split_first() else {
            *self = value.clone();
            return Ok(());
        };
        match &mut self.value {
            Value::List(nodes) => {
                if let Some(node) = element(nodes, step) {
                    return node.set_in("", rest, key_span, value);
                }
                let tables = nodes.iter().all(|n| matches!(n.value, Value::Table(_)));
                let key = rest.is_empty()
                    || TABLES
                        .iter()
                        .any(|(name, keys)| *name == list && keys.contains(step));
                if nodes.is_empty() || !tables || !key || step.parse::<usize>().is_ok() {
                    return Err(PathFault::NoElement {
                        list: list.to_string(),
                        step: step.to_string(),
                        names: nodes
                            .iter()
                            .filter_map(Node::name)
                            .map(str::to_string)
                            .collect(),
                    });
                }
                for node in nodes {
                    node.set_in("", path, key_span.clone(), value)?;
                }
                Ok(())
            }
            Value::Table(entries) => {
                let index = entries.iter().position(|entry| entry.key == *step);
                let index = index.unwrap_or_else(|| {
                    let table = Value::Table(Vec::new());
                    let empty = match LISTS.contains(step) {
                        // `--set settings.reliability=...` needs a variant to go to.
                        true if *step == "settings" => {
                            Value::List(vec![Node::at(&key_span, table)])
                        }
                        true => Value::List(Vec::new()),
                        false => table,
                    };
                    entries.push(Entry::at(&key_span, step, empty));
                    entries.len() - 1
                });
                let entry = &mut entries[index];
                if rest.is_empty() {
                    entry.span = key_span.clone();
                }
                entry.node.set_in(step, rest, key_span, value)
            }
            _ => Err(PathFault::NoTable(step.to_string())),
        }
    }

    /// The span of `path`: its key's value, or the last part of it that exists.
    pub(crate) fn locate(&self, path: &[&str]) -> Range<usize> {
        let Some((step, rest)) = path.split_first() else {
            return self.span.clone();
        };
        let inner = match &self.value {
            Value::Table(_) => self.get(step).map(|entry| &entry.node),
            Value::List(nodes) => step.parse::<usize>().ok().and_then(|n| nodes.get(n)),
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
            Value::Table(entries) => {
                let hit = |entry: &Entry| entry.span == *span || entry.node.span == *span;
                if let Some(index) = entries.iter().position(hit) {
                    removed.push(entries.remove(index).key);
                    return true;
                }
                entries
                    .iter_mut()
                    .any(|entry| entry.node.remove(span, removed))
            }
            Value::List(nodes) => {
                if let Some(index) = nodes.iter().position(|node| node.span == *span) {
                    nodes.remove(index);
                    return true;
                }
                nodes.iter_mut().any(|node| node.remove(span, removed))
            }
            _ => false,
        }
    }

    /// A variant of the settings with this profile, and its name, if it has one, after its own.
    pub(crate) fn with_profile(&self, profile: &str, span: Range<usize>) -> Node {
        let mut variant = self.clone();
        let name = self.name().map(|own| format!("{own}-{profile}"));
        if let Value::Table(entries) = &mut variant.value {
            for (key, value) in [("name", name), ("profile", Some(profile.to_owned()))] {
                let Some(value) = value else { continue };
                entries.retain(|entry| entry.key != key);
                entries.push(Entry::at(&span, key, Value::Text(value)));
            }
        }
        variant
    }

    /// Splits each `[[settings]]` and `[[ablation]]` into `name`, `profile` and `ask`, because the
    /// neutral settings are a type of their own that has neither; a single `[settings]` counts as a
    /// list of one.
    pub(crate) fn split_settings(&mut self) {
        let Value::Table(entries) = &mut self.value else {
            return;
        };
        for key in ["settings", "ablation"] {
            if let Some(settings) = entries.iter_mut().find(|entry| entry.key == key) {
                settings.split();
            }
        }
    }
}

impl Entry {
    /// A key and its value that both stand at `span`.
    pub(crate) fn at(span: &Range<usize>, key: &str, value: Value) -> Entry {
        Entry {
            key: key.to_owned(),
            span: span.clone(),
            node: Node::at(span, value),
        }
    }

    /// Splits a list of settings.
    fn split(&mut self) {
        if let Value::Table(_) = self.node.value {
            let one = self.node.clone();
            self.node.value = Value::List(vec![one]);
        }
        let Value::List(variants) = &mut self.node.value else {
            return;
        };
        for variant in variants {
            let span = variant.span.clone();
            if let Value::Table(entries) = &mut variant.value {
                let (mut named, ask): (Vec<Entry>, Vec<Entry>) = std::mem::take(entries)
                    .into_iter()
                    .partition(|entry| ["name", "profile"].contains(&entry.key.as_str()));
                named.push(Entry::at(&span, "ask", Value::Table(ask)));
                *entries = named;
            }
        }
    }
}

/// The element of a list that a step names.
fn element<'a>(nodes: &'a mut [Node], step: &str) -> Option<&'a mut Node> {
    if let Ok(index) = step.parse::<usize>() {
        return nodes.get_mut(index);
    }
    nodes.iter_mut().find(|node| node.name() == Some(step))
}
