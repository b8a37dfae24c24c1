//! The machine's processors that a run has left: a quota, and other programs, before a run and after it.

use std::time::{Duration, Instant};

use pubgauge_engine::usage::MachineReading;
use pubgauge_figures::model::Results;
use pubgauge_figures::processors;
use pubgauge_quantities::shown;
use pubgauge_results::verdict::{spoilt_by_others, thresholds};
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

/// Says how many trials other programs spoilt.
pub fn warn_after(results: &Results) -> Option<String> {
    let trials: Vec<_> = results.standing().collect();
    let spoilt = trials.iter().filter(|trial| spoilt_by_others(trial));
    let spoilt: Vec<_> = spoilt.collect();
    let others = spoilt
        .iter()
        .filter_map(|trial| trial.worker_load.machine_others);
    let others = others.reduce(f64::max)?;
    let all = shown::three_decimals(trials.first()?.circumstances.processors());
    Some(format!(
        "others used up to {others:.1} of {all} processors: {} of {} trials say nothing about these systems; run again when \
         the machine is quiet",
        spoilt.len(),
        trials.len()
    ))
}
