//! Columns of nested records, from their JSON Schema: a new figure in results becomes a column
//! without a change here, and a figure that no trial of a run has keeps its column and type.

use pubgauge_figures::distribution::is_quotable;
use schemars::JsonSchema;
use serde_json::Value;

use crate::table::{CellType, ExportColumn};

/// The columns of a type: the parts of its records that are single values.
pub struct Flat {
    columns: Vec<(ExportColumn, Vec<String>)>,
}

/// Units that names end in: for example, `latency_ns.p99` becomes `latency_p99_ns`.
const UNITS: [&str; 3] = ["ns", "s", "bytes"];

/// Parts of a distribution that are counts, not times.
const COUNTS: [&str; 3] = ["count", "censored", "messages"];

/// The part of a distribution that has no columns: where each percentile lies is in `results.json` alone.
const BOUNDS: &str = "bounds";

impl Flat {
    /// The columns of `T`, without its lists, its maps, and the fields named in `without`, with
    /// dots between the parts of a name.
    pub fn columns_of<T: JsonSchema>(without: &[&str]) -> Flat {
        let schema = schemars::schema_for!(T).to_value();
        let mut columns = Vec::new();
        walk(&schema, &schema, &mut Vec::new(), without, &mut columns);
        Flat { columns }
    }

    pub fn columns(&self) -> impl Iterator<Item = ExportColumn> + '_ {
        self.columns.iter().map(|(column, _)| column.clone())
    }

    /// The cells of a record. A percentile with less than one value beyond it cannot be quoted and
    /// is left empty.
    pub fn cells<'a>(&'a self, record: &'a Value) -> impl Iterator<Item = Value> + 'a {
        let one = move |(column, path): &(ExportColumn, Vec<String>)| {
            let (last, before) = path.split_last()?;
            let parent = before.iter().try_fold(record, |at, key| at.get(key))?;
            let value = parent.get(last).filter(|_| is_quotable(parent, last))?;
            let is_record = column.kind == CellType::Text && !value.is_string() && !value.is_null();
            Some(if is_record {
                Value::String(value.to_string())
            } else {
                value.clone()
            })
        };
        self.columns.iter().map(one).map(Option::unwrap_or_default)
    }
}

fn walk(
    root: &Value,
    schema: &Value,
    path: &mut Vec<String>,
    without: &[&str],
    columns: &mut Vec<(ExportColumn, Vec<String>)>,
) {
    let Some(fields) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    for (name, field) in fields {
        let field = meant(root, field);
        path.push(name.clone());
        match kind(field) {
            _ if without.contains(&path.join(".").as_str()) || name == BOUNDS => {}
            Some(kind) => {
                let name = column_name(path);
                columns.push((ExportColumn { name, kind }, path.clone()));
            }
            None => walk(root, field, path, without, columns),
        }
        path.pop();
    }
}

/// The schema that a field refers to, without `null`.
fn meant<'a>(root: &'a Value, field: &'a Value) -> &'a Value {
    let either = field.get("anyOf").and_then(Value::as_array);
    let not_null = either.and_then(|all| all.iter().find(|one| one["type"] != "null"));
    let field = not_null.unwrap_or(field);
    let target = field.get("$ref").and_then(Value::as_str);
    let target = target.and_then(|name| root.pointer(name.strip_prefix('#')?));
    target.unwrap_or(field)
}

/// The kind of a single value; `None` for records, lists and maps.
fn kind(schema: &Value) -> Option<CellType> {
    let is = |name: &str| match &schema["type"] {
        Value::String(one) => one == name,
        Value::Array(several) => several.iter().any(|one| one == name),
        _ => false,
    };
    // Text, and text beside records, such as `off` beside `{ bytes = 16384 }`.
    if is("string") || schema.get("oneOf").is_some() || schema.get("enum").is_some() {
        return Some(CellType::Text);
    }
    [
        ("integer", CellType::Integer),
        ("number", CellType::Real),
        ("boolean", CellType::Flag),
    ]
    .into_iter()
    .find_map(|(name, kind)| is(name).then_some(kind))
}

/// Joins the parts of a path to a name that ends in the unit.
fn column_name(path: &[String]) -> String {
    let mut parts: Vec<String> = path.iter().map(|part| part.replace('-', "_")).collect();
    if let [first, .., last] = &mut parts[..]
        && let Some((stem, unit)) = first.rsplit_once('_')
        && UNITS.contains(&unit)
    {
        if !COUNTS.contains(&last.as_str()) {
            last.push('_');
            last.push_str(unit);
        }
        *first = stem.to_owned();
    }
    parts.join("_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubgauge_figures::model::Trial;

    #[test]
    fn names_end_in_their_unit() {
        let name =
            |path: &[&str]| column_name(&path.iter().map(|p| (*p).into()).collect::<Vec<_>>());
        assert_eq!(name(&["latency_ns", "p99_9"]), "latency_p99_9_ns");
        assert_eq!(name(&["latency_ns", "count"]), "latency_count");
        assert_eq!(
            name(&["client_cpu_s", "publishers"]),
            "client_cpu_publishers_s"
        );
        assert_eq!(name(&["system_cpu_s"]), "system_cpu_s");
        assert_eq!(name(&["settings", "in-flight"]), "settings_in_flight");
        assert_eq!(name(&["connections", "connect_s"]), "connections_connect_s");
    }

    #[test]
    fn every_single_value_of_a_trial_is_a_column_of_its_type() {
        let flat = Flat::columns_of::<Trial>(&["workload.name"]);
        let kind = |name: &str| flat.columns().find(|c| c.name == name).map(|c| c.kind);
        assert_eq!(kind("published"), Some(CellType::Integer));
        assert_eq!(kind("system_cpu_s"), Some(CellType::Real));
        assert_eq!(kind("drain_cut_short"), Some(CellType::Flag));
        assert_eq!(kind("verdict_status"), Some(CellType::Text));
        assert_eq!(kind("settings_reliability"), Some(CellType::Text));
        assert_eq!(kind("settings_batching"), Some(CellType::Text));
        assert_eq!(kind("acknowledgement_p99_ns"), Some(CellType::Integer));
        assert_eq!(kind("round_trip_mean_ns"), Some(CellType::Real));
        for absent in [
            "series",
            "flows",
            "settings_native",
            "verdict_reasons",
            "workload_name",
        ] {
            assert_eq!(kind(absent), None, "{absent}");
        }
        let mut names: Vec<String> = flat.columns().map(|c| c.name).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all, "no two columns of a name");
    }
}
