//! Sizes: a pure function from (seed, publisher, message of that publisher) to bytes.

use rand_distr::{Distribution, LogNormal, Normal};

use crate::draws::Draws;
use crate::model::Sizes;
use crate::units::MIN_SIZE;

/// How often a draw beyond the bounds is drawn again before it is cut to the nearer bound.
const REDRAWS: u32 = 64;

/// Keeps the draws of sizes apart from those of times.
const STREAM: u64 = 1 << 40;

/// A [`Sizes`] with its distribution prepared.
#[derive(Clone, Debug)]
pub(super) enum SizeModel {
    Fixed(u32),
    List(Box<[u32]>),
    Uniform {
        min: u32,
        span: u64,
    },
    Normal {
        normal: Normal<f64>,
        min: u32,
        max: u32,
    },
    LogNormal {
        normal: LogNormal<f64>,
        min: u32,
        max: u32,
    },
    Recorded,
}

impl SizeModel {
    /// Prepares `sizes`; a parameter that cannot be drawn from is an error in words.
    pub(super) fn new(sizes: &Sizes) -> Result<Self, String> {
        let ordered = |min: u32, max: u32| {
            if min > max {
                return Err(format!(
                    "the smallest size, {min} B, is above the largest, {max} B"
                ));
            }
            Ok((min.max(MIN_SIZE), max.max(MIN_SIZE)))
        };
        Ok(match sizes {
            Sizes::Fixed { bytes } => SizeModel::Fixed((*bytes).max(MIN_SIZE)),
            Sizes::List { bytes } if bytes.is_empty() => {
                return Err("a list of sizes needs at least one size".into());
            }
            Sizes::List { bytes } => {
                SizeModel::List(bytes.iter().map(|b| (*b).max(MIN_SIZE)).collect())
            }
            Sizes::Uniform { min, max } => {
                let (min, max) = ordered(*min, *max)?;
                SizeModel::Uniform {
                    min,
                    span: u64::from(max - min) + 1,
                }
            }
            Sizes::Normal { mean, sd, min, max } => {
                let (min, max) = ordered(*min, *max)?;
                let normal = Normal::new(*mean, *sd)
                    .ok()
                    .filter(|_| mean.is_finite() && *sd >= 0.0)
                    .ok_or_else(|| {
                        format!("no normal distribution has mean {mean} and deviation {sd}")
                    })?;
                SizeModel::Normal { normal, min, max }
            }
            Sizes::LogNormal {
                median,
                sigma,
                min,
                max,
            } => {
                let (min, max) = ordered(*min, *max)?;
                let normal = LogNormal::new(median.ln(), *sigma)
                    .ok()
                    .filter(|_| median.ln().is_finite() && *sigma >= 0.0)
                    .ok_or_else(|| {
                        format!("no log-normal distribution has median {median} and sigma {sigma}")
                    })?;
                SizeModel::LogNormal { normal, min, max }
            }
            Sizes::Recorded => SizeModel::Recorded,
        })
    }

    /// Bytes of the `nth` message of `publisher`; 0 for [`SizeModel::Recorded`].
    pub(super) fn bytes_of(&self, seed: u64, publisher: u32, nth: u64) -> u32 {
        let draws = || Draws::new(seed, STREAM + u64::from(publisher), nth);
        match self {
            SizeModel::Fixed(bytes) => *bytes,
            // Each publisher begins one element further on, so that they do not all send their
            // longest message at once.
            SizeModel::List(list) => {
                list[(nth.wrapping_add(u64::from(publisher)) % list.len() as u64) as usize]
            }
            SizeModel::Uniform { min, span } => min + draws().below(*span) as u32,
            SizeModel::Normal { normal, min, max } => draw_within(draws(), *min, *max, normal),
            SizeModel::LogNormal { normal, min, max } => draw_within(draws(), *min, *max, normal),
            SizeModel::Recorded => 0,
        }
    }
}

/// Draws until the value lies within the bounds: cutting would pile up messages at the bounds.
fn draw_within(mut draws: Draws, min: u32, max: u32, of: &impl Distribution<f64>) -> u32 {
    let mut value = 0.0;
    for _ in 0..REDRAWS {
        value = of.sample(&mut draws).round();
        if value >= f64::from(min) && value <= f64::from(max) {
            return value as u32;
        }
    }
    (value as u32).clamp(min, max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(sizes: Sizes) -> Vec<u32> {
        let model = SizeModel::new(&sizes).expect("valid");
        (0..20_000).map(|n| model.bytes_of(11, 5, n)).collect()
    }

    fn mean(sizes: &[u32]) -> f64 {
        sizes.iter().map(|s| f64::from(*s)).sum::<f64>() / sizes.len() as f64
    }

    #[test]
    fn uniform_covers_its_range() {
        let sizes = drawn(Sizes::Uniform { min: 20, max: 29 });
        assert_eq!(sizes.iter().min(), Some(&20));
        assert_eq!(sizes.iter().max(), Some(&29));
        assert!((mean(&sizes) - 24.5).abs() < 0.1);
    }

    #[test]
    fn normal_has_its_mean_and_bounds() {
        let sizes = drawn(Sizes::Normal {
            mean: 500.0,
            sd: 100.0,
            min: 200,
            max: 800,
        });
        assert!(sizes.iter().all(|s| (200..=800).contains(s)));
        assert!((mean(&sizes) - 500.0).abs() < 4.0);
        let below = sizes.iter().filter(|s| **s <= 400).count();
        // Share below one deviation under the mean: 15.9 %.
        assert!((2900..3500).contains(&below), "{below}");
    }

    #[test]
    fn log_normal_has_its_median() {
        let mut sizes = drawn(Sizes::LogNormal {
            median: 1000.0,
            sigma: 0.5,
            min: 16,
            max: 1_000_000,
        });
        sizes.sort_unstable();
        let median = f64::from(sizes[sizes.len() / 2]);
        assert!((median / 1000.0 - 1.0).abs() < 0.02, "{median}");
    }

    #[test]
    fn a_list_is_taken_in_turn() {
        let model = SizeModel::new(&Sizes::List {
            bytes: vec![100, 200, 300],
        })
        .expect("valid");
        let of = |p| (0..4).map(|n| model.bytes_of(0, p, n)).collect::<Vec<_>>();
        assert_eq!(of(0), [100, 200, 300, 100]);
        assert_eq!(of(1), [200, 300, 100, 200]);
    }

    #[test]
    fn nothing_is_below_the_header() {
        assert_eq!(drawn(Sizes::Fixed { bytes: 3 })[0], MIN_SIZE);
        assert!(
            drawn(Sizes::Uniform { min: 0, max: 20 })
                .iter()
                .all(|s| *s >= MIN_SIZE)
        );
    }

    #[test]
    fn impossible_parameters_are_refused() {
        for sizes in [
            Sizes::List { bytes: vec![] },
            Sizes::Uniform { min: 30, max: 20 },
            Sizes::Normal {
                mean: f64::NAN,
                sd: 1.0,
                min: 16,
                max: 20,
            },
            Sizes::LogNormal {
                median: 0.0,
                sigma: 1.0,
                min: 16,
                max: 20,
            },
        ] {
            assert!(SizeModel::new(&sizes).is_err(), "{sizes:?}");
        }
    }
}
