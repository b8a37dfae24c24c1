//! Exact pacing: the k-th message of a rate is due at the whole nanosecond below k / rate, for
//! every k, however it is reached.

use crate::units::Nanos;

/// Nanoseconds per second times [`RESOLUTION`].
const NUMERATOR: u128 = 1_000_000_000 * RESOLUTION;

/// Rates are held in millionths of a millionth of a message per second: an error of at most
/// 0.5e-12/s, which is 1.6 us an hour for a message every 15 minutes.
const RESOLUTION: u128 = 1_000_000_000_000;

/// A rate as an exact fraction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    denominator: u128,
}

/// A point on the schedule: whole nanoseconds and the fraction that was cut off.
#[derive(Clone, Copy, Debug)]
pub(super) struct SchedulePoint {
    whole: u128,
    fraction: u128,
}

impl SchedulePoint {
    /// Whole nanoseconds; `None` beyond 584 years.
    pub(super) fn nanos(self) -> Option<Nanos> {
        Nanos::try_from(self.whole).ok()
    }
}

impl Pace {
    /// `per_s` messages a second; `None` if that is not above zero, or above 10^12.
    pub(super) fn new(per_s: f64) -> Option<Self> {
        let scaled = (per_s * RESOLUTION as f64).round();
        (scaled >= 1.0 && scaled <= 1e12 * RESOLUTION as f64).then_some(Pace {
            denominator: scaled as u128,
        })
    }

    /// When message `k` is due: exact for `k` below 10^14, saturating far above.
    pub(super) fn due_time(self, k: u64) -> SchedulePoint {
        let product = NUMERATOR.saturating_mul(u128::from(k));
        SchedulePoint {
            whole: product / self.denominator,
            fraction: product % self.denominator,
        }
    }

    /// When a place between messages is reached, counted in messages; saturating.
    pub(super) fn time_at(self, messages: f64) -> Nanos {
        (messages * NUMERATOR as f64 / self.denominator as f64) as Nanos
    }

    /// `point` moved on by `step`, a result of [`Pace::at`]: exact, without a division.
    pub(super) fn advance(self, point: &mut SchedulePoint, step: SchedulePoint) {
        point.whole = point.whole.saturating_add(step.whole);
        point.fraction += step.fraction;
        if point.fraction >= self.denominator {
            point.fraction -= self.denominator;
            point.whole += 1;
        }
    }

    /// How many messages are due in the first `span` nanoseconds, its end excluded.
    pub(super) fn due_within(self, span: Nanos) -> u64 {
        // The smallest k with NUMERATOR * k / denominator >= span.
        let product = u128::from(span).saturating_mul(self.denominator);
        u64::try_from(product.div_ceil(NUMERATOR)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn whole_rates_are_exact() {
        let pace = Pace::new(3.0).expect("valid");
        assert_eq!(pace.due_time(1).nanos(), Some(333_333_333));
        assert_eq!(pace.due_time(2).nanos(), Some(666_666_666));
        // After a year, still on the beat.
        let year = 365 * 24 * 3600;
        assert_eq!(pace.due_time(3 * year).nanos(), Some(year * 1_000_000_000));
    }

    #[test]
    fn no_rate_no_pace() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Pace::new(rate).is_none(), "{rate}");
        }
    }

    proptest! {
        #[test]
        fn steps_reach_the_same_points(rate in 0.001f64..5e6, stride in 1u64..100_000, steps in 1u64..200) {
            let pace = Pace::new(rate).expect("valid");
            let step = pace.due_time(stride);
            let mut point = pace.due_time(0);
            for _ in 0..steps {
                pace.advance(&mut point, step);
            }
            prop_assert_eq!(point.nanos(), pace.due_time(stride * steps).nanos());
        }

        #[test]
        fn due_within_counts_points(rate in 0.1f64..1e5, span in 1u64..50_000_000) {
            let pace = Pace::new(rate).expect("valid");
            let n = pace.due_within(span);
            prop_assert!(n >= 1);
            prop_assert!(pace.due_time(n - 1).nanos().expect("small") < span);
            prop_assert!(pace.due_time(n).nanos().expect("small") >= span);
        }
    }
}
