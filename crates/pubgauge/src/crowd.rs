//! The machine's processors that a run has left: a quota, and other programs.

use std::time::{Duration, Instant};

use pubgauge_engine::usage::MachineReading;
use pubgauge_figures::processors;
use pubgauge_quantities::shown;
use pubgauge_results::verdict::thresholds;
use pubgauge_testbed::machine_facts;

/// For how long the machine is watched before the first trial.
const WATCHED: Duration = Duration::from_millis(200);

/// Says how many of the machine's processors a quota around this process (a container's) leaves, where that is fewer.
pub fn quota() -> Option<String> {
    let facts = machine_facts();
    let quota = processors::quota(facts.cores, facts.quota_cores)?;
    Some(format!(
        "this container may use {} of {}",
        shown::three_decimals(quota),
        shown::so_many(facts.cores.into(), "processor")
    ))
}

/// Says what other programs use of the machine now, where that is so much that figures will say little.
pub fn warn_before() -> Option<String> {
    let (from, began) = (MachineReading::now()?, Instant::now());
    std::thread::sleep(WATCHED);
    let time = MachineReading::now()?.since(&from);
    let span = began.elapsed().as_nanos() as f64;
    let (busy, all) = (time.used as f64 / span, (time.all as f64 / span).round());
    (busy >= thresholds::OTHERS_BUSY * all).then(|| {
        format!(
            "others use {busy:.1} of {all} processors now: figures will say little; on a machine that does nothing else they \
             say more"
        )
    })
}
