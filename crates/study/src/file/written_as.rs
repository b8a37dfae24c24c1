//! Values that may be written in several ways.

/// Implements `Deserialize` for what may be written in several ways; serde's untagged enums
/// would say only "did not match any variant".
macro_rules! written_as {
    ($type:ty, $expected:literal, $schema:expr $(, $visit:item)* $(,)?) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Any;
                impl<'de> Visitor<'de> for Any {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expected)
                    }
                    $($visit)*
                }
                deserializer.deserialize_any(Any)
            }
        }
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let schema: fn(&mut SchemaGenerator) -> Schema = $schema;
                schema(generator)
            }
        }
    };
}

pub(crate) use written_as;
