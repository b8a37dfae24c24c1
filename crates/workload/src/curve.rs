//! A load that changes over time: how fast a flow sends at each moment.

use serde::{Deserialize, Serialize};

use crate::units::{Nanos, SECOND};

/// Pieces of a day that are straight lines.
const PIECES_OF_A_DAY: u64 = 96;

/// A rate over time, in pieces that are straight lines. It begins with the measurement, or with the flow, where that has a
/// beginning of its own; before it, in the warm-up, its first rate holds, and after it the last one, unless it repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateCurve {
    /// One after the other; at least one.
    pub pieces: Vec<RatePiece>,
    /// It begins again at its end.
    pub repeats: bool,
    /// Its only piece takes as long as the flow sends: see [`crate::Workload::stretch_curves`].
    pub stretched: bool,
}

/// A straight line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RatePiece {
    /// Its length.
    pub lasts: Nanos,
    /// Messages per second over all publishers of the flow at its beginning; 0 for none.
    pub from_per_s: f64,
    /// At its end.
    pub to_per_s: f64,
}

impl RatePiece {
    /// Always as fast.
    pub fn level(per_s: f64, lasts: Nanos) -> RatePiece {
        RatePiece {
            lasts,
            from_per_s: per_s,
            to_per_s: per_s,
        }
    }

    /// The rate so long after its beginning.
    fn per_s_at(&self, t: Nanos) -> f64 {
        let share = t as f64 / self.lasts.max(1) as f64;
        self.from_per_s + share.min(1.0) * (self.to_per_s - self.from_per_s)
    }
}

impl RateCurve {
    /// One rate after the other.
    pub fn steps(pieces: Vec<RatePiece>) -> RateCurve {
        RateCurve {
            pieces,
            repeats: false,
            stretched: false,
        }
    }

    /// From one rate to another in a straight line.
    pub fn ramp(from_per_s: f64, to_per_s: f64, lasts: Nanos) -> RateCurve {
        RateCurve::steps(vec![RatePiece {
            lasts,
            from_per_s,
            to_per_s,
        }])
    }

    /// Days of a length, again and again: a cosine between two rates, highest so long after the beginning of each, in
    /// straight lines of a quarter of an hour of the day.
    pub fn daily((low_per_s, high_per_s): (f64, f64), day: Nanos, peak_at: Nanos) -> RateCurve {
        let at = |n: u64| (u128::from(day) * u128::from(n) / u128::from(PIECES_OF_A_DAY)) as Nanos;
        let per_s = |n: u64| {
            let of_day = n as f64 / PIECES_OF_A_DAY as f64 - peak_at as f64 / day.max(1) as f64;
            let height = (1.0 + (std::f64::consts::TAU * of_day).cos()) / 2.0;
            low_per_s + height * (high_per_s - low_per_s)
        };
        let pieces = (0..PIECES_OF_A_DAY).map(|n| RatePiece {
            lasts: at(n + 1) - at(n),
            from_per_s: per_s(n),
            to_per_s: per_s(n + 1),
        });
        RateCurve {
            pieces: pieces.filter(|piece| piece.lasts > 0).collect(),
            repeats: true,
            stretched: false,
        }
    }

    /// Its length; where it repeats, that of one turn.
    pub fn length(&self) -> Nanos {
        self.pieces.iter().map(|piece| piece.lasts).sum()
    }

    /// The rate with which it begins, messages per second.
    pub fn first_per_s(&self) -> f64 {
        self.pieces.first().map_or(0.0, |piece| piece.from_per_s)
    }

    /// The rate so long after its beginning, messages per second. Where one piece ends and another begins, that of the
    /// later one.
    pub fn per_s_at(&self, t: Nanos) -> f64 {
        let length = self.length();
        let mut left = match (self.repeats, length) {
            (true, 1..) => t % length,
            _ => t,
        };
        for piece in &self.pieces {
            if left < piece.lasts {
                return piece.per_s_at(left);
            }
            left -= piece.lasts;
        }
        self.pieces.last().map_or(0.0, |piece| piece.to_per_s)
    }

    /// The highest rate in the first `span`, messages per second.
    pub fn peak_per_s(&self, span: Nanos) -> f64 {
        let points = self.points(span).into_iter().map(|(_, per_s)| per_s);
        points.fold(0.0, f64::max)
    }

    /// The mean rate of the first `span`, messages per second.
    pub fn mean_per_s(&self, span: Nanos) -> f64 {
        let points = self.points(span);
        let area = points.windows(2).map(|pair| {
            let [(from, first), (to, last)] = [pair[0], pair[1]];
            (to - from) as f64 / SECOND as f64 * (first + last) / 2.0
        });
        match span {
            0 => self.first_per_s(),
            span => area.sum::<f64>() / (span as f64 / SECOND as f64),
        }
    }

    /// The corners of its lines in the first `span`, from its beginning on: when, and messages per second. A step has two at
    /// one time.
    pub fn points(&self, span: Nanos) -> Vec<(Nanos, f64)> {
        let mut points = Vec::new();
        let mut start = 0;
        while start < span && !self.pieces.is_empty() {
            for piece in &self.pieces {
                if start >= span {
                    break;
                }
                let lasts = piece.lasts.min(span - start);
                let line = [
                    (start, piece.from_per_s),
                    (start + lasts, piece.per_s_at(lasts)),
                ];
                for point in line {
                    if points.last() != Some(&point) {
                        points.push(point);
                    }
                }
                start += lasts;
            }
            if start == 0 || !self.repeats {
                break;
            }
        }
        let before = points.len().checked_sub(2).map(|nth| points[nth].1);
        if let Some((end, per_s)) = points.last_mut()
            && *end < span
        {
            if before == Some(*per_s) {
                *end = span;
            } else {
                let level = *per_s;
                points.push((span, level));
            }
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_high_at_its_peak_and_low_half_a_day_from_it() {
        let day = RateCurve::daily((100.0, 900.0), 60 * SECOND, 20 * SECOND);
        let at = |s: u64| day.per_s_at(s * SECOND);
        for (s, per_s) in [
            (20, 900.0),
            (50, 100.0),
            (35, 500.0),
            (80, 900.0),
            (65, 500.0),
        ] {
            assert!((at(s) - per_s).abs() < 0.5, "{s} s: {}", at(s));
        }
        assert!((day.mean_per_s(60 * SECOND) - 500.0).abs() < 1e-6);
        assert!((day.mean_per_s(120 * SECOND) - 500.0).abs() < 1e-6);
        assert_eq!(day.peak_per_s(120 * SECOND), day.peak_per_s(60 * SECOND));
        assert!(day.peak_per_s(SECOND) < 400.0);
    }

    #[test]
    fn steps_have_two_points_at_one_time_and_the_last_rate_holds() {
        let steps = RateCurve::steps(vec![
            RatePiece::level(10.0, SECOND),
            RatePiece::level(30.0, SECOND),
        ]);
        let points = [
            (0, 10.0),
            (SECOND, 10.0),
            (SECOND, 30.0),
            (2 * SECOND, 30.0),
        ];
        assert_eq!(steps.points(2 * SECOND), points);
        assert_eq!(steps.points(4 * SECOND).last(), Some(&(4 * SECOND, 30.0)));
        assert_eq!(steps.points(SECOND / 2), [(0, 10.0), (SECOND / 2, 10.0)]);
        assert_eq!(steps.mean_per_s(4 * SECOND), 25.0);
        assert_eq!(
            (steps.per_s_at(SECOND), steps.per_s_at(9 * SECOND)),
            (30.0, 30.0)
        );
    }
}
