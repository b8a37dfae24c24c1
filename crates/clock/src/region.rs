//! What offset and drift may be together at one moment: a convex region of the plane.

/// Corners that a region keeps when it is carried on.
const MOST_CORNERS: usize = 48;

/// A state of the far clock beside the near one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct State {
    /// Offset, ns.
    pub offset: f64,
    /// Drift, ns per s.
    pub drift: f64,
}

/// States with `offset * a + drift * b <= most`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Half {
    pub a: f64,
    pub b: f64,
    pub most: f64,
}

impl Half {
    /// How far a state lies outside; not above 0 if inside.
    fn beyond(&self, state: State) -> f64 {
        self.a * state.offset + self.b * state.drift - self.most
    }
}

/// A convex polygon of states. Rounding moves its edges by far less than the nanosecond by which all
/// limits are widened.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    /// Counter-clockwise.
    corners: Vec<State>,
}

impl Region {
    /// Offsets from `low` to `high` with any drift of at most `drift` either way.
    pub fn new(low: f64, high: f64, drift: f64) -> Region {
        let corner = |offset, drift| State { offset, drift };
        Region {
            corners: vec![
                corner(low, -drift),
                corner(high, -drift),
                corner(high, drift),
                corner(low, drift),
            ],
        }
    }

    pub fn is_empty(&self) -> bool {
        self.corners.is_empty()
    }

    /// Leaves what lies in `half`.
    pub fn cut(&mut self, half: Half) {
        let count = self.corners.len();
        if self.corners.iter().all(|state| half.beyond(*state) <= 0.0) {
            return;
        }
        let mut kept = Vec::with_capacity(count + 1);
        for (n, here) in self.corners.iter().enumerate() {
            let next = self.corners[(n + 1) % count];
            let (before, after) = (half.beyond(*here), half.beyond(next));
            if before <= 0.0 {
                kept.push(*here);
            }
            if (before < 0.0 && after > 0.0) || (before > 0.0 && after < 0.0) {
                let share = before / (before - after);
                kept.push(State {
                    offset: here.offset + share * (next.offset - here.offset),
                    drift: here.drift + share * (next.drift - here.drift),
                });
            }
        }
        self.corners = kept;
    }

    /// Leaves what lies in `other` as well.
    pub fn meet(&mut self, other: &Region) {
        let corners = &other.corners;
        for (n, here) in corners.iter().enumerate() {
            let next = corners[(n + 1) % corners.len()];
            let (a, b) = (next.drift - here.drift, here.offset - next.offset);
            let most = a * here.offset + b * here.drift;
            self.cut(Half { a, b, most });
        }
    }

    /// Lets `seconds` go by, or back, at each state's drift.
    pub fn pass(&mut self, seconds: f64) {
        for state in &mut self.corners {
            state.offset += state.drift * seconds;
        }
    }

    /// Lets each drift change by at most `by` either way, up to `cap`.
    pub fn vary(&mut self, by: f64, cap: f64) {
        let corners = self.corners.iter();
        let moved = corners.flat_map(|state| {
            [-by, by].map(|by| State {
                drift: state.drift + by,
                ..*state
            })
        });
        self.corners = hull(moved.collect());
        self.trim();
        for b in [-1.0, 1.0] {
            let most = cap;
            self.cut(Half { a: 0.0, b, most });
        }
    }

    /// Leaves [`MOST_CORNERS`] at most, by extending the neighbours of those edges that add the least area: the
    /// region grows, and stays a bound.
    fn trim(&mut self) {
        while self.corners.len() > MOST_CORNERS {
            let count = self.corners.len();
            let edges = (0..count).filter_map(|edge| {
                let (tip, area) = self.tip(edge)?;
                Some((edge, tip, area))
            });
            let least = edges.min_by(|one, other| one.2.total_cmp(&other.2));
            let Some((edge, tip, _)) = least else { return };
            self.corners[edge] = tip;
            self.corners.remove((edge + 1) % count);
        }
    }

    /// Where the neighbours of the edge that begins at corner `edge` meet beyond it, and the area (twice it)
    /// between there and the edge; `None` if they do not.
    fn tip(&self, edge: usize) -> Option<(State, f64)> {
        let count = self.corners.len();
        let corner = |n: usize| self.corners[(edge + count + n - 1) % count];
        let (before, from, to, after) = (corner(0), corner(1), corner(2), corner(3));
        let way = |from: State, to: State| (to.offset - from.offset, to.drift - from.drift);
        let cross = |one: (f64, f64), other: (f64, f64)| one.0 * other.1 - one.1 * other.0;
        let (first, own, last) = (way(before, from), way(from, to), way(to, after));
        let turn = cross(first, last);
        // Neighbours that are as good as parallel meet nowhere that can be computed.
        let scale = first.0.hypot(first.1) * last.0.hypot(last.1);
        if turn <= 1e-9 * scale {
            return None;
        }
        let share = cross(own, last) / turn;
        let tip = State {
            offset: from.offset + share * first.0,
            drift: from.drift + share * first.1,
        };
        Some((tip, cross(way(from, tip), own).abs()))
    }

    /// Lowest and highest offset after `seconds` at the drift of each state.
    pub fn offsets(&self, seconds: f64) -> (f64, f64) {
        let mut range = (f64::INFINITY, f64::NEG_INFINITY);
        for state in &self.corners {
            let offset = state.offset + state.drift * seconds;
            range = (range.0.min(offset), range.1.max(offset));
        }
        range
    }

