//! The JSON Schemas of `results.json` and of several studies' summary, from the types.

use schemars::JsonSchema;

use pubgauge_figures::model::{self, Results};
use pubgauge_figures::studies::{self, Studies};
use pubgauge_quantities::schema::published;

/// The schema as it stands in `schema/results.schema.json`, pretty-printed with a final newline.
pub fn results_schema() -> String {
    pretty::<Results>(model::FORMAT)
}

/// The schema as it stands in `schema/claims.schema.json`, in the same form.
pub fn claims_schema() -> String {
    pretty::<Studies>(studies::FORMAT)
}

/// The schema of a type whose files say this `format`, pretty-printed with a final newline.
pub fn pretty<T: JsonSchema>(format: &str) -> String {
    let schema = published(schemars::schema_for!(T), format);
    let mut text =
        serde_json::to_string_pretty(&schema).expect("a generated schema is always plain JSON");
    text.push('\n');
    text
}
