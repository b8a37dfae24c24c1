//! The JSON Schemas of `results.json` and of several studies' summary, from the types.

use schemars::JsonSchema;

use pubgauge_figures::model::Results;
use pubgauge_figures::studies::Studies;

/// The schema as it stands in `schema/results.schema.json`, pretty-printed with a final newline.
pub fn results_schema() -> String {
    pretty::<Results>()
}

/// The schema as it stands in `schema/claims.schema.json`, in the same form.
pub fn claims_schema() -> String {
    pretty::<Studies>()
}

fn pretty<T: JsonSchema>() -> String {
    let schema = schemars::schema_for!(T);
    let mut text =
        serde_json::to_string_pretty(&schema).expect("a generated schema is always plain JSON");
    text.push('\n');
    text
}
