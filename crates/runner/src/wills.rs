//! Last wills: the ends of connections with some workers and the wills that came to others, put together.

use std::collections::HashMap;

use pubgauge_driver::Nanos;
use pubgauge_engine::recording::{ConnectionEnd, HowEnded, WillDelivery};
use pubgauge_engine::times::histogram;
use pubgauge_figures::model::Distribution;
use pubgauge_figures::wills::WillFigures;
use pubgauge_workload::{SECOND, WillWatchers};

use crate::record_sums::RecordSums;

/// Delays are whole seconds: a system may count them from one tick of its clock to another.
const TICK: Nanos = SECOND;

/// The wills of a trial; `None` where no device has one. `one_clock`: all workers have the same.
pub fn of_trial(sums: &RecordSums<'_>, one_clock: bool) -> Option<WillFigures> {
    if !sums.workload.has_wills() {
        return None;
    }
    let recordings = || sums.record.recordings.iter().map(|r| &r.wills);
    let mut came: HashMap<(u32, u32), Vec<&WillDelivery>> = HashMap::new();
    for one in recordings().flat_map(|wills| &wills.deliveries) {
        came.entry((one.device, one.connection))
            .or_default()
            .push(one);
    }
    let closed_at = sums.record.recordings.iter().map(|r| r.closed_at).min();
    let mut account = Account {
        watchers: sums.workload.will_watchers(),
        counted_until: closed_at
            .unwrap_or(0)
            .saturating_sub(sums.workload.phases.drain_quiet),
        heard_by: HashMap::new(),
        figures: WillFigures {
            not_kept: recordings().map(|wills| wills.not_kept).sum(),
            ..WillFigures::default()
        },
        times: histogram(),
    };
    for end in recordings().flat_map(|wills| &wills.ends) {
        let came = came.remove(&(end.device, end.connection));
        account.add(sums, end, &came.unwrap_or_default());
    }
    let Account {
        mut figures, times, ..
    } = account;
    // The rest came for connections that had not ended, unless their ends were too many.
    let left = came.values().flatten();
    figures.duplicated += left
        .map(|one| u64::from(one.copies.saturating_sub(1)))
        .sum::<u64>();
    if figures.not_kept == 0 {
        figures.needless += came.len() as u64;
    }
    figures.time_ns = (one_clock && figures.deliveries_due > 0)
        .then(|| Distribution::censored(&times, figures.deliveries_missing()));
    Some(figures)
}

/// The wills of one connection after the other.
struct Account<'a> {
    watchers: WillWatchers<'a>,
    /// A will that was due by then has come, or never comes.
    counted_until: Nanos,
    /// By topic, how many subscribers hear it.
    heard_by: HashMap<&'a str, u64>,
    figures: WillFigures,
    times: hdrhistogram::Histogram<u64>,
}

impl<'a> Account<'a> {
    fn add(&mut self, sums: &RecordSums<'a>, end: &ConnectionEnd, came: &[&WillDelivery]) {
        let Some(will) = (sums.workload.devices.get(end.device as usize))
            .and_then(|device| device.will.as_deref())
        else {
            return;
        };
        let figures = &mut self.figures;
        let came_at_all = u64::from(!came.is_empty());
        figures.duplicated += came
            .iter()
            .map(|one| u64::from(one.copies.saturating_sub(1)))
            .sum::<u64>();
        match end.how {
            HowEnded::InOrder => {
                figures.in_order += 1;
                figures.after_disconnect += came_at_all;
                return;
            }
            HowEnded::Lost => {
                figures.lost += 1;
                figures.after_loss += came_at_all;
                return;
            }
            HowEnded::Cut => figures.cut += 1,
        }
        let delay = Nanos::from(will.delay_s) * SECOND;
        let due_at = end.at.saturating_add(delay);
        if let Some((began, made)) = end.back.filter(|_| delay > 0) {
            if made + TICK <= due_at {
                figures.averted += 1;
                figures.needless += came_at_all;
                return;
            }
            if began < due_at + TICK {
                figures.undecided += 1;
                return;
            }
        }
        let is_counted = due_at <= self.counted_until;
        if came.is_empty() && !is_counted {
            figures.undecided += 1;
            return;
        }
        let heard_by = *(self.heard_by)
            .entry(&will.topic)
            .or_insert_with(|| self.watchers.of_topic(&will.topic).len() as u64);
        let deliveries = came.len() as u64;
        figures.due += 1;
        figures.published += came_at_all;
        figures.deliveries += deliveries;
        figures.deliveries_due += if is_counted { heard_by } else { deliveries };
        for one in came {
            let took = one.at.saturating_sub(end.at).max(1);
            self.times.saturating_record(took);
        }
    }
}
