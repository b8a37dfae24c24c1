//! Settings that only one driver knows, `native.DRIVER.*`: a driver declares them as a type.

use std::marker::PhantomData;
use std::sync::OnceLock;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::resolution::{Resolution, spelt};
use crate::settings::Settings;

/// A driver's own settings: the fields of a struct `T`, each optional.
///
/// A field's name in kebab case is the setting's name. Its type, with `#[schemars(range(...))]` for a number,
/// says which values it takes. The first paragraph of its documentation says what it is in the system's
/// own terms, for example `ZMQ_SNDHWM`; that of an enum's variant says what the choice means.
#[derive(Debug)]
pub struct NativeSettings<T> {
    driver: &'static str,
    properties: OnceLock<Map<String, Value>>,
    fields: PhantomData<fn() -> T>,
}

impl<T: Default + DeserializeOwned + JsonSchema> NativeSettings<T> {
    /// The settings under `native.DRIVER`.
    pub const fn for_driver(driver: &'static str) -> Self {
        NativeSettings {
            driver,
            properties: OnceLock::new(),
            fields: PhantomData,
        }
    }

    /// The JSON Schema of the table `native.DRIVER`.
    pub fn schema(&self) -> Value {
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": self.properties(),
        })
    }

    /// Reads the driver's own settings. A row of `table` says what each is on the system. A setting that does
    /// not exist, or does not take its value, is refused there and left out.
    pub fn read(&self, settings: &Settings, table: &mut Resolution) -> T {
        let mut sound = Map::new();
        for (name, value) in settings.native.get(self.driver).into_iter().flatten() {
            let setting = format!("native.{}.{name}", self.driver);
            let shown = spelt(&Some(value)).unwrap_or_default();
            match self.check(name, value) {
                Ok(()) => {
                    table.row(&setting, Some(shown), self.native(name, value));
                    sound.insert(name.clone(), value.clone());
                }
                Err(reason) => table.refuse(&setting, shown, reason),
            }
        }
        // Each field was read by itself.
        serde_json::from_value(sound.into()).unwrap_or_default()
    }

    /// A setting of this name and value, in the system's own terms.
    pub fn native(&self, name: &str, value: &Value) -> String {
        let property = self.properties().get(name);
        let native = property.and_then(first_paragraph);
        let native = native.unwrap_or_else(|| name.to_owned());
        let shown = spelt(&Some(value)).unwrap_or_default();
        let variants = property.and_then(|property| property.get("oneOf")?.as_array());
        let chosen = variants.into_iter().flatten();
        match chosen
            .filter(|one| one.get("const") == Some(value))
            .find_map(first_paragraph)
        {
            Some(meaning) => format!("{native}: {shown}. {meaning}"),
            None => format!("{native}: {shown}"),
        }
    }

    /// The error in a setting's name or value.
    fn check(&self, name: &str, value: &Value) -> Result<(), String> {
        let properties = self.properties();
        let Some(property) = properties.get(name) else {
            return Err(unknown(name, &properties.keys().collect::<Vec<_>>()));
        };
        let limit = |key: &str| property.get(key).and_then(Value::as_f64);
        let outside = value.as_f64().is_some_and(|number| {
            limit("minimum").is_some_and(|least| number < least)
                || limit("maximum").is_some_and(|most| number > most)
        });
        let wrong = match serde_json::from_value::<T>(json!({ name: value })) {
            Ok(_) if !outside && !value.is_null() => return Ok(()),
            Ok(_) => "expected a value".to_owned(),
            Err(error) => error.to_string(),
        };
        Err(expected(property).unwrap_or(wrong))
    }

    fn properties(&self) -> &Map<String, Value> {
        self.properties.get_or_init(|| {
            let mut settings = SchemaSettings::draft2020_12();
            settings.inline_subschemas = true;
            let schema = settings.into_generator().into_root_schema_for::<T>();
            let properties = schema.get("properties").and_then(Value::as_object);
            let given =
                |(name, property): (&String, &Value)| (name.clone(), without_null(property));
            properties.into_iter().flatten().map(given).collect()
        })
    }
}

