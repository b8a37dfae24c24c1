//! A quota of processor time around client and system (a container's) that was used up: whatever is in the container
//! then stands still until the next period.

use super::thresholds;

use pubgauge_figures::model::{Evidence, QuotaUse, Reason, Rule, Trial};
use pubgauge_figures::processors;
use pubgauge_quantities::shown::{self, time};

use super::cores::in_use;

/// Share of the measurement for which a quota may have held back client and system; 0 without any.
pub(super) fn share(trial: &Trial) -> f64 {
    let quota = trial.worker_load.quota;
    quota.map_or(0.0, |quota| quota.share(trial.duration_s))
}

/// A quota that held back client and system.
pub(super) struct HeldBack {
    quota: QuotaUse,
    /// Share of the measurement, at the most.
    pub share: f64,
    /// It was used up in about all periods of the measurement: nobody else kept client and system from running.
    is_used_up: bool,
}

impl HeldBack {
    /// That of a trial; `None` where none held back at all.
    pub fn from_trial(trial: &Trial) -> Option<HeldBack> {
        let quota = trial
            .worker_load
            .quota
            .filter(|quota| quota.held_back_ns > 0)?;
        let in_periods = quota.held_back_periods.saturating_mul(quota.period_ns) as f64;
        Some(HeldBack {
            quota,
            share: share(trial),
            is_used_up: in_periods >= thresholds::HOST_USED * 1e9 * trial.duration_s,
        })
    }

    /// Whether it counts by itself: for a good part of the measurement, or for a smaller one that the tail of the latencies
    /// may be made of. The limits are those of a machine that stands still.
    pub fn counts(&self, trial: &Trial) -> bool {
        let tail = trial.messages.latency_ns.p99.unwrap_or(u64::MAX);
        self.share >= thresholds::STALLED
            || self.share >= thresholds::STALLED_TAIL && self.quota.mean_ns() >= tail / 2
    }

    /// The part that it does not explain of a share of the measurement for which a thread did not run: less of it than was held
    /// back, or nothing where it was used up all the time, as threads then wait for each other in what it leaves.
    pub fn unexplained(&self, share: f64) -> f64 {
        let explained = if self.is_used_up { share } else { self.share };
        (share - explained).max(0.0)
    }

    pub fn describe(&self) -> String {
        let limit = match self.limit() {
            None => String::new(),
            Some(thresholds::STALLED) => {
                format!(
                    "; limit {} of the time",
                    shown::percent(thresholds::STALLED, 0)
                )
            }
            Some(limit) => format!(
                "; limit {} of the time where that is half the 99th percentile of latency or more at a time",
                shown::percent(limit, 0)
            ),
        };
        let quota = &self.quota;
        format!(
            "this container may use {}, and was held back in {} of {} periods ({}, added up over processors{limit})",
            processors::so_many(quota.cores),
            quota.held_back_periods,
            quota.periods,
            time(quota.held_back_ns as f64),
        )
    }

    pub fn reason(&self, trial: &Trial) -> Reason {
        let text = format!("{}; in use were {}", self.describe(), in_use(trial));
        let reason = Reason::new(Rule::QuotaFull, text);
        let reason = match self.limit() {
            Some(limit) => reason.limited(Evidence::HeldBackShare, self.share, limit),
            None => reason.figure(Evidence::HeldBackShare, self.share),
        };
        reason
            .count(Evidence::HeldBackPeriods, self.quota.held_back_periods)
            .count(Evidence::Periods, self.quota.periods)
            .figure(Evidence::HeldBack, self.quota.held_back_ns as f64)
            .figure(Evidence::QuotaCores, self.quota.cores)
    }

    /// The limit that its share is beyond; `None` of a smaller share, which counts where it explains a standstill.
    fn limit(&self) -> Option<f64> {
        let limits = [thresholds::STALLED, thresholds::STALLED_TAIL];
        limits.into_iter().find(|limit| self.share >= *limit)
    }
}
