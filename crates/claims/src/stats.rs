//! Estimates over repeats.

use std::cell::RefCell;
use std::collections::HashMap;

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Confidence of every interval that decides.
pub const CONFIDENCE: f64 = 0.95;

/// Mean and sample variance (0 for a single value).
pub fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let variance = match values.len() {
        0 | 1 => 0.0,
        _ => squares / (n - 1.0),
    };
    (mean, variance)
}

thread_local! {
    /// Quantiles of whole degrees of freedom: comparisons in rounds ask for the same ones again and again.
    static KNOWN: RefCell<HashMap<(u64, u64), f64>> = RefCell::default();
}

/// Two-sided quantile of Student's t at a confidence, 0 to 1; infinite if `freedom` is not above 0.
pub fn t_quantile(confidence: f64, freedom: f64) -> f64 {
    let compute = || {
        StudentsT::new(0.0, 1.0, freedom)
            .map(|t| t.inverse_cdf(1.0 - (1.0 - confidence) / 2.0))
            .unwrap_or(f64::INFINITY)
    };
    if freedom.fract() == 0.0 {
        KNOWN.with_borrow_mut(|known| {
            let key = (confidence.to_bits(), freedom.to_bits());
            *known.entry(key).or_insert_with(compute)
        })
    } else {
        compute()
    }
}

/// Ends that an interval does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lacks {
    /// Nothing is known of how small the quantity is.
    pub low: bool,
    /// Nothing is known of how large it is.
    pub high: bool,
}

/// A quantity that was estimated from repeats, or that a search has bounded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Estimate {
    /// A mean over repeats.
    Mean {
        mean: f64,
        /// Its standard error.
        error: f64,
        /// Degrees of freedom.
        freedom: f64,
        /// Repeats of the side that has fewest.
        repeats: usize,
        /// The ends that its interval lacks, where some repeats are lower bounds only.
        lacks: Lacks,
    },
    /// Between two bounds at 95 %, whatever confidence is asked for; infinite where there is none.
    Between {
        /// Lower bound.
        low: f64,
        /// Upper bound.
        high: f64,
    },
}

impl Estimate {
    /// The mean of the repeats of one cell.
    pub fn of(values: &[f64]) -> Estimate {
        Estimate::contrast(&[(1.0, values)])
    }

    /// A sum of means, each times its factor: (1, a), (-1, b) is the difference of a and b by Welch's
    /// t. Each needs two repeats at least.
    pub fn contrast(terms: &[(f64, &[f64])]) -> Estimate {
        let (mut mean, mut square, mut below) = (0.0, 0.0, 0.0);
        for (factor, values) in terms {
            let (m, variance) = moments(values);
            let part = factor.powi(2) * variance / values.len() as f64;
            mean += factor * m;
            square += part;
            below += part.powi(2) / (values.len() as f64 - 1.0);
        }
        Estimate::Mean {
            mean,
            error: square.sqrt(),
            // Welch-Satterthwaite.
            freedom: square.powi(2) / below,
            repeats: terms.iter().map(|(_, v)| v.len()).min().unwrap_or(0),
            lacks: Lacks::default(),
        }
    }

    /// The same without ends that are not known.
    pub fn without(mut self, ends: Lacks) -> Estimate {
        if let Estimate::Mean { lacks, .. } = &mut self {
            *lacks = ends;
        }
        self
    }

    /// The value in the middle of its interval.
    pub fn middle(&self) -> f64 {
        match *self {
            Estimate::Mean { mean, .. } => mean,
            Estimate::Between { low, high } if high.is_infinite() => low,
            Estimate::Between { low, high } if low.is_infinite() => high,
            Estimate::Between { low, high } => (low + high) / 2.0,
        }
    }

    /// Its interval at a confidence of `1 - 0.05 / ways` (Bonferroni: of many comparisons some
    /// contradict by chance).
    pub fn interval(&self, ways: usize) -> (f64, f64) {
        self.interval_at(1.0 - (1.0 - CONFIDENCE) / ways.max(1) as f64)
    }

    /// Its interval at a confidence, 0 to 1.
    pub fn interval_at(&self, confidence: f64) -> (f64, f64) {
        match *self {
            Estimate::Between { low, high } => (low, high),
            Estimate::Mean {
                mean,
                error,
                freedom,
                lacks,
                ..
            } => {
                // Repeats that agree to the last bit leave no doubt about the mean.
                let half = if error == 0.0 {
                    0.0
                } else {
                    error * t_quantile(confidence, freedom)
                };
                let end = |lacks, end, open| if lacks { open } else { end };
                (
                    end(lacks.low, mean - half, f64::NEG_INFINITY),
                    end(lacks.high, mean + half, f64::INFINITY),
                )
            }
        }
    }

