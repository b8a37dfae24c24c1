//! The fit: the middle of all courses that the offset may have taken, and half their spread.

/// A drift is used if it is known to within this, ns per ns: 5 ppm. Over a trial of 10 s that is 50 us, about the
/// error of common clocks without a correction for drift.
const KNOWN_DRIFT: f64 = 5e-6;

/// Where the band of possible offsets has a corner. Between corners it is straight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    /// Since the fit's origin, near clock, ns.
    pub at: f64,
    /// Lowest and highest offset, ns beyond the fit's base.
    pub low: f64,
    pub high: f64,
}

impl Point {
    fn middle(&self) -> f64 {
        self.low.midpoint(self.high)
    }

    /// Half the width of the band.
    fn half(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// What a straight line through two points has at `at`.
    fn between(&self, next: &Point, at: f64) -> Point {
        let length = next.at - self.at;
        let share = match length > 0.0 {
            true => (at - self.at) / length,
            false => 0.0,
        };
        let mix = |from: f64, to: f64| from + share * (to - from);
        Point {
            at,
            low: mix(self.low, next.low),
            high: mix(self.high, next.high),
        }
    }
}

/// The offset at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// Far minus near clock, ns.
    pub ns: i64,
    /// How far the true offset lies from it at most, ns.
    pub bound_ns: u64,
}

/// A straight course of the far clock, by which readings are converted while the offset is still being
/// measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// A reading of the near clock, ns.
    pub near: u64,
    /// What the far clock is taken to read then, ns.
    pub far: u64,
    /// By how much the far clock is taken to gain on the near one, ns per ns.
    pub drift: f64,
}

/// The offset of a far clock against a near one over a span of time, piecewise linear.
#[derive(Clone, Debug)]
pub struct Fit {
    /// First moment, near clock, ns.
    origin: u64,
    /// The offset from which all others count, ns.
    base: i64,
    points: Vec<Point>,
    /// Cap on drift, ns per ns.
    drift: f64,
}

impl Fit {
    /// `points` in order of time, at least one.
    pub(crate) fn new(origin: u64, base: i64, points: Vec<Point>, drift: f64) -> Fit {
        Fit {
            origin,
            base,
            points,
            drift,
        }
    }

    /// First moment of the fit, near clock, ns.
    pub fn from(&self) -> u64 {
        self.origin
    }

    /// Last moment of the fit, near clock, ns.
    pub fn until(&self) -> u64 {
        self.origin + self.points[self.points.len() - 1].at as u64
    }

    /// The offset when the near clock read `near`, ns. Outside the fit's span the bound grows by the cap
    /// on drift.
    pub fn offset(&self, near: u64) -> Offset {
        let point = self.point(self.since(near));
        Offset {
            ns: self.base + point.middle().round() as i64,
            bound_ns: up(point.half()),
        }
    }

    /// Half the band at its worst moment, ns: within the fit's span no offset is wrong by more.
    pub fn bound_ns(&self) -> u64 {
        up(self.points.iter().map(Point::half).fold(0.0, f64::max))
    }

    /// The straight course on from `near` (near clock, ns) that fits best: through the offset then, with the
    /// mean drift of the fit's span if that is known to within 5 ppm, else without drift.
    pub fn line(&self, near: u64) -> Line {
        let (first, last) = (self.points[0], self.points[self.points.len() - 1]);
        let span = last.at - first.at;
        let drift = (last.middle() - first.middle()) / span;
        let is_known = span > 0.0 && (first.half() + last.half()) / span <= KNOWN_DRIFT;
        Line {
            near,
            far: self.far(near).max(0) as u64,
            drift: if is_known { drift } else { 0.0 },
        }
    }

    /// The largest error, ns, of a reading that was converted by `line` at a moment from `from` to `until` (near
    /// clock, ns): what this fit leaves open, and by how much it differs from the line, at the worst moment.
    pub fn bound_of_line(&self, line: &Line, from: u64, until: u64) -> u64 {
        let ends = [from, until.max(from)].map(|end| self.since(end));
        let corners = self.points.iter().map(|point| point.at);
        let moments = corners.filter(|at| *at > ends[0] && *at < ends[1]);
        // All differences are of readings below 2^63.
        let taken_then = i128::from(line.far) - i128::from(line.near) - i128::from(self.base);
        let wrong = moments.chain(ends).map(|at| {
            let passed = at + (i128::from(self.origin) - i128::from(line.near)) as f64;
            let taken = taken_then as f64 + passed * line.drift;
            let own = self.point(at);
            (own.high - taken).max(taken - own.low)
        });
        up(wrong.fold(0.0, f64::max))
    }

    /// What the far clock reads when the near one reads `near`, ns, to within the bound.
    pub fn far(&self, near: u64) -> i64 {
        // Readings are below 2^63 as long as a host's clock counts from its start.
        near as i64 + self.offset(near).ns
    }

