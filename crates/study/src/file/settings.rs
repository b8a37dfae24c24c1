//! Variants of the settings as they are written.

use std::borrow::Cow;
use std::fmt;

use pubgauge_driver::Settings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};

use crate::profile;

/// A variant of the settings. Every key but `name` and `profile` is a neutral setting; the reader hands
/// these over below `ask` (see `tree::split_settings`).
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedSettings {
    /// Shown in tables; the profile, or else `default`, if absent.
    pub name: Option<String>,
    /// The profile that it begins with ([`crate::profiles`]).
    #[serde(default, deserialize_with = "profile_name")]
    pub profile: Option<String>,
    /// The application's demands.
    #[serde(default)]
    pub ask: Settings,
}

impl NamedSettings {
    /// The name that tables show.
    pub fn shown_name(&self) -> &str {
        let name = self.name.as_deref().or(self.profile.as_deref());
        name.unwrap_or(DEFAULT)
    }
}

/// Name of the settings when none are given.
const DEFAULT: &str = "default";

/// A visitor, so that the error points at the name.
struct ProfileName;

impl Visitor<'_> for ProfileName {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a profile")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Option<String>, E> {
        match profile::profile(name) {
            Some(_) => Ok(Some(name.to_owned())),
            None => Err(E::unknown_variant(name, profile::names())),
        }
    }
}

fn profile_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    deserializer.deserialize_any(ProfileName)
}

impl Serialize for NamedSettings {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut value = serde_json::to_value(&self.ask).map_err(serde::ser::Error::custom)?;
        if let Some(table) = value.as_object_mut() {
            // TOML has no null, and an absent setting is not a setting.
            table.retain(|_, value| !value.is_null());
            table.retain(|key, value| {
                key != "native" || value.as_object().is_some_and(|n| !n.is_empty())
            });
            for (key, value) in [("name", &self.name), ("profile", &self.profile)] {
                if let Some(value) = value {
                    table.insert(key.into(), value.clone().into());
                }
            }
        }
        value.serialize(serializer)
    }
}

impl JsonSchema for NamedSettings {
    fn schema_name() -> Cow<'static, str> {
        "NamedSettings".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Settings::json_schema(generator);
        if let Some(properties) = schema.get_mut("properties").and_then(|p| p.as_object_mut()) {
            properties.insert(
                "name".into(),
                serde_json::json!({
                    "description": "Shown in tables; the profile, or else `default`, if absent.",
                    "type": ["string", "null"],
                }),
            );
            properties.insert(
                "profile".into(),
                serde_json::json!({
                    "description": "Named settings to begin with; the other keys stand above them.",
                    "enum": profile::built_in_names(),
                }),
            );
        }
        schema
    }
}