    /// About how many repeats would make its interval narrower than `distance` on either side that it has;
    /// `None` where repeats do not help, or more than 1000 would be needed.
    pub fn repeats_for(&self, distance: f64, ways: usize) -> Option<u32> {
        let Estimate::Mean { repeats, .. } = *self else {
            return None;
        };
        let (low, high) = self.without(Lacks::default()).interval(ways);
        let needed = (repeats as f64 * ((high - low) / 2.0 / distance).powi(2)).ceil();
        (needed <= 1000.0).then(|| (needed as u32).max(repeats as u32 + 1))
    }
}

/// Wilson's 95 % interval of a share: `hits` of `all`.
pub fn wilson(hits: usize, all: usize) -> (f64, f64) {
    const Z: f64 = 1.959_963_984_540_054;
    let (n, p) = (all as f64, hits as f64 / all.max(1) as f64);
    if all == 0 {
        return (0.0, 1.0);
    }
    let scale = 1.0 + Z * Z / n;
    let middle = p + Z * Z / (2.0 * n);
    let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    ((middle - half) / scale, (middle + half) / scale)
}

/// The chance of `hits` or more of `all`, each by chance in one of two (exact binomial).
pub fn half_by_chance(hits: usize, all: usize) -> f64 {
    // Term by term from `all` hits downwards, each computed from the one before it.
    let (mut term, mut sum) = (0.5f64.powi(all as i32), 0.0);
    for hit in (hits..=all).rev() {
        sum += term;
        term *= hit as f64 / (all - hit + 1) as f64;
    }
    sum
}

/// Slope and residuals of the least squares line through `points` (x, y).
pub fn line(points: &[(f64, f64)]) -> (f64, Vec<f64>) {
    let n = points.len() as f64;
    let mean_x = points.iter().map(|p| p.0).sum::<f64>() / n;
    let mean_y = points.iter().map(|p| p.1).sum::<f64>() / n;
    let xx: f64 = points.iter().map(|p| (p.0 - mean_x).powi(2)).sum();
    let xy: f64 = points.iter().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum();
    let slope = xy / xx;
    let off = |p: &(f64, f64)| p.1 - mean_y - slope * (p.0 - mean_x);
    (slope, points.iter().map(off).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_known_values() {
        // Textbook: n = 5, mean 10, s = 1.5811, t(0.975, 4) = 2.7764.
        let (low, high) = Estimate::of(&[8.0, 9.0, 10.0, 11.0, 12.0]).interval(1);
        assert!((low - 8.0368).abs() < 1e-3 && (high - 11.9632).abs() < 1e-3);
        // Welch: equal variances and sizes have 2 (n - 1) degrees of freedom; t(0.975, 8) = 2.306.
        let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0], [11.0, 12.0, 13.0, 14.0, 15.0]);
        let difference = Estimate::contrast(&[(1.0, &b), (-1.0, &a)]);
        let (low, high) = difference.interval(1);
        assert!(
            (low - 7.694).abs() < 1e-3 && (high - 12.306).abs() < 1e-3,
            "{low} {high}"
        );
        let (_, wider) = difference.interval(8);
        assert!(wider > high);
    }

    #[test]
    fn repeats_that_are_needed() {
        let e = Estimate::of(&[8.0, 9.0, 10.0, 11.0, 12.0]);
        assert_eq!(e.repeats_for(0.98, 1), Some(21));
        assert_eq!(e.repeats_for(1e-9, 1), None);
    }

    #[test]
    fn wilsons_interval_of_known_values() {
        let (low, high) = wilson(8, 10);
        assert!((low - 0.4902).abs() < 1e-3 && (high - 0.9433).abs() < 1e-3);
        assert_eq!(wilson(0, 0), (0.0, 1.0));
    }

    #[test]
    fn chances_of_known_values() {
        for (hits, all, chance) in [
            (5, 5, 1.0 / 32.0),
            (7, 8, 9.0 / 256.0),
            (0, 4, 1.0),
            (2, 3, 0.5),
            (1, 0, 0.0),
        ] {
            let found = half_by_chance(hits, all);
            assert!((found - chance).abs() < 1e-12, "{hits} of {all}: {found}");
        }
    }

    #[test]
    fn a_line_through_points() {
        let (slope, residuals) = line(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]);
        assert!((slope - 2.0).abs() < 1e-12 && residuals.iter().all(|r| r.abs() < 1e-12));
    }
}
