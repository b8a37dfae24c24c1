//! One trial from beginning to end: system up, engine, figures, verdict, system down.

use std::time::SystemTime;

use jiff::Timestamp;
use pubgauge_engine::conductor::{TrialEnd, TrialRecord};
use pubgauge_figures::model::{Circumstances, Trial};
use pubgauge_results::store::TrialFiles;

use crate::convert::{self, Beside};
use crate::job::{Environment, Job, Watch};
use crate::running_system::Kept;
use crate::started_trial::{Measured, StartedTrial};

/// The time of day; of a clock beyond the year 9999, which is as far as it can be written, the end of that.
pub fn now() -> Timestamp {
    written(SystemTime::now())
}

fn written(time: SystemTime) -> Timestamp {
    Timestamp::try_from(time).unwrap_or(Timestamp::MAX)
}

/// Runs a trial, on the system in `kept` if the trial would start that in the same way, and leaves its own there if it may stay
/// up. A trial that cannot begin is a broken one, with the reason; what was measured is in the result.
pub fn perform(
    job: &Job<'_>,
    environment: &Environment<'_>,
    kept: &Kept,
    watch: &mut dyn Watch,
) -> (Trial, TrialFiles) {
    let started = now().to_string();
    let (record, beside, files) = match StartedTrial::start(job, environment, kept) {
        Ok(trial) => trial.measure(kept, watch),
        Err(why) => not_begun(job, &why),
    };
    let beside = Beside {
        started,
        took_s: job.begun.elapsed().as_secs_f64(),
        ..beside
    };
    let trial = convert::trial(job.asked.clone(), job.workload, &record, beside);
    (trial, files)
}

/// A trial that did not begin.
fn not_begun(job: &Job<'_>, why: &str) -> Measured {
    let record = TrialRecord::nothing(TrialEnd::NotReady(why.into()), job.workload.flows.len());
    let beside = Beside {
        errors: vec![convert::one_line(why)],
        ..Beside::nothing(Circumstances {
            not_run: convert::not_run(&record.outcome),
            ..Circumstances::default()
        })
    };
    (record, beside, TrialFiles::default())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_clock_beyond_what_can_be_written_is_no_panic() {
        let years = |n: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(n * 31_557_600);
        assert!(written(years(56)).to_string().starts_with("2026-"));
        assert!(written(years(100_000)).to_string().starts_with("9999-"));
    }
}
