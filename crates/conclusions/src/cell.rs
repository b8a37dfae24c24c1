//! All repeats of one cell, and what they say together.

use std::fmt;

use pubgauge_figures::{Reason, Status, Trial};
use pubgauge_quantities::lists::grouped;
use pubgauge_quantities::stats::MeanInterval;
use pubgauge_results::verdict::spoilt_by_others;

use crate::carries::Carries;
use crate::metric::{Bound, Contest};

/// Names under which the reference broker runs. It is no product: it never wins; the others are
/// compared with it.
pub const REFERENCE_NAMES: [&str; 3] = ["reference", "reference-broker", "reference broker"];

pub fn is_reference(system: &str) -> bool {
    REFERENCE_NAMES.contains(&system)
}

/// All repeats of one cell.
pub struct Cell<'a> {
    /// The cell's identifier.
    pub id: String,
    /// The values of the varied axes, the load included: `mosquitto, safe, payload = 1 KiB`.
    pub label: String,
    /// The values of the varied axes except the load: the name within its point.
    pub row: String,
    /// Its place in [`WorkloadCells::points`](crate::summary::WorkloadCells::points).
    pub point: usize,
    /// The system's name.
    pub system: String,
    /// Its place in [`Summary::systems`](crate::summary::Summary::systems).
    pub system_index: usize,
    /// Whether it is the reference broker.
    pub reference: bool,
    /// Repeats in the order in which they ran.
    pub trials: Vec<&'a Trial>,
}

impl<'a> Cell<'a> {
    /// The cell of these repeats, of which there is at least one, without a name.
    pub fn from_repeats(trials: Vec<&'a Trial>) -> Cell<'a> {
        let first = trials[0];
        Cell {
            id: first.cell.clone(),
            label: String::new(),
            row: String::new(),
            point: 0,
            system: first.system.name.clone(),
            system_index: 0,
            reference: is_reference(&first.system.name),
            trials,
        }
    }

    /// The cell of a single trial that is compared with no other, without a name.
    pub fn from_trial(trial: &'a Trial) -> Cell<'a> {
        Cell::from_repeats(vec![trial])
    }

    /// Whether it has flat-out traffic: in a grid over the rate some cells may.
    pub fn flat_out(&self) -> bool {
        self.trials[0].workload.flat_out
    }

    /// Its valid repeats.
    pub fn valid(&self) -> impl Iterator<Item = &'a Trial> + '_ {
        self.trials
            .iter()
            .copied()
            .filter(|trial| trial.verdict.status == Status::Valid)
    }

    /// The repeats that its figures come from: those with its [`Cell::status`].
    pub fn quoted(&self) -> Vec<&'a Trial> {
        let status = self.status();
        let of = self.trials.iter().copied();
        of.filter(|trial| trial.verdict.status == status).collect()
    }

    /// Valid if any repeat is; otherwise the mildest verdict.
    pub fn status(&self) -> Status {
        self.trials
            .iter()
            .map(|trial| trial.verdict.status)
            .min()
            .unwrap_or_default()
    }

    /// Whether its latencies can be quoted: not where a host, the client or the system was at its limit, because queues
    /// then grow without end; flat out only where it is valid.
    pub fn quotes_latency(&self) -> bool {
        match self.status() {
            Status::Valid => true,
            Status::HostBound | Status::SettingBound | Status::ClientBound | Status::Overloaded => {
                false
            }
            _ => !self.flat_out(),
        }
    }

    /// A figure over the [`Cell::quoted`] repeats. `None` where one of them has none: a percentile that falls among lost
    /// messages is larger than all that came.
    pub fn estimate(&self, figure: impl Fn(&Trial) -> Option<f64>) -> Option<MeanInterval> {
        let values: Option<Vec<f64>> = self.quoted().into_iter().map(figure).collect();
        MeanInterval::mean_of(&values?)
    }

    /// Whether nobody subscribes to what is published in any of its repeats.
    pub fn nobody_subscribes(&self) -> bool {
        self.trials.iter().all(|trial| trial.messages.are_unheard())
    }

    /// Deliveries per second (messages taken, where nobody subscribes), and how they bound what the system can do. `None` where all
    /// repeats are lossy, unsteady or broken.
    pub fn carried(&self) -> Option<Carried> {
        let rates = |status: Status| -> Vec<f64> {
            let of = self.trials.iter().filter(|t| t.verdict.status == status);
            of.map(|t| t.messages.carried_msgs_per_s()).collect()
        };
        Bound::ALL.into_iter().find_map(|(status, bound)| {
            let values = rates(status);
            let estimate = MeanInterval::mean_of(&values)?;
            Some(Carried {
                bound,
                estimate,
                values,
                nobody_subscribes: self.nobody_subscribes(),
            })
        })
    }

    /// Whether it leaves without an answer because other programs had the processors.
    pub fn is_spoilt(&self, carries: Option<Carries>) -> bool {
        let is_open = !matches!(carries, Some(Carries::Yes | Carries::No));
        is_open && self.quoted().into_iter().all(spoilt_by_others)
    }

    /// Whether it tells neither an answer nor a rate.
    pub fn says_nothing(&self, carries: Option<Carries>) -> bool {
        match carries {
            Some(carries) => carries == Carries::CannotTell,
            None => self.carried().is_none(),
        }
    }

    /// The first reason of its verdict, the worst.
    pub fn cause(&self) -> Option<&'a Reason> {
        let trial = self.quoted().first().copied();
        trial.unwrap_or(self.trials[0]).verdict.reasons.first()
    }

