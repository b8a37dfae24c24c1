//! Remaining time of a run: the planned time, and what starting, stopping and draining took beyond it
//! so far, system by system.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// A trial to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ahead {
    pub system: String,
    pub workload: String,
    /// How long it takes as planned.
    pub planned: Duration,
}

/// A mean of seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    count: u32,
}

/// Trials alike: those of a system with a workload, of a system, all.
type Alike = (Option<String>, Option<String>);

impl Ahead {
    /// The trials like it, the most similar ones first.
    fn alike(&self) -> [Alike; 3] {
        let (system, workload) = (Some(self.system.clone()), Some(self.workload.clone()));
        [(system.clone(), workload), (system, None), (None, None)]
    }
}

/// The trials to come, and the times that earlier ones took beyond the plan.
#[derive(Clone, Debug, Default)]
pub struct Forecast {
    ahead: VecDeque<Ahead>,
    /// Seconds beyond the planned time.
    beyond: BTreeMap<Alike, Mean>,
}

impl Forecast {
    /// Over these trials, in order.
    pub fn new(ahead: impl IntoIterator<Item = Ahead>) -> Forecast {
        Forecast {
            ahead: ahead.into_iter().collect(),
            ..Forecast::default()
        }
    }

    /// Expected length of the trial that runs or is next.
    pub fn next(&self) -> Duration {
        self.ahead
            .front()
            .map_or(Duration::ZERO, |trial| self.trial_time(trial))
    }

    /// Expected length of all trials after it.
    pub fn remaining_time(&self) -> Duration {
        self.ahead
            .iter()
            .skip(1)
            .map(|trial| self.trial_time(trial))
            .sum()
    }

    /// Records that the trial that ran took so long.
    pub fn done(&mut self, took: Duration) {
        let Some(trial) = self.ahead.pop_front() else {
            return;
        };
        let beyond = took.as_secs_f64() - trial.planned.as_secs_f64();
        for alike in trial.alike() {
            let mean = self.beyond.entry(alike).or_default();
            mean.sum += beyond;
            mean.count += 1;
        }
    }

    /// The planned time of a trial, plus the mean that the most similar earlier ones took beyond
    /// it.
    fn trial_time(&self, trial: &Ahead) -> Duration {
        let alike = trial.alike();
        let nearest = alike.iter().find_map(|alike| self.beyond.get(alike));
        let beyond = nearest.map_or(0.0, |mean| mean.sum / f64::from(mean.count));
        let seconds = trial.planned.as_secs_f64() + beyond;
        Duration::from_secs_f64(seconds.max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ahead(system: &str, workload: &str) -> Ahead {
        Ahead {
            system: system.into(),
            workload: workload.into(),
            planned: Duration::from_secs(10),
        }
    }

    /// How long a trial takes in truth: a Java server is slow to start, a flat-out trial slow to drain.
    fn real(trial: &Ahead) -> Duration {
        let start = if trial.system == "artemis" { 14.0 } else { 0.3 };
        let drain = if trial.workload == "flat-out" {
            5.0
        } else {
            0.0
        };
        Duration::from_secs_f64(10.0 + start + drain)
    }

    #[test]
    fn holds_once_every_system_has_run() {
        let systems = ["artemis", "mosquitto", "zeromq-direct"];
        let cells = systems.map(|s| ["fleet", "flat-out"].map(|w| ahead(s, w)));
        let cells: Vec<Ahead> = cells.into_iter().flatten().collect();
        let all: Vec<Ahead> = (0..5).flat_map(|_| cells.clone()).collect();
        let mut forecast = Forecast::new(all.clone());
        let planned: Duration = all.iter().map(|t| t.planned).sum();
        assert_eq!(
            forecast.next() + forecast.remaining_time(),
            planned,
            "nothing is known yet"
        );
        for (n, trial) in all.iter().enumerate() {
            if n >= cells.len() {
                let left: Duration = all[n..].iter().map(real).sum();
                let said = forecast.next() + forecast.remaining_time();
                let error = (said.as_secs_f64() / left.as_secs_f64() - 1.0).abs();
                assert!(error < 1e-9, "trial {n}: {said:?} instead of {left:?}");
            }
            forecast.done(real(trial));
        }
        assert_eq!(forecast.next() + forecast.remaining_time(), Duration::ZERO);
    }

    #[test]
    fn a_system_is_known_by_its_other_workloads_and_a_new_one_by_the_others() {
        let trials = ["artemis", "artemis", "hivemq"].map(|s| ahead(s, "fleet"));
        let mut forecast = Forecast::new(trials);
        forecast.ahead[1].workload = "periodic".into();
        forecast.done(Duration::from_secs(24));
        assert_eq!(forecast.next(), Duration::from_secs(24));
        assert_eq!(forecast.remaining_time(), Duration::from_secs(24));
        // Faster than planned is learnt too, and never below nothing.
        forecast.done(Duration::ZERO);
        assert_eq!(forecast.next(), Duration::from_secs(12));
        forecast.ahead[0].planned = Duration::ZERO;
        let mean = Mean {
            sum: -5.0,
            count: 1,
        };
        forecast.beyond.insert((None, None), mean);
        assert_eq!(forecast.next(), Duration::ZERO);
    }
}
