//! Every study in the repository keeps to the committed JSON Schema and can be read.

use std::fs;
use std::path::{Path, PathBuf};

use pubgauge_study::{PlanOptions, Study};
use pubgauge_workload::Schedule;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn studies() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("studies")).expect("the folder of studies");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths
}

/// The committed schema, which has the drivers' own settings too.
fn committed() -> jsonschema::Validator {
    let text = fs::read_to_string(root().join("schema/study.schema.json")).expect("the schema");
    let schema = serde_json::from_str(&text).expect("JSON");
    jsonschema::validator_for(&schema).expect("a sound schema")
}

#[test]
fn every_study_keeps_to_the_schema() {
    let validator = committed();
    for path in studies() {
        let text = fs::read_to_string(&path).expect("readable");
        let value: toml::Table = text.parse().expect("TOML");
        let value = serde_json::to_value(value).expect("JSON");
        let errors: Vec<String> = validator
            .iter_errors(&value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{}: {errors:#?}", path.display());
        let study = Study::open(&path).unwrap_or_else(|error| panic!("{error}"));
        study.file().unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Editors that know TOML (taplo, Even Better TOML) take the schema from the first line.
#[test]
fn every_study_names_its_schema() {
    for path in studies() {
        let text = fs::read_to_string(&path).expect("readable");
        let first = text.lines().next().unwrap_or_default();
        let schema = first.strip_prefix("#:schema ");
        let schema = schema.unwrap_or_else(|| panic!("{}: {first}", path.display()));
        let named = path.parent().expect("a folder").join(schema);
        let committed = root().join("schema/study.schema.json");
        assert_eq!(
            named.canonicalize().expect("it is there"),
            committed.canonicalize().expect("it is there"),
            "{}",
            path.display()
        );
    }
}

#[test]
fn the_schema_refuses_what_the_reader_refuses() {
    let validator = committed();
    let refused = |text: &str| {
        let value: toml::Table = text.parse().expect("TOML");
        let value = serde_json::to_value(value).expect("JSON");
        let by_reader = Study::parse("t", text, Path::new(""))
            .and_then(|s| s.file())
            .is_err();
        (!validator.is_valid(&value), by_reader)
    };
    for text in [
        "name = \"t\"\nrepaets = 1",
        "name = \"t\"\norder = \"randum\"",
        "name = \"t\"\n[[workload]]\nname = \"w\"\n[[workload.flow]]\npayload = \"64 kb\"",
        "name = \"t\"\n[[workload]]\nname = \"w\"\n[[workload.flow]]\nrate = 5",
        "name = \"t\"\n[[settings]]\nreliabilty = \"x\"",
        "question = \"no name\"",
    ] {
        assert_eq!(refused(text), (true, true), "{text}");
    }
    assert_eq!(refused("name = \"t\""), (false, false));
}

/// The studies with recorded traces need the recordings, whose folder `PUBGAUGE_DATA` names.
#[test]
fn every_study_can_be_planned() {
    assert!(
        std::env::var_os("PUBGAUGE_DATA").is_some(),
        "PUBGAUGE_DATA must name the folder with the recorded data"
    );
    let known = [
        "mosquitto",
        "zeromq-direct",
        "nats:mqtt",
        "cyclonedds",
        "fastdds",
        "rabbitmq:mqtt",
    ];
    let options = PlanOptions::with_systems(known);
    for path in studies() {
        let study = Study::open(&path).unwrap_or_else(|error| panic!("{error}"));
        let plan = study
            .plan(&options)
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(!plan.trials.is_empty(), "{}", path.display());
        for flow in plan.trials.iter().flat_map(|trial| &trial.workload.flows) {
            let shard = 0..flow.publishers.len() as u32;
            let first = Schedule::new(flow, shard, 1).take(1000).count();
            assert_eq!(first, 1000, "{}: {}", path.display(), flow.name);
        }
    }
}

/// Every example of the documentation is a study, or becomes one with a workload below it.
#[test]
fn the_documentation_can_be_read() {
    let mut examples = 0;
    for page in ["docs/study-format.md", "docs/traces.md", "docs/claims.md"] {
        let text = fs::read_to_string(root().join(page)).expect("the page");
        for block in text.split("```toml\n").skip(1) {
            let block = block.split("```").next().unwrap_or_default();
            let inside_flow = ["payload = ", "replay = "]
                .iter()
                .any(|k| block.starts_with(k));
            for line in block.lines().filter(|_| inside_flow) {
                let text = format!(
                    "name = \"t\"\n[[workload]]\nname = \"w\"\n[[workload.flow]]\n{line}\n"
                );
                Study::parse(page, &text, Path::new(""))
                    .and_then(|s| s.file())
                    .unwrap_or_else(|e| panic!("{e}"));
                examples += 1;
            }
            if !inside_flow {
                let named = block.starts_with("name = ");
                let start = if named { "" } else { "name = \"t\"\n" };
                let workload = if block.contains("[[workload.flow]]") && !named {
                    "[[workload]]\nname = \"w\"\n"
                } else {
                    ""
                };
                let text = format!("{start}{workload}{block}");
                Study::parse(page, &text, Path::new(""))
                    .and_then(|s| s.file())
                    .unwrap_or_else(|e| panic!("{e}"));
                examples += 1;
            }
        }
    }
    assert!(examples >= 14, "{examples}");
}
