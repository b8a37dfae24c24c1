//! Places of a study with a load that is not known before the run: searched for, or a share of a limit.

use std::ops::Range;

use pubgauge_strict_toml::{Node, TomlValue};

use crate::tree::put_value;
use pubgauge_search::Axis;

/// The text in place of a value that is searched for.
pub(crate) const FIND: &str = "find";

/// The position of such a value in the study.
#[derive(Clone, Debug)]
pub(crate) struct ValuePosition {
    pub(crate) axis: Axis,
    /// Index of its workload in the study's list.
    pub(crate) workload: usize,
    pub(crate) path: Vec<String>,
    pub(crate) span: Range<usize>,
    pub(crate) text: String,
}

/// Whether a text stands for a value that is not known before the run. No size and no rate has a
/// percent sign.
fn is_open(text: &str) -> bool {
    text == FIND || text.contains('%')
}

/// All such values of a study's flows.
pub(crate) fn find_places(tree: &Node) -> Vec<ValuePosition> {
    let mut places = Vec::new();
    for (workload, node) in tree.list("workload").iter().enumerate() {
        for (flow, node) in node.list("flow").iter().enumerate() {
            for entry in node.entries() {
                let (Some(axis), TomlValue::Text(text)) =
                    (Axis::named(&entry.key), &entry.node.value)
                else {
                    continue;
                };
                if is_open(text) {
                    let (nth, number) = (workload.to_string(), flow.to_string());
                    places.push(ValuePosition {
                        axis,
                        workload,
                        path: ["workload", &nth, "flow", &number, &entry.key]
                            .map(str::to_owned)
                            .to_vec(),
                        span: entry.node.span.clone(),
                        text: text.clone(),
                    });
                }
            }
        }
    }
    places
}

/// Puts a value into a place.
pub(crate) fn set_value(tree: &mut Node, place: &ValuePosition, value: TomlValue) {
    let span = place.span.clone();
    let node = Node::at_span(&span, value);
    let steps: Vec<&str> = place.path.iter().map(String::as_str).collect();
    // The path was found in this very tree.
    let _ = put_value(tree, &steps, span, &node);
}

/// A load as a value of the tree.
pub(crate) fn written(axis: Axis, load: f64) -> TomlValue {
    match axis {
        Axis::Rate | Axis::Payload => TomlValue::Text(axis.written(load)),
        _ => TomlValue::Integer(load as i64),
    }
}

/// Replaces each value that is not known by the value that a search begins with.
pub(crate) fn fill(tree: &mut Node) {
    for place in find_places(tree) {
        let value = match place.axis {
            Axis::Rate => TomlValue::Text("max".into()),
            axis => written(axis, axis.range().0),
        };
        set_value(tree, &place, value);
    }
}

/// Puts the study's own texts back into the places that [`fill`] has filled.
pub(crate) fn restored(resolved: &str, tree: &Node) -> String {
    let open = find_places(tree);
    let study = toml::from_str::<toml::Value>(resolved).ok();
    let Some(mut study) = study.filter(|_| !open.is_empty()) else {
        return resolved.to_owned();
    };
    for place in open {
        let mut at = Some(&mut study);
        for step in &place.path {
            at = at.and_then(|value| match step.parse::<usize>() {
                Ok(nth) => value.get_mut(nth),
                Err(_) => value.get_mut(step.as_str()),
            });
        }
        if let Some(value) = at {
            *value = toml::Value::String(place.text);
        }
    }
    toml::to_string(&study).unwrap_or_else(|_| resolved.to_owned())
}