    /// Moments, in seconds from now up to `until`, between which [`offsets`](Self::offsets) is linear.
    pub fn kinks(&self, until: f64) -> Vec<f64> {
        let corners = &self.corners;
        let mut kinks = Vec::new();
        for (n, here) in corners.iter().enumerate() {
            let next = corners[(n + 1) % corners.len()];
            let moment = (here.offset - next.offset) / (next.drift - here.drift);
            if moment.is_finite() && moment > 0.0 && moment < until {
                kinks.push(moment);
            }
        }
        kinks.sort_by(f64::total_cmp);
        kinks
    }
}

/// The convex hull, counter-clockwise (Andrew's monotone chain).
fn hull(mut states: Vec<State>) -> Vec<State> {
    states.sort_by(|one, other| {
        let offset = one.offset.total_cmp(&other.offset);
        offset.then(one.drift.total_cmp(&other.drift))
    });
    states.dedup();
    if states.len() < 3 {
        return states;
    }
    let mut chain = half_hull(states.iter());
    chain.extend(half_hull(states.iter().rev()));
    chain
}

/// One half of a hull, without its last point.
fn half_hull<'a>(states: impl Iterator<Item = &'a State>) -> Vec<State> {
    let mut chain: Vec<State> = Vec::new();
    for state in states {
        while let [.., first, second] = chain[..]
            && turn(first, second, *state) <= 0.0
        {
            chain.pop();
        }
        chain.push(*state);
    }
    chain.pop();
    chain
}

/// Above 0 if the way from `a` over `b` to `c` turns left.
fn turn(a: State, b: State, c: State) -> f64 {
    (b.offset - a.offset) * (c.drift - a.drift) - (b.drift - a.drift) * (c.offset - a.offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upper(at: f64, most: f64) -> Half {
        Half {
            a: 1.0,
            b: at,
            most,
        }
    }

    #[test]
    fn limits_cut_offset_and_drift() {
        let mut region = Region::new(-100.0, 100.0, 10.0);
        assert_eq!(region.offsets(0.0), (-100.0, 100.0));
        assert_eq!(region.offsets(2.0), (-120.0, 120.0));
        region.cut(upper(0.0, 20.0));
        region.cut(upper(10.0, 20.0));
        assert_eq!(region.offsets(0.0).1, 20.0);
        assert_eq!(region.offsets(10.0).1, 20.0);
        // At most 20 at both ends, and so in between for any straight course.
        assert_eq!(region.offsets(5.0).1, 20.0);
        region.cut(Half {
            a: -1.0,
            b: -5.0,
            most: -20.5,
        });
        assert!(region.is_empty());
    }

    #[test]
    fn drift_varies_up_to_its_cap() {
        let mut region = Region::new(0.0, 1.0, 10.0);
        region.cut(Half {
            a: 0.0,
            b: 1.0,
            most: -8.0,
        });
        region.pass(1.0);
        assert_eq!(region.offsets(0.0), (-10.0, -7.0));
        region.vary(3.0, 10.0);
        assert_eq!(region.offsets(0.0), (-10.0, -7.0));
        assert_eq!(region.offsets(1.0), (-20.0, -12.0));
    }

    #[test]
    fn regions_meet() {
        let mut region = Region::new(0.0, 10.0, 4.0);
        region.meet(&Region::new(5.0, 20.0, 1.0));
        assert_eq!(region.offsets(0.0), (5.0, 10.0));
        assert_eq!(region.offsets(1.0), (4.0, 11.0));
        region.meet(&Region::new(11.0, 20.0, 1.0));
        assert!(region.is_empty());
    }

    #[test]
    fn many_corners_are_trimmed_outwards() {
        let corner = |n: u32| {
            let angle = f64::from(n) / 400.0 * std::f64::consts::TAU;
            State {
                offset: 1e6 * angle.cos(),
                drift: 1e3 * angle.sin(),
            }
        };
        let whole = Region {
            corners: (0..400).map(corner).collect(),
        };
        let mut trimmed = whole.clone();
        trimmed.trim();
        assert_eq!(trimmed.corners.len(), MOST_CORNERS);
        for seconds in [-2e3, -1.0, 0.0, 0.5, 1e3, 7e3] {
            let (inner, outer) = (whole.offsets(seconds), trimmed.offsets(seconds));
            assert!(
                outer.0 <= inner.0 && inner.1 <= outer.1,
                "{inner:?} {outer:?}"
            );
            let growth = (outer.1 - outer.0) / (inner.1 - inner.0);
            assert!(growth < 1.005, "{growth}");
        }
    }

    #[test]
    fn a_hull_leaves_out_what_lies_inside() {
        let state = |offset, drift| State { offset, drift };
        let corners = [(0.0, 0.0), (4.0, 0.0), (4.0, 3.0), (0.0, 3.0)];
        let mut all: Vec<State> = corners.iter().map(|(o, d)| state(*o, *d)).collect();
        all.extend([state(1.0, 1.0), state(2.0, 0.0), state(4.0, 3.0)]);
        let hull = hull(all);
        assert_eq!(hull, corners.map(|(o, d)| state(o, d)));
    }
}
