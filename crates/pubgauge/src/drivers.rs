//! The drivers this program was built with.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use pubgauge_collect_driver::CollectDriver;
use pubgauge_driver::Drivers;
use pubgauge_driver_amqp::AmqpDriver;
use pubgauge_driver_cyclonedds::CycloneddsDriver;
use pubgauge_driver_dds_mixed::Mixed;
use pubgauge_driver_fastdds::FastddsDriver;
use pubgauge_driver_nats::NatsDriver;
use pubgauge_driver_xmpp::XmppDriver;
use pubgauge_driver_zeromq::ZeromqDriver;
use pubgauge_quantities::schema::published;
use pubgauge_simulator::SimulatedDriver;
use pubgauge_testbed::Testbed;
use serde_json::{Value, json};

static ALL: LazyLock<Drivers> = LazyLock::new(|| {
    Drivers::new(vec![
        Arc::new(AmqpDriver),
        Arc::new(CycloneddsDriver),
        Arc::new(Mixed::FAST_TO_CYCLONE),
        Arc::new(FastddsDriver),
        Arc::new(CollectDriver),
        Arc::new(NatsDriver),
        Arc::new(XmppDriver),
        Arc::new(ZeromqDriver),
        Arc::new(SimulatedDriver),
    ])
    .expect("no two of them have a name or a scheme in common")
});

/// All drivers. This is the only list of them; facts of a driver are asked of the driver.
pub fn all() -> &'static Drivers {
    &ALL
}

/// The JSON Schema of study files, with what is under `native` for each driver.
pub fn study_schema() -> Value {
    let mut schema = pubgauge_study::schema();
    refer(&mut schema);
    schema["$defs"]["Native"] = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": all().native_schemas().collect::<BTreeMap<_, _>>(),
    });
    published(schema, "pubgauge-study").to_value()
}

/// Makes every property `native` a reference.
fn refer(schema: &mut Value) {
    let native = schema
        .pointer_mut("/properties/native")
        .and_then(Value::as_object_mut);
    if let Some(native) = native {
        native.retain(|key, _| key == "description");
        native.insert("$ref".into(), "#/$defs/Native".into());
    }
    match schema {
        Value::Object(fields) => fields.values_mut().for_each(refer),
        Value::Array(items) => items.iter_mut().for_each(refer),
        _ => {}
    }
}

/// A testbed that speaks to its systems through these drivers.
///
/// # Errors
/// If the path of this program cannot be read.
pub fn testbed() -> std::io::Result<Testbed> {
    Ok(Testbed::new()?.drivers(all().clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::{Path, PathBuf};

    #[test]
    fn every_driver_is_tuned() {
        let mut tuned: Vec<&str> = pubgauge_study::tuned().keys().map(String::as_str).collect();
        let mut names: Vec<&str> = all().names().collect();
        tuned.sort_unstable();
        names.sort_unstable();
        assert_eq!(tuned, names);
    }

    /// Each setting that a system file says can be tuned exists, and has such values.
    #[test]
    fn every_tunable_setting_is_one_of_its_driver() {
        let catalog = pubgauge_testbed::Catalog::load(&[]).unwrap();
        let validator = jsonschema::validator_for(&study_schema()).unwrap();
        let mut count = 0;
        for system in catalog.systems() {
            for tunable in system.tunable.iter().filter(|one| one.setting.is_some()) {
                let ends = [tunable.from, tunable.to]
                    .into_iter()
                    .flatten()
                    .map(Value::from);
                for value in tunable
                    .values
                    .iter()
                    .chain(&tunable.default)
                    .cloned()
                    .chain(ends)
                {
                    // The ends of a range of whole numbers are such.
                    let value = match value.as_f64().filter(|number| number.fract() == 0.0) {
                        Some(whole) => json!(whole as i64),
                        None => value,
                    };
                    let settings = pubgauge_driver::Settings::default();
                    let settings = settings.with_setting(tunable.name(), value.clone());
                    let settings = settings.unwrap_or_else(|e| panic!("{}: {e}", tunable.name()));
                    let mut variant = serde_json::to_value(&settings).unwrap();
                    let table = variant.as_object_mut().unwrap();
                    table.retain(|_, value| !value.is_null());
                    let study = json!({ "name": "t", "settings": [variant] });
                    assert!(validator.is_valid(&study), "{}: {study}", system.name);
                    count += 1;
                }
            }
        }
        assert!(count > 100, "{count}");
    }

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    /// To renew the file: `PUBGAUGE_RENEW=1 cargo test -p pubgauge the_schema_of_studies`.
    #[test]
    fn the_schema_of_studies_is_up_to_date() {
        let path = root().join("schema/study.schema.json");
        let now = format!(
            "{}\n",
            serde_json::to_string_pretty(&study_schema()).unwrap()
        );
        if std::env::var_os("PUBGAUGE_RENEW").is_some() {
            fs::write(&path, &now).unwrap();
        }
        assert!(
            fs::read_to_string(&path).unwrap_or_default() == now,
            "schema/study.schema.json is out of date; renew it with PUBGAUGE_RENEW=1"
        );
    }

    #[test]
    fn the_schema_of_studies_knows_each_drivers_own_settings() {
        let validator = jsonschema::validator_for(&study_schema()).unwrap();
        let fits = |native: Value| {
            validator.is_valid(&json!({ "name": "t", "settings": [{ "native": native }] }))
        };
        assert!(fits(
            json!({ "mqtt": { "version": "5", "no-delay": false } })
        ));
        assert!(fits(json!({ "fastdds": { "priorities": { "a/#": 3 } } })));
        assert!(fits(json!({ "simulated": { "service-later": [[1, 2]] } })));
        for wrong in [
            json!({ "mqtt": { "version": 5 } }),
            json!({ "mqtt": { "subscribe-qos": 3 } }),
            json!({ "mqtt": { "no-dely": true } }),
            json!({ "mqt": {} }),
            json!({ "zeromq": { "io-threads": 0 } }),
        ] {
            assert!(!fits(wrong.clone()), "{wrong}");
        }
    }

    #[test]
    fn every_native_setting_is_documented() {
        let page = fs::read_to_string(root().join("docs/settings.md")).unwrap();
        for (driver, schema) in all().native_schemas() {
            let (_, section) = page
                .split_once(&format!("### `native.{driver}`"))
                .unwrap_or_else(|| panic!("{driver}"));
            let section = section.split("\n### ").next().unwrap();
            for (name, property) in schema["properties"].as_object().unwrap() {
                assert!(property["description"].is_string(), "{driver}.{name}");
                let named = section.contains(&format!("`{name}`"));
                assert!(named || driver == "simulated", "{driver}.{name}");
            }
        }
    }

    #[test]
    fn no_two_drivers_claim_one_scheme() {
        let mut schemes: Vec<&str> = all().schemes().map(|(_, scheme)| scheme.name).collect();
        let all = schemes.len();
        schemes.sort_unstable();
        schemes.dedup();
        assert_eq!(schemes.len(), all);
        assert!(schemes.contains(&"mqtts") && schemes.contains(&"zmq-forwarder+ipc"));
    }
}
