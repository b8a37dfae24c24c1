//! The posterior distribution of a noisy threshold.

/// Limits around the centre of the prior that are weighed: from a 20th of it to 20 times.
const REACH: f64 = 3.0;
/// Distance between them; a tenth of the narrowest interval that a search is asked for.
const STEP: f64 = 0.005;
/// Spreads of the threshold that are weighed, in natural logarithms of the load, with the prior weight
/// of each: few systems vary by more than some per cent from trial to trial.
const SPREADS: Spreads = Spreads([
    (0.003, 0.6),
    (0.006, 0.6),
    (0.012, 0.8),
    (0.02, 1.0),
    (0.035, 1.0),
    (0.06, 0.7),
    (0.1, 0.3),
    (0.18, 0.1),
]);
/// Share of trials whose outcome has nothing to do with the load.
const LAPSE: f64 = 0.03;
/// A flat-out trial delivers the limit to within about this much, in natural logarithms...
const NEAR: f64 = 0.25;
/// ...and is far from it (overload makes some systems slower, and others drop) with this chance...
const FAR_CHANCE: f64 = 0.25;
/// ...and then within about this much.
const FAR: f64 = 1.0;

/// The knowledge before any trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Prior {
    /// The limit is about this load.
    About(f64),
    /// The limit is anywhere between these, each order of magnitude as likely.
    Between(f64, f64),
}

/// Spreads of a threshold from trial to trial, in natural logarithms of the load, with the weight of each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spreads([(f64, f64); 8]);

impl Default for Spreads {
    /// The knowledge before any trial.
    fn default() -> Self {
        SPREADS
    }
}

/// Natural logarithms of limits, with the chance of each.
pub struct Posterior {
    limits: Vec<f64>,
    chances: Vec<f64>,
    spreads: Spreads,
}

impl Posterior {
    /// The posterior after trials, each with its load and whether it was within what was asked for.
    pub fn new(prior: Prior, spreads: Spreads, trials: &[(f64, bool)]) -> Posterior {
        let (from, to) = match prior {
            // Earlier knowledge may be wrong: the loads that were tried are in reach as well.
            Prior::About(load) => {
                let all = || trials.iter().map(|trial| trial.0).chain([load]);
                let (least, most) = (all().fold(load, f64::min), all().fold(load, f64::max));
                (least.ln() - REACH, most.ln() + REACH)
            }
            Prior::Between(least, most) => (least.ln(), most.ln().max(least.ln() + STEP)),
        };
        let count = ((to - from) / STEP).ceil() as usize + 1;
        let limits: Vec<f64> = (0..count).map(|n| from + n as f64 * STEP).collect();
        let before = |limit: f64| match prior {
            Prior::Between(..) => 1.0,
            Prior::About(load) => {
                let off = limit - load.ln();
                let normal = |sigma: f64| (-0.5 * (off / sigma).powi(2)).exp() / sigma;
                (1.0 - FAR_CHANCE) * normal(NEAR) + FAR_CHANCE * normal(FAR)
            }
        };
        let loads: Vec<(f64, bool)> = trials.iter().map(|(load, in_)| (load.ln(), *in_)).collect();
        let chance = |limit: f64, spread: f64| {
            let each = loads.iter().map(|(load, within)| {
                let within_chance = 1.0 / (1.0 + ((load - limit) / spread).exp());
                let chance = LAPSE / 2.0 + (1.0 - LAPSE) * within_chance;
                if *within { chance } else { 1.0 - chance }
            });
            before(limit) * each.product::<f64>()
        };
        let mut chances = vec![0.0; limits.len()];
        let mut after = spreads;
        for (spread, likely) in &mut after.0 {
            let mut of_spread = 0.0;
            for (limit, sum) in limits.iter().zip(&mut chances) {
                let own = *likely * chance(*limit, *spread);
                *sum += own;
                of_spread += own;
            }
            *likely = of_spread;
        }
        let sum: f64 = chances.iter().sum();
        chances.iter_mut().for_each(|chance| *chance /= sum);
        after.0.iter_mut().for_each(|(_, likely)| *likely /= sum);
        Posterior {
            limits,
            chances,
            spreads: after,
        }
    }

    /// The spreads after the trials.
    pub fn spreads(&self) -> Spreads {
        self.spreads
    }

    /// The load below which the limit lies with this chance, 0 to 1.
    pub fn quantile(&self, chance: f64) -> f64 {
        let mut sum = 0.0;
        for (limit, own) in self.limits.iter().zip(&self.chances) {
            sum += own;
            if sum >= chance {
                return limit.exp();
            }
        }
        self.limits.last().map_or(f64::NAN, |limit| limit.exp())
    }

    /// The loads between which the limit lies with a chance of 95 %.
    pub fn interval(&self) -> (f64, f64) {
        (self.quantile(0.025), self.quantile(0.975))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prior_is_told_back() {
        let about = Posterior::new(Prior::About(1000.0), SPREADS, &[]);
        assert!((about.quantile(0.5) / 1000.0 - 1.0).abs() < 0.01);
        let (low, high) = about.interval();
        assert!(low < 500.0 && high > 2000.0, "{low} {high}");
        // Trials decide, however far from what was known before.
        for limit in [500.0, 2_000_000.0] {
            let loads = [0.25, 0.5, 0.8, 0.9, 0.9, 1.1, 1.1, 1.2, 2.0, 4.0];
            let trials = loads.map(|share| (limit * share, share < 1.0));
            let (low, high) = Posterior::new(Prior::About(20_000.0), SPREADS, &trials).interval();
            assert!(low < limit && limit < high, "{limit}: {low} to {high}");
        }
        let between = Posterior::new(Prior::Between(10.0, 1000.0), SPREADS, &[]);
        assert!((between.quantile(0.5) / 100.0 - 1.0).abs() < 0.02);
    }

    #[test]
    fn trials_narrow_it_and_one_stray_one_does_not_decide() {
        let mut trials = vec![
            (900.0, true),
            (1100.0, false),
            (960.0, true),
            (1040.0, false),
        ];
        let (low, high) = Posterior::new(Prior::About(1500.0), SPREADS, &trials).interval();
        assert!(low > 850.0 && high < 1500.0, "{low} {high}");
        trials.push((500.0, false));
        let (low, _) = Posterior::new(Prior::About(1500.0), SPREADS, &trials).interval();
        assert!(low > 700.0, "{low}");
    }
}