    /// The repeat whose delivery rate is the median of the [`Cell::quoted`] ones: it is drawn where
    /// one repeat represents all.
    pub fn typical(&self) -> &'a Trial {
        let mut quoted = self.quoted();
        quoted.sort_by(|a, b| {
            let carried = |trial: &Trial| trial.messages.carried_msgs_per_s();
            carried(a).total_cmp(&carried(b))
        });
        quoted[(quoted.len() - 1) / 2]
    }
}

/// The deliveries of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Carried {
    /// How the rate bounds what the system can deliver.
    pub bound: Bound,
    /// Deliveries per second over the repeats with this bound.
    pub estimate: MeanInterval,
    /// The value of each repeat.
    pub values: Vec<f64>,
    /// Nobody subscribes: it is the rate that the system took.
    pub nobody_subscribes: bool,
}

impl Carried {
    /// The rate alone: `2.36 M/s or more`, `takes 37.6 k/s`.
    pub fn short(&self) -> String {
        let rate = Contest::THROUGHPUT.show_bound_briefly(&self.estimate, self.bound);
        if self.nobody_subscribes {
            format!("takes {rate}")
        } else {
            rate
        }
    }
}

impl fmt::Display for Carried {
    /// `907 ±5 k/s`, `2.36 M/s or more (client-bound)`, `97.6 k/s under overload`: a bound has no
    /// interval.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = Contest::THROUGHPUT.show_bound(&self.estimate, self.bound);
        if self.nobody_subscribes {
            write!(f, "takes {rate}; nobody subscribes")
        } else {
            f.write_str(&rate)
        }
    }
}

/// Repeats of a cell that are not valid, with the same verdict.
pub struct Doubt<'a> {
    /// Their verdict.
    pub status: Status,
    /// The repeats; the reasons of the first are shown for all.
    pub trials: Vec<&'a Trial>,
}

impl<'a> Cell<'a> {
    /// Its repeats that are not valid, grouped by verdict.
    pub fn doubtful(&self) -> Vec<Doubt<'a>> {
        let judged = self
            .trials
            .iter()
            .map(|trial| (trial.verdict.status, *trial));
        let doubtful = judged.filter(|(status, _)| *status != Status::Valid);
        let groups = grouped(doubtful).into_iter();
        groups
            .map(|(status, trials)| Doubt { status, trials })
            .collect()
    }
}

impl Doubt<'_> {
    /// Which repeats of `all`, as the continuation of a sentence; empty if there is only one.
    pub fn repeats(&self, all: usize) -> String {
        let numbers: Vec<String> = self.trials.iter().map(|t| t.repeat.to_string()).collect();
        match (self.trials.len(), all) {
            (_, 1) => String::new(),
            (1, _) => format!(", repeat {}", numbers[0]),
            (n, all) if n == all => {
                format!(", all {all} repeats (figures of repeat {})", numbers[0])
            }
            _ => format!(
                ", repeats {} (figures of repeat {})",
                numbers.join(", "),
                numbers[0]
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A percentile that falls among lost messages is beyond all that came: a mean without it would flatter the cell.
    #[test]
    fn a_percentile_among_lost_messages_has_no_mean() {
        let trial = |status, p99| {
            let mut trial = Trial::default();
            trial.verdict.status = status;
            trial.messages.latency_ns.p99 = p99;
            trial
        };
        let p99 = |trials: &[Trial]| {
            let cell = Cell::from_repeats(trials.iter().collect());
            let estimate = cell.estimate(|trial| trial.messages.latency_ns.p99.map(|ns| ns as f64));
            estimate.map(|estimate| estimate.mean)
        };
        let (lossy, valid) = (Status::Lossy, Status::Valid);
        let both = [trial(lossy, Some(1_000)), trial(lossy, Some(3_000))];
        assert_eq!(p99(&both), Some(2_000.0));
        let among = [trial(lossy, Some(1_000)), trial(lossy, None)];
        assert_eq!(p99(&among), None);
        // Of repeats with several verdicts, the mildest count.
        let mildest = [trial(valid, Some(1_000)), trial(lossy, None)];
        assert_eq!(p99(&mildest), Some(1_000.0));
    }
}
