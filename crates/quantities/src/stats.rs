//! Estimates over repeats with their intervals; quantiles, and lines through points.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::HashMap;

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Confidence of every interval that decides.
pub const CONFIDENCE: f64 = 0.95;

/// Most repeats that are worth naming as what would decide.
pub const MOST_REPEATS: u32 = 1000;

/// The arithmetic mean; `None` without values.
pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0u64);
    for value in values {
        sum += value;
        count += 1;
    }
    (count > 0).then(|| sum / count as f64)
}

/// The median in an order; of an even number of values the upper one. `None` without values.
pub fn median<T>(
    values: impl IntoIterator<Item = T>,
    order: impl FnMut(&T, &T) -> Ordering,
) -> Option<T> {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort_by(order);
    let middle = values.len() / 2;
    (middle < values.len()).then(|| values.swap_remove(middle))
}

/// Mean and sample variance (0 for a single value).
pub fn moments(values: &[f64]) -> (f64, f64) {
    // A mean of equal values may be rounded to another one: they would seem to have a spread.
    if let [first, others @ ..] = values
        && others.iter().all(|value| value == first)
    {
        return (*first, 0.0);
    }
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

/// The chance that a slope is at least this many of its standard errors where there is no trend. The error from few
/// points is itself uncertain: eight random points reach five standard errors once in 800 times.
pub fn chance_beyond(errors: f64, freedom: f64) -> f64 {
    // An error of 0: the points lie on a line, which rises or is level.
    if errors.is_infinite() {
        return 0.0;
    }
    if errors.is_nan() {
        return 1.0;
    }
    StudentsT::new(0.0, 1.0, freedom).map_or(1.0, |t| t.sf(errors))
}

/// The confidence of one of `ways` intervals that hold together at [`CONFIDENCE`] (Bonferroni: of many comparisons some
/// contradict by chance).
pub fn one_of(ways: usize) -> f64 {
    1.0 - (1.0 - CONFIDENCE) / ways.max(1) as f64
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
    /// A share of repeats (Wilson's interval).
    Share {
        /// Repeats that count towards it.
        hits: usize,
        /// All of them, one at least.
        all: usize,
    },
}

impl Estimate {
    /// The mean of the repeats of one cell.
    pub fn mean_of(values: &[f64]) -> Estimate {
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

    /// `b` minus `a`: of pairs by the t of their differences, else by Welch's. Needs two values on each side at least; for
    /// pairs the same number.
    pub fn difference(a: &[f64], b: &[f64], paired: bool) -> Estimate {
        if !paired {
            return Estimate::contrast(&[(1.0, b), (-1.0, a)]);
        }
        let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| b - a).collect();
        Estimate::mean_of(&differences)
    }

    /// The estimate without ends that are not known.
    pub fn without_ends(mut self, ends: Lacks) -> Estimate {
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
            Estimate::Share { hits, all } => hits as f64 / all as f64,
        }
    }

    /// Its interval as one of so many: see [`one_of`].
    pub fn interval(&self, ways: usize) -> (f64, f64) {
        self.interval_at(one_of(ways))
    }

    /// Its interval at a confidence, 0 to 1.
    pub fn interval_at(&self, confidence: f64) -> (f64, f64) {
        match *self {
            Estimate::Between { low, high } => (low, high),
            Estimate::Share { hits, all } => wilson(hits, all, confidence),
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

    /// About how many repeats would make its interval at a confidence narrower than `distance` on either side that it
    /// has; `None` where repeats do not help.
    pub fn repeats_for(&self, distance: f64, confidence: f64) -> Option<u32> {
        let repeats = match *self {
            Estimate::Mean { repeats, .. } => repeats,
            Estimate::Share { all, .. } => all,
            Estimate::Between { .. } => return None,
        };
        let (low, high) = self.without_ends(Lacks::default()).interval_at(confidence);
        let needed = (repeats as f64 * ((high - low) / 2.0 / distance).powi(2)).ceil();
        (!needed.is_nan()).then(|| (needed as u32).max(repeats as u32 + 1))
    }
}

/// A mean over repeats with its 95 % confidence interval (Student's t).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanInterval {
    /// Arithmetic mean.
    pub mean: f64,
    /// Half the width of the interval; absent below three repeats, of which it would be many times as wide as they lie apart.
    pub half_width: Option<f64>,
    /// The smallest value.
    pub smallest: f64,
    /// The largest value.
    pub largest: f64,
    /// Repeats.
    pub n: usize,
}

impl MeanInterval {
    /// The mean of `values`; `None` without values.
    pub fn mean_of(values: &[f64]) -> Option<MeanInterval> {
        let n = values.len();
        let half_width = (n > 2).then(|| {
            let (low, high) = Estimate::mean_of(values).interval(1);
            (high - low) / 2.0
        });
        Some(MeanInterval {
            mean: mean(values.iter().copied())?,
            half_width,
            smallest: values.iter().copied().reduce(f64::min)?,
            largest: values.iter().copied().reduce(f64::max)?,
            n,
        })
    }

    /// Lower end of the interval, not below zero: no figure here can be negative. Below three repeats the smallest value.
    pub fn low(&self) -> f64 {
        let low = |half: f64| (self.mean - half).max(0.0);
        self.half_width.map_or(self.smallest, low)
    }

    /// Upper end of the interval; below three repeats the largest value.
    pub fn high(&self) -> f64 {
        let high = |half: f64| self.mean + half;
        self.half_width.map_or(self.largest, high)
    }
}

/// A ratio of two means with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Ratio of the geometric means.
    pub ratio: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Ratio {
    /// Whether the interval excludes 1: a difference that is not chance.
    pub fn is_clear(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }
}

/// `a` over `b` by Welch's t on logarithms, at a confidence of `1 - 0.05 / comparisons`
/// (Bonferroni: of many comparisons some would seem clear by chance).
///
/// `None` with fewer than two repeats on either side or a value that is not positive.
pub fn ratio(a: &[f64], b: &[f64], comparisons: usize) -> Option<Ratio> {
    if a.len() < 2 || b.len() < 2 || a.iter().chain(b).any(|value| *value <= 0.0) {
        return None;
    }
    let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<f64>>();
    let change = Estimate::difference(&logs(b), &logs(a), false);
    let (low, high) = change.interval(comparisons);
    Some(Ratio {
        ratio: change.middle().exp(),
        low: low.exp(),
        high: high.exp(),
    })
}

/// Wilson's interval of a share, `hits` of `all`, at a confidence, 0 to 1.
pub fn wilson(hits: usize, all: usize, confidence: f64) -> (f64, f64) {
    let z = Normal::standard().inverse_cdf(1.0 - (1.0 - confidence) / 2.0);
    let (n, p) = (all as f64, hits as f64 / all.max(1) as f64);
    if all == 0 {
        return (0.0, 1.0);
    }
    let scale = 1.0 + z * z / n;
    let middle = p + z * z / (2.0 * n);
    let half = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
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

/// Weights of a trend over the order of so many points, which see any rise, wherever its steps are (the contrast of
/// Abelson and Tukey, 1963, which of all contrasts has the largest least power). Of a straight line they give last minus
/// first.
pub fn isotonic(points: usize) -> Vec<f64> {
    let n = points as f64;
    // The share of a step that lies after the `at`-th point.
    let step = |at: usize| (at as f64 * (1.0 - at as f64 / n)).sqrt();
    let raw: Vec<f64> = (0..points).map(|at| step(at) - step(at + 1)).collect();
    let straight = raw.iter().enumerate();
    let straight: f64 = straight.map(|(at, w)| w * at as f64 / (n - 1.0)).sum();
    raw.iter().map(|weight| weight / straight).collect()
}

/// A least-squares line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearFit {
    mean_x: f64,
    mean_y: f64,
    pub slope: f64,
    /// Standard error of the slope.
    pub error: f64,
}

impl LinearFit {
    /// The line through points (x, y); `None` through fewer than three, or where all have the same x.
    pub fn through(points: &[(f64, f64)]) -> Option<LinearFit> {
        let n = points.len() as f64;
        let mean_x = points.iter().map(|p| p.0).sum::<f64>() / n;
        let mean_y = points.iter().map(|p| p.1).sum::<f64>() / n;
        let sxx: f64 = points.iter().map(|p| (p.0 - mean_x).powi(2)).sum();
        let sxy: f64 = points.iter().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum();
        if n < 3.0 || sxx <= 0.0 {
            return None;
        }
        let mut line = LinearFit {
            mean_x,
            mean_y,
            slope: sxy / sxx,
            error: 0.0,
        };
        let residual: f64 = points.iter().map(|p| line.residual(p).powi(2)).sum();
        line.error = (residual / (n - 2.0) / sxx).sqrt();
        Some(line)
    }

    /// Its value at an x.
    pub fn value_at(&self, x: f64) -> f64 {
        self.mean_y + self.slope * (x - self.mean_x)
    }

    /// How far a point lies above it.
    pub fn residual(&self, point: &(f64, f64)) -> f64 {
        point.1 - self.value_at(point.0)
    }

    /// The factor by which the slope's error is larger because neighbouring points are correlated,
    /// from the effective number of points of a first-order autoregressive process.
    pub fn autocorrelation_factor(&self, points: &[(f64, f64)]) -> f64 {
        let residuals: Vec<f64> = points.iter().map(|p| self.residual(p)).collect();
        autocorrelation_factor(&residuals)
    }
}

/// The factor by which an error is larger because neighbouring residuals are correlated, from the effective number of
/// points of a first-order autoregressive process.
pub fn autocorrelation_factor(residuals: &[f64]) -> f64 {
    let square: f64 = residuals.iter().map(|r| r * r).sum();
    let pairs: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
    if square <= 0.0 {
        return 1.0;
    }
    let r = (pairs / square).clamp(0.0, 0.9);
    ((1.0 + r) / (1.0 - r)).sqrt()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn equal_values_have_no_spread() {
        for value in [5.0_f64, 6.0, 31.0, 2000.0, 61_471.0] {
            assert_eq!(moments(&[value.ln(); 3]), (value.ln(), 0.0), "{value}");
        }
    }

    #[test]
    fn intervals_of_known_values() {
        // Textbook: n = 5, mean 10, s = 1.5811, t(0.975, 4) = 2.7764.
        let (low, high) = Estimate::mean_of(&[8.0, 9.0, 10.0, 11.0, 12.0]).interval(1);
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
    fn differences_are_of_pairs_or_welchs() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0], [2.0, 2.5, 4.5, 5.5]);
        let pairs = Estimate::difference(&a, &b, true);
        let known = MeanInterval::mean_of(&[1.0, 0.5, 1.5, 1.5]).unwrap();
        let (low, high) = pairs.interval(1);
        assert!((pairs.middle() - known.mean).abs() < 1e-12);
        assert!(((high - low) / 2.0 - known.half_width.unwrap()).abs() < 1e-9);
        let welch = Estimate::difference(&a, &b, false);
        assert_eq!(welch, Estimate::contrast(&[(1.0, &b), (-1.0, &a)]));
    }

    #[test]
    fn repeats_that_are_needed() {
        let e = Estimate::mean_of(&[8.0, 9.0, 10.0, 11.0, 12.0]);
        assert_eq!(e.repeats_for(0.98, CONFIDENCE), Some(21));
        assert_eq!(e.repeats_for(0.0, CONFIDENCE), Some(u32::MAX));
        let agreeing = Estimate::mean_of(&[8.0, 8.0, 8.0]);
        assert_eq!(agreeing.repeats_for(0.0, CONFIDENCE), None);
    }

    #[test]
    fn wilsons_interval_of_known_values() {
        let (low, high) = wilson(8, 10, CONFIDENCE);
        assert!((low - 0.4902).abs() < 1e-3 && (high - 0.9433).abs() < 1e-3);
        assert_eq!(wilson(0, 0, CONFIDENCE), (0.0, 1.0));
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
    fn trends_of_known_curves() {
        for points in [2, 3, 5, 11] {
            let weights = isotonic(points);
            let of = |curve: &dyn Fn(usize) -> f64| -> f64 {
                let terms = weights.iter().enumerate();
                terms.map(|(at, weight)| weight * curve(at)).sum()
            };
            let last = (points - 1) as f64;
            assert!((of(&|at| 2.0 * at as f64 + 5.0) - 2.0 * last).abs() < 1e-9);
            assert!(of(&|_| 7.0).abs() < 1e-9);
            // A step anywhere is seen.
            for place in 1..points {
                let step = of(&|at| if at < place { 0.0 } else { 1.0 });
                assert!((0.6..1.4).contains(&step), "{points} {place}: {step}");
            }
        }
    }

    #[test]
    fn a_line_through_points() {
        let points = [(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)];
        let line = LinearFit::through(&points).unwrap();
        assert!((line.slope - 2.0).abs() < 1e-12 && line.error < 1e-12);
        assert!(
            points
                .iter()
                .all(|point| line.residual(point).abs() < 1e-12)
        );
        assert_eq!(LinearFit::through(&points[..2]), None);
        assert_eq!(LinearFit::through(&[(1.0, 1.0); 3]), None);
    }

    #[test]
    fn the_upper_of_two_middles_is_the_median() {
        assert_eq!(median([3, 1, 2, 4], u64::cmp), Some(3));
        assert_eq!(median([2.0, 9.0, 1.0], f64::total_cmp), Some(2.0));
        assert_eq!(median([], u64::cmp), None);
    }

    #[test]
    fn interval_of_known_values() {
        // Textbook: n = 5, mean 10, s = 1.5811, t(0.975, 4) = 2.7764.
        let e = MeanInterval::mean_of(&[8.0, 9.0, 10.0, 11.0, 12.0]).unwrap();
        assert_eq!(e.mean, 10.0);
        assert!((e.half_width.unwrap() - 1.9632).abs() < 1e-3, "{e:?}");
        assert_eq!(MeanInterval::mean_of(&[3.0]).unwrap().half_width, None);
        let two = MeanInterval::mean_of(&[3.0, 1.0]).unwrap();
        assert_eq!((two.half_width, two.low(), two.high()), (None, 1.0, 3.0));
        assert_eq!(MeanInterval::mean_of(&[]), None);
    }

    #[test]
    fn ratios() {
        let clear = ratio(&[200.0, 210.0, 190.0], &[100.0, 105.0, 95.0], 1).unwrap();
        assert!(
            clear.is_clear() && (clear.ratio - 2.0).abs() < 0.01,
            "{clear:?}"
        );
        let tie = ratio(&[100.0, 120.0, 90.0], &[105.0, 95.0, 110.0], 1).unwrap();
        assert!(!tie.is_clear(), "{tie:?}");
        assert_eq!(ratio(&[1.0], &[2.0, 3.0], 1), None);
        assert_eq!(ratio(&[0.0, 1.0], &[2.0, 3.0], 1), None);
        assert!(ratio(&[2.0, 2.0], &[1.0, 1.0], 1).unwrap().is_clear());
    }

    proptest! {
        #[test]
        fn more_comparisons_never_narrow(a in prop::collection::vec(1.0f64..1e6, 2..10),
                                         b in prop::collection::vec(1.0f64..1e6, 2..10)) {
            let one = ratio(&a, &b, 1).unwrap();
            let many = ratio(&a, &b, 8).unwrap();
            prop_assert!(many.low <= one.low * 1.000001 && many.high >= one.high * 0.999999);
            let back = ratio(&b, &a, 1).unwrap();
            prop_assert!((one.ratio * back.ratio - 1.0).abs() < 1e-9);
            prop_assert_eq!(one.is_clear(), back.is_clear());
        }
    }
}
