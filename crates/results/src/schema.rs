//! The JSON Schema of `results.json`, generated from the types.

use crate::model::Results;

/// The schema as it stands in `schema/results.schema.json`, pretty-printed with a final newline.
pub fn results_schema() -> String {
    let schema = schemars::schema_for!(Results);
    let mut text =
        serde_json::to_string_pretty(&schema).expect("a generated schema is always plain JSON");
    text.push('\n');
    text
}
