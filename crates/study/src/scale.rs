//! Sizes of a study: the values of a table `[scale.NAME]` replace those of the study.

use std::ops::Range;

use pubgauge_quantities::spelling::did_you_mean;
use pubgauge_strict_toml::{Entry, InvalidInput, Node, TomlValue};

use crate::study::Study;
use crate::tree::put_value;

/// The size that every study has: as it is written.
pub const FULL: &str = "full";

/// Keys that cannot be merged.
#[derive(Debug, PartialEq)]
struct Misfit {
    span: Range<usize>,
    message: String,
}

impl Study {
    /// Chooses a size of the study, as `--scale NAME` asks: its table `[scale.NAME]` is merged into
    /// the study, table by table, and element by element of lists whose elements have names. Values
    /// and other lists are replaced as a whole. `full` is the study as written.
    ///
    /// # Errors
    /// If the study has no such scale, or the scale names an element that the study does not have.
    pub fn apply_scale(&mut self, name: &str) -> Result<(), InvalidInput> {
        if name == FULL {
            return Ok(());
        }
        let scales = self.tree.get("scale");
        let entries = scales.map_or(&[][..], |entry| entry.node.entries());
        let Some(chosen) = entries.iter().find(|entry| entry.key == name) else {
            let names: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
            let near = did_you_mean(name, names.iter().copied().chain([FULL]));
            let hint = if names.is_empty() {
                "the study has no scales: leave --scale out".to_owned()
            } else {
                format!("the study has {}, and {FULL}", names.join(", "))
            };
            let (flag, message) = (
                format!("--scale {name}"),
                format!("there is no scale `{name}`{near}"),
            );
            return Err(InvalidInput::plain(&flag, message, Some(&hint)));
        };
        let (over, span) = (chosen.node.clone(), chosen.span.clone());
        let wrong = |misfit: Misfit| {
            InvalidInput::single(
                self.sources
                    .problem(Some(misfit.span), misfit.message, None),
            )
        };
        if let Some(inner) = over.get("scale") {
            let (span, message) = (inner.span.clone(), "a scale has no scales".to_owned());
            return Err(wrong(Misfit { span, message }));
        }
        let mut tree = self.tree.clone();
        merge(&mut tree, &over, "the study").map_err(wrong)?;
        // A run that is resumed from its stored study must not scale it twice: the chosen scale
        // then changes nothing.
        let none = Entry::at_span(&span, name, TomlValue::Table(Vec::new()));
        let only = Node::at_span(&span, TomlValue::Table(vec![none]));
        // A table at the top of the study.
        let _ = put_value(&mut tree, &["scale"], span, &only);
        self.tree = tree;
        self.scale = Some(name.to_owned());
        Ok(())
    }

    /// Whether all scales of the study can be chosen.
    pub(crate) fn check_scales(&self) -> Result<(), InvalidInput> {
        let Some(scales) = self.tree.get("scale") else {
            return Ok(());
        };
        for scale in scales.node.entries() {
            if scale.key == FULL {
                let message =
                    format!("`{FULL}` is the study as written, and is not a scale of its own");
                let at = Some(scale.span.clone());
                return Err(InvalidInput::single(
                    self.sources.problem(at, message, None),
                ));
            }
            if !matches!(scale.node.value, TomlValue::Table(_)) {
                // Decoding says what is expected.
                return self.file().map(|_| ());
            }
            let mut study = self.clone();
            study.apply_scale(&scale.key)?;
            study.file()?;
        }
        Ok(())
    }
}

/// Merges `over` into `node`, which messages call `what`.
fn merge(node: &mut Node, over: &Node, what: &str) -> Result<(), Misfit> {
    if let (TomlValue::List(list), TomlValue::List(overs)) = (&mut node.value, &over.value)
        && by_name(list)
        && by_name(overs)
    {
        return overs.iter().try_for_each(|over| element(list, over, what));
    }
    match (&mut node.value, &over.value) {
        (TomlValue::Table(entries), TomlValue::Table(overs)) => {
            for over in overs {
                match entries.iter_mut().find(|entry| entry.key == over.key) {
                    Some(entry) => merge(&mut entry.node, &over.node, &over.key)?,
                    None => entries.push(over.clone()),
                }
            }
        }
        _ => *node = over.clone(),
    }
    Ok(())
}

/// Merges `over` into the list's element of the same name.
fn element(list: &mut [Node], over: &Node, what: &str) -> Result<(), Misfit> {
    let name = label(over).unwrap_or_default();
    let names: Vec<String> = list.iter().filter_map(label).map(str::to_owned).collect();
    match list.iter_mut().find(|node| label(node) == Some(name)) {
        Some(node) => merge(node, over, what),
        None => Err(Misfit {
            span: over.span.clone(),
            message: format!(
                "the study has no {what} `{name}`{}; there is {}",
                did_you_mean(name, &names),
                names.join(", ")
            ),
        }),
    }
}

/// Whether a list has elements, and all have names.
fn by_name(list: &[Node]) -> bool {
    !list.is_empty() && list.iter().all(|node| label(node).is_some())
}

