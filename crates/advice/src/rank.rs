//! The order of systems that carry a fleet: those that did so again and again first, then more headroom, then less cost;
//! those that figures do not tell apart share a rank.

use std::collections::BTreeSet;

use pubgauge_quantities::stats::MeanInterval;

/// A range that a value lies in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    pub low: f64,
    /// Infinite where only a lower bound is known.
    pub high: f64,
}

impl Range {
    /// Whether both may be the same value.
    fn overlaps(self, other: Range) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// The figures that rank a system.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    /// It carried the fleet in three trials and more. Where the budget reaches for repeats of some systems alone, these are
    /// ranked first: of one trial nothing is known of chance, and no cost can be told apart.
    pub is_confirmed: bool,
    /// How many times the fleet it carries.
    pub headroom: Range,
    /// Processor time of client and system for a delivery, in microseconds; `None` where the system is out of sight.
    pub cost: Option<MeanInterval>,
    /// The runs that the cost is from. Costs of systems that were not measured in turns are not told apart: a machine may
    /// have changed between them.
    pub cost_from: BTreeSet<String>,
}

impl Standing {
    /// The range of the cost. Two repeats say nothing about how far apart further ones lie.
    fn cost_range(&self) -> Range {
        let known = self.cost.filter(|cost| cost.half_width.is_some());
        known.map_or(
            Range {
                low: 0.0,
                high: f64::INFINITY,
            },
            |cost| Range {
                low: cost.low(),
                high: cost.high(),
            },
        )
    }

    /// Whether both may cost the same.
    fn costs_like(&self, other: &Standing) -> bool {
        self.cost_from != other.cost_from || self.cost_range().overlaps(other.cost_range())
    }

    fn mean_cost(&self) -> f64 {
        self.cost.map_or(f64::INFINITY, |cost| cost.mean)
    }
}

/// The rank of each, from 1, and within a rank the order in which they are named: the cheapest first.
pub(crate) fn rank(standings: &[Standing]) -> Vec<(u32, usize)> {
    let (confirmed, others): (Vec<usize>, Vec<usize>) =
        (0..standings.len()).partition(|n| standings[*n].is_confirmed);
    let mut ranked = rank_among(standings, confirmed, 1);
    let next = ranked.last().map_or(1, |(rank, _)| rank + 1);
    ranked.extend(rank_among(standings, others, next));
    ranked
}

/// The rank of those that are `left`, from `rank` on.
fn rank_among(standings: &[Standing], mut left: Vec<usize>, mut rank: u32) -> Vec<(u32, usize)> {
    let mut ranked = Vec::new();
    while !left.is_empty() {
        let of = |n: &usize| &standings[*n];
        let most = left.iter().map(|n| of(n).headroom.low).fold(0.0, f64::max);
        let widest = left.iter().filter(|n| of(n).headroom.low >= most);
        // Of several with the same lower end the one that is known best.
        let high = widest
            .map(|n| of(n).headroom.high)
            .fold(f64::INFINITY, f64::min);
        let top = Range { low: most, high };
        let roomy = left.iter().filter(|n| of(n).headroom.overlaps(top));
        let cheapest = roomy.min_by(|a, b| of(a).mean_cost().total_cmp(&of(b).mean_cost()));
        let Some(cheapest) = cheapest.copied() else {
            break;
        };
        let cheapest = &standings[cheapest];
        let is_alike = |n: &usize| of(n).headroom.overlaps(top) && of(n).costs_like(cheapest);
        let (mut alike, others): (Vec<usize>, Vec<usize>) = left.iter().partition(|n| is_alike(n));
        alike.sort_by(|a, b| of(a).mean_cost().total_cmp(&of(b).mean_cost()));
        ranked.extend(alike.into_iter().map(|n| (rank, n)));
        left = others;
        rank += 1;
    }
    ranked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(low: f64, high: f64, costs: &[f64]) -> Standing {
        Standing {
            is_confirmed: costs.len() > 2,
            headroom: Range { low, high },
            cost: MeanInterval::mean_of(costs),
            cost_from: BTreeSet::new(),
        }
    }

    #[test]
    fn more_headroom_comes_first_then_less_cost_and_what_cannot_be_told_apart_shares_a_rank() {
        let cheap = [10.0, 10.1, 9.9];
        let dear = [20.0, 20.2, 19.8];
        let all = [
            standing(4.0, 5.0, &cheap),
            standing(30.0, 40.0, &dear),
            standing(35.0, 38.0, &cheap),
            standing(36.0, 37.0, &[10.05, 10.0, 10.1]),
        ];
        assert_eq!(rank(&all), [(1, 2), (1, 3), (2, 1), (3, 0)]);
    }

    #[test]
    fn a_lower_bound_is_not_behind_a_limit_above_it() {
        let costs = [10.0, 10.1, 9.9];
        let all = [
            standing(3.0, f64::INFINITY, &costs),
            standing(8.0, 9.0, &costs),
        ];
        assert_eq!(rank(&all), [(1, 0), (1, 1)]);
    }

    #[test]
    fn costs_that_were_not_measured_in_turns_are_not_told_apart() {
        let mut all = [
            standing(3.0, f64::INFINITY, &[10.0, 10.1, 9.9]),
            standing(3.0, f64::INFINITY, &[20.0, 20.1, 19.9]),
        ];
        assert_eq!(rank(&all), [(1, 0), (2, 1)]);
        all[0].cost_from.insert("results/earlier".to_owned());
        assert_eq!(rank(&all), [(1, 0), (1, 1)]);
        all[1].cost_from.insert("results/earlier".to_owned());
        assert_eq!(rank(&all), [(1, 0), (2, 1)]);
    }

    #[test]
    fn who_was_measured_once_stands_behind_who_was_confirmed() {
        let all = [
            standing(3.0, f64::INFINITY, &[10.0, 10.1, 9.9]),
            standing(6.0, f64::INFINITY, &[160.0]),
            standing(97.0, f64::INFINITY, &[23.0, 23.1, 22.9]),
        ];
        assert_eq!(rank(&all), [(1, 0), (2, 2), (3, 1)]);
        assert_eq!(rank(&all[1..2]), [(1, 0)]);
    }

    #[test]
    fn two_repeats_separate_no_costs() {
        let all = [
            standing(3.0, f64::INFINITY, &[10.0, 10.1]),
            standing(3.0, f64::INFINITY, &[20.0, 20.1]),
        ];
        assert_eq!(rank(&all), [(1, 0), (1, 1)]);
    }
}
