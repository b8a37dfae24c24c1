//! The largest plan.

use crate::common::*;

/// 100,000 trials: 20,000 payloads, five times each.
#[test]
fn a_plan_of_100_000_trials_takes_200_mb_at_the_most() {
    let place = Place::new();
    let sizes: Vec<String> = (0..20_000).map(|n| format!("\"{}B\"", 20 + n)).collect();
    place.write(
        "study.toml",
        format!(
            "name = \"s\"\nsystems = [\"simulated\"]\nrepeats = 5\n[phases]\nwarm-up = \"1s\"\nmeasure = \"1s\"\n\
             [grid]\npayload = [{}]\n[[workload]]\nname = \"w\"\n[[workload.flow]]\nrate = \"10/s\"\n",
            sizes.join(",")
        ),
    );
    place.run(&["plan", "study.toml"]).exits(0);
    let bytes = most_memory();
    assert!(bytes < 200_000_000, "{bytes} bytes");
}
