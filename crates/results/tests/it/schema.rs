//! The committed schema is the one the types make, and real results obey it.

use std::path::Path;

use pubgauge_figures::claim::{ClaimOutcome, ClaimPicture, ClaimVerdict};
use pubgauge_figures::studies::{self, OutcomeCounts, Studies, StudyOutcome};
use pubgauge_figures::{Distribution, Machine, StudyInfo, UnsupportedCell};
use pubgauge_fixtures::TrialBuilder;
use pubgauge_results::store::{self, NewRun, RunFolder, TrialFiles};
use serde_json::{Value, json};

fn committed(name: &str, generated: &str) -> Value {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../schema/{name}.schema.json"));
    if std::env::var_os("PUBGAUGE_UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, generated).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "schema/{name}.schema.json is out of date: run this test with PUBGAUGE_UPDATE_SCHEMA=1 and commit it"
    );
    serde_json::from_str(&committed).unwrap()
}

fn produced() -> Value {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("run");
    let study = StudyInfo {
        name: "s".into(),
        unsupported: vec![UnsupportedCell {
            system: "zeromq".into(),
            settings: Vec::new(),
        }],
        ..Default::default()
    };
    let mut run = RunFolder::create(
        &root,
        NewRun {
            invocation: String::new(),
            study_toml: String::new(),
            study_resolved: json!({}),
            machine: Machine::default(),
            study,
        },
    )
    .unwrap();
    let one = Distribution {
        count: 1,
        censored: 3,
        min: Some(1),
        mean: Some(1.5),
        known_mean: Some(1.5),
        known_p90: Some(2),
        p50: Some(1),
        max: None,
        ..Distribution::default()
    };
    let trial = TrialBuilder::periodic(1.0, 1.0)
        .cpu(0.1, 0.1, 0.5)
        .latency(one)
        .steady_series(1.0)
        .flows(&["fleet"]);
    let mut trial = trial.build();
    trial.messages.acknowledgement_ns = Some(one);
    trial.latency_ecdf = vec![(1, 1.0)];
    run.append_trial(trial, &TrialFiles::default()).unwrap();
    serde_json::to_value(store::load(&root).unwrap()).unwrap();
    let text = std::fs::read_to_string(root.join("results.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_schema_is_current_and_results_obey_it() {
    let schema = committed("results", &pubgauge_results::schema::results_schema());
    let validator = jsonschema::validator_for(&schema).unwrap();
    let results = produced();
    let errors: Vec<String> = validator
        .iter_errors(&results)
        .map(|e| e.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");

    // It can tell wrong from right.
    let mut wrong = results.clone();
    wrong["trials"][0]["delivered"] = json!("many");
    assert!(!validator.is_valid(&wrong));
    let mut wrong = results.clone();
    wrong["trials"][0]["verdict"]["status"] = json!("fine");
    assert!(!validator.is_valid(&wrong));
    let mut wrong = results;
    wrong.as_object_mut().unwrap().remove("format");
    assert!(!validator.is_valid(&wrong));
}

/// The names that other tools read.
#[test]
fn names_are_as_promised() {
    let results = produced();
    for name in ["format", "machine", "study", "trials"] {
        assert!(results.get(name).is_some(), "{name}");
    }
    let trial = &results["trials"][0];
    for path in [
        "system/name",
        "system/version",
        "settings",
        "workload",
        "repeat",
        "verdict/status",
        "verdict/reasons",
        "duration_s",
        "published",
        "refused",
        "delivered",
        "lost",
        "duplicated",
        "reordered",
        "sentinels",
        "offered_msgs_per_s",
        "published_msgs_per_s",
        "delivered_msgs_per_s",
        "client_cpu_s/publishers",
        "client_cpu_s/subscribers",
        "system_cpu_s",
        "client_rss_bytes",
        "system_rss_bytes",
    ] {
        assert!(trial.pointer(&format!("/{path}")).is_some(), "{path}");
    }
    for distribution in ["latency_ns", "latency_from_send_ns", "send_lag_ns"] {
        for part in [
            "count", "min", "mean", "p50", "p90", "p99", "p99_9", "p99_99", "max",
        ] {
            assert!(
                trial[distribution].get(part).is_some(),
                "{distribution}.{part}"
            );
        }
    }
}

/// Several studies in short: the schema is current, what is written obeys it and is read again.
#[test]
fn several_studies_obey_their_schema() {
    let schema = committed("claims", &pubgauge_results::schema::claims_schema());
    let validator = jsonschema::validator_for(&schema).unwrap();
    let claim = ClaimOutcome {
        id: "K01".into(),
        outcome: ClaimVerdict::Holds,
        pictures: vec![ClaimPicture::default()],
        ..ClaimOutcome::default()
    };
    let claims = vec![claim.clone(), ClaimOutcome::default(), claim];
    let studies = Studies {
        format: studies::FORMAT.into(),
        studies: vec![StudyOutcome {
            counts: OutcomeCounts::count(&claims),
            claims,
            ..StudyOutcome::default()
        }],
    };
    assert_eq!(studies.studies[0].counts.named_counts()[0], ("holds", 2));
    assert_eq!(studies.studies[0].counts.total(), 3);
    for written in [studies.clone(), studies.clone().without_pictures()] {
        let value: Value = serde_json::from_str(&written.to_json()).unwrap();
        let errors: Vec<_> = validator.iter_errors(&value).collect();
        assert!(errors.is_empty(), "{errors:#?}");
        assert_eq!(Studies::parse(&written.to_json()).unwrap(), written);
    }
    assert!(
        !studies
            .clone()
            .without_pictures()
            .to_json()
            .contains("pictures")
    );
    let mut wrong: Value = serde_json::from_str(&studies.to_json()).unwrap();
    wrong["studies"][0]["claims"][0]["outcome"] = json!("perhaps");
    assert!(!validator.is_valid(&wrong));
    wrong = json!({ "format": "pubgauge-claims/2", "studies": [] });
    assert!(
        Studies::parse(&wrong.to_string())
            .unwrap_err()
            .to_string()
            .contains("pubgauge-claims/2")
    );
}
