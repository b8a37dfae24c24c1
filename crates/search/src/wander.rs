//! The pace of a machine while a search runs, by what a message cost.

use pubgauge_quantities::stats::median;

/// Trials in a row that show the pace: some of them above the limit, some below.
const TRIALS: usize = 5;
/// Factor between what a message costs at the slowest and at the fastest up to which the pace counts as steady.
const STEADY: f64 = 1.15;

/// The cost of a message near the limit, while a search ran: medians of five trials in a row. A machine that others share,
/// or a system, may be slower for minutes; a message then costs more, and the limit is lower.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wander {
    /// Least processor time for a message, s.
    pub least: f64,
    /// Median over all trials near the limit, s.
    pub median: f64,
    /// Most processor time for a message, s.
    pub most: f64,
}

impl Wander {
    /// By the loads of trials near the limit, and what a message cost in each, in the order in which they ran; `None`
    /// where the pace was steady.
    pub(crate) fn from_costs(trials: &[(f64, f64)]) -> Option<Wander> {
        let costs = at_one_load(trials);
        let middle = |costs: &[f64]| median(costs.iter().copied(), f64::total_cmp);
        let several = || costs.windows(TRIALS).filter_map(middle);
        let wander = Wander {
            least: several().reduce(f64::min)?,
            median: middle(&costs)?,
            most: several().reduce(f64::max)?,
        };
        (wander.most > STEADY * wander.least).then_some(wander)
    }
}

/// The cost that a message would have had in each trial at the middle of their loads. It depends on the load too: many
/// messages share a system call, and large ones take longer. That is a power of the load, fitted to the trials; its
/// exponent is -1 (nothing but what all messages of a second share) to 1 (nothing but bytes).
fn at_one_load(trials: &[(f64, f64)]) -> Vec<f64> {
    let mean =
        |of: fn(&(f64, f64)) -> f64| trials.iter().map(of).sum::<f64>() / trials.len() as f64;
    let (load, cost) = (mean(|(load, _)| load.ln()), mean(|(_, cost)| cost.ln()));
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        let off = trials.iter().map(|(l, c)| (l.ln() - load, c.ln() - cost));
        off.map(|(l, c)| of(l, c)).sum()
    };
    let spread = sum(&|l, _| l * l);
    let exponent = if spread > 0.0 {
        (sum(&|l, c| l * c) / spread).clamp(-1.0, 1.0)
    } else {
        0.0
    };
    let same = |(l, c): &(f64, f64)| c / (exponent * (l.ln() - load)).exp();
    trials.iter().map(same).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_that_follows_the_load_is_no_wander() {
        for exponent in [-1.0, -0.5, 0.0, 1.0] {
            let loads = (0..20).map(|n| 1000.0 + 50.0 * f64::from(n));
            let trials: Vec<_> = loads
                .map(|l| (l, 1e-5 * (l / 1e3).powf(exponent)))
                .collect();
            assert_eq!(Wander::from_costs(&trials), None, "{exponent}");
        }
    }

    #[test]
    fn a_slower_half_is_told_whatever_the_loads() {
        for exponent in [-0.5, 0.0, 1.0] {
            let trials = (0..20).map(|n| {
                let load: f64 = if n % 2 == 0 { 900.0 } else { 1100.0 };
                let slow = if n < 10 { 1.0 } else { 1.3 };
                (load, 1e-5 * slow * (load / 1e3).powf(exponent))
            });
            let told = Wander::from_costs(&trials.collect::<Vec<_>>()).unwrap();
            assert!(
                (told.most / told.least - 1.3).abs() < 0.01,
                "{exponent} {told:?}"
            );
        }
    }

    #[test]
    fn fewer_than_five_trials_tell_nothing() {
        assert_eq!(Wander::from_costs(&[]), None);
        assert_eq!(
            Wander::from_costs(&[(1e3, 1e-5), (1e3, 2e-5), (1e3, 9e-5), (1e3, 2e-5)]),
            None
        );
    }
}
