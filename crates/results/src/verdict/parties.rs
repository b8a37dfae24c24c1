//! Whether one party of many falls behind: a queue before it that the sum over all hardly shows.
//!
//! A party's course is the lowest latency of what was due in each slot of the measurement. Less that of the fastest party,
//! what all have in common (the publishers' lateness, a system that is slower for all) is gone, and what is left is zero for
//! a party that keeps up. Before one that takes less than it is sent it rises for as long as it is sent more.

use pubgauge_figures::model::{Evidence, Reason, Rule, Trial};
use pubgauge_figures::party::{PartyCourse, PartyFigures, PartyName};

use super::{bursts_wait, series, thresholds};

/// Parties that fall behind, and the worst of them.
pub(super) struct Behind<'a> {
    party: &'a PartyName,
    /// Lowest latencies beyond those of the fastest party, s: at first, and at last.
    from: f64,
    to: f64,
    /// Seconds between them.
    seconds: f64,
    /// Seconds over which each was the lowest.
    span: f64,
    /// Messages that wait for it at the end.
    waiting: f64,
    /// Parties that fall behind, of all.
    pub count: u64,
    pub all: u64,
}

impl Behind<'_> {
    pub(super) fn reason(&self) -> Reason {
        let others = match self.count {
            1 => format!("alone of {}", self.all),
            n => format!("with {} others of {}", n - 1, self.all),
        };
        let text = format!(
            "{} fell behind, {others}: what was due for it in the first {:.2} s came {} later than to the fastest at the \
             least, in the last {} later, {:.0} ms more with each second; some {:.0} messages waited for it at the end",
            self.party,
            self.span,
            ms(self.from),
            ms(self.to),
            1e3 * (self.to - self.from) / self.seconds,
            self.waiting
        );
        Reason::new(Rule::SubscriberBehind, text)
            .figure(Evidence::FirstLatency, self.from * 1e9)
            .figure(Evidence::LastLatency, self.to * 1e9)
            .figure(Evidence::GrownFor, self.seconds)
            .count(Evidence::Behind, self.count)
            .count(Evidence::Subscribers, self.all)
    }
}

fn ms(s: f64) -> String {
    format!("{:.1} ms", s * 1e3)
}

/// The parties that fall behind; `None` if none does, or this cannot be told.
pub(super) fn behind(trial: &Trial) -> Option<Behind<'_>> {
    let parties = trial.parties.as_ref()?;
    if trial.flows.iter().any(bursts_wait) {
        return None;
    }
    let all = parties
        .rising
        .iter()
        .filter_map(|course| one_behind(trial, parties, course));
    let mut all: Vec<Behind<'_>> = all.collect();
    let count = all.len() as u64;
    all.sort_by(|a, b| b.to.total_cmp(&a.to));
    let worst = all.into_iter().next()?;
    Some(Behind { count, ..worst })
}

fn one_behind<'a>(
    trial: &Trial,
    parties: &PartyFigures,
    course: &'a PartyCourse,
) -> Option<Behind<'a>> {
    let slot = parties.slot_s;
    // Flat out, the buffers before the system fill first.
    let filled = if trial.workload.flat_out {
        thresholds::FILLING * trial.duration_s
    } else {
        0.0
    };
    // No more than the courses have, whatever a stranger's file says of their length.
    let slots = (trial.duration_s / slot + 1e-9).ceil() as usize;
    let slots = slots.min(parties.lowest_ns.len());
    let skipped = (filled / slot).ceil() as usize;
    let beyond = |number: usize| {
        let at = |course: &[Option<u64>]| course.get(number).copied().flatten();
        let (own, fastest) = (at(&course.lowest_ns)?, at(&parties.lowest_ns)?);
        Some(own.saturating_sub(fastest) as f64 / 1e9)
    };
    let excess: Vec<Option<f64>> = (skipped..slots).map(beyond).collect();
    let cycle = (series::cycle(trial) / slot).ceil().max(1.0) as usize;
    let count = excess.len();
    let span = cycle.max(count / 3);
    if span == 0 || count / 3 < span {
        return None;
    }
    let lowest = |from: usize| {
        let within = excess[from..from + span].iter().flatten().copied();
        within.reduce(f64::min)
    };
    let span_s = span as f64 * slot;
    let step = (thresholds::RISE_SHARE * span_s).max(series::least_rise(trial) / 1e9);
    let rises = |from: usize| {
        let pair = lowest(from).zip(lowest(from + span));
        pair.is_some_and(|(before, after)| after - before > step)
    };
    if !(0..=count - 2 * span).all(rises) || !is_no_chance(&excess, cycle, parties.count) {
        return None;
    }
    let (from, to) = (lowest(0)?, lowest(count - span)?);
    let per_s = course.deliveries as f64 / trial.duration_s;
    let waiting = per_s * to;
    (waiting - per_s * from >= thresholds::RISE_FLOOR).then_some(Behind {
        party: &course.party,
        from,
        to,
        seconds: (count - span) as f64 * slot,
        span: span_s,
        waiting,
        count: 1,
        all: parties.count,
    })
}

