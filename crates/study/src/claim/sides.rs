//! Sides of a comparison: their cells and implementations.

use std::collections::BTreeMap;

use pubgauge_figures::rule::{CellFilter, Side, range};
use pubgauge_quantities::spelling::did_you_mean;
use pubgauge_quantities::written::amount;

use crate::file::{Cells, Values};

/// Cells, or implementations, by name.
pub(super) type Sides = BTreeMap<String, Cells>;

/// Cells with a name: for a filter, the values that distinguish it.
pub(super) fn resolve_side(cells: &Cells, named: &Sides) -> Result<Side, String> {
    let name = match cells {
        Cells::Named(name) => name.clone(),
        // The key `side` comes first.
        Cells::Like(like) => (like.iter().filter(|(key, _)| *key == "side"))
            .chain(like.iter().filter(|(key, _)| *key != "side"))
            .map(|(key, Values(values))| match key.as_str() {
                "system" | "settings" | "workload" | "flow" | "side" => values.join("/"),
                axis => format!("{axis} {}", values.join("/")),
            })
            .collect::<Vec<_>>()
            .join(" "),
        Cells::Any(_) => return Err("several implementations get a name in `[side]`".into()),
    };
    let defined = match cells {
        Cells::Named(name) => named.get(name).unwrap_or(cells),
        cells => cells,
    };
    let (choice, alternatives) = match defined {
        Cells::Any(several) => {
            let each = several.iter().map(|one| alternative(one, &name));
            (None, each.collect::<Result<_, _>>()?)
        }
        Cells::Like(like) if like.contains_key("side") => narrow_side(like, named)?,
        one => (None, vec![alternative(one, &name)?]),
    };
    Ok(Side {
        name,
        choice,
        alternatives,
    })
}

/// Cells of another side, narrowed by a filter.
fn narrow_side(
    like: &BTreeMap<String, Values>,
    named: &Sides,
) -> Result<(Option<String>, Vec<CellFilter>), String> {
    let mut rest = like.clone();
    let of = rest.remove("side").map(|Values(names)| names);
    let of = match of.as_deref() {
        Some([one]) => one.clone(),
        _ => return Err("`side` is the name of one side".into()),
    };
    let Some(cells) = named.get(&of) else {
        let near = did_you_mean(&of, named.keys());
        return Err(format!("`{of}` is no name of `[side]`{near}"));
    };
    if matches!(cells, Cells::Like(like) if like.contains_key("side")) {
        return Err(format!("`{of}` has a `side` itself; name that one"));
    }
    let more = self::cells(&rest)?;
    let mut alternatives = resolve_side(&Cells::Named(of.clone()), named)?.alternatives;
    for filter in &mut alternatives {
        filter.extend(more.clone());
    }
    Ok((Some(of), alternatives))
}

fn alternative(one: &Cells, name: &str) -> Result<CellFilter, String> {
    match one {
        Cells::Named(system) => Ok(CellFilter::from([("system".into(), vec![system.clone()])])),
        Cells::Like(like) if like.contains_key("side") => Err(format!(
            "an implementation of `{name}` names its system; `side` stands for one side in all"
        )),
        Cells::Like(like) => cells(like),
        Cells::Any(_) => Err("a list of implementations has no lists in it".into()),
    }
}

/// The values of a filter. Text with `..` beside a quantity must be a valid range.
pub(super) fn cells(like: &BTreeMap<String, Values>) -> Result<CellFilter, String> {
    if like.contains_key("side") {
        return Err("`side` stands in `sides` and `against`, not in `where`".into());
    }
    let end = |text: &str| text.trim().is_empty() || amount(text).is_some();
    for text in like.values().flat_map(|Values(values)| values) {
        if let Some((low, high)) = text.split_once("..")
            && (end(low) || end(high))
            && range(text).is_none()
        {
            return Err(format!(
                "`{text}` is no range of values; expected one such as \"64B..1KiB\", \"..1KiB\" or \"1KiB..\", \
                 both ends included, the smaller one first"
            ));
        }
    }
    let values = |(key, Values(values)): (&String, &Values)| (key.clone(), values.clone());
    Ok(like.iter().map(values).collect())
}
