//! How a limit is searched for, as it is written.

use pubgauge_quantities::Span;

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

/// How a limit is searched for, where a flow's `rate`, `publishers`, `subscribers`, `topics`,
/// `payload` or `burst` is "find".
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SearchFile {
    /// Width of the 95 % interval at which a search ends, as a share of its lower end, 0.02 to 1; 0.1 if
    /// absent.
    #[schemars(range(min = 0.02, max = 1.0))]
    pub width: Option<f64>,
    /// Length of the measurement of the trial that confirms the limit; 45s if absent. Those before it take
    /// as long as `phases.measure` says, 5s if absent.
    pub confirm: Option<Span>,
    /// Trials of a search at most, 6 to 1000; 30 if absent.
    #[schemars(range(min = 6, max = 1000))]
    pub trials: Option<u32>,
    /// Length of a search at most, the starts and ends of its system included; 8min if absent. No trial begins
    /// that would take it beyond, told by those before; one that has begun is not cut off.
    pub budget: Option<Span>,
}

/// In the schema: a value, "find", or a share of what another workload's "find" finds.
pub(super) struct OrFind<T>(std::marker::PhantomData<T>);

impl<T: JsonSchema> JsonSchema for OrFind<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}_or_limit", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<T>();
        let share = schemars::json_schema!({
            "type": "string",
            "description": "A share of the limit that the search of another workload finds, such as \"80% of limit\".",
            "pattern": r"^\s*[0-9][0-9_]*(\.[0-9]+)?\s*% of .*\S",
        });
        schemars::json_schema!({ "anyOf": [value, { "const": "find" }, share] })
    }
}