/// The schema of a value that is given: without the null that stands for one that is not.
fn without_null(property: &Value) -> Value {
    let mut property = property.clone();
    let Some(fields) = property.as_object_mut() else {
        return property;
    };
    let null = json!({ "type": "null" });
    if let Some(Value::Array(ways)) = fields.remove("anyOf") {
        for way in ways.into_iter().filter(|way| *way != null) {
            for (key, value) in way.as_object().cloned().unwrap_or_default() {
                fields.entry(key).or_insert(value);
            }
        }
    }
    for key in ["type", "enum"] {
        let Some(Value::Array(among)) = fields.get_mut(key) else {
            continue;
        };
        among.retain(|one| !one.is_null() && one != "null");
        if let ("type", [one]) = (key, among.as_slice()) {
            let one = one.clone();
            fields.insert(key.to_owned(), one);
        }
    }
    if fields.get("default").is_some_and(Value::is_null) {
        fields.remove("default");
    }
    property
}

/// The first paragraph of what the documentation says of a schema, as a part of a sentence.
fn first_paragraph(schema: &Value) -> Option<String> {
    let text = schema.get("description")?.as_str()?;
    let first = text.split("\n\n").next()?.replace('\n', " ");
    Some(first.trim_end_matches('.').to_owned())
}

/// Which values a setting takes, in words; `None` where its type says what is wrong with one.
fn expected(property: &Value) -> Option<String> {
    let of = |key: &str| property.get(key);
    // Variants with documentation stand apart from those without.
    let ways = of("oneOf").and_then(Value::as_array).into_iter().flatten();
    let choices: Vec<String> = ways
        .chain([property])
        .flat_map(|way| {
            let several = way.get("enum").and_then(Value::as_array);
            several.into_iter().flatten().chain(way.get("const"))
        })
        .map(Value::to_string)
        .collect();
    if let Some((last, others)) = choices.split_last() {
        let or = if others.is_empty() { "" } else { " or " };
        return Some(format!("expected {}{or}{last}", others.join(", ")));
    }
    let kind = match of("type")?.as_str()? {
        "boolean" => return Some("expected true or false".to_owned()),
        "integer" => "whole number",
        "number" => "number",
        _ => return None,
    };
    let bound = |word: &str, key: &str| of(key).map_or(String::new(), |n| format!(" {word} {n}"));
    let (least, most) = (bound("from", "minimum"), bound("to", "maximum"));
    Some(format!("expected a {kind}{least}{most}"))
}

/// Likeness (Jaro-Winkler, 0 to 1) from which a name may have been meant.
const LIKELY: f64 = 0.75;