    /// What the near clock reads when the far one reads `far`, ns. It is wrong by at most
    /// [`bound_ns`](Self::bound_ns) and the share of it that the cap on drift says, rounded up, within the
    /// fit's span.
    pub fn near(&self, far: u64) -> i64 {
        let beyond = i128::from(far) - i128::from(self.base) - i128::from(self.origin);
        let beyond = beyond as f64;
        // The far clock goes forward, and so do its readings at the corners.
        let reading = |point: &Point| point.at + point.middle();
        let next = self
            .points
            .partition_point(|point| reading(point) <= beyond);
        let last = self.points.len() - 1;
        let at = match next {
            0 => beyond - self.points[0].middle(),
            _ if next > last => beyond - self.points[last].middle(),
            _ => {
                let (one, other) = (&self.points[next - 1], &self.points[next]);
                let share = (beyond - reading(one)) / (reading(other) - reading(one));
                one.at + share * (other.at - one.at)
            }
        };
        self.origin as i64 + at.round() as i64
    }

    /// Since the origin, ns.
    fn since(&self, near: u64) -> f64 {
        (i128::from(near) - i128::from(self.origin)) as f64
    }

    fn point(&self, at: f64) -> Point {
        let (first, last) = (self.points[0], self.points[self.points.len() - 1]);
        let wider = |point: Point, by: f64| Point {
            at,
            low: point.low - by,
            high: point.high + by,
        };
        if at <= first.at {
            return wider(first, (first.at - at) * self.drift);
        }
        if at >= last.at {
            return wider(last, (at - last.at) * self.drift);
        }
        let next = self.points.partition_point(|point| point.at <= at);
        self.points[next - 1].between(&self.points[next], at)
    }
}

/// Rounded up; the offset itself was rounded too.
fn up(ns: f64) -> u64 {
    ns.ceil() as u64 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 ns ahead at first, then 10 more after 100 s; known to within 5, then 20 ns.
    fn known() -> Fit {
        let points = vec![
            Point {
                at: 0.0,
                low: -5.0,
                high: 5.0,
            },
            Point {
                at: 1e11,
                low: -10.0,
                high: 30.0,
            },
        ];
        Fit::new(7_000, 1_000, points, 1e-6)
    }

    #[test]
    fn the_middle_and_half_the_width() {
        let fit = known();
        assert_eq!((fit.from(), fit.until()), (7_000, 100_000_007_000));
        assert_eq!(
            fit.offset(7_000),
            Offset {
                ns: 1_000,
                bound_ns: 6
            }
        );
        let half_way = fit.offset(50_000_007_000);
        assert_eq!(
            half_way,
            Offset {
                ns: 1_005,
                bound_ns: 14
            }
        );
        assert_eq!(fit.bound_ns(), 21);
    }

    #[test]
    fn outside_its_span_it_knows_less() {
        let fit = known();
        assert_eq!(fit.offset(0).bound_ns, 7);
        let late = fit.offset(100_000_007_000 + 1_000_000_000);
        assert_eq!(
            late,
            Offset {
                ns: 1_010,
                bound_ns: 1_021
            }
        );
    }

    #[test]
    fn readings_are_turned_into_each_other() {
        let fit = known();
        for near in [0, 7_000, 50_000_007_000, 99_999_999_999, 200_000_000_000] {
            let far = fit.far(near);
            assert!((fit.near(far as u64) - near as i64).abs() <= 1, "{near}");
        }
        assert_eq!(fit.far(50_000_007_000), 50_000_008_005);
    }

    #[test]
    fn a_line_goes_on_from_a_fit() {
        let fit = known();
        let end = fit.until();
        // 10 ns in 100 s, known to within 25.
        let line = fit.line(end);
        assert_eq!((line.near, line.far), (end, end + 1_010));
        assert!((line.drift - 1e-10).abs() < 1e-15, "{}", line.drift);
        // Where the band is widest: its own half, and nothing beside it.
        assert_eq!(fit.bound_of_line(&line, fit.from(), end), 21);
        assert_eq!(fit.bound_of_line(&line, fit.from(), fit.from()), 6);
        let off = Line {
            far: line.far + 100,
            ..line
        };
        assert_eq!(fit.bound_of_line(&off, fit.from(), end), 121);
        // A drift that is not there is as wrong as it has become.
        let fast = Line {
            drift: 1e-6 + 1e-10,
            near: fit.from(),
            far: fit.from() + 1_000,
        };
        let bound = fit.bound_of_line(&fast, fit.from(), end);
        assert!((100_021..=100_022).contains(&bound), "{bound}");
    }

    #[test]
    fn a_drift_that_is_hardly_known_is_not_used() {
        let point = |at, low, high| Point { at, low, high };
        let points = vec![point(0.0, -50.0, 50.0), point(1e6, 50.0, 150.0)];
        let line = Fit::new(0, 0, points, 2e-4).line(1_000_000);
        assert_eq!((line.far, line.drift), (1_000_100, 0.0));
    }
}
