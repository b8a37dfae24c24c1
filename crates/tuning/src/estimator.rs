//! Combinations that a Tree-structured Parzen estimator proposes from what was seen.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tpe::{
    TpeOptimizer, TpeOptimizerBuilder, categorical_range, histogram_estimator, parzen_estimator,
    range,
};

use crate::factor::{Factor, Levels, Point};
use crate::finding::KnownPoint;

/// Share of what was seen that counts as good.
const GOOD: f64 = 0.2;
/// Proposals that may be known already before one is drawn near the leader.
const TRIES: usize = 30;
/// The score of a hopeless point, above the worst of all others: the ratio of figures is 2.
const BEYOND_WORST: f64 = std::f64::consts::LN_2;

/// A combination that has not been measured yet; `None` if every one has.
pub(crate) fn propose(factors: &[Factor], known: &[KnownPoint], seed: u64) -> Option<Point> {
    let counts: Option<Vec<usize>> = factors.iter().map(|f| f.levels.count()).collect();
    let all = counts.map(|counts| {
        counts
            .iter()
            .fold(1usize, |all, one| all.saturating_mul(*one))
    });
    let is_known = |point: &Point| known.iter().any(|known| known.point == *point);
    if all.is_some_and(|all| known.len() >= all) {
        return None;
    }
    let mut draws = StdRng::seed_from_u64(seed.wrapping_add(known.len() as u64));
    let mut dimensions: Vec<TpeOptimizer> = (0..factors.len())
        .filter_map(|nth| dimension(factors, nth, known))
        .collect();
    if dimensions.len() < factors.len() {
        return None;
    }
    for _ in 0..TRIES {
        let one = |(factor, dimension): (&Factor, &mut TpeOptimizer)| {
            let coordinate = dimension.ask(&mut draws).ok()?;
            factor.levels.at_coordinate(coordinate)
        };
        let point = Point(factors.iter().zip(&mut dimensions).map(one).collect());
        if !is_known(&point) {
            return Some(point);
        }
    }
    // The estimator has settled: one or two factors of the leader change.
    let scored = known.iter().filter_map(|known| Some((known, known.score?)));
    let (leader, _) = scored.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let leader = &leader.point;
    for tries in 0..10 * TRIES {
        let mut point = leader.clone();
        for _ in 0..=tries / TRIES {
            let nth = draws.random_range(0..factors.len());
            let levels = &factors[nth].levels;
            let most = levels.count().map_or(1.0, |count| count as f64);
            point.0[nth] = levels.at_coordinate(draws.random_range(0.0..most));
        }
        if !is_known(&point) {
            return Some(point);
        }
    }
    None
}

/// The estimator of one factor, told all that was seen.
fn dimension(factors: &[Factor], nth: usize, known: &[KnownPoint]) -> Option<TpeOptimizer> {
    let levels = &factors[nth].levels;
    // A range is open at its end.
    const END: f64 = 1.0 + 1e-9;
    let (kind, range) = match levels {
        Levels::Choices(values) => (histogram_estimator(), categorical_range(values.len() + 1)),
        Levels::Range { .. } => (parzen_estimator(), range(0.0, END)),
    };
    let mut builder = TpeOptimizerBuilder::new();
    let mut optimizer = builder.gamma(GOOD).build(kind, range.ok()?).ok()?;
    let worst = known.iter().filter_map(|known| known.score);
    let worst = worst.reduce(f64::max).unwrap_or(0.0);
    for one in known {
        let coordinate = levels.coordinate(one.point.0[nth].as_ref());
        let hopeless = one.is_hopeless.then_some(worst + BEYOND_WORST);
        if let Some(score) = one.score.or(hopeless) {
            optimizer.tell(coordinate, score).ok()?;
        }
    }
    Some(optimizer)
}
