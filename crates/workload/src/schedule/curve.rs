//! Exact pacing over a rate that changes: message k is due at the whole nanosecond below the moment at which the area under
//! the rate passes k, worked out in whole numbers, however it is reached.

use crate::curve::{RateCurve, RatePiece};
use crate::units::Nanos;

/// Nanoseconds of a second.
const NANOS: u128 = 1_000_000_000;

/// Products of a rate and the square of a length stay below this.
const MOST: f64 = 8e37;

/// A piece in whole numbers: rates in [`CurvePace::unit`]s.
#[derive(Clone, Copy, Debug)]
struct ExactPiece {
    lasts: u128,
    from: u128,
    to: u128,
}

impl ExactPiece {
    /// Messages in the piece, in units.
    fn area(&self) -> u128 {
        (self.from + self.to) * self.lasts
    }

    /// The area of the first `t` nanoseconds, times the length of the piece.
    fn scaled_area(&self, t: u128) -> u128 {
        let level = 2 * self.from * self.lasts;
        let slope = if self.to >= self.from {
            level + (self.to - self.from) * t
        } else {
            level - (self.from - self.to) * t
        };
        slope * t
    }

    /// The last whole nanosecond of the piece up to which no more than `area` has passed, in units.
    fn time_of(&self, area: u128) -> u128 {
        let scaled = area * self.lasts;
        let fits = |t: u128| self.scaled_area(t) <= scaled;
        let last = self.lasts - 1;
        let mut low = self.guess(scaled).min(last);
        let mut step = 1;
        let mut high;
        if fits(low) {
            high = low + 1;
            while high <= last && fits(high) {
                low = high;
                high = (high + step).min(last + 1);
                step *= 2;
            }
        } else {
            high = low;
            low -= 1;
            while !fits(low) {
                high = low;
                low = low.saturating_sub(step);
                step *= 2;
            }
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fits(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    /// About when, by floating-point numbers.
    fn guess(&self, scaled: u128) -> u128 {
        let square = self.to as f64 - self.from as f64;
        let linear = 2.0 * self.from as f64 * self.lasts as f64;
        let scaled = scaled as f64;
        let root = (linear * linear + 4.0 * square * scaled).max(0.0).sqrt();
        let divisor = linear + root;
        if divisor > 0.0 {
            (2.0 * scaled / divisor) as u128
        } else {
            0
        }
    }
}

/// A rate that changes, as exact fractions, and a place in it.
#[derive(Clone, Debug)]
pub(crate) struct CurvePace {
    pieces: Box<[ExactPiece]>,
    repeats: bool,
    /// A message, in the units of areas: twice the nanoseconds of a second, times what a rate of one a second is.
    unit: u128,
    /// The piece that is reached; its beginning, in nanoseconds and in messages (units).
    piece: usize,
    start: u128,
    before: u128,
}

impl CurvePace {
    /// `None` for a curve without messages, or too long or fast to be exact.
    pub(crate) fn new(curve: &RateCurve) -> Option<CurvePace> {
        let pieces = || curve.pieces.iter().filter(|piece| piece.lasts > 0);
        let rates = || pieces().flat_map(|piece| [piece.from_per_s, piece.to_per_s]);
        if !rates().all(|rate| (0.0..=1e12).contains(&rate)) {
            return None;
        }
        let fastest = rates().fold(0.0, f64::max);
        let longest = pieces().map(|piece| piece.lasts).max()? as f64;
        let mut resolution = 1_000_000_000_000_u128;
        while 2.0 * fastest * resolution as f64 * longest * longest > MOST {
            resolution /= 10;
        }
        let exact = |per_s: f64| (per_s * resolution as f64).round() as u128;
        let piece = |piece: &RatePiece| ExactPiece {
            lasts: piece.lasts.into(),
            from: exact(piece.from_per_s),
            to: exact(piece.to_per_s),
        };
        let pieces: Box<[ExactPiece]> = pieces().map(piece).collect();
        let some = pieces.iter().any(|piece| piece.area() > 0);
        (resolution > 0 && some).then_some(CurvePace {
            pieces,
            repeats: curve.repeats,
            unit: 2 * NANOS * resolution,
            piece: 0,
            start: 0,
            before: 0,
        })
    }

    /// Goes back to the beginning.
    pub(super) fn rewind(&mut self) {
        (self.piece, self.start, self.before) = (0, 0, 0);
    }

    /// When message `k` is due, nanoseconds from the beginning. Each `k` is no less than the one before. `None` if none
    /// is due any more.
    pub(super) fn due_time(&mut self, k: u64) -> Option<Nanos> {
        self.time_of(self.unit.checked_mul(k.into())?)
    }

    /// When a place between messages is due, counted in messages.
    pub(super) fn time_at(&mut self, messages: f64) -> Option<Nanos> {
        self.time_of((messages * self.unit as f64) as u128)
    }

    fn time_of(&mut self, area: u128) -> Option<Nanos> {
        if self.repeats && area >= self.before {
            // Whole turns at once.
            let turn: u128 = self.pieces.iter().map(ExactPiece::area).sum();
            let turns = (area - self.before) / turn;
            let lasts: u128 = self.pieces.iter().map(|piece| piece.lasts).sum();
            self.before += turns * turn;
            self.start += turns * lasts;
        }
        loop {
            let Some(piece) = self.pieces.get(self.piece) else {
                let last = self.pieces[self.pieces.len() - 1].to;
                let after = (area - self.before).checked_div(2 * last)?;
                return Nanos::try_from(self.start + after).ok();
            };
            let within = area - self.before;
            if within < piece.area() {
                return Nanos::try_from(self.start + piece.time_of(within)).ok();
            }
            self.start += piece.lasts;
            self.before += piece.area();
            self.piece += 1;
            if self.repeats && self.piece == self.pieces.len() {
                self.piece = 0;
            }
        }
    }

    /// How many messages are due in the first `span` nanoseconds, its end excluded.
    pub(crate) fn due_within(&self, span: Nanos) -> u64 {
        let mut left = u128::from(span);
        let mut area: u128 = 0;
        let whole: u128 = self.pieces.iter().map(|piece| piece.lasts).sum();
        if self.repeats {
            let turns = left / whole;
            area += turns * self.pieces.iter().map(ExactPiece::area).sum::<u128>();
            left -= turns * whole;
        }
        // A part of a message that the piece has passed is one that is due.
        let mut part = false;
        for piece in &self.pieces {
            if left < piece.lasts {
                let scaled = piece.scaled_area(left);
                area += scaled / piece.lasts;
                part = !scaled.is_multiple_of(piece.lasts);
                left = 0;
                break;
            }
            area += piece.area();
            left -= piece.lasts;
        }
        let last = 2 * self.pieces[self.pieces.len() - 1].to;
        area = area.saturating_add(last.saturating_mul(left));
        let messages = area / self.unit + u128::from(part || !area.is_multiple_of(self.unit));
        u64::try_from(messages).unwrap_or(u64::MAX)
    }
}

impl RateCurve {
    /// How many messages are due in the first `span`, its end excluded; exact.
    pub fn messages_within(&self, span: Nanos) -> u64 {
        CurvePace::new(self).map_or(0, |pace| pace.due_within(span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::SECOND;
    use proptest::prelude::*;

    fn times(curve: &RateCurve, messages: u64) -> Vec<Option<Nanos>> {
        let mut pace = CurvePace::new(curve).expect("valid");
        (0..messages).map(|k| pace.due_time(k)).collect()
    }

    #[test]
    fn a_level_curve_is_a_rate() {
        let level = RateCurve::steps(vec![RatePiece::level(3.0, SECOND)]);
        let rate = super::super::pace::Pace::new(3.0).expect("valid");
        let expected: Vec<_> = (0..1_000).map(|k| rate.due_time(k).nanos()).collect();
        assert_eq!(times(&level, 1_000), expected);
    }

    #[test]
    fn a_ramp_from_nothing_goes_by_square_roots() {
        // The area is t * t, in seconds: message k is due at the root of k.
        let ramp = RateCurve::ramp(0.0, 20.0, 10 * SECOND);
        for (k, at) in (0..100_u64).zip(times(&ramp, 100)) {
            let at = u128::from(at.expect("due"));
            let square = u128::from(k) * NANOS * NANOS;
            assert!(
                at * at <= square && square < (at + 1) * (at + 1),
                "{k}: {at}"
            );
        }
        // Then two in each tenth of a second.
        assert_eq!(times(&ramp, 121)[120], Some(11 * SECOND));
    }

    #[test]
    fn silence_is_silent_and_ends_with_the_message_that_was_due() {
        let steps = RateCurve::steps(vec![
            RatePiece::level(10.0, SECOND),
            RatePiece::level(0.0, 2 * SECOND),
            RatePiece::level(10.0, SECOND),
        ]);
        let at = times(&steps, 12);
        assert_eq!(at[9], Some(9 * SECOND / 10));
        assert_eq!(at[10..], [Some(3 * SECOND), Some(31 * SECOND / 10)]);
        let end = RateCurve::steps(vec![
            RatePiece::level(10.0, SECOND),
            RatePiece::level(0.0, SECOND),
        ]);
        assert_eq!(times(&end, 12)[9..], [Some(9 * SECOND / 10), None, None]);
        assert_eq!(end.messages_within(100 * SECOND), 10);
    }

    fn curve() -> impl Strategy<Value = RateCurve> {
        let rate = prop_oneof![Just(0.0), 0.001f64..10.0, 1.0f64..5e5];
        let piece = (1u64..100_000_000_000, rate.clone(), rate, any::<bool>());
        (proptest::collection::vec(piece, 1..5), any::<bool>()).prop_map(|(pieces, repeats)| {
            let pieces = pieces
                .into_iter()
                .map(|(lasts, from_per_s, to, level)| RatePiece {
                    lasts,
                    from_per_s,
                    to_per_s: if level { from_per_s } else { to },
                });
            RateCurve {
                pieces: pieces.collect(),
                repeats,
                stretched: false,
            }
        })
    }

    proptest! {
        /// The two ways to ask agree: how many are due before a time, and when the next one is.
        #[test]
        fn times_and_counts_agree(curve in curve(), span in 1u64..300_000_000_000) {
            let Some(pace) = CurvePace::new(&curve) else { return Ok(()) };
            let count = pace.due_within(span);
            if count > 0 {
                let last = pace.clone().due_time(count - 1).expect("due");
                prop_assert!(last < span, "{last}");
            }
            if let Some(next) = pace.clone().due_time(count) {
                prop_assert!(next >= span, "{next}");
            }
        }

        #[test]
        fn times_do_not_depend_on_the_way_to_them(curve in curve(), from in 0u64..1_000_000, steps in 1u64..50) {
            let Some(pace) = CurvePace::new(&curve) else { return Ok(()) };
            let mut walking = pace.clone();
            for k in from..from + steps {
                prop_assert_eq!(walking.due_time(k), pace.clone().due_time(k));
            }
        }

        /// The area under the curve, by trapezoids in floating-point numbers.
        #[test]
        fn counts_are_areas(curve in curve(), span in 1u64..300_000_000_000) {
            let area = curve.mean_per_s(span) * span as f64 / 1e9;
            let count = curve.messages_within(span) as f64;
            prop_assert!((count - area).abs() <= 1.0 + 1e-9 * area, "{count} {area}");
        }
    }
}
