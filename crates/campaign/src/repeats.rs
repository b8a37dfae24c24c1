//! Which cells are measured again for claims that cannot be told, and how long that would take.
//!
//! A round doubles the repeats of the cells that it takes up, in turns.

use std::collections::{BTreeMap, BTreeSet};

use pubgauge_conclusions::claims::Open;
use pubgauge_figures::model::Trial;
use pubgauge_quantities::shown::so_many;
use pubgauge_quantities::stats::MOST_REPEATS;
use pubgauge_runner::searching;

/// The trials of a round, in order: index in the plan, and repeat.
pub(crate) type Round = Vec<(usize, u32)>;

/// How long it would take to decide claims, if their figures stay as they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RepeatsForecast {
    /// Seconds of trials after which so many claims are decided; rising.
    pub seconds: Vec<f64>,
    /// Claims that more than 1000 repeats would decide.
    pub beyond: usize,
}

impl RepeatsForecast {
    /// `more repeats would decide 5 claims: 1 within about 2 min, 3 within 8 min, all within 41 min`.
    pub fn sentence(&self) -> String {
        let all = self.seconds.len();
        let minutes = |seconds: f64| (seconds / 60.0).ceil().max(1.0);
        let counts = BTreeSet::from([1, all.div_ceil(2), all]);
        let steps = counts
            .into_iter()
            .filter(|count| (1..=all).contains(count))
            .map(|count| {
                let who = if count == all && all > 1 {
                    "all".to_owned()
                } else {
                    count.to_string()
                };
                let within = minutes(self.seconds[count - 1]);
                format!("{who} within about {within} min")
            });
        let steps: Vec<String> = steps.collect();
        let beyond = match self.beyond {
            0 => String::new(),
            some => format!(
                "{} would take more than {MOST_REPEATS} repeats",
                so_many(some as u64, "claim")
            ),
        };
        let near = match all {
            0 => "no claim waits for repeats".to_owned(),
            all => {
                let claims = so_many(all as u64, "claim");
                format!("more repeats would decide {claims}: {}", steps.join(", "))
            }
        };
        let parts = [near, beyond].into_iter().filter(|words| !words.is_empty());
        parts.collect::<Vec<_>>().join("; ")
    }
}

/// A claim that repeats would decide.
pub(crate) struct Wanted {
    /// Cells, with the repeats that they lack.
    pub(crate) cells: BTreeMap<String, u32>,
    pub(crate) seconds: f64,
    pub(crate) beyond: bool,
}

/// The time that trials of each cell took, and their number.
pub(crate) struct Measured(BTreeMap<String, (u32, f64)>);

impl Measured {
    pub(crate) fn from_trials(trials: &[Trial]) -> Measured {
        let mut cells: BTreeMap<String, (u32, f64)> = BTreeMap::new();
        for trial in trials.iter().filter(|trial| trial.search.is_none()) {
            let (count, seconds) = cells.entry(trial.cell.clone()).or_default();
            *count += 1;
            *seconds += searching::seconds(trial);
        }
        Measured(cells)
    }

    pub(crate) fn repeats(&self, cell: &str) -> u32 {
        self.0.get(cell).map_or(0, |(count, _)| *count)
    }

    /// Mean length of a trial of the cell.
    pub(crate) fn seconds(&self, cell: &str) -> f64 {
        let of = |(count, seconds): &(u32, f64)| seconds / f64::from((*count).max(1));
        self.0.get(cell).map_or(0.0, of)
    }
}

/// The claims that repeats would decide, the quickest ones first.
pub(crate) fn wanted(open: Vec<Option<Open>>, measured: &Measured) -> Vec<Wanted> {
    let one = |open: Open| {
        let lacks = |cell: String| {
            let lacks = open.repeats.saturating_sub(measured.repeats(&cell)).max(1);
            (cell, lacks)
        };
        let cells: BTreeMap<String, u32> = open.cells.into_iter().map(lacks).collect();
        let seconds = cells
            .iter()
            .map(|(cell, n)| f64::from(*n) * measured.seconds(cell));
        Wanted {
            seconds: seconds.sum(),
            beyond: open.repeats > MOST_REPEATS,
            cells,
        }
    };
    let mut wanted: Vec<Wanted> = open.into_iter().flatten().map(one).collect();
    wanted.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    wanted
}

/// How many more repeats each cell gets in a round that takes `budget_s` at most: as many as it has, for the claims that
/// are decided soonest; fewer for the first of them, where not even that fits.
pub(crate) fn taken_up(
    wanted: &[Wanted],
    measured: &Measured,
    budget_s: f64,
) -> BTreeMap<String, u32> {
    let mut taken: BTreeMap<String, u32> = BTreeMap::new();
    let mut spent = 0.0;
    for claim in wanted {
        let new = claim.cells.keys().filter(|cell| !taken.contains_key(*cell));
        let new: Vec<(String, u32)> = new
            .map(|cell| (cell.clone(), measured.repeats(cell)))
            .collect();
        let costs = new
            .iter()
            .map(|(cell, n)| f64::from(*n) * measured.seconds(cell));
        let costs: f64 = costs.sum();
        if spent + costs <= budget_s {
            spent += costs;
            taken.extend(new);
        }
    }
    if let (Some(first), true) = (wanted.first(), taken.is_empty()) {
        let once: f64 = first.cells.keys().map(|cell| measured.seconds(cell)).sum();
        let times = (budget_s / once).floor() as u32;
        let fewer = |cell: &String| (cell.clone(), times.min(measured.repeats(cell)));
        taken.extend(first.cells.keys().map(fewer).filter(|(_, n)| *n > 0));
    }
    taken
}

/// Seconds that trials of rounds before `round` took.
pub(crate) fn spent_s(trials: &[Trial], round: u32) -> f64 {
    let extra = trials.iter().filter(|t| (1..round).contains(&t.round));
    extra.map(searching::seconds).sum()
}
