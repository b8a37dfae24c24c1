//! Who wins at what.

use std::fmt;

use pubgauge_figures::Trial;
use pubgauge_figures::figure::Better;
use pubgauge_quantities::lists::names;
use pubgauge_quantities::shown;
use pubgauge_quantities::stats::{self, Estimate, MOST_REPEATS, MeanInterval, Ratio, one_of};
use schemars::JsonSchema;
use serde::Serialize;

use crate::cell::Cell;
use crate::metric::Bound;
pub use crate::metric::Contest;

impl Contest {
    /// The contests that cells are compared by: throughput flat out, where latency only shows how
    /// long the queues are; latency when paced, where every system delivers what is offered.
    pub fn contests_of(cells: &[&Cell<'_>]) -> Vec<Contest> {
        if cells.iter().all(|cell| cell.flat_out()) {
            let nobody = cells.iter().all(|cell| cell.nobody_subscribes());
            let most = if nobody {
                Contest::TAKEN
            } else {
                Contest::THROUGHPUT
            };
            return vec![most, Contest::CPU_PER_MESSAGE];
        }
        let round_trips =
            |trial: &&Trial| trial.messages.round_trip_ns.is_some_and(|d| d.count > 0);
        let any = cells.iter().flat_map(|cell| &cell.trials).any(round_trips);
        let mut contests = vec![Contest::MEDIAN_LATENCY, Contest::TAIL_LATENCY];
        contests.extend(any.then_some(Contest::ROUND_TRIP));
        contests.push(Contest::CPU_PER_MESSAGE);
        contests
    }
}

/// How far a contest is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// There is no figure to compare.
    Nothing,
    /// There is a single figure.
    Alone,
    /// One is best, beyond chance as repeats show it.
    Decided,
    /// The best of single repeats, which may be chance, or several that repeats do not tell apart.
    Open,
    /// Rates that are lower bounds: no repeat tells more.
    Bounded,
}

/// Who wins a contest.
#[derive(Clone, Debug, PartialEq)]
pub struct ContestResult {
    pub contest: Contest,
    /// The best, and all that may be as good or better; empty if there is no figure.
    pub winners: Vec<Contender>,
    /// The next best.
    pub runner_up: Option<Contender>,
    /// Cells that were compared.
    pub compared: usize,
    /// The reference broker's figure, where it ran.
    pub ceiling: Option<Contender>,
    /// About how many repeats would tell the best from all that tie with it; absent where nothing ties, or nothing says how
    /// far repeats differ.
    pub repeats_to_tell: Option<u32>,
}

/// One place in an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Contender {
    /// The cell's name within its point.
    pub row: String,
    /// Its figure.
    pub estimate: MeanInterval,
    /// How the figure bounds what the system can do.
    pub bound: Bound,
    /// Its figure over the best one's; absent for the best itself and with a single repeat.
    pub to_best: Option<Ratio>,
}

/// How many times apart two figures are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Factor {
    /// The middle of the interval; absent where only a lower bound is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<f64>,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end; absent where only a lower bound is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

impl Factor {
    /// How many times apart, whichever of the two is the larger; from a lower bound no more than its lower end.
    pub fn new(ratio: Ratio, bound: Bound) -> Factor {
        let (low, times, high) = if ratio.ratio < 1.0 {
            (1.0 / ratio.high, 1.0 / ratio.ratio, 1.0 / ratio.low)
        } else {
            (ratio.low, ratio.ratio, ratio.high)
        };
        let is_known = !matches!(bound, Bound::AtLeast | Bound::SettingBound);
        Factor {
            times: is_known.then_some(times),
            low,
            high: is_known.then_some(high),
        }
    }
}

/// Ratio up to which two single figures count as equal: one repeat shows no spread, and differences
/// of a few percent between runs of the same thing are ordinary.
const SINGLE_TIE: f64 = 1.10;