fn unknown(name: &str, known: &[&String]) -> String {
    let nearest = known
        .iter()
        .map(|known| (strsim::jaro_winkler(name, known), known))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(likeness, _)| *likeness > LIKELY);
    let meant = nearest.map_or(String::new(), |(_, known)| {
        format!("; did you mean `{known}`?")
    });
    let known: Vec<&str> = known.iter().map(|known| known.as_str()).collect();
    format!(
        "not a setting of this driver{meant} (it has {})",
        known.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    /// The messages that wait.
    #[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    enum Order {
        Newest,
        /// The one that came first.
        Oldest,
        Any,
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(try_from = "String")]
    struct Word(String);

    impl TryFrom<String> for Word {
        type Error = &'static str;

        fn try_from(text: String) -> Result<Self, Self::Error> {
            if text.contains(' ') {
                Err("expected one word")
            } else {
                Ok(Word(text))
            }
        }
    }

    #[derive(Debug, Default, PartialEq, Deserialize, JsonSchema)]
    #[serde(default, rename_all = "kebab-case")]
    struct Shared {
        /// TCP_NODELAY.
        no_delay: bool,
    }

    #[derive(Debug, Default, PartialEq, Deserialize, JsonSchema)]
    #[serde(default, rename_all = "kebab-case")]
    struct Own {
        /// Depth of the
        /// queue.
        ///
        /// More about it.
        #[schemars(range(min = 1, max = 10))]
        depth: Option<u16>,
        /// Which is taken.
        order: Option<Order>,
        /// Delay, ms.
        #[schemars(range(min = 0.5))]
        delay_ms: Option<f64>,
        /// Name.
        name: Option<Word>,
        #[serde(flatten)]
        shared: Shared,
    }

    static OWN: NativeSettings<Own> = NativeSettings::for_driver("x");

    fn read(own: Value) -> (Own, Result<Vec<String>, Vec<String>>) {
        let settings: Settings = serde_json::from_value(json!({ "native": { "x": own } })).unwrap();
        let mut table = Resolution::default();
        let own = OWN.read(&settings, &mut table);
        let rows = table.finish(()).map(|((), rows)| {
            let shown =
                |row: &crate::Mapping| format!("{} = {}: {}", row.setting, row.value, row.native);
            rows.iter().map(shown).collect()
        });
        let reasons = |list: Vec<crate::Unsupported>| list.into_iter().map(|u| u.reason).collect();
        (own, rows.map_err(reasons))
    }

    #[test]
    fn fields_are_read_and_say_what_they_are() {
        let (own, rows) = read(json!({
            "depth": 7, "order": "oldest", "delay-ms": 2.5, "name": "a", "no-delay": true,
        }));
        let wanted = Own {
            depth: Some(7),
            order: Some(Order::Oldest),
            delay_ms: Some(2.5),
            name: Some(Word("a".into())),
            shared: Shared { no_delay: true },
        };
        assert_eq!(own, wanted);
        let shown = [
            "native.x.delay-ms = 2.5: Delay, ms: 2.5",
            "native.x.depth = 7: Depth of the queue: 7",
            "native.x.name = a: Name: a",
            "native.x.no-delay = true: TCP_NODELAY: true",
            "native.x.order = oldest: Which is taken: oldest. The one that came first",
        ];
        assert_eq!(rows.unwrap(), shown);
        assert_eq!(read(json!({})).0, Own::default());
    }

    #[test]
    fn values_that_a_field_does_not_take_are_refused_with_those_that_it_takes() {
        let depth = "expected a whole number from 1 to 10";
        for (wrong, reason) in [
            (json!({ "depth": 0 }), depth),
            (json!({ "depth": 11 }), depth),
            (json!({ "depth": -1 }), depth),
            (json!({ "depth": 2.5 }), depth),
            (json!({ "depth": "7" }), depth),
            (json!({ "depth": null }), depth),
            (
                json!({ "order": "first" }),
                "expected \"newest\", \"any\" or \"oldest\"",
            ),
            (json!({ "delay-ms": 0.4 }), "expected a number from 0.5"),
            (json!({ "name": "a b" }), "expected one word"),
            (json!({ "no-delay": 1 }), "expected true or false"),
            (
                json!({ "dept": 1 }),
                "not a setting of this driver; did you mean `depth`? \
                 (it has delay-ms, depth, name, no-delay, order)",
            ),
        ] {
            let (own, refused) = read(wrong.clone());
            assert_eq!(own, Own::default(), "{wrong}");
            assert_eq!(refused.unwrap_err(), [reason], "{wrong}");
        }
    }

    #[test]
    fn what_is_sound_is_read_beside_what_is_not() {
        let (own, refused) = read(json!({ "depth": 3, "order": 1 }));
        assert_eq!(own.depth, Some(3));
        assert_eq!(refused.unwrap_err().len(), 1);
    }

    #[test]
    fn the_schema_takes_what_is_read() {
        let schema = OWN.schema();
        let properties = &schema["properties"];
        assert_eq!(properties["depth"]["type"], "integer");
        assert_eq!(properties["depth"]["maximum"], 10);
        assert_eq!(properties["no-delay"]["type"], "boolean");
        assert_eq!(schema["additionalProperties"], false);
    }
}