/// Whether a course rises by more than chance among so many: by Kendall's rank test over its slots, or over blocks of
/// as many slots as a cycle of the arrivals takes. Of fewer blocks than that test needs, which hold many messages each, each
/// must be higher than the one before.
fn is_no_chance(course: &[Option<f64>], cycle: usize, parties: u64) -> bool {
    let low = |block: &[Option<f64>]| block.iter().flatten().copied().reduce(f64::min);
    let lows: Vec<f64> = course.chunks_exact(cycle).filter_map(low).collect();
    if cycle > 1 && lows.len() < thresholds::SLOTS_RANKED {
        return lows.len() >= 3 && lows.windows(2).all(|pair| pair[1] > pair[0]);
    }
    if lows.len() < thresholds::SLOTS_RANKED {
        return false;
    }
    let mut order = 0.0;
    for (n, before) in lows.iter().enumerate() {
        for after in &lows[n + 1..] {
            order += match after.total_cmp(before) {
                std::cmp::Ordering::Greater => 1.0,
                std::cmp::Ordering::Equal => 0.0,
                std::cmp::Ordering::Less => -1.0,
            };
        }
    }
    let n = lows.len() as f64;
    let deviation = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    let chance = pubgauge_quantities::stats::chance_beyond((order - 1.0) / deviation, 1e6);
    chance * parties as f64 <= thresholds::RISE_BY_CHANCE
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slots of no length, or so short that there would be a thousand million of them.
    #[test]
    fn slots_that_a_file_makes_up_take_no_memory() {
        let course = || vec![Some(1_000_000); 32];
        for slot_s in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300, 1e-9] {
            for flat_out in [false, true] {
                let mut trial = Trial {
                    duration_s: 60.0,
                    parties: Some(PartyFigures {
                        count: u64::MAX,
                        slot_s,
                        lowest_ns: course(),
                        rising: vec![PartyCourse {
                            lowest_ns: course(),
                            ..PartyCourse::default()
                        }],
                        ..PartyFigures::default()
                    }),
                    ..Trial::default()
                };
                trial.workload.flat_out = flat_out;
                assert!(behind(&trial).is_none(), "{slot_s}");
            }
        }
    }

    #[test]
    fn a_rise_of_few_slots_among_many_parties_may_be_chance() {
        let rising = |slots: usize| (0..slots).map(|n| Some(n as f64)).collect::<Vec<_>>();
        assert!(is_no_chance(&rising(20), 1, 100_000));
        assert!(is_no_chance(&rising(10), 1, 100));
        assert!(!is_no_chance(&rising(10), 1, 100_000));
        assert!(!is_no_chance(&rising(7), 1, 1));
        let up_and_down = |n: usize| Some((n % 2) as f64 + n as f64 / 100.0);
        assert!(!is_no_chance(
            &(0..20).map(up_and_down).collect::<Vec<_>>(),
            1,
            100
        ));
        assert!(is_no_chance(
            &(0..20).map(up_and_down).collect::<Vec<_>>(),
            4,
            100
        ));
    }
}
