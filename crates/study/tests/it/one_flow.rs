//! Studies of one flow, of which a test says what matters to it.

use std::path::Path;

use pubgauge_strict_toml::InvalidInput;
use pubgauge_study::{Plan, PlanOptions, Study};

/// The plan of a flow on mosquitto; the first line of `flow` is the sixth.
pub fn plan(flow: &str) -> Result<Plan, InvalidInput> {
    let text = format!(
        "name = \"t\"\n[[workload]]\nname = \"w\"\n[[workload.flow]]\npayload = \"64B\"\n{flow}"
    );
    let options = PlanOptions::with_systems(["mosquitto"]);
    Study::parse("study.toml", &text, Path::new(".")).and_then(|study| study.plan(&options))
}
