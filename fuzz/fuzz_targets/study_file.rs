//! Any text as a study file: planned or refused, never a panic.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use pubgauge_study::{KnownSystems, PlanOptions, Study};

fuzz_target!(|text: &str| {
    let Ok(study) = Study::parse("fuzz.toml", text, Path::new("/nonexistent")) else {
        return;
    };
    let systems = vec!["one".to_string(), "two".to_string()];
    let known = KnownSystems {
        all: systems.clone(),
        found_variants: systems.clone(),
        first_look: systems.clone(),
        found: systems,
        ..KnownSystems::default()
    };
    // Refusals are what is wanted of most inputs; their text must be made without panic too.
    if let Err(error) = study.plan(&PlanOptions {
        known,
        ..PlanOptions::default()
    }) {
        assert!(!error.to_string().is_empty());
    }
});
