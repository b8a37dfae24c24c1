//! Where flags and grid axes put values into the tree of a study, and what the tree is before it is decoded.

use std::ops::Range;
use std::sync::OnceLock;

use pubgauge_driver::Settings;
use pubgauge_strict_toml::{Entry, Node, TomlValue};
use schemars::schema_for;

use crate::file::{FlowFile, WorkloadFile};

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

/// The keys of the elements of a list of tables, which may lead to further keys: any other step that is not the last must be
/// the name of an element.
fn keys_of_elements(list: &str) -> &'static [String] {
    type KeysByList = [(&'static str, Vec<String>); 3];
    static KEYS: OnceLock<KeysByList> = OnceLock::new();
    let keys = KEYS.get_or_init(|| {
        [
            ("workload", schema_for!(WorkloadFile)),
            ("flow", schema_for!(FlowFile)),
            ("settings", schema_for!(Settings)),
        ]
        .map(|(list, schema)| {
            let properties = schema.get("properties").and_then(|keys| keys.as_object());
            let keys = properties.into_iter().flat_map(|keys| keys.keys().cloned());
            (list, keys.collect())
        })
    });
    let known = keys.iter().find(|(name, _)| *name == list);
    known.map_or(&[], |(_, keys)| keys)
}

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

/// Puts `value` at `path`. A step into a list of tables may be a number (from 0) or the `name`
/// of an element; without one, every element is set. Missing tables are created.
pub(crate) fn put_value(
    tree: &mut Node,
    path: &[&str],
    key_span: Range<usize>,
    value: &Node,
) -> Result<(), PathFault> {
    put_below("", tree, path, key_span, value)
}

/// As [`put_value`], of the value of the key `list`.
fn put_below(
    list: &str,
    node: &mut Node,
    path: &[&str],
    key_span: Range<usize>,
    value: &Node,
) -> Result<(), PathFault> {
    let Some((step, rest)) = path.split_first() else {
        *node = value.clone();
        return Ok(());
    };
    match &mut node.value {
        TomlValue::List(nodes) => {
            if let Some(node) = element(nodes, step) {
                return put_below("", node, rest, key_span, value);
            }
            let tables = nodes.iter().all(|n| matches!(n.value, TomlValue::Table(_)));
            let key = rest.is_empty() || keys_of_elements(list).iter().any(|key| key == step);
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
                put_below("", node, path, key_span.clone(), value)?;
            }
            Ok(())
        }
        TomlValue::Table(entries) => {
            let index = entries.iter().position(|entry| entry.key == *step);
            let index = index.unwrap_or_else(|| {
                let table = TomlValue::Table(Vec::new());
                let empty = match LISTS.contains(step) {
                    // `--set settings.reliability=...` needs a variant to go to.
                    true if *step == "settings" => {
                        TomlValue::List(vec![Node::at_span(&key_span, table)])
                    }
                    true => TomlValue::List(Vec::new()),
                    false => table,
                };
                entries.push(Entry::at_span(&key_span, step, empty));
                entries.len() - 1
            });
            let entry = &mut entries[index];
            if rest.is_empty() {
                entry.span = key_span.clone();
            }
            put_below(step, &mut entry.node, rest, key_span, value)
        }
        _ => Err(PathFault::NoTable(step.to_string())),
    }
}

/// A variant of the settings with this profile, and its name, if it has one, after its own.
pub(crate) fn with_profile(settings: &Node, profile: &str, span: Range<usize>) -> Node {
    let mut variant = settings.clone();
    let name = settings.name().map(|own| format!("{own}-{profile}"));
    if let TomlValue::Table(entries) = &mut variant.value {
        for (key, value) in [("name", name), ("profile", Some(profile.to_owned()))] {
            let Some(value) = value else { continue };
            entries.retain(|entry| entry.key != key);
            entries.push(Entry::at_span(&span, key, TomlValue::Text(value)));
        }
    }
    variant
}

/// Splits each `[[settings]]` and `[[ablation]]` into `name`, `profile` and `ask`, because the
/// neutral settings are a type of their own that has neither; a single `[settings]` counts as a
/// list of one.
pub(crate) fn split_settings(tree: &mut Node) {
    let TomlValue::Table(entries) = &mut tree.value else {
        return;
    };
    for key in ["settings", "ablation"] {
        if let Some(settings) = entries.iter_mut().find(|entry| entry.key == key) {
            split(&mut settings.node);
        }
    }
}
/// Splits a list of settings.
fn split(settings: &mut Node) {
    if let TomlValue::Table(_) = settings.value {
        let one = settings.clone();
        settings.value = TomlValue::List(vec![one]);
    }
    let TomlValue::List(variants) = &mut settings.value else {
        return;
    };
    for variant in variants {
        let span = variant.span.clone();
        if let TomlValue::Table(entries) = &mut variant.value {
            let (mut named, ask): (Vec<Entry>, Vec<Entry>) = std::mem::take(entries)
                .into_iter()
                .partition(|entry| ["name", "profile"].contains(&entry.key.as_str()));
            named.push(Entry::at_span(&span, "ask", TomlValue::Table(ask)));
            *entries = named;
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