/// Compares cells in a contest, from valid repeats; for throughput also from lower bounds and rates
/// under overload ([`Cell::carried`]).
///
/// A cell is not called slower than one whose figure is a lower bound that it exceeds, and a cell
/// with a lower bound is never called slower: more may have been possible.
pub fn answer(cells: &[&Cell<'_>], contest: Contest) -> ContestResult {
    let mut places: Vec<(Contender, Vec<f64>)> = Vec::new();
    let mut ceiling = None;
    for cell in cells {
        let (bound, values) = match (contest, cell.carried()) {
            (Contest::THROUGHPUT | Contest::TAKEN, Some(carried)) => {
                (carried.bound, carried.values)
            }
            (Contest::THROUGHPUT | Contest::TAKEN, None) => continue,
            _ => {
                // A percentile that falls among lost messages is larger than all that came.
                let values: Option<Vec<f64>> = cell.valid().map(|t| contest.value(t)).collect();
                (Bound::Exact, values.unwrap_or_default())
            }
        };
        let Some(estimate) = MeanInterval::mean_of(&values) else {
            continue;
        };
        let place = Contender {
            row: cell.row.clone(),
            estimate,
            bound,
            to_best: None,
        };
        if cell.reference {
            ceiling = Some(place)
        } else {
            places.push((place, values))
        }
    }
    places.sort_by(|a, b| {
        let order = a.0.estimate.mean.total_cmp(&b.0.estimate.mean);
        if contest.figure().better == Better::More {
            order.reverse()
        } else {
            order
        }
    });
    let compared = places.len();
    let mut answer = ContestResult {
        contest,
        winners: Vec::new(),
        runner_up: None,
        compared,
        ceiling,
        repeats_to_tell: None,
    };
    let mut ties: Vec<Option<u32>> = Vec::new();
    let Some((best, best_values)) = places.first().cloned() else {
        return answer;
    };
    for (at, (mut place, values)) in places.into_iter().enumerate() {
        if at > 0 {
            place.to_best = stats::ratio(&values, &best_values, compared - 1);
        }
        let (own, most) = (place.estimate.mean, best.estimate.mean);
        let apart = (own / most).max(most / own);
        let equal = match place.to_best {
            // Repeats that are all equal show no spread either.
            Some(ratio) => !ratio.is_clear() || ratio.low == ratio.high && apart <= SINGLE_TIE,
            None => apart.is_nan() || apart <= SINGLE_TIE,
        };
        if at > 0 && equal {
            ties.push(repeats_to_tell(&values, &best_values, compared - 1));
        }
        // A cell further back with a wide interval ties too, whatever is between.
        if at == 0 || equal || matches!(place.bound, Bound::AtLeast | Bound::SettingBound) {
            answer.winners.push(place);
        } else if answer.runner_up.is_none() {
            answer.runner_up = Some(place);
        }
    }
    let ties: Option<Vec<u32>> = ties.into_iter().collect();
    answer.repeats_to_tell = ties.and_then(|ties| ties.into_iter().max());
    answer
}

/// About how many repeats would tell two cells apart, of so many comparisons; `None` where one has a single repeat, or
/// [`MOST_REPEATS`] would not do.
fn repeats_to_tell(a: &[f64], b: &[f64], comparisons: usize) -> Option<u32> {
    if a.len() < 2 || b.len() < 2 || a.iter().chain(b).any(|value| *value <= 0.0) {
        return None;
    }
    let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<f64>>();
    let change = Estimate::difference(&logs(b), &logs(a), false);
    // Repeats that are all equal show no spread.
    let (low, high) = change.interval(comparisons);
    if low == high {
        return None;
    }
    let repeats = change.repeats_for(change.middle().abs(), one_of(comparisons))?;
    (repeats <= MOST_REPEATS).then_some(repeats)
}

impl ContestResult {
    fn format_value(&self, place: &Contender) -> String {
        let figure = self.contest.show_bound(&place.estimate, place.bound);
        format!("{} {figure}", place.row)
    }

    /// How many times apart the best and the next one are; absent with a single repeat.
    pub fn factor(&self) -> Option<Factor> {
        let (best, next) = (self.winners.first()?, self.runner_up.as_ref()?);
        Some(Factor::new(next.to_best?, best.bound))
    }

    /// That factor in words: `2.94 times apart (2.80 to 3.10)`.
    fn times(&self) -> Option<String> {
        let Factor { times, low, high } = self.factor()?;
        let low = shown::digits(low);
        Some(match times.zip(high) {
            Some((times, high)) => {
                let [times, high] = [times, high].map(shown::digits);
                format!("{times} times apart ({low} to {high})")
            }
            None => format!("{low} times apart at least"),
        })
    }
}

impl ContestResult {
    /// How far it is decided.
    pub fn outcome(&self) -> Outcome {
        let [best, others @ ..] = &self.winners[..] else {
            return Outcome::Nothing;
        };
        let compared = self.winners.iter().chain(&self.runner_up);
        match &self.runner_up {
            _ if self.compared == 1 => Outcome::Alone,
            _ if others.iter().any(|place| place.bound != Bound::Exact) => Outcome::Bounded,
            Some(_) if others.is_empty() && compared.clone().all(|place| place.estimate.n > 1) => {
                Outcome::Decided
            }
            _ if best.bound == Bound::Exact || others.is_empty() => Outcome::Open,
            _ => Outcome::Bounded,
        }
    }

    /// Who wins, in one sentence that claims no more than the figures show.
    pub fn winner_sentence(&self) -> String {
        let Some(best) = self.winners.first() else {
            return "no valid figure to compare".to_owned();
        };
        let mut who = match (&self.winners[..], &self.runner_up) {
            (_, _) if self.compared == 1 && best.bound == Bound::Exact => {
                format!("{}, the only valid figure", self.format_value(best))
            }
            (_, _) if self.compared == 1 => format!("{}, the only figure", self.format_value(best)),
            ([best], Some(next)) => {
                let times = self.times().map(|times| format!(": {times}"));
                format!(
                    "{}, then {}{}",
                    self.format_value(best),
                    self.format_value(next),
                    times.unwrap_or_default()
                )
            }
            (tied, next) => {
                let all: Vec<String> = tied.iter().map(|place| self.format_value(place)).collect();
                let bounds = tied.iter().any(|place| place.bound != Bound::Exact);
                let what = if bounds { "order" } else { "winner" };
                // Only the best is known to be ahead of the next one.
                let next = next.as_ref().filter(|_| bounds);
                let ahead = next
                    .map(|next| format!("; {} is ahead of {}", best.row, self.format_value(next)));
                format!(
                    "no clear {what} among {}{}",
                    all.join(", "),
                    ahead.unwrap_or_default()
                )
            }
        };
        let single = self
            .winners
            .iter()
            .chain(&self.runner_up)
            .filter(|place| place.estimate.n == 1);
        let bounds: Vec<Bound> = single.map(|place| place.bound).collect();
        if self.compared > 1 && !bounds.is_empty() {
            let valid = if bounds.iter().all(|bound| *bound == Bound::Exact) {
                "valid "
            } else {
                ""
            };
            who += &format!(" (one {valid}repeat: could be chance)");
        }
        if let Some(ceiling) = &self.ceiling {
            let figure = self.contest.format_value(ceiling.estimate.mean);
            who += &format!("; reference broker: {figure}{}", ceiling.bound.suffix());
        }
        who
    }

    /// The best with the distance to the next: `zeromq 73.9 µs, 1.59 times apart (1.53 to 1.65) from mosquitto`. Of lower
    /// bounds, those that have no order: `no clear order among nats, zeromq-direct, which is ahead of mosquitto`.
    pub fn lead(&self) -> Option<String> {
        let (best, next) = (self.winners.first()?, self.runner_up.as_ref());
        if self.outcome() == Outcome::Bounded {
            // Only the best is known to be ahead of the next one.
            let others = self.winners[1..].iter().map(|place| place.row.as_str());
            let tied = names(others.chain([best.row.as_str()]));
            let ahead = next.map(|next| {
                let single = best.estimate.n == 1 || next.estimate.n == 1;
                let chance = if single {
                    " (one repeat: could be chance)"
                } else {
                    ""
                };
                format!(", which is ahead of {}{chance}", next.row)
            });
            return Some(format!(
                "no clear order among {tied}{}",
                ahead.unwrap_or_default()
            ));
        }
        let next = next?;
        let figure = self.contest.show_bound_briefly(&best.estimate, best.bound);
        let times = self.times().unwrap_or("ahead".to_owned());
        Some(format!("{} {figure}, {times} from {}", best.row, next.row))
    }

    /// Who wins, in a few words.
    pub fn short(&self) -> String {
        match &self.winners[..] {
            [] => "–".to_owned(),
            [best] => format!(
                "{} {}",
                best.row,
                self.contest.show_bound_briefly(&best.estimate, best.bound)
            ),
            tied => {
                let names: Vec<&str> = tied.iter().map(|place| place.row.as_str()).collect();
                format!("open: {}", names.join(", "))
            }
        }
    }
}

impl fmt::Display for ContestResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}",
            self.contest.superlative,
            self.winner_sentence()
        )
    }
}