/// The name of an element of a list; of a claim its id.
fn label(node: &Node) -> Option<&str> {
    node.name().or_else(|| node.text("id"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::path::Path;

    use super::*;

    fn node(value: TomlValue) -> Node {
        Node { span: 0..0, value }
    }

    fn table(entries: impl IntoIterator<Item = (String, Node)>) -> Node {
        let entry = |(key, node)| Entry {
            key,
            span: 0..0,
            node,
        };
        node(TomlValue::Table(entries.into_iter().map(entry).collect()))
    }

    /// Values, lists of values, tables, and lists of tables with names; the latter are complete where `all`.
    fn tree(all: bool) -> impl Strategy<Value = Node> {
        let leaf = prop_oneof![
            any::<i64>().prop_map(|n| node(TomlValue::Integer(n))),
            "[a-z]{1,3}".prop_map(|text| node(TomlValue::Text(text))),
            prop::collection::vec(any::<i64>(), 0..3).prop_map(|list| node(TomlValue::List(
                list.into_iter()
                    .map(|n| node(TomlValue::Integer(n)))
                    .collect()
            ))),
        ];
        let tables = leaf.prop_recursive(3, 24, 4, move |inner| {
            let tables = prop::collection::btree_map("[a-d]", inner.clone(), 0..4);
            let named =
                prop::collection::btree_map("[x-z]", tables.clone(), if all { 3..4 } else { 1..4 });
            prop_oneof![
                tables.prop_map(table),
                named.prop_map(|elements| {
                    let element =
                        |(name, entries): (String, std::collections::BTreeMap<String, Node>)| {
                            let name = ("name".to_owned(), node(TomlValue::Text(name)));
                            table(entries.into_iter().chain([name]))
                        };
                    node(TomlValue::List(elements.into_iter().map(element).collect()))
                }),
            ]
        });
        prop::collection::btree_map("[a-d]", tables, 0..4).prop_map(table)
    }

    /// Whether a node has others below it that are merged one by one.
    fn inner(node: &Node) -> bool {
        match &node.value {
            TomlValue::Table(_) => true,
            TomlValue::List(list) => by_name(list),
            _ => false,
        }
    }

    fn below<'a>(node: &'a Node, step: &str) -> Option<&'a Node> {
        match &node.value {
            TomlValue::Table(_) => node.get(step).map(|entry| &entry.node),
            TomlValue::List(list) if by_name(list) => {
                list.iter().find(|node| label(node) == Some(step))
            }
            _ => None,
        }
    }

    fn steps(node: &Node) -> Vec<String> {
        match &node.value {
            TomlValue::Table(entries) => entries.iter().map(|entry| entry.key.clone()).collect(),
            TomlValue::List(list) if by_name(list) => {
                list.iter().filter_map(label).map(str::to_owned).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The value that must be at a place, worked out from the definition and not as `merge` does it.
    fn expected(base: Option<&Node>, over: Option<&Node>) -> serde_json::Value {
        let same_kind = |a: &Node, b: &Node| {
            matches!(a.value, TomlValue::Table(_)) == matches!(b.value, TomlValue::Table(_))
        };
        match (base, over) {
            (Some(base), None) => base.to_json(),
            (None, Some(over)) => over.to_json(),
            (Some(base), Some(over)) if inner(base) && inner(over) && same_kind(base, over) => {
                let mut all = steps(base);
                all.extend(
                    steps(over)
                        .into_iter()
                        .filter(|step| below(base, step).is_none()),
                );
                let each = all
                    .iter()
                    .map(|step| (step.clone(), expected(below(base, step), below(over, step))));
                match base.value {
                    TomlValue::Table(_) => each.collect(),
                    _ => each.map(|(_, value)| value).collect(),
                }
            }
            (_, Some(over)) => over.to_json(),
            (None, None) => serde_json::Value::Null,
        }
    }

    proptest! {
        /// Everything that the scale says is there, and all else is as it was.
        #[test]
        fn a_merge_keeps_everything_else(base in tree(true), over in tree(false)) {
            let mut merged = base.clone();
            prop_assert_eq!(merge(&mut merged, &over, "study"), Ok(()));
            prop_assert_eq!(merged.to_json(), expected(Some(&base), Some(&over)));
        }

        /// A scale that says nothing changes nothing, and one that is applied twice is applied once.
        #[test]
        fn a_merge_is_done_once(base in tree(true), over in tree(false)) {
            let mut none = base.clone();
            prop_assert_eq!(merge(&mut none, &table([]), "study"), Ok(()));
            prop_assert_eq!(none.to_json(), base.to_json());
            let mut once = base.clone();
            prop_assert_eq!(merge(&mut once, &over, "study"), Ok(()));
            let mut twice = once.clone();
            prop_assert_eq!(merge(&mut twice, &over, "study"), Ok(()));
            prop_assert_eq!(twice.to_json(), once.to_json());
        }
    }

    #[test]
    fn what_a_run_stores_is_not_scaled_again() {
        let text = "name = \"t\"\nrepeats = 5\n[scale.smoke]\nrepeats = 3\n[scale.tiny]\nrepeats = 1\n\
                    [[workload]]\nname = \"w\"\n[[workload.flow]]\npayload = \"64B\"\nrate = \"10/s\"\n";
        let mut study = Study::parse("t.toml", text, Path::new("")).expect("TOML");
        study.apply_scale("smoke").expect("a scale");
        study.apply_set("repeats=4").expect("a path");
        let stored = toml::to_string(&study.file().expect("a study")).expect("TOML");
        let mut again = Study::parse("stored", &stored, Path::new("")).expect("TOML");
        again.apply_scale("smoke").expect("the scale is known");
        assert_eq!(again.file().expect("a study").repeats, Some(4));
        assert_eq!(again.scale.as_deref(), Some("smoke"));
    }
}
